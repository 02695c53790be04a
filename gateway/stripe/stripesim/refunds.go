package stripesim

import (
	"fmt"
	"time"
)

const (
	refundPending = "pending"
	refundDone    = "succeeded"
	refundFailed  = "failed"

	refundSettles = 30 * time.Second // of a pending refund
)

// refund repays part or all of a charge.
type refund struct {
	id       string
	created  time.Time
	charge   *charge
	amount   int64
	reason   string
	status   string
	metadata map[string]string
	txn      *txn
	back     *txn // of the money that came back when it failed
}

func (r *refund) ident() string    { return r.id }
func (r *refund) since() time.Time { return r.created }

func (r *refund) object() object {
	o := object{
		"id": r.id, "object": "refund", "created": r.created.Unix(), "status": r.status, "amount": r.amount,
		"currency": r.charge.intent.currency, "payment_intent": r.charge.intent.id, "charge": r.charge.id,
		"reason": text(r.reason), "metadata": r.metadata, "balance_transaction": r.txn.id, "receipt_number": nil,
	}
	if r.back != nil {
		o["failure_reason"], o["failure_balance_transaction"] = "expired_or_canceled_card", r.back.id
	}
	return o
}

func (s *Sim) createRefund(c *call) (object, *apiError) {
	f := c.form
	ofIntent, ofCharge := f.text("payment_intent", maxTextLen), f.text("charge", maxTextLen)
	amount := f.number("amount", 1, 1<<53-1, 0)
	reason := f.choice("reason", "", "duplicate", "fraudulent", "requested_by_customer")
	metadata := f.metadata("metadata")
	if (ofIntent == "") == (ofCharge == "") {
		f.wrong("parameter_missing", "payment_intent", "One of charge and payment_intent must be given.")
	}
	if f.fail != nil {
		return nil, f.fail
	}
	ch, fail := s.refundable(ofIntent, ofCharge)
	if fail != nil {
		return nil, fail
	}
	left := ch.refundable()
	if left == 0 {
		return nil, refused("charge_already_refunded", "", "Charge "+ch.id+" has already been refunded.")
	}
	if !f.has("amount") {
		amount = left
	}
	if amount > left {
		currency := ch.intent.currency
		return nil, refused("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on charge (%s)", money(amount, currency), money(left, currency)))
	}
	if step := smallestStep(ch.intent.currency); amount%step != 0 {
		return nil, refused("", "amount", fmt.Sprintf("Invalid amount: in %s it must be a multiple of %d.", ch.intent.currency, step))
	}
	r := &refund{created: c.now, charge: ch, amount: amount, reason: reason, status: refundDone, metadata: metadata}
	s.addRefund(r, c)
	return r.object(), nil
}

// refundable finds the charge to repay, by one of its two names.
func (s *Sim) refundable(ofIntent, ofCharge string) (*charge, *apiError) {
	if ofCharge != "" {
		ch, fail := s.charges.get(ofCharge, "charge", "charge")
		if fail == nil && ch.fail != nil {
			return nil, refused("", "charge", "Charge "+ch.id+" failed and has nothing to refund.")
		}
		return ch, fail
	}
	in, fail := s.intents.get(ofIntent, "payment_intent", "payment_intent")
	if fail != nil {
		return nil, fail
	}
	if in.status != succeeded {
		return nil, refused("", "payment_intent", "This PaymentIntent ("+in.id+") does not have a successful charge to refund.")
	}
	return in.charge, nil
}

func (s *Sim) addRefund(r *refund, c *call) {
	r.id = s.id("re_", 24)
	r.txn = s.addTxn("refund", -r.amount, r.charge.intent.currency, r.id, c.now)
	if c.plan.pending {
		r.status = refundPending
		settled := c.now.Add(refundSettles)
		s.at(settled, func() { s.settle(r, settled) })
	}
	s.refunds.add(r)
	r.charge.refunds = append(r.charge.refunds, r)
	s.emit(c.now, c.origin(), "refund.created", r.object())
	s.emit(c.now, c.origin(), "charge.refunded", r.charge.object())
}

func (s *Sim) settle(r *refund, now time.Time) {
	if r.status != refundPending {
		return
	}
	r.status = refundDone
	s.emit(now, origin{}, "refund.updated", r.object())
}

// FailRefund makes a pending or succeeded refund (re_...) fail: the buyer's
// bank sent the money back to us.
func (s *Sim) FailRefund(id string) error {
	now := s.enter()
	defer s.mu.Unlock()
	r := s.refunds.byID[id]
	if r == nil {
		return fmt.Errorf("fail refund %s: no such refund", id)
	}
	if r.status == refundFailed {
		return fmt.Errorf("fail refund %s: it has failed already", id)
	}
	r.status = refundFailed
	r.back = s.addTxn("refund_failure", r.amount, r.charge.intent.currency, r.id, now)
	s.emit(now, origin{}, "refund.updated", r.object())
	s.emit(now, origin{}, "refund.failed", r.object())
	return nil
}

func (s *Sim) retrieveRefund(c *call) (object, *apiError) {
	return show(s.refunds.get(c.id, "refund", "refund"))
}

func (s *Sim) listRefunds(c *call) (object, *apiError) {
	ofIntent, ofCharge := c.form.text("payment_intent", maxTextLen), c.form.text("charge", maxTextLen)
	return list(c, s.refunds, func(r *refund) bool {
		return (ofIntent == "" || r.charge.intent.id == ofIntent) && (ofCharge == "" || r.charge.id == ofCharge)
	})
}
