package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// runSandbox runs holdfast sandbox in this process and reads where it is.
func runSandbox(t *testing.T, into any, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"sandbox", "--json"}, args...), &host{out: w, err: io.Discard, env: func(string) string { return "" }})
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		if status := <-ended; status != exitOK {
			t.Errorf("the sandbox ended with status %d", status)
		}
	})
	if err := json.NewDecoder(r).Decode(into); err != nil {
		t.Fatalf("the sandbox said nothing: %v", err)
	}
}

func download(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	file := filepath.Join(t.TempDir(), "file")
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return file
}

// sandboxShop is holdfast serve, taking money through one of the sandbox's gateways.
type sandboxShop struct {
	*process
	t       *testing.T
	shopper shopper
	sim     string // the simulator, without a path
}

func openAlipayShop(t *testing.T) *sandboxShop {
	t.Helper()
	var where struct {
		Alipay struct {
			API      string
			AppID    string `json:"app_id"`
			SellerID string `json:"seller_id"`
			Key      string `json:"private_key"`
			AppCert  string `json:"app_cert"`
			RootCert string `json:"root_cert"`
			Cert     string `json:"alipay_cert"`
		}
	}
	runSandbox(t, &where, "--addr", "", "--wechatpay-addr", "", "--alipay-addr", "127.0.0.1:0", "--alipay-certificates")
	// The port of serve is not known before it listens, so Alipay's
	// notifications come by way of a door.
	var shop atomic.Pointer[url.URL]
	door := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(shop.Load()) },
		ModifyResponse: func(res *http.Response) error {
			reply, err := io.ReadAll(res.Body)
			if string(reply) != "success" {
				t.Errorf("Alipay is answered %s %q, %v", res.Status, reply, err)
			}
			res.Body = io.NopCloser(bytes.NewReader(reply))
			return nil
		},
	})
	t.Cleanup(door.Close)
	p := start(t, nil, "--db", newStore(t), "--addr", "127.0.0.1:0", "--open",
		"--alipay-app-id", where.Alipay.AppID, "--alipay-seller-id", where.Alipay.SellerID,
		"--alipay-private-key-file", download(t, where.Alipay.Key), "--alipay-app-cert-file", download(t, where.Alipay.AppCert),
		"--alipay-root-cert-file", download(t, where.Alipay.RootCert), "--alipay-cert-file", download(t, where.Alipay.Cert),
		"--alipay-base-url", where.Alipay.API, "--alipay-notify-url", door.URL+"/webhooks/alipay")
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	shop.Store(u)
	s := &sandboxShop{process: p, t: t, shopper: shopper{url: p.url, name: "alipay-buyer"}, sim: strings.TrimSuffix(where.Alipay.API, "/gateway.do")}
	s.post("/v1/items", `{"sku":"cup","name":"茶杯","price":1990,"currency":"CNY","stock":10}`, nil)
	return s
}

func (s *sandboxShop) post(path, body string, into any) {
	s.t.Helper()
	a := s.shopper.post(s.t.Context(), path, body)
	if a == nil || a.status/100 != 2 {
		s.t.Fatalf("%s: got %+v", path, a)
	}
	if into != nil {
		if err := json.Unmarshal(a.answer, into); err != nil {
			s.t.Fatal(err)
		}
	}
}

// becomes waits until the order is in the state.
func (s *sandboxShop) becomes(order, state string) {
	s.t.Helper()
	s.reaches("/v1/orders/"+order, state)
}

// reaches waits until what is at the path is in the state.
func (s *sandboxShop) reaches(path, state string) {
	s.t.Helper()
	s.until(path, state, func(o looked) bool { return o.State == state })
}

// looked is what was read of an order or a payout.
type looked struct{ State, Confirm string }

// until waits until what is at the path is as it should be.
func (s *sandboxShop) until(path, want string, good func(looked) bool) (o looked) {
	s.t.Helper()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for range int(readyFor / readyPoll) {
		_, b, err := s.shopper.send(s.t.Context(), http.MethodGet, &asked{path: path})
		if err != nil {
			s.t.Fatal(err)
		}
		if err := json.Unmarshal(b, &o); err != nil {
			s.t.Fatal(err)
		}
		if good(o) {
			return o
		}
		<-tick.C
	}
	s.t.Fatalf("%s is %+v, want %s", path, o, want)
	return o
}

