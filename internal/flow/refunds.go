package flow

import (
	"fmt"
	"slices"

	"github.com/holdfast-pay/holdfast/ledger"
)

// refundRows is the machine of one repayment. Its money waits on the account
// refunds-due/<order> from the moment it is asked for until it is gone.
var refundRows = []row{
	{RefundRequested, RefundTaken, RefundAccepted, nil, waitForRefund},
	{RefundRequested, RefundMade, RefundDone, nil, moneyIsBack},
	{RefundRequested, RefundDenied, RefundRefused, nil, moneyDidNotMove},
	{RefundRequested, RefundBroke, RefundFailed, nil, moneyDidNotMove},

	{RefundAccepted, RefundTaken, RefundAccepted, saysMore, waitForRefund},
	{RefundAccepted, RefundMade, RefundDone, nil, moneyIsBack},
	{RefundAccepted, RefundBroke, RefundFailed, nil, moneyDidNotMove},

	{RefundDone, RefundBroke, RefundFailed, nil, moneyCameBack},
}

func (w *work) keepRefund() {
	if w.ev.Ref != "" {
		w.refund.Ref = w.ev.Ref
	}
	if w.ev.Code != "" {
		w.refund.Code = w.ev.Code
	}
	w.touchRefund()
}

// tellOrder passes the news on, unless the refund is of surplus money, which
// never was the order's.
func (w *work) tellOrder(on On) *Refusal {
	if w.refund.Late && w.Case.Order.PaidAt != 0 {
		return nil
	}
	return w.stepOrder(on)
}

// saysMore lets people see why a refund takes so long.
var saysMore = &guard{"the gateway has a new word for it", func(w *work) bool {
	return w.ev.Code != "" && w.ev.Code != w.refund.Code
}}

var waitForRefund = action{"ask now and then", func(w *work) *Refusal {
	w.keepRefund()
	w.task(w.refund.ID, w.payment.Gateway, DoLook, w.now.Add(w.ev.Poll))
	return nil
}}

var moneyIsBack = action{"the money leaves the clearing account", func(w *work) *Refusal {
	w.keepRefund()
	w.task(w.refund.ID, w.payment.Gateway, DoNone, 0)
	w.move(RefundsDue(w.Case.Order.ID), Clearing(w.payment.Gateway), ledger.Asset(w.refund.Currency), w.refund.Amount)
	return w.tellOrder(moneyBack)
}}

var moneyDidNotMove = action{"", func(w *work) *Refusal {
	w.keepRefund()
	w.task(w.refund.ID, w.payment.Gateway, DoNone, 0)
	return w.tellOrder(moneyStays)
}}

var moneyCameBack = action{"the money is on the clearing account again", func(w *work) *Refusal {
	w.keepRefund()
	w.move(Clearing(w.payment.Gateway), RefundsDue(w.Case.Order.ID), ledger.Asset(w.refund.Currency), w.refund.Amount)
	return w.tellOrder(moneyAgain)
}}

// startRefund stores the refund, with its own number, before any call.
var startRefund = action{"set the money aside, taken back from each who got of it; ask the gateway to repay it", func(w *work) *Refusal {
	o := &w.Case.Order
	left := o.Paid - o.Refunded - o.Refunding
	amount := w.ev.Amount
	if amount == 0 {
		amount = left
	}
	if o.Refunds >= MaxRefunds {
		return &Refusal{ExceedsCapture, "no further refunds"}
	}
	if amount > left || amount < 1 {
		return &Refusal{ExceedsCapture, fmt.Sprintf("%d of %d can still be refunded", left, o.Paid)}
	}
	if refusal := w.checkRestock(); refusal != nil {
		return refusal
	}
	w.payment = w.findPayment(o.Payment)
	w.newRefund(amount, false)
	w.refund.Splits = w.takeBack(amount)
	o.Refunding += amount
	return nil
}}

// checkRestock bounds what goes back on sale by what was sold, over all
// refunds, done and under way.
func (w *work) checkRestock() *Refusal {
	for i, r := range w.ev.Restock {
		again := slices.ContainsFunc(w.ev.Restock[:i], func(o Restock) bool { return o.SKU == r.SKU })
		n := slices.IndexFunc(w.Case.Order.Lines, func(l Line) bool { return l.SKU == r.SKU })
		if n < 0 || again || r.Quantity < 1 {
			return &Refusal{ExceedsSold, fmt.Sprintf("%s: not a line of the order, twice, or no pieces", r.SKU)}
		}
		left := w.Case.Order.Lines[n].Quantity - w.Case.Order.Lines[n].Restocked
		for _, f := range w.Case.Refunds {
			for _, u := range f.Restock {
				if u.SKU == r.SKU && (f.State == RefundRequested || f.State == RefundAccepted) {
					left -= u.Quantity
				}
			}
		}
		if r.Quantity > left {
			return &Refusal{ExceedsSold, fmt.Sprintf("%s: %d pieces can still be put back", r.SKU, left)}
		}
	}
	return nil
}

