package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
)

const secretWord = "correct horse battery"

// purse is a gateway that only pays out.
type purse struct{ gateway.Gateway }

func (purse) Methods() []string                         { return nil }
func (purse) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }
func (purse) Payout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutPaid, Ref: "purse-" + p.ID}
}
func (g purse) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return g.Payout(ctx, p)
}

// console is the console of a store with a tee, two orders, an account and a
// payout that waits for approval.
type console struct {
	*opened
	now    time.Time
	orders []string
	payout string
	known  map[string]bool // people
}

func openConsole(t *testing.T) *console {
	t.Helper()
	c := &console{known: map[string]bool{}, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	c.opened = open(t, Options{Admin: true}, holdfast.Options{Passive: true, Sealer: plainly{}, Gateways: map[string]gateway.Gateway{"purse": purse{}}, Clock: func() time.Time { return c.now }})
	ctx := t.Context()
	_, err := c.core.PutItem(ctx, holdfast.Key{}, holdfast.ItemInput{SKU: "tee", Name: evil, Price: 1990, Currency: "CNY", Stock: 9})
	c.must(err)
	for range 2 {
		o, err := c.core.Place(ctx, holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "tee", Quantity: 1}}, Customer: "lin"})
		c.must(err)
		c.orders = append(c.orders, o.Value.ID)
	}
	_, err = c.core.OpenAccount(ctx, holdfast.Key{}, holdfast.AccountInput{ID: "seller", Name: "=HYPERLINK(1)", Terms: []holdfast.Terms{{Currency: "CNY", ApproveAbove: 1}}})
	c.must(err)
	_, err = c.core.Deposit(ctx, holdfast.Key{}, "seller", "CNY", 9900, "opening")
	c.must(err)
	p, err := c.core.RequestPayout(ctx, holdfast.Key{}, holdfast.PayoutInput{Account: "seller", Currency: "CNY", Amount: 500, Destination: evil, By: "staff/operator"})
	c.must(err)
	c.payout = p.Value.ID
	return c
}

// evil is what a page must show and never obey.
const evil = `<img src=x onerror=alert(1)>"'</script><script>alert(2)</script>{{.Secret}}`

func (c *console) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// signIn signs in the person of a role.
func (c *console) signIn(name string) *httptest.ResponseRecorder {
	c.Helper()
	if !c.known[name] {
		_, err := c.core.PutStaff(c.Context(), holdfast.Key{}, holdfast.StaffInput{Name: name, Password: secretWord, Role: holdfast.Role(name)})
		c.must(err)
		c.known[name] = true
	}
	return c.post("/admin/sign-in", "name", name, "password", secretWord)
}

// fits are paths that fit the patterns of the console.
func (c *console) fit(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	account := strings.Contains(path, "/accounts/")
	path = strings.NewReplacer("{$}", "", "{sku}", "tee", "{gateway}", "purse", "{name}", "viewer").Replace(path)
	switch {
	case strings.Contains(path, "/payouts/"):
		path = strings.Replace(path, "{id}", c.payout, 1)
	case account:
		path = strings.Replace(path, "{id}", "seller", 1)
	}
	return method, strings.Replace(path, "{id}", c.orders[0], 1)
}

const formKey = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func TestEveryPageOfTheConsoleIsForItsRoleOnly(t *testing.T) {
	c := openConsole(t)
	routes := c.pages.(*site).desks
	if len(routes) < 60 {
		t.Fatalf("the console has %d routes", len(routes))
	}
	changes := 0
	for _, who := range []string{"", "viewer", "operator", "admin"} {
		clear(c.cookies)
		if who != "" {
			if w := c.signIn(who); w.Code != http.StatusSeeOther {
				t.Fatalf("sign in: %d", w.Code)
			}
		}
		for _, rt := range routes {
			method, path := c.fit(rt.pattern)
			allowed := who != "" && holdfast.Role(who).Allows(rt.role)
			if method == http.MethodPost && allowed {
				continue // the tests of deeds do it
			}
			var w *httptest.ResponseRecorder
			if method == http.MethodPost {
				changes++
				w = c.post(path, "key", formKey, "reason", "why not", "quantity", "1", "name", "intruder", "password", secretWord, "role", "admin", "scope", "admin", "days", "0")
			} else {
				w = c.get(path)
			}
			want := []int{http.StatusOK, http.StatusSeeOther, http.StatusNotFound} // of what is there, a search, and what is not
			if who == "" {
				want = []int{http.StatusSeeOther, http.StatusUnauthorized}
			} else if !allowed {
				want = []int{http.StatusForbidden}
			}
			if !slices.Contains(want, w.Code) {
				t.Errorf("%q at %s: got %d, want one of %v", who, rt.pattern, w.Code, want)
			}
			if !allowed && strings.Contains(w.Body.String(), "desk") {
				t.Errorf("%q sees %s", who, rt.pattern)
			}
		}
	}
	if changes == 0 {
		t.Error("no change was tried")
	}
	if log, err := c.core.Audit(t.Context(), holdfast.AuditFilter{}); err != nil || slices.ContainsFunc(log, func(a holdfast.Audited) bool { return !strings.HasPrefix(a.Did, "s") }) {
		t.Errorf("somebody changed something: %+v %v", log, err)
	}
}

