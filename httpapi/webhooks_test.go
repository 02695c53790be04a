package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// stripeShop is a shop that takes money through a simulated Stripe.
type stripeShop struct {
	*shop
	sim   *stripesim.Sim
	clock time.Time // the simulator's
	mail  chan notice
}

// notice is a notification as it was sent.
type notice struct {
	signature string
	body      []byte
}

func openStripeShop(t *testing.T) *stripeShop {
	t.Helper()
	s := &stripeShop{clock: time.Now(), mail: make(chan notice, 16)}
	s.sim = stripesim.New(stripesim.Config{Now: func() time.Time { return s.clock }})
	wire := httptest.NewServer(s.sim)
	t.Cleanup(wire.Close)
	g, err := stripe.New(stripe.Options{
		SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: wire.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.shop = openShopWith(t, httpapi.Options{}, holdfast.Options{Gateways: map[string]gateway.Gateway{"stripe": g}})
	box := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mail <- notice{r.Header.Get("Stripe-Signature"), body}
	}))
	t.Cleanup(box.Close)
	s.sim.SetWebhookURL(box.URL)
	return s
}

// paid makes an order, lets its buyer pay, and gives back what Stripe says of it.
func (s *stripeShop) paid() (o orderMade, n notice) {
	s.t.Helper()
	o = s.order(oneTee)
	p := s.do(http.MethodPost, "/v1/orders/"+o.ID+"/payments", `{"return_url":"https://shop.example/back"}`).want(201, "")
	if err := s.sim.Pay(p.str("ref")); err != nil {
		s.t.Fatal(err)
	}
	for s.sim.Deliver(s.t.Context()) > 0 {
	}
	for {
		select {
		case n = <-s.mail:
			if bytes.Contains(n.body, []byte("checkout.session.completed")) {
				return o, n
			}
		default:
			s.t.Fatal("Stripe sent nothing")
		}
	}
}

func (s *stripeShop) notify(n notice) answer {
	s.t.Helper()
	return s.send(http.MethodPost, "/webhooks/stripe", string(n.body), "Stripe-Signature: "+n.signature, "Content-Type: application/json; charset=utf-8")
}

func (s *stripeShop) state(id string) string {
	s.t.Helper()
	return s.do(http.MethodGet, "/v1/orders/"+id, "").want(200, "").str("state")
}

func TestOnlyStripesOwnBytesMoveAnything(t *testing.T) {
	s := openStripeShop(t)
	o, n := s.paid()
	flipped := bytes.Clone(n.body)
	flipped[len(flipped)/2] ^= 1
	var tree any
	if err := json.Unmarshal(n.body, &tree); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	s.send(http.MethodPost, "/webhooks/stripe", string(n.body)).want(401, "signature_missing")
	for _, bad := range []notice{
		{n.signature, flipped}, {n.signature, again}, {n.signature, append(bytes.Clone(n.body), '\n')},
		{strings.Replace(n.signature, "v1=", "v0=", 1), n.body},
	} {
		if a := s.notify(bad); a.status != 401 {
			t.Errorf("got %d %s, want 401", a.status, a.body)
		}
	}
	if got := s.state(o.ID); got != "paying" {
		t.Errorf("got order %s, want paying", got)
	}
	s.notify(n).want(200, "")
	if got := s.state(o.ID); got != "paid" {
		t.Errorf("got order %s, want paid", got)
	}
	before := s.do(http.MethodGet, "/v1/orders/"+o.ID, "")
	s.notify(n).want(200, "")
	if after := s.do(http.MethodGet, "/v1/orders/"+o.ID, ""); !bytes.Equal(before.body, after.body) {
		t.Errorf("got %s, want %s", after.body, before.body)
	}
}

func TestOldAndFutureNotificationsAreRefused(t *testing.T) {
	s := openStripeShop(t)
	for _, skew := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
		s.clock = time.Now().Add(skew)
		o, n := s.paid()
		s.notify(n).want(401, "timestamp_out_of_range")
		if got := s.state(o.ID); got != "paying" {
			t.Errorf("got order %s, want paying", got)
		}
	}
}

func TestAuthenticButWrongNotificationIsTakenAndMovesNothing(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	payment := s.do(http.MethodPost, "/v1/orders/"+o.ID+"/payments", "{}").want(201, "").str("id")
	note := func(id, payment string, amount int64, currency string) string {
		b, err := json.Marshal(gateway.Notification{ID: id, Type: "paid", Payment: payment, Ref: "ref_" + payment, Status: gateway.Paid, Amount: amount, Currency: currency})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for i, body := range []string{note("n1", payment, 1499, "EUR"), note("n2", payment, 1500, "USD"), note("n3", "nobody", 1500, "EUR")} {
		a := s.send(http.MethodPost, "/webhooks/till", body, "Signature: good")
		if a.status != 200 || string(a.body) != "thank you" {
			t.Errorf("case %d: got %d %s", i, a.status, a.body)
		}
	}
	if got := s.do(http.MethodGet, "/v1/orders/"+o.ID, "").str("state"); got != "paying" {
		t.Errorf("got order %s, want paying", got)
	}
	s.send(http.MethodPost, "/webhooks/till", note("n4", payment, 1500, "EUR"), "Signature: good").want(200, "")
	if got := s.do(http.MethodGet, "/v1/orders/"+o.ID, "").str("state"); got != "paid" {
		t.Errorf("got order %s, want paid", got)
	}
}

func TestEveryFaultOfANotificationHasItsAnswer(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{gateway.ErrSignatureMissing, 401, "signature_missing"},
		{gateway.ErrSignatureInvalid, 401, "signature_invalid"},
		{gateway.ErrTimestamp, 401, "timestamp_out_of_range"},
		{gateway.ErrMalformed, 400, "malformed_notification"},
		{io.ErrUnexpectedEOF, 503, "notification_not_processed"},
	} {
		s.gateway.breaks(fmt.Errorf("till: %w", c.err))
		a := s.send(http.MethodPost, "/webhooks/till", "{}").want(c.status, c.code)
		if c.status == 503 && a.header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	s.gateway.breaks(nil)
	s.send(http.MethodPost, "/webhooks/nobody", "{}").want(404, "not_found")
	s.send(http.MethodPost, "/webhooks/till", strings.Repeat("a", 256<<10+1), "Signature: good").want(413, "body_too_large")
	s.send(http.MethodPost, "/webhooks/till", strings.Repeat("a", 256<<10), "Signature: good").want(400, "malformed_notification")
	s.send(http.MethodGet, "/webhooks/till", "").want(405, "method_not_allowed")
}
