package main

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// canaries are the forms in which each secret could show, by its name.
type canaries map[string][]string

// add watches a secret. A private key would show by its lines, or its exponent.
func (c canaries) add(t *testing.T, name, secret string) {
	t.Helper()
	if block, _ := pem.Decode([]byte(secret)); block != nil {
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d := key.(*rsa.PrivateKey).D
		c[name] = append(c[name], d.String(), d.Text(16), string(d.Bytes()))
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) == 64 {
				c[name] = append(c[name], line)
			}
		}
		return
	}
	b := []byte(secret)
	list := strings.Trim(fmt.Sprint(b), "[]") // as %v prints bytes
	c[name] = append(c[name], secret, url.QueryEscape(secret), hex.EncodeToString(b), list,
		strings.TrimRight(base64.StdEncoding.EncodeToString(b), "="), strings.TrimRight(base64.URLEncoding.EncodeToString(b), "="))
}

// none looks for all of them.
func (c canaries) none(t *testing.T, where, text string) {
	t.Helper()
	for name, forms := range c {
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s shows %s, as %.12q...", where, name, form)
			}
		}
	}
}

// written is what a server has written, from any goroutine.
type written struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// guarded is a shop whose every secret is watched.
type guarded struct {
	sandboxShop
	secrets canaries
	env     map[string]string
	db      string
	at      atomic.Pointer[url.URL] // of the API
	sims    map[string]string       // by gateway, without a path
	log     written
}

const (
	canaryKey     = "sk_test_canary_of_the_account_01"
	canarySigning = "whsec_canary_of_the_endpoint_01"
)

// openGuarded seals every secret, and serves with a log at debug.
func openGuarded(t *testing.T) *guarded {
	g := &guarded{secrets: canaries{}, db: newStore(t)}
	var made struct{ Key string }
	must(t, &made, "keys", "create", "--db", g.db, "--name", "canary", "--scope", "admin")
	g.sandboxShop = sandboxShop{t: t, shopper: shopper{key: made.Key, name: "canary-buyer"}}
	g.secrets.add(t, "the API key", made.Key)
	// The port of serve is not known before it listens, so notifications come by
	// way of a door.
	door := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(g.at.Load()) }})
	t.Cleanup(door.Close)
	g.configure(door.URL + "/webhooks/")
	for name, secret := range map[string]string{
		"HOLDFAST_STRIPE_SECRET_KEY": canaryKey, "HOLDFAST_STRIPE_WEBHOOK_SECRETS": canarySigning,
		"HOLDFAST_ALIPAY_PRIVATE_KEY":  alipaysim.DefaultAppKey,
		"HOLDFAST_WECHATPAY_KEY":       string(wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile)),
		"HOLDFAST_WECHATPAY_APIV3_KEY": wechatpaysim.APIv3Key,
	} {
		g.secrets.add(t, name, strings.TrimSpace(secret))
		g.env[name] = strings.TrimSpace(typed(t, secret, g.env, "secret", "seal").out)
	}
	g.serve()
	return g
}

// configure has all that is no gateway's secret.
func (g *guarded) configure(webhooks string) {
	var where struct {
		Stripe struct{ API string }
		Alipay struct {
			API      string
			AppID    string `json:"app_id"`
			SellerID string `json:"seller_id"`
		}
		Wechatpay struct{ API, MchID, AppID, Serial string }
	}
	runSandbox(g.t, &where, "--addr", "127.0.0.1:0", "--alipay-addr", "127.0.0.1:0", "--wechatpay-addr", "127.0.0.1:0",
		"--secret-key", canaryKey, "--webhook-secret", canarySigning, "--webhook-url", webhooks+"stripe")
	s, a, w := where.Stripe, where.Alipay, where.Wechatpay
	g.sims = map[string]string{"stripe": s.API, "alipay": strings.TrimSuffix(a.API, "/gateway.do"), "wechatpay": w.API}
	master := newMasterKey(g.t, "k")
	g.secrets.add(g.t, "the master key", strings.TrimPrefix(master, "k:"))
	g.env = map[string]string{
		masterKey: master, "HOLDFAST_STRIPE_BASE_URL": s.API,
		"HOLDFAST_ALIPAY_APP_ID": a.AppID, "HOLDFAST_ALIPAY_SELLER_ID": a.SellerID, "HOLDFAST_ALIPAY_PUBLIC_KEY": alipaysim.DefaultPublicKey,
		"HOLDFAST_ALIPAY_BASE_URL": a.API, "HOLDFAST_ALIPAY_NOTIFY_URL": webhooks + "alipay",
		"HOLDFAST_WECHATPAY_MCHID": w.MchID, "HOLDFAST_WECHATPAY_APPID": w.AppID, "HOLDFAST_WECHATPAY_SERIAL": w.Serial,
		"HOLDFAST_WECHATPAY_PUBLIC_KEY_ID": wechatpaysim.PublicKeyID,
		"HOLDFAST_WECHATPAY_PUBLIC_KEY":    string(wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile)),
		"HOLDFAST_WECHATPAY_BASE_URL":      w.API, "HOLDFAST_WECHATPAY_NOTIFY_URL": webhooks + "wechatpay",
	}
}

