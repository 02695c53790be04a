package flow

import (
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

// TotalOverflow is the code of an order whose price is no amount.
const TotalOverflow = "total_overflow"

// Place makes a new order that holds its stock, and the customer's allowance
// where a line has a limit. o has ID, Currency, Lines (one per SKU), Splits (one
// per account) and times, and Customer if a line has a limit; Place computes the
// rest.
func Place(o Order) (Change, *Refusal) {
	for _, l := range o.Lines {
		if l.Quantity > ledger.MaxAmount/l.Price {
			return Change{}, &Refusal{TotalOverflow, fmt.Sprintf("%s: %d pieces at %d", l.SKU, l.Quantity, l.Price)}
		}
		if o.Total += l.Quantity * l.Price; o.Total > ledger.MaxAmount {
			return Change{}, &Refusal{TotalOverflow, "the order's total is too large"}
		}
	}
	if refusal := o.checkSplits(); refusal != nil {
		return Change{}, refusal
	}
	w := &work{Change: Change{Case: Case{Order: o}, dirty: map[string]bool{}}}
	w.Case.Order.State = Held
	w.touchOrder()
	for i, l := range o.Lines {
		w.op(ledger.Reserve(HoldID(o.ID, i), ledger.Posting{
			From: Stock, To: Sold, Asset: Pieces(l.SKU), Amount: l.Quantity,
		}, int64(o.ExpiresAt), int64(o.CapAt)))
	}
	for i, l := range o.Lines {
		if l.PerCustomer > 0 {
			w.op(ledger.Reserve(AllowanceID(o.ID, i), ledger.Posting{
				From: Allowance(o.Customer), To: Used(o.Customer), Asset: Limit(l.Sale), Amount: l.Quantity,
			}, int64(o.ExpiresAt), int64(o.CapAt)))
		}
	}
	w.publish("order.held", nil)
	return w.Change, nil
}