// newRefund needs w.payment. It stores the refund before anyone is asked.
func (w *work) newRefund(amount int64, late bool) {
	o := &w.Case.Order
	o.Refunds++
	w.touchOrder()
	w.Case.Refunds = append(w.Case.Refunds, Refund{
		ID: RefundID(o.ID, o.Refunds), Order: o.ID, Payment: w.payment.ID, State: RefundRequested,
		Amount: amount, Currency: w.payment.Currency, Reason: w.ev.Reason, Restock: w.ev.Restock, Late: late, CreatedAt: w.now,
	})
	w.refund = &w.Case.Refunds[len(w.Case.Refunds)-1]
	w.touchRefund()
	w.task(w.refund.ID, w.payment.Gateway, DoRefund, w.now)
	w.publish("refund.requested", map[string]any{"refund": w.refund.ID, "amount": amount})
}

// repayAll gives back money that came too late for the goods.
var repayAll = action{"book the money as due to the buyer; ask the gateway to repay it", func(w *work) *Refusal {
	w.Case.Order.Payment = w.payment.ID
	w.repayLate()
	return nil
}}

// repaySurplus gives back money that came a second time.
var repaySurplus = action{"book the money as due to the buyer; ask the gateway to repay it", func(w *work) *Refusal {
	w.payment.Surplus = true
	w.repayLate()
	return nil
}}

func (w *work) repayLate() {
	w.move(Clearing(w.payment.Gateway), RefundsDue(w.Case.Order.ID), ledger.Asset(w.payment.Currency), w.payment.Amount)
	w.ev.Reason, w.ev.Restock = "the money came too late or twice", nil
	w.newRefund(w.payment.Amount, true)
}

// repayAgain is a person's second try after the gateway refused the first.
var repayAgain = action{"ask the gateway again, under a new number", func(w *work) *Refusal {
	last := w.unpaid()
	if last == nil {
		return &Refusal{InvalidState, "the refund is under way"}
	}
	if w.ev.Amount != 0 && w.ev.Amount != last.Amount {
		return &Refusal{ExceedsCapture, fmt.Sprintf("%d is due to the buyer", last.Amount)}
	}
	w.payment = w.findPayment(last.Payment)
	w.ev.Restock = nil
	w.newRefund(last.Amount, true)
	return nil
}}

// unpaid is a refund of money that bought no goods, which the gateway did not
// make and which nobody has asked for again.
func (w *work) unpaid() *Refund {
	last := map[string]*Refund{}
	for i := range w.Case.Refunds {
		if r := &w.Case.Refunds[i]; r.Late {
			last[r.Payment] = r
		}
	}
	for i := range w.Case.Refunds {
		r := &w.Case.Refunds[i]
		if last[r.Payment] == r && (r.State == RefundRefused || r.State == RefundFailed) {
			return r
		}
	}
	return nil
}

var bookRefund = action{"put goods back on sale, as asked, and give their allowance back", func(w *work) *Refusal {
	o := &w.Case.Order
	o.Refunding -= w.refund.Amount
	o.Refunded += w.refund.Amount
	w.touchOrder()
	from := Sold
	if o.FulfilledAt != 0 {
		from = Delivered
	}
	for _, r := range w.refund.Restock {
		i := slices.IndexFunc(o.Lines, func(l Line) bool { return l.SKU == r.SKU })
		o.Lines[i].Restocked += r.Quantity
		to := Stock
		if o.Lines[i].Backordered && o.FulfilledAt == 0 {
			to = Reserve // there never was a piece
		}
		w.move(from, to, Pieces(r.SKU), r.Quantity)
		if l := o.Lines[i]; l.PerCustomer > 0 {
			w.move(Used(o.Customer), Allowance(o.Customer), Limit(l.Sale), r.Quantity)
		}
	}
	return nil
}}

var unbookRefund = action{"the money is again whose it was", func(w *work) *Refusal {
	w.Case.Order.Refunding -= w.refund.Amount
	w.touchOrder()
	w.giveBack()
	return nil
}}

var reverseRefund = action{"the money is again whose it was", func(w *work) *Refusal {
	w.Case.Order.Refunded -= w.refund.Amount
	w.touchOrder()
	w.giveBack()
	return nil
}}
