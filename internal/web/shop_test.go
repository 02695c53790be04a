package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// opens is a shop with one item.
func opens(t *testing.T, stock int64) *opened {
	t.Helper()
	o := open(t, Options{Shop: true, URL: "http://shop.test"}, holdfast.Options{Passive: true})
	o.put(holdfast.ItemInput{SKU: "tee", Name: "Tee", Names: map[string]string{"zh": "T恤"}, Price: 1990, Currency: "CNY", Stock: stock})
	return o
}

func (o *opened) put(in holdfast.ItemInput) {
	o.Helper()
	if _, err := o.core.PutItem(o.Context(), holdfast.Key{}, in); err != nil {
		o.Fatal(err)
	}
}

const aKey = "AAAAAAAAAAAAAAAAAAAAAAAAAA"

func (o *opened) buy(key string) *httptest.ResponseRecorder {
	return o.post("/shop/buy", "sku", "tee", "quantity", "1", "key", key)
}

// order is the one that an answer leads to.
func (o *opened) order(w *httptest.ResponseRecorder) string {
	o.Helper()
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/pay/")
	if !ok || w.Code != http.StatusSeeOther {
		o.Fatalf("got %d to %q, want the cashier", w.Code, w.Header().Get("Location"))
	}
	return id
}

func TestADoubleClickBuysOnce(t *testing.T) {
	o := opens(t, 9)
	o.get("/shop/")
	first, second := o.order(o.buy(aKey)), o.order(o.buy(aKey))
	if first != second {
		t.Errorf("two orders, %s and %s", first, second)
	}
	if s, _ := o.core.Stock(t.Context(), "tee"); s.Held != 1 {
		t.Errorf("%d pieces held, want 1", s.Held)
	}
}

func TestABuyerHoldsLittleWithoutPaying(t *testing.T) {
	o := opens(t, 100)
	o.get("/shop/")
	var last string
	for i := range maxOpen {
		last = o.order(o.buy(aKey + string(rune('a'+i))))
	}
	if w := o.buy(aKey + "z"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d, want 429 and when to come back", w.Code)
	}
	if again := o.order(o.buy(aKey + "c")); again != last {
		t.Errorf("the repeat of an order is %s, want %s", again, last)
	}
	o.post("/pay/" + last + "/cancel")
	o.order(o.buy(aKey + "y"))
}

func TestAnAddressHoldsLittleWithoutPaying(t *testing.T) {
	var d door
	now := time.Now()
	for i := range maxPlaced {
		if _, ok := d.enter("c", "192.0.2.1", now); !ok {
			t.Fatalf("order %d is refused", i+1)
		}
		d.leave("c")
	}
	if _, ok := d.enter("c", "192.0.2.1", now); ok {
		t.Error("the address has no limit")
	}
	if _, ok := d.enter("c", "192.0.2.2", now); !ok {
		t.Error("another address is refused")
	}
	if under, ok := d.enter("c", "192.0.2.1", now.Add(placedWindow)); !ok || under != 1 {
		t.Errorf("in the next window: %d under way, %v", under, ok)
	}
}

func TestAddressesOfOneSubscriberAreOne(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:99": "192.0.2.1", "[::ffff:192.0.2.1]:99": "192.0.2.1", "[2001:db8:1:2:3::4]:99": "2001:db8:1:2::/64",
	} {
		if got := address(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s: got %s, want %s", from, got, want)
		}
	}
}

func TestOrdersOfOthersAreNotThere(t *testing.T) {
	o := opens(t, 9)
	id := o.order(o.buy(aKey))
	if w := o.get("/pay/" + id); w.Code != http.StatusOK {
		t.Fatalf("the buyer gets %d", w.Code)
	}
	o.cookies = map[string]*http.Cookie{}
	o.get("/shop/") // another buyer
	for _, w := range []*httptest.ResponseRecorder{
		o.get("/pay/" + id), o.get("/pay/" + id + "/live"), o.post("/pay/" + id + "/cancel"), o.post("/pay/"+id+"/with", "way", "stripe.checkout", "key", aKey),
		o.post("/pay/"+id, "secret", o.core.ClientSecret("another")), o.get("/pay/none"), o.get("/shop/line/web-x.y"), o.get("/shop/line/web-x.y/live"),
	} {
		if w.Code != http.StatusNotFound {
			t.Errorf("got %d, want 404", w.Code)
		}
	}
	if w := o.post("/pay/"+id, "secret", o.core.ClientSecret(id)); w.Code != http.StatusSeeOther {
		t.Fatalf("with the secret: got %d", w.Code)
	}
	if w := o.get("/pay/" + id); w.Code != http.StatusOK {
		t.Errorf("after the secret: got %d", w.Code)
	}
	for name, c := range o.cookies {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie %s can be read by scripts or sent by other sites", name)
		}
	}
}

func TestTheShopSaysWhyNothingWasOrdered(t *testing.T) {
	o := opens(t, 1)
	o.order(o.buy(aKey))
	w := o.buy(aKey + "b")
	to := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || to != "/shop/?told=sold_out&sku=tee" {
		t.Fatalf("got %d to %s", w.Code, to)
	}
	if page := o.get(to, "Accept-Language", "zh").Body.String(); !strings.Contains(page, "T恤 库存不足") {
		t.Error("the page does not say that it was sold out")
	}
	if page := o.get("/shop/?told=%3Cb%3E").Body.String(); strings.Contains(page, `role="alert"`) {
		t.Error("the page repeats what the address says")
	}
	for _, bad := range [][]string{{"quantity", "0"}, {"quantity", "11"}, {"quantity", "x"}, {"key", "short"}} {
		fields := append([]string{"sku", "tee"}, bad...)
		if w := o.post("/shop/buy", append(fields, "quantity", "1", "key", aKey)...); w.Code != http.StatusBadRequest {
			t.Errorf("%v: got %d, want 400", bad, w.Code)
		}
	}
	if w := o.post("/shop/buy", "sku", "none", "quantity", "1", "key", aKey+"n"); w.Code != http.StatusNotFound {
		t.Errorf("unknown item: got %d, want 404", w.Code)
	}
}

