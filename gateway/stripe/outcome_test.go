package stripe_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
)

func TestWhatStripeRefusesForGoodIsRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		error  string
		want   gateway.Outcome
		code   string
	}{
		{402, `"type":"card_error","code":"card_declined","decline_code":"lost_card"`, gateway.Refused, "lost_card"},
		{400, `"type":"invalid_request_error","code":"amount_too_small"`, gateway.Refused, "amount_too_small"},
		{400, `"type":"invalid_request_error"`, gateway.Refused, "http_400"},
		{404, `"type":"invalid_request_error","code":"resource_missing"`, gateway.Refused, "resource_missing"},
		{400, `"type":"invalid_request_error","code":"payment_intent_unexpected_state"`, gateway.Unknown, "payment_intent_unexpected_state"},
		{400, `"type":"idempotency_error"`, gateway.Unknown, "http_400"},
		{400, `"type":"api_error"`, gateway.Unknown, "http_400"},
		{409, `"type":"idempotency_error","code":"idempotency_key_in_use"`, gateway.Unknown, "idempotency_key_in_use"},
		{409, `"type":"invalid_request_error","code":"lock_timeout"`, gateway.Unknown, "lock_timeout"},
		{429, `"type":"invalid_request_error","code":"rate_limit"`, gateway.Unknown, "rate_limit"},
		{424, `"type":"invalid_request_error"`, gateway.Unknown, "http_424"},
		{500, `"type":"api_error"`, gateway.Unknown, "http_500"},
	} {
		b := open(t, "intent")
		b.Wire.Once(gatewaytest.CallCreate, gatewaytest.Answers(c.status, `{"error":{`+c.error+`}}`))
		a := b.Gateway.Create(t.Context(), b.payment("pay1"))
		if a.Outcome != c.want || a.Code != c.code {
			t.Errorf("%d %s: got %s %q, want %s %q", c.status, c.error, a.Outcome, a.Code, c.want, c.code)
		}
	}
}

func TestAWrongKeyIsAnAlarmAndNotARefusal(t *testing.T) {
	b := open(t, "intent")
	p := b.created(t, "pay1")
	for _, c := range []struct {
		status int
		body   string
	}{
		{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided"}}`},
		{403, `{"error":{"type":"invalid_request_error","code":"account_invalid","message":"no"}}`},
	} {
		b.Wire.Every(gatewaytest.Answers(c.status, c.body))
		for what, a := range map[string]gateway.Answer{
			"create": b.Gateway.Create(t.Context(), b.payment("pay2")),
			"query":  b.Gateway.Query(t.Context(), p),
			"close":  b.Gateway.Close(t.Context(), p),
		} {
			if a.Outcome != gateway.Unknown || !strings.Contains(fmt.Sprint(a.Err), strconv.Itoa(c.status)) {
				t.Errorf("%d: %s: got %s (%v), want unknown and the status", c.status, what, a.Outcome, a.Err)
			}
		}
	}
}

func TestAnotherPaymentsObjectIsNoAnswer(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		p, other := b.paid(t, "pay1"), b.paid(t, "pay2")
		p.Ref = other.Ref
		if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s %s, want unknown", method, a.Outcome, a.Status)
		}
		r := b.refund(other, "ref1", 500)
		r.Ref = b.Gateway.Refund(t.Context(), b.refund(other, "ref2", 500)).Ref
		if a := b.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%s: refund: got %s %s, want unknown", method, a.Outcome, a.Status)
		}
	}
}

func TestStatesWithoutAMeaningAreUnknown(t *testing.T) {
	const metadata = `"metadata":{"payment_id":"pay1","refund_id":"ref1"},"currency":"eur"`
	for _, c := range []struct{ method, body string }{
		{"checkout", `{"id":"cs_1","status":"paused",` + metadata + `}`},
		{"checkout", `{"id":"cs_1","status":"complete","payment_status":"later",` + metadata + `}`},
		{"checkout", `{"id":"cs_1","status":"complete","payment_status":"paid","amount_total":-1,` + metadata + `}`},
		{"intent", `{"id":"pi_1",` + metadata + `}`},
		{"intent", `{"id":"pi_1","status":"succeeded","amount_received":-1,` + metadata + `}`},
	} {
		b := open(t, c.method)
		p := b.payment("pay1")
		p.Ref = "x_1"
		b.Wire.Every(gatewaytest.Answers(200, c.body))
		if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s %s, want unknown", c.body, a.Outcome, a.Status)
		}
	}
	b := open(t, "intent")
	r := b.refund(b.payment("pay1"), "ref1", 500)
	r.Ref = "re_1"
	for _, body := range []string{`{"id":"re_1","status":"lost",` + metadata + `}`, `{"id":"re_1","status":"succeeded","amount":-1,` + metadata + `}`} {
		b.Wire.Every(gatewaytest.Answers(200, body))
		if a := b.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s %s, want unknown", body, a.Outcome, a.Status)
		}
	}
}

