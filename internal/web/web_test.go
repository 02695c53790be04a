package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
)

// opened is the pages of a new store.
type opened struct {
	*testing.T
	core    *holdfast.Holdfast
	pages   http.Handler
	cookies map[string]*http.Cookie
}

func open(t *testing.T, o Options, core holdfast.Options) *opened {
	t.Helper()
	h, err := holdfast.Open(t.Context(), "sqlite:"+t.TempDir()+"/shop.db", core)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &opened{t, h, New(h, o), map[string]*http.Cookie{}}
}

// get asks for a page as a browser does that keeps cookies; header is name and
// value, by turns.
func (o *opened) get(path string, header ...string) *httptest.ResponseRecorder {
	o.Helper()
	return o.send(httptest.NewRequest(http.MethodGet, path, nil), header)
}

// post sends a form; fields are name and value, by turns.
func (o *opened) post(path string, fields ...string) *httptest.ResponseRecorder {
	o.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	return o.send(r, []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"})
}

func (o *opened) send(r *http.Request, header []string) *httptest.ResponseRecorder {
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range o.cookies {
		if c.Path == "" || strings.HasPrefix(r.URL.Path, c.Path) {
			r.AddCookie(c)
		}
	}
	w := httptest.NewRecorder()
	o.pages.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		o.cookies[c.Name+c.Path] = c
	}
	return w
}

func TestUnknownPagesSaySoInTheVisitorsLanguage(t *testing.T) {
	o := open(t, Options{}, holdfast.Options{Passive: true})
	for accept, want := range map[string]string{"": "nothing here", "fr": "nothing here", "zh-TW,en;q=0.5": "这里什么也没有", "de, en;q=0.9, zh;q=0.1": "nothing here"} {
		w := o.get("/nowhere", "Accept-Language", accept)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("with Accept-Language %q: got %d without %q", accept, w.Code, want)
		}
	}
}

func TestAChosenLanguageStays(t *testing.T) {
	o := open(t, Options{}, holdfast.Options{Passive: true})
	w := o.post("/web/language", "lang", "zh", "back", "/nowhere")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/nowhere" {
		t.Fatalf("got %d to %q, want 303 to /nowhere", w.Code, w.Header().Get("Location"))
	}
	if w = o.get("/nowhere", "Accept-Language", "en"); !strings.Contains(w.Body.String(), "这里什么也没有") {
		t.Error("the choice is forgotten")
	}
	for _, back := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "", "/\t/evil.example"} {
		if w := o.post("/web/language", "lang", "zh", "back", back); w.Code != http.StatusBadRequest {
			t.Errorf("back to %q: got %d, want 400", back, w.Code)
		}
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	o := open(t, Options{}, holdfast.Options{Passive: true})
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"}, {"Origin", "https://evil.example"}} {
		r := httptest.NewRequest(http.MethodPost, "/web/language", strings.NewReader("lang=zh&back=/"))
		w := o.send(r, append(header, "Content-Type", "text/plain"))
		if w.Code != http.StatusForbidden {
			t.Errorf("with %v: got %d, want 403", header, w.Code)
		}
	}
}

func TestPagesLetNothingInAndNobodyFrameThem(t *testing.T) {
	o := open(t, Options{}, holdfast.Options{Passive: true})
	w := o.get("/nowhere")
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "*"} {
		if strings.Contains(policy, never) {
			t.Errorf("the policy has %s: %s", never, policy)
		}
	}
}

func TestAssetsAreFoundUnderTheirHashOnly(t *testing.T) {
	all := loadAssets()
	o := open(t, Options{}, holdfast.Options{Passive: true})
	for name, a := range all.names {
		w := o.get(a.url, "Accept-Encoding", "gzip")
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
		if w := o.get(a.url); w.Body.String() != string(a.raw) {
			t.Errorf("%s without gzip is something else", name)
		}
	}
	for _, path := range []string{assetRoot + "web.css", assetRoot + "..%2f..%2fweb.go", assetRoot + "SHA256SUMS", assetRoot} {
		if w := o.get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, w.Code)
		}
	}
}