// serve is holdfast serve, but for the level of its log.
func (g *guarded) serve() {
	h := &host{out: &g.log, err: &g.log, env: func(name string) string { return g.env[name] }}
	log := slog.New(slog.NewJSONHandler(&g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	list, err := h.gateways(h.gatewayFlags(pflag.NewFlagSet("serve", pflag.ContinueOnError)))
	if err != nil || len(list) != 3 {
		g.t.Fatalf("got %d gateways, %v", len(list), err)
	}
	core, err := holdfast.Open(g.t.Context(), g.db, holdfast.Options{Gateways: list, Logger: log, Poll: time.Second})
	if err != nil {
		g.t.Fatal(err)
	}
	l, err := listen(g.t.Context(), "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.shopper.url = address(l)
	at, err := url.Parse(g.shopper.url)
	if err != nil {
		g.t.Fatal(err)
	}
	g.at.Store(at)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.serveStore(ctx, &serving{db: g.db}, core, l, log) }()
	g.t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, closeStore(context.Background(), core)); err != nil {
			g.t.Error(err)
		}
		g.secrets.none(g.t, "the log", g.log.String())
	})
}

// ask sends a request and watches the answer.
func (g *guarded) ask(want int, method, path, body string, headers ...string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.shopper.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.shopper.key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		g.t.Errorf("%s %.20s: got %s %s, %v, want %d", method, path, res.Status, text, err, want)
	}
	g.secrets.none(g.t, "the answer to "+method+" "+strings.Split(path, "?")[0], fmt.Sprint(res.Header)+string(text))
}

// dial sets the faults of a gateway.
func (g *guarded) dial(name, faults string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPut, g.sims[name]+"/_sim/faults", strings.NewReader(faults))
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		g.t.Fatalf("faults %s of %s: %s", faults, name, res.Status)
	}
}

// fails lets a gateway go wrong until it has given no answer to what is done.
func (g *guarded) fails(name, faults string, do func()) {
	g.t.Helper()
	const said = "gateway gave no definite answer"
	before := strings.Count(g.log.String(), said)
	g.dial(name, faults)
	do()
	until(g.t, name+" has not answered", func() bool { return strings.Count(g.log.String(), said) > before })
}

// buys pays through a gateway that is down and then loses its answers, and takes
// the money back from one that is down again.
func (g *guarded) buys(name, method string) {
	var order struct {
		ID     string
		Secret string `json:"client_secret"`
	}
	g.post("/v1/orders", `{"lines":[{"sku":"cup","quantity":1}]}`, &order)
	g.secrets.add(g.t, "an order's client secret", order.Secret)
	opened := make(chan *asked, 1)
	g.fails(name, `{"unavailable":1}`, func() {
		go func() {
			opened <- g.shopper.post(g.t.Context(), "/v1/orders/"+order.ID+"/payments",
				fmt.Sprintf(`{"gateway":%q,"method":%q,"return_url":"https://shop.example/"}`, name, method))
		}()
	})
	g.fails(name, `{"lost_answer":1}`, func() {})
	g.dial(name, `{}`)
	var payment struct{ URL string }
	if a := <-opened; a == nil || json.Unmarshal(a.answer, &payment) != nil || payment.URL == "" {
		g.t.Fatalf("%s: got %+v, want a page to pay on", name, a)
	}
	if strings.HasPrefix(payment.URL, "weixin:") {
		payment.URL = g.sims[name] + "/scan?code=" + url.QueryEscape(payment.URL) // what the phone does with it
	}
	g.pays(payment.URL)
	g.becomes(order.ID, "paid")
	g.fails(name, `{"unavailable":1}`, func() { g.post("/v1/orders/"+order.ID+"/refunds", `{}`, nil) })
	g.ask(http.StatusOK, http.MethodGet, "/v1/orders/"+order.ID, "")
	g.dial(name, `{}`)
	g.becomes(order.ID, "refunded")
}

// pays is the buyer on the gateway's page.
func (g *guarded) pays(address string) {
	g.t.Helper()
	page, err := http.Get(address)
	if err != nil {
		g.t.Fatal(err)
	}
	page.Body.Close()
	stays := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if page, err = stays.PostForm(page.Request.URL.String(), url.Values{"action": {"pay"}}); err != nil {
		g.t.Fatal(err)
	}
	page.Body.Close()
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for range int(readyFor / readyPoll) {
		if is() {
			return
		}
		<-tick.C
	}
	t.Fatalf("never: %s", what)
}
