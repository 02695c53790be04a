package httpapi_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

const (
	firstKey  = "first-key-0123456789"
	secondKey = "second-key-0123456789"
)

func TestEveryChangeNeedsOneGoodKey(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	id := s.order(oneTee).ID
	for path, body := range map[string]string{
		"/v1/items": item(`"sku":"cap"`), "/v1/items/tee/stock": `{"quantity":1,"reason":"found"}`, "/v1/orders": oneTee,
		"/v1/orders/" + id + "/payments": "{}", "/v1/orders/" + id + "/cancel": "", "/v1/orders/" + id + "/refunds": "{}", "/v1/orders/" + id + "/fulfil": "",
	} {
		for _, c := range []struct {
			row  string
			keys []string
			code string
		}{
			{"44 missing", nil, "idempotency_key_required"},
			{"45 empty", []string{""}, "idempotency_key_invalid"},
			{"45 one character", []string{"a"}, "idempotency_key_invalid"},
			{"45 15", []string{strings.Repeat("a", 15)}, "idempotency_key_invalid"},
			{"45 129", []string{strings.Repeat("a", 129)}, "idempotency_key_invalid"},
			{"45 not ASCII", []string{"ключ-0123456789abcdef"}, "idempotency_key_invalid"},
			{"45 space", []string{"a key with a space in it"}, "idempotency_key_invalid"},
			{"46 two", []string{firstKey, secondKey}, "idempotency_key_invalid"},
		} {
			headers := []string{"Authorization: Bearer " + s.key, "Content-Type: application/json"}
			for _, k := range c.keys {
				headers = append(headers, "Idempotency-Key: "+k)
			}
			a := s.send(http.MethodPost, path, body, headers...)
			if a.status != 400 || a.code() != c.code {
				t.Errorf("%s %s: got %d %s, want 400 %s", c.row, path, a.status, a.code(), c.code)
			}
		}
	}
	if got := s.available(); got != openingStock-1 {
		t.Errorf("got %d available, want %d", got, openingStock-1)
	}
}

func TestReplayIsTheSameToTheByte(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	first := s.keyed(firstKey, http.MethodPost, "/v1/orders", `{"lines":[{"sku":"tee","quantity":2}],"customer":"c1"}`).want(201, "")
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a replay")
	}
	for _, body := range []string{
		`{"lines":[{"sku":"tee","quantity":2}],"customer":"c1"}`,
		` { "customer" : "c1", "lines" : [ { "quantity" : 2, "sku" : "tee" } ] } `,
		`{"customer":"\u00631","lines":[{"quantity":2,"sku":"tee"}]}`,
	} {
		a := s.keyed(firstKey, http.MethodPost, "/v1/orders", body).want(201, "")
		if !bytes.Equal(a.body, first.body) || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %s, want %s", a.body, first.body)
		}
	}
	if got := s.available(); got != openingStock-2 {
		t.Errorf("got %d available, want %d", got, openingStock-2)
	}
}

func TestKeyBelongsToOneRequest(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	id := s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "").str("id")
	s.keyed(firstKey, http.MethodPost, "/v1/orders", `{"lines":[{"sku":"tee","quantity":2}]}`).want(422, "idempotency_key_reused")
	s.keyed(firstKey, http.MethodPost, "/v1/orders/"+id+"/cancel", "").want(422, "idempotency_key_reused")
	s.keyed(firstKey, http.MethodPost, "/v1/items/tee/stock", `{"quantity":1,"reason":"found"}`).want(422, "idempotency_key_reused")
	other := s.order(oneTee).ID
	s.keyed(secondKey, http.MethodPost, "/v1/orders/"+id+"/cancel", "").want(200, "")
	s.keyed(secondKey, http.MethodPost, "/v1/orders/"+other+"/cancel", "").want(422, "idempotency_key_reused")
}

func TestKeysOfTwoCallersAreStrangers(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	first := s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "")
	s.key = s.newKey(holdfast.ScopeWrite)
	second := s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "")
	if first.str("id") == second.str("id") || second.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the second caller got the first one's order")
	}
}

func TestFiftyAtOnceAreOneOrder(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	const buyers = 50
	ids := make([]string, buyers)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "").str("id") })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got order %s, want %s", id, ids[0])
		}
	}
	if got := s.available(); got != openingStock-1 {
		t.Errorf("got %d available, want %d", got, openingStock-1)
	}
}

func TestReferenceIsTakenOnce(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	const body = `{"lines":[{"sku":"tee","quantity":1}],"reference":"R-1"}`
	s.keyed(firstKey, http.MethodPost, "/v1/orders", body).want(201, "")
	// Row 52: what the key no longer protects, the reference does.
	s.keyed(secondKey, http.MethodPost, "/v1/orders", body).want(409, "order_already_exists")
}

func TestEveryAnswerOfAChangeIsReplayed(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	id := s.order(oneTee).ID
	gone := s.order(oneTee).ID
	pay := s.keyed("key-of-payments-00", http.MethodPost, "/v1/orders/"+id+"/payments", "{}").want(201, "")
	s.gateway.set("paid")
	s.do(http.MethodPost, "/v1/payments/"+pay.str("id")+"/refresh", "").want(200, "")
	for i, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/items", item(`"sku":"cap"`), 201},
		{"/v1/items/tee/stock", `{"quantity":5,"reason":"found"}`, 200},
		{"/v1/orders/" + gone + "/cancel", "", 200},
		{"/v1/orders/" + id + "/fulfil", "", 200},
		{"/v1/orders/" + id + "/refunds", `{"amount":500}`, 201},
	} {
		key := "key-of-changes-0" + string(rune('a'+i))
		first := s.keyed(key, http.MethodPost, c.path, c.body).want(c.status, "")
		again := s.keyed(key, http.MethodPost, c.path, c.body).want(c.status, "")
		if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %s, want %s", c.path, again.body, first.body)
		}
	}
	again := s.keyed("key-of-payments-00", http.MethodPost, "/v1/orders/"+id+"/payments", "{}").want(201, "")
	if !bytes.Equal(pay.body, again.body) {
		t.Errorf("payment: got %s, want %s", again.body, pay.body)
	}
	if level := s.available(); level != openingStock+5-1 {
		t.Errorf("got %d available, want %d", level, openingStock+5-1)
	}
}
