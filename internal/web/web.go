// Package web is what people see of Holdfast: the shop, its cashier and the
// admin console, rendered on the server.
//
// A page is a template, a handler and its words in every language. A page that
// may change while it is looked at marks the parts that do (data-live); its
// script hears over one stream that something has happened, fetches the page
// again and swaps those parts. So everything is said once, on the server, and
// works without a script as well, only not by itself.
package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-pay/holdfast"
)

// Options are everything that New can be told. The zero value works.
type Options struct {
	// URL is where browsers reach this server, such as "https://shop.example":
	// gateways send buyers back there. "" = they don't.
	URL string
	// Shop serves the shop under /shop/ and the cashier under /pay/.
	Shop bool
	// Admin serves the console under /admin/.
	Admin bool
	// Sandboxes are the gateways' simulators in this process, by the gateway's name,
	// with the address of their page for people: the console links to them.
	Sandboxes map[string]string
	// Stream answers with what happens to topics from now on (see holdfast.Listen;
	// none = everything) to somebody who may hear it. Streams of one caller are
	// counted together. nil = pages stand still.
	Stream func(w http.ResponseWriter, r *http.Request, caller string, topics []string)
	// Logger receives what an operator may have to act on. nil = discarded.
	Logger *slog.Logger
}

// site is all pages. Safe for concurrent use.
type site struct {
	core    *holdfast.Holdfast
	o       Options
	mux     *http.ServeMux
	shelf   shelf
	origins *http.CrossOriginProtection
	assets  assets
	voices  map[string]*voice // by language
	door    door
	desks   []deskRoute // pages of the console
	routes  []string    // patterns of all pages
	tries   tries
}

// New makes the handler of all pages of an open store. It expects to be behind
// the checks of httpapi (see httpapi.Options.Pages).
func New(core *holdfast.Holdfast, o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &site{core: core, o: o, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(), assets: loadAssets()}
	s.voices = loadVoices(s.assets)
	s.mux.HandleFunc("GET "+assetRoot+"{name}", s.assets.serve)
	s.page("POST /web/language", chooseLanguage)
	if o.Shop {
		s.shop()
		s.pay()
	}
	if o.Admin {
		s.console()
	}
	s.page("/", func(*visit) error { return errNotFound })
	return s
}

// Routes are the patterns of all pages, as http.ServeMux has them: whoever walks
// through the pages can tell that none is left out.
func (s *site) Routes() []string { return slices.Clone(s.routes) }

// policy lets pages use what comes from here, and nothing else. data: is for the
// little pictures in the style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would come without their origin
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language, Cookie")
	s.mux.ServeHTTP(w, r)
}

// visit is one request for a page.
type visit struct {
	*site
	*voice // in the visitor's language
	w      http.ResponseWriter
	r      *http.Request
}

// maxForm is how many bytes a form may have.
const maxForm = 64 << 10

// page adds a page. An error that it comes back with becomes a page that says so.
func (s *site) page(pattern string, serve func(*visit) error) {
	s.routes = append(s.routes, pattern)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := &visit{site: s, voice: s.voices[languageOf(r)], w: w, r: r}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if s.origins.Check(r) != nil {
			v.fail(errForeign)
			return
		}
		if err := serve(v); err != nil {
			v.fail(err)
		}
	})
}

// show answers with a page.
func (v *visit) show(status int, name string, data any) error {
	now, err := v.core.Ledger().Now(v.r.Context())
	if err != nil && status < http.StatusInternalServerError {
		return fmt.Errorf("web: store time: %w", err)
	}
	return v.render(v.w, status, name, shape{Path: v.r.URL.Path, Now: now, Data: data})
}

// goTo sends the browser to another page of ours.
func (v *visit) goTo(path string) error {
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// trouble is an answer that is no page: its words are error.<code>.
type trouble struct {
	code   string
	status int
}

func (t *trouble) Error() string { return "web: " + t.code }

var (
	errNotFound = &trouble{"not_found", http.StatusNotFound}
	errForeign  = &trouble{"foreign", http.StatusForbidden}
	errForm     = &trouble{"form", http.StatusBadRequest}
	errBusy     = &trouble{"busy", http.StatusServiceUnavailable}
	errTooMany  = &trouble{"too_many", http.StatusTooManyRequests}
	errInternal = &trouble{"internal", http.StatusInternalServerError}
)

// troubleOf is what an error of the core is to a visitor.
func troubleOf(err error) *trouble {
	var t *trouble
	var no *holdfast.Rejection
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &t):
		return t
	case errors.As(err, &long):
		return errForm
	case !errors.As(err, &no):
		return errInternal
	case no.Code == holdfast.CodeNotFound, no.Code == holdfast.CodeSKUUnknown:
		return errNotFound
	case no.Code == holdfast.CodeOverloaded:
		return errBusy
	}
	return errForm
}

func (v *visit) fail(err error) {
	t := troubleOf(err)
	if t == errInternal && v.r.Context().Err() == nil {
		v.o.Logger.ErrorContext(v.r.Context(), "page", "request_id", v.w.Header().Get("Request-Id"), "route", v.r.Pattern, "error", err)
	}
	if t.status == http.StatusServiceUnavailable || t.status == http.StatusTooManyRequests {
		v.w.Header().Set("Retry-After", "5")
	}
	data := struct{ Code, RequestID, Home string }{t.code, v.w.Header().Get("Request-Id"), v.home()}
	if err := v.show(t.status, "web/error", data); err != nil {
		panic(fmt.Sprintf("web: the page of errors can't be shown: %v", err))
	}
}

// home is the folder in which a page leads on that is none; "" = there is nothing.
func (v *visit) home() string {
	switch {
	case v.o.Admin && strings.HasPrefix(v.r.URL.Path, "/admin"):
		return "admin"
	case v.o.Shop:
		return "shop"
	}
	return ""
}

// local says whether path is one of ours, and not another site in disguise.
func local(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.ContainsFunc(path, func(r rune) bool {
		return r == '\\' || r < ' ' || r == 0x7f
	})
}