func TestNamesAreTextAndNotMarkup(t *testing.T) {
	o := opens(t, 9)
	o.put(holdfast.ItemInput{SKU: "evil", Name: `"><script>alert(1)</script><img src=x onerror=alert(1)>`, Price: 1, Currency: "CNY", Stock: 1})
	w := o.post("/shop/buy", "sku", "evil", "quantity", "1", "key", aKey)
	for _, path := range []string{"/shop/", "/pay/" + o.order(w), "/shop/orders"} {
		page := o.get(path).Body.String()
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || !strings.Contains(page, "&lt;script&gt;") {
			t.Errorf("%s: a name is taken for markup", path)
		}
	}
}

func TestCookiesOfASecureSiteAreSecure(t *testing.T) {
	o := open(t, Options{Shop: true, URL: "https://shop.example"}, holdfast.Options{Passive: true})
	o.get("/shop/")
	o.post("/web/language", "lang", "zh", "back", "/shop/")
	if len(o.cookies) != 2 {
		t.Errorf("got %d cookies, want the buyer's and the language's", len(o.cookies))
	}
	for name, c := range o.cookies {
		if !c.Secure || !c.HttpOnly {
			t.Errorf("%s is sent in the clear or read by scripts", name)
		}
	}
}

func TestAWareSaysHowItIsSold(t *testing.T) {
	now := time.Now()
	o := open(t, Options{Shop: true}, holdfast.Options{Passive: true, Clock: func() time.Time { return now }})
	o.put(holdfast.ItemInput{SKU: "tee", Name: "Tee", Price: 1990, Currency: "CNY", Stock: 6})
	says := func(want string) {
		t.Helper()
		if page := o.get("/shop/").Body.String(); !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	says("6 available")
	sale := holdfast.SaleInput{ID: "s", SKU: "tee", OpensAt: now.Add(time.Hour), ClosesAt: now.Add(2 * time.Hour), Price: 990, PerCustomer: 3}
	if _, err := o.core.PutSale(t.Context(), holdfast.Key{}, sale); err != nil {
		t.Fatal(err)
	}
	says("Not open yet")
	now = now.Add(time.Hour)
	says("CN¥9.90")
	says("Sale ends in")
	o.buy(aKey)
	says("Only 5 left")
	o.post("/shop/buy", "sku", "tee", "quantity", "2", "key", aKey+"b")
	if to := o.buy(aKey + "c").Header().Get("Location"); !strings.Contains(to, "told=customer_limit") {
		t.Errorf("beyond the limit: to %s", to)
	}
	if _, err := o.core.Adjust(t.Context(), holdfast.Key{}, holdfast.Adjustment{SKU: "tee", Quantity: -3, Reason: "broken"}); err != nil {
		t.Fatal(err)
	}
	says("All on hold")
	says("may come free in")
	now = now.Add(time.Hour)
	says("Sale is over")
}

func TestManyWhoWatchCostOneLookAtTheStock(t *testing.T) {
	o := opens(t, 9)
	for _, sku := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		o.put(holdfast.ItemInput{SKU: sku, Name: sku, Price: 1, Currency: "CNY", Stock: 1})
	}
	cost := func() int64 {
		before := o.core.Stats().Queries
		o.get("/shop/")
		return o.core.Stats().Queries - before
	}
	first := cost()
	if again := cost(); again*3 > first {
		t.Errorf("%d queries, then %d for the same stock", first, again)
	}
	o.order(o.buy(aKey))
	if page := o.get("/shop/").Body.String(); !strings.Contains(page, "8 available") {
		t.Error("what was sold is not seen")
	}
}

var linked = regexp.MustCompile(`(?:href|src)="(` + assetRoot + `[^"]+)"`)

func TestTheFirstLoadOfTheShopIsSmall(t *testing.T) {
	const most = 100_000 // bytes, compressed
	o := opens(t, 9)
	page := o.get("/shop/").Body.Bytes()
	sum := len(compressed(page))
	for _, m := range linked.FindAllSubmatch(page, -1) {
		w := o.get(string(m[1]), "Accept-Encoding", "gzip")
		if w.Code != http.StatusOK {
			t.Errorf("%s: got %d", m[1], w.Code)
		}
		sum += w.Body.Len()
	}
	if sum > most {
		t.Errorf("%d bytes, want at most %d", sum, most)
	}
	t.Logf("%d bytes", sum)
}

func TestAPlaceInTheLineIsShown(t *testing.T) {
	for lang, vo := range loadVoices(loadAssets()) {
		w := httptest.NewRecorder()
		ticket := holdfast.Ticket{ID: "web-x.y", Position: 37, ETA: 2100 * time.Millisecond}
		if err := vo.render(w, http.StatusOK, "shop/line", shape{Path: "/shop/line/web-x.y", Data: ticket}); err != nil {
			t.Fatal(err)
		}
		if page := w.Body.String(); !strings.Contains(page, ">37<") || !strings.Contains(page, " 3 ") || !strings.Contains(page, `data-stream="/shop/line/web-x.y/live"`) {
			t.Errorf("%s: %s", lang, page)
		}
	}
}
