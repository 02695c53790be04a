package alipay_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
)

const somebody = "user_id:2088123412341234"

// openPayouts is a bench in the certificate mode of the sandbox, on whose dial
// faults stand.
func openPayouts(t *testing.T, faults alipaysim.Faults) bench {
	t.Helper()
	papers := alipaysim.DefaultCertificates()
	b := openWith(t, "precreate", alipaysim.Config{Certificates: papers}, func(o *alipay.Options) {
		o.PublicKey = ""
		o.Certificates = &alipay.Certificates{App: papers.App, Root: papers.Root, Alipay: []string{papers.Alipay}}
	})
	b.sim.SetFaults(faults)
	return b
}

func payoutHarness(b bench, faults alipaysim.Faults) gatewaytest.PayoutHarness {
	h := gatewaytest.PayoutHarness{
		Gateway: b.Gateway, Stranger: b.Stranger, Wire: b.Wire, Destination: somebody, Currency: "CNY", Amount: 1990,
		Unfit: []gateway.Payout{
			{Currency: "USD"}, {Amount: 9}, {Destination: "2088123412341234"}, {Destination: "user_id:2088"}, {Destination: "user_id:" + "20881234123412345"},
			{Destination: "logon_id:13800000000"}, {Destination: "logon_id:13800000000:"}, {Destination: "card:6222000000000000:张三"},
		},
		Now: b.Now, Advance: b.Advance,
		Short: func() {
			faults.BalanceShort = 1
			b.sim.SetFaults(faults)
		},
		Late:   func() { b.sim.Inject(alipaysim.Fault{Call: "transfer", Kind: alipaysim.LateRequest}) },
		Books:  func(p gateway.Payout) gatewaytest.PayoutBooks { return payoutBooks(b.sim, p) },
		Bounce: func(p gateway.Payout) error { return b.sim.ReturnTransfer(p.ID) },
		Notify: b.Notify,
		Lacks:  map[gatewaytest.Ability]string{gatewaytest.Recall: "there is no call that takes a transfer back"},
	}
	if faults.TransferPending == 0 {
		h.Lacks[gatewaytest.Pending] = "a transfer has arrived when it is answered, unless the dial is turned"
		return h
	}
	h.Pay = func(p gateway.Payout) error { return b.sim.SettleTransfer(p.ID) }
	h.Fail = func(p gateway.Payout) error { return b.sim.FailTransfer(p.ID) }
	return h
}

func payoutBooks(sim *alipaysim.Sim, p gateway.Payout) (b gatewaytest.PayoutBooks) {
	for _, t := range sim.Books().Transfers {
		if t.Number != p.ID {
			continue
		}
		b.Taken++
		if t.Status == "DEALING" || t.Status == "SUCCESS" {
			b.Out += t.Amount
		}
	}
	return b
}

func TestPayoutsKeepTheContract(t *testing.T) {
	for name, faults := range map[string]alipaysim.Faults{"at once": {}, "under way": {TransferPending: 1}} {
		t.Run(name, func(t *testing.T) {
			gatewaytest.RunPayouts(t, func(t *testing.T) gatewaytest.PayoutHarness {
				return payoutHarness(openPayouts(t, faults), faults)
			})
		})
	}
}

// Whatever goes wrong on the way, asking and sending again under the same number
// ends with what Alipay has in its own books, and no money leaves twice.
func TestSendingAgainThroughAStormPaysOnce(t *testing.T) {
	const seeds, payouts, rounds = 4, 12, 60
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := openPayouts(t, alipaysim.Faults{
				LostAnswer: 0.1, Unavailable: 0.05, SystemError: 0.1, Unsigned: 0.05, ForgedAnswer: 0.1, Recoded: 0.05, BalanceShort: 0.1,
				LostRequest: 0.1, LateTransfer: 0.1, TransferPending: 0.2, TransferFails: 0.2, TransferReturned: 0.2,
			})
			r := rand.New(rand.NewPCG(seed, 7))
			for i := range payouts {
				p := gateway.Payout{ID: fmt.Sprintf("out%d%04d", seed, i), Destination: somebody, Amount: 10 + r.Int64N(1000), Currency: "CNY", CreatedAt: b.Now()}
				a := payUntilKnown(t, b, p, rounds)
				b.Advance(4 * 24 * time.Hour) // what comes back has come back
				last := queryUntilKnown(t, b, p, rounds)
				wantSettled(t, b, p, a, last)
			}
		})
	}
}

// payUntilKnown does what the core does: ask, and send again what is not there.
func payUntilKnown(t *testing.T, b bench, p gateway.Payout, rounds int) (a gateway.PayoutAnswer) {
	pays := b.Gateway.(gateway.Payer)
	if a = pays.Payout(t.Context(), p); a.Outcome == gateway.Refused {
		return a // of the first call it is the truth
	}
	for range rounds {
		if a.Outcome == gateway.Done && a.Status != gateway.PayoutPending {
			return a
		}
		b.Advance(time.Minute)
		if a = pays.QueryPayout(t.Context(), p); a.Outcome == gateway.Refused {
			if a = pays.Payout(t.Context(), p); a.Outcome == gateway.Refused {
				a.Outcome = gateway.Unknown // an earlier call may yet arrive
			}
		}
	}
	t.Errorf("%s: still %s %s (%v) after %d rounds", p.ID, a.Outcome, a.Status, a.Err, rounds)
	return a
}

