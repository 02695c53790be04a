// Package audit recomputes from the ledger's journal, and from the gateway's
// own books, whether the promises were kept: nothing sold twice, nothing lost,
// nobody charged twice, nobody's money without goods, nothing left undone.
//
// It trusts no counter: neither those of whoever made the load, nor the states
// that the product shows, where the postings can tell.
package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
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

// Check reads one moment of the ledger and holds it against the books of the
// one gateway, which must be at rest. willing may be nil.
func Check(ctx context.Context, store ledger.Reader, books stripesim.Books, willing Willing) (Verdict, error) {
	var v Verdict
	err := store.Snapshot(ctx, func(r ledger.Reader) error {
		b, err := readBooks(ctx, r)
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

// money holds every order against what the gateway says that it took for it.
func (v *Verdict) money(b *journal, books stripesim.Books) {
	net, back := map[string]int64{}, map[string]int64{}
	atGateway := map[string]int64{}
	for _, p := range books.Payments {
		id := p.Metadata["order_id"]
		net[id] += p.Captured - p.Refunded
		back[id] += p.Refunded
		atGateway[strings.ToUpper(p.Currency)] += p.Captured - p.Refunded
	}
	for _, o := range b.orders {
		v.order(b, o, net[o.ID], back[o.ID])
		delete(net, o.ID)
	}
	for id, amount := range net {
		if amount != 0 {
			v.found(&v.PaidWithoutGoods, 1, "the gateway has %d for order %q, which there is not", amount, id)
		}
	}
	for currency, amount := range b.clearing {
		if booked := -amount; booked != atGateway[currency] {
			v.found(&v.Disagreements, 1, "the clearing account says %d %s, the gateway %d", booked, currency, atGateway[currency])
		}
		delete(atGateway, currency)
	}
	for currency, amount := range atGateway {
		if amount != 0 {
			v.found(&v.Disagreements, 1, "the gateway has %d %s, the clearing account nothing", amount, currency)
		}
	}
}

func (v *Verdict) order(b *journal, o flow.Order, net, back int64) {
	delivered, owed := b.delivered(o), o.Paid-o.Refunded
	switch {
	case net > 0 && !delivered:
		v.found(&v.PaidWithoutGoods, 1, "order %s is %s, the gateway has %d for it, and no goods moved", o.ID, o.State, net)
	case net > owed, net > o.Total:
		v.found(&v.DoubleCharged, 1, "order %s cost %d, %d of it refunded; the gateway has %d for it", o.ID, o.Paid, o.Refunded, net)
	case net < owed:
		v.found(&v.Disagreements, 1, "order %s says %d were paid and %d refunded; the gateway has %d", o.ID, o.Paid, o.Refunded, net)
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
