package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// Limits of wrong credentials.
const (
	maxFailures     = 10 // of one address (and order) in a failureWindow
	failureWindow   = time.Minute
	maxFailureNames = 4096 // that are counted apart; the rest share one count
)

// caller is who asks: an API key, a buyer's page, or anybody (Options.Open).
type caller struct {
	id    string // scope of idempotency keys, cursors and streams
	buyer bool   // knows the secret of one order, and sees no more than that
	// topics are what a caller of a push route listens to; none = everything.
	topics []string
	key    holdfast.APIKey // the zero one = none
}

var errNotFound = refuse(holdfast.CodeNotFound, "there is nothing here")

// identify finds out who asks and whether they may.
//
// A buyer's secret opens one order; with another's, or a wrong one, the answer
// is the same as for an order that does not exist.
func (a *API) identify(ctx context.Context, r *http.Request, rt *route) (caller, error) {
	if credentialsInURL(r) {
		return caller{}, refuse(codeCredentialsInURL, "URLs end up in logs: send credentials in a header")
	}
	if rt.scope == "" {
		return caller{}, nil
	}
	var topics []string
	if rt.push {
		q := r.URL.Query()
		if len(q[streamToken]) == 1 {
			return a.identifyToken(ctx, r, q)
		}
		topics = topicsAsked(q)
	}
	secrets := r.Header["Client-Secret"]
	if len(secrets) == 1 && rt.push && r.Header["Authorization"] == nil {
		return a.identifyListener(r, topics, secrets[0])
	}
	if len(secrets) == 1 && (rt.order != nil || rt.ticket) && r.Header["Authorization"] == nil {
		return a.identifyBuyer(ctx, r, rt, secrets[0])
	}
	if a.open {
		return caller{id: "open", topics: topics}, nil
	}
	key, ok, err := a.bearer(ctx, r)
	if err != nil {
		return caller{}, err
	}
	if !ok {
		return caller{}, a.failed(r, "", refuse(codeUnauthenticated, "send Authorization: Bearer with a valid API key"))
	}
	if !key.Allows(rt.scope) {
		return caller{}, refuse(codeForbiddenScope, "needs the scope "+rt.scope)
	}
	return caller{id: key.ID, key: key, topics: topics}, nil
}

func (a *API) identifyBuyer(ctx context.Context, r *http.Request, rt *route, secret string) (caller, error) {
	if rt.ticket {
		ticket := r.PathValue("ticket")
		if !a.core.CheckTicketSecret(ticket, secret) {
			return caller{}, a.failed(r, ticket, errNotFound)
		}
		return caller{id: "ticket:" + ticket, buyer: true}, nil
	}
	order, err := rt.order(ctx, a.core, r.PathValue("id"))
	if err != nil && !isNotFound(err) {
		return caller{}, err
	}
	if err != nil || !a.core.CheckClientSecret(order, secret) {
		return caller{}, a.failed(r, r.PathValue("id"), errNotFound)
	}
	return caller{id: "order:" + order, buyer: true}, nil
}

// bearer looks up the API key of a request.
func (a *API) bearer(ctx context.Context, r *http.Request) (holdfast.APIKey, bool, error) {
	headers := r.Header["Authorization"]
	if len(headers) != 1 {
		return holdfast.APIKey{}, false, nil
	}
	plain, ok := strings.CutPrefix(headers[0], "Bearer ")
	if !ok {
		return holdfast.APIKey{}, false, nil
	}
	return a.core.Authenticate(ctx, plain)
}

// inURL are the names under which credentials are mistakenly sent.
var inURL = []string{"key", "api_key", "apikey", "access_token", "token", "client_secret", "authorization"}

func credentialsInURL(r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	for name, values := range r.URL.Query() {
		if slices.Contains(inURL, strings.ToLower(name)) {
			return true
		}
		if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "hf_") }) {
			return true
		}
	}
	return false
}

// failed counts a wrong credential and gives back no, or that there were too
// many. Right ones are never refused: behind one address there may be a proxy,
// and 128 random bits are not guessed, only tried.
func (a *API) failed(r *http.Request, what string, no *refusal) *refusal {
	wait := a.failures.add(address(r)+" "+what, a.now())
	if wait == 0 {
		return no
	}
	return &refusal{code: codeTooManyFailures, detail: "too many wrong credentials", retry: wait}
}

// address is whom a request is from (see Proxies): one IPv4, or one IPv6 network.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	const network = 64 // bits that one subscriber has
	p, err := ip.WithZone("").Prefix(network)
	if err != nil {
		return host
	}
	return p.String()
}

// failures counts wrong credentials by name, a window at a time.
type failures struct {
	mu    sync.Mutex
	until time.Time // end of the window
	count map[string]int
}

// add counts one more and says how many seconds name has to wait; 0 = none.
func (f *failures) add(name string, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil || !now.Before(f.until) {
		f.until, f.count = now.Add(failureWindow), map[string]int{}
	}
	if _, ok := f.count[name]; !ok && len(f.count) >= maxFailureNames {
		name = ""
	}
	f.count[name]++
	if f.count[name] <= maxFailures {
		return 0
	}
	return int(f.until.Sub(now)/time.Second) + 1
}
