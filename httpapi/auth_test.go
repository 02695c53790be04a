package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestWrongKeysAreAllAnsweredAlike(t *testing.T) {
	clock := time.Now()
	s := openShop(t, httpapi.Options{Now: func() time.Time { return clock }})
	revoked := s.newKey(holdfast.ScopeRead)
	keys, err := s.core.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if strings.HasPrefix(revoked, k.Prefix) {
			if err := s.core.RevokeKey(t.Context(), k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	var first string
	for _, header := range []string{"", "Authorization: Bearer hf_" + strings.Repeat("0", 52), "Authorization: Bearer " + revoked,
		"Authorization: Basic " + s.key, "Authorization: " + s.key, "Client-Secret: hfs_x"} {
		headers := []string{}
		if header != "" {
			headers = append(headers, header)
		}
		a := s.send(http.MethodGet, "/v1/items", "", headers...).want(401, "unauthenticated")
		body := strings.ReplaceAll(string(a.body), a.header.Get("Request-Id"), "")
		if first == "" {
			first = body
		}
		if body != first {
			t.Errorf("got %s, want %s", body, first)
		}
		if a.header.Get("WWW-Authenticate") == "" {
			t.Error("401 without WWW-Authenticate")
		}
	}
	s.send(http.MethodGet, "/v1/items", "", "Authorization: Bearer "+s.key, "Authorization: Bearer "+s.key).want(401, "unauthenticated")
}

func TestCredentialsInURLAreRefused(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, query := range []string{"api_key=" + s.key, "cursor=" + s.key, "Access_Token=x", "client_secret=x"} {
		s.do(http.MethodGet, "/v1/items?"+query, "").want(400, "credentials_in_url")
	}
}

func TestScopesAreALadder(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	read, write := s.newKey(holdfast.ScopeRead), s.newKey(holdfast.ScopeWrite)
	for _, c := range []struct {
		key, method, path, body string
		status                  int
		code                    string
	}{
		{read, http.MethodGet, "/v1/items", "", 200, ""},
		{read, http.MethodPost, "/v1/orders", oneTee, 403, "forbidden_scope"},
		{read, http.MethodGet, "/v1/keys", "", 403, "forbidden_scope"},
		{write, http.MethodGet, "/v1/items", "", 200, ""},
		{write, http.MethodPost, "/v1/orders", oneTee, 201, ""},
		{write, http.MethodPost, "/v1/keys", `{"name":"a","scopes":["admin"]}`, 403, "forbidden_scope"},
		{write, http.MethodPost, "/v1/verify", "", 403, "forbidden_scope"},
		{s.key, http.MethodPost, "/v1/verify", "", 200, ""},
	} {
		a := s.send(c.method, c.path, c.body, "Authorization: Bearer "+c.key, "Content-Type: application/json", "Idempotency-Key: "+rand.Text())
		a.want(c.status, c.code)
	}
}

func TestFailedAttemptsAreCountedByAddress(t *testing.T) {
	clock := time.Now()
	s := openShop(t, httpapi.Options{Now: func() time.Time { return clock }})
	for range 10 {
		s.send(http.MethodGet, "/v1/items", "", "Authorization: Bearer hf_"+rand.Text()).want(401, "unauthenticated")
	}
	a := s.send(http.MethodGet, "/v1/items", "", "Authorization: Bearer hf_"+rand.Text()).want(429, "too_many_failed_attempts")
	if got := a.header.Get("Retry-After"); got != "61" && got != "60" {
		t.Errorf("got Retry-After %q, want the rest of the minute", got)
	}
	// A proxy in front must not be locked out by one of those behind it.
	s.do(http.MethodGet, "/v1/items", "").want(200, "")
	clock = clock.Add(time.Minute)
	s.send(http.MethodGet, "/v1/items", "").want(401, "unauthenticated")
}

func TestSecretOpensItsOwnOrderOnly(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	mine := s.order(`{"lines":[{"sku":"tee","quantity":1}],"metadata":{"note":"internal"}}`)
	other := s.order(oneTee)
	secret := "Client-Secret: " + mine.ClientSecret
	payment := s.send(http.MethodPost, "/v1/orders/"+mine.ID+"/payments", "{}", secret, "Idempotency-Key: "+rand.Text(), "Content-Type: application/json").want(201, "").str("id")
	theirs := s.do(http.MethodPost, "/v1/orders/"+other.ID+"/payments", "{}").want(201, "").str("id")

	a := s.send(http.MethodGet, "/v1/orders/"+mine.ID, "", secret).want(200, "")
	if strings.Contains(string(a.body), "internal") || !strings.Contains(string(a.body), `"tasks":[]`) {
		t.Errorf("the buyer sees metadata or tasks: %s", a.body)
	}
	if b := s.do(http.MethodGet, "/v1/orders/"+mine.ID, "").want(200, ""); !strings.Contains(string(b.body), "internal") {
		t.Errorf("the shop does not see its metadata: %s", b.body)
	}
	s.send(http.MethodGet, "/v1/payments/"+payment, "", secret).want(200, "")
	s.send(http.MethodPost, "/v1/payments/"+payment+"/refresh", "", secret).want(200, "")

	hidden := func(a answer) string {
		a.want(404, "not_found")
		return strings.ReplaceAll(string(a.body), a.header.Get("Request-Id"), "")
	}
	wrong := hidden(s.send(http.MethodGet, "/v1/orders/nothing", "", secret))
	for _, path := range []string{"/v1/orders/" + other.ID, "/v1/orders/" + other.ID + "/events", "/v1/payments/" + theirs, "/v1/payments/nothing"} {
		if got := hidden(s.send(http.MethodGet, path, "", secret)); got != wrong {
			t.Errorf("%s: got %s, want %s", path, got, wrong)
		}
	}
	for _, path := range []string{"/v1/orders/" + other.ID + "/payments", "/v1/orders/" + other.ID + "/cancel"} {
		hidden(s.send(http.MethodPost, path, "{}", secret, "Idempotency-Key: "+rand.Text(), "Content-Type: application/json"))
	}
	for _, path := range []string{"/v1/orders/" + mine.ID + "/refunds", "/v1/orders/" + mine.ID + "/fulfil"} {
		s.send(http.MethodPost, path, "{}", secret, "Idempotency-Key: "+rand.Text(), "Content-Type: application/json").want(401, "unauthenticated")
	}
	s.send(http.MethodGet, "/v1/orders", "", secret).want(401, "unauthenticated")
}

func TestSecretsAreNotGuessed(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	for range 10 {
		s.send(http.MethodGet, "/v1/orders/"+o.ID, "", "Client-Secret: hfs_"+rand.Text()).want(404, "not_found")
	}
	s.send(http.MethodGet, "/v1/orders/"+o.ID, "", "Client-Secret: hfs_"+rand.Text()).want(429, "too_many_failed_attempts")
	s.send(http.MethodGet, "/v1/orders/"+o.ID, "", "Client-Secret: "+o.ClientSecret).want(200, "")
}

func TestOpenShopLetsEverybodyIn(t *testing.T) {
	s := openShop(t, httpapi.Options{Open: true})
	s.send(http.MethodPost, "/v1/orders", oneTee, "Idempotency-Key: "+rand.Text(), "Content-Type: application/json").want(201, "")
	s.send(http.MethodGet, "/v1/keys", "").want(200, "")
}

func TestKeyIsShownOnceAndRevoked(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	made := s.do(http.MethodPost, "/v1/keys", `{"name":"till","scopes":["read"],"expires_in_seconds":3600}`).want(201, "")
	plain, id := made.str("key"), made.str("id")
	s.send(http.MethodGet, "/v1/items", "", "Authorization: Bearer "+plain).want(200, "")
	if list := s.do(http.MethodGet, "/v1/keys", "").want(200, ""); strings.Contains(string(list.body), plain) || !strings.Contains(string(list.body), id) {
		t.Errorf("got %s", list.body)
	}
	s.do(http.MethodDelete, "/v1/keys/"+id, "").want(204, "")
	s.send(http.MethodGet, "/v1/items", "", "Authorization: Bearer "+plain).want(401, "unauthenticated")
	s.do(http.MethodDelete, "/v1/keys/nothing", "").want(404, "not_found")
	for _, body := range []string{`{"name":"a","scopes":["root"]}`, `{"name":"a","scopes":["read"],"expires_in_seconds":0}`} {
		s.do(http.MethodPost, "/v1/keys", body).want(422, "invalid_field")
	}
}

func TestSecretsAreNeverLogged(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	o := s.order(oneTee)
	s.gateway.breaks(fmt.Errorf("database is away"))
	s.send(http.MethodPost, "/webhooks/till", `{"canary":"body"}`, "Signature: canary-signature").want(503, "notification_not_processed")
	s.send(http.MethodGet, "/v1/orders/"+o.ID+"?token="+s.key, "", "Client-Secret: "+o.ClientSecret).want(400, "credentials_in_url")
	log := s.log.String()
	if !strings.Contains(log, "database is away") {
		t.Errorf("what an operator must know is not logged: %q", log)
	}
	for _, secret := range []string{s.key, o.ClientSecret, "canary"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
