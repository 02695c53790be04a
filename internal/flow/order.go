// Package flow decides what an order, its payments and its refunds do next.
//
// The three machines are tables of rows (state, event -> state, what to do) and
// are pure: no I/O, no clock, no randomness. Step takes a Case (one order with
// its payments, refunds and tasks) and an Event, and answers with a Change: the
// ledger ops, the documents in their new form, and the events to publish. The
// caller writes all of it in one ledger entry, or none of it.
package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Time is Unix ms, written in JSON as RFC 3339 in UTC. Zero = not set.
type Time int64

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.Std().Format("2006-01-02T15:04:05.000Z07:00") + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s time.Time
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("flow: time: %w", err)
	}
	*t = Time(s.UnixMilli())
	return nil
}

// Std is t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add is t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// Late is what to do for a line whose money arrived after its stock was released.
type Late string

const (
	Retake    Late = "retake"    // take the stock again, if it is there
	Backorder Late = "backorder" // take it out of the backorder budget
	Repay     Late = "refund"    // give the money back
)

// Item is something that can be ordered. Its stock is in the ledger.
type Item struct {
	SKU      string            `json:"sku"`
	Name     string            `json:"name"`
	Names    map[string]string `json:"names,omitempty"` // by language, e.g. "zh"
	Price    int64             `json:"price"`           // minor units of Currency
	Currency string            `json:"currency"`
	HoldFor  int64             `json:"hold_seconds,omitempty"` // 0 = the shop's default
	Late     []Late            `json:"late_policy"`            // tried in order; the end of the list is refund
	Version  int64             `json:"version"`
}

// State is where an order, a payment or a refund is in its life.
type State string

// The states of an order.
const (
	Held           State = "held"
	Paying         State = "paying"
	Closing        State = "closing" // the gateway is being asked to close; stock still held
	Expired        State = "expired"
	Cancelled      State = "cancelled"
	Paid           State = "paid"
	Fulfilled      State = "fulfilled"
	PartlyRefunded State = "partly_refunded"
	Refunding      State = "refunding" // late money on its way back
	Refunded       State = "refunded"
)

// The states of a payment attempt.
const (
	Waiting       State = "waiting"   // stored; starts when the attempt before it can't bring money any more
	Requested     State = "requested" // stored; the gateway has not answered yet
	Open          State = "open"      // the buyer can pay
	AttemptClosed State = "closed"
	AttemptPaid   State = "paid"
	Declined      State = "refused" // the gateway would not open it
)

// The states of a refund.
const (
	RefundRequested State = "requested"
	RefundAccepted  State = "accepted" // the gateway works on it
	RefundDone      State = "done"
	RefundRefused   State = "refused" // the gateway would not; no money moved
	RefundFailed    State = "failed"  // accepted, then no money moved or it came back
)

// MaxAttempts is how many attempts to pay, and MaxRefunds how many refunds, an
// order can have.
const (
	MaxAttempts = 20
	MaxRefunds  = 50
)

// Order is what a buyer ordered, and where that stands. Amounts are minor units
// of Currency.
type Order struct {
	ID          string            `json:"id"`
	Version     int64             `json:"version"`
	State       State             `json:"state"`
	Customer    string            `json:"customer,omitempty"`
	Reference   string            `json:"reference,omitempty"` // the shop's own number
	Currency    string            `json:"currency"`
	Total       int64             `json:"total"`
	Paid        int64             `json:"paid"`      // collected for the goods
	Refunding   int64             `json:"refunding"` // asked back, not yet done
	Refunded    int64             `json:"refunded"`
	Lines       []Line            `json:"lines"`
	Splits      []Split           `json:"splits,omitempty"`       // of the total; the rest is ours
	Payment     string            `json:"payment,omitempty"`      // the attempt that may still bring money, or that did
	NextPayment string            `json:"next_payment,omitempty"` // the attempt that waits for the end of that one
	Attempts    int               `json:"attempts"`
	Refunds     int               `json:"refunds"`
	Cancelling  bool              `json:"cancelling,omitempty"` // closing ends in cancelled, not in expired
	CreatedAt   Time              `json:"created_at"`
	ExpiresAt   Time              `json:"expires_at"`
	CapAt       Time              `json:"cap_at"` // the hold is never extended beyond
	PaidAt      Time              `json:"paid_at,omitzero"`
	FulfilledAt Time              `json:"fulfilled_at,omitzero"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Line is one SKU of an order.
type Line struct {
	SKU      string `json:"sku"`
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
	Price    int64  `json:"price"` // of one piece
	Late     []Late `json:"late_policy"`
	Sale     string `json:"sale,omitempty"` // that it is bought in
	// PerCustomer is the sale's limit, which the line counts against; 0 = none.
	PerCustomer int64 `json:"per_customer,omitempty"`
	Restocked   int64 `json:"restocked,omitempty"` // pieces that refunds put back on sale
	// Backordered: sold out of the budget, so there may be no piece yet.
	Backordered bool `json:"backordered,omitempty"`
}

// Payment is one attempt to collect an order's money through a gateway.
type Payment struct {
	ID          string `json:"id"`
	Version     int64  `json:"version"`
	Order       string `json:"order"`
	State       State  `json:"state"`
	Gateway     string `json:"gateway"`
	Method      string `json:"method"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Description string `json:"description,omitempty"`
	ReturnURL   string `json:"return_url,omitempty"`
	Payer       string `json:"payer,omitempty"`         // who pays, where the method must know
	Ref         string `json:"ref,omitempty"`           // the gateway's own id
	URL         string `json:"url,omitempty"`           // where the buyer pays, while open
	Secret      string `json:"client_secret,omitempty"` // what the buyer's page needs to pay in place
	Code        string `json:"code,omitempty"`          // the gateway's last word, for people
	CreatedAt   Time   `json:"created_at"`
	ExpiresAt   Time   `json:"expires_at"`
	Surplus     bool   `json:"surplus,omitempty"` // its money was not owed and goes back
}

