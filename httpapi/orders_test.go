package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestSoldOutSaysWhatIsLeft(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	var p httpapi.Problem
	s.do(http.MethodPost, "/v1/orders", line(fmt.Sprint(openingStock+1))).want(409, "sold_out").into(&p)
	if p.SKU != "tee" || p.Available == nil || *p.Available != openingStock {
		t.Errorf("got %+v", p)
	}
	s.order(line(fmt.Sprint(openingStock)))
	p = httpapi.Problem{}
	s.do(http.MethodPost, "/v1/orders", oneTee).want(409, "sold_out").into(&p)
	if p.Available == nil || *p.Available != 0 {
		t.Errorf("got %+v, want 0 available", p)
	}
}

func TestOrderLivesFromHoldToRefund(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(line("2"))
	if o.State != "held" || o.Total != 3000 || !strings.HasPrefix(o.ClientSecret, "hfs_") || o.ServerTime != o.CreatedAt {
		t.Errorf("got %+v", o)
	}
	path := "/v1/orders/" + o.ID
	s.do(http.MethodPost, path+"/fulfil", "").want(409, "invalid_state") // ship before pay
	var pay holdfast.Payment
	s.do(http.MethodPost, path+"/payments", `{"return_url":"http://localhost:3000/back"}`).want(201, "").into(&pay)
	if pay.State != "open" || pay.URL == "" || pay.Amount != 3000 {
		t.Errorf("got %+v", pay)
	}
	s.do(http.MethodPost, path+"/payments", `{"gateway":"nobody"}`).want(422, "gateway_unknown")
	s.do(http.MethodPost, path+"/payments", `{"method":"shells"}`).want(422, "method_unknown")
	s.gateway.set(gateway.Paid)
	s.do(http.MethodPost, "/v1/payments/"+pay.ID+"/refresh", "").want(200, "").into(&pay)
	if pay.State != "paid" {
		t.Errorf("got payment %s, want paid", pay.State)
	}
	s.do(http.MethodPost, path+"/cancel", "").want(409, "invalid_state")
	if got := s.do(http.MethodPost, path+"/fulfil", "").want(200, "").str("state"); got != "fulfilled" {
		t.Errorf("got %s, want fulfilled", got)
	}
	s.do(http.MethodPost, path+"/refunds", `{"amount":3001}`).want(422, "refund_exceeds_capture")
	s.do(http.MethodPost, path+"/refunds", `{"amount":0}`).want(422, "amount_out_of_range")
	s.do(http.MethodPost, path+"/refunds", `{"restock":[{"sku":"tee","quantity":3}]}`).want(422, "restock_exceeds_sold")
	refund := s.do(http.MethodPost, path+"/refunds", `{"amount":1500,"reason":"too small","restock":[{"sku":"tee","quantity":1}]}`).want(201, "")
	s.until(o.ID, "refund.done")
	if got := s.do(http.MethodGet, "/v1/refunds/"+refund.str("id"), "").want(200, "").str("state"); got != "done" {
		t.Errorf("got refund %s, want done", got)
	}
	s.do(http.MethodGet, "/v1/refunds/nothing", "").want(404, "not_found")

	var d holdfast.OrderDetail
	s.do(http.MethodGet, path, "").want(200, "").into(&d)
	if len(d.Payments) != 1 || len(d.RefundList) != 1 || len(d.Tasks) == 0 {
		t.Errorf("got %+v", d)
	}
	if got := s.available(); got != openingStock-1 {
		t.Errorf("got %d available, want %d", got, openingStock-1)
	}
	var report struct{ OK bool }
	s.do(http.MethodPost, "/v1/verify", "").want(200, "").into(&report)
	if !report.OK {
		t.Error("the books are wrong")
	}
}

