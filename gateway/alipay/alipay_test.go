package alipay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
)

var methods = []string{"page", "wap", "app", "precreate"}

func TestEveryMethodKeepsTheContract(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness { return open(t, method).Harness })
		})
	}
}

// bench is the adapter and the simulator on one clock.
type bench struct {
	gatewaytest.Harness
	clock   *clock
	sim     *alipaysim.Sim
	options alipay.Options
}

func open(t *testing.T, method string) bench {
	t.Helper()
	return openWith(t, method, alipaysim.Config{}, nil)
}

// openWith lets change edit the adapter's options.
func openWith(t *testing.T, method string, cfg alipaysim.Config, change func(*alipay.Options)) bench {
	t.Helper()
	clock := &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	cfg.Now, cfg.Seed = clock.theirs, 1
	box := &receiver{}
	hook := httptest.NewServer(box)
	t.Cleanup(hook.Close)
	cfg.AppURL = hook.URL
	sim, err := alipaysim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	// Without kept connections, one that is cut is not silently tried again.
	wire := &gatewaytest.Wire{Name: callOf, Next: &http.Transport{DisableKeepAlives: true}}
	o := alipay.Options{
		AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID,
		PrivateKey: alipaysim.DefaultAppKey, PublicKey: alipaysim.DefaultPublicKey,
		BaseURL: server.URL + "/gateway.do", NotifyURL: hook.URL,
		HTTPClient: &http.Client{Transport: wire}, Now: clock.Now,
	}
	if change != nil {
		change(&o)
	}
	b := bench{clock: clock, sim: sim, options: o}
	b.Harness = gatewaytest.Harness{
		Gateway: newGateway(t, o), Wire: wire,
		Method: method, Currency: "CNY", Amount: 1990,
		Now: clock.Now, Advance: clock.Advance,
		Local:   method != "precreate",
		Visit:   b.visit,
		Pay:     b.pay,
		Decline: func(p gateway.Payment) error { return sim.Decline(p.ID) },
		Books:   func(p gateway.Payment) gatewaytest.Books { return books(sim, p) },
		Notify:  func(ok bool) []gatewaytest.Delivery { return box.collect(t, sim, ok) },
		Unsigned: func(d gatewaytest.Delivery) gatewaytest.Delivery {
			form, err := url.ParseQuery(string(d.Body))
			if err != nil {
				t.Fatal(err)
			}
			form.Del("sign")
			d.Body = []byte(form.Encode())
			return d
		},
		Lacks: map[gatewaytest.Ability]string{
			gatewaytest.FailRefund: "a refund has moved the money when it is answered",
			gatewaytest.Freshness:  "a notification is sent again for 25 hours, and nothing signed tells its age",
		},
	}
	box.gateway = b.Gateway
	o.PublicKey, o.Certificates = strangersKey(t), nil
	b.Stranger = newGateway(t, o)
	return b
}

func newGateway(t *testing.T, o alipay.Options) *alipay.Gateway {
	t.Helper()
	g, err := alipay.New(o)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return g
}

// visit brings the buyer to where the payment sends him. Where that is made
// without a call it is made again here, as it was when the payment was new.
func (b bench) visit(p gateway.Payment) error {
	if p.Method == "precreate" || b.sim.Visit(p.ID) == nil {
		return b.sim.Visit(p.ID)
	}
	o := b.options
	o.Now = func() time.Time { return p.CreatedAt }
	g, err := alipay.New(o)
	if err != nil {
		return err
	}
	a := g.Create(context.Background(), p)
	address := a.URL
	if address == "" {
		address = strings.TrimSuffix(o.BaseURL, "/gateway.do") + "/app?" + a.Secret
	}
	resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequest(http.MethodGet, address, nil))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("alipay answers the buyer with %s", resp.Status)
	}
	return nil
}

func (b bench) pay(p gateway.Payment) error {
	if err := b.visit(p); err != nil {
		return err
	}
	return b.sim.Pay(p.ID)
}

// receiver is the endpoint that the simulator's notifications go to.
type receiver struct {
	gateway gateway.Gateway

	mu          sync.Mutex
	got         []gatewaytest.Delivery
	acknowledge bool
}

func (b *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.got = append(b.got, gatewaytest.Delivery{Header: r.Header.Clone(), Body: body})
	}
	b.gateway.Acknowledge(w, b.acknowledge)
}

func (b *receiver) collect(t *testing.T, sim *alipaysim.Sim, ok bool) []gatewaytest.Delivery {
	t.Helper()
	b.mu.Lock()
	b.acknowledge, b.got = ok, nil
	b.mu.Unlock()
	sim.Deliver(t.Context())
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got
}

func callOf(r *http.Request) gatewaytest.Call {
	switch formOf(r).Get("method") {
	case "alipay.trade.precreate":
		return gatewaytest.CallCreate
	case "alipay.trade.query":
		return gatewaytest.CallQuery
	case "alipay.trade.close":
		return gatewaytest.CallClose
	case "alipay.trade.refund":
		return gatewaytest.CallRefund
	case "alipay.trade.fastpay.refund.query":
		return gatewaytest.CallQueryRefund
	case "alipay.fund.trans.uni.transfer":
		return gatewaytest.CallPayout
	case "alipay.fund.trans.common.query":
		return gatewaytest.CallQueryPayout
	}
	return ""
}

// formOf reads a copy of the request's body.
func formOf(r *http.Request) url.Values {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(body)
	form, _ := url.ParseQuery(string(text))
	return form
}

func books(sim *alipaysim.Sim, p gateway.Payment) (b gatewaytest.Books) {
	for _, t := range sim.Books().Trades {
		if t.Number == p.ID && t.Captured > 0 {
			b.Payments++
			b.Captured += t.Captured
			b.Refunded += t.Refunded
		}
	}
	return b
}

type clock struct {
	mu     sync.Mutex
	now    time.Time
	behind time.Duration // how far Alipay's is behind
}

func (c *clock) theirs() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(-c.behind)
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
