package stripesim_test

import (
	"errors"
	"testing"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// sdk is Stripe's own client, pointed at the simulator.
func (b *bench) sdk() *stripe.Client {
	config := &stripe.BackendConfig{
		URL: stripe.String(b.url), MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	}
	backends := &stripe.Backends{API: stripe.GetBackendWithConfig(stripe.APIBackend, config)}
	return stripe.NewClient(stripesim.DefaultSecretKey, stripe.WithBackends(backends))
}

func sessionParams(key string) *stripe.CheckoutSessionCreateParams {
	p := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String("payment"), SuccessURL: stripe.String("https://shop.example/ok"),
		CancelURL: stripe.String("https://shop.example/cart"), ClientReferenceID: stripe.String("order-1"),
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(2),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String("usd"), UnitAmount: stripe.Int64(500),
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String("Tee & mug")},
			},
		}},
		PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{Metadata: map[string]string{"payment_id": "p1"}},
	}
	p.AddMetadata("payment_id", "p1")
	p.SetIdempotencyKey(key)
	return p
}

func TestStripesOwnClientPaysAndRefundsACheckout(t *testing.T) {
	b := newBench(t)
	sc, ctx := b.sdk(), t.Context()
	made, err := sc.V1CheckoutSessions.Create(ctx, sessionParams("k1"))
	if err != nil || made.Status != stripe.CheckoutSessionStatusOpen || made.AmountTotal != 1000 || made.PaymentIntent != nil {
		t.Fatalf("got %+v %v", made, err)
	}
	again, err := sc.V1CheckoutSessions.Create(ctx, sessionParams("k1"))
	if err != nil || again.ID != made.ID || again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %+v %v, want the same session", again, err)
	}
	b.must(b.sim.Pay(made.ID))
	retrieve := &stripe.CheckoutSessionRetrieveParams{}
	retrieve.AddExpand("payment_intent")
	seen, err := sc.V1CheckoutSessions.Retrieve(ctx, made.ID, retrieve)
	if err != nil || seen.PaymentStatus != stripe.CheckoutSessionPaymentStatusPaid || seen.PaymentIntent.AmountReceived != 1000 {
		t.Fatalf("got %+v %v", seen, err)
	}
	_, err = sc.V1CheckoutSessions.Expire(ctx, made.ID, nil)
	if e := (*stripe.Error)(nil); !errors.As(err, &e) || e.HTTPStatusCode != 400 || e.Type != stripe.ErrorTypeInvalidRequest {
		t.Errorf("got %v, want an invalid request", err)
	}
	refund, err := sc.V1Refunds.Create(ctx, &stripe.RefundCreateParams{PaymentIntent: stripe.String(seen.PaymentIntent.ID), Amount: stripe.Int64(400)})
	if err != nil || refund.Status != stripe.RefundStatusSucceeded || refund.Amount != 400 {
		t.Errorf("got %+v %v", refund, err)
	}
	found := 0
	for re, err := range sc.V1Refunds.List(ctx, &stripe.RefundListParams{PaymentIntent: stripe.String(seen.PaymentIntent.ID)}).All(ctx) {
		if found++; err != nil || re.ID != refund.ID {
			t.Errorf("got %+v %v", re, err)
		}
	}
	if found != 1 {
		t.Errorf("got %d refunds, want 1", found)
	}
}

func TestStripesOwnClientCancelsAnIntent(t *testing.T) {
	b := newBench(t)
	sc, ctx := b.sdk(), t.Context()
	params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1000), Currency: stripe.String("usd"),
		AutomaticPaymentMethods: &stripe.PaymentIntentCreateAutomaticPaymentMethodsParams{Enabled: stripe.Bool(true)}}
	params.AddMetadata("payment_id", "p1")
	in, err := sc.V1PaymentIntents.Create(ctx, params)
	if err != nil || in.ClientSecret == "" {
		t.Fatalf("got %+v %v", in, err)
	}
	search := &stripe.PaymentIntentSearchParams{SearchParams: stripe.SearchParams{Query: "metadata['payment_id']:'p1'"}}
	found := 0
	for each, err := range sc.V1PaymentIntents.Search(ctx, search).All(ctx) {
		if found++; err != nil || each.ID != in.ID {
			t.Errorf("got %+v %v", each, err)
		}
	}
	if found != 1 {
		t.Errorf("got %d intents, want 1", found)
	}
	_, err = sc.V1PaymentIntents.Confirm(ctx, in.ID, &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_chargeDeclined")})
	if e := (*stripe.Error)(nil); !errors.As(err, &e) || e.Type != stripe.ErrorTypeCard || e.DeclineCode != "generic_decline" || e.PaymentIntent.ID != in.ID {
		t.Errorf("got %v, want a card error", err)
	}
	if in, err = sc.V1PaymentIntents.Cancel(ctx, in.ID, nil); err != nil || in.Status != stripe.PaymentIntentStatusCanceled {
		t.Errorf("got %+v %v", in, err)
	}
	_, err = sc.V1PaymentIntents.Cancel(ctx, in.ID, nil)
	if e := (*stripe.Error)(nil); !errors.As(err, &e) || e.Code != stripe.ErrorCodePaymentIntentUnexpectedState || e.PaymentIntent.Status != stripe.PaymentIntentStatusCanceled {
		t.Errorf("got %v, want an unexpected state", err)
	}
}

func TestStripesOwnClientReadsEveryNotice(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.must(b.sim.Pay(id))
	b.refund(b.sim.Books().Payments[0].ID)
	seen := 0
	for _, n := range b.deliver() {
		e, err := webhook.ConstructEventWithOptions(n.Body, n.Signature, stripesim.DefaultWebhookSecret, webhook.ConstructEventOptions{IgnoreTolerance: true})
		if err != nil || string(e.Type) != n.Type || e.ID != n.ID || e.Created != b.clock.Now().Unix() {
			t.Errorf("%s: got %+v %v", n.Type, e, err)
		}
		seen++
	}
	if seen != 6 {
		t.Errorf("got %d notices, want 6", seen)
	}
	for e, err := range b.sdk().V1Events.List(t.Context(), &stripe.EventListParams{DeliverySuccess: stripe.Bool(true)}).All(t.Context()) {
		if seen--; err != nil || e.APIVersion != "2026-08-26.dahlia" {
			t.Errorf("got %+v %v", e, err)
		}
	}
	if seen != 0 {
		t.Errorf("the list has %d events fewer", seen)
	}
	for txn, err := range b.sdk().V1BalanceTransactions.List(t.Context(), &stripe.BalanceTransactionListParams{Type: stripe.String("charge")}).All(t.Context()) {
		if err != nil || txn.Net != txn.Amount-txn.Fee || txn.Fee == 0 {
			t.Errorf("got %+v %v", txn, err)
		}
	}
}
