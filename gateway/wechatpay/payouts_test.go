package wechatpay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

const somebody = "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"

func payoutHarness(b bench) gatewaytest.PayoutHarness {
	return gatewaytest.PayoutHarness{
		Gateway: b.Gateway, Stranger: b.Stranger, Wire: b.Wire, Destination: somebody, Currency: "CNY", Amount: 1990,
		Unfit: []gateway.Payout{
			{Currency: "USD"}, {Amount: 9}, {Amount: 200_000}, {Destination: "张三"}, {Destination: somebody + ":"},
			{Destination: somebody + ":" + strings.Repeat("三", 65)},
		},
		Now: b.Now, Advance: b.Advance,
		Short:  func() { b.sim.SetFaults(wechatpaysim.Faults{NotEnough: 1}) },
		Late:   func() { b.sim.Inject(wechatpaysim.Fault{Call: "transfer.create", Kind: wechatpaysim.LateRequest}) },
		Books:  func(p gateway.Payout) gatewaytest.PayoutBooks { return payoutBooks(b.sim, p) },
		Pay:    func(p gateway.Payout) error { return b.sim.ConfirmTransfer(p.ID) },
		Fail:   func(p gateway.Payout) error { return b.sim.LapseTransfer(p.ID) },
		Notify: b.Notify,
		Lacks:  map[gatewaytest.Ability]string{gatewaytest.Return: "what its receiver has confirmed never comes back"},
	}
}

func payoutBooks(sim *wechatpaysim.Sim, p gateway.Payout) (b gatewaytest.PayoutBooks) {
	for _, t := range sim.Books().Transfers {
		if t.OutBillNo != p.ID {
			continue
		}
		b.Taken++
		if t.State != "FAIL" && t.State != "CANCELLED" {
			b.Out += t.Amount
		}
	}
	return b
}

func TestPayoutsKeepTheContract(t *testing.T) {
	gatewaytest.RunPayouts(t, func(t *testing.T) gatewaytest.PayoutHarness { return payoutHarness(open(t, "native")) })
}

func pays(b bench) interface {
	gateway.Payer
	gateway.Recaller
} {
	return b.Gateway.(*wechatpay.Gateway)
}

func newPayout(id string, amount int64, to string) gateway.Payout {
	return gateway.Payout{ID: id, Destination: to, Amount: amount, Currency: "CNY", Description: "三月"}
}

func TestWhatTheReceiverNeedsIsNotLostWithAnAnswer(t *testing.T) {
	b, p := open(t, "native"), newPayout("out0001", 1990, somebody)
	b.Wire.Once(gatewaytest.CallPayout, gatewaytest.Lost)
	if a := pays(b).Payout(t.Context(), p); a.Outcome != gateway.Unknown {
		t.Fatalf("got %s", a.Outcome)
	}
	found := pays(b).QueryPayout(t.Context(), p)
	if found.Status != gateway.PayoutPending || found.Confirm == "" {
		t.Errorf("got %s %q (%v), want it pending, with what confirms it", found.Status, found.Confirm, found.Err)
	}
	p.Ref = found.Ref
	b.Wire.Once(gatewaytest.CallPayout, gatewaytest.Lost)
	if a := pays(b).QueryPayout(t.Context(), p); a.Status != gateway.PayoutPending || !b.Wire.Pending(gatewaytest.CallPayout) {
		t.Errorf("got %s, and it was asked for again", a.Status)
	}
}

func TestNobodyButWhoBearsTheNameIsPaid(t *testing.T) {
	for _, certificate := range []bool{false, true} {
		b := openWith(t, "native", wechatpaysim.Config{ByCert: certificate}, func(o *wechatpay.Options) {
			if certificate {
				o.PublicKeyID, o.PublicKey = "", nil
			}
		})
		p := newPayout("out0001", 200_000, somebody+":张三")
		if a := pays(b).Payout(t.Context(), p); a.Status != gateway.PayoutPending || a.Confirm == "" {
			t.Fatalf("got %s %s (%s, %v), want it pending", a.Outcome, a.Status, a.Code, a.Err)
		}
		again := pays(b).Payout(t.Context(), p) // its name is encrypted anew
		if got := payoutBooks(b.sim, p); again.Status != gateway.PayoutPending || got.Taken != 1 {
			t.Errorf("again: got %s (%s), taken on %d times", again.Status, again.Code, got.Taken)
		}
		p = newPayout("out0002", 100, somebody+":"+wechatpaysim.WrongName)
		if a := pays(b).Payout(t.Context(), p); a.Status != gateway.PayoutFailed || a.Code != "NAME_NOT_CORRECT" {
			t.Errorf("another's name: got %s %s, want it failed", a.Status, a.Code)
		}
	}
}

