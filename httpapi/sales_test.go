package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// sale is the body of a sale of tees from from to to, counted from now.
func sale(from, to time.Duration, more string) string {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	return fmt.Sprintf(`{"sku":"tee","opens_at":%q,"closes_at":%q,"price":900%s}`, at(from), at(to), more)
}

func TestASaleSetsPriceAndLimit(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	made := s.do(http.MethodPost, "/v1/sales", sale(-time.Minute, time.Hour, `,"per_customer":2,"hold_for":120,"late_policy":["refund"],"preset":"batched"`)).want(201, "")
	var got, read holdfast.Sale
	made.into(&got)
	if got.Price != 900 || got.PerCustomer != 2 || got.HoldFor != 120 || made.header.Get("ETag") != `"v1"` {
		t.Errorf("got %+v with ETag %s", got, made.header.Get("ETag"))
	}
	s.do(http.MethodGet, "/v1/sales/"+got.ID, "").want(200, "").into(&read)
	if read.OpensAt != got.OpensAt || read.ID != got.ID {
		t.Errorf("read %+v, want %+v", read, got)
	}
	s.do(http.MethodGet, "/v1/sales/none", "").want(404, "not_found")

	s.do(http.MethodPost, "/v1/orders", oneTee).want(422, "customer_required")
	order := `{"customer":"ann","lines":[{"sku":"tee","quantity":2}]}`
	if o := s.order(order); o.Total != 1800 {
		t.Errorf("got a total of %d, want 1800", o.Total)
	}
	var p httpapi.Problem
	s.do(http.MethodPost, "/v1/orders", order).want(429, "customer_limit").into(&p)
	if p.SKU != "tee" || p.Available == nil || *p.Available != 0 {
		t.Errorf("got %+v, want none of tee left", p)
	}
}

func TestOutsideOfItsWindowASaleSaysWhenItOpens(t *testing.T) {
	clock := time.Now()
	s := openShopWith(t, httpapi.Options{}, holdfast.Options{Passive: true, Clock: func() time.Time { return clock },
		Gateways: map[string]gateway.Gateway{"till": &till{}}})
	body := `{"id":"double-11","sku":"tee","opens_at":"%s","closes_at":"%s","price":1}`
	first := fmt.Sprintf(body, clock.Add(time.Hour).UTC().Format(time.RFC3339), clock.Add(2*time.Hour).UTC().Format(time.RFC3339))
	s.do(http.MethodPost, "/v1/sales", first).want(201, "")
	var p httpapi.Problem
	s.do(http.MethodPost, "/v1/orders", oneTee).want(409, "sale_not_open").into(&p)
	if got, want := p.OpensAt.Std(), clock.Add(time.Hour).UTC().Truncate(time.Second); !got.Equal(want) {
		t.Errorf("opens at %v, want %v", got, want)
	}
	s.do(http.MethodPost, "/v1/sales", strings.Replace(first, "double-11", "double-12", 1)).want(409, "sale_overlaps")
	over := fmt.Sprintf(body, clock.Add(-2*time.Hour).UTC().Format(time.RFC3339), clock.Add(-time.Hour).UTC().Format(time.RFC3339))
	s.do(http.MethodPost, "/v1/sales", over, `If-Match: "v2"`).want(412, "stale")
	if got := s.do(http.MethodPost, "/v1/sales", over, `If-Match: "v1"`).want(200, "").header.Get("ETag"); got != `"v2"` {
		t.Errorf("got ETag %s, want v2", got)
	}
	s.do(http.MethodPost, "/v1/orders", oneTee).want(409, "sale_closed")
}

func TestSalesAreListedBySKU(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for i := range 3 {
		hour := time.Duration(i) * time.Hour
		s.do(http.MethodPost, "/v1/sales", sale(hour, hour+time.Hour, fmt.Sprintf(`,"id":"s%d"`, i))).want(201, "")
	}
	var list struct {
		Items []holdfast.Sale `json:"items"`
		Next  string          `json:"next_cursor"`
	}
	s.do(http.MethodGet, "/v1/sales?sku=tee&limit=2", "").want(200, "").into(&list)
	if len(list.Items) != 2 || list.Items[0].ID != "s0" || list.Next == "" {
		t.Errorf("got %+v, want the first two and a cursor", list)
	}
	s.do(http.MethodGet, "/v1/sales?sku=tee&limit=2&cursor="+list.Next, "").want(200, "").into(&list)
	if len(list.Items) != 1 || list.Items[0].ID != "s2" {
		t.Errorf("got %+v, want the third", list)
	}
	s.do(http.MethodGet, "/v1/sales?sku=cap", "").want(200, "").into(&list)
	if len(list.Items) != 0 {
		t.Errorf("got %+v, want none of cap", list)
	}
}

func TestSalesThatCannotBeMeantAreRefused(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	good := sale(0, time.Hour, "")
	opens := func(at string) string {
		return `{"sku":"tee","opens_at":` + at + `,"closes_at":"2999-01-01T00:00:00Z","price":1}`
	}
	for _, c := range []struct {
		row, body string
		status    int
		code      string
	}{
		{"92 hold 0", sale(0, time.Hour, `,"hold_for":0`), 422, "hold_out_of_range"},
		{"92 hold 10 years", sale(0, time.Hour, `,"hold_for":315360000`), 422, "hold_out_of_range"},
		{"102 0000-00-00", opens(`"0000-00-00T00:00:00Z"`), 400, "invalid_time"},
		{"102 year 0", opens(`"0000-01-01T00:00:00Z"`), 400, "invalid_time"},
		{"102 year 1", opens(`"0001-01-01T00:00:00Z"`), 400, "invalid_time"},
		{"102 year 10000", opens(`"10000-01-01T00:00:00Z"`), 400, "invalid_time"},
		{"102 leap second", opens(`"2016-12-31T23:59:60Z"`), 400, "invalid_time"},
		{"102 31 February", opens(`"2026-02-31T00:00:00Z"`), 400, "invalid_time"},
		{"102 no zone", opens(`"2026-01-01T00:00:00"`), 400, "invalid_time"},
		{"102 another zone", opens(`"2026-01-01T00:00:00+08:00"`), 400, "invalid_time"},
		{"102 date only", opens(`"2026-01-01"`), 400, "invalid_time"},
		{"102 empty", opens(`""`), 400, "invalid_time"},
		{"a number", opens(`1767225600`), 400, "invalid_type"},
		{"null", opens(`null`), 400, "missing_field"},
		{"nothing", `{}`, 400, "missing_field"},
		{"no closing", `{"sku":"tee","opens_at":"2026-01-01T00:00:00Z","price":1}`, 400, "missing_field"},
		{"closes first", sale(time.Hour, time.Minute, ""), 422, "invalid_field"},
		{"preset", sale(0, time.Hour, `,"preset":"psychic"`), 422, "invalid_field"},
		{"limit", sale(0, time.Hour, `,"per_customer":-1`), 422, "amount_out_of_range"},
		{"unknown item", strings.Replace(good, "tee", "cap", 1), 422, "sku_unknown"},
		{"price 0", strings.Replace(good, "900", "0", 1), 422, "amount_out_of_range"},
	} {
		t.Run(c.row, func(t *testing.T) {
			a := s.do(http.MethodPost, "/v1/sales", c.body)
			a.t = t
			a.want(c.status, c.code)
		})
	}
	s.do(http.MethodPost, "/v1/orders", oneTee).want(201, "")
}
