package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

var rewrite = flag.Bool("rewrite", false, "write docs/openapi.json")

const publishedDocument = "../docs/openapi.json"

func openAPI(t *testing.T) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	httpapi.New(new(holdfast.Holdfast), httpapi.Options{Version: "1"}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d, want 200", w.Code)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, w.Body.Bytes(), "", "  "); err != nil {
		t.Fatalf("the document is not JSON: %v", err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func TestPublishedDocumentIsThatOfTheHandlers(t *testing.T) {
	got := openAPI(t)
	if *rewrite {
		if err := os.WriteFile(publishedDocument, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(publishedDocument)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/openapi.json is stale: go test ./httpapi -run PublishedDocument -rewrite")
	}
}

func TestDocumentListsEveryRoute(t *testing.T) {
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []struct{ Name, In string }
			Responses   map[string]struct{ Content map[string]json.RawMessage }
			Security    []map[string][]string
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	raw := openAPI(t)
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("got openapi %q, want 3.1.0", doc.OpenAPI)
	}
	for _, route := range []string{
		"POST /v1/items", "GET /v1/items", "GET /v1/items/{sku}", "POST /v1/items/{sku}/stock", "GET /v1/items/{sku}/stock",
		"GET /v1/items/{sku}/stock/explain", "POST /v1/orders", "GET /v1/orders", "GET /v1/orders/{id}",
		"POST /v1/orders/{id}/payments", "GET /v1/payments/{id}", "POST /v1/payments/{id}/refresh", "POST /v1/orders/{id}/cancel",
		"POST /v1/orders/{id}/refunds", "GET /v1/refunds/{id}", "POST /v1/orders/{id}/fulfil", "GET /v1/orders/{id}/events",
		"GET /v1/events", "GET /v1/push", "POST /v1/push/tokens", "POST /webhooks/{gateway}", "POST /v1/verify", "POST /v1/reconciliations", "GET /healthz", "GET /readyz",
		"POST /v1/sales", "GET /v1/sales", "GET /v1/sales/{id}",
		"POST /v1/accounts", "GET /v1/accounts/{id}", "GET /v1/accounts/{id}/balances", "GET /v1/accounts/{id}/statement", "POST /v1/accounts/{id}/limits",
		"POST /v1/accounts/{id}/freeze", "POST /v1/accounts/{id}/unfreeze", "POST /v1/accounts/{id}/deposits",
		"POST /v1/transfers", "POST /v1/transfers/bulk", "GET /v1/transfers/{id}",
		"POST /v1/holds", "GET /v1/holds/{id}", "POST /v1/holds/{id}/commit", "POST /v1/holds/{id}/void", "POST /v1/holds/{id}/extend",
		"POST /v1/payouts", "GET /v1/payouts", "GET /v1/payouts/{id}", "POST /v1/payouts/{id}/approve", "POST /v1/payouts/{id}/cancel", "GET /v1/tickets/{ticket}", "GET /metrics",
		"POST /v1/keys", "GET /v1/keys", "DELETE /v1/keys/{id}",
		"POST /v1/webhook-endpoints", "GET /v1/webhook-endpoints", "GET /v1/webhook-endpoints/{id}", "POST /v1/webhook-endpoints/{id}", "DELETE /v1/webhook-endpoints/{id}",
		"POST /v1/webhook-endpoints/{id}/enable", "POST /v1/webhook-endpoints/{id}/disable", "POST /v1/webhook-endpoints/{id}/rotate", "POST /v1/webhook-endpoints/{id}/replay",
		"GET /v1/webhook-endpoints/{id}/deliveries", "POST /v1/webhook-endpoints/{id}/events/{event}/replay",
	} {
		method, path, _ := strings.Cut(route, " ")
		op, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s is missing", route)
			continue
		}
		if _, ok := op.Responses["default"].Content["application/problem+json"]; !ok {
			t.Errorf("%s does not say how it refuses", route)
		}
		if strings.HasPrefix(path, "/v1/") && len(op.Security) == 0 {
			t.Errorf("%s does not say who may call it", route)
		}
	}
	for _, ref := range strings.Split(string(raw), `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(ref, `"`)
		if _, ok := doc.Components.Schemas[name]; !ok {
			t.Errorf("schema %s is referred to and missing", name)
		}
	}
}

func TestVendoredFilesAreThoseThatWereReviewed(t *testing.T) {
	sums, err := os.ReadFile("static/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	if len(lines) != 3 {
		t.Errorf("got %d files, want 3", len(lines))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join("static", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s: got sha256 %s, want %s", name, got, sum)
		}
	}
}
