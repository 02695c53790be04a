package stripesim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestOnlyTheSecretKeyIsLetIn(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		set    func(*http.Request)
		status int
	}{
		"bearer":    {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+stripesim.DefaultSecretKey) }, 200},
		"basic":     {func(r *http.Request) { r.SetBasicAuth(stripesim.DefaultSecretKey, "") }, 200},
		"none":      {func(*http.Request) {}, 401},
		"wrong":     {func(r *http.Request) { r.Header.Set("Authorization", "Bearer sk_test_other") }, 401},
		"no scheme": {func(r *http.Request) { r.Header.Set("Authorization", stripesim.DefaultSecretKey) }, 401},
	} {
		req, _ := http.NewRequest("GET", b.url+"/v1/events", nil)
		c.set(req)
		a := b.send(req)
		if a.status != c.status {
			t.Errorf("%s: got %d, want %d", name, a.status, c.status)
		}
		if !strings.HasPrefix(a.header.Get("Request-Id"), "req_") {
			t.Errorf("%s: got request id %q", name, a.header.Get("Request-Id"))
		}
	}
}

func TestTheVersionHeaderIsEchoed(t *testing.T) {
	b := newBench(t)
	for version, status := range map[string]int{"2026-06-24.dahlia": 200, "2020-08-27": 200, "newest": 400} {
		req, _ := http.NewRequest("GET", b.url+"/v1/events", nil)
		req.SetBasicAuth(stripesim.DefaultSecretKey, "")
		req.Header.Set("Stripe-Version", version)
		a := b.send(req)
		if a.status != status {
			t.Errorf("%s: got %d, want %d", version, a.status, status)
		}
		if got := a.header.Get("Stripe-Version"); status == 200 && got != version {
			t.Errorf("got version %q, want %q", got, version)
		}
	}
}

func TestUnknownURLsAndMethodsAreNotFound(t *testing.T) {
	b := newBench(t)
	for _, c := range [][2]string{{"GET", "/v1/nothing"}, {"DELETE", "/v1/refunds"}, {"PUT", "/v1/payment_intents/pi_1"}, {"POST", "/v1/events"}} {
		a := b.do(c[0], c[1], "")
		if a.status != 404 || !strings.Contains(a.text("error", "message"), "Unrecognized request URL ("+c[0]) {
			t.Errorf("%s %s: got %d %s", c[0], c[1], a.status, a.raw)
		}
	}
}

func TestParametersAreRefusedWhenTheyAreNotUnderstood(t *testing.T) {
	b := newBench(t)
	good := []string{"amount", "1000", "currency", "usd"}
	for name, c := range map[string]struct {
		params []string
		code   string
	}{
		"unknown":          {append(good, "colour", "red"), "parameter_unknown"},
		"unknown nested":   {append(good, "automatic_payment_methods[enable]", "true"), "parameter_unknown"},
		"deep metadata":    {append(good, "metadata[a][b]", "1"), "parameter_unknown"},
		"twice":            {append(good, "amount", "1000"), "<nil>"},
		"empty":            {append(good, "description", ""), "parameter_invalid_empty"},
		"no amount":        {[]string{"currency", "usd"}, "parameter_missing"},
		"no currency":      {[]string{"amount", "5"}, "parameter_missing"},
		"upper case":       {[]string{"amount", "5", "currency", "USD"}, "<nil>"},
		"unknown currency": {[]string{"amount", "5", "currency", "xxx"}, "<nil>"},
		"fraction":         {[]string{"amount", "5.00", "currency", "usd"}, "parameter_invalid_integer"},
		"plus sign":        {[]string{"amount", "+5", "currency", "usd"}, "parameter_invalid_integer"},
		"zero":             {[]string{"amount", "0", "currency", "usd"}, "parameter_invalid_integer"},
		"negative":         {[]string{"amount", "-5", "currency", "usd"}, "parameter_invalid_integer"},
		"nine digits":      {[]string{"amount", "100000000", "currency", "usd"}, "amount_too_large"},
		"fils":             {[]string{"amount", "1005", "currency", "kwd"}, "<nil>"},
		"aurar":            {[]string{"amount", "1050", "currency", "isk"}, "<nil>"},
		"expand":           {append(good, "expand[]", "customer"), "<nil>"},
		"unknown method":   {append(good, "payment_method", "pm_nobody"), "resource_missing"},
		"long key":         {append(good, "metadata["+strings.Repeat("k", 41)+"]", "1"), "<nil>"},
		"long text":        {append(good, "metadata[k]", strings.Repeat("v", 501)), "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.want(b.post("/v1/payment_intents", c.params...), 400, c.code)
		})
	}
	if n := len(b.sim.Books().Payments); n != 0 {
		t.Errorf("got %d payments, want none", n)
	}
}

