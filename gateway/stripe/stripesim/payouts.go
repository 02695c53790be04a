package stripesim

import (
	"fmt"
	"strings"
	"time"
)

// Times of a payout to a bank.
const (
	payoutLeaves  = time.Hour      // pending until then, and may be canceled
	payoutArrives = 24 * time.Hour // a standard one
	payoutInstant = 30 * time.Minute
	payoutBounces = 72 * time.Hour // after it was paid
)

const (
	payoutInTransit = "in_transit"
	payoutPaid      = "paid"
	payoutFailed    = "failed"
	payoutCanceled  = "canceled"

	defaultBank = "ba_1SandboxOwnBankAccount"
)

var payoutParams = []string{"amount", "currency", "destination", "description", "method", "statement_descriptor", "metadata[*]", "expand[#]"}

// payout moves our balance to a bank account or debit card of our own. Every id
// of the right form is one that we have, but for those that begin as in missing.
type payout struct {
	id          string
	created     time.Time
	amount      int64
	currency    string
	destination string
	description string
	descriptor  string
	method      string
	status      string
	metadata    map[string]string
	arrived     bool // at the bank, whatever became of it then
	txn, back   *txn
	arrives     time.Time
}

func (p *payout) ident() string    { return p.id }
func (p *payout) since() time.Time { return p.created }

func (p *payout) object() object {
	o := object{
		"id": p.id, "object": "payout", "livemode": false, "created": p.created.Unix(), "arrival_date": p.arrives.Unix(),
		"amount": p.amount, "currency": p.currency, "destination": p.destination, "description": text(p.description),
		"statement_descriptor": text(p.descriptor), "method": p.method, "status": p.status, "metadata": p.metadata,
		"automatic": false, "source_type": "card", "type": "bank_account", "balance_transaction": p.txn.id,
		"failure_balance_transaction": nil, "failure_code": nil, "failure_message": nil, "original_payout": nil, "reversed_by": nil,
		"reconciliation_status": "not_applicable", "application_fee": nil, "application_fee_amount": nil,
	}
	if strings.HasPrefix(p.destination, "card_") {
		o["type"] = "card"
	}
	if p.back != nil {
		o["failure_balance_transaction"] = p.back.id
	}
	if p.status == payoutFailed {
		o["failure_code"], o["failure_message"] = "account_closed", "The bank account has been closed."
	}
	return o
}

func (s *Sim) createPayout(c *call) (object, *apiError) {
	f := c.form
	p := &payout{created: c.now, status: "pending", currency: f.currency("currency"), metadata: f.metadata("metadata")}
	p.amount = f.amount("amount", p.currency)
	p.destination, p.description = f.text("destination", maxTextLen), f.text("description", maxTextLen)
	p.descriptor, p.method = f.text("statement_descriptor", 22), f.choice("method", "standard", "instant")
	if f.fail != nil {
		return nil, f.fail
	}
	if p.destination == "" {
		p.destination = defaultBank
	}
	if !strings.HasPrefix(p.destination, "ba_") && !strings.HasPrefix(p.destination, "card_") || missing(p.destination) {
		return nil, &apiError{status: 404, typ: invalidRequest, code: "resource_missing", param: "destination", message: "No such external account: '" + p.destination + "'"}
	}
	if fail := s.covers(p.amount, p.currency, c); fail != nil {
		return nil, fail
	}
	p.id = s.id("po_", 24)
	p.arrives = c.now.Add(payoutArrives)
	if p.method == "instant" {
		p.arrives = c.now.Add(payoutInstant)
	}
	p.txn = s.addTxn("payout", -p.amount, p.currency, p.id, c.now)
	s.payouts.add(p)
	s.emit(c.now, c.origin(), "payout.created", p.object())
	s.schedule(p, c.plan)
	return p.object(), nil
}

// schedule says what the clock will make of a payout.
func (s *Sim) schedule(p *payout, fate plan) {
	at := func(t time.Time, do func(now time.Time)) { s.at(t, func() { do(t) }) }
	at(p.created.Add(min(payoutLeaves, p.arrives.Sub(p.created)/2)), func(now time.Time) { s.leave(p, now) })
	at(p.arrives, func(now time.Time) {
		if fate.fails {
			s.failPayout(p, now)
			return
		}
		s.arrive(p, now)
	})
	if fate.bounces {
		at(p.arrives.Add(payoutBounces), func(now time.Time) { s.failPayout(p, now) })
	}
}

func (p *payout) underway() bool { return p.status == "pending" || p.status == payoutInTransit }

func (s *Sim) leave(p *payout, now time.Time) {
	if p.status == "pending" {
		p.status = payoutInTransit
		s.emit(now, origin{}, "payout.updated", p.object())
	}
}

func (s *Sim) arrive(p *payout, now time.Time) {
	if p.underway() {
		p.status, p.arrived = payoutPaid, true
		s.emit(now, origin{}, "payout.paid", p.object())
	}
}

// failPayout: the bank sends the money back, or never takes it.
func (s *Sim) failPayout(p *payout, now time.Time) {
	if p.underway() || p.status == payoutPaid {
		p.status = payoutFailed
		p.back = s.addTxn("payout_failure", p.amount, p.currency, p.id, now)
		s.emit(now, origin{}, "payout.failed", p.object())
	}
}

func (s *Sim) cancelPayout(c *call) (object, *apiError) {
	p, fail := s.payouts.get(c.id, "payout", "payout")
	if fail != nil {
		return nil, fail
	}
	if p.status != "pending" {
		return nil, refused("", "", "Payouts can only be canceled while they are pending; this one is "+p.status+".")
	}
	p.status = payoutCanceled
	p.back = s.addTxn("payout_cancel", p.amount, p.currency, p.id, c.now)
	s.emit(c.now, c.origin(), "payout.canceled", p.object())
	return p.object(), nil
}

func (s *Sim) retrievePayout(c *call) (object, *apiError) {
	return show(s.payouts.get(c.id, "payout", "payout"))
}

func (s *Sim) listPayouts(c *call) (object, *apiError) {
	to, status := c.form.text("destination", maxTextLen), c.form.text("status", maxTextLen)
	return list(c, s.payouts, func(p *payout) bool {
		return (to == "" || p.destination == to) && (status == "" || p.status == status)
	})
}

// PayPayout has a payout (po_...) that is under way arrive.
func (s *Sim) PayPayout(id string) error {
	return s.decide(id, "pay", (*payout).underway, s.arrive)
}

// FailPayout has a payout (po_...) that is under way fail, or one that was paid
// come back.
func (s *Sim) FailPayout(id string) error {
	return s.decide(id, "fail", func(p *payout) bool { return p.underway() || p.status == payoutPaid }, s.failPayout)
}

func (s *Sim) decide(id, what string, can func(*payout) bool, do func(*payout, time.Time)) error {
	now := s.enter()
	defer s.mu.Unlock()
	p := s.payouts.byID[id]
	if p == nil {
		return fmt.Errorf("%s payout %s: no such payout", what, id)
	}
	if !can(p) {
		return fmt.Errorf("%s payout %s: it is %s", what, id, p.status)
	}
	do(p, now)
	return nil
}

// missing says that nothing has an id, though it is of the right form.
func missing(id string) bool {
	_, rest, _ := strings.Cut(id, "_")
	return strings.HasPrefix(rest, "missing") || rest == ""
}