func TestSlowGatewayLeavesThePaymentRequested(t *testing.T) {
	if testing.Short() {
		t.Skip("waits as long as a payment waits for its gateway")
	}
	t.Parallel()
	s := openShop(t, httpapi.Options{})
	s.gateway.stuck = make(chan struct{})
	t.Cleanup(func() { close(s.gateway.stuck) })
	id := s.order(oneTee).ID
	// It takes longer than ReadTimeout, which must not end the request.
	a := s.do(http.MethodPost, "/v1/orders/"+id+"/payments", "{}").want(202, "")
	if got := a.str("state"); got != "requested" {
		t.Errorf("got payment %s, want requested", got)
	}
}

func TestCancelledOrderGivesItsStockBack(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(line("7"))
	if got := s.do(http.MethodPost, "/v1/orders/"+o.ID+"/cancel", "{}").want(200, "").str("state"); got != "cancelled" {
		t.Errorf("got %s, want cancelled", got)
	}
	if got := s.available(); got != openingStock {
		t.Errorf("got %d available, want %d", got, openingStock)
	}
	s.do(http.MethodPost, "/v1/orders/"+o.ID+"/payments", "{}").want(409, "invalid_state") // pay a cancelled order
	open := s.order(oneTee)
	s.do(http.MethodPost, "/v1/orders/"+open.ID+"/payments", "{}").want(201, "")
	if got := s.do(http.MethodPost, "/v1/orders/"+open.ID+"/cancel", "").want(202, "").str("state"); got != "closing" {
		t.Errorf("got %s, want closing", got)
	}
}

func TestItemsAreReplacedByWhoKnowsThem(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	made := s.do(http.MethodPost, "/v1/items", item(`"stock":5`)).want(201, "")
	if got := made.header.Get("ETag"); got != `"v1"` {
		t.Errorf("got ETag %s, want v1", got)
	}
	next := s.do(http.MethodPost, "/v1/items", item(`"price":200`), `If-Match: "v1"`).want(200, "")
	if got := next.header.Get("ETag"); got != `"v2"` {
		t.Errorf("got ETag %s, want v2", got)
	}
	s.do(http.MethodPost, "/v1/items", item(`"price":300`), `If-Match: "v1"`).want(412, "stale")
	s.do(http.MethodPost, "/v1/items", item(`"if_match":1`)).want(412, "stale")
	for _, tag := range []string{"*", "v2", `W/"v2"`, `"v"`, `"v0"`, `"vx"`} {
		s.do(http.MethodPost, "/v1/items", item(`"price":300`), "If-Match: "+tag).want(400, "invalid_parameter")
	}
	s.do(http.MethodPost, "/v1/items", item(`"if_match":1`), `If-Match: "v2"`).want(400, "invalid_parameter")
	read := s.do(http.MethodGet, "/v1/items/cap", "").want(200, "")
	if read.header.Get("ETag") != `"v2"` || !strings.Contains(string(read.body), `"price":200`) {
		t.Errorf("got %s %s", read.header.Get("ETag"), read.body)
	}
	s.do(http.MethodGet, "/v1/items/nothing", "").want(404, "not_found")
}

func TestMarkupIsKeptAndHarmless(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	const name = `<img src=x onerror=alert(1)></script>`
	s.do(http.MethodPost, "/v1/items", item(`"name":"`+name+`"`)).want(201, "")
	a := s.do(http.MethodGet, "/v1/items/cap", "")
	if a.str("name") != name || strings.Contains(string(a.body), "<") {
		t.Errorf("got %s", a.body)
	}
}

