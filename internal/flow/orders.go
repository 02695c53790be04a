package flow

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// orderRows is the order's machine. Facts without a row change nothing;
// commands without one are refused.
var orderRows = []row{
	{Held, Pay, Paying, nil, startAttempt},
	{Held, Cancel, Cancelled, nil, voidHolds},
	{Held, Due, Expired, overdue, expireHolds},
	{Held, money, Paid, nil, deliverVersusPayment},

	{Paying, Pay, Paying, sameWay, nothing},
	{Paying, Pay, Paying, nil, switchAttempt},
	{Paying, Cancel, Closing, nil, closeToCancel},
	{Paying, Due, Closing, overdue, closeAttempt},
	{Paying, noMoney, Paying, switching, startNext},
	{Paying, noMoney, Held, nil, forgetAttempt},
	{Paying, money, Paid, nil, deliverVersusPayment},

	{Closing, Cancel, Closing, nil, rememberCancel},
	{Closing, noMoney, Cancelled, cancelling, voidHolds},
	{Closing, noMoney, Expired, nil, expireHolds},
	{Closing, money, Paid, nil, deliverVersusPayment},
	{Closing, GiveUp, Cancelled, cancelledBeyondCap, voidHolds},
	{Closing, GiveUp, Expired, beyondCap, expireHolds},

	{Expired, money, Paid, goodsMayBeTaken, takeAgain},
	{Expired, money, Refunding, nil, repayAll},
	{Cancelled, Cancel, Cancelled, nil, nothing},
	{Cancelled, money, Refunding, nil, repayAll},

	{Paid, Fulfil, Fulfilled, nil, handOver},
	{Paid, Repaid, Paid, surplusIsDue, repayAgain},
	{Paid, Repaid, Paid, nil, startRefund},
	{Paid, moneyBack, Refunded, isRest, bookRefund},
	{Paid, moneyBack, PartlyRefunded, nil, bookRefund},
	{Paid, moneyStays, Paid, nil, unbookRefund},
	{Paid, moneyAgain, Paid, nil, reverseRefund},
	{Paid, money, Paid, nil, repaySurplus},

	{Fulfilled, Repaid, Fulfilled, surplusIsDue, repayAgain},
	{Fulfilled, Repaid, Fulfilled, nil, startRefund},
	{Fulfilled, moneyBack, Refunded, isRest, bookRefund},
	{Fulfilled, moneyBack, PartlyRefunded, nil, bookRefund},
	{Fulfilled, moneyStays, Fulfilled, nil, unbookRefund},
	{Fulfilled, moneyAgain, Fulfilled, nil, reverseRefund},
	{Fulfilled, money, Fulfilled, nil, repaySurplus},

	{PartlyRefunded, Fulfil, PartlyRefunded, nil, handOver},
	{PartlyRefunded, Repaid, PartlyRefunded, surplusIsDue, repayAgain},
	{PartlyRefunded, Repaid, PartlyRefunded, nil, startRefund},
	{PartlyRefunded, moneyBack, Refunded, isRest, bookRefund},
	{PartlyRefunded, moneyBack, PartlyRefunded, nil, bookRefund},
	{PartlyRefunded, moneyStays, PartlyRefunded, nil, unbookRefund},
	{PartlyRefunded, moneyAgain, Fulfilled, lastOfFulfilled, reverseRefund},
	{PartlyRefunded, moneyAgain, Paid, lastRefund, reverseRefund},
	{PartlyRefunded, moneyAgain, PartlyRefunded, nil, reverseRefund},
	{PartlyRefunded, money, PartlyRefunded, nil, repaySurplus},

	{Refunding, Repaid, Refunding, nil, repayAgain},
	{Refunding, moneyBack, Refunded, allIsRepaid, nothing},
	{Refunding, money, Refunding, nil, repaySurplus},

	{Refunded, Repaid, Refunded, surplusIsDue, repayAgain},
	{Refunded, moneyAgain, Refunding, boughtNothing, nothing},
	{Refunded, moneyAgain, Fulfilled, lastOfFulfilled, reverseRefund},
	{Refunded, moneyAgain, Paid, lastRefund, reverseRefund},
	{Refunded, moneyAgain, PartlyRefunded, nil, reverseRefund},
	{Refunded, money, Refunding, boughtNothing, repaySurplus},
	{Refunded, money, Refunded, nil, repaySurplus},
}

var nothing = action{"", func(*work) *Refusal { return nil }}

var cancelling = &guard{"a cancel was asked for", func(w *work) bool { return w.Case.Order.Cancelling }}

var overdue = &guard{"the deadline has passed", func(w *work) bool { return w.now >= w.Case.Order.ExpiresAt }}

