package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

// metrics adds the figures for a monitoring system. How much a shop sells is
// nobody else's business, so it takes an API key like everything else.
func (a *API) metrics(figures http.Handler) {
	rt := route{
		method: http.MethodGet, path: "/metrics", name: "metrics", tag: "Operation", scope: holdfast.ScopeRead,
		summary: "Figures for Prometheus", about: "In its text format: orders by outcome, the line and its workers, the gate, commits, tasks, requests. Send an API key as the scraper's bearer token.",
	}
	rt.prepare()
	op := a.operation(&rt)
	op.Responses["200"] = &huma.Response{Description: "Figures", Content: map[string]*huma.MediaType{"text/plain": {Schema: stringSchema()}}}
	a.doc.AddOperation(op)
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := bounded(r)
		defer cancel()
		c := call{api: a, w: w, r: r}
		if err := c.admit(ctx, &rt); err != nil {
			a.fail(w, r, err)
			return
		}
		if figures == nil {
			a.fail(w, r, errNotFound)
			return
		}
		figures.ServeHTTP(w, r.WithContext(ctx))
	})
}
