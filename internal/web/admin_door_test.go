package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
)

func TestASessionIsNewAtSignInAndOverAfterSignOut(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	name := "holdfast_admin"
	first := *c.cookies[name+"/"]
	if !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || first.Path != "/" {
		t.Errorf("got %+v", first)
	}
	c.signIn("admin")
	second := *c.cookies[name+"/"]
	if first.Value == second.Value {
		t.Error("signing in keeps the session that was there before")
	}
	replay := func(cookie http.Cookie) int {
		clear(c.cookies)
		c.cookies["x"] = &cookie
		return c.get("/admin/items").Code
	}
	if got := replay(first); got != http.StatusSeeOther {
		t.Errorf("the session from before: got %d, want the door", got)
	}
	if got := replay(second); got != http.StatusOK {
		t.Errorf("the present session: got %d", got)
	}
	if w := c.post("/admin/sign-out"); w.Code != http.StatusSeeOther {
		t.Errorf("sign out: got %d", w.Code)
	}
	if got := replay(second); got != http.StatusSeeOther {
		t.Errorf("a cookie replayed after signing out: got %d, want the door", got)
	}
	c.signIn("viewer")
	for range 3 {
		c.now = c.now.Add(holdfast.SessionIdle / 3)
		c.get("/admin/items", "Sec-Fetch-Mode", "cors")
	}
	if got := c.get("/admin/items").Code; got != http.StatusSeeOther {
		t.Errorf("a page that looks again by itself keeps the session alive: got %d", got)
	}
	secure := site{o: Options{URL: "https://shop.example"}}
	if got := secure.sessionCookie(); got != "__Host-holdfast_admin" {
		t.Errorf("behind TLS the cookie is %s", got)
	}
}

func TestTheDoorLeadsNowhereElse(t *testing.T) {
	c := openConsole(t)
	c.signIn("viewer")
	for to, want := range map[string]string{"/admin/orders?state=paid": "/admin/orders?state=paid", "https://evil.example/admin": "/admin/", "//evil.example/admin": "/admin/", `/\evil.example`: "/admin/", "/shop/": "/admin/", "": "/admin/"} {
		w := c.post("/admin/sign-in", "name", "viewer", "password", secretWord, "to", to)
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("to %q: got %q, want %q", to, got, want)
		}
	}
	clear(c.cookies)
	if got := c.get("/admin/orders?state=paid").Header().Get("Location"); got != "/admin/sign-in?to=%2Fadmin%2Forders%3Fstate%3Dpaid" {
		t.Errorf("who is signed out goes to %q", got)
	}
}

func TestPasswordsAreNotGuessed(t *testing.T) {
	c := openConsole(t)
	c.signIn("admin")
	for n := range triesOfAddress {
		if w := c.post("/admin/sign-in", "name", "admin", "password", fmt.Sprint("wrong password ", n)); w.Code != http.StatusUnprocessableEntity {
			t.Fatalf("guess %d: got %d", n, w.Code)
		}
	}
	if w := c.signIn("admin"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v, want 429", w.Code, w.Header())
	}
	other := httptest.NewRequest(http.MethodPost, "/admin/sign-in", strings.NewReader("name=admin&password="+strings.ReplaceAll(secretWord, " ", "+")))
	other.RemoteAddr = "198.51.100.7:1234"
	if w := c.send(other, []string{"Content-Type", "application/x-www-form-urlencoded"}); w.Code != http.StatusSeeOther {
		t.Errorf("from another address: got %d, want to get in", w.Code)
	}
	var counted tries
	now := time.Now()
	for n := range triesOfName {
		counted.spent(now, fmt.Sprint("address ", n), "admin", true)
	}
	if !counted.spent(now, "fresh", "admin", false) || counted.spent(now.Add(triesWindow), "fresh", "admin", false) {
		t.Error("one name from many addresses is not limited, or for ever")
	}
}

func TestFormsOfOtherSitesChangeNothing(t *testing.T) {
	c := openConsole(t)
	c.signIn("operator")
	for what, header := range map[string][]string{
		"another site": {"Sec-Fetch-Site", "cross-site"}, "a sibling": {"Sec-Fetch-Site", "same-site"},
		"another origin": {"Origin", "https://evil.example"}, "no origin": {"Origin", "null"},
	} {
		for _, media := range []string{"application/x-www-form-urlencoded", "text/plain"} {
			r := httptest.NewRequest(http.MethodPost, "/admin/items/tee/adjust", strings.NewReader("key="+formKey+"&quantity=1&reason=x"))
			if w := c.send(r, append([]string{"Content-Type", media}, header...)); w.Code != http.StatusForbidden {
				t.Errorf("%s with %s: got %d, want 403", what, media, w.Code)
			}
		}
	}
	if s, err := c.core.Stock(t.Context(), "tee"); err != nil || s.OnHand != 9 {
		t.Errorf("got %+v %v", s, err)
	}
	if got := c.get("/admin/").Header().Get("Content-Security-Policy"); !strings.Contains(got, "frame-ancestors 'none'") || strings.Contains(got, "unsafe") {
		t.Errorf("got %s", got)
	}
}

func TestTheFirstPersonComesInThroughTheFirstRun(t *testing.T) {
	o := open(t, Options{Admin: true}, holdfast.Options{Passive: true})
	if got := o.get("/admin/").Header().Get("Location"); got != "/admin/first-run" {
		t.Fatalf("got %q", got)
	}
	token, err := o.core.FirstRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range [][]string{{"token", "x"}, {"token", token, "name", "Anna!", "password", secretWord}, {"token", token, "name", "anna", "password", "short"}} {
		if w := o.post("/admin/first-run", form...); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%v: got %d", form, w.Code)
		}
	}
	if w := o.post("/admin/first-run", "token", token, "name", "anna", "password", secretWord); w.Header().Get("Location") != "/admin/" {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	if w := o.get("/admin/staff"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "anna") {
		t.Errorf("got %d", w.Code)
	}
	if w := o.post("/admin/first-run", "token", token, "name", "eve", "password", secretWord); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("the token again: got %d", w.Code)
	}
}

func TestAStreamEndsWithItsSession(t *testing.T) {
	c := openConsole(t)
	var sent [2]error
	c.pages = New(c.core, Options{Admin: true, Stream: func(w http.ResponseWriter, r *http.Request, caller string, topics []string) {
		if caller != "staff:viewer" || len(topics) != 1 || r.Header.Get("Upgrade") != "" {
			t.Errorf("got %s %v %v", caller, topics, r.Header)
		}
		_, sent[0] = w.Write([]byte("data: 1\n\n"))
		w.(*guarded).checked = time.Time{} // a while later
		if err := c.core.SignOut(r.Context(), c.cookies["holdfast_admin/"].Value); err != nil {
			t.Error(err)
		}
		_, sent[1] = w.Write([]byte("data: 2\n\n"))
	}})
	c.signIn("viewer")
	body := c.get("/admin/live?topic=order/1", "Upgrade", "websocket").Body.String()
	if sent[0] != nil || sent[1] == nil || strings.Contains(body, "data: 2") {
		t.Errorf("got %v and %q", sent, body)
	}
	if w := c.get("/admin/live"); w.Code != http.StatusUnauthorized {
		t.Errorf("signed out: got %d", w.Code)
	}
}