func TestStockIsExplained(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(line("97"))
	var x holdfast.Explanation
	s.do(http.MethodGet, "/v1/items/tee/stock/explain", "").want(200, "").into(&x)
	if x.Available != 3 || x.OnHand != 100 || x.Held != 97 || len(x.Holds) != 1 || !strings.HasPrefix(x.Holds[0].ID, o.ID) {
		t.Errorf("got %+v", x)
	}
	s.do(http.MethodPost, "/v1/items/tee/stock", `{"quantity":-4,"reason":"stolen"}`).want(409, "stock_insufficient")
	var level holdfast.StockLevel
	s.do(http.MethodPost, "/v1/items/tee/stock", `{"quantity":-3,"reason":"stolen"}`).want(200, "").into(&level)
	if level.Available != 0 || level.Lost != 3 {
		t.Errorf("got %+v", level)
	}
	s.do(http.MethodPost, "/v1/items/tee/stock", `{"quantity":9,"reason":"pre-order","backorder":true}`).want(200, "").into(&level)
	if level.Backorder != 9 {
		t.Errorf("got %+v", level)
	}
	s.do(http.MethodGet, "/v1/items/nothing/stock", "").want(404, "not_found")
}

type orderPage struct {
	Items      []orderMade `json:"items"`
	NextCursor string      `json:"next_cursor"`
}

func TestListsAreReadPageByPage(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	var want []string
	for range 5 {
		want = append([]string{s.order(`{"lines":[{"sku":"tee","quantity":1}],"customer":"c1"}`).ID}, want...)
	}
	s.order(oneTee)
	var got []string
	cursor := ""
	for range 4 {
		var p orderPage
		s.do(http.MethodGet, "/v1/orders?customer=c1&limit=2&cursor="+cursor, "").want(200, "").into(&p)
		for _, o := range p.Items {
			got = append(got, o.ID)
		}
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	a := s.do(http.MethodGet, "/v1/orders?state=paid", "").want(200, "")
	if !strings.Contains(string(a.body), `"items":[]`) {
		t.Errorf("an empty list is not []: %s", a.body)
	}
}

func TestCursorsAreOnesOwn(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for range 3 {
		s.order(oneTee)
	}
	var p orderPage
	s.do(http.MethodGet, "/v1/orders?limit=1", "").into(&p)
	if p.NextCursor == "" {
		t.Fatal("no cursor")
	}
	flipped := []byte(p.NextCursor)
	flipped[len(flipped)-3] ^= 1
	for _, query := range []string{
		"cursor=" + string(flipped), "cursor=" + p.NextCursor[:len(p.NextCursor)-4], "cursor=" + p.NextCursor[:8],
		"cursor=x!", "state=paid&cursor=" + p.NextCursor,
	} {
		s.do(http.MethodGet, "/v1/orders?"+query, "").want(400, "invalid_cursor")
	}
	s.do(http.MethodGet, "/v1/items?cursor="+p.NextCursor, "").want(400, "invalid_cursor")
	s.do(http.MethodGet, "/v1/orders?cursor="+p.NextCursor, "").want(200, "")
	s.key = s.newKey(holdfast.ScopeRead)
	s.do(http.MethodGet, "/v1/orders?cursor="+p.NextCursor, "").want(400, "invalid_cursor")
}

func TestBadParametersAreRefused(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, c := range []struct {
		query  string
		status int
		code   string
	}{
		{"limit=0", 422, "limit_out_of_range"}, {"limit=-1", 422, "limit_out_of_range"}, {"limit=1000000000", 422, "limit_out_of_range"},
		{"limit=201", 422, "limit_out_of_range"}, {"limit=many", 400, "invalid_parameter"}, {"limit=1&limit=2", 400, "invalid_parameter"},
		{"sort=price;--", 400, "invalid_parameter"}, {"sort=price%3B--", 400, "invalid_sort"}, {"sort=newest", 200, ""},
		{"state=sold", 400, "invalid_parameter"}, {"colour=red", 400, "invalid_parameter"}, {"customer=a%0d%0ab", 400, "invalid_parameter"},
		{"customer=%27%20OR%201%3D1--", 200, ""}, {"reference=%25", 200, ""}, {"limit=200", 200, ""},
	} {
		a := s.do(http.MethodGet, "/v1/orders?"+c.query, "")
		a.want(c.status, c.code)
		if c.status == 200 && !json.Valid(a.body) {
			t.Errorf("%s: got %s", c.query, a.body)
		}
	}
}