// browse is the buyer: he goes where he is sent, and presses the button to pay.
// It returns where that sends him.
func browse(t *testing.T, address string) string {
	t.Helper()
	landed := ""
	browser := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Hostname() != "127.0.0.1" {
			landed = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(page), "¥19.90") || !strings.Contains(string(page), "action") {
		t.Fatalf("got %s, %v: %s", res.Status, err, page)
	}
	if res, err = browser.PostForm(res.Request.URL.String(), url.Values{"action": {"pay"}}); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return landed
}

func TestAnOrderIsPaidAndRefundedThroughTheSandboxsAlipay(t *testing.T) {
	s := openAlipayShop(t)
	for _, method := range []string{"page", "wap", "app", "precreate"} {
		var order, refund struct{ ID string }
		s.post("/v1/orders", `{"lines":[{"sku":"cup","quantity":1}]}`, &order)
		var payment struct {
			ID, URL string
			Secret  string `json:"client_secret"`
		}
		s.post("/v1/orders/"+order.ID+"/payments", fmt.Sprintf(`{"method":%q,"return_url":"https://shop.example/back"}`, method), &payment)
		if method == "app" {
			payment.URL = s.sim + "/app?" + payment.Secret // what the phone does with it
		}
		landed := browse(t, payment.URL)
		if (method == "page" || method == "wap") != strings.HasPrefix(landed, "https://shop.example/back?") {
			t.Errorf("%s: the buyer came back to %q", method, landed)
		}
		s.becomes(order.ID, "paid")
		s.post("/v1/orders/"+order.ID+"/refunds", `{"amount":990}`, &refund)
		s.becomes(order.ID, "partly_refunded")
		s.post("/v1/orders/"+order.ID+"/refunds", `{}`, nil)
		s.becomes(order.ID, "refunded")

		trade := s.trade(payment.ID)
		if trade.Captured != 1990 || trade.Refunded != 1990 || len(trade.Refunds) != 2 || trade.Refunds[0].Number != refund.ID {
			t.Errorf("%s: the gateway's books say %+v", method, trade)
		}
	}
}

// payout sends 19.90 of an account that has them to somebody.
func (s *sandboxShop) payout(to string) (id string) {
	s.t.Helper()
	s.post("/v1/accounts", `{"id":"ann"}`, nil)
	s.post("/v1/accounts/ann/deposits", `{"currency":"CNY","amount":1990,"reason":"a start"}`, nil)
	var p struct{ ID string }
	s.post("/v1/payouts", fmt.Sprintf(`{"account":"ann","currency":"CNY","amount":1990,"destination":%q,"description":"三月"}`, to), &p)
	return p.ID
}

func TestMoneyIsPaidOutThroughTheSandboxsAlipay(t *testing.T) {
	s := openAlipayShop(t)
	id := s.payout("logon_id:13800000000:张三")
	s.reaches("/v1/payouts/"+id, "paid")
	var books alipaysim.Books
	s.books(&books)
	if all := books.Transfers; len(all) != 1 || all[0].Number != id || all[0].Amount != 1990 || all[0].Status != "SUCCESS" {
		t.Errorf("the gateway's books say %+v", all)
	}
	if a := s.shopper.post(t.Context(), "/v1/payouts", `{"account":"ann","currency":"CNY","amount":10,"destination":"13800000000"}`); a == nil || a.status != http.StatusUnprocessableEntity {
		t.Errorf("to nobody: got %+v, want it refused", a)
	}
}

func (s *sandboxShop) books(into any) {
	s.t.Helper()
	res, err := http.Get(s.sim + "/_sim/books")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandboxShop) trade(number string) alipaysim.Trade {
	s.t.Helper()
	var books alipaysim.Books
	s.books(&books)
	for _, trade := range books.Trades {
		if trade.Number == number {
			return trade
		}
	}
	s.t.Fatalf("no trade %s in the books", number)
	return alipaysim.Trade{}
}

func TestHalfAnAccountAtAlipayIsNotServed(t *testing.T) {
	url := newStore(t)
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, []byte(alipaysim.DefaultAppKey), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--alipay-app-id", "2021000000000001"},
		{"--alipay-private-key-file", key},
		{"--alipay-app-id", "2021000000000001", "--alipay-private-key-file", key, "--alipay-app-cert-file", key},
	} {
		r := do(t, append([]string{"serve", "--db", url, "--addr", "127.0.0.1:0"}, args...)...)
		if r.status == exitOK || !strings.Contains(r.err, "alipay") {
			t.Errorf("%v: got %v, want it refused", args, r)
		}
		if strings.Contains(r.err, "BEGIN") {
			t.Errorf("%v: the error repeats the key", args)
		}
	}
}
