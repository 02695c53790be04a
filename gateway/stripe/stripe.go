// Package stripe is the gateway to Stripe, over its version 1 API.
//
// Two methods: "checkout" sends the buyer to a page that Stripe hosts
// (a Checkout Session), "intent" lets the shop's own page pay in place
// (a PaymentIntent's client secret).
//
// # What repeating means here
//
// Stripe knows nothing of our numbers. A call is made safe to repeat by an
// Idempotency-Key, under which the first answer is kept for 24 hours, a
// failure of Stripe's included; after that the same key is a new call, and
// money moves twice. So a call that moves money is sent on its key only while
// the stored intent is younger than 23 hours, and everything that the key
// cannot answer is found out by reading: our numbers are in the metadata of
// whatever we make. Reading is by id or by list; Stripe's search index lags
// behind, and what is not in it may exist all the same.
//
// Closing uses no fixed key: it is idempotent by nature, and a kept answer
// would only repeat what was true before.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

// keyLife is how long after the intent was stored a call may be sent on its
// key. Stripe keeps keys for at least 24 hours; the hour between is for clocks
// that differ and calls that wait.
const keyLife = 23 * time.Hour

// maxKeys is how many keys one of our numbers can use up. The next one is taken
// only when the failure that is kept under the last is over and done with, and
// what it should have made is in no list.
const maxKeys = 3

func key(what, id string, n int) string {
	if n == 0 {
		return "hf-" + what + "-" + id
	}
	return fmt.Sprintf("hf-%s-%s-%d", what, id, n+1)
}

// defaultTimeout bounds a call whose context has no deadline.
const defaultTimeout = 30 * time.Second

// maxAnswer is how many bytes of an answer are read; more is unreadable.
const maxAnswer = 4 << 20

// Options says whose account it is. SecretKey and WebhookSecrets are required.
type Options struct {
	SecretKey string // sk_… or rk_…

	// WebhookSecrets are the whole whsec_… strings of the endpoint, 1 to 4.
	// A notification signed with any of them is authentic, so that one can be
	// replaced without losing what is on its way.
	WebhookSecrets []string

	BaseURL    string           // empty = https://api.stripe.com
	HTTPClient *http.Client     // nil = a plain one; a Timeout of 0 becomes 30 s
	Now        func() time.Time // tells the age of an intent; nil = time.Now
}

const maxSecrets = 4

// Gateway is a gateway.Gateway. It is safe for concurrent use.
type Gateway struct {
	client  *sdk.Client
	api     sdk.Backend // of client, for what that has wrong
	key     string
	kinds   map[string]kind
	secrets [][]byte
	now     func() time.Time
}

var _ gateway.Gateway = (*Gateway)(nil)

// New checks the options and makes no call.
func New(o Options) (*Gateway, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("stripe: options: %w", err)
	}
	g := &Gateway{now: o.Now}
	if g.now == nil {
		g.now = time.Now
	}
	for _, s := range o.WebhookSecrets {
		g.secrets = append(g.secrets, []byte(s))
	}
	backends := sdk.NewBackendsWithConfig(o.backend())
	g.client = sdk.NewClient(o.SecretKey, sdk.WithBackends(backends))
	g.api, g.key = backends.API, o.SecretKey
	g.kinds = map[string]kind{methodCheckout: checkout{g.client}, methodIntent: intent{g.client}}
	return g, nil
}

func (o Options) check() error {
	if o.SecretKey == "" {
		return errors.New("secret key is missing")
	}
	if len(o.WebhookSecrets) == 0 {
		return errors.New("webhook secret is missing")
	}
	if len(o.WebhookSecrets) > maxSecrets {
		return fmt.Errorf("more than %d webhook secrets", maxSecrets)
	}
	for _, s := range o.WebhookSecrets {
		if s == "" {
			return errors.New("a webhook secret is empty") // anyone can sign with it
		}
	}
	if o.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(o.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("base url is not an http address")
	}
	if u.Scheme == "http" && strings.Contains(o.SecretKey, "_live_") {
		return errors.New("a live key is not sent without https")
	}
	return nil
}

func (o Options) backend() *sdk.BackendConfig {
	client := http.Client{}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	if client.Timeout == 0 {
		client.Timeout = defaultTimeout
	}
	client.Transport = limited{client.Transport}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &sdk.BackendConfig{
		EnableTelemetry:   sdk.Bool(false),
		HTTPClient:        &client,
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull},
		MaxNetworkRetries: sdk.Int64(0),
	}
	if o.BaseURL != "" {
		c.URL = sdk.String(o.BaseURL)
	}
	return c
}

// limited bounds what is read of an answer; the SDK reads all there is.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	next := l.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// Methods implements gateway.Gateway.
func (g *Gateway) Methods() []string { return []string{methodCheckout, methodIntent} }

