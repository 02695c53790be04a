package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// peer is a real adapter with its real simulator, joined without a socket.
type peer struct {
	gateway gateway.Gateway
	ways    []PayInput // Method and Payer
	sim     interface {
		Deliver(ctx context.Context) int
		NextDelivery() (time.Time, bool)
	}
	visit     func(p Payment)       // the buyer opens the page, or scans the code
	pay       func(p Payment) error // the buyer pays
	bounce    func(f Refund)        // the gateway gives up a refund that it took on or made; nil = it never does
	calm      func()                // no more faults
	collected func() map[string]taken
}

// taken is what a gateway's books say of one payment.
type taken struct{ captured, refunded int64 }

// surroundings are what a peer is made in.
type surroundings struct {
	seed uint64
	now  func() time.Time
	hook http.Handler // takes the notifications
	down *atomic.Bool // the gateway can't be reached
}

// peers are the gateways, by name.
var peers = map[string]func(*testing.T, surroundings) peer{
	"alipay": newAlipayPeer, "wechatpay": newWechatpayPeer, "stripe": newStripePeer,
}

const (
	simAddress  = "http://localhost"
	hookAddress = "http://localhost/hook"
)

// wire brings a request to a handler in this process, unless it is down.
type wire struct {
	to   http.Handler
	down *atomic.Bool // nil = it never is
}

var errCut = errors.New("the connection was cut")

func (w wire) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		switch p := recover(); {
		case p == http.ErrAbortHandler:
			res, err = nil, errCut
		case p != nil:
			panic(p)
		}
	}()
	if w.down != nil && w.down.Load() {
		return nil, errCut
	}
	there := r.Clone(r.Context())
	if there.Host = r.Host; there.Host == "" {
		there.Host = r.URL.Host
	}
	if there.Body == nil {
		there.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	w.to.ServeHTTP(rec, there)
	res = rec.Result()
	res.Request = r
	return res, nil
}

func over(h http.Handler, down *atomic.Bool) *http.Client {
	return &http.Client{Transport: wire{h, down}}
}

func newAlipayPeer(t *testing.T, in surroundings) peer {
	sim, err := alipaysim.New(alipaysim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil)})
	if err != nil {
		t.Fatal(err)
	}
	sim.SetFaults(alipaysim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, GBKNotice: 0.3,
		LostAnswer: 0.1, Unavailable: 0.05, SystemError: 0.1, Unsigned: 0.05, ForgedAnswer: 0.1, Recoded: 0.05,
		PaidBeforeClose: 0.3, BalanceShort: 0.2, RefundLag: 10 * time.Second,
	})
	g, err := alipay.New(alipay.Options{
		AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID, PrivateKey: alipaysim.DefaultAppKey,
		PublicKey: alipaysim.DefaultPublicKey, BaseURL: simAddress + "/gateway.do", NotifyURL: hookAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	// What Alipay does not know of yet comes with the buyer, in his address.
	visit := func(p Payment) {
		if p.Method == "precreate" {
			_ = sim.Visit(p.ID) // it may be over
			return
		}
		sim.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, p.URL, nil))
	}
	return peer{
		gateway: g, sim: sim, ways: []PayInput{{Method: "page"}, {Method: "wap"}, {Method: "precreate"}}, visit: visit,
		pay: func(p Payment) error {
			if p.URL != "" {
				visit(p)
			}
			return sim.Pay(p.ID)
		},
		calm: func() { sim.SetFaults(alipaysim.Faults{}) },
		collected: func() map[string]taken {
			all := map[string]taken{}
			for _, tr := range sim.Books().Trades {
				all[tr.Number] = taken{tr.Captured, tr.Refunded}
			}
			return all
		},
	}
}