func TestACloseThatLeftItOpenIsUnknown(t *testing.T) {
	b := open(t, "intent")
	p := b.created(t, "pay1")
	b.Wire.Once(gatewaytest.CallClose, gatewaytest.Answers(200, `{"id":"pi_1","status":"requires_action","metadata":{"payment_id":"pay1"}}`))
	if a := b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown || a.Err == nil {
		t.Errorf("got %s %s (%v), want unknown", a.Outcome, a.Status, a.Err)
	}
}

// A refused create is no proof that an earlier one, whose answer was lost, made
// nothing.
func TestClosingLooksForAPaymentEvenWhenCreatingItIsRefused(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		p := b.payment("pay1")
		b.Wire.Once(gatewaytest.CallCreate, gatewaytest.Lost)
		b.Gateway.Create(t.Context(), p)
		ref := b.Gateway.Query(t.Context(), p).Ref
		b.Wire.Once(gatewaytest.CallCreate, gatewaytest.Answers(400, `{"error":{"type":"invalid_request_error"}}`))
		if a := b.Gateway.Close(t.Context(), p); a.Status != gateway.Closed {
			t.Errorf("%s: got %s %s, want closed", method, a.Outcome, a.Status)
		}
		if p.Ref = ref; b.Pay(p) == nil {
			t.Errorf("%s: the buyer paid what was closed", method)
		}
	}
}

func TestAKeyUsedWithOtherParametersIsResolvedByReading(t *testing.T) {
	b := open(t, "intent")
	p := b.created(t, "pay1")
	changed := p
	changed.Ref, changed.Description = "", "More tea"
	if a := b.Gateway.Create(t.Context(), changed); a.Outcome != gateway.Done || a.Ref != p.Ref {
		t.Errorf("got %s %s (%v), want done %s", a.Outcome, a.Ref, a.Err, p.Ref)
	}
}

func TestAnEndlessAnswerIsUnknown(t *testing.T) {
	b := open(t, "intent")
	p := b.created(t, "pay1")
	const body = `{"id":"pi_1","status":"canceled","metadata":{"payment_id":"pay1"}}`
	b.Wire.Every(gatewaytest.Answers(200, body+strings.Repeat(" ", 5<<20)))
	if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
		t.Errorf("got %s %s, want unknown", a.Outcome, a.Status)
	}
}

func TestTheSecretKeyFollowsNoRedirect(t *testing.T) {
	visits := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	b := open(t, "intent")
	g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}, BaseURL: here.URL, Now: b.Now})
	if a := g.Create(t.Context(), b.payment("pay1")); a.Outcome != gateway.Unknown {
		t.Errorf("got %s, want unknown", a.Outcome)
	}
	if visits != 0 {
		t.Errorf("%d requests followed", visits)
	}
}

func TestErrorsHoldNoSecrets(t *testing.T) {
	b := open(t, "intent")
	p := b.paid(t, "pay1")
	b.Wire.Once(gatewaytest.CallQuery, gatewaytest.Unreachable)
	a := b.Gateway.Close(t.Context(), p) // stripe's error holds the whole intent
	if a.Outcome != gateway.Unknown || a.Err == nil || strings.Contains(a.Err.Error(), "_secret_") {
		t.Errorf("got %s %v, want unknown and no secret", a.Outcome, a.Err)
	}
	if !strings.Contains(a.Err.Error(), "pay1") || !strings.Contains(a.Err.Error(), "payment_intent_unexpected_state") {
		t.Errorf("got %v, want the payment and the code", a.Err)
	}

	const hidden = "hidden"
	for _, f := range []gatewaytest.Fault{
		gatewaytest.Answers(200, "<html>"+hidden), gatewaytest.Answers(502, `{"x":"`+hidden+`"}`), gatewaytest.Answers(502, hidden),
	} {
		b.Wire.Every(f)
		if a := b.Gateway.Query(t.Context(), p); a.Err == nil || strings.Contains(a.Err.Error(), hidden) {
			t.Errorf("got %v, want an error without the body", a.Err)
		}
	}
}

// A list that goes on is no proof that something is not there.
func TestAListTooLongToReadIsUnknown(t *testing.T) {
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages++
		var data []string
		for i := range 100 {
			data = append(data, fmt.Sprintf(`{"id":"pi_%d_%d","metadata":{}}`, pages, i))
		}
		fmt.Fprintf(w, `{"object":"list","url":"/v1/payment_intents","has_more":true,"data":[%s]}`, strings.Join(data, ","))
	}))
	defer server.Close()
	b := open(t, "intent")
	g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}, BaseURL: server.URL, Now: b.Now})
	if a := g.Query(t.Context(), b.payment("pay1")); a.Outcome != gateway.Unknown {
		t.Errorf("got %s, want unknown", a.Outcome)
	}
	if pages != 10 {
		t.Errorf("read %d pages, want 10", pages)
	}
}
