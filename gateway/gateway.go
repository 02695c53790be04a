// Package gateway is the contract between Holdfast and a payment gateway.
//
// An adapter translates; it decides nothing. It keeps no state, starts no
// goroutine, never retries, and may be used from many goroutines at once. Our
// own numbers (Payment.ID, Refund.ID) are the idempotency keys on the wire, so
// that asking again is always safe and a new number is never needed to find
// out what became of an old one.
package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Outcome is what we know after a call that may have moved money.
type Outcome string

const (
	// Done: the gateway did it; Answer.Status (or RefundStatus) says what is now true.
	Done Outcome = "done"
	// Refused: final and without effect, said in an authentic answer.
	Refused Outcome = "refused"
	// Accepted: taken on, the result comes later by notification or query.
	Accepted Outcome = "accepted"
	// Unknown: anything else (timeout, 5xx, unreadable or unauthentic answer).
	// The caller keeps what it holds and asks again under the same number.
	Unknown Outcome = "unknown"
)

// Status is the gateway's own view of a payment.
type Status string

const (
	// Open: money can still arrive.
	Open Status = "open"
	// Paid: the money is ours. It never goes back to another status.
	Paid Status = "paid"
	// Closed: unpaid, and money can no longer arrive.
	Closed Status = "closed"
)

// RefundStatus is the gateway's own view of a refund.
type RefundStatus string

const (
	RefundPending RefundStatus = "pending"
	RefundDone    RefundStatus = "done"
	// RefundFailed: no money moved, or it came back to us after Done.
	RefundFailed RefundStatus = "failed"
)

// Payment is one attempt to collect money. It is stored with every field that
// goes on the wire before the first call, and repeated unchanged: gateways
// refuse a repeated number that has other parameters.
type Payment struct {
	ID          string // our number, [0-9a-z]{1,32}, the idempotency key
	Order       string // shown to the buyer and carried as metadata
	Method      string // one of Methods
	Amount      int64  // minor units of Currency, 1..2^53-1
	Currency    string // ISO 4217, upper case
	Description string
	Payer       string    // who pays, where the method must know (openid, IP address: see its adapter); else empty
	ReturnURL   string    // where the buyer's browser goes afterwards; proves nothing
	CreatedAt   time.Time // when the attempt was stored; zero means unknown
	ExpiresAt   time.Time // the attempt's deadline; the gateway's own expiry is set from it
	Ref         string    // the gateway's own id; empty before Create was answered
}

// Unfit is why a gateway would surely refuse a payment.
type Unfit struct {
	Field  string // the member of Payment, in lower case with underscores
	Detail string // for people
}

// Answer is what a gateway said of a payment.
type Answer struct {
	Outcome  Outcome
	Status   Status // set when Outcome is Done
	Ref      string // the gateway's own id, to be kept and passed back in Payment.Ref
	URL      string // where the buyer pays, while Open
	Secret   string // what the buyer's page needs to pay in place (Stripe client secret)
	Amount   int64  // captured minor units, when Paid
	Currency string // of Amount, upper case
	Code     string // the gateway's own code, for people
	Err      error  // why Unknown; never a reason to think that nothing happened
}

// Refund is one repayment, stored like a Payment before the first call.
type Refund struct {
	ID        string // our number, the idempotency key
	Payment   Payment
	Amount    int64 // minor units of Payment.Currency
	Reason    string
	CreatedAt time.Time
	Ref       string // the gateway's own id; empty before the first answer
}

// RefundAnswer is what a gateway said of a refund.
type RefundAnswer struct {
	Outcome Outcome
	Status  RefundStatus // set when Outcome is Done
	Ref     string
	Amount  int64 // minor units that the gateway says it repays
	Code    string
	Err     error
}

// Notification is one authentic message from a gateway. Authentic is not
// right: whether amount, currency and order match is decided by the caller.
type Notification struct {
	ID       string // the gateway's id of the message, the same on every retry
	Type     string // the gateway's own word
	Ignored  bool   // authentic, but of a kind that changes nothing here
	Payment  string // our number; empty when the message carries none or is about a payout
	Ref      string // the gateway's id of the payment; may be empty, and then says nothing
	Status   Status // empty when the message is about a refund
	Amount   int64  // minor units; captured for Paid, repaid for a refund
	Currency string // upper case
	Refund   string // our refund number; empty when the refund was not made by us
	RefundID string // the gateway's id of the refund
	Refunded RefundStatus
	Payout   string // our payout number; empty when the message is not about a payout
	PayoutID string // the gateway's id of the payout
	PaidOut  PayoutStatus
}