func newWechatpayPeer(t *testing.T, in surroundings) peer {
	sim := wechatpaysim.New(wechatpaysim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil)})
	// An abnormal refund ends where the merchant's people decide it, at WeChat Pay.
	sim.SetFaults(wechatpaysim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, ProbeNotice: 0.2, SkewedNotice: 0.1,
		LostAnswer: 0.1, ErrorAfterEffect: 0.05, Unavailable: 0.05, RateLimited: 0.05, UnsignedRefusal: 0.1, UnsignedAnswer: 0.05,
		ReencodedAnswer: 0.05, ProbeAnswer: 0.05, SkewedAnswer: 0.05, KeySwitch: 0.3,
		PaidBeforeClose: 0.3, CloseTooEarly: 0.2, UserPaying: 0.1, OldCodes: 0.3, Coupon: 0.3,
		RefundPending: 0.3, RefundClosed: 0.1, NotEnough: 0.2,
	})
	g, err := wechatpay.New(wechatpay.Options{
		MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MerchantSerial: wechatpaysim.MerchantSerial,
		MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), APIv3Key: wechatpaysim.APIv3Key,
		PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile),
		Certificates: [][]byte{wechatpaysim.KeyFile(wechatpaysim.CertificateFile)},
		NotifyURL:    hookAddress, BaseURL: simAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return peer{
		gateway: g, sim: sim, ways: []PayInput{{Method: "native"}, {Method: "h5", Payer: "203.0.113.7"}, {Method: "jsapi", Payer: "o-buyer"}},
		visit:  func(Payment) {},
		pay:    func(p Payment) error { return sim.Pay(p.ID) },
		bounce: func(f Refund) { _ = sim.CloseRefund(f.ID) }, // it may not have come
		calm:   func() { sim.SetFaults(wechatpaysim.Faults{}) },
		collected: func() map[string]taken {
			books, all := sim.Books(), map[string]taken{}
			if books.Fooled > 0 {
				t.Errorf("%d forged notifications or probes were acknowledged", books.Fooled)
			}
			for _, o := range books.Orders {
				all[o.OutTradeNo] = taken{o.Captured, o.Refunded}
			}
			return all
		},
	}
}

func newStripePeer(t *testing.T, in surroundings) peer {
	sim := stripesim.New(stripesim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil), WebhookURL: hookAddress})
	sim.SetFaults(stripesim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, TwoEvents: 0.2,
		LostAnswer: 0.1, Stored500: 0.1, Unavailable: 0.05, RateLimited: 0.05, KeyInUse: 0.05,
		PaidBeforeClose: 0.3, RefundPending: 0.3, SearchLag: time.Minute,
	})
	g, err := stripe.New(stripe.Options{
		SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: simAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return peer{
		gateway: g, sim: sim, ways: []PayInput{{Method: "checkout"}, {Method: "intent"}},
		visit:  func(Payment) {},
		pay:    func(p Payment) error { return payAtStripe(sim, p) },
		bounce: func(f Refund) { _ = sim.FailRefund(f.Ref) }, // it may not have come
		calm:   func() { sim.SetFaults(stripesim.Faults{}) },
		collected: func() map[string]taken {
			all := map[string]taken{}
			for _, p := range sim.Books().Payments {
				id := p.Metadata["payment_id"]
				all[id] = taken{all[id].captured + p.Captured, all[id].refunded + p.Refunded}
			}
			return all
		},
	}
}

// payAtStripe pays the first thing there that belongs to the attempt and lets
// itself be paid, whether we heard of it or not.
func payAtStripe(sim *stripesim.Sim, p Payment) error {
	err := fmt.Errorf("pay %s: stripe has no such thing", p.ID)
	books := sim.Books()
	for _, x := range books.Sessions {
		if x.Metadata["payment_id"] == p.ID && err != nil {
			err = sim.Pay(x.ID)
		}
	}
	for _, in := range books.Payments {
		if in.Metadata["payment_id"] == p.ID && in.SessionID == "" && err != nil {
			err = sim.Pay(in.ID)
		}
	}
	return err
}

// hookOf takes the notifications for h as its API does.
func hookOf(name string, h func() *Holdfast) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := h().Notify(r.Context(), name, r.Header, body); err != nil {
			http.Error(w, strings.ToUpper(err.Error()), http.StatusUnauthorized)
			return
		}
		h().Acknowledge(name, w, true)
	})
}
