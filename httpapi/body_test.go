package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/httpapi"
)

func line(quantity string) string {
	return `{"lines":[{"sku":"tee","quantity":` + quantity + `}]}`
}

// bodies are rows of bad input, by number, and the right answer to each.
var bodies = []struct {
	row, path, body string
	status          int
	code            string
}{
	{"1 amount 0", "/v1/orders", line("0"), 422, "amount_out_of_range"},
	{"2 negative", "/v1/orders", line("-1"), 422, "amount_out_of_range"},
	{"2 smallest", "/v1/orders", line("-9223372036854775808"), 422, "amount_out_of_range"},
	{"2 minus zero", "/v1/orders", line("-0"), 422, "amount_out_of_range"},
	{"2 minus zero where 0 is good", "/v1/items", item(`"stock":-0`), 422, "amount_out_of_range"},
	{"3 2^53", "/v1/orders", line("9007199254740992"), 422, "amount_out_of_range"},
	{"4 2^63-1", "/v1/orders", line("9223372036854775807"), 422, "amount_out_of_range"},
	{"4 2^63", "/v1/orders", line("9223372036854775808"), 422, "amount_out_of_range"},
	{"4 30 digits", "/v1/orders", line("111111111111111111111111111111"), 422, "amount_out_of_range"},
	{"4 1e400", "/v1/orders", line("1e400"), 400, "invalid_type"},
	{"5 fraction", "/v1/orders", line("1.0"), 400, "invalid_type"},
	{"5 half", "/v1/orders", line("1.5"), 400, "invalid_type"},
	{"5 exponent", "/v1/orders", line("1e3"), 400, "invalid_type"},
	{"5 quoted", "/v1/orders", line(`"100"`), 400, "invalid_type"},
	{"5 hex", "/v1/orders", line("0x10"), 400, "invalid_json"},
	{"5 leading zero", "/v1/orders", line("01"), 400, "invalid_json"},
	{"5 plus", "/v1/orders", line("+1"), 400, "invalid_json"},
	{"5 NaN", "/v1/orders", line("NaN"), 400, "invalid_json"},
	{"6 null", "/v1/orders", line("null"), 400, "missing_field"},
	{"6 absent", "/v1/orders", `{"lines":[{"sku":"tee"}]}`, 400, "missing_field"},
	{"6 no lines", "/v1/orders", `{}`, 400, "missing_field"},
	{"6 null lines", "/v1/orders", `{"lines":null}`, 400, "missing_field"},
	{"6 null metadata", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"metadata":null}`, 400, "missing_field"},
	{"7 total overflow", "/v1/orders", line("9007199254740991"), 422, "total_overflow"},
	{"8 lower case", "/v1/items", item(`"currency":"usd"`), 422, "currency_invalid"},
	{"8 unknown", "/v1/items", item(`"currency":"XYZ"`), 422, "currency_invalid"},
	{"8 XXX", "/v1/items", item(`"currency":"XXX"`), 422, "currency_invalid"},
	{"8 four letters", "/v1/items", item(`"currency":"EURO"`), 422, "currency_invalid"},
	{"9 other currency", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"currency":"USD"}`, 422, "currency_mismatch"},
	{"10 price", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1,"price":1}]}`, 400, "unknown_field"},
	{"10 total", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"total":1}`, 400, "unknown_field"},
	{"11 duplicate", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1,"quantity":2}]}`, 400, "duplicate_field"},
	{"12 case", "/v1/orders", `{"Lines":[{"sku":"tee","quantity":1}]}`, 400, "unknown_field"},
	{"12 folded", "/v1/orders", `{"lines":[{"ſku":"tee","quantity":1}]}`, 400, "unknown_field"},
	{"13 is_admin", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"is_admin":true}`, 400, "unknown_field"},
	{"13 state", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"state":"paid"}`, 400, "unknown_field"},
	{"13 id", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"id":"mine"}`, 400, "unknown_field"},
	{"14 garbage behind", "/v1/orders", oneTee + "garbage", 400, "trailing_data"},
	{"14 two documents", "/v1/orders", oneTee + oneTee, 400, "trailing_data"},
	{"15 BOM", "/v1/orders", "\ufeff" + oneTee, 400, "invalid_json"},
	{"15 comment", "/v1/orders", `{/**/"lines":[]}`, 400, "invalid_json"},
	{"15 comma", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1},]}`, 400, "invalid_json"},
	{"15 quotes", "/v1/orders", `{'lines':[]}`, 400, "invalid_json"},
	{"15 empty", "/v1/orders", ``, 400, "invalid_json"},
	{"16 depth 33", "/v1/orders", strings.Repeat("[", 33) + strings.Repeat("]", 33), 400, "too_deep"},
	{"16 depth 10001", "/v1/orders", `{"metadata":{"a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "}}", 400, "too_deep"},
	{"17 lines", "/v1/orders", `{"lines":[` + strings.Repeat(`{"sku":"tee","quantity":1},`, 100) + `{"sku":"tee","quantity":1}]}`, 422, "too_many_items"},
	{"18 UTF-8", "/v1/orders", "{\"customer\":\"\xff\"}", 400, "invalid_utf8"},
	{"18 surrogate", "/v1/orders", `{"customer":"\ud800"}`, 400, "invalid_utf8"},
	{"19 NUL", "/v1/items", item(`"name":"a\u0000"`), 422, "invalid_characters"},
	{"19 C1", "/v1/items", item("\"name\":\"a\u0085\""), 422, "invalid_characters"},
	{"19 bidi", "/v1/items", item("\"name\":\"a\u202eb\""), 422, "invalid_characters"},
	{"19 metadata name", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"metadata":{"a\u0001":"b"}}`, 422, "invalid_characters"},
	{"20 Cyrillic", "/v1/items", item(`"sku":"tее"`), 400, "invalid_id"},
	{"20 space", "/v1/items", item(`"sku":"tee "`), 400, "invalid_id"},
	{"21 empty", "/v1/items", item(`"sku":""`), 400, "invalid_id"},
	{"21 long", "/v1/items", item(`"sku":"` + strings.Repeat("a", 65) + `"`), 400, "invalid_id"},
	{"24 too large", "/v1/orders", `{"customer":"` + strings.Repeat("a", 64<<10) + `"}`, 413, "body_too_large"},
	{"36 SQL", "/v1/orders", `{"lines":[{"sku":"' OR 1=1--","quantity":1}]}`, 400, "invalid_id"},
	{"92 hold 0", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"hold_seconds":0}`, 422, "hold_out_of_range"},
	{"92 hold -1", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"hold_seconds":-1}`, 422, "hold_out_of_range"},
	{"92 hold 10 years", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"hold_seconds":315360000}`, 422, "hold_out_of_range"},
	{"94 card", "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"metadata":{"note":"4111 1111 1111 1111"}}`, 422, "card_data_not_accepted"},
	{"94 dashes", "/v1/items/tee/stock", `{"quantity":1,"reason":"card 4111-1111-1111-1111 given"}`, 422, "card_data_not_accepted"},
	{"94 Amex", "/v1/items", item(`"name":"378282246310005"`), 422, "card_data_not_accepted"},
	{"unknown SKU", "/v1/orders", `{"lines":[{"sku":"cap","quantity":1}]}`, 422, "sku_unknown"},
	{"stock of unknown SKU", "/v1/items/cap/stock", `{"quantity":1,"reason":"found"}`, 404, "not_found"},
}

