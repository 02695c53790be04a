package gatewaytest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Call is what a request asks of the gateway.
type Call string

const (
	CallCreate      Call = "create"
	CallQuery       Call = "query"
	CallClose       Call = "close"
	CallRefund      Call = "refund"
	CallQueryRefund Call = "query refund"
	CallPayout      Call = "payout"
	CallQueryPayout Call = "query payout"
	CallRecall      Call = "recall"
)

// Fault is what happens to a request instead of its plain execution by next.
type Fault func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Wire carries an adapter's requests to the simulator and loses some. It is an
// http.RoundTripper for the adapter's client, and safe for concurrent use.
type Wire struct {
	// Name tells what a request asks; "" for what is none of the calls.
	Name func(*http.Request) Call
	Next http.RoundTripper

	mu    sync.Mutex
	once  map[Call]Fault
	every Fault
}

// Once has f happen to the next request of that kind.
func (w *Wire) Once(c Call, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.once == nil {
		w.once = make(map[Call]Fault)
	}
	w.once[c] = f
}

// Every has f happen to all requests from now on; nil ends it.
func (w *Wire) Every(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every = f
}

// Pending says whether the fault set by Once has not happened yet.
func (w *Wire) Pending(c Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.once[c] != nil
}

// RoundTrip implements http.RoundTripper.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := w.take(w.Name(r)); f != nil {
		return f(r, w.Next)
	}
	return w.Next.RoundTrip(r)
}

func (w *Wire) take(c Call) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.every != nil {
		return w.every
	}
	f := w.once[c]
	delete(w.once, c)
	return f
}

// Lost executes the request and loses the answer.
func Lost(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

// Unreachable does not execute the request.
func Unreachable(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, io.ErrClosedPipe
}

// Hung executes the request and gives no answer before its context ends.
func Hung(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	// The simulator is to finish what it began, whatever the caller does.
	resp, err := next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Answers does not execute the request and answers in the gateway's place, as
// a proxy on the way does.
func Answers(status int, body string) Fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		return &http.Response{
			StatusCode: status,
			Status:     http.StatusText(status),
			Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header:  http.Header{"Content-Type": {"application/json"}},
			Body:    io.NopCloser(strings.NewReader(body)),
			Request: r,
		}, nil
	}
}

// After executes the request after do has been done, which the adapter cannot
// see coming.
func After(do func()) Fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		do()
		return next.RoundTrip(r)
	}
}
