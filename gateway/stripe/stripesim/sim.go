// Package stripesim is a stateful simulator of the Stripe API on the wire: a
// real Stripe SDK can be pointed at it, buyers can pay on its pages, and it
// sends signed webhooks. It is written from Stripe's published rules alone and
// shares no code with the adapter that is tested against it.
//
// What it knows: Checkout Sessions (mode payment), PaymentIntents, refunds,
// transfers to connected accounts with reversals, payouts to our own bank, the
// balance and its transactions, events, idempotency keys and webhooks with
// retries.
// What it does not know it refuses, parameters included. State is in memory.
//
// Everything random comes from Config.Seed and everything timed from
// Config.Now: the same seed, clock and calls give the same ids, choices and
// faults. Only SlowAnswer and Run wait on the real clock.
package stripesim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	// DefaultSecretKey and DefaultWebhookSecret are used where Config names none.
	DefaultSecretKey     = "sk_test_sandbox"
	DefaultWebhookSecret = "whsec_sandbox0000000000000000000000"

	apiVersion = "2026-08-26.dahlia"

	deliveryTimeout = 10 * time.Second
)

// Config says how a Sim behaves. The zero value is usable.
type Config struct {
	SecretKey      string           // the accepted API key; empty means DefaultSecretKey
	WebhookURL     string           // where signed events go; empty means nowhere, they are only listed
	WebhookSecrets []string         // every delivery is signed with each; empty means DefaultWebhookSecret
	BaseURL        string           // of the hosted pages, without a trailing slash; empty means the request's own host
	Now            func() time.Time // nil means time.Now
	Seed           uint64           // drives every random choice
	Client         *http.Client     // for deliveries, redirects are never followed; nil means one with a 10 s timeout
}

// Sim is the simulator. It may be used from many goroutines at once.
//
// One lock guards all state, and no call waits for anything while it holds it:
// each API call and each change is atomic, as a buyer and a merchant see them.
type Sim struct {
	secretKey string
	secrets   []string
	baseURL   string
	now       func() time.Time
	client    *http.Client
	handler   http.Handler

	mu         sync.Mutex
	webhookURL string
	ids        *rand.Rand // of ids alone, so that faults do not change them
	luck       dial.Luck
	faults     Faults
	injected   []Fault
	keys       map[string]*stored
	sessions   table[*session]
	intents    table[*intent]
	charges    table[*charge]
	refunds    table[*refund]
	transfers  table[*transfer]
	reversals  table[*reversal]
	payouts    table[*payout]
	txns       table[*txn]
	balance    map[string]int64 // by currency
	events     table[*event]
	agenda     dial.Agenda[func()]    // what the clock will do: expire, settle, forget
	outbox     dial.Agenda[*delivery] // what will be sent
	wake       chan struct{}          // closed and replaced when the outbox or the agenda has something new
}

// New makes a simulator. It starts nothing: see Run and Deliver.
func New(cfg Config) *Sim {
	s := &Sim{
		secretKey:  cmp.Or(cfg.SecretKey, DefaultSecretKey),
		secrets:    cfg.WebhookSecrets,
		baseURL:    cfg.BaseURL,
		now:        cfg.Now,
		webhookURL: cfg.WebhookURL,
		ids:        rand.New(rand.NewPCG(cfg.Seed, 1)),
		luck:       dial.Luck{Rand: rand.New(rand.NewPCG(cfg.Seed, 2))},
		keys:       map[string]*stored{},
		balance:    map[string]int64{},
		wake:       make(chan struct{}),
	}
	if len(s.secrets) == 0 {
		s.secrets = []string{DefaultWebhookSecret}
	}
	if s.now == nil {
		s.now = time.Now
	}
	client := http.Client{Timeout: deliveryTimeout}
	if cfg.Client != nil {
		client = *cfg.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &client
	s.handler = s.routes()
	return s
}

// ServeHTTP serves the API under /v1/, the pay pages under /pay/ and the
// control API under /_sim/. A lost answer panics with http.ErrAbortHandler,
// which net/http turns into a cut connection.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetWebhookURL says where events that happen from now on are sent; empty
// means nowhere.
func (s *Sim) SetWebhookURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhookURL = url
}

// enter takes the lock and lets the clock do what is due. The caller unlocks.
func (s *Sim) enter() time.Time {
	s.mu.Lock()
	now := s.now()
	for {
		act, ok := s.agenda.Due(now)
		if !ok {
			return now
		}
		act()
	}
}

// at puts an act of the clock on the agenda.
func (s *Sim) at(t time.Time, act func()) {
	s.agenda.Add(t, act)
	s.rouse()
}

// rouse wakes whoever waits in Run.
func (s *Sim) rouse() {
	close(s.wake)
	s.wake = make(chan struct{})
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// id makes a name like Stripe's: a prefix and n letters or digits.
func (s *Sim) id(prefix string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[s.ids.IntN(len(alphabet))]
	}
	return prefix + string(b)
}

// Run sends deliveries as they fall due, on the real clock, until ctx ends. At
// most deliveryWorkers are under way at once, so one slow receiver holds up
// few others. It returns when all its workers have stopped.
func (s *Sim) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range deliveryWorkers {
		workers.Go(func() { s.deliverForever(ctx) })
	}
	workers.Wait()
}
