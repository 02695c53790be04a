package stripesim

import (
	"maps"
	"time"
)

// Books is the simulator's own view of the money, to hold a merchant's against.
type Books struct {
	Payments []Payment `json:"payments"` // by creation
	Sessions []Session `json:"sessions"` // by creation

	Transfers []Transfer       `json:"transfers"` // by creation
	Payouts   []Payout         `json:"payouts"`   // by creation
	Balance   map[string]int64 `json:"balance"`   // minor units, by currency in lower case
}

// Transfer is one transfer to a connected account. Amounts are minor units of
// Currency.
type Transfer struct {
	ID          string            `json:"id"`
	Destination string            `json:"destination"`
	Metadata    map[string]string `json:"metadata"`
	Group       string            `json:"group"`
	Amount      int64             `json:"amount"`
	Reversed    int64             `json:"reversed"`
	Currency    string            `json:"currency"` // lower case
}

// Payout is one payout to a bank of ours. Amount is minor units of Currency.
type Payout struct {
	ID          string            `json:"id"`
	Destination string            `json:"destination"`
	Metadata    map[string]string `json:"metadata"`
	Amount      int64             `json:"amount"`
	Currency    string            `json:"currency"` // lower case
	Status      string            `json:"status"`   // pending, in_transit, paid, failed, canceled
	Arrived     bool              `json:"arrived"`  // at the bank, whatever became of it then
}

// Payment is one payment intent. Amounts are minor units of Currency.
type Payment struct {
	ID            string            `json:"id"`
	SessionID     string            `json:"session_id"` // empty when it stands alone
	Metadata      map[string]string `json:"metadata"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"` // lower case
	Status        string            `json:"status"`
	Captured      int64             `json:"captured"`
	Refunded      int64             `json:"refunded"` // of succeeded refunds
	RefundPending int64             `json:"refund_pending"`
	Refunds       []Refund          `json:"refunds"`
}

// Refund is one refund of a payment. Amount is minor units.
type Refund struct {
	ID       string            `json:"id"`
	Amount   int64             `json:"amount"`
	Status   string            `json:"status"` // pending, succeeded, failed
	Metadata map[string]string `json:"metadata"`
}

// Session is one checkout session. Amount is minor units of Currency.
type Session struct {
	ID            string            `json:"id"`
	Metadata      map[string]string `json:"metadata"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`       // lower case
	Status        string            `json:"status"`         // open, complete, expired
	PaymentStatus string            `json:"payment_status"` // unpaid, paid
	PaymentIntent string            `json:"payment_intent"` // empty until a buyer tries to pay
	ExpiresAt     time.Time         `json:"expires_at"`
}

// Books returns a copy.
func (s *Sim) Books() Books {
	s.enter()
	defer s.mu.Unlock()
	b := Books{Payments: []Payment{}, Sessions: []Session{}, Transfers: []Transfer{}, Payouts: []Payout{}, Balance: maps.Clone(s.balance)}
	for _, t := range s.transfers.order {
		b.Transfers = append(b.Transfers, Transfer{t.id, t.destination, maps.Clone(t.metadata), t.group, t.amount, t.reversed(), t.currency})
	}
	for _, p := range s.payouts.order {
		b.Payouts = append(b.Payouts, Payout{p.id, p.destination, maps.Clone(p.metadata), p.amount, p.currency, p.status, p.arrived})
	}
	for _, in := range s.intents.order {
		b.Payments = append(b.Payments, in.booked())
	}
	for _, x := range s.sessions.order {
		entry := Session{
			ID: x.id, Metadata: maps.Clone(x.metadata), Amount: x.amount, Currency: x.currency,
			Status: x.status, PaymentStatus: x.paymentStatus, ExpiresAt: x.expiresAt,
		}
		if x.intent != nil {
			entry.PaymentIntent = x.intent.id
		}
		b.Sessions = append(b.Sessions, entry)
	}
	return b
}

func (in *intent) booked() Payment {
	p := Payment{
		ID: in.id, Metadata: maps.Clone(in.metadata), Amount: in.amount, Currency: in.currency,
		Status: in.status, Captured: in.received(), Refunds: []Refund{},
	}
	if in.session != nil {
		p.SessionID = in.session.id
	}
	if in.charge == nil {
		return p
	}
	for _, r := range in.charge.refunds {
		p.Refunds = append(p.Refunds, Refund{r.id, r.amount, r.status, maps.Clone(r.metadata)})
		switch r.status {
		case refundDone:
			p.Refunded += r.amount
		case refundPending:
			p.RefundPending += r.amount
		}
	}
	return p
}
