package stripe

import (
	"context"
	"fmt"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

// intent is a payment on the shop's own page: a PaymentIntent.
type intent struct{ client *sdk.Client }

func (i intent) create(ctx context.Context, p gateway.Payment, amount int64, key string) (state, error) {
	params := &sdk.PaymentIntentCreateParams{
		Amount:                  sdk.Int64(amount),
		Currency:                wireCurrency(p.Currency),
		Description:             description(p),
		AutomaticPaymentMethods: &sdk.PaymentIntentCreateAutomaticPaymentMethodsParams{Enabled: sdk.Bool(true)},
		Metadata:                metadata(p),
	}
	params.SetIdempotencyKey(key)
	pi, err := i.client.V1PaymentIntents.Create(ctx, params)
	if err != nil {
		return state{}, err
	}
	return readIntent(pi)
}

func (i intent) get(ctx context.Context, ref string) (state, error) {
	pi, err := i.client.V1PaymentIntents.Retrieve(ctx, ref, &sdk.PaymentIntentRetrieveParams{})
	if err != nil {
		return state{}, err
	}
	return readIntent(pi)
}

func (i intent) close(ctx context.Context, ref string) (state, error) {
	pi, err := i.client.V1PaymentIntents.Cancel(ctx, ref, &sdk.PaymentIntentCancelParams{})
	if err != nil {
		return state{}, err
	}
	return readIntent(pi)
}

func (i intent) find(ctx context.Context, p gateway.Payment) (string, error) {
	params := &sdk.PaymentIntentListParams{CreatedRange: window(p.CreatedAt)}
	params.Limit = sdk.Int64(maxPage)
	pi, err := first(ctx, i.client.V1PaymentIntents.List(ctx, params), func(pi *sdk.PaymentIntent) bool {
		return pi.Metadata[metaPayment] == p.ID
	})
	if err != nil {
		return "", err
	}
	return pi.ID, nil
}

func readIntent(pi *sdk.PaymentIntent) (state, error) {
	st := state{payment: pi.Metadata[metaPayment], ref: pi.ID, intent: pi.ID, replayed: replayed(pi.LastResponse)}
	switch pi.Status {
	case sdk.PaymentIntentStatusSucceeded:
		return st.paid(pi.AmountReceived, pi.Currency)
	case sdk.PaymentIntentStatusCanceled:
		st.status = gateway.Closed
		return st, nil
	case "":
		return state{}, fmt.Errorf("%w: payment intent %s has no status", errUnreadable, pi.ID)
	}
	st.status, st.secret = gateway.Open, pi.ClientSecret
	return st, nil
}
