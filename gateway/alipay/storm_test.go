package alipay_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

var seeds = flag.Uint64("storm.seeds", 1, "how many storms of each method")

// Whatever goes wrong on the way, asking again under the same number ends with
// what the gateway has in its own books, and no money moves twice.
func TestAskingAgainThroughAStormEndsWithTheTruth(t *testing.T) {
	const asks = 60
	for _, method := range []string{"page", "precreate"} { // the others differ in a name
		for seed := range *seeds {
			t.Run(fmt.Sprintf("%s/%d", method, seed), func(t *testing.T) {
				b := open(t, method)
				b.sim.SetFaults(alipaysim.Faults{
					LostAnswer: 0.15, Unavailable: 0.1, SystemError: 0.1, Unsigned: 0.1, ForgedAnswer: 0.15, Recoded: 0.1,
					PaidBeforeClose: 0.3, RefundLag: 10 * time.Second,
				})
				r := rand.New(rand.NewPCG(seed, 7))
				for i := range 5 {
					storm(t, b, r, b.payment(fmt.Sprintf("pay%d%d", seed, i)), asks)
				}
			})
		}
	}
}

func storm(t *testing.T, b bench, r *rand.Rand, p gateway.Payment, asks int) {
	for range 1 + r.IntN(5) {
		if a := b.Gateway.Create(t.Context(), p); a.Outcome == gateway.Done {
			p.Ref = a.Ref
		}
	}
	switch buyer := r.IntN(3); {
	case p.Ref == "" || buyer == 0: // nobody comes
	case buyer == 1:
		if err := b.Visit(p); err != nil {
			t.Fatal(err)
		}
	default:
		if err := b.Pay(p); err != nil {
			t.Fatalf("an open payment cannot be paid: %v", err)
		}
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
		if b.Pay(p) == nil {
			t.Errorf("%s: the buyer paid what was closed", p.ID)
		}
		return
	}
	refund := b.refund(p, "r"+p.ID, 1+r.Int64N(p.Amount))
	wantRefunded(t, b, refund, b.refundUntilKnown(t, refund, asks))
}

func wantRefunded(t *testing.T, b bench, refund gateway.Refund, a gateway.RefundAnswer) {
	t.Helper()
	if got := b.Books(refund.Payment).Refunded; a.Outcome != gateway.Done || a.Amount != refund.Amount || got != refund.Amount {
		t.Errorf("%s: got %s (%v), %d refunded, the books say %d, want %d", refund.ID, a.Outcome, a.Err, a.Amount, got, refund.Amount)
	}
}

// closeUntilKnown asks for longer than any payment can still be paid.
func (b bench) closeUntilKnown(t *testing.T, p gateway.Payment, asks int) (a gateway.Answer) {
	for range asks {
		b.Advance(30 * time.Second)
		if a = b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown {
			return a
		}
	}
	return a
}

func (b bench) refundUntilKnown(t *testing.T, r gateway.Refund, asks int) (a gateway.RefundAnswer) {
	for range asks {
		b.Advance(5 * time.Second)
		if a = b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			return a
		}
	}
	return a
}
