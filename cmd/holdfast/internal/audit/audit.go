// Package audit recomputes from the ledger's journal, and from the gateways'
// own books, whether the promises were kept: nothing sold twice, nothing lost,
// nobody charged twice, nobody's money without goods, nothing left undone.
//
// It trusts no counter: neither those of whoever made the load, nor the states
// that the product shows, where the postings can tell.
package audit

import (
	"context"
	"fmt"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// maxProblems is how many problems are put into words; all are counted.
const maxProblems = 20

// Verdict is what came out. Goods are pieces, the rest are orders, if nothing
// else is said.
type Verdict struct {
	// Sold is what moved to sold, less what was put back on sale.
	Sold int64
	// Oversold is what was sold or is held beyond what was received and
	// promised, over all SKUs.
	Oversold int64
	// Undersold is what was received and is neither sold, nor held, nor
	// available, nor written off; and what is still available though a buyer
	// who would have paid for it got none.
	Undersold int64
	// DoubleCharged has more money at the gateway, after refunds, than its
	// goods cost.
	DoubleCharged int64
	// PaidWithoutGoods has money at the gateway, after refunds, for goods that
	// did not move.
	PaidWithoutGoods int64
	// Refunded has had money that bought nothing sent back by the gateway.
	Refunded int64
	// Stuck counts orders, payments, refunds and tasks that still wait for
	// something, and balances due to a buyer that are not zero.
	Stuck int64
	// Disagreements counts where the journal and the gateway's books differ in
	// any other way.
	Disagreements int64
	// Problems says what was found, in words.
	Problems []string
}

// OK says that every promise was kept.
func (v Verdict) OK() bool {
	return v.Oversold|v.Undersold|v.DoubleCharged|v.PaidWithoutGoods|v.Stuck|v.Disagreements == 0
}

func (v *Verdict) found(n *int64, by int64, format string, args ...any) {
	*n += by
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

// Willing are the customers who would pay for one piece of a SKU as long as
// there is one, by SKU.
type Willing map[string][]string

// Books are what the gateways say that they took, by gateway. One that took
// nothing must be in it too, or its clearing account is not looked at.
type Books map[string][]Charge

// Charge is one payment in a gateway's books. Amounts are minor units of
// Currency.
type Charge struct {
	Order    string // whose money it is
	Currency string // ISO 4217, upper case
	Captured int64
	Refunded int64 // of it, what has reached the buyer
}

// Check reads one moment of the ledger and holds it against the books of all
// gateways, which must be at rest. willing may be nil.
func Check(ctx context.Context, store ledger.Reader, books Books, willing Willing) (Verdict, error) {
	var v Verdict
	err := store.Snapshot(ctx, func(r ledger.Reader) error {
		b, err := readBooks(ctx, r, books)
		if err != nil {
			return err
		}
		v.goods(b, willing)
		v.money(b, books)
		v.rest(b)
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("audit: %w", err)
	}
	return v, nil
}

func (v *Verdict) goods(b *journal, willing Willing) {
	bought := map[string]bool{}
	for _, o := range b.orders {
		if b.delivered(o) {
			bought[o.Customer] = true
		}
	}
	for sku, s := range b.stock {
		v.Sold += s.sold
		if n := s.sold + s.held - s.received - s.promised; n > 0 {
			v.found(&v.Oversold, n, "%s: %d sold and %d held of %d received", sku, s.sold, s.held, s.received)
		}
		if n := s.received - s.lost - s.soldFromStock - s.posted; n > 0 {
			v.found(&v.Undersold, n, "%s: %d pieces are nowhere", sku, n)
		}
		var unserved int64
		for _, customer := range willing[sku] {
			if !bought[customer] {
				unserved++
			}
		}
		if n := min(s.posted-s.held, unserved); n > 0 {
			v.found(&v.Undersold, n, "%s: %d pieces are left, and %d buyers want one", sku, s.posted-s.held, unserved)
		}
	}
}

// money holds every order against what all gateways say that they took for it.
func (v *Verdict) money(b *journal, books Books) {
	net, back := map[string]int64{}, map[string]int64{}
	there := map[purse]int64{}
	for gateway, charges := range books {
		for _, c := range charges {
			net[c.Order] += c.Captured - c.Refunded
			back[c.Order] += c.Refunded
			there[purse{gateway, c.Currency}] += c.Captured - c.Refunded
		}
	}
	for _, o := range b.orders {
		v.order(b, o, net[o.ID], back[o.ID])
		delete(net, o.ID)
	}
	for id, amount := range net {
		if amount != 0 {
			v.found(&v.PaidWithoutGoods, 1, "the gateways have %d for order %q, which there is not", amount, id)
		}
	}
	for p, amount := range b.clearing {
		if booked := -amount; booked != there[p] {
			v.found(&v.Disagreements, 1, "the clearing account says %d %s, %s %d", booked, p.currency, p.gateway, there[p])
		}
		delete(there, p)
	}
	for p, amount := range there {
		if amount != 0 {
			v.found(&v.Disagreements, 1, "%s has %d %s, the clearing account nothing", p.gateway, amount, p.currency)
		}
	}
}

func (v *Verdict) order(b *journal, o flow.Order, net, back int64) {
	delivered, owed := b.delivered(o), o.Paid-o.Refunded
	switch {
	case net > 0 && !delivered:
		v.found(&v.PaidWithoutGoods, 1, "order %s is %s, the gateways have %d for it, and no goods moved", o.ID, o.State, net)
	case net > owed, net > o.Total:
		v.found(&v.DoubleCharged, 1, "order %s cost %d, %d of it refunded; the gateways have %d for it", o.ID, o.Paid, o.Refunded, net)
	case net < owed:
		v.found(&v.Disagreements, 1, "order %s says %d were paid and %d refunded; the gateways have %d", o.ID, o.Paid, o.Refunded, net)
	case delivered && o.PaidAt == 0:
		v.found(&v.Disagreements, 1, "order %s is %s, and its goods moved", o.ID, o.State)
	}
	if back > o.Refunded {
		v.Refunded++
	}
}

// rest counts what is not at rest.
func (v *Verdict) rest(b *journal) {
	for _, w := range b.waiting {
		v.found(&v.Stuck, 1, "%s", w)
	}
	for _, r := range b.due {
		v.found(&v.Stuck, 1, "%d %s are due to the buyer on %s", r.Posted, r.Asset, r.Account)
	}
	for _, h := range b.held {
		v.found(&v.Stuck, 1, "hold %s still holds %d %s", h.ID, h.Left(), h.Asset)
	}
}
