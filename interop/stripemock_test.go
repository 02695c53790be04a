package interop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
)

// schema answers as stripe-mock does, which checks requests against Stripe's
// published OpenAPI and remembers nothing. It notes what it answered.
type schema struct {
	mock http.Handler

	mu   sync.Mutex
	said []string // "POST /v1/refunds 200"
}

func openSchema(t *testing.T) *schema {
	t.Helper()
	spec := try(server.LoadSpec(embedded.OpenAPISpec, "")).or(t)
	fixtures := try(server.LoadFixtures(embedded.OpenAPIFixtures, "")).or(t)
	stub := try(server.NewStubServer(fixtures, spec, false, false)).or(t)
	return &schema{mock: http.HandlerFunc(stub.HandleRequest)}
}

func (s *schema) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	s.mock.ServeHTTP(answer, r)
	s.mu.Lock()
	said := fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, answer.Code)
	if answer.Code != http.StatusOK {
		said += " " + answer.Body.String()
	}
	s.said = append(s.said, said)
	s.mu.Unlock()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// answered takes out what was answered since the last time.
func (s *schema) answered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

// TestStripesSchemaTakesEveryRequestOfTheAdapter asks only whether requests are
// well-formed. What the adapter makes of the examples that are answered, which
// are of other payments, is not asked.
func TestStripesSchemaTakesEveryRequestOfTheAdapter(t *testing.T) {
	judge := openSchema(t)
	g := try(stripe.New(stripe.Options{
		SecretKey: "sk_test_123", WebhookSecrets: []string{"whsec_123"}, BaseURL: serve(t, judge).String(),
	})).or(t)
	now, ctx := time.Now(), t.Context()
	checkout := gateway.Payment{
		ID: "p1", Order: "order 1", Method: "checkout", Amount: 8888, Currency: "EUR", Description: "茶 & Tee",
		ReturnURL: "https://shop.example/o/1", CreatedAt: now, ExpiresAt: now.Add(15 * time.Minute),
	}
	known := checkout
	known.Ref = "cs_test_1"
	intent := checkout
	intent.ID, intent.Method, intent.Currency, intent.Ref = "p2", "intent", "JPY", "pi_1"
	refund := gateway.Refund{ID: "r1", Payment: intent, Amount: 888, Reason: "broken", CreatedAt: now}
	sent := gateway.Refund{ID: "r1", Payment: intent, Amount: 888, CreatedAt: now, Ref: "re_1"}

	bank := gateway.Payout{ID: "o1", Destination: "ba_1Own", Amount: 888, Currency: "EUR", Description: "März", CreatedAt: now}
	seller, sentOut := bank, bank
	seller.Destination, sentOut.Ref = "acct_1Seller", "po_1"

	for _, c := range []struct {
		name string
		call func()
		want string // among what is asked for
	}{
		{"create a session", func() { g.Create(ctx, checkout) }, "POST /v1/checkout/sessions 200"},
		{"create an intent", func() { g.Create(ctx, intent) }, "POST /v1/payment_intents 200"},
		{"find a session", func() { g.Query(ctx, checkout) }, "GET /v1/checkout/sessions 200"},
		{"query a session", func() { g.Query(ctx, known) }, "GET /v1/checkout/sessions/cs_test_1 200"},
		{"query an intent", func() { g.Query(ctx, intent) }, "GET /v1/payment_intents/pi_1 200"},
		{"expire a session", func() { g.Close(ctx, known) }, "POST /v1/checkout/sessions/cs_test_1/expire 200"},
		{"cancel an intent", func() { g.Close(ctx, intent) }, "POST /v1/payment_intents/pi_1/cancel 200"},
		{"repay an intent", func() { g.Refund(ctx, refund) }, "POST /v1/refunds 200"},
		{"find a refund", func() { g.QueryRefund(ctx, refund) }, "GET /v1/refunds 200"},
		{"query a refund", func() { g.QueryRefund(ctx, sent) }, "GET /v1/refunds/re_1 200"},
		{"pay out to a bank", func() { g.Payout(ctx, bank) }, "POST /v1/payouts 200"},
		{"pay out to a seller", func() { g.Payout(ctx, seller) }, "POST /v1/transfers 200"},
		{"find a payout", func() { g.QueryPayout(ctx, bank) }, "GET /v1/payouts 200"},
		{"find a transfer", func() { g.QueryPayout(ctx, seller) }, "GET /v1/transfers 200"},
		{"query a payout", func() { g.QueryPayout(ctx, sentOut) }, "GET /v1/payouts/po_1 200"},
		{"query a transfer", func() { s := seller; s.Ref = "tr_1"; g.QueryPayout(ctx, s) }, "GET /v1/transfers/tr_1 200"},
		{"cancel a payout", func() { g.RecallPayout(ctx, sentOut) }, "POST /v1/payouts/po_1/cancel 200"},
		{"list a day", func() { _, _ = g.FetchStatement(ctx, now) }, "GET /v1/balance_transactions 200"},
	} {
		c.call()
		said := judge.answered()
		if !slices.Contains(said, c.want) {
			t.Errorf("%s: got %q, want %q among it", c.name, said, c.want)
		}
		for _, s := range said {
			if !strings.HasSuffix(s, " 200") {
				t.Errorf("%s: %s", c.name, s)
			}
		}
	}
}

func TestStripesSchemaRefusesWhatStripeDoesNotKnow(t *testing.T) {
	at := serve(t, openSchema(t))
	for _, body := range []string{"amount=1&currency=eur&colour=red", "currency=eur", "amount=much&currency=eur"} {
		r := try(http.NewRequest("POST", at.String()+"/v1/payment_intents", strings.NewReader(body))).or(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer sk_test_123")
		res := try(http.DefaultClient.Do(r)).or(t)
		if res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", body, res.StatusCode)
		}
	}
}
