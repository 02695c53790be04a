package stripesim

import (
	"fmt"
	"time"
)

// charge is one try to take the money of an intent.
type charge struct {
	id      string
	created time.Time
	intent  *intent
	fail    *apiError // nil when the money was taken
	refunds []*refund
	txn     *txn
}

func (ch *charge) ident() string    { return ch.id }
func (ch *charge) since() time.Time { return ch.created }

func (ch *charge) object() object {
	in := ch.intent
	o := object{
		"id": ch.id, "object": "charge", "livemode": false, "created": ch.created.Unix(), "amount": in.amount,
		"amount_captured": in.amount, "amount_refunded": in.amount - ch.refundable(), "currency": in.currency,
		"captured": true, "paid": true, "status": succeeded, "refunded": ch.refundable() == 0, "disputed": false,
		"payment_intent": in.id, "payment_method": text(in.method), "metadata": in.metadata,
		"description": text(in.description), "failure_code": nil, "failure_message": nil, "balance_transaction": nil,
	}
	if ch.txn != nil {
		o["balance_transaction"] = ch.txn.id
	}
	if ch.fail != nil {
		o["captured"], o["paid"], o["status"], o["refunded"] = false, false, "failed", false
		o["amount_captured"], o["amount_refunded"] = 0, 0
		o["failure_code"], o["failure_message"] = ch.fail.code, ch.fail.message
	}
	return o
}

// refundable is what has neither been refunded nor is on its way.
func (ch *charge) refundable() int64 {
	if ch.fail != nil {
		return 0
	}
	left := ch.intent.amount
	for _, r := range ch.refunds {
		if r.status != refundFailed {
			left -= r.amount
		}
	}
	return left
}

// PayOption changes what Pay does.
type PayOption func(*outcome)

// Async makes the buyer pay with a slow method, such as a bank debit: the
// session completes unpaid and the intent is processing, until a second Pay or
// a Decline settles it.
func Async() PayOption { return func(o *outcome) { *o = underway } }

// Pay does what the buyer does on the page of a session (cs_...) or an intent
// (pi_...), or settles one that is processing. It fails, without effect, when
// it cannot be paid.
func (s *Sim) Pay(ref string, opts ...PayOption) error {
	o := paid
	for _, opt := range opts {
		opt(&o)
	}
	now := s.enter()
	defer s.mu.Unlock()
	return s.attempt(ref, o, now, origin{})
}

// Decline is a try to pay that the bank refuses. It stays payable, unless it
// was processing under a session, which is then complete and unpaid for ever.
func (s *Sim) Decline(ref string) error {
	now := s.enter()
	defer s.mu.Unlock()
	return s.attempt(ref, declined, now, origin{})
}

// attempt pays a session or an intent if that is possible.
func (s *Sim) attempt(ref string, o outcome, now time.Time, by origin) error {
	x, in := s.sessions.byID[ref], s.intents.byID[ref]
	if in != nil {
		x = in.session
	}
	if x == nil && in == nil {
		return fmt.Errorf("pay %s: no such session or payment intent", ref)
	}
	if x != nil && x.status == "open" {
		in = s.attached(x, now, by)
	} else if x != nil {
		in = x.intent
	}
	switch {
	case in == nil, x != nil && x.status != "open" && in.status != processing:
		return fmt.Errorf("pay %s: the session is %s", ref, x.status)
	case in.status == succeeded, in.status == canceled, in.status == processing && o == underway:
		return fmt.Errorf("pay %s: the payment intent is %s", ref, in.status)
	}
	if in.status == needsMethod {
		in.method = defaultCard
	}
	s.conclude(in, o, now, by)
	return nil
}

// conclude gives an attempt its outcome. The intent is payable or processing.
func (s *Sim) conclude(in *intent, o outcome, now time.Time, by origin) {
	x, late := in.session, in.status == processing
	in.lastError = nil
	switch o {
	case paid:
		in.status = succeeded
		s.book(in, nil, now)
		s.emit(now, by, "charge.succeeded", in.charge.object())
		s.emit(now, by, "payment_intent.succeeded", in.object())
	case underway:
		in.status = processing
		s.emit(now, by, "payment_intent.processing", in.object())
	case needsBuyer:
		in.status = needsAction
		s.emit(now, by, "payment_intent.requires_action", in.object())
	default:
		s.book(in, cardError(o), now)
		in.status, in.method, in.lastError = needsMethod, "", in.charge.fail
		s.emit(now, by, "charge.failed", in.charge.object())
		s.emit(now, by, "payment_intent.payment_failed", in.object())
	}
	if x == nil {
		return
	}
	switch {
	case o == paid && late:
		x.paymentStatus = "paid"
		s.emit(now, by, "checkout.session.async_payment_succeeded", x.object())
	case o == paid:
		x.status, x.paymentStatus = "complete", "paid"
		s.emit(now, by, "checkout.session.completed", x.object())
	case o == underway:
		x.status = "complete"
		s.emit(now, by, "checkout.session.completed", x.object())
	case late:
		s.emit(now, by, "checkout.session.async_payment_failed", x.object())
	}
}

func cardError(o outcome) *apiError {
	return &apiError{status: 402, typ: "card_error", code: "card_declined", declineCode: string(o), message: "Your card was declined."}
}

// book adds a charge to the intent: taken when fail is nil.
func (s *Sim) book(in *intent, fail *apiError, now time.Time) {
	ch := &charge{id: s.id("ch_", 24), created: now, intent: in, fail: fail}
	if fail != nil {
		failure := *fail
		failure.charge = ch.id
		ch.fail = &failure
	} else {
		ch.txn = s.addTxn("charge", in.amount, in.currency, ch.id, now)
	}
	in.charge = ch
	s.charges.add(ch)
}
