package stripesim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// clock is a clock that tests move by hand.
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

// notice is one request that the receiver got.
type notice struct {
	ID, Type  string
	Signature string
	Body      []byte
	Object    map[string]any
}

// bench is a simulator on loopback, a clock, and a merchant's receiver.
type bench struct {
	t     *testing.T
	clock *clock
	sim   *stripesim.Sim
	url   string

	mu      sync.Mutex
	status  int // that the receiver answers
	notices []notice
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: &clock{now: time.Unix(1_767_323_046, 0)}, status: http.StatusOK}
	receiver := httptest.NewServer(http.HandlerFunc(b.receive))
	t.Cleanup(receiver.Close)
	b.sim = stripesim.New(stripesim.Config{Now: b.clock.Now, WebhookURL: receiver.URL, Seed: 7})
	api := httptest.NewServer(b.sim)
	t.Cleanup(api.Close)
	b.url = api.URL
	return b
}

func (b *bench) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var e struct {
		ID, Type string
		Data     struct{ Object map[string]any }
	}
	_ = json.Unmarshal(body, &e)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices = append(b.notices, notice{e.ID, e.Type, r.Header.Get("Stripe-Signature"), body, e.Data.Object})
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(b.status)
}

func (b *bench) receiverAnswers(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// deliver sends what is due and returns what arrived since the last time.
func (b *bench) deliver() []notice {
	b.sim.Deliver(context.Background())
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.notices
	b.notices = nil
	return got
}

func types(notices []notice) string {
	var list []string
	for _, n := range notices {
		list = append(list, n.Type)
	}
	return strings.Join(list, " ")
}

// answer is one API answer; err is set when none could be read.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
	err    error
}

// at walks the body by keys.
func (a answer) at(keys ...string) any {
	var v any = a.body
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func (a answer) text(keys ...string) string { return fmt.Sprint(a.at(keys...)) }

func (a answer) ids() []string {
	var ids []string
	for _, v := range a.body["data"].([]any) {
		ids = append(ids, v.(map[string]any)["id"].(string))
	}
	return ids
}

// do makes one call; params alternate names and values.
func (b *bench) do(method, path, key string, params ...string) answer {
	b.t.Helper()
	v := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	target, body := b.url+path, ""
	if method == http.MethodGet && len(v) > 0 {
		target += "?" + v.Encode()
	} else {
		body = v.Encode()
	}
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+stripesim.DefaultSecretKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return b.send(req)
}

func (b *bench) send(req *http.Request) answer {
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, header: res.Header, raw: string(raw), err: err}
	if err == nil {
		a.err = json.Unmarshal(raw, &a.body)
	}
	return a
}

func (b *bench) get(path string, params ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", params...)
}

func (b *bench) post(path string, params ...string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, "", params...)
}

var sessionOf1234 = []string{
	"mode", "payment", "success_url", "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}", "cancel_url", "https://shop.example/cart",
	"line_items[0][price_data][currency]", "usd", "line_items[0][price_data][unit_amount]", "617",
	"line_items[0][price_data][product_data][name]", "Tee", "line_items[0][quantity]", "2",
	"client_reference_id", "order-1", "metadata[order_id]", "order-1", "payment_intent_data[metadata][order_id]", "order-1",
}

// session opens a checkout of 12.34 USD.
func (b *bench) session(more ...string) string {
	b.t.Helper()
	a := b.post("/v1/checkout/sessions", append(append([]string{}, sessionOf1234...), more...)...)
	if a.status != 200 {
		b.t.Fatalf("create session: %d %s", a.status, a.raw)
	}
	return a.text("id")
}

// intent opens a payment intent of 10.00 USD.
func (b *bench) intent(more ...string) string {
	b.t.Helper()
	a := b.post("/v1/payment_intents", append([]string{"amount", "1000", "currency", "usd"}, more...)...)
	if a.status != 200 {
		b.t.Fatalf("create intent: %d %s", a.status, a.raw)
	}
	return a.text("id")
}

// paidIntent is an intent of 10.00 USD that a buyer has paid.
func (b *bench) paidIntent() string {
	b.t.Helper()
	id := b.intent()
	b.must(b.sim.Pay(id))
	return id
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// want checks a status and an error code; no code is "<nil>".
func (b *bench) want(a answer, status int, code string) {
	b.t.Helper()
	if got := a.text("error", "code"); a.status != status || got != code {
		b.t.Errorf("got %d %s, want %d %s: %s", a.status, got, status, code, a.raw)
	}
}

func (b *bench) payment(id string) stripesim.Payment {
	b.t.Helper()
	for _, p := range b.sim.Books().Payments {
		if p.ID == id {
			return p
		}
	}
	b.t.Fatalf("no payment %s in the books", id)
	return stripesim.Payment{}
}

func TestTheSameSeedAndCallsGiveTheSameIDs(t *testing.T) {
	if a, b := newBench(t).session(), newBench(t).session(); a != b {
		t.Errorf("got %s and %s", a, b)
	}
}

func TestFaultsDoNotChangeIDs(t *testing.T) {
	calm, wild := newBench(t), newBench(t)
	wild.sim.SetFaults(stripesim.Faults{RefundPending: 0.5, DuplicateNotice: 0.5, DelayNotice: time.Minute})
	if a, b := calm.paidIntent(), wild.paidIntent(); a != b {
		t.Errorf("got %s and %s", a, b)
	}
}

func TestManyCallersAtOnceTakeTheMoneyOnce(t *testing.T) {
	b := newBench(t)
	id := b.session()
	var all sync.WaitGroup
	var mu sync.Mutex
	took := 0
	for range 16 {
		all.Go(func() {
			if b.sim.Pay(id) == nil {
				mu.Lock()
				took++
				mu.Unlock()
			}
			b.get("/v1/checkout/sessions/" + id)
			b.post("/v1/checkout/sessions/" + id + "/expire")
		})
	}
	all.Wait()
	captured := 0
	for _, p := range b.sim.Books().Payments {
		if p.Captured > 0 {
			captured++
		}
	}
	if took > 1 || captured != took {
		t.Errorf("got %d successful payments and %d captured, want the same, at most 1", took, captured)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func serve(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// create makes one intent without a network.
func create(sim *stripesim.Sim) {
	req := httptest.NewRequest("POST", "/v1/payment_intents", strings.NewReader("amount=1000&currency=usd"))
	req.SetBasicAuth(stripesim.DefaultSecretKey, "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sim.ServeHTTP(httptest.NewRecorder(), req)
}
