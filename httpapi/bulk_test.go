package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestManyOrdersAreAnsweredOneByOne(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	body := `{"orders":[` + oneTee + `,{"lines":[{"sku":"none","quantity":1}]},{"lines":[{"sku":"tee","quantity":9007199254740991}]}]}`
	const key = "bulk-0123456789ab"
	first := s.keyed(key, http.MethodPost, "/v1/orders/bulk", body).want(http.StatusOK, "")
	var got struct {
		Orders []struct {
			Order   *orderMade
			Refusal *struct {
				Code string
				SKU  string
			}
		}
	}
	first.into(&got)
	if len(got.Orders) != 3 || got.Orders[0].Order == nil || !strings.HasPrefix(got.Orders[0].Order.ClientSecret, "hfs_") ||
		got.Orders[1].Refusal == nil || got.Orders[1].Refusal.Code != "sku_unknown" || got.Orders[2].Refusal == nil {
		t.Fatalf("got %s", first.body)
	}
	again := s.keyed(key, http.MethodPost, "/v1/orders/bulk", body).want(http.StatusOK, "")
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s\nthen %s", first.body, again.body)
	}
	s.keyed(key, http.MethodPost, "/v1/orders/bulk", `{"orders":[`+oneTee+`]}`).want(http.StatusUnprocessableEntity, "idempotency_key_reused")
}

func TestManyOrdersTogetherAreRefusedTogether(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	s.do(http.MethodPost, "/v1/orders/bulk", `{"together":true,"orders":[`+oneTee+`,{"lines":[{"sku":"none","quantity":1}]}]}`).
		want(http.StatusUnprocessableEntity, "sku_unknown")
	s.do(http.MethodPost, "/v1/orders/bulk", `{"together":true,"orders":[`+oneTee+`,`+oneTee+`]}`).want(http.StatusOK, "")
}

func TestBadBulksAreRefused(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	hundredOne := strings.Repeat(oneTee+",", 100) + oneTee
	for _, c := range []struct {
		body, code, field string
		status            int
	}{
		{`{}`, "missing_field", "/orders", 400},
		{`{"orders":[]}`, "too_many_items", "", 422},
		{`{"orders":[` + hundredOne + `]}`, "too_many_items", "/orders", 422},
		{`{"orders":[{"lines":[{"sku":"tee"}]}]}`, "missing_field", "/orders/0/lines/0/quantity", 400},
		{`{"orders":[` + oneTee + `],"atomic":true}`, "unknown_field", "/atomic", 400},
		{`{"orders":[{"lines":[{"sku":"tee","quantity":1}],"hold_seconds":1}]}`, "hold_out_of_range", "/orders/0/hold_seconds", 422},
	} {
		a := s.do(http.MethodPost, "/v1/orders/bulk", c.body).want(c.status, c.code)
		if !strings.Contains(string(a.body), fmt.Sprintf("%q", c.field)) && c.field != "" {
			t.Errorf("%s: got %s, want field %s", c.body[:min(len(c.body), 80)], a.body, c.field)
		}
	}
}
