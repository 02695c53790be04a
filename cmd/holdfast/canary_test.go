package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// Whatever goes wrong, no secret is in a log, an answer, what a command prints,
// or the files of the store.
func TestNoSecretIsShownOrStored(t *testing.T) {
	t.Parallel()
	g := openGuarded(t)
	g.post("/v1/items", `{"sku":"cup","name":"Cup","price":1990,"currency":"CNY","stock":10}`, nil)
	for name, method := range map[string]string{"stripe": "checkout", "alipay": "precreate", "wechatpay": "native"} {
		g.buys(name, method)
	}
	for _, a := range g.shopper.asked {
		if a.path != "/v1/orders" { // whose answer has the order's own
			g.secrets.none(t, "the answer to "+a.path, string(a.answer))
		}
	}
	g.refuses()
	for _, path := range []string{"/v1/orders", "/v1/keys", "/metrics", "/openapi.json", "/healthz", "/readyz"} {
		g.ask(http.StatusOK, http.MethodGet, path, "")
	}
	g.commands()
	file := strings.TrimPrefix(g.db, "sqlite:")
	for _, name := range []string{file, file + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 {
			t.Fatalf("%s: %d bytes, %v", name, len(b), err)
		}
		g.secrets.none(t, filepath.Base(name), string(b))
	}
}

// refuses sends what the API must refuse.
func (g *guarded) refuses() {
	signed := func(body string) string {
		mac, at := hmac.New(sha256.New, []byte(canarySigning)), time.Now().Unix()
		fmt.Fprintf(mac, "%d.%s", at, body)
		return fmt.Sprintf("t=%d,v1=%x", at, mac.Sum(nil))
	}
	const stranger = `{"id":"evt_x","type":"payment_intent.succeeded","data":{"object":{"id":"pi_x","amount_received":5,"currency":"cny"}}}`
	for _, c := range []struct {
		want                  int
		gateway, name, header string
		body                  string
	}{
		{401, "stripe", "Stripe-Signature", "t=1,v1=00", "{}"},
		{400, "stripe", "Stripe-Signature", signed("{"), "{"},
		{200, "stripe", "Stripe-Signature", signed(stranger), stranger},
		{401, "alipay", "Content-Type", "application/x-www-form-urlencoded", "app_id=x&sign=AAAA&sign_type=RSA2"},
		{401, "wechatpay", "Wechatpay-Signature", "AAAA", "{}"},
	} {
		g.ask(c.want, http.MethodPost, "/webhooks/"+c.gateway, c.body, c.name, c.header)
	}
	half := g.shopper.key[:len(g.shopper.key)-8]
	g.secrets.add(g.t, "a mistyped API key", half)
	g.ask(401, http.MethodGet, "/v1/orders", "", "Authorization", "Bearer "+half)
	g.ask(400, http.MethodGet, "/v1/orders?customer="+g.shopper.key, "")
	g.ask(400, http.MethodPost, "/v1/orders", "{", "Content-Type", "application/json", "Idempotency-Key", "canary-malformed-1")
}

// commands runs what looks at the store and the gateways, well and badly configured.
func (g *guarded) commands() {
	today := time.Now().UTC().Format(time.DateOnly)
	for _, line := range []string{
		"verify --db " + g.db, "doctor --store " + g.db, "keys list --db " + g.db, "version", "migrate --db " + g.db,
		"reconcile --gateway stripe --date " + today + " --db " + g.db,
		"reconcile --gateway alipay --date " + today + " --db " + g.db, "reconcile --gateway wechatpay --date " + today + " --db " + g.db,
	} {
		g.command(g.env, line)
		g.command(g.env, line+" --json")
	}
	g.secrets.add(g.t, "the database's password", "canary_of_the_database_01")
	for _, server := range []string{"mysql", "postgres"} {
		at := server + "://shop:canary_of_the_database_01@127.0.0.1:1/shop"
		g.command(nil, "verify --db "+at)
		g.command(nil, "doctor --store "+at+" --redis redis://:canary_of_the_database_01@127.0.0.1:1")
		g.command(nil, "serve --addr 127.0.0.1:0 --db "+at+"?a=%zz")
	}
	for name, secret := range map[string]string{
		"HOLDFAST_STRIPE_WEBHOOK_SECRETS": canarySigning, "HOLDFAST_ALIPAY_PRIVATE_KEY": alipaysim.DefaultAppKey,
		"HOLDFAST_WECHATPAY_KEY":       string(wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile)),
		"HOLDFAST_WECHATPAY_APIV3_KEY": wechatpaysim.APIv3Key, masterKey: "k:Y2FuYXJ5X29mX3RoZV9tYXN0ZXJfa2V5XzAx",
	} {
		torn := secret[:len(secret)*3/4]
		if !strings.HasPrefix(torn, "-----BEGIN") { // whose lines are watched already
			g.secrets.add(g.t, "a torn "+name, torn)
		}
		env := map[string]string{}
		for n, v := range g.env {
			env[n] = v
		}
		for _, wrong := range []string{torn, g.env[name][:len(g.env[name])-6], "-----BEGIN PRIVATE KEY-----\n" + torn} {
			env[name] = wrong
			g.command(env, "reconcile --gateway none --date "+today+" --db "+g.db)
		}
	}
}

func (g *guarded) command(env map[string]string, line string) {
	g.t.Helper()
	r := doIn(g.t, env, strings.Fields(line)...)
	if r.out+r.err == "" || strings.Contains(r.err, "unknown flag") {
		g.t.Errorf("%s: got %v, want it to say something", line, r)
	}
	g.secrets.none(g.t, "the output of "+strings.Fields(line)[0], r.out+r.err)
}
