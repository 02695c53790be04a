package stripe_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestTransfersKeepTheContract(t *testing.T) {
	gatewaytest.RunPayouts(t, func(t *testing.T) gatewaytest.PayoutHarness { return openPayouts(t, "acct_1Seller").PayoutHarness })
}

func TestBankPayoutsKeepTheContract(t *testing.T) {
	for _, destination := range []string{"bank", "ba_1OwnBank"} {
		t.Run(destination, func(t *testing.T) {
			gatewaytest.RunPayouts(t, func(t *testing.T) gatewaytest.PayoutHarness { return openPayouts(t, destination).PayoutHarness })
		})
	}
}

// payoutBench is a bench whose simulator has money to send.
type payoutBench struct {
	gatewaytest.PayoutHarness
	payer gateway.Payer
	sim   *stripesim.Sim
}

func openPayouts(t *testing.T, destination string) payoutBench {
	t.Helper()
	b := open(t, "intent")
	const amount = 2500
	if err := b.sim.TopUp(10*amount, "eur"); err != nil {
		t.Fatal(err)
	}
	h := gatewaytest.PayoutHarness{
		Gateway: b.Gateway, Stranger: b.Stranger, Wire: b.Wire, Destination: destination, Currency: "EUR", Amount: amount,
		Unfit: []gateway.Payout{{Currency: "UGX"}, {Destination: "acct_"}, {Destination: "acct_1/../x"}, {Destination: "bob"}, {Destination: "ba_1 "}},
		Now:   b.Now, Advance: b.Advance, Notify: b.Notify,
		Short: func() { spend(t, b.sim) },
		Late:  func() { b.sim.Inject(stripesim.Fault{Kind: stripesim.LateCall}) },
		Books: func(p gateway.Payout) gatewaytest.PayoutBooks { return payoutBooks(b.sim, p) },
	}
	if strings.HasPrefix(destination, "acct_") {
		h.Bounce = func(p gateway.Payout) error { return b.sim.ReverseTransfer(p.Ref) }
		h.Lacks = map[gatewaytest.Ability]string{
			gatewaytest.Pending: "a transfer has happened when it was made",
			gatewaytest.Recall:  "a transfer has happened when it was made",
		}
	} else {
		h.Pay = func(p gateway.Payout) error { return b.sim.PayPayout(p.Ref) }
		h.Fail = func(p gateway.Payout) error { return b.sim.FailPayout(p.Ref) }
		h.Bounce = h.Fail
	}
	return payoutBench{h, b.Gateway.(gateway.Payer), b.sim}
}

// spend leaves the simulator without a cent.
func spend(t *testing.T, sim *stripesim.Sim) {
	t.Helper()
	sim.Inject(stripesim.Fault{Kind: stripesim.BalanceShort})
}

func payoutBooks(sim *stripesim.Sim, p gateway.Payout) (b gatewaytest.PayoutBooks) {
	books := sim.Books()
	for _, x := range books.Transfers {
		if x.Metadata["payout_id"] == p.ID {
			b.Taken++
			b.Out += x.Amount - x.Reversed
		}
	}
	for _, x := range books.Payouts {
		if x.Metadata["payout_id"] == p.ID {
			b.Taken++
			if x.Status != "failed" && x.Status != "canceled" {
				b.Out += x.Amount
			}
		}
	}
	return b
}

func (b payoutBench) payout(id string) gateway.Payout {
	return gateway.Payout{ID: id, Destination: b.Destination, Amount: b.Amount, Currency: b.Currency, CreatedAt: b.Now()}
}

// What an account may not receive is said at once, and for good.
func TestADestinationThatStripeRefusesIsFinal(t *testing.T) {
	for _, to := range []string{"acct_missing", "acct_restricted1", "ba_missing"} {
		b := openPayouts(t, to)
		for range 2 { // the second is what Stripe keeps under the key
			if a := b.payer.Payout(t.Context(), b.payout("out1")); a.Outcome != gateway.Refused || a.Code == "" {
				t.Errorf("%s: got %s %q (%v), want refused", to, a.Outcome, a.Code, a.Err)
			}
		}
	}
}

// Stripe replays its own failure under a key for a day. A payout does not take
// another key then: nothing would tell the two apart.
func TestAFailureOfStripesOwnIsUnknownUnderOneKey(t *testing.T) {
	for kind, taken := range map[stripesim.Kind]int{stripesim.Stored500: 0, stripesim.Stored500AfterEffect: 1} {
		b := openPayouts(t, "acct_1Seller")
		b.sim.Inject(stripesim.Fault{Kind: kind})
		p := b.payout("out1")
		for range 3 {
			if a := b.payer.Payout(t.Context(), p); a.Outcome != gateway.Unknown {
				t.Errorf("%s: got %s, want unknown", kind, a.Outcome)
			}
		}
		if got := b.Books(p).Taken; got != taken {
			t.Errorf("%s: taken on %d times, want %d", kind, got, taken)
		}
		want := map[int]gateway.Outcome{0: gateway.Refused, 1: gateway.Done}[taken]
		if a := b.payer.QueryPayout(t.Context(), p); a.Outcome != want {
			t.Errorf("%s: query: got %s (%v), want %s", kind, a.Outcome, a.Err, want)
		}
	}
}

