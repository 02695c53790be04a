package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// openWechatpayShop is holdfast serve, taking money through the sandbox's
// WeChat Pay.
func openWechatpayShop(t *testing.T) *sandboxShop {
	t.Helper()
	var where struct {
		Wechatpay struct {
			API, MchID, AppID, Serial string
			PrivateKey                string `json:"private_key"`
			APIv3Key                  string `json:"apiv3_key"`
			PublicKeyID               string `json:"public_key_id"`
			PublicKey                 string `json:"public_key"`
			Certificate               string
		}
	}
	runSandbox(t, &where, "--addr", "", "--alipay-addr", "", "--wechatpay-addr", "127.0.0.1:0")
	w := where.Wechatpay
	// The port of serve is not known before it listens, so notifications come by
	// way of a door.
	var shop atomic.Pointer[url.URL]
	door := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(shop.Load()) }})
	t.Cleanup(door.Close)
	p := start(t, []string{"HOLDFAST_WECHATPAY_APIV3_KEY=" + w.APIv3Key}, "--db", newStore(t), "--addr", "127.0.0.1:0", "--open",
		"--wechatpay-mchid", w.MchID, "--wechatpay-appid", w.AppID, "--wechatpay-serial", w.Serial,
		"--wechatpay-key-file", download(t, w.PrivateKey), "--wechatpay-public-key-id", w.PublicKeyID,
		"--wechatpay-public-key-file", download(t, w.PublicKey), "--wechatpay-certificate-file", download(t, w.Certificate),
		"--wechatpay-transfer-scene", "1005", "--wechatpay-transfer-report", "岗位类型=主播", "--wechatpay-transfer-report", "报酬说明=三月",
		"--wechatpay-base-url", w.API, "--wechatpay-notify-url", door.URL+"/webhooks/wechatpay")
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	shop.Store(u)
	s := &sandboxShop{process: p, t: t, shopper: shopper{url: p.url, name: "wechatpay-buyer"}, sim: w.API}
	s.post("/v1/items", `{"sku":"cup","name":"茶杯","price":1990,"currency":"CNY","stock":10}`, nil)
	return s
}

func TestAnOrderIsPaidAndRefundedThroughTheSandboxsWechatPay(t *testing.T) {
	s := openWechatpayShop(t)
	var order, refund struct{ ID string }
	s.post("/v1/orders", `{"lines":[{"sku":"cup","quantity":1}]}`, &order)
	var payment struct{ ID, URL string }
	s.post("/v1/orders/"+order.ID+"/payments", `{"method":"native"}`, &payment)
	if !strings.HasPrefix(payment.URL, "weixin://wxpay/bizpayurl?pr=") {
		t.Fatalf("the code says %q", payment.URL)
	}
	browse(t, s.sim+"/scan?code="+url.QueryEscape(payment.URL)) // what the phone does with it
	s.becomes(order.ID, "paid")
	s.post("/v1/orders/"+order.ID+"/refunds", `{"amount":990}`, &refund)
	s.becomes(order.ID, "partly_refunded")
	s.post("/v1/orders/"+order.ID+"/refunds", `{}`, nil)
	s.becomes(order.ID, "refunded")

	var books wechatpaysim.Books
	s.books(&books)
	if len(books.Orders) != 1 || books.Fooled != 0 {
		t.Fatalf("the gateway's books say %+v", books)
	}
	o := books.Orders[0]
	if o.OutTradeNo != payment.ID || o.Captured != 1990 || o.Refunded != 1990 || len(o.Refunds) != 2 || o.Refunds[0].OutRefundNo != refund.ID {
		t.Errorf("the gateway's books say %+v", o)
	}
}

// The receiver confirms on his phone, with what the payout says.
func TestMoneyIsPaidOutThroughTheSandboxsWechatPay(t *testing.T) {
	s := openWechatpayShop(t)
	path := "/v1/payouts/" + s.payout("oUpF8uMuAJO_M2pxb1Q9zNjWeS6o:张三")
	p := s.until(path, "something to confirm it with", func(p looked) bool { return p.Confirm != "" })
	res, err := http.Get(s.sim + "/transfer?package=" + url.QueryEscape(p.Confirm))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the phone knows nothing of %q: %v %v", p.Confirm, res, err)
	}
	res.Body.Close()
	if res, err = http.PostForm(res.Request.URL.String(), url.Values{"action": {"confirm"}}); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	s.reaches(path, "paid")
}

// Within WeChat the buyer is known by his openid, on a phone's browser by his
// address; a method that needs one says so before anything is stored. Each of
// these is one buyer changing his mind: the attempt before is closed first.
func TestWhoPaysIsToldToWechatPayWhereItMustKnow(t *testing.T) {
	s := openWechatpayShop(t)
	var order struct{ ID string }
	s.post("/v1/orders", `{"lines":[{"sku":"cup","quantity":1}]}`, &order)
	path := "/v1/orders/" + order.ID + "/payments"
	for _, body := range []string{`{"method":"jsapi"}`, `{"method":"h5"}`} {
		if a := s.shopper.post(t.Context(), path, body); a == nil || a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.answer), "payer") {
			t.Errorf("%s: got %+v, want it refused for want of a payer", body, a)
		}
	}
	for _, body := range []string{`{"method":"jsapi","payer":"oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}`, `{"method":"h5","payer":"203.0.113.7"}`} {
		var payment struct{ State, Payer string }
		s.post(path, body, &payment)
		if payment.State != "open" || !strings.Contains(body, payment.Payer) || payment.Payer == "" {
			t.Errorf("%s: got %+v, want it open", body, payment)
		}
	}
}

func TestHalfAnAccountAtWechatPayIsNotServed(t *testing.T) {
	store := newStore(t)
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--wechatpay-mchid", "1900000001"},
		{"--wechatpay-key-file", key},
		{"--wechatpay-mchid", "1900000001", "--wechatpay-transfer-report", "岗位类型"},
		{"--wechatpay-apiv3-key-file", key},
		{"--wechatpay-mchid", "1900000001", "--wechatpay-certificate-file", filepath.Join(t.TempDir(), "none")},
	} {
		r := do(t, append([]string{"serve", "--db", store, "--addr", "127.0.0.1:0"}, args...)...)
		if r.status == exitOK || !strings.Contains(r.err, "wechatpay") && !strings.Contains(r.err, "platform certificate") {
			t.Errorf("%v: got %v, want it refused", args, r)
		}
		if strings.Contains(r.err, "BEGIN") {
			t.Errorf("%v: the error repeats the key", args)
		}
	}
}
