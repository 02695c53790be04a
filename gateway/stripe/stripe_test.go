package stripe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

const webhookSecret = "whsec_of_the_test_0000000000000000"

func TestCheckoutKeepsTheContract(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness { return open(t, "checkout").Harness })
}

func TestIntentKeepsTheContract(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness { return open(t, "intent").Harness })
}

// bench is the adapter and the simulator on one clock.
type bench struct {
	gatewaytest.Harness
	sim *stripesim.Sim
}

func open(t *testing.T, method string) bench {
	t.Helper()
	clock := &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	sim := stripesim.New(stripesim.Config{WebhookSecrets: []string{webhookSecret}, Now: clock.Now, Seed: 1})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	// Without kept connections, one that is cut is not silently tried again.
	wire := &gatewaytest.Wire{Name: callOf, Next: &http.Transport{DisableKeepAlives: true}}
	options := stripe.Options{
		SecretKey:      stripesim.DefaultSecretKey,
		WebhookSecrets: []string{webhookSecret},
		BaseURL:        server.URL,
		HTTPClient:     &http.Client{Transport: wire},
		Now:            clock.Now,
	}
	b := bench{sim: sim}
	b.Harness = gatewaytest.Harness{
		Gateway: newGateway(t, options), Wire: wire,
		Method: method, Currency: "EUR", Amount: 1990,
		Now: clock.Now, Advance: clock.Advance,
		Pay:        func(p gateway.Payment) error { return sim.Pay(p.Ref) },
		Decline:    func(p gateway.Payment) error { return sim.Decline(p.Ref) },
		FailRefund: func(r gateway.Refund) error { return sim.FailRefund(r.Ref) },
		Books:      func(p gateway.Payment) gatewaytest.Books { return books(sim, p) },
		Unsigned: func(d gatewaytest.Delivery) gatewaytest.Delivery {
			d.Header = d.Header.Clone()
			d.Header.Del("Stripe-Signature")
			return d
		},
		Tolerance: 300 * time.Second,
	}
	options.WebhookSecrets = []string{"whsec_of_somebody_else_00000000000"}
	b.Stranger = newGateway(t, options)
	b.Notify = receiver(t, sim, b.Gateway)
	return b
}

func newGateway(t *testing.T, o stripe.Options) *stripe.Gateway {
	t.Helper()
	g, err := stripe.New(o)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return g
}

// receiver is the endpoint that the simulator's webhooks go to.
func receiver(t *testing.T, sim *stripesim.Sim, g gateway.Gateway) func(ok bool) []gatewaytest.Delivery {
	t.Helper()
	var mu sync.Mutex
	var got []gatewaytest.Delivery
	var acknowledge bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read notification: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, gatewaytest.Delivery{Header: r.Header.Clone(), Body: body})
		g.Acknowledge(w, acknowledge)
	}))
	t.Cleanup(server.Close)
	sim.SetWebhookURL(server.URL)
	return func(ok bool) []gatewaytest.Delivery {
		mu.Lock()
		acknowledge, got = ok, nil
		mu.Unlock()
		sim.Deliver(t.Context())
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func callOf(r *http.Request) gatewaytest.Call {
	post := r.Method == http.MethodPost
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/payouts") || strings.HasPrefix(path, "/v1/transfers"):
		return payoutCallOf(post, path)
	case post && (strings.HasSuffix(path, "/expire") || strings.HasSuffix(path, "/cancel")):
		return gatewaytest.CallClose
	case post && path == "/v1/refunds":
		return gatewaytest.CallRefund
	case post:
		return gatewaytest.CallCreate
	case strings.HasPrefix(path, "/v1/refunds"):
		return gatewaytest.CallQueryRefund
	}
	return gatewaytest.CallQuery
}

func payoutCallOf(post bool, path string) gatewaytest.Call {
	switch {
	case post && strings.HasSuffix(path, "/cancel"):
		return gatewaytest.CallRecall
	case post:
		return gatewaytest.CallPayout
	}
	return gatewaytest.CallQueryPayout
}

func books(sim *stripesim.Sim, p gateway.Payment) gatewaytest.Books {
	var b gatewaytest.Books
	for _, each := range sim.Books().Payments {
		if each.Metadata["payment_id"] != p.ID || each.Captured == 0 {
			continue
		}
		b.Payments++
		b.Captured += each.Captured
		b.Refunded += each.Refunded + each.RefundPending
	}
	return b
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
