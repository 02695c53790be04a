package stripe

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

const (
	methodCheckout = "checkout"
	methodIntent   = "intent"
)

// What our objects carry at Stripe, so that each can be matched to the row it
// came from. The PaymentIntent of a Checkout Session carries the same.
const (
	metaOrder   = "order_id"
	metaPayment = "payment_id"
	metaMethod  = "method"
	metaRefund  = "refund_id"
	metaReason  = "reason"
)

// Texts that Stripe would refuse for their length are cut, in characters.
const (
	maxMetadata    = 500
	maxDescription = 250
)

// A list is read in pages of maxPage objects and given up after maxListed.
const (
	maxPage   = 100
	maxListed = 1000
)

// clockSkew is how far our clock may be ahead of Stripe's when the time of
// creation is looked for.
const clockSkew = 5 * time.Minute

// kind is one of the two objects that stand for a payment. It translates; when
// to call and what to believe is the Gateway's to say.
type kind interface {
	create(ctx context.Context, p gateway.Payment, amount int64, key string) (state, error)
	get(ctx context.Context, ref string) (state, error)
	close(ctx context.Context, ref string) (state, error)
	// find returns the Ref of our number, or errAbsent when there is none.
	find(ctx context.Context, p gateway.Payment) (string, error)
}

// state is what an object says of its payment.
type state struct {
	payment  string // our number
	ref      string
	status   gateway.Status
	url      string
	secret   string
	intent   string // pi_…, where refunds go to; empty before the buyer tried
	amount   int64  // captured, minor units of currency
	currency string // upper case
	replayed bool   // what was true at the first call of this key, and may not be now
}

// answer is Done, unless the object is not the one that was asked for.
func answer(p gateway.Payment, what string, s state) gateway.Answer {
	if s.payment != p.ID {
		return unknown(p, what, fmt.Errorf("%w: %s is of payment %q", errUnreadable, s.ref, s.payment))
	}
	return gateway.Answer{
		Outcome: gateway.Done, Status: s.status, Ref: s.ref, URL: s.url, Secret: s.secret,
		Amount: s.amount, Currency: s.currency,
	}
}

func unknown(p gateway.Payment, what string, err error) gateway.Answer {
	return gateway.Answer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("stripe: %s payment %s: %w", what, p.ID, readable(err)),
	}
}

// replayed says that an answer is the one kept under its key.
func replayed(r *sdk.APIResponse) bool {
	return r != nil && r.Header.Get("Idempotent-Replayed") == "true"
}

// paid puts the captured amount into s.
func (s state) paid(amount int64, currency sdk.Currency) (state, error) {
	var ok bool
	s.status = gateway.Paid
	s.amount, s.currency, ok = fromWire(amount, string(currency))
	if !ok {
		return state{}, fmt.Errorf("%w: captured amount %d %s", errUnreadable, amount, currency)
	}
	return s, nil
}

func metadata(p gateway.Payment) map[string]string {
	return map[string]string{metaOrder: clip(p.Order, maxMetadata), metaPayment: p.ID, metaMethod: p.Method}
}

// description is what the buyer reads; it is never empty, since a line of a
// Checkout Session must have a name.
func description(p gateway.Payment) *string {
	text := p.Description
	if text == "" {
		text = p.Order
	}
	if text == "" {
		text = p.ID
	}
	return sdk.String(clip(text, maxDescription))
}

func clip(s string, characters int) string {
	if r := []rune(s); len(r) > characters {
		return string(r[:characters])
	}
	return s
}

// window is when an object was created, if ever, whose intent was stored then: its
// key is sent for 23 hours. Nil when that is not known.
func window(stored time.Time) *sdk.RangeQueryParams {
	if stored.IsZero() {
		return nil
	}
	return &sdk.RangeQueryParams{
		GreaterThanOrEqual: stored.Add(-clockSkew).Unix(),
		LesserThanOrEqual:  stored.Add(24 * time.Hour).Unix(),
	}
}

// first returns the first object of the list that matches. errAbsent means
// that the whole list was read.
func first[T any](ctx context.Context, list *sdk.V1List[T], match func(T) bool) (T, error) {
	var none T
	read := 0
	for v, err := range list.All(ctx) {
		if err != nil {
			return none, err
		}
		if match(v) {
			return v, nil
		}
		if read++; read >= maxListed {
			return none, fmt.Errorf("not among the first %d of the list", maxListed)
		}
	}
	if list.Meta().URL == "" {
		return none, fmt.Errorf("%w: not a list", errUnreadable)
	}
	return none, errAbsent
}