func TestATransferThatNobodyConfirmsFailsAfterADay(t *testing.T) {
	b, p := open(t, "native"), newPayout("out0001", 1990, somebody)
	p.Ref = pays(b).Payout(t.Context(), p).Ref
	b.Advance(24*time.Hour - time.Second)
	if a := pays(b).QueryPayout(t.Context(), p); a.Status != gateway.PayoutPending {
		t.Errorf("got %s, want it pending", a.Status)
	}
	b.Advance(time.Second)
	if a := pays(b).QueryPayout(t.Context(), p); a.Status != gateway.PayoutFailed || a.Code != "OVERDUE_CLOSE" {
		t.Errorf("got %s %s, want it failed", a.Status, a.Code)
	}
}

func TestANumberThatIsUsedForSomethingElseIsNoRefusal(t *testing.T) {
	b, p := open(t, "native"), newPayout("out0001", 100, somebody)
	p.Ref = pays(b).Payout(t.Context(), p).Ref
	p.Amount = 200
	for _, a := range []gateway.PayoutAnswer{pays(b).Payout(t.Context(), p), pays(b).QueryPayout(t.Context(), p)} {
		if a.Outcome != gateway.Unknown {
			t.Errorf("got %s %s, want unknown", a.Outcome, a.Status)
		}
	}
	if got := payoutBooks(b.sim, p); got.Out != 100 {
		t.Errorf("got %+v, want the first alone", got)
	}
}

func TestWithoutASceneNothingIsPaidOut(t *testing.T) {
	b := openWith(t, "native", wechatpaysim.Config{}, func(o *wechatpay.Options) { o.TransferScene, o.TransferReports = "", nil })
	p := newPayout("out0001", 1990, somebody)
	if u := pays(b).CheckPayout(p); u == nil || u.Field != "gateway" {
		t.Errorf("got %+v, want fault found with the gateway", u)
	}
	o := b.options
	o.TransferReports = []wechatpay.TransferReport{{Type: "岗位类型", Content: "主播"}}
	if _, err := wechatpay.New(o); err == nil {
		t.Error("reports without a scene were accepted")
	}
	o.TransferScene, o.TransferReports[0].Content = "1005", strings.Repeat("三", 33)
	if _, err := wechatpay.New(o); err == nil {
		t.Error("a report that is too long was accepted")
	}
}

// Whatever goes wrong on the way, asking and sending again under the same number
// ends with what WeChat Pay has in its own books, and no money leaves twice.
func TestSendingAgainThroughAStormPaysOnce(t *testing.T) {
	const seeds, payouts, rounds = 4, 10, 80
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := open(t, "native")
			b.sim.SetFaults(wechatpaysim.Faults{
				LostAnswer: 0.1, LostRequest: 0.1, LateTransfer: 0.1, ErrorAfterEffect: 0.08, Unavailable: 0.08, RateLimited: 0.05, UnsignedRefusal: 0.15,
				UnsignedAnswer: 0.05, ReencodedAnswer: 0.05, ProbeAnswer: 0.05, SkewedAnswer: 0.05, KeySwitch: 0.5, OldCodes: 0.3,
				NotEnough: 0.1, TransferAccepted: 0.2, TransferPending: 0.2, TransferFails: 0.2,
			})
			r := rand.New(rand.NewPCG(seed, 7))
			for i := range payouts {
				p := newPayout(fmt.Sprintf("out%d%04d", seed, i), 10+r.Int64N(1000), somebody)
				a := payUntilKnown(t, b, p, r, rounds)
				books := payoutBooks(b.sim, p)
				want := gatewaytest.PayoutBooks{}
				switch {
				case a.Status == gateway.PayoutPaid:
					want = gatewaytest.PayoutBooks{Taken: 1, Out: p.Amount}
				case a.Status == gateway.PayoutFailed:
					want = gatewaytest.PayoutBooks{Taken: 1}
				}
				if books != want {
					t.Errorf("%s: %s %s (%s, %v), and the books say %+v", p.ID, a.Outcome, a.Status, a.Code, a.Err, books)
				}
			}
		})
	}
}

// payUntilKnown does what the core does, while receiver and merchant decide.
func payUntilKnown(t *testing.T, b bench, p gateway.Payout, r *rand.Rand, rounds int) (a gateway.PayoutAnswer) {
	t.Helper()
	if a = pays(b).Payout(t.Context(), p); a.Outcome == gateway.Refused {
		return a // of the first call it is the truth
	}
	for range rounds {
		if a.Outcome == gateway.Done && a.Status != gateway.PayoutPending {
			return a
		}
		b.Advance(30 * time.Minute)
		switch r.IntN(10) {
		case 0, 1, 2:
			_ = b.sim.ConfirmTransfer(p.ID) // there may be nothing to confirm
		case 3:
			pays(b).RecallPayout(t.Context(), p)
		}
		if a = pays(b).QueryPayout(t.Context(), p); a.Outcome == gateway.Refused {
			if a = pays(b).Payout(t.Context(), p); a.Outcome == gateway.Refused {
				a.Outcome = gateway.Unknown // an earlier call may yet arrive
			}
		}
		if a.Ref != "" {
			p.Ref = a.Ref
		}
	}
	t.Errorf("%s: still %s %s (%v) after %d rounds", p.ID, a.Outcome, a.Status, a.Err, rounds)
	return a
}
