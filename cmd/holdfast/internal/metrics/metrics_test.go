package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// opened is a shop with one tee that is watched.
type opened struct {
	*testing.T
	core    *holdfast.Holdfast
	handler http.Handler
	key     string
}

func openShop(t *testing.T, preset string) *opened {
	t.Helper()
	core, err := holdfast.Open(t.Context(), "sqlite:"+t.TempDir()+"/shop.db", holdfast.Options{Preset: preset, Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, err = core.PutItem(t.Context(), holdfast.Key{}, holdfast.ItemInput{SKU: "tee", Name: "Tee", Price: 100, Currency: "EUR", Stock: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := New(core, "1.2.3")
	s := &opened{T: t, core: core, handler: m.Watch(httpapi.New(core, httpapi.Options{Metrics: m.Handler()}))}
	if s.key, _, err = core.CreateKey(t.Context(), holdfast.Key{}, "shop", []string{holdfast.ScopeWrite}, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *opened) send(method, path, body, key, idempotency string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", idempotency)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func (s *opened) figures() string {
	s.Helper()
	w := s.send(http.MethodGet, "/metrics", "", s.key, "")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		s.Fatalf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

func (s *opened) want(figures string, lines ...string) {
	s.Helper()
	for _, line := range lines {
		if !strings.Contains(figures, "\n"+line+"\n") {
			s.Errorf("there is no %s in\n%s", line, figures)
		}
	}
}

func TestFiguresSayWhatTheShopDid(t *testing.T) {
	s := openShop(t, "queued")
	const order = `{"lines":[{"sku":"tee","quantity":1}]}`
	for i, key := range []string{"first-key-0123456789", "first-key-0123456789", "second-key-0123456789"} {
		if w := s.send(http.MethodPost, "/v1/orders", order, s.key, key); w.Code != []int{201, 201, 409}[i] {
			t.Fatalf("order %d: got %d %s", i, w.Code, w.Body)
		}
	}
	s.send(http.MethodGet, "/v1/orders/made-up-by-a-client", "", s.key, "")
	s.send(http.MethodGet, "/made/up/by/a/client", "", s.key, "")
	got := s.figures()
	s.want(got,
		`holdfast_info{durability="full",store="sqlite",version="1.2.3"} 1`, `holdfast_up 1`, `holdfast_tasks_stuck 0`,
		`holdfast_orders_total{outcome="held"} 1`, `holdfast_orders_total{outcome="replayed"} 1`, `holdfast_orders_total{outcome="sold_out"} 1`,
		`holdfast_http_request_duration_seconds_count{route="POST /v1/orders",status="201"} 2`,
		`holdfast_http_request_duration_seconds_count{route="POST /v1/orders",status="409"} 1`,
		`holdfast_http_request_duration_seconds_count{route="GET /v1/orders/{id}",status="404"} 1`,
		`holdfast_http_request_duration_seconds_count{route="none",status="404"} 1`,
		`holdfast_queue_entries_total{did="accepted"} 2`, `holdfast_queue_commit_entries_bucket{le="1"} 2`,
	)
	if strings.Contains(got, "made") {
		t.Error("a client's path is a label")
	}
	for _, d := range described {
		if !strings.Contains(got, "\n# HELP holdfast_"+d.name+" ") {
			t.Errorf("holdfast_%s is never written", d.name)
		}
	}
	if bare := openShop(t, "conditional").figures(); strings.Contains(bare, "holdfast_queue") || strings.Contains(bare, "holdfast_gate") {
		t.Error("a preset without line and gate has figures of them")
	}
}

func TestFiguresAreForThoseWithAKey(t *testing.T) {
	s := openShop(t, "batched")
	if w := s.send(http.MethodGet, "/metrics", "", "", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s, want 401", w.Code, w.Body)
	}
	none := httpapi.New(s.core, httpapi.Options{})
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+s.key)
	w := httptest.NewRecorder()
	none.ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", w.Code, w.Body)
	}
}

func TestWhatIsWatchedCanStillStream(t *testing.T) {
	m := New(openShop(t, "batched").core, "")
	h := m.Watch(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if strings.Contains(w.Body.String(), "holdfast_http_request_duration_seconds_count") {
		t.Error("a stream's life counts as a request's duration")
	}
}