var beyondCap = &guard{"the cap has passed", func(w *work) bool { return w.now >= w.Case.Order.CapAt }}

var cancelledBeyondCap = &guard{"the cap has passed and a cancel was asked for", func(w *work) bool {
	return beyondCap.test(w) && cancelling.test(w)
}}

var isRest = &guard{"nothing is left to refund", func(w *work) bool {
	o := w.Case.Order
	return o.Refunded+w.refund.Amount == o.Paid
}}

var lastRefund = &guard{"no refund is left", func(w *work) bool {
	return w.Case.Order.Refunded == w.refund.Amount
}}

var lastOfFulfilled = &guard{"no refund is left, and it was fulfilled", func(w *work) bool {
	return lastRefund.test(w) && w.Case.Order.FulfilledAt != 0
}}

var boughtNothing = &guard{"the money bought no goods", func(w *work) bool {
	return w.Case.Order.PaidAt == 0
}}

var surplusIsDue = &guard{"money that bought no goods could not be repaid yet", func(w *work) bool {
	return w.unpaid() != nil
}}

var allIsRepaid = &guard{"no other money is due to the buyer", func(w *work) bool {
	return w.unpaid() == nil && !slices.ContainsFunc(w.Case.Refunds, func(r Refund) bool {
		return r.ID != w.refund.ID && (r.State == RefundRequested || r.State == RefundAccepted)
	})
}}

var goodsMayBeTaken = &guard{"the late policy of every line allows it", func(w *work) bool {
	return !slices.ContainsFunc(w.Case.Order.Lines, func(l Line) bool { return w.late(l) == Repay })
}}

// late is the policy that the line's late money has come to.
func (w *work) late(l Line) Late {
	overLimit := l.PerCustomer > 0 && w.ev.Short[Limit(l.Sale)] > 0
	if n := w.ev.Short[Pieces(l.SKU)]; n < len(l.Late) && !overLimit {
		return l.Late[n]
	}
	return Repay
}

func (w *work) eachHold(op func(hold string) ledger.Op) {
	for i, l := range w.Case.Order.Lines {
		w.op(op(HoldID(w.Case.Order.ID, i)))
		if l.PerCustomer > 0 {
			w.op(op(AllowanceID(w.Case.Order.ID, i)))
		}
	}
}

var voidHolds = action{"release the stock and the allowance", func(w *work) *Refusal {
	w.eachHold(ledger.Void)
	return nil
}}

var expireHolds = action{"release the stock and the allowance", func(w *work) *Refusal {
	w.eachHold(ledger.Expire)
	return nil
}}

var startAttempt = action{"extend the hold to the attempt's deadline; ask the gateway to open a payment", func(w *work) *Refusal {
	if refusal := w.newAttempt(Requested); refusal != nil {
		return refusal
	}
	w.Case.Order.Payment = w.payment.ID
	w.task(w.payment.ID, w.payment.Gateway, DoCreate, w.now)
	return nil
}}

// newAttempt stores an attempt, with all that will go on the wire.
func (w *work) newAttempt(state State) *Refusal {
	o := &w.Case.Order
	if o.Attempts == MaxAttempts {
		return &Refusal{InvalidState, "no further attempts to pay"}
	}
	until, refusal := w.holdFor(w.ev.PayFor)
	if refusal != nil {
		return refusal
	}
	o.Attempts++
	w.Case.Payments = append(w.Case.Payments, Payment{
		ID: PaymentID(o.ID, o.Attempts), Order: o.ID, State: state, Gateway: w.ev.Gateway, Method: w.ev.Method,
		Amount: o.Total, Currency: o.Currency, Description: w.ev.Description, ReturnURL: w.ev.ReturnURL, Payer: w.ev.Payer,
		CreatedAt: w.now, ExpiresAt: until,
	})
	w.payment = &w.Case.Payments[len(w.Case.Payments)-1]
	w.touchPayment()
	return nil
}

// holdFor holds the stock for as long as an attempt may take, within the cap.
func (w *work) holdFor(d time.Duration) (until Time, refusal *Refusal) {
	o := &w.Case.Order
	until = min(max(w.now.Add(d), o.ExpiresAt), o.CapAt)
	if until <= w.now {
		return until, &Refusal{InvalidState, "the stock can't be held any longer"}
	}
	o.ExpiresAt = until
	w.eachHold(func(h string) ledger.Op { return ledger.Extend(h, int64(until)) })
	return until, nil
}

// sameWay finds a second click, under another key.
var sameWay = &guard{"it is the same way to pay: the attempt is the answer", func(w *work) bool {
	p := w.findPayment(cmp.Or(w.Case.Order.NextPayment, w.Case.Order.Payment))
	return p.Gateway == w.ev.Gateway && p.Method == w.ev.Method
}}

