package stripe_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// Whatever goes wrong on the way, asking again under the same number ends with
// what the gateway has in its own books, and no money moves twice.
func TestAskingAgainThroughAStormEndsWithTheTruth(t *testing.T) {
	const seeds, asks = 3, 60
	for _, method := range []string{"checkout", "intent"} {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("%s/%d", method, seed), func(t *testing.T) {
				b := open(t, method)
				b.sim.SetFaults(stripesim.Faults{
					LostAnswer: 0.2, Stored500: 0.1, Unavailable: 0.1, RateLimited: 0.1, KeyInUse: 0.1,
					PaidBeforeClose: 0.3, RefundPending: 0.3,
				})
				r := rand.New(rand.NewPCG(seed, 7))
				for i := range 6 {
					storm(t, b, r, b.payment(fmt.Sprintf("pay%d%d", seed, i)), asks)
				}
			})
		}
	}
}

func storm(t *testing.T, b bench, r *rand.Rand, p gateway.Payment, asks int) {
	for range r.IntN(5) {
		if a := b.Gateway.Create(t.Context(), p); a.Outcome == gateway.Done {
			p.Ref = a.Ref
		}
	}
	if p.Ref != "" && r.IntN(2) == 0 && b.Pay(p) != nil {
		t.Fatal("an open payment cannot be paid")
	}
	closed := b.closeUntilKnown(t, p, asks)
	books := b.Books(p)
	switch {
	case closed.Outcome != gateway.Done:
		t.Errorf("%s: close: still %s (%v) after %d times", p.ID, closed.Outcome, closed.Err, asks)
	case closed.Status == gateway.Closed && books.Captured != 0:
		t.Errorf("%s: closed, and %d captured", p.ID, books.Captured)
	case closed.Status == gateway.Paid && (books.Payments != 1 || books.Captured != p.Amount):
		t.Errorf("%s: paid, and the books say %+v", p.ID, books)
	}
	if p.Ref = closed.Ref; closed.Status != gateway.Paid {
		if p.Ref != "" && b.Pay(p) == nil {
			t.Errorf("%s: the buyer paid what was closed", p.ID)
		}
		return
	}
	refund := b.refund(p, "r"+p.ID, 1+r.Int64N(p.Amount))
	wantRefunded(t, b, refund, b.refundUntilKnown(t, refund, asks))
}

func wantRefunded(t *testing.T, b bench, refund gateway.Refund, a gateway.RefundAnswer) {
	t.Helper()
	got := b.Books(refund.Payment).Refunded
	switch {
	case a.Outcome == gateway.Refused:
		t.Errorf("%s: refused (%s)", refund.ID, a.Code)
	case a.Outcome == gateway.Done && (a.Amount != refund.Amount || got != refund.Amount):
		t.Errorf("%s: %d refunded, the books say %d, want %d", refund.ID, a.Amount, got, refund.Amount)
	case a.Outcome == gateway.Unknown && got != 0:
		t.Errorf("%s: unknown (%v), and %d refunded", refund.ID, a.Err, got)
	}
}

func (b bench) closeUntilKnown(t *testing.T, p gateway.Payment, asks int) (a gateway.Answer) {
	for range asks {
		b.Advance(time.Second)
		if a = b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown {
			return a
		}
	}
	return a
}

func (b bench) refundUntilKnown(t *testing.T, r gateway.Refund, asks int) (a gateway.RefundAnswer) {
	for range asks {
		b.Advance(time.Second)
		if a = b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			return a
		}
	}
	return a
}