// A key that Stripe has forgotten pays again: after 23 hours nothing is sent.
func TestNothingIsSentUnderAKeyThatMayBeForgotten(t *testing.T) {
	for _, to := range []string{"acct_1Seller", "bank"} {
		b := openPayouts(t, to)
		p := b.payout("out1")
		b.Wire.Once(gatewaytest.CallPayout, gatewaytest.Unreachable)
		b.payer.Payout(t.Context(), p)
		b.Advance(23 * time.Hour)
		if a := b.payer.Payout(t.Context(), p); a.Outcome != gateway.Unknown || a.Code != "key_too_old" {
			t.Errorf("%s: got %s %q, want it unknown, for its age", to, a.Outcome, a.Code)
		}
		p.CreatedAt = time.Time{}
		if a := b.payer.Payout(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s, of an unknown age: got %s, want unknown", to, a.Outcome)
		}
		if got := b.Books(p).Taken; got != 0 {
			t.Errorf("%s: it was sent %d times", to, got)
		}
	}
}

// What carries our number, and is of another amount, is not our payout.
func TestAnObjectOfAnotherAmountIsNotBelieved(t *testing.T) {
	for _, to := range []string{"acct_1Seller", "bank"} {
		b := openPayouts(t, to)
		p := b.payout("out1")
		p.Ref = b.payer.Payout(t.Context(), p).Ref
		for _, other := range []gateway.Payout{
			{ID: "out2", Amount: p.Amount, Currency: "EUR"}, {ID: p.ID, Amount: p.Amount + 1, Currency: "EUR"}, {ID: p.ID, Amount: p.Amount, Currency: "USD"},
		} {
			other.Ref, other.Destination = p.Ref, to
			if a := b.payer.QueryPayout(t.Context(), other); a.Outcome != gateway.Unknown {
				t.Errorf("%s: %+v: got %s, want unknown", to, other, a.Outcome)
			}
		}
	}
}

// Part of a transfer came back: it is still paid, and the notification says how
// much it is about.
func TestATransferReversedInPartIsPaidAndTold(t *testing.T) {
	b := openPayouts(t, "acct_1Seller")
	p := b.payout("out1")
	p.Ref = b.payer.Payout(t.Context(), p).Ref
	b.Notify(true)
	req := httptest.NewRequest(http.MethodPost, "/v1/transfers/"+p.Ref+"/reversals", strings.NewReader("amount=700"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(stripesim.DefaultSecretKey, "")
	res := httptest.NewRecorder()
	if b.sim.ServeHTTP(res, req); res.Code != http.StatusOK {
		t.Fatalf("reverse: %d %s", res.Code, res.Body)
	}
	if a := b.payer.QueryPayout(t.Context(), p); a.Status != gateway.PayoutPaid || a.Code != "partly_reversed" {
		t.Errorf("got %s %q, want paid, and that part came back", a.Status, a.Code)
	}
	for _, d := range b.Notify(true) {
		n, err := b.Gateway.Parse(d.Header, d.Body, b.Now())
		if err != nil || n.PaidOut != gateway.PayoutReturned || n.Amount != 700 {
			t.Errorf("got %+v, %v; want 700 back", n, err)
		}
	}
}

// What Stripe pays out to our bank by itself, or people do there, is nothing here.
func TestAPayoutThatIsNotOursIsIgnored(t *testing.T) {
	b := openPayouts(t, "bank")
	for kind, object := range map[string]string{
		"payout.paid":       `{"id":"po_1","object":"payout","status":"paid","amount":5,"currency":"eur","metadata":{}}`,
		"transfer.reversed": `{"id":"tr_1","object":"transfer","amount":5,"amount_reversed":5,"currency":"eur","metadata":null}`,
	} {
		body := []byte(`{"id":"evt_1","type":"` + kind + `","data":{"object":` + object + `}}`)
		if n, err := b.Gateway.Parse(signed(body, b.Now()), body, b.Now()); err != nil || !n.Ignored {
			t.Errorf("%s: got %+v, %v; want it ignored", kind, n, err)
		}
	}
	body := []byte(`{"id":"evt_1","type":"payout.paid","data":{"object":{"id":"po_1","status":"lost","amount":5,"currency":"eur","metadata":{}}}}`)
	if _, err := b.Gateway.Parse(signed(body, b.Now()), body, b.Now()); !errors.Is(err, gateway.ErrMalformed) {
		t.Errorf("an unknown status: got %v, want %v", err, gateway.ErrMalformed)
	}
}

func signed(body []byte, at time.Time) http.Header {
	return http.Header{"Stripe-Signature": {sign(webhookSecret, string(body), at)}}
}

// What a payout leaves on the balance has our number, a reversal's by way of its
// transfer.
func TestTheStatementNamesOurPayouts(t *testing.T) {
	b := openPayouts(t, "acct_1Seller")
	tr := b.payout("out1")
	tr.Ref = b.payer.Payout(t.Context(), tr).Ref
	po := b.payout("out2")
	po.Destination = "bank"
	po.Ref = b.payer.Payout(t.Context(), po).Ref
	if err := errors.Join(b.sim.ReverseTransfer(tr.Ref), b.sim.FailPayout(po.Ref)); err != nil {
		t.Fatal(err)
	}
	statements := b.Gateway.(gateway.Statements)
	file, err := statements.FetchStatement(t.Context(), b.Now().Truncate(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := statements.ReadStatement(file)
	got := map[string]int64{}
	for _, l := range lines {
		got[string(l.Kind)+" "+l.Number] += l.Amount
	}
	want := map[string]int64{"payout out1": -2500, "payout_returned out1": 2500, "payout out2": -2500, "payout_returned out2": 2500, "other ": 25_000}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
