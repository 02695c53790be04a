package stripe_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
)

func TestSignatureVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/stripe_webhook.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name      string
			Secrets   []string
			Signature string `json:"stripe_signature"`
			Body      string
			Now       int64
			Accept    bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 17 {
		t.Errorf("got %d cases, want 17", len(file.Cases))
	}
	for _, c := range file.Cases {
		g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: c.Secrets})
		n, err := g.Parse(http.Header{"Stripe-Signature": {c.Signature}}, []byte(c.Body), time.Unix(c.Now, 0))
		if (err == nil) != c.Accept {
			t.Errorf("%s: got %v, want accepted %v", c.Name, err, c.Accept)
		}
		if c.Accept && (n.ID != "evt_1" || n.Status != gateway.Paid || n.Amount != 990 || n.Currency != "CNY" || n.Ref != "pi_1") {
			t.Errorf("%s: got %+v", c.Name, n)
		}
	}
}

func TestEventsAreTranslated(t *testing.T) {
	const session = `{"id":"cs_1","payment_status":%q,"amount_total":1990,"currency":"eur","metadata":{"payment_id":"pay1","method":"checkout"}}`
	const alone = `{"id":"pi_1","amount":1990,"amount_received":1980,"currency":"eur","metadata":{"payment_id":"pay1","method":"intent"}}`
	const ofSession = `{"id":"pi_1","amount":1990,"amount_received":1990,"currency":"eur","metadata":{"payment_id":"pay1","method":"checkout"}}`
	const refund = `{"id":"re_1","amount":500,"currency":"eur","status":%q,"payment_intent":"pi_1","metadata":{"payment_id":"pay1","refund_id":"ref1"}}`
	paid := gateway.Notification{Payment: "pay1", Ref: "cs_1", Status: gateway.Paid, Amount: 1990, Currency: "EUR"}
	closed := gateway.Notification{Payment: "pay1", Ref: "cs_1", Status: gateway.Closed}
	refunded := func(s gateway.RefundStatus) gateway.Notification {
		return gateway.Notification{Payment: "pay1", Refund: "ref1", RefundID: "re_1", Refunded: s, Amount: 500, Currency: "EUR"}
	}
	foreign := `{"id":"re_2","amount":500,"currency":"eur","status":"succeeded","payment_intent":{"id":"pi_1"},"metadata":null}`
	for _, c := range []struct {
		event, object string
		want          gateway.Notification
	}{
		{"checkout.session.completed", fmt.Sprintf(session, "paid"), paid},
		{"checkout.session.completed", fmt.Sprintf(session, "unpaid"), gateway.Notification{Ignored: true, Payment: "pay1", Ref: "cs_1"}},
		{"checkout.session.completed", fmt.Sprintf(session, "no_payment_required"), gateway.Notification{Ignored: true, Payment: "pay1", Ref: "cs_1"}},
		{"checkout.session.async_payment_succeeded", fmt.Sprintf(session, "paid"), paid},
		{"checkout.session.async_payment_failed", fmt.Sprintf(session, "unpaid"), closed},
		{"checkout.session.expired", fmt.Sprintf(session, "unpaid"), closed},
		{"payment_intent.succeeded", alone, gateway.Notification{Payment: "pay1", Ref: "pi_1", Status: gateway.Paid, Amount: 1980, Currency: "EUR"}},
		{"payment_intent.succeeded", ofSession, gateway.Notification{Payment: "pay1", Status: gateway.Paid, Amount: 1990, Currency: "EUR"}},
		{"payment_intent.canceled", alone, gateway.Notification{Payment: "pay1", Ref: "pi_1", Status: gateway.Closed}},
		{"payment_intent.canceled", ofSession, gateway.Notification{Ignored: true, Payment: "pay1"}},
		{"payment_intent.payment_failed", alone, gateway.Notification{Ignored: true}},
		{"refund.created", fmt.Sprintf(refund, "pending"), refunded(gateway.RefundPending)},
		{"refund.updated", fmt.Sprintf(refund, "requires_action"), refunded(gateway.RefundPending)},
		{"refund.updated", fmt.Sprintf(refund, "succeeded"), refunded(gateway.RefundDone)},
		{"refund.updated", fmt.Sprintf(refund, "canceled"), refunded(gateway.RefundFailed)},
		{"refund.failed", fmt.Sprintf(refund, "failed"), refunded(gateway.RefundFailed)},
		{"refund.created", foreign, gateway.Notification{Ref: "pi_1", RefundID: "re_2", Refunded: gateway.RefundDone, Amount: 500, Currency: "EUR"}},
		{"charge.refunded", `{"id":"ch_1"}`, gateway.Notification{Ignored: true}},
		{"invoice.of.the.future", `"anything"`, gateway.Notification{Ignored: true}},
	} {
		body := fmt.Sprintf(`{"id":"evt_1","type":%q,"api_version":"1999-01-01.stone","data":{"object":%s}}`, c.event, c.object)
		c.want.ID, c.want.Type = "evt_1", c.event
		got, err := parseSigned(t, body)
		if err != nil || got != c.want {
			t.Errorf("%s %s:\n got %+v, %v\nwant %+v", c.event, c.object, got, err, c.want)
		}
	}
}

