package stripe

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

// A session's own expiry must lie 30 minutes to 24 hours after Stripe created
// it. We count from the stored creation of the attempt, so that a repeated
// call says the same; the margin covers clocks that differ and a first call
// that came late. Shorter deadlines are kept by closing the session.
const (
	minSession    = 30 * time.Minute
	maxSession    = 24 * time.Hour
	sessionMargin = 10 * time.Minute
)

// checkout is a payment on Stripe's page: a Checkout Session.
type checkout struct{ client *sdk.Client }

func (c checkout) create(ctx context.Context, p gateway.Payment, amount int64, key string) (state, error) {
	params := &sdk.CheckoutSessionCreateParams{
		Mode: sdk.String(string(sdk.CheckoutSessionModePayment)),
		LineItems: []*sdk.CheckoutSessionCreateLineItemParams{{
			Quantity: sdk.Int64(1),
			PriceData: &sdk.CheckoutSessionCreateLineItemPriceDataParams{
				Currency:    wireCurrency(p.Currency),
				UnitAmount:  sdk.Int64(amount),
				ProductData: &sdk.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: description(p)},
			},
		}},
		SuccessURL: sdk.String(p.ReturnURL),
		CancelURL:  sdk.String(p.ReturnURL),
		ExpiresAt:  sdk.Int64(sessionExpiry(p).Unix()),
		Metadata:   metadata(p),
		PaymentIntentData: &sdk.CheckoutSessionCreatePaymentIntentDataParams{
			Description: description(p),
			Metadata:    metadata(p),
		},
	}
	params.SetIdempotencyKey(key)
	s, err := c.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return state{}, err
	}
	return readSession(s)
}

func (c checkout) get(ctx context.Context, ref string) (state, error) {
	params := &sdk.CheckoutSessionRetrieveParams{}
	params.AddExpand("payment_intent")
	s, err := c.client.V1CheckoutSessions.Retrieve(ctx, ref, params)
	if err != nil {
		return state{}, err
	}
	return readSession(s)
}

func (c checkout) close(ctx context.Context, ref string) (state, error) {
	s, err := c.client.V1CheckoutSessions.Expire(ctx, ref, &sdk.CheckoutSessionExpireParams{})
	if err != nil {
		return state{}, err
	}
	return readSession(s)
}

func (c checkout) find(ctx context.Context, p gateway.Payment) (string, error) {
	params := &sdk.CheckoutSessionListParams{CreatedRange: window(p.CreatedAt)}
	params.Limit = sdk.Int64(maxPage)
	s, err := first(ctx, c.client.V1CheckoutSessions.List(ctx, params), func(s *sdk.CheckoutSession) bool {
		return s.Metadata[metaPayment] == p.ID
	})
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

func sessionExpiry(p gateway.Payment) time.Time {
	at := p.ExpiresAt
	if least := p.CreatedAt.Add(minSession + sessionMargin); at.Before(least) {
		at = least
	}
	if most := p.CreatedAt.Add(maxSession - sessionMargin); at.After(most) {
		at = most
	}
	return at
}

func readSession(s *sdk.CheckoutSession) (state, error) {
	st := state{payment: s.Metadata[metaPayment], ref: s.ID, replayed: replayed(s.LastResponse)}
	if s.PaymentIntent != nil {
		st.intent = s.PaymentIntent.ID
	}
	switch {
	case s.Status == sdk.CheckoutSessionStatusOpen:
		st.status, st.url = gateway.Open, s.URL
		return st, nil
	case s.Status == sdk.CheckoutSessionStatusExpired:
		st.status = gateway.Closed
		return st, nil
	case s.Status == sdk.CheckoutSessionStatusComplete && s.PaymentStatus == sdk.CheckoutSessionPaymentStatusPaid:
		return st.paid(s.AmountTotal, s.Currency)
	case s.Status == sdk.CheckoutSessionStatusComplete && s.PaymentStatus == sdk.CheckoutSessionPaymentStatusUnpaid:
		st.status = gateway.Open
		if failed(s.PaymentIntent) {
			st.status = gateway.Closed
		}
		return st, nil
	}
	return state{}, fmt.Errorf("%w: session %s is %q, %q", errUnreadable, s.ID, s.Status, s.PaymentStatus)
}

// failed says that a slow method (a bank debit) ended without money after the
// session was complete. The buyer has no page left to try again on.
func failed(pi *sdk.PaymentIntent) bool {
	if pi == nil {
		return false
	}
	return pi.Status == sdk.PaymentIntentStatusCanceled || pi.Status == sdk.PaymentIntentStatusRequiresPaymentMethod
}
