// Package alipaysim is a stateful simulator of Alipay's open platform on the
// wire: an SDK can be pointed at its gateway.do, buyers can pay on its pages,
// and it sends signed notifications. It is written from Alipay's published
// rules alone and shares no code with the adapter that is tested against it.
//
// What it knows: page, wap, app and precreate payments, query, close, refund,
// refund query, transfers to persons and their query, the daily bill of trades,
// and notifications with their retries.
// What it does not know it refuses, parameters included. As at Alipay, a trade
// comes into being only when the buyer comes to pay it: until then a query and
// a close find nothing, and the address stays payable. State is in memory.
//
// Everything random comes from Config.Seed and everything timed from
// Config.Now: the same seed, clock and calls give the same numbers, choices and
// faults. Only SlowAnswer and Run wait on the real clock.
package alipaysim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

// What is used where Config names none. The keys that go with them are
// DefaultAppKey and DefaultPublicKey.
const (
	DefaultAppID    = "2021000000000001"
	DefaultSellerID = "2088000000000002"
)

const deliveryTimeout = 10 * time.Second

// Config says how a Sim behaves. The zero value is usable.
type Config struct {
	AppID    string // the accepted app; empty means DefaultAppID
	SellerID string // whose account it is; empty means DefaultSellerID

	AppKey string // PEM, the app's public key; empty means the one of DefaultAppKey
	Key    string // PEM, Alipay's private key; empty means the one of DefaultPublicKey

	// Certificates turns certificate mode on.
	Certificates *Certificates

	// AppURL is the app's own address, to which messages about transfers go;
	// empty means that the app subscribes to none.
	AppURL string

	BaseURL string           // of the pages, without a trailing slash; empty means the request's own host
	Now     func() time.Time // nil means time.Now
	Seed    uint64           // drives every random choice
	Client  *http.Client     // for notifications, redirects are never followed; nil means one with a 10 s timeout
}

// Certificates are PEM: what an app must name, and what answers are signed by.
type Certificates struct{ App, Root, Alipay string }

// Sim is the simulator. It may be used from many goroutines at once.
//
// One lock guards all state, and no call waits for anything while it holds it:
// each API call and each change is atomic, as a buyer and a merchant see them.
type Sim struct {
	appID, sellerID string
	appURL          string
	keys            keys
	baseURL         string
	now             func() time.Time
	client          *http.Client
	handler         http.Handler

	mu        sync.Mutex
	numbers   *rand.Rand // of numbers alone, so that faults do not change them
	luck      dial.Luck
	faults    Faults
	injected  []Fault
	offers    map[string]*offer    // precreated, by the code in their address
	trades    map[string]*trade    // by the merchant's number
	order     []*trade             // by creation
	lines     []line               // of the bills, by time
	moves     []move               // of transfers, by time
	transfers map[string]*transfer // by the merchant's number
	sent      []*transfer          // by creation
	agenda    dial.Agenda[func()]
	outbox    dial.Agenda[*delivery]
	wake      chan struct{} // closed and replaced when the outbox or the agenda has something new
}

// New makes a simulator, or says which key of cfg is unreadable. It starts
// nothing: see Run and Deliver.
func New(cfg Config) (*Sim, error) {
	s := &Sim{
		appID:     cmp.Or(cfg.AppID, DefaultAppID),
		sellerID:  cmp.Or(cfg.SellerID, DefaultSellerID),
		baseURL:   cfg.BaseURL,
		now:       cfg.Now,
		numbers:   rand.New(rand.NewPCG(cfg.Seed, 1)),
		luck:      dial.Luck{Rand: rand.New(rand.NewPCG(cfg.Seed, 2))},
		offers:    map[string]*offer{},
		trades:    map[string]*trade{},
		transfers: map[string]*transfer{},
		appURL:    cfg.AppURL,
		wake:      make(chan struct{}),
	}
	var err error
	if s.keys, err = readKeys(cfg); err != nil {
		return nil, fmt.Errorf("alipaysim: %w", err)
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
	return s, nil
}

// ServeHTTP serves the API at /gateway.do, the pages under /qr/, /app and
// /pay/, bills under /bill/ and the control API under /_sim/. A lost answer
// panics with http.ErrAbortHandler, which net/http turns into a cut connection.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Sim) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /gateway.do", s.serve)
	mux.HandleFunc("GET /gateway.do", s.arrive) // a buyer's browser
	mux.HandleFunc("GET /app", s.arrive)        // what the shop's app hands over
	mux.HandleFunc("GET /qr/{code}", s.scan)
	mux.HandleFunc("GET /pay/{number}", s.showPay)
	mux.HandleFunc("POST /pay/{number}", s.doPay)
	mux.HandleFunc("GET /bill/{date}", s.download)
	s.routeControl(mux)
	guard := http.NewCrossOriginProtection()
	guard.AddInsecureBypassPattern("POST /gateway.do") // shops post their signed forms from their own pages
	return guard.Handler(mux)
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

// number makes a number like Alipay's: the day and n more digits.
func (s *Sim) number(now time.Time, n int) string {
	b := []byte(now.In(beijing).Format("20060102"))
	for range n {
		b = append(b, byte('0'+s.numbers.IntN(10)))
	}
	return string(b)
}

// Run sends notifications as they fall due, on the real clock, until ctx ends.
// At most deliveryWorkers are under way at once, so one slow receiver holds up
// few others. It returns when all its workers have stopped.
func (s *Sim) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range deliveryWorkers {
		workers.Go(func() { s.deliverForever(ctx) })
	}
	workers.Wait()
}
