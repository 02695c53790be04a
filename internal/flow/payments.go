package flow

// paymentRows is the machine of one attempt to collect money. Paid never goes
// back: a doubled, late or reordered message meets no row.
var paymentRows = []row{
	{Waiting, start, Requested, nil, askToOpen},
	{Waiting, close_, AttemptClosed, nil, nothing},

	{Requested, Opened, Open, nil, keepOpened},
	{Requested, Refused, Declined, nil, endAttempt},
	{Requested, ClosedThere, AttemptClosed, nil, endAttempt},
	{Requested, MoneyCame, AttemptPaid, amountFits, takeMoney},
	{Requested, MoneyCame, Requested, nil, quarantine},
	{Requested, close_, Requested, nil, askToClose},

	{Open, ClosedThere, AttemptClosed, nil, endAttempt},
	{Open, MoneyCame, AttemptPaid, amountFits, takeMoney},
	{Open, MoneyCame, Open, nil, quarantine},
	{Open, close_, Open, nil, askToClose},

	{AttemptClosed, MoneyCame, AttemptPaid, amountFits, takeMoney},
	{AttemptClosed, MoneyCame, AttemptClosed, nil, quarantine},
	{Declined, MoneyCame, AttemptPaid, amountFits, takeMoney},
	{Declined, MoneyCame, Declined, nil, quarantine},
}

// Mismatch is the code of a payment whose money is not what was asked for.
const Mismatch = "amount_mismatch"

var amountFits = &guard{"amount and currency are those asked for", func(w *work) bool {
	return w.ev.Amount == w.payment.Amount && w.ev.Currency == w.payment.Currency
}}

// askToOpen may move the deadline, as nothing of the attempt has been on the wire.
var askToOpen = action{"extend the hold to its deadline; ask the gateway to open it", func(w *work) *Refusal {
	p := w.payment
	until, refusal := w.holdFor(p.ExpiresAt.Std().Sub(p.CreatedAt.Std()))
	if refusal != nil {
		return refusal
	}
	p.ExpiresAt = until
	w.touchPayment()
	w.task(w.payment.ID, w.payment.Gateway, DoCreate, w.now)
	return nil
}}

var keepOpened = action{"let the buyer pay; ask now and then", func(w *work) *Refusal {
	w.keepFacts()
	for _, t := range w.Case.Tasks {
		if t.ID == w.payment.ID && t.Do == DoClose {
			return nil // it is to be closed as soon as it is known
		}
	}
	w.task(w.payment.ID, w.payment.Gateway, DoQuery, w.now.Add(w.ev.Poll))
	return nil
}}

var endAttempt = action{"no money will come through it", func(w *work) *Refusal {
	w.keepFacts()
	w.task(w.payment.ID, w.payment.Gateway, DoNone, 0)
	return w.stepOrder(noMoney)
}}

var takeMoney = action{"the money is ours", func(w *work) *Refusal {
	w.keepFacts()
	w.task(w.payment.ID, w.payment.Gateway, DoNone, 0)
	return w.stepOrder(money)
}}

var askToClose = action{"ask the gateway to close it", func(w *work) *Refusal {
	w.task(w.payment.ID, w.payment.Gateway, DoClose, w.now)
	return nil
}}

// quarantine leaves everything as it is, for a person to look at: an authentic
// message about another amount is neither this order's price nor nothing.
var quarantine = action{"leave all as it is; tell people", func(w *work) *Refusal {
	if w.payment.Code == Mismatch {
		return nil
	}
	w.payment.Code = Mismatch
	w.touchPayment()
	w.publish("payment.mismatch", map[string]any{
		"payment": w.payment.ID, "amount": w.ev.Amount, "currency": w.ev.Currency,
	})
	return nil
}}

func (w *work) keepFacts() {
	p := w.payment
	for _, f := range []struct {
		to   *string
		from string
	}{{&p.Ref, w.ev.Ref}, {&p.URL, w.ev.URL}, {&p.Secret, w.ev.Secret}, {&p.Code, w.ev.Code}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	w.touchPayment()
}
