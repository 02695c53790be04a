package httpapi_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// BenchmarkPlaceOrder is the hot path from the parsed request to the written
// answer; "refused" is what
// this package costs of it.
func BenchmarkPlaceOrder(b *testing.B) {
	core, err := holdfast.Open(b.Context(), "sqlite:"+b.TempDir()+"/shop.db", holdfast.Options{Gateways: map[string]gateway.Gateway{"till": &till{}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := core.Close(b.Context()); err != nil && b.Context().Err() == nil {
			b.Error(err)
		}
	})
	const plenty = 1 << 40
	if _, err := core.PutItem(b.Context(), holdfast.Key{}, holdfast.ItemInput{SKU: "tee", Name: "Tee", Price: 1, Currency: "EUR", Stock: plenty}); err != nil {
		b.Fatal(err)
	}
	key, _, err := core.CreateKey(b.Context(), holdfast.Key{}, "bench", []string{holdfast.ScopeWrite}, 0)
	if err != nil {
		b.Fatal(err)
	}
	api := httpapi.New(core, httpapi.Options{})
	send := func(b *testing.B, method, path, body string, status int) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header["Authorization"] = []string{"Bearer " + key}
		r.Header["Content-Type"] = []string{"application/json"}
		r.Header["Idempotency-Key"] = []string{rand.Text()}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != status {
			b.Fatalf("got %d: %s", w.Code, w.Body)
		}
	}
	const width = 64 // callers for each processor
	b.Run("order", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(width)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				send(b, http.MethodPost, "/v1/orders", oneTee, http.StatusCreated)
			}
		})
	})
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				send(b, http.MethodPost, "/v1/orders", `{"lines":[]}`, http.StatusUnprocessableEntity)
			}
		})
	})
	b.Run("item", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send(b, http.MethodGet, "/v1/items/tee", "", http.StatusOK)
		}
	})
}
