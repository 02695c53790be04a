// Package httpapi serves Holdfast over HTTP: REST with problem+json, server
// sent events, the gateways' notifications, and the OpenAPI document that is
// made from the handlers.
//
// A route says in one value what it is called, who may call it and whether it
// needs an Idempotency-Key; handle does the rest the same way for all of them:
// identify, read the body strictly, call, answer. Every refusal has a code, and
// every code has its status in one table.
package httpapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

// Options are everything that New can be told. The zero value works.
type Options struct {
	// Version is shown in the OpenAPI document.
	Version string
	// Open lets everybody in without an API key. For a demo that listens on
	// loopback only, with Hosts set: otherwise any web page that the same person
	// has open could give itself a name that resolves to loopback, and call.
	Open bool
	// Hosts are the names (with or without port) that requests may be for, and
	// whose pages may call from a browser. nil = any name, and the same one.
	Hosts []string
	// ReturnURLs are the origins that buyers may be sent back to, such as
	// "https://shop.example". nil = https anywhere and http on loopback.
	ReturnURLs []string
	// Metrics is served at /metrics to API keys. nil = there is no such page.
	Metrics http.Handler
	// Pages answers, behind the same checks, what is no route of the API and not
	// under /v1/. nil = there is nothing else.
	Pages http.Handler
	// Logger receives what an operator may have to act on. Bodies and
	// credentials are never logged. nil = discarded.
	Logger *slog.Logger
	// Now counts failed attempts. nil = time.Now.
	Now func() time.Time
}

// API is the handler. Safe for concurrent use.
type API struct {
	core       *holdfast.Holdfast
	mux        *http.ServeMux
	doc        *huma.OpenAPI
	open       bool
	hosts      []string
	returnURLs []string
	site       http.Handler // for people; nil = none
	log        *slog.Logger
	now        func() time.Time
	failures   failures
	streams    streams
	draining   atomic.Bool
}

// New makes the handler of an open store. The caller closes core, after Drain
// and after the server has stopped.
func New(core *holdfast.Holdfast, o Options) *API {
	a := &API{
		core: core, mux: http.NewServeMux(), doc: document(o.Version),
		open: o.Open, hosts: o.Hosts, returnURLs: o.ReturnURLs, site: o.Pages, log: o.Logger, now: o.Now,
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	a.streams.init()
	a.items()
	a.sales()
	a.orders()
	a.tickets()
	a.payments()
	a.accounts()
	a.transfers()
	a.payouts()
	a.events()
	a.webhooks()
	a.endpoints()
	a.admin()
	a.metrics(o.Metrics)
	a.pages()
	return a
}

// Drain ends the event streams and makes /readyz say that no new work should
// be sent here. Requests are still answered.
func (a *API) Drain() {
	a.draining.Store(true)
	a.streams.stop()
}

// Limits of a request's head. The server bounds its bytes.
const maxHeaders = 100 // names

// Headers that every answer carries. An API has nothing that a browser should
// run, frame, guess the type of or keep.
var (
	headNoSniff   = []string{"nosniff"}
	headPolicy    = []string{"default-src 'none'; frame-ancestors 'none'"}
	headReferrer  = []string{"no-referrer"}
	headNoStore   = []string{"no-store"}
	headSameRes   = []string{"same-origin"}
	headTransport = []string{"max-age=31536000"}
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Request-Id"] = []string{rand.Text()}
	h["X-Content-Type-Options"] = headNoSniff
	h["Content-Security-Policy"] = headPolicy
	h["Referrer-Policy"] = headReferrer
	h["Cache-Control"] = headNoStore
	h["Cross-Origin-Resource-Policy"] = headSameRes
	if r.TLS != nil {
		h["Strict-Transport-Security"] = headTransport
	}
	defer a.recovered(w, r)
	if err := a.check(r); err != nil {
		h.Set("Connection", "close")
		a.fail(w, r, err)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// recovered turns a panic into an answer that says nothing, and a log line
// that says everything.
func (a *API) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	id := w.Header().Get("Request-Id")
	a.log.ErrorContext(r.Context(), "panic", "request_id", id, "route", r.Pattern, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.Header().Get("Content-Type") != "" {
		panic(http.ErrAbortHandler) // the answer has begun: cut it, so that nobody takes it for whole
	}
	writeProblem(w, Problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "see the log for this request_id", RequestID: id})
}

// check refuses what no route should ever see.
func (a *API) check(r *http.Request) error {
	if len(r.Header) > maxHeaders {
		return refuse(codeTooManyHeaders, "too many headers")
	}
	// net/http drops the Content-Length of a chunked request, so that a
	// smuggled one can't be told from an honest one. No body here needs it.
	if len(r.TransferEncoding) > 0 {
		return refuse(codeChunked, "send the body with a Content-Length")
	}
	if r.Method == http.MethodConnect {
		return refuse(codeMethodNotAllowed, "this is no proxy")
	}
	if !a.serves(r.Host) {
		return refuse(codeInvalidHost, "this host is not served here")
	}
	if !plainPath(r.URL) {
		return refuse(codeInvalidPath, "the path has empty, dot, encoded or control segments")
	}
	if a.foreign(r) {
		return refuse(codeForeignOrigin, "browsers may only call from this origin")
	}
	return nil
}

func (a *API) serves(host string) bool {
	if len(a.hosts) == 0 {
		return true
	}
	u := url.URL{Host: host}
	return slices.ContainsFunc(a.hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, u.Hostname())
	})
}

// foreign says whether a page of another site made its browser send r. What is
// not a browser sends no Origin.
func (a *API) foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Method == http.MethodOptions {
		return false
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return true
	}
	return !strings.EqualFold(u.Host, r.Host) && (len(a.hosts) == 0 || !a.serves(u.Host))
}

// plainPath accepts one spelling of every path.
func plainPath(u *url.URL) bool {
	p := u.Path
	if !strings.HasPrefix(p, "/") || strings.Contains(p, "//") {
		return false
	}
	for i := range len(p) {
		if p[i] <= ' ' || p[i] == 0x7f || p[i] == '\\' {
			return false
		}
	}
	if u.RawPath != "" && strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return false
	}
	for segment := range strings.SplitSeq(p, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// Times of a server, and of one request.
const (
	headerTime  = 5 * time.Second  // to send the headers
	bodyTime    = 10 * time.Second // to send the whole request
	answerTime  = 40 * time.Second // from the end of the headers to the end of the answer
	idleTime    = 60 * time.Second // between two requests of a connection
	requestTime = 20 * time.Second // to decide; longer than a payment waits for its gateway
)

const (
	maxHeaderBytes = 16 << 10
	maxHTTP2       = 100 // streams of one HTTP/2 connection
)

// Server is an http.Server for an API, with limits on everything that a client
// could otherwise draw out. Streams set their own deadlines.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2},
		// What clients do wrong is not for the operator: debug.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// bounded is the context of one request.
func bounded(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), requestTime)
}
