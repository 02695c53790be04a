// Package metrics shows what a shop does in Prometheus' text format: figures of
// the core, read when somebody asks for them, and the requests that were watched.
package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-pay/holdfast"
)

// scrapeTime is how long one look at the figures may take.
const scrapeTime = 10 * time.Second

// Metrics are those of one shop. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
}

// New makes the metrics of an open store.
func New(core *holdfast.Holdfast, version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdfast_http_request_duration_seconds", Help: "Answered requests by route and status. Event streams are not among them.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"route", "status"}),
	}
	m.registry.MustRegister(m.requests, newShop(core, version),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler writes all figures. What could not be read is left out.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTime})
}

// Watch counts what next answers. Its routes are the patterns of an http.ServeMux:
// paths of clients would be without end.
func (m *Metrics) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &watched{ResponseWriter: w}
		defer func() {
			if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
				return
			}
			m.requests.WithLabelValues(route(r), strconv.Itoa(seen.status())).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(seen, r)
	})
}

// route is the pattern that took r, "none" if none did.
func route(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "none"
	}
	return r.Pattern
}

// watched notes the status of an answer.
type watched struct {
	http.ResponseWriter
	code int
}

func (w *watched) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
