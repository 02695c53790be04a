package stripesim

import (
	"fmt"
	"strings"
	"time"
)

var transferParams = []string{"amount", "currency", "destination", "description", "transfer_group", "metadata[*]", "expand[#]"}

// transfer moves our balance to a connected account. It has happened when it was
// made, and comes back by reversals. Every acct_ id is an account that may
// receive, but for those that begin as in missing, or with acct_restricted.
type transfer struct {
	id          string
	created     time.Time
	amount      int64
	currency    string
	destination string
	description string
	group       string
	metadata    map[string]string
	payment     string // at the account that received it
	txn         *txn
	reversals   []*reversal
}

func (t *transfer) ident() string    { return t.id }
func (t *transfer) since() time.Time { return t.created }

func (t *transfer) reversed() (sum int64) {
	for _, r := range t.reversals {
		sum += r.amount
	}
	return sum
}

func (t *transfer) object() object {
	data := []object{}
	for _, r := range t.reversals {
		data = append(data, r.object())
	}
	return object{
		"id": t.id, "object": "transfer", "livemode": false, "created": t.created.Unix(), "amount": t.amount, "currency": t.currency,
		"destination": t.destination, "destination_payment": t.payment, "description": text(t.description),
		"transfer_group": text(t.group), "metadata": t.metadata, "balance_transaction": t.txn.id, "source_transaction": nil,
		"source_type": "card", "amount_reversed": t.reversed(), "reversed": t.reversed() == t.amount,
		"reversals": object{"object": "list", "url": "/v1/transfers/" + t.id + "/reversals", "has_more": false, "data": data},
	}
}

// reversal takes back part or all of a transfer.
type reversal struct {
	id       string
	created  time.Time
	of       *transfer
	amount   int64
	metadata map[string]string
	txn      *txn
}

func (r *reversal) ident() string    { return r.id }
func (r *reversal) since() time.Time { return r.created }

func (r *reversal) object() object {
	return object{
		"id": r.id, "object": "transfer_reversal", "created": r.created.Unix(), "amount": r.amount, "currency": r.of.currency,
		"transfer": r.of.id, "metadata": r.metadata, "balance_transaction": r.txn.id, "source_refund": nil, "destination_payment_refund": nil,
	}
}

func (s *Sim) createTransfer(c *call) (object, *apiError) {
	f := c.form
	f.need("destination")
	t := &transfer{created: c.now, currency: f.currency("currency"), metadata: f.metadata("metadata")}
	t.amount = f.amount("amount", t.currency)
	t.destination, t.description = f.text("destination", maxTextLen), f.text("description", maxTextLen)
	t.group = f.text("transfer_group", maxTextLen)
	if f.fail != nil {
		return nil, f.fail
	}
	switch rest, ours := strings.CutPrefix(t.destination, "acct_"); {
	case !ours || missing(t.destination):
		return nil, refused("resource_missing", "destination", "No such destination: '"+t.destination+"'")
	case strings.HasPrefix(rest, "restricted"):
		return nil, refused("insufficient_capabilities_for_transfer", "destination", "Your destination account needs to have at least one of the following capabilities enabled: transfers, crypto_transfers, legacy_payments")
	}
	if fail := s.covers(t.amount, t.currency, c); fail != nil {
		return nil, fail
	}
	t.id, t.payment = s.id("tr_", 24), s.id("py_", 24)
	t.txn = s.addTxn("transfer", -t.amount, t.currency, t.id, c.now)
	s.transfers.add(t)
	s.emit(c.now, c.origin(), "transfer.created", t.object())
	if c.plan.bounces {
		back := c.now.Add(payoutBounces)
		s.at(back, func() { s.reverse(t, t.amount-t.reversed(), nil, back, origin{}) })
	}
	return t.object(), nil
}

func (s *Sim) createReversal(c *call) (object, *apiError) {
	t, fail := s.transfers.get(c.id, "transfer", "id")
	if fail != nil {
		return nil, fail
	}
	left := t.amount - t.reversed()
	amount, metadata := c.form.number("amount", 1, 1<<53-1, left), c.form.metadata("metadata")
	c.form.text("description", maxTextLen)
	if c.form.fail != nil {
		return nil, c.form.fail
	}
	if left == 0 || amount > left {
		return nil, refused("", "amount", fmt.Sprintf("Reversal amount (%s) is greater than the unreversed amount on the transfer (%s)", money(amount, t.currency), money(left, t.currency)))
	}
	return s.reverse(t, amount, metadata, c.now, c.origin()).object(), nil
}

func (s *Sim) reverse(t *transfer, amount int64, metadata map[string]string, now time.Time, by origin) *reversal {
	if amount == 0 {
		return nil
	}
	if metadata == nil {
		metadata = map[string]string{}
	}
	r := &reversal{id: s.id("trr_", 24), created: now, of: t, amount: amount, metadata: metadata}
	r.txn = s.addTxn("transfer_refund", amount, t.currency, r.id, now)
	s.reversals.add(r)
	t.reversals = append(t.reversals, r)
	s.emit(now, by, "transfer.reversed", t.object())
	return r
}

// ReverseTransfer takes back what is left of a transfer (tr_...).
func (s *Sim) ReverseTransfer(id string) error {
	now := s.enter()
	defer s.mu.Unlock()
	t := s.transfers.byID[id]
	if t == nil {
		return fmt.Errorf("reverse transfer %s: no such transfer", id)
	}
	if s.reverse(t, t.amount-t.reversed(), nil, now, origin{}) == nil {
		return fmt.Errorf("reverse transfer %s: all of it was reversed already", id)
	}
	return nil
}

func (s *Sim) retrieveTransfer(c *call) (object, *apiError) {
	return show(s.transfers.get(c.id, "transfer", "transfer"))
}

func (s *Sim) listTransfers(c *call) (object, *apiError) {
	to, group := c.form.text("destination", maxTextLen), c.form.text("transfer_group", maxTextLen)
	return list(c, s.transfers, func(t *transfer) bool {
		return (to == "" || t.destination == to) && (group == "" || t.group == group)
	})
}
