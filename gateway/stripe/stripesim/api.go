package stripesim

import (
	"context"
	"crypto/subtle"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// endpoint is one row of the API.
type endpoint struct {
	name    string
	pattern string
	params  []string // what it accepts; see form.allow
	expands []string // what expand[] may name
	handle  func(*Sim, *call) (object, *apiError)
}

// call is one authorized, well-formed API request.
type call struct {
	name      string
	method    string
	path      string
	id        string // of the thing in the path
	key       string // Idempotency-Key, of a POST
	requestID string
	base      string // of the hosted pages
	form      *form
	now       time.Time
	plan      plan
}

// origin says what made an event; the zero value is a buyer or the clock.
type origin struct{ requestID, key string }

func (c *call) origin() origin { return origin{c.requestID, c.key} }

var listParams = []string{
	"limit", "starting_after", "created", "created[gt]", "created[gte]", "created[lt]", "created[lte]", "expand[#]",
}

func listing(more ...string) []string { return append(more, listParams...) }

// endpoints is the whole API.
func endpoints() []endpoint {
	one := []string{"expand[#]"}
	ofSession, ofSessions := []string{"payment_intent", "payment_intent.latest_charge"}, []string{"data.payment_intent"}
	ofIntent, ofIntents := []string{"latest_charge"}, []string{"data.latest_charge"}
	ofRefund, ofRefunds := []string{"charge", "payment_intent"}, []string{"data.charge", "data.payment_intent"}
	return []endpoint{
		{"checkout.create", "POST /v1/checkout/sessions", sessionParams, ofSession, (*Sim).createSession},
		{"checkout.list", "GET /v1/checkout/sessions", listing("payment_intent", "status"), ofSessions, (*Sim).listSessions},
		{"checkout.retrieve", "GET /v1/checkout/sessions/{id}", one, ofSession, (*Sim).retrieveSession},
		{"checkout.expire", "POST /v1/checkout/sessions/{id}/expire", one, ofSession, (*Sim).expireSession},
		{"intent.create", "POST /v1/payment_intents", intentParams, ofIntent, (*Sim).createIntent},
		{"intent.list", "GET /v1/payment_intents", listing(), ofIntents, (*Sim).listIntents},
		{"intent.search", "GET /v1/payment_intents/search", []string{"query", "limit", "page", "expand[#]"}, ofIntents, (*Sim).searchIntents},
		{"intent.retrieve", "GET /v1/payment_intents/{id}", []string{"client_secret", "expand[#]"}, ofIntent, (*Sim).retrieveIntent},
		{"intent.update", "POST /v1/payment_intents/{id}", []string{"metadata[*]", "description", "expand[#]"}, ofIntent, (*Sim).updateIntent},
		{"intent.confirm", "POST /v1/payment_intents/{id}/confirm", []string{"payment_method", "return_url", "expand[#]"}, ofIntent, (*Sim).confirmIntent},
		{"intent.cancel", "POST /v1/payment_intents/{id}/cancel", []string{"cancellation_reason", "expand[#]"}, ofIntent, (*Sim).cancelIntent},
		{"refund.create", "POST /v1/refunds", []string{"payment_intent", "charge", "amount", "reason", "metadata[*]", "expand[#]"}, ofRefund, (*Sim).createRefund},
		{"refund.list", "GET /v1/refunds", listing("payment_intent", "charge"), ofRefunds, (*Sim).listRefunds},
		{"refund.retrieve", "GET /v1/refunds/{id}", one, ofRefund, (*Sim).retrieveRefund},
		{"transfer.create", "POST /v1/transfers", transferParams, nil, (*Sim).createTransfer},
		{"transfer.list", "GET /v1/transfers", listing("destination", "transfer_group"), nil, (*Sim).listTransfers},
		{"transfer.retrieve", "GET /v1/transfers/{id}", one, nil, (*Sim).retrieveTransfer},
		{"transfer.reverse", "POST /v1/transfers/{id}/reversals", []string{"amount", "description", "metadata[*]", "expand[#]"}, []string{"transfer"}, (*Sim).createReversal},
		{"payout.create", "POST /v1/payouts", payoutParams, nil, (*Sim).createPayout},
		{"payout.list", "GET /v1/payouts", listing("destination", "status"), nil, (*Sim).listPayouts},
		{"payout.retrieve", "GET /v1/payouts/{id}", one, nil, (*Sim).retrievePayout},
		{"payout.cancel", "POST /v1/payouts/{id}/cancel", one, nil, (*Sim).cancelPayout},
		{"balance.retrieve", "GET /v1/balance", one, nil, (*Sim).retrieveBalance},
		{"balance.list", "GET /v1/balance_transactions", listing("type", "source", "currency"), []string{"data.source"}, (*Sim).listTxns},
		{"event.list", "GET /v1/events", listing("type", "types[#]", "delivery_success"), nil, (*Sim).listEvents},
		{"event.retrieve", "GET /v1/events/{id}", one, nil, (*Sim).retrieveEvent},
	}
}

func (s *Sim) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, e) })
	}
	mux.HandleFunc("/v1/", s.unrecognized)
	s.routePages(mux)
	s.routeControl(mux)
	return http.NewCrossOriginProtection().Handler(mux)
}

