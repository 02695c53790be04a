package gateway

import (
	"context"
	"errors"
	"time"
)

// Statements is a third, optional ability: to say, for the books, what happened
// on a day.
type Statements interface {
	// Zone is where the days of the statements begin.
	Zone() *time.Location

	// FetchStatement downloads the statement of the day that begins at day, as the
	// gateway has it. The error is ErrNoStatement when there is none, or none yet.
	FetchStatement(ctx context.Context, day time.Time) ([]byte, error)

	// ReadStatement reads a statement, whoever has downloaded it. Every line of it
	// is in the result, understood or not; the error says which line is not of the
	// published form, or that the gateway's own totals are not those of the lines.
	ReadStatement(file []byte) ([]StatementLine, error)
}

// ErrNoStatement says that the gateway has no statement of that day.
var ErrNoStatement = errors.New("no statement of that day")

// StatementKind is what a line of a statement is about.
type StatementKind string

const (
	PaymentLine    StatementKind = "payment"
	RefundLine     StatementKind = "refund"
	RefundBackLine StatementKind = "refund_returned" // a refund that came back to us
	SettledLine    StatementKind = "settlement"      // paid out to our bank
	PayoutLine     StatementKind = "payout"          // a payout of ours; it may be here long before it is paid
	PayoutBackLine StatementKind = "payout_returned" // a payout that failed after it was taken, or came back
	OtherLine      StatementKind = "other"
)

// StatementLine is one line of a statement. Amounts are minor units of Currency:
// what came to us is positive, what went is negative.
type StatementLine struct {
	ID       string // the gateway's own, once in all its statements
	Kind     StatementKind
	Number   string // our number of the payment, refund or payout; empty when the line has none, and always there for a payout
	Ref      string // the gateway's id of it
	Amount   int64  // before the fee
	Fee      int64  // what the gateway kept; negative = gave back
	Currency string // upper case
	At       time.Time
	Text     string // the line as it stands, for people
}
