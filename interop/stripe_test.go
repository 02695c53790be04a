package interop

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// stripeBench is stripe-go, pointed at the simulator.
type stripeBench struct {
	*testing.T
	buyer
	sdk  *stripe.Client
	api  stripe.Backend // of sdk
	sim  *stripesim.Sim
	mail *mailbox
}

func openStripe(t *testing.T) stripeBench {
	mail := newMailbox(t)
	sim := stripesim.New(stripesim.Config{WebhookURL: mail.url})
	at := serve(t, sim)
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(at.String()), MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		HTTPClient: &http.Client{Timeout: callTimeout}, LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return stripeBench{t, newBuyer(t, at), stripe.NewClient(stripesim.DefaultSecretKey, stripe.WithBackends(backends)), backends.API, sim, mail}
}

func (b stripeBench) session(key string) *stripe.CheckoutSession {
	p := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String("payment"), SuccessURL: stripe.String("https://shop.example/ok"),
		CancelURL: stripe.String("https://shop.example/cart"), ClientReferenceID: stripe.String(key),
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(2),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String("eur"), UnitAmount: stripe.Int64(4444),
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String("茶 & Tee")},
			},
		}},
	}
	p.SetIdempotencyKey(key)
	return try(b.sdk.V1CheckoutSessions.Create(b.Context(), p)).or(b.T)
}

// refusedBy is the code of the error that Stripe answered.
func refusedBy(err error) (stripe.ErrorType, stripe.ErrorCode) {
	var e *stripe.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	return e.Type, e.Code
}

func TestStripeGoPaysAndRepaysACheckout(t *testing.T) {
	b, ctx := openStripe(t), t.Context()
	made := b.session("order-1")
	if again := b.session("order-1"); again.ID != made.ID {
		t.Errorf("got session %s for the same key, want %s", again.ID, made.ID)
	}
	b.pay(made.URL)

	query := &stripe.CheckoutSessionRetrieveParams{}
	query.AddExpand("payment_intent.latest_charge")
	seen := try(b.sdk.V1CheckoutSessions.Retrieve(ctx, made.ID, query)).or(t)
	in := seen.PaymentIntent
	if seen.PaymentStatus != stripe.CheckoutSessionPaymentStatusPaid || in.AmountReceived != 8888 || !in.LatestCharge.Paid {
		t.Fatalf("got %s with %+v", seen.PaymentStatus, in)
	}
	_, err := b.sdk.V1CheckoutSessions.Expire(ctx, made.ID, nil)
	if typ, _ := refusedBy(err); typ != stripe.ErrorTypeInvalidRequest {
		t.Errorf("expire what is paid: got %v, want an invalid request", err)
	}

	part := try(b.sdk.V1Refunds.Create(ctx, &stripe.RefundCreateParams{PaymentIntent: &in.ID, Amount: stripe.Int64(888)})).or(t)
	if read := try(b.sdk.V1Refunds.Retrieve(ctx, part.ID, nil)).or(t); read.Amount != 888 || read.Status != stripe.RefundStatusSucceeded {
		t.Errorf("got refund %+v", read)
	}
	_, err = b.sdk.V1Refunds.Create(ctx, &stripe.RefundCreateParams{PaymentIntent: &in.ID, Amount: stripe.Int64(8001)})
	if typ, _ := refusedBy(err); typ != stripe.ErrorTypeInvalidRequest {
		t.Errorf("repay more than is left: got %v, want an invalid request", err)
	}
	sum := int64(0)
	for txn, err := range b.sdk.V1BalanceTransactions.List(ctx, &stripe.BalanceTransactionListParams{}).All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		sum += txn.Amount
	}
	if sum != 8000 {
		t.Errorf("got %d in the balance transactions, want 8000", sum)
	}
}

func TestStripeGoClosesWhatIsUnpaid(t *testing.T) {
	b, ctx := openStripe(t), t.Context()
	made := b.session("order-1")
	gone := try(b.sdk.V1CheckoutSessions.Expire(ctx, made.ID, nil)).or(t)
	if gone.Status != stripe.CheckoutSessionStatusExpired {
		t.Errorf("got %s, want expired", gone.Status)
	}
	if _, page := b.visit(made.URL); payable(page) {
		t.Error("what is expired can be paid")
	}

	in := try(b.sdk.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(1000), Currency: stripe.String("jpy"),
	})).or(t)
	in = try(b.sdk.V1PaymentIntents.Cancel(ctx, in.ID, nil)).or(t)
	if in.Status != stripe.PaymentIntentStatusCanceled {
		t.Errorf("got %s, want canceled", in.Status)
	}
	_, err := b.sdk.V1PaymentIntents.Confirm(ctx, in.ID, &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa")})
	if _, code := refusedBy(err); code != stripe.ErrorCodePaymentIntentUnexpectedState {
		t.Errorf("confirm what is canceled: got %v", err)
	}
}

func TestStripeGoBelievesTheNotices(t *testing.T) {
	b := openStripe(t)
	made := b.session("order-1")
	b.pay(made.URL)
	in := try(b.sdk.V1CheckoutSessions.Retrieve(t.Context(), made.ID, nil)).or(t).PaymentIntent
	try(b.sdk.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: &in.ID, Amount: stripe.Int64(888)})).or(t)

	types := map[stripe.EventType]bool{}
	for _, n := range b.mail.collect(t, b.sim) {
		believe(t, n, func(r *http.Request) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			e, err := webhook.ConstructEvent(body, r.Header.Get("Stripe-Signature"), stripesim.DefaultWebhookSecret)
			types[e.Type] = true
			return err
		})
	}
	for _, want := range []stripe.EventType{"checkout.session.completed", "payment_intent.succeeded", "refund.created"} {
		if !types[want] {
			t.Errorf("no notice of %s among %v", want, types)
		}
	}
}