// Why a notification is not authentic. The caller answers 401 and does nothing.
var (
	ErrSignatureMissing = errors.New("signature missing")
	ErrSignatureInvalid = errors.New("signature invalid")
	ErrTimestamp        = errors.New("timestamp out of range")
	// ErrMalformed: authentic, but not of the published form.
	ErrMalformed = errors.New("malformed notification")
)

// Gateway is one way to take money. Every call has the context's deadline.
type Gateway interface {
	// Methods lists what Payment.Method may be; the first is the default.
	Methods() []string

	// Check says what is wrong with a payment that can be told without a call,
	// before anything of it is stored: Field names the member of Payment at
	// fault. nil = it may be tried.
	Check(p Payment) *Unfit

	// Create opens the payment at the gateway. Repeating it with the same
	// Payment returns the same payment. Done says Open (or already Paid or
	// Closed); Refused means that nothing exists there.
	Create(ctx context.Context, p Payment) Answer

	// Query asks for the present truth. Done says Open, Paid or Closed.
	// Refused means that the gateway knows no such payment.
	Query(ctx context.Context, p Payment) Answer

	// Close makes sure that money can no longer arrive, and is the only thing
	// that allows stock to be released while an attempt is open. Done says
	// Closed, or Paid when the money was faster. Anything less is Unknown.
	// Closing what is closed is Done and Closed.
	Close(ctx context.Context, p Payment) Answer

	// Refund repays part or all. Done says RefundPending, RefundDone or
	// RefundFailed; Refused means that it was not taken on and never will be.
	Refund(ctx context.Context, r Refund) RefundAnswer

	// QueryRefund asks what became of a refund. Refused means that the gateway
	// knows no such refund.
	QueryRefund(ctx context.Context, r Refund) RefundAnswer

	// Parse verifies a notification over its raw bytes and reads it. now is
	// the verifier's clock. The errors are those above, wrapped.
	Parse(header http.Header, body []byte, now time.Time) (Notification, error)

	// Acknowledge writes the reply that stops the gateway from sending again
	// (ok), or makes it send again (not ok).
	Acknowledge(w http.ResponseWriter, ok bool)
}

// Payer is the second, optional ability: to pay money out. A gateway that
// cannot is simply not a Payer.
type Payer interface {
	// CheckPayout is Check for a payout: what is wrong with it that can be told
	// without a call, before anything of it is stored. nil = it may be tried.
	CheckPayout(p Payout) *Unfit
	// Payout sends money under our number. Repeating it with the same Payout sends
	// nothing twice, as long as the gateway remembers the number. Refused means
	// that this call moved nothing and never will.
	Payout(ctx context.Context, p Payout) PayoutAnswer
	// QueryPayout asks what became of it. Refused means that the gateway
	// knows no such payout.
	QueryPayout(ctx context.Context, p Payout) PayoutAnswer
}

// Recaller is the third: a Payer that can take a payout back while its receiver
// has not yet confirmed it.
type Recaller interface {
	// RecallPayout asks for it. Accepted means that the gateway has taken the wish
	// on: what becomes of the payout only QueryPayout tells. Refused means that it
	// can't be taken back any more, and says nothing of what became of it.
	RecallPayout(ctx context.Context, p Payout) PayoutAnswer
}

// Payout is one sending of money, stored before the first call.
type Payout struct {
	ID          string // our number, the idempotency key
	Destination string // the receiver in the gateway's own terms
	Amount      int64  // minor units of Currency
	Currency    string // ISO 4217, upper case
	Description string
	CreatedAt   time.Time // when it was stored that its number is going to be sent; zero means unknown
	Ref         string    // the gateway's own id; empty before the first answer
}

// PayoutStatus is the gateway's own view of a payout.
type PayoutStatus string

const (
	PayoutPending  PayoutStatus = "pending"
	PayoutPaid     PayoutStatus = "paid"
	PayoutFailed   PayoutStatus = "failed"
	PayoutReturned PayoutStatus = "returned" // came back after it was paid
)

// PayoutAnswer is what a gateway said of a payout.
type PayoutAnswer struct {
	Outcome Outcome
	Status  PayoutStatus // set when Outcome is Done
	Ref     string
	Confirm string // what the receiver's app needs to agree (WeChat Pay's package_info), while PayoutPending
	Code    string
	Err     error
}
