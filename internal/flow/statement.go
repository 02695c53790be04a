package flow

import (
	"strings"

	"github.com/holdfast-pay/holdfast/ledger"
)

// KindBooked is the kind of the records that say which lines of the gateways'
// statements are in the books.
const KindBooked = "statement_line"

// Bank is our account outside, where gateways pay out to.
const Bank ledger.Account = "@bank"

// Fees is what a gateway has kept for itself.
func Fees(gateway string) ledger.Account { return ledger.Account("@fees/" + gateway) }

// Booked is a line of a gateway's statement that is in the books. Amounts are
// minor units of Currency, positive when they came to us; Fee is what was kept.
type Booked struct {
	Gateway  string `json:"gateway"`
	Day      string `json:"day"` // of the statement, YYYY-MM-DD
	Line     string `json:"line"`
	Kind     string `json:"kind"`
	Number   string `json:"number,omitempty"`
	Amount   int64  `json:"amount"`
	Fee      int64  `json:"fee"`
	Currency string `json:"currency"`
	Settled  bool   `json:"settled,omitempty"` // Amount went to the bank
}

// BookedID names the record of a line: what a line is about is in the books
// once, whatever the line is called.
func BookedID(gateway, kind, number, line string) string {
	if number == "" {
		number = "line/" + line
	}
	return strings.Join([]string{gateway, kind, number}, "/")
}

// Record is the line as it is stored.
func (b Booked) Record() ledger.Record {
	return ledger.Record{Kind: KindBooked, ID: BookedID(b.Gateway, b.Kind, b.Number, b.Line), Version: 1,
		State: b.Kind, Owner: "statement/" + b.Gateway + "/" + b.Day, Body: marshal(b)}
}

// Ops books what nobody else books: the fee, and the way to the bank. Payments
// and refunds are in the books since they happened.
func (b Booked) Ops() []ledger.Op {
	var ops []ledger.Op
	move := func(from, to ledger.Account, amount int64) {
		if amount < 0 {
			from, to, amount = to, from, -amount
		}
		if amount != 0 {
			ops = append(ops, ledger.Move(ledger.Posting{From: from, To: to, Asset: ledger.Asset(b.Currency), Amount: amount}))
		}
	}
	move(Fees(b.Gateway), Clearing(b.Gateway), b.Fee)
	if b.Settled {
		move(Clearing(b.Gateway), Bank, b.Amount)
	}
	return ops
}

// Cleared is what Ops adds to the clearing account.
func (b Booked) Cleared() int64 {
	if b.Settled {
		return b.Fee - b.Amount
	}
	return b.Fee
}