func TestOrdinaryAmountsAreTaken(t *testing.T) {
	b := newBench(t)
	for _, c := range [][2]string{{"1", "usd"}, {"99999999", "usd"}, {"500", "jpy"}, {"1010", "kwd"}, {"1000", "isk"}, {"33", "cny"}} {
		a := b.post("/v1/payment_intents", "amount", c[0], "currency", c[1])
		if a.status != 200 || a.text("currency") != c[1] {
			t.Errorf("%v: got %d %s", c, a.status, a.raw)
		}
	}
}

func TestBodiesMustBeFormsOfLimitedSize(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		kind, query, body string
		status            int
	}{
		"json":       {"application/json", "", `{"amount":1000}`, 400},
		"no form":    {"text/plain", "", "amount=1000&currency=usd", 400},
		"query":      {"application/x-www-form-urlencoded", "?amount=1000", "currency=usd", 400},
		"bad escape": {"application/x-www-form-urlencoded", "", "amount=%zz", 400},
		"too large":  {"application/x-www-form-urlencoded", "", "description=" + strings.Repeat("x", 256<<10), 413},
		"charset":    {"application/x-www-form-urlencoded; charset=utf-8", "", "amount=1000&currency=usd", 200},
	} {
		req, _ := http.NewRequest("POST", b.url+"/v1/payment_intents"+c.query, strings.NewReader(c.body))
		req.SetBasicAuth(stripesim.DefaultSecretKey, "")
		req.Header.Set("Content-Type", c.kind)
		if a := b.send(req); a.status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, a.status, a.raw, c.status)
		}
	}
}

func TestListsArePagedNewestFirst(t *testing.T) {
	b := newBench(t)
	var made []string
	for range 5 {
		made = append(made, b.intent())
		b.clock.Advance(1e9)
	}
	first := b.get("/v1/payment_intents", "limit", "2")
	if got, want := strings.Join(first.ids(), " "), made[4]+" "+made[3]; got != want || first.at("has_more") != true {
		t.Errorf("got %s more %v, want %s more true", got, first.at("has_more"), want)
	}
	second := b.get("/v1/payment_intents", "limit", "3", "starting_after", made[3])
	if got, want := strings.Join(second.ids(), " "), made[2]+" "+made[1]+" "+made[0]; got != want || second.at("has_more") != false {
		t.Errorf("got %s more %v, want %s more false", got, second.at("has_more"), want)
	}
	since := b.get("/v1/payment_intents", "created[gte]", "1767323048", "created[lt]", "1767323050")
	if got, want := strings.Join(since.ids(), " "), made[3]+" "+made[2]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b.want(b.get("/v1/payment_intents", "limit", "101"), 400, "parameter_invalid_integer")
	b.want(b.get("/v1/payment_intents", "starting_after", "pi_none"), 400, "resource_missing")
}

func TestExpandPutsTheThingInPlaceOfItsID(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.must(b.sim.Pay(id))
	plain := b.get("/v1/checkout/sessions/" + id)
	whole := b.get("/v1/checkout/sessions/"+id, "expand[]", "payment_intent.latest_charge")
	if got, want := whole.text("payment_intent", "id"), plain.text("payment_intent"); got != want {
		t.Errorf("got intent %s, want %s", got, want)
	}
	if got := whole.text("payment_intent", "latest_charge", "object"); got != "charge" {
		t.Errorf("got %s, want charge", got)
	}
	listed := b.get("/v1/checkout/sessions", "expand[0]", "data.payment_intent")
	first := listed.body["data"].([]any)[0].(map[string]any)
	if _, ok := first["payment_intent"].(map[string]any); !ok {
		t.Errorf("got %v, want an object", first["payment_intent"])
	}
}

func TestBalanceTransactionsShowEveryMovement(t *testing.T) {
	b := newBench(t)
	id := b.paidIntent()
	re := b.post("/v1/refunds", "payment_intent", id, "amount", "300").text("id")
	b.must(b.sim.FailRefund(re))
	var got []string
	for _, v := range b.get("/v1/balance_transactions").body["data"].([]any) {
		m := v.(map[string]any)
		got = append(got, answer{body: m}.text("type")+" "+answer{body: m}.text("amount")+" "+answer{body: m}.text("fee")+" "+answer{body: m}.text("net"))
	}
	if want := "refund_failure 300 0 300, refund -300 0 -300, charge 1000 29 971"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if n := len(b.get("/v1/balance_transactions", "source", re, "type", "refund").ids()); n != 1 {
		t.Errorf("got %d rows of the refund, want 1", n)
	}
}