func TestAuthenticNonsenseIsMalformed(t *testing.T) {
	for _, body := range []string{
		``, `{`, `[]`, `{}`, `{"id":"evt_1"}`, `{"type":"payment_intent.succeeded"}`,
		`{"id":"evt_1","type":"payment_intent.succeeded"}`,
		`{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{}}}`,
		`{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":5}}}`,
		`{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":-5,"currency":"eur"}}}`,
		`{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":5.5,"currency":"eur"}}}`,
		`{"id":"evt_1","type":"refund.updated","data":{"object":{"id":"re_1","amount":5,"currency":"eur","status":"lost"}}}`,
	} {
		if n, err := parseSigned(t, body); !errors.Is(err, gateway.ErrMalformed) {
			t.Errorf("%s: got %+v, %v, want %v", body, n, err, gateway.ErrMalformed)
		}
	}
}

func TestSignatureHeadersAreBounded(t *testing.T) {
	body, at := `{"id":"evt_1","type":"x"}`, time.Unix(1767323046, 0)
	good := sign(webhookSecret, body, at)
	stamp, hash, _ := strings.Cut(good, ",")
	wrong := ",v1=" + strings.Repeat("00", sha256.Size)
	for _, c := range []struct {
		name, header string
		want         error
	}{
		{"the tenth signature", stamp + strings.Repeat(wrong, 9) + "," + hash, nil},
		{"the eleventh signature", stamp + strings.Repeat(wrong, 10) + "," + hash, gateway.ErrSignatureInvalid},
		{"a long header", good + ",x=" + strings.Repeat("x", 5000), gateway.ErrSignatureInvalid},
		{"two timestamps", good + "," + stamp, gateway.ErrSignatureInvalid},
		{"no hex", stamp + ",v1=zz", gateway.ErrSignatureInvalid},
		{"half a signature", good[:len(good)-32], gateway.ErrSignatureInvalid},
	} {
		g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}})
		_, err := g.Parse(http.Header{"Stripe-Signature": {c.header}}, []byte(body), at)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestAcknowledgeAnswersByStatus(t *testing.T) {
	g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}})
	for ok, want := range map[bool]int{true: 200, false: 500} {
		w := httptest.NewRecorder()
		g.Acknowledge(w, ok)
		if w.Code != want {
			t.Errorf("acknowledge %v: got %d, want %d", ok, w.Code, want)
		}
	}
}

func parseSigned(t *testing.T, body string) (gateway.Notification, error) {
	t.Helper()
	at := time.Unix(1767323046, 0)
	g := newGateway(t, stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}})
	return g.Parse(http.Header{"Stripe-Signature": {sign(webhookSecret, body, at)}}, []byte(body), at)
}

func sign(secret, body string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
