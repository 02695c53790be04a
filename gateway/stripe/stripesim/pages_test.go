package stripesim_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

// browse gets a page in a language.
func (b *bench) browse(path, languages string) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("GET", b.url+path, nil)
	req.Header.Set("Accept-Language", languages)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// press presses a button of a pay page and says where the browser goes.
func (b *bench) press(id, action string, headers ...string) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("POST", b.url+"/pay/"+id+"?lang=en", reader(url.Values{"action": {action}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header.Get("Location")
}

func (b *bench) shows(path string, want ...string) {
	b.t.Helper()
	_, page := b.browse(path, "en")
	page = html.UnescapeString(page)
	for _, w := range want {
		if !strings.Contains(page, w) {
			b.t.Errorf("%s does not show %q:\n%s", path, w, page)
		}
	}
}

func TestThePagePaysAndReturnsToTheShop(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.shows("/pay/"+id, "$12.34 USD", "Tee", "Pay $12.34 USD", "Decline", "Back to the shop", "viewport")
	if status, to := b.press(id, "decline"); status != 303 || to != "/pay/"+id+"?lang=en" {
		t.Errorf("got %d %s", status, to)
	}
	b.shows("/pay/"+id, "Your card was declined", "Pay $12.34 USD")
	if status, to := b.press(id, "back"); status != 303 || to != "https://shop.example/cart" {
		t.Errorf("got %d %s", status, to)
	}
	if status, to := b.press(id, "pay"); status != 303 || to != "https://shop.example/thanks?s="+id {
		t.Errorf("got %d %s", status, to)
	}
	if a := b.get("/v1/checkout/sessions/" + id); a.text("payment_status") != "paid" {
		t.Errorf("got %s, want paid", a.text("payment_status"))
	}
}

func TestThePageTellsTheTruth(t *testing.T) {
	b := newBench(t)
	paid, expired, closed := b.session(), b.session(), b.intent()
	b.must(b.sim.Pay(paid))
	b.post("/v1/checkout/sessions/" + expired + "/expire")
	b.post("/v1/payment_intents/" + closed + "/cancel")
	for id, want := range map[string]string{paid: "Paid. Thank you.", expired: "has expired", closed: "has expired"} {
		b.shows("/pay/"+id, want)
		if _, page := b.browse("/pay/"+id, "en"); strings.Contains(page, `value="pay"`) {
			t.Errorf("%s can still be paid:\n%s", id, page)
		}
		if status, to := b.press(id, "pay"); status != 303 || to != "/pay/"+id+"?lang=en" {
			t.Errorf("%s: got %d %s", id, status, to)
		}
	}
	if status, _ := b.browse("/pay/cs_none", "en"); status != 404 {
		t.Errorf("got %d, want 404", status)
	}
}

func TestAnIntentHasAPageToo(t *testing.T) {
	b := newBench(t)
	id := b.intent("description", "<b>Mug</b>")
	_, page := b.browse("/pay/"+id, "en")
	if !strings.Contains(page, "&lt;b&gt;Mug&lt;/b&gt;") || !strings.Contains(page, "$10.00 USD") {
		t.Errorf("got %s", page)
	}
	if status, to := b.press(id, "pay"); status != 303 || to != "/pay/"+id+"?lang=en" {
		t.Errorf("got %d %s", status, to)
	}
	b.shows("/pay/"+id, "Paid. Thank you.")
}

func TestThePageSpeaksChineseAndEnglish(t *testing.T) {
	b := newBench(t)
	id := b.session()
	for _, c := range []struct{ query, accept, want string }{
		{"", "zh-CN,zh;q=0.9,en;q=0.8", "等待您付款"},
		{"", "fr, zh-TW;q=0.5", "等待您付款"},
		{"", "fr", "Waiting for your payment"},
		{"?lang=zh", "en", "等待您付款"},
		{"?lang=xx", "en-GB", "Waiting for your payment"},
	} {
		if _, page := b.browse("/pay/"+id+c.query, c.accept); !strings.Contains(page, c.want) {
			t.Errorf("%q %q: want %q in\n%s", c.query, c.accept, c.want, page)
		}
	}
}

func TestAnotherSitesPageCannotPressTheButtons(t *testing.T) {
	b := newBench(t)
	id := b.session()
	if status, _ := b.press(id, "pay", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("got %d, want 403", status)
	}
	if a := b.get("/v1/checkout/sessions/" + id); a.text("status") != "open" {
		t.Errorf("got %s, want open", a.text("status"))
	}
}

func TestAmountsAreWrittenForPeople(t *testing.T) {
	b := newBench(t)
	for want, c := range map[string][2]string{
		"¥0.05 CNY": {"5", "cny"}, "¥1,500 JPY": {"1500", "jpy"}, "1.250 KWD": {"1250", "kwd"},
		"€999,999.99 EUR": {"99999999", "eur"}, "$123.45 USD": {"12345", "usd"},
	} {
		id := b.post("/v1/payment_intents", "amount", c[0], "currency", c[1]).text("id")
		b.shows("/pay/"+id, "<h1>"+want+"</h1>")
	}
}

func TestTheControlAPIActsForTheBuyer(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.shows("/_sim/", "lose_notice", "slow_answer", id, "$12.34 USD")
	if a := b.post("/_sim/decline/" + id); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	if a := b.post("/_sim/pay/" + id); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	if a := b.post("/_sim/pay/" + id); a.status != 409 || a.at("error", "message") == nil {
		t.Errorf("got %d %s, want 409", a.status, a.raw)
	}
	books := b.get("/_sim/books")
	payment := books.body["payments"].([]any)[0].(map[string]any)
	if payment["captured"] != 1234.0 || payment["session_id"] != id {
		t.Errorf("got %s", books.raw)
	}
	re := b.refund(payment["id"].(string)).text("id")
	b.shows("/_sim/", "/_sim/refunds/"+re+"/fail")
	if a := b.post("/_sim/refunds/" + re + "/fail"); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	if p := b.payment(payment["id"].(string)); p.Refunded != 0 || p.Refunds[0].Status != "failed" {
		t.Errorf("got %+v", p)
	}
}