func TestEveryPageIsWordedAndObeysNoText(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	for _, lang := range languages {
		for _, rt := range c.pages.(*site).desks {
			method, path := c.fit(rt.pattern)
			if method != http.MethodGet || strings.HasSuffix(path, ".csv") {
				continue
			}
			w := c.get(path, "Accept-Language", lang)
			body := w.Body.String()
			if w.Code >= http.StatusInternalServerError {
				t.Errorf("%s in %s: %d", path, lang, w.Code)
			}
			if strings.Contains(body, "<img src=x") || strings.Contains(body, "<script>") || strings.Contains(body, " style=") || strings.Contains(body, "onclick") {
				t.Errorf("%s in %s has markup of others, or inline script or style", path, lang)
			}
		}
	}
	if w := c.get("/admin/items/tee"); !strings.Contains(w.Body.String(), "&lt;img src=x") || !strings.Contains(w.Body.String(), "{{.Secret}}") {
		t.Error("the name is not shown as it is stored")
	}
}

func TestADeedIsDoneOnceAndAudited(t *testing.T) {
	c := openConsole(t)
	c.signIn("operator")
	key := regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`).FindStringSubmatch(c.get("/admin/items/tee").Body.String())
	if key == nil {
		t.Fatal("the page has no form")
	}
	for range 2 {
		w := c.post("/admin/items/tee/adjust", "key", key[1], "quantity", "-2", "reason", "torn", "where", "stock")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/admin/items/tee?done=adjust" {
			t.Fatalf("got %d %s", w.Code, w.Header())
		}
	}
	if w := c.post("/admin/items/tee/adjust", "key", key[1], "quantity", "-3", "reason", "torn", "where", "stock"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("the key with another form: got %d", w.Code)
	}
	for _, form := range [][]string{{"quantity", "-1", "reason", "torn"}, {"key", "x", "quantity", "-1", "reason", "torn"}, {"key", formKey, "quantity", "-1", "reason", " "},
		{"key", formKey, "quantity", "-1", "reason", strings.Repeat("好", 501)}, {"key", formKey, "quantity", "1.5", "reason", "x"}, {"key", formKey, "quantity", "-99", "reason", "x"}} {
		if w := c.post("/admin/items/tee/adjust", form...); w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%v: got %d", form, w.Code)
		}
	}
	s, err := c.core.Stock(t.Context(), "tee")
	if err != nil || s.OnHand != 7 {
		t.Errorf("got %+v %v, want 7 on hand", s, err)
	}
	log, err := c.core.Audit(t.Context(), holdfast.AuditFilter{About: "tee"})
	if err != nil || len(log) != 1 || log[0].By != "staff/operator" || log[0].Reason != "torn" {
		t.Errorf("got %+v %v, want one line of the operator", log, err)
	}
}

func TestWhoAskedForAPayoutCantApproveIt(t *testing.T) {
	c := openConsole(t)
	path := "/admin/payouts/" + c.payout
	for _, who := range []string{"operator", "viewer", "admin"} {
		clear(c.cookies)
		c.signIn(who)
		page := c.get(path).Body.String()
		if got := strings.Contains(page, path+"/approve"); got != (who == "admin") {
			t.Errorf("%s may approve: %v", who, got)
		}
		w := c.post(path+"/approve", "key", formKey, "reason", "seen the invoice")
		want := map[string]int{"operator": http.StatusUnprocessableEntity, "viewer": http.StatusForbidden, "admin": http.StatusSeeOther}[who]
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", who, w.Code, want)
		}
	}
	p, err := c.core.Payout(t.Context(), c.payout)
	if err != nil || p.ApprovedBy != "staff/admin" {
		t.Errorf("got %+v %v", p, err)
	}
}

func TestSpreadsheetsGetNoFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"=HYPERLINK(1)": `"'=HYPERLINK(1)"`, "+1": `"'+1"`, "-1": `"'-1"`, "@SUM(A1)": `"'@SUM(A1)"`, "\tx": "\"'\tx\"", "\rx": "\"'\rx\"", "\nx": "\"'\nx\"",
		"\x00x": `"'x"`, "＝1": `"'＝1"`, `say "hi"`: `"say ""hi"""`, "a,b": `"a,b"`, "": `""`, "plain": `"plain"`,
	} {
		if got := said(text).csv(false); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := moneyOf(-1990, "CNY").csv(true); got != `-19.90,"CNY"` {
		t.Errorf("an amount below zero: got %s", got)
	}
	if got := count(-3).csv(false); got != "-3" {
		t.Errorf("a number below zero: got %s", got)
	}
	if got := (cell{As: "word", Text: "admin.event.order.paid"}).csv(false); got != `"order.paid"` {
		t.Errorf("a word: got %s", got)
	}
	c := openConsole(t)
	c.signIn("viewer")
	w := c.get("/admin/accounts.csv")
	if got := w.Body.String(); w.Header().Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(got, `"'=HYPERLINK(1)"`) || !strings.HasPrefix(got, "\ufeff\"id\"") {
		t.Errorf("got %v\n%s", w.Header(), got)
	}
	lines := strings.Split(strings.TrimSpace(c.get("/admin/orders.csv").Body.String()), "\r\n")
	if n := strings.Count(lines[0], ","); len(lines) != 3 || strings.Count(lines[1], `,"`)+strings.Count(lines[1], ",1") < n {
		t.Errorf("got %q", lines)
	}
}

