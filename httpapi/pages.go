package httpapi

import (
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

//go:embed static
var static embed.FS

// docsPolicy lets the reader of the document run from here, and from nowhere else.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pages adds the OpenAPI document, its reader, and the answer to everything else.
func (a *API) pages() {
	doc, err := a.written()
	if err != nil {
		panic(fmt.Sprintf("httpapi: the OpenAPI document can't be written: %v", err)) // a route is described wrongly
	}
	a.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	})
	a.file("/docs", "static/index.html", "text/html; charset=utf-8")
	a.file("/docs/rapidoc-min.js", "static/rapidoc-min.js", "text/javascript; charset=utf-8")
	a.mux.HandleFunc("/", a.other)
}

// file serves one embedded file. No path of a client ever names a file.
func (a *API) file(path, name, media string) {
	data, err := static.ReadFile(name)
	if err != nil {
		panic("httpapi: embedded file is gone: " + name)
	}
	a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Content-Type", media)
		_, _ = w.Write(data)
	})
}

// methods are those that a route may have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// other answers what no route took: wrong methods, preflights, unknown paths.
// Browsers of other origins get no permission, whatever they ask.
func (a *API) other(w http.ResponseWriter, r *http.Request) {
	allowed := a.allowed(r)
	switch {
	case len(allowed) == 0 && a.site != nil && !strings.HasPrefix(r.URL.Path, "/v1/"):
		a.site.ServeHTTP(w, r)
	case len(allowed) == 0:
		a.fail(w, r, errNotFound)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.fail(w, r, refuse(codeMethodNotAllowed, "see Allow"))
	}
}

func (a *API) allowed(r *http.Request) (allowed []string) {
	for _, m := range methods {
		probe := http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := a.mux.Handler(&probe); pattern != "/" {
			allowed = append(allowed, m)
		}
	}
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
	}
	return allowed
}
