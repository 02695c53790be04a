package wechatpay_test

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
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

var methods = []string{"native", "jsapi", "h5", "app"}

// payers are who pays, where a method must know.
var payers = map[string]string{"jsapi": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o", "h5": "203.0.113.7"}

func TestEveryMethodKeepsTheContract(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness { return open(t, method).Harness })
		})
	}
}

func TestByPlatformCertificateTheContractIsKept(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness {
		onlyCertificate := func(o *wechatpay.Options) { o.PublicKeyID, o.PublicKey = "", nil }
		return openWith(t, "native", wechatpaysim.Config{ByCert: true}, onlyCertificate).Harness
	})
}

// bench is the adapter and the simulator on one clock.
type bench struct {
	gatewaytest.Harness
	sim       *wechatpaysim.Sim
	options   wechatpay.Options
	notifyURL string
}

func open(t *testing.T, method string) bench {
	t.Helper()
	return openWith(t, method, wechatpaysim.Config{}, func(*wechatpay.Options) {})
}

func openWith(t *testing.T, method string, cfg wechatpaysim.Config, change func(*wechatpay.Options)) bench {
	t.Helper()
	clock := &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	cfg.Now, cfg.Seed = clock.Now, 1
	sim := wechatpaysim.New(cfg)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	// Without kept connections, one that is cut is not silently tried again.
	wire := &gatewaytest.Wire{Name: callOf, Next: &http.Transport{DisableKeepAlives: true}}
	receiver := &receiver{t: t, sim: sim}
	hook := httptest.NewServer(receiver)
	t.Cleanup(hook.Close)
	b := bench{sim: sim, notifyURL: hook.URL, options: wechatpay.Options{
		MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MobileAppID: wechatpaysim.MobileAppID,
		MerchantSerial: wechatpaysim.MerchantSerial, MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile),
		APIv3Key: wechatpaysim.APIv3Key, PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile),
		Certificates:  [][]byte{wechatpaysim.KeyFile(wechatpaysim.CertificateFile)},
		TransferScene: "1005", TransferReports: []wechatpay.TransferReport{{Type: "岗位类型", Content: "主播"}, {Type: "报酬说明", Content: "三月"}},
		NotifyURL: hook.URL, BaseURL: server.URL, HTTPClient: &http.Client{Transport: wire}, Now: clock.Now,
	}}
	change(&b.options)
	b.Harness = gatewaytest.Harness{
		Gateway: newGateway(t, b.options), Stranger: newGateway(t, strange(b.options)), Wire: wire,
		Method: method, Currency: "CNY", Amount: 1990, Payer: payers[method],
		Now: clock.Now, Advance: clock.Advance,
		Pay:        func(p gateway.Payment) error { return sim.Pay(p.ID) },
		Decline:    func(p gateway.Payment) error { return sim.Decline(p.ID) },
		FailRefund: func(r gateway.Refund) error { return sim.CloseRefund(r.ID) },
		Books:      func(p gateway.Payment) gatewaytest.Books { return books(sim, p) },
		Unsigned: func(d gatewaytest.Delivery) gatewaytest.Delivery {
			d.Header = d.Header.Clone()
			d.Header.Del("Wechatpay-Signature")
			return d
		},
		Tolerance: 300 * time.Second,
	}
	receiver.gateway = b.Gateway
	b.Notify = receiver.notify
	return b
}

// strange trusts another key under the ids of the simulator's.
func strange(o wechatpay.Options) wechatpay.Options {
	if o.PublicKeyID == "" {
		o.Certificates = [][]byte{wechatpaysim.KeyFile(wechatpaysim.NextCertificateFile)}
		return o
	}
	o.PublicKey, o.Certificates = ownPublicKey, nil
	return o
}

func newGateway(t *testing.T, o wechatpay.Options) *wechatpay.Gateway {
	t.Helper()
	g, err := wechatpay.New(o)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return g
}

// receiver is the endpoint that the simulator's notifications go to.
type receiver struct {
	t       *testing.T
	sim     *wechatpaysim.Sim
	gateway gateway.Gateway

	mu          sync.Mutex
	got         []gatewaytest.Delivery
	acknowledge bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Errorf("read notification: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, gatewaytest.Delivery{Header: req.Header.Clone(), Body: body})
	r.gateway.Acknowledge(w, r.acknowledge)
}

func (r *receiver) notify(ok bool) []gatewaytest.Delivery {
	r.mu.Lock()
	r.acknowledge, r.got = ok, nil
	r.mu.Unlock()
	r.sim.Deliver(r.t.Context())
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func callOf(r *http.Request) gatewaytest.Call {
	post := r.Method == http.MethodPost
	switch path := r.URL.Path; {
	case post && strings.HasSuffix(path, "/close"):
		return gatewaytest.CallClose
	case post && path == "/v3/refund/domestic/refunds":
		return gatewaytest.CallRefund
	case post && strings.HasSuffix(path, "/cancel"):
		return gatewaytest.CallRecall
	case post && strings.HasPrefix(path, "/v3/fund-app/"):
		return gatewaytest.CallPayout
	case strings.HasPrefix(path, "/v3/fund-app/"):
		return gatewaytest.CallQueryPayout
	case post:
		return gatewaytest.CallCreate
	case strings.HasPrefix(path, "/v3/refund/"):
		return gatewaytest.CallQueryRefund
	}
	return gatewaytest.CallQuery
}

func books(sim *wechatpaysim.Sim, p gateway.Payment) gatewaytest.Books {
	var b gatewaytest.Books
	for _, o := range sim.Books().Orders {
		if o.OutTradeNo != p.ID || o.Captured == 0 {
			continue
		}
		b.Payments++
		b.Captured += o.Captured
		b.Refunded += o.Refunded + o.RefundPending
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