func queryUntilKnown(t *testing.T, b bench, p gateway.Payout, rounds int) (a gateway.PayoutAnswer) {
	for range rounds {
		if a = b.Gateway.(gateway.Payer).QueryPayout(t.Context(), p); a.Outcome != gateway.Unknown {
			return a
		}
	}
	return a
}

func wantSettled(t *testing.T, b bench, p gateway.Payout, a, last gateway.PayoutAnswer) {
	t.Helper()
	books := payoutBooks(b.sim, p)
	switch {
	case a.Outcome == gateway.Refused:
		if books != (gatewaytest.PayoutBooks{}) || last.Outcome != gateway.Refused {
			t.Errorf("%s: refused (%s), then %s %s, and the books say %+v", p.ID, a.Code, last.Outcome, last.Status, books)
		}
	case books.Taken != 1:
		t.Errorf("%s: it was taken on %d times", p.ID, books.Taken)
	case last.Status == gateway.PayoutPaid && books.Out != p.Amount, last.Status != gateway.PayoutPaid && books.Out != 0:
		t.Errorf("%s: %s, and the books say %+v", p.ID, last.Status, books)
	case a.Status == gateway.PayoutFailed && last.Status != gateway.PayoutFailed:
		t.Errorf("%s: failed, then %s", p.ID, last.Status)
	}
}

func TestWithoutCertificatesNothingIsPaidOut(t *testing.T) {
	b := open(t, "precreate")
	p := gateway.Payout{ID: "out0001", Destination: somebody, Amount: 1990, Currency: "CNY"}
	pays := b.Gateway.(gateway.Payer)
	if u := pays.CheckPayout(p); u == nil || u.Field != "gateway" {
		t.Errorf("check: got %+v, want fault found with the gateway", u)
	}
	if a := pays.Payout(t.Context(), p); a.Outcome != gateway.Refused {
		t.Errorf("payout: got %s, want refused", a.Outcome)
	}
}

func TestAReceiverIsNamedInOneOfThreeWays(t *testing.T) {
	b := openPayouts(t, alipaysim.Faults{})
	for i, to := range []string{
		somebody, somebody + ":张三", "open_id:074a1CcTG1LelxKe4xQC0zgNdId0nxi95b5lsNpazWYoCo5", "logon_id:13800000000:张三", "logon_id:zhang@example.com:张:三",
	} {
		p := gateway.Payout{ID: fmt.Sprintf("out%04d", i), Destination: to, Amount: 10, Currency: "CNY"}
		if a := b.Gateway.(gateway.Payer).Payout(t.Context(), p); a.Status != gateway.PayoutPaid {
			t.Errorf("%s: got %s %s (%s, %v), want paid", to, a.Outcome, a.Status, a.Code, a.Err)
		}
	}
}

func TestAReceiverWhoCannotBePaidIsARefusal(t *testing.T) {
	b := openPayouts(t, alipaysim.Faults{})
	for to, want := range map[string]string{
		"user_id:" + alipaysim.UnknownUserID:                      "PAYEE_NOT_EXIST",
		"logon_id:13800000000:" + alipaysim.WrongName:             "PAYEE_USER_INFO_ERROR",
		"user_id:" + alipaysim.DefaultSellerID:                    "PAYER_PAYEE_CANNOT_SAME",
		"logon_id:" + alipaysim.UnknownLogonID + ":" + "Somebody": "PAYEE_NOT_EXIST",
	} {
		p := gateway.Payout{ID: "out0001", Destination: to, Amount: 10, Currency: "CNY"}
		if a := b.Gateway.(gateway.Payer).Payout(t.Context(), p); a.Outcome != gateway.Refused || a.Code != want {
			t.Errorf("%s: got %s %s (%v), want refused %s", to, a.Outcome, a.Code, a.Err, want)
		}
	}
}

func TestANumberThatIsUsedForSomethingElseIsNoRefusal(t *testing.T) {
	b := openPayouts(t, alipaysim.Faults{})
	p := gateway.Payout{ID: "out0001", Destination: somebody, Amount: 100, Currency: "CNY"}
	pays := b.Gateway.(gateway.Payer)
	if a := pays.Payout(t.Context(), p); a.Status != gateway.PayoutPaid {
		t.Fatalf("got %s %s", a.Outcome, a.Status)
	}
	p.Amount = 200
	for _, a := range []gateway.PayoutAnswer{pays.Payout(t.Context(), p), pays.QueryPayout(t.Context(), p)} {
		if a.Outcome != gateway.Unknown {
			t.Errorf("got %s %s, want unknown", a.Outcome, a.Status)
		}
	}
	if got := payoutBooks(b.sim, p); got.Out != 100 {
		t.Errorf("got %+v, want the first alone", got)
	}
}
