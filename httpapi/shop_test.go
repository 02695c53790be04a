package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// shop is a store behind a real server, with one item and one API key.
type shop struct {
	t       *testing.T
	core    *holdfast.Holdfast
	api     *httpapi.API
	gateway *till
	log     *lockedBuffer
	url     string
	addr    string
	key     string // admin
	file    string // the store
}

const openingStock = 100

func openShop(t *testing.T, o httpapi.Options) *shop {
	t.Helper()
	g := &till{status: gateway.Open}
	s := openShopWith(t, o, holdfast.Options{Gateways: map[string]gateway.Gateway{"till": g}})
	s.gateway = g
	return s
}

func openShopWith(t *testing.T, o httpapi.Options, h holdfast.Options) *shop {
	t.Helper()
	s := &shop{t: t, log: &lockedBuffer{}, file: t.TempDir() + "/shop.db"}
	core, err := holdfast.Open(t.Context(), "sqlite:"+s.file, h)
	if err != nil {
		t.Fatal(err)
	}
	s.core = core
	o.Logger = slog.New(slog.NewJSONHandler(s.log, nil))
	s.api = httpapi.New(core, o)
	s.listen(s.api)
	s.key = s.newKey(holdfast.ScopeAdmin)
	_, err = core.PutItem(t.Context(), holdfast.Key{}, holdfast.ItemInput{SKU: "tee", Name: "Tee", Price: 1500, Currency: "EUR", Stock: openingStock})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen serves h until the test ends, then closes the store.
func (s *shop) listen(h http.Handler) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := httpapi.Server(h, nil)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	s.addr = l.Addr().String()
	s.url = "http://" + s.addr
	s.t.Cleanup(func() {
		s.api.Drain()
		if err := server.Close(); err != nil {
			s.t.Error(err)
		}
		<-stopped
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.core.Close(ctx); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
}

func (s *shop) newKey(scopes ...string) string {
	s.t.Helper()
	plain, _, err := s.core.CreateKey(s.t.Context(), holdfast.Key{}, "test", scopes, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return plain
}

// answer is a response that has been read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

func (a answer) code() string { return a.str("code") }

// str is a member of the body, which is an object.
func (a answer) str(name string) string {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		a.t.Fatalf("body %q is not an object: %v", a.body, err)
	}
	s, _ := m[name].(string)
	return s
}

func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("body %q: %v", a.body, err)
	}
}

func (a answer) want(status int, code string) answer {
	a.t.Helper()
	got := ""
	if a.status >= 400 {
		got = a.code()
	}
	if a.status != status || got != code {
		a.t.Errorf("got %d %q, want %d %q: %s", a.status, got, status, code, a.body)
	}
	if a.header.Get("Request-Id") == "" {
		a.t.Error("no Request-Id")
	}
	return a
}

// send sends a request as it is. headers are "Name: value".
func (s *shop) send(method, target, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer{s.t, resp.StatusCode, resp.Header, got}
}

// do sends what a well-behaved client sends, plus headers.
func (s *shop) do(method, target, body string, headers ...string) answer {
	s.t.Helper()
	all := append([]string{"Authorization: Bearer " + s.key}, headers...)
	if method == http.MethodPost {
		all = append(all, "Idempotency-Key: "+rand.Text())
	}
	if body != "" {
		all = append(all, "Content-Type: application/json")
	}
	return s.send(method, target, body, all...)
}

// keyed is do with a fixed Idempotency-Key.
func (s *shop) keyed(key, method, target, body string) answer {
	s.t.Helper()
	return s.send(method, target, body, "Authorization: Bearer "+s.key, "Idempotency-Key: "+key, "Content-Type: application/json")
}

const oneTee = `{"lines":[{"sku":"tee","quantity":1}]}`

type orderMade struct {
	ID           string `json:"id"`
	State        string `json:"state"`
	Total        int64  `json:"total"`
	ClientSecret string `json:"client_secret"`
	CreatedAt    string `json:"created_at"`
	ServerTime   string `json:"server_time"`
}

func (s *shop) order(body string) (o orderMade) {
	s.t.Helper()
	s.do(http.MethodPost, "/v1/orders", body).want(http.StatusCreated, "").into(&o)
	return o
}

// until waits for an event of an order, or of a payout.
func (s *shop) until(id, kind string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	topic := "order/" + id
	if strings.HasPrefix(kind, "payout.") {
		topic = "payout/" + id
	}
	l, err := s.core.Listen(ctx, []string{topic}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	for {
		m, err := l.Next(ctx)
		if err != nil {
			s.t.Fatalf("%s: no event %s: %v", topic, kind, err)
		}
		if m.Type == kind {
			return
		}
	}
}

func (s *shop) available() int64 {
	s.t.Helper()
	level, err := s.core.Stock(s.t.Context(), "tee")
	if err != nil {
		s.t.Fatal(err)
	}
	return level.Available
}

// till is a gateway whose payments are in the state that the test says, and
// whose notifications are signed with the header Signature: good.
type till struct {
	mu     sync.Mutex
	status gateway.Status
	broken error         // what Parse fails with
	stuck  chan struct{} // Create waits for it, if it is there
}

// errPanic makes Parse panic.
var errPanic = errors.New("panic")

func (g *till) set(s gateway.Status) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = s
}

func (g *till) breaks(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = err
}

func (g *till) answer(p gateway.Payment) gateway.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := gateway.Answer{Outcome: gateway.Done, Status: g.status, Ref: "ref_" + p.ID, URL: "https://till.example/" + p.ID}
	if g.status == gateway.Paid {
		a.Amount, a.Currency = p.Amount, p.Currency
	}
	return a
}

func (g *till) Methods() []string { return []string{"cash"} }

func (g *till) Check(gateway.Payment) *gateway.Unfit { return nil }

// Create answers nothing while the till is stuck.
func (g *till) Create(ctx context.Context, p gateway.Payment) gateway.Answer {
	if g.stuck != nil {
		select {
		case <-g.stuck:
		case <-ctx.Done():
		}
		return gateway.Answer{Outcome: gateway.Unknown, Err: ctx.Err()}
	}
	return g.answer(p)
}

func (g *till) Query(_ context.Context, p gateway.Payment) gateway.Answer { return g.answer(p) }

func (g *till) Close(_ context.Context, p gateway.Payment) gateway.Answer {
	a := g.answer(p)
	if a.Status == gateway.Open {
		a.Status = gateway.Closed
	}
	return a
}

func (g *till) Refund(_ context.Context, r gateway.Refund) gateway.RefundAnswer {
	return gateway.RefundAnswer{Outcome: gateway.Done, Status: gateway.RefundDone, Ref: "ref_" + r.ID, Amount: r.Amount}
}

func (g *till) QueryRefund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	return g.Refund(ctx, r)
}

func (g *till) Parse(header http.Header, body []byte, _ time.Time) (gateway.Notification, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == errPanic {
		panic("secret")
	}
	if g.broken != nil {
		return gateway.Notification{}, g.broken
	}
	if header.Get("Signature") != "good" {
		return gateway.Notification{}, gateway.ErrSignatureInvalid
	}
	var n gateway.Notification
	if err := json.Unmarshal(body, &n); err != nil {
		return n, errors.Join(gateway.ErrMalformed, err)
	}
	return n, nil
}

func (g *till) Acknowledge(w http.ResponseWriter, ok bool) {
	if !ok {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = io.WriteString(w, "thank you")
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
