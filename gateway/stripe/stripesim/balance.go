package stripesim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// What a charge costs, in basis points of its amount. Refunds cost nothing
// and do not give it back.
const feeBasisPoints = 290

// txn is one line of the account's balance.
type txn struct {
	id       string
	created  time.Time
	kind     string // charge, refund, refund_failure, transfer, transfer_refund, payout, payout_failure, payout_cancel, topup
	amount   int64  // negative when money leaves
	fee      int64
	currency string
	source   string
}

func (t *txn) ident() string    { return t.id }
func (t *txn) since() time.Time { return t.created }

func (t *txn) object() object {
	fees := []object{}
	if t.fee > 0 {
		fees = append(fees, object{"amount": t.fee, "currency": t.currency, "type": "stripe_fee", "description": "Stripe processing fees"})
	}
	return object{
		"id": t.id, "object": "balance_transaction", "created": t.created.Unix(), "available_on": t.created.Unix(),
		"type": t.kind, "reporting_category": t.kind, "amount": t.amount, "fee": t.fee, "fee_details": fees,
		"net": t.amount - t.fee, "currency": t.currency, "source": t.source, "status": "available",
		"exchange_rate": nil, "description": nil,
	}
}

func (s *Sim) addTxn(kind string, amount int64, currency, source string, now time.Time) *txn {
	t := &txn{id: s.id("txn_", 24), created: now, kind: kind, amount: amount, currency: currency, source: source}
	if kind == "charge" {
		t.fee = amount * feeBasisPoints / 10_000
	}
	s.txns.add(t)
	s.balance[currency] += t.amount - t.fee
	return t
}

// covers refuses what the balance does not suffice for; all of it is available.
func (s *Sim) covers(amount int64, currency string, c *call) *apiError {
	if amount > s.balance[currency] || c.plan.short {
		return refused("balance_insufficient", "", "You have insufficient available funds in your Stripe account.")
	}
	return nil
}

func (s *Sim) retrieveBalance(*call) (object, *apiError) {
	return object{"object": "balance", "livemode": false, "available": s.funds(), "pending": []object{}}, nil
}

func (s *Sim) funds() []object {
	rows := []object{}
	for _, currency := range slices.Sorted(maps.Keys(s.balance)) {
		amount := s.balance[currency]
		rows = append(rows, object{"amount": amount, "currency": currency, "source_types": object{"card": amount}})
	}
	return rows
}

// TopUp adds money of our own to the balance: amount is minor units of currency,
// a lower case word of Stripe's.
func (s *Sim) TopUp(amount int64, currency string) error {
	now := s.enter()
	defer s.mu.Unlock()
	if amount < 1 || amount > 1<<53-1 || !knownCurrency(currency) {
		return fmt.Errorf("top up %d %s: not an amount of a known currency", amount, currency)
	}
	s.addTxn("topup", amount, currency, s.id("tu_", 24), now)
	return nil
}

func (s *Sim) listTxns(c *call) (object, *apiError) {
	kind, source, currency := c.form.text("type", maxTextLen), c.form.text("source", maxTextLen), c.form.text("currency", 3)
	return list(c, s.txns, func(t *txn) bool {
		return (kind == "" || t.kind == kind) && (source == "" || t.source == source) && (currency == "" || t.currency == currency)
	})
}