// switchAttempt never lets two attempts take money: the second starts when the
// gateway of the first has said that it is closed. Until then the buyer can
// still pay the first. Whoever changes his mind once more ends what waits.
var switchAttempt = action{"ask the gateway to close the payment; the new one waits for that", func(w *work) *Refusal {
	o := &w.Case.Order
	waiting := o.NextPayment != ""
	if refusal := w.newAttempt(Waiting); refusal != nil {
		return refusal
	}
	next := w.payment.ID
	if waiting {
		refusal := w.dropNext()
		o.NextPayment = next
		return refusal // the first is being closed already
	}
	o.NextPayment = next
	return w.tell(o.Payment, close_)
}}

var switching = &guard{"another attempt waits, and the cap has not passed", func(w *work) bool {
	return w.Case.Order.NextPayment != "" && !beyondCap.test(w)
}}

var startNext = action{"start the attempt that waits, with as much time as it was given", func(w *work) *Refusal {
	o := &w.Case.Order
	o.Payment, o.NextPayment = o.NextPayment, ""
	return w.tell(o.Payment, start)
}}

// dropNext ends the attempt that waits, if there is one: no gateway knows it.
func (w *work) dropNext() *Refusal {
	next := w.Case.Order.NextPayment
	if next == "" {
		return nil
	}
	w.Case.Order.NextPayment = ""
	return w.tell(next, close_)
}

// tell lets an event of the order happen to one of its payments.
func (w *work) tell(payment string, on On) *Refusal {
	about := w.payment
	w.payment = w.findPayment(payment)
	refusal := w.stepPayment(on)
	w.payment = about
	return refusal
}

var closeAttempt = action{"ask the gateway to close the payment", func(w *work) *Refusal {
	if refusal := w.dropNext(); refusal != nil {
		return refusal
	}
	return w.tell(w.Case.Order.Payment, close_)
}}

var closeToCancel = action{"ask the gateway to close the payment", func(w *work) *Refusal {
	w.Case.Order.Cancelling = true
	return closeAttempt.do(w)
}}

var rememberCancel = action{"", func(w *work) *Refusal {
	if !w.Case.Order.Cancelling {
		w.Case.Order.Cancelling = true
		w.touchOrder()
	}
	return nil
}}

var forgetAttempt = action{"another attempt may start", func(w *work) *Refusal {
	w.Case.Order.Payment = ""
	return w.dropNext()
}}

// deliverVersusPayment is why goods and money are in one ledger: both move, or neither.
var deliverVersusPayment = action{"commit the stock and the allowance; book the money, split as agreed", func(w *work) *Refusal {
	if refusal := w.dropNext(); refusal != nil {
		return refusal
	}
	w.eachHold(ledger.Commit)
	w.bookSale()
	return nil
}}

var takeAgain = action{"take the stock again, or backorder budget, and the allowance; book the money, split as agreed", func(w *work) *Refusal {
	for i, l := range w.Case.Order.Lines {
		from := Stock
		if w.late(l) == Backorder {
			from = Reserve
			w.Case.Order.Lines[i].Backordered = true
		}
		w.move(from, Sold, Pieces(l.SKU), l.Quantity)
		if l.PerCustomer > 0 {
			w.move(Allowance(w.Case.Order.Customer), Used(w.Case.Order.Customer), Limit(l.Sale), l.Quantity)
		}
	}
	w.bookSale()
	return nil
}}

func (w *work) bookSale() {
	o := &w.Case.Order
	o.Paid, o.PaidAt, o.Payment = o.Total, w.now, w.payment.ID
	w.bookSplits()
	w.closeOthers()
}

// closeOthers closes what else could still bring money for an order that has it.
func (w *work) closeOthers() {
	paid := w.payment
	for i := range w.Case.Payments {
		if p := &w.Case.Payments[i]; p.ID != paid.ID && (p.State == Requested || p.State == Open) {
			w.task(p.ID, p.Gateway, DoClose, w.now)
		}
	}
}

var handOver = action{"the goods leave", func(w *work) *Refusal {
	o := &w.Case.Order
	if o.FulfilledAt != 0 {
		return &Refusal{InvalidState, "the goods have left before"}
	}
	o.FulfilledAt = w.now
	w.touchOrder()
	for _, l := range o.Lines {
		if n := l.Quantity - l.Restocked; n > 0 {
			w.move(Sold, Delivered, Pieces(l.SKU), n)
		}
	}
	if o.State == PartlyRefunded {
		w.publish("order.fulfilled", nil)
	}
	return nil
}}