// Refund is one repayment to the buyer.
type Refund struct {
	ID        string    `json:"id"`
	Version   int64     `json:"version"`
	Order     string    `json:"order"`
	Payment   string    `json:"payment"`
	State     State     `json:"state"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Reason    string    `json:"reason,omitempty"`
	Restock   []Restock `json:"restock,omitempty"`
	Splits    []Part    `json:"splits,omitempty"` // what accounts have given for it; the rest we have
	Late      bool      `json:"late,omitempty"`   // of money that bought no goods
	Ref       string    `json:"ref,omitempty"`
	Code      string    `json:"code,omitempty"`
	CreatedAt Time      `json:"created_at"`
}

// Restock puts pieces of a line back on sale.
type Restock struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Do is what a task asks of the gateway.
type Do string

const (
	DoCreate Do = "create"
	DoQuery  Do = "query"
	DoClose  Do = "close"
	DoRefund Do = "refund"
	DoLook   Do = "look"   // ask what became of a refund
	DoPayout Do = "payout" // send a payout's number
	DoTrace  Do = "trace"  // ask what became of it
	DoRecall Do = "recall" // ask to take it back
	DoNone   Do = "none"
)

// Task is work at a gateway that is still to be done, one for each payment and
// refund, under the same id. It is written with the state that needs it, so
// that a crash loses neither. Its version is the fencing number: a worker that
// lost its lease writes against an old version and has no effect.
type Task struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Order   string `json:"order"`
	Gateway string `json:"gateway"`
	Do      Do     `json:"do"`
	Due     Time   `json:"due,omitzero"`
	Tries   int    `json:"tries"` // unanswered so far
	Error   string `json:"error,omitempty"`
}

// Accounts of the ledger.
const (
	Supplier  ledger.Account = "@supplier"  // where stock comes from
	Shrinkage ledger.Account = "@shrinkage" // where lost stock goes
	Delivered ledger.Account = "@delivered" // what buyers have
	Promised  ledger.Account = "@promised"  // where backorder budget comes from
	Stock     ledger.Account = "stock"
	Reserve   ledger.Account = "backorder" // budget of pieces that may be sold before they are there
	Sold      ledger.Account = "sold"      // paid, not yet delivered
	Revenue   ledger.Account = "revenue"
)

// Clearing is the account of the money at a gateway.
func Clearing(gateway string) ledger.Account { return ledger.Account("@" + gateway) }

// RefundsDue is what an order's buyer must get back. It returns to zero.
func RefundsDue(order string) ledger.Account { return ledger.Account("refunds-due/" + order) }

// Pieces is the asset of a SKU.
func Pieces(sku string) ledger.Asset { return ledger.Asset("sku:" + sku) }

// HoldID names the hold of an order's line.
func HoldID(order string, line int) string { return fmt.Sprintf("%s-%d", order, line) }

// PaymentID names an order's n-th attempt, in the letters that every gateway takes.
func PaymentID(order string, n int) string { return fmt.Sprintf("%sp%02d", order, n) }

// RefundID names an order's n-th refund.
func RefundID(order string, n int) string { return fmt.Sprintf("%sr%02d", order, n) }