// Check implements gateway.Gateway.
func (g *Gateway) Check(p gateway.Payment) *gateway.Unfit {
	if _, err := g.kind(p); err != nil {
		return &gateway.Unfit{Field: "method", Detail: err.Error()}
	}
	if _, ok := toWire(p.Amount, p.Currency); !ok {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("stripe can't carry %d minor units of %s", p.Amount, p.Currency)}
	}
	if p.Method == methodCheckout && p.ReturnURL == "" {
		return &gateway.Unfit{Field: "return_url", Detail: "the page at stripe must know where the buyer goes afterwards"}
	}
	return nil
}

// Create implements gateway.Gateway. After 23 hours it only looks.
func (g *Gateway) Create(ctx context.Context, p gateway.Payment) gateway.Answer {
	k, err := g.kind(p)
	if err != nil {
		return gateway.Answer{Outcome: gateway.Refused, Code: codeMethod}
	}
	amount, ok := toWire(p.Amount, p.Currency)
	if !ok {
		return gateway.Answer{Outcome: gateway.Refused, Code: codeAmount}
	}
	if !g.fresh(p.CreatedAt) {
		a := g.Query(ctx, p)
		if a.Outcome == gateway.Refused {
			return unknown(p, "create", errKeyOld)
		}
		return a
	}
	for n := range maxKeys {
		var s state
		s, err = k.create(ctx, p, amount, key("payment", p.ID, n))
		if err == nil && s.replayed {
			p.Ref = s.ref
			return g.Query(ctx, p)
		}
		if err == nil {
			return answer(p, "create", s)
		}
		if isFinal(err) {
			return gateway.Answer{Outcome: gateway.Refused, Code: code(err)}
		}
		if !isKept(err) {
			break
		}
		a := g.Query(ctx, p)
		if a.Outcome == gateway.Done {
			return a
		}
		if a.Outcome != gateway.Refused || !isSpent(err) {
			break
		}
	}
	return unknown(p, "create", err)
}

// Query implements gateway.Gateway. Without Payment.Ref it reads the list of
// what was created in the 24 hours after Payment.CreatedAt; where that is too
// long to be read, the outcome is Unknown and not Refused.
func (g *Gateway) Query(ctx context.Context, p gateway.Payment) gateway.Answer {
	s, err := g.locate(ctx, p)
	if isAbsent(err) {
		return gateway.Answer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknown(p, "query", err)
	}
	return answer(p, "query", s)
}

// Close implements gateway.Gateway. Without Payment.Ref it first creates the
// payment under its key: that finds the one whose answer was lost, and lets
// nobody create it afterwards.
func (g *Gateway) Close(ctx context.Context, p gateway.Payment) gateway.Answer {
	k, err := g.kind(p)
	if err != nil {
		return unknown(p, "close", err)
	}
	if p.Ref == "" {
		a := g.settle(ctx, p)
		if a.Outcome == gateway.Refused {
			return gateway.Answer{Outcome: gateway.Done, Status: gateway.Closed, Code: a.Code}
		}
		if a.Outcome != gateway.Done || a.Status != gateway.Open {
			return a
		}
		p.Ref = a.Ref
	}
	s, err := k.close(ctx, p.Ref)
	if err == nil && s.status != gateway.Open {
		return answer(p, "close", s)
	}
	// Paid, closed before, being processed, or an answer that says nothing:
	// only the object itself can tell.
	a := g.Query(ctx, p)
	if a.Outcome == gateway.Done && a.Status != gateway.Open {
		return a
	}
	if err == nil {
		err = errStillOpen
	}
	return unknown(p, "close", err)
}

// settle finds out what there is of a payment whose Ref was never learned.
// Refused: nothing, and nothing will come of its key.
func (g *Gateway) settle(ctx context.Context, p gateway.Payment) gateway.Answer {
	if g.fresh(p.CreatedAt) {
		a := g.Create(ctx, p)
		if a.Outcome != gateway.Refused {
			return a
		}
	}
	return g.Query(ctx, p)
}

// locate reads the payment by its Ref, or finds it by our number.
func (g *Gateway) locate(ctx context.Context, p gateway.Payment) (state, error) {
	k, err := g.kind(p)
	if err != nil {
		return state{}, err
	}
	ref := p.Ref
	if ref == "" {
		if ref, err = k.find(ctx, p); err != nil {
			return state{}, err
		}
	}
	return k.get(ctx, ref)
}

func (g *Gateway) kind(p gateway.Payment) (kind, error) {
	if k, ok := g.kinds[p.Method]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("method %q is not one of %v", p.Method, g.Methods())
}

// fresh says whether a key made from an intent of that age is still kept. An
// intent whose age is not known, of the zero time, is older than any key.
func (g *Gateway) fresh(created time.Time) bool { return g.now().Sub(created) < keyLife }