func TestAListIsPagedToItsEnd(t *testing.T) {
	c := openConsole(t)
	c.signIn("viewer")
	const more = pageRows + 7
	for n := range more {
		_, err := c.core.PutItem(t.Context(), holdfast.Key{}, holdfast.ItemInput{SKU: fmt.Sprintf("cup-%03d", n), Name: "Cup", Price: 1, Currency: "CNY"})
		c.must(err)
	}
	next, sku := regexp.MustCompile(`rel="next"`), regexp.MustCompile(`title="(cup-\d+|tee)"`)
	href := regexp.MustCompile(`<a href="([^"]+)" rel="next"`)
	seen := map[string]int{}
	pages := 0
	for path := "/admin/items"; path != ""; pages++ {
		body := c.get(path).Body.String()
		found := sku.FindAllStringSubmatch(body, -1)
		if len(found) > pageRows {
			t.Fatalf("a page has %d rows", len(found))
		}
		for _, m := range found {
			seen[m[1]]++
		}
		path = ""
		if next.MatchString(body) {
			path = href.FindStringSubmatch(body)[1]
		}
	}
	if len(seen) != more+1 || pages != 2 {
		t.Errorf("got %d items on %d pages, want %d on 2", len(seen), pages, more+1)
	}
	if got := strings.Count(c.get("/admin/items.csv").Body.String(), "cup-"); got != more {
		t.Errorf("the CSV has %d, want %d", got, more)
	}
	for _, bad := range []string{"?after=%00", "?by=" + strings.Repeat("x", 300), "?state=%ff"} {
		if w := c.get("/admin/orders" + bad); w.Code != http.StatusBadRequest {
			t.Errorf("%.20s: got %d", bad, w.Code)
		}
	}
}

func TestAPastNumberIsExplainedOnItsPage(t *testing.T) {
	c := openConsole(t)
	before := c.now
	c.now = c.now.Add(time.Hour)
	c.signIn("viewer")
	_, err := c.core.Adjust(t.Context(), holdfast.Key{}, holdfast.Adjustment{SKU: "tee", Quantity: 50, Reason: "delivery 7"})
	c.must(err)
	answer := regexp.MustCompile(`<span class="big number">(\d+)</span>`)
	for path, want := range map[string]string{"/admin/items/tee": "57", "/admin/items/tee?at=" + before.Format(atForm): "7", "/admin/items/tee?at=2020-01-01T00:00": "0"} {
		body := c.get(path).Body.String()
		if got := answer.FindStringSubmatch(body); got == nil || got[1] != want {
			t.Errorf("%s: got %v, want %s", path, got, want)
		}
	}
	if w := c.get("/admin/items/tee?at=yesterday"); w.Code != http.StatusBadRequest {
		t.Errorf("a moment that is none: got %d", w.Code)
	}
}

func TestAKeyIsShownOnce(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	w := c.post("/admin/keys", "key", formKey, "name", "shop", "scope", "read", "days", "1")
	plain := regexp.MustCompile(`hf_[0-9a-v]{52}`).FindString(w.Body.String())
	k, ok, err := c.core.Authenticate(t.Context(), plain)
	if err != nil || !ok || k.Name != "shop" || k.Allows(holdfast.ScopeWrite) {
		t.Fatalf("got %+v %v %v", k, ok, err)
	}
	for _, path := range []string{"/admin/keys", "/admin/keys/" + k.ID, "/admin/audit"} {
		if body := c.get(path).Body.String(); strings.Contains(body, plain) {
			t.Errorf("%s shows the key again", path)
		}
	}
	if w := c.post("/admin/keys/"+k.ID+"/revoke", "key", formKey, "reason", "lost"); w.Code != http.StatusSeeOther {
		t.Errorf("revoke: got %d", w.Code)
	}
}