// unrecognized answers wrong paths and wrong methods alike, as Stripe does.
func (s *Sim) unrecognized(w http.ResponseWriter, r *http.Request) {
	fail := &apiError{status: 404, typ: invalidRequest, message: "Unrecognized request URL (" + r.Method + ": " + r.URL.Path + ")."}
	s.head(w, r)
	fail.reply().write(w)
}

// serve answers one API call, with its faults.
func (s *Sim) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	c := &call{name: e.name, method: r.Method, path: r.URL.Path, id: r.PathValue("id"), requestID: s.head(w, r), base: s.base(r)}
	if fail := s.receive(w, r, e, c); fail != nil {
		fail.reply().write(w)
		return
	}
	answer, held := s.answer(c, e)
	if c.plan.cut {
		panic(http.ErrAbortHandler)
	}
	if c.plan.slow > 0 {
		pause(r.Context(), c.plan.slow)
	}
	s.release(held)
	switch c.plan.after {
	case LostAnswer:
		panic(http.ErrAbortHandler)
	case BadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		w.Write([]byte("<html><body>502 Bad Gateway</body></html>"))
		return
	case TornAnswer:
		answer.body = answer.body[:len(answer.body)/2]
	}
	answer.write(w)
}

// head sets the headers of every answer and returns the request's id.
func (s *Sim) head(w http.ResponseWriter, r *http.Request) string {
	s.mu.Lock()
	id := s.id("req_", 14)
	s.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Request-Id", id)
	h.Set("Stripe-Version", version(r))
	return id
}

func version(r *http.Request) string {
	if v := r.Header.Get("Stripe-Version"); versionForm.MatchString(v) {
		return v
	}
	return apiVersion
}

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(\.[a-z]+)?$`)

// receive does everything that comes before an endpoint runs; what it refuses
// is never kept under an idempotency key.
func (s *Sim) receive(w http.ResponseWriter, r *http.Request, e endpoint, c *call) *apiError {
	if fail := s.authorize(r); fail != nil {
		return fail
	}
	if v := r.Header.Get("Stripe-Version"); v != "" && !versionForm.MatchString(v) {
		return invalid("", "", "Invalid Stripe API version: "+v)
	}
	if r.Method == http.MethodPost {
		c.key = r.Header.Get("Idempotency-Key")
	}
	if len(c.key) > maxKeyLen {
		return invalid("", "", "The Idempotency-Key is longer than 255 characters.")
	}
	f, fail := readForm(w, r)
	if fail != nil {
		return fail
	}
	if fail := f.allow(e.params); fail != nil {
		return fail
	}
	for _, path := range f.list("expand") {
		if !slices.Contains(e.expands, path) {
			return invalid("", "expand", "This property cannot be expanded ("+path+").")
		}
	}
	c.form = f
	if c.key != "" {
		w.Header().Set("Idempotency-Key", c.key)
	}
	return nil
}

func (s *Sim) authorize(r *http.Request) *apiError {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user, _, basic := r.BasicAuth(); basic {
		given = user
	} else if !bearer {
		return unauthorized("You did not provide an API key.")
	}
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.secretKey)) != 1 {
		return unauthorized("Invalid API Key provided.")
	}
	return nil
}

func (s *Sim) base(r *http.Request) string {
	if s.baseURL != "" {
		return s.baseURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// pause waits on the real clock, or until the caller has gone.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
