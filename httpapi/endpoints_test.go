package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// plain seals nothing.
type plain struct{}

func (plain) Seal(s string) string          { return s }
func (plain) Open(s string) (string, error) { return s, nil }

func TestAnEndpointIsCalledAndItsLogSaysSo(t *testing.T) {
	s := openShopWith(t, httpapi.Options{}, holdfast.Options{Sealer: plain{}, PrivateEndpoints: true})
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("webhook-id") + " " + r.Header.Get("webhook-signature")
	}))
	t.Cleanup(receiver.Close)
	next := func() string {
		select {
		case id := <-got:
			return id
		case <-time.After(20 * time.Second):
			t.Fatal("the endpoint is not called")
		}
		return ""
	}
	var made struct{ ID, Secret, State string }
	s.do(http.MethodPost, "/v1/webhook-endpoints", `{"url":"`+receiver.URL+`","types":["order.held"]}`).want(201, "").into(&made)
	if made.State != "enabled" || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("got %+v", made)
	}
	at := "/v1/webhook-endpoints/" + made.ID
	s.order(oneTee)
	first := next()
	if a := s.do(http.MethodGet, at, "").want(200, ""); strings.Contains(string(a.body), "whsec_") {
		t.Errorf("the secret is shown again: %s", a.body)
	}
	var log struct{ Items []holdfast.Delivery }
	s.do(http.MethodGet, at+"/deliveries", "").want(200, "").into(&log)
	if len(log.Items) != 1 || !strings.HasPrefix(first, log.Items[0].ID+" v1,") {
		t.Errorf("got %+v and %s", log, first)
	}
	s.do(http.MethodPost, at+"/rotate", "").want(200, "")
	s.do(http.MethodPost, at+"/events/3/replay", "").want(202, "")
	if again := next(); again[:30] != first[:30] || strings.Count(again, "v1,") != 2 {
		t.Errorf("got %s, want the id of %s and two signatures", again, first)
	}
	s.do(http.MethodPost, at+"/disable", "").want(200, "")
	s.do(http.MethodPost, at+"/replay", `{"since":"2020-01-01T00:00:00Z"}`).want(202, "")
	s.do(http.MethodPost, at, `{"url":"`+receiver.URL+`/other","types":["order.held"]}`).want(200, "")
	s.do(http.MethodPost, at+"/enable", "").want(200, "")
	next()
	s.do(http.MethodDelete, at, "").want(204, "")
	s.do(http.MethodGet, at, "").want(404, "not_found")
}

func TestAWrongEndpointIsRefused(t *testing.T) {
	s := openShopWith(t, httpapi.Options{}, holdfast.Options{Sealer: plain{}})
	for body, code := range map[string]string{
		`{"url":"https://127.0.0.1/","types":["*"]}`:                          "422 url_not_allowed",
		`{"url":"https://shop.example/","types":["Order"]}`:                   "422 invalid_field",
		`{"url":"https://shop.example/","types":[]}`:                          "422 too_many_items",
		`{"url":"https://shop.example/","types":["*"],"secret":"whsec_ours"}`: "400 unknown_field",
		`{"url":"javascript:alert(1)","types":["*"]}`:                         "422 url_not_allowed",
		`{"types":["*"]}`: "400 missing_field",
	} {
		a := s.do(http.MethodPost, "/v1/webhook-endpoints", body)
		if got := fmt.Sprint(a.status, " ", a.code()); got != code {
			t.Errorf("%s: got %s, want %s", body, got, code)
		}
	}
	writer := s.newKey(holdfast.ScopeWrite)
	s.send(http.MethodGet, "/v1/webhook-endpoints", "", "Authorization: Bearer "+writer).want(403, "forbidden_scope")
	s.do(http.MethodGet, "/v1/webhook-endpoints/none", "").want(404, "not_found")
	bare := openShop(t, httpapi.Options{})
	bare.do(http.MethodPost, "/v1/webhook-endpoints", `{"url":"https://shop.example/","types":["*"]}`).want(409, "master_key_required")
}