// item is an item's body in which member replaces or adds one.
func item(member string) string {
	name, _, _ := strings.Cut(member, ":")
	all := []string{member}
	for _, m := range []string{`"sku":"cap"`, `"name":"Cap"`, `"currency":"EUR"`, `"price":100`} {
		if !strings.HasPrefix(m, name+":") {
			all = append(all, m)
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func TestBadBodiesAreRefusedAndChangeNothing(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, c := range bodies {
		t.Run(c.row, func(t *testing.T) {
			a := s.keyed(rand.Text(), http.MethodPost, c.path, c.body)
			a.t = t
			a.want(c.status, c.code)
		})
	}
	if got := s.available(); got != openingStock {
		t.Errorf("got %d available, want %d", got, openingStock)
	}
	var items struct{ Items []struct{ SKU string } }
	s.do(http.MethodGet, "/v1/items", "").want(200, "").into(&items)
	if len(items.Items) != 1 {
		t.Errorf("got items %v, want the tee alone", items.Items)
	}
	if strings.Contains(s.log.String(), "4111") || s.log.String() != "" {
		t.Errorf("bad input was logged: %s", s.log.String())
	}
}

func TestRefusalNamesTheMemberAtFault(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	var p httpapi.Problem
	a := s.do(http.MethodPost, "/v1/orders", `{"lines":[{"sku":"tee","quantity":1},{"sku":"tee","quantity":null}]}`)
	a.into(&p)
	if len(p.Errors) != 1 || p.Errors[0].Field != "/lines/1/quantity" || p.Errors[0].Code != p.Code {
		t.Errorf("got %+v", p.Errors)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("got Content-Type %q", got)
	}
	if p.Status != a.status || p.Title != "Bad Request" || p.RequestID != a.header.Get("Request-Id") {
		t.Errorf("got %+v", p)
	}
}

func TestOnlyJSONIsRead(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"application/json; charset=utf-16", "application/json, text/plain", "application/jsonp"} {
		t.Run("22 "+media, func(t *testing.T) {
			headers := []string{"Authorization: Bearer " + s.key, "Idempotency-Key: 0123456789abcdef"}
			if media != "" {
				headers = append(headers, "Content-Type: "+media)
			}
			a := s.send(http.MethodPost, "/v1/orders", oneTee, headers...)
			a.t = t
			a.want(415, "unsupported_media_type")
		})
	}
	s.do(http.MethodPost, "/v1/orders", oneTee, "Content-Encoding: gzip").want(415, "unsupported_media_type")
	a := s.do(http.MethodGet, "/v1/items", "", "Accept: application/xml").want(200, "")
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got %q, want JSON", got)
	}
}

func TestReturnURLIsSecureWhereverItGoes(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for url, status := range map[string]int{
		"http://shop.example/": 422, "javascript:alert(1)": 422, "//shop.example/": 422, "ftp://shop.example/": 422, "/back": 422,
		"https://shop.example/": 201, "http://127.0.0.1:8080/back": 201, "http://[::1]/": 201,
	} {
		id := s.order(oneTee).ID
		if a := s.do(http.MethodPost, "/v1/orders/"+id+"/payments", fmt.Sprintf(`{"return_url":"%s"}`, url)); a.status != status {
			t.Errorf("%s: got %d, want %d: %s", url, a.status, status, a.body)
		}
	}
}

func TestReturnURLIsWhereABuyerMayGo(t *testing.T) {
	s := openShop(t, httpapi.Options{ReturnURLs: []string{"https://shop.example"}})
	id := s.order(oneTee).ID
	for _, c := range []struct {
		row, url string
		status   int
		code     string
	}{
		{"38 CRLF", `https://shop.example/\r\nSet-Cookie: a=b`, 400, "invalid_characters"},
		{"40 javascript", `javascript:alert(1)`, 422, "return_url_not_allowed"},
		{"85 other origin", `https://evil.example/`, 422, "return_url_not_allowed"},
		{"85 user", `https://shop.example@evil.example/`, 422, "return_url_not_allowed"},
		{"85 user of the right origin", `https://evil@shop.example/`, 422, "return_url_not_allowed"},
		{"85 prefix", `https://shop.example.evil.example/`, 422, "return_url_not_allowed"},
		{"85 backslash", `https://evil.example\\@shop.example/`, 422, "return_url_not_allowed"},
		{"85 plain", `http://shop.example/`, 422, "return_url_not_allowed"},
		{"good", `https://shop.example/thanks?x=1`, 201, ""},
	} {
		t.Run(c.row, func(t *testing.T) {
			a := s.do(http.MethodPost, "/v1/orders/"+id+"/payments", fmt.Sprintf(`{"return_url":"%s"}`, c.url))
			a.t = t
			a.want(c.status, c.code)
		})
	}
}
