// Package wechatpaysim is a stateful simulator of WeChat Pay's APIv3 on the
// wire: a merchant's real client can be pointed at it, buyers can pay on its
// pages, and it sends signed and encrypted notifications. WeChat Pay has no
// sandbox of its own. It is written from the published rules alone and shares
// no code with the adapter that is tested against it.
//
// What it knows: orders by native, jsapi, h5 and app, closing, refunds,
// transfers that their receivers confirm, notifications with retries, platform certificates and their replacement, and
// trade bills. What it does not know it refuses, fields included. It serves
// the one merchant whose keys are in this package; they open nothing else.
// State is in memory.
//
// Everything random comes from Config.Seed and everything timed from
// Config.Now: the same seed, clock and calls give the same numbers, choices and
// faults. Only SlowAnswer and Run wait on the real clock.
package wechatpaysim

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

// Config says how a Sim behaves. The zero value is usable.
type Config struct {
	BaseURL string           // of the pages and bills, without a trailing slash; empty means the request's own host
	Now     func() time.Time // nil means time.Now
	Seed    uint64           // drives every random choice
	ByCert  bool             // messages for which no key is asked are signed by certificate and not by the public key
	Client  *http.Client     // for notifications, redirects are never followed; nil means one with a 5 s timeout
}

// Sim is the simulator. It may be used from many goroutines at once.
//
// One lock guards all state, and no call waits for anything while it holds it:
// each API call and each change is atomic, as a buyer and a merchant see them.
type Sim struct {
	baseURL string
	now     func() time.Time
	client  *http.Client
	handler http.Handler
	keys    keys
	byCert  bool

	mu        sync.Mutex
	rotated   bool       // the next certificate has taken over
	ids       *rand.Rand // of numbers alone, so that faults do not change them
	luck      dial.Luck
	faults    Faults
	injected  []Fault
	orders    map[string]*order // by out_trade_no
	booked    []*order          // by creation
	refunds   map[string]*refund
	transfers map[string]*transfer // by out_bill_no
	sent      []*transfer          // by creation
	moves     []move               // of transfers, by time
	bills     map[string]string    // CSV by token
	fooled    int                  // forged notifications and probes that were acknowledged
	agenda    dial.Agenda[func()]
	outbox    dial.Agenda[*delivery]
	wake      chan struct{} // closed and replaced when the outbox or the agenda has something new
}

// New makes a simulator. It starts nothing: see Run and Deliver.
func New(cfg Config) *Sim {
	s := &Sim{
		baseURL:   cfg.BaseURL,
		now:       cfg.Now,
		keys:      loadKeys(),
		byCert:    cfg.ByCert,
		ids:       rand.New(rand.NewPCG(cfg.Seed, 1)),
		luck:      dial.Luck{Rand: rand.New(rand.NewPCG(cfg.Seed, 2))},
		orders:    map[string]*order{},
		refunds:   map[string]*refund{},
		transfers: map[string]*transfer{},
		bills:     map[string]string{},
		wake:      make(chan struct{}),
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

// ServeHTTP serves the API under /v3/, the pay pages under /pay/ and
// /cgi-bin/, the receivers' under /transfer/, and the control API under /_sim/. A lost answer panics with
// http.ErrAbortHandler, which net/http turns into a cut connection.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

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

const (
	digits  = "0123456789"
	hexes   = "0123456789ABCDEF"
	letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// id makes a name of n characters out of those given.
func (s *Sim) id(n int, of string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[s.ids.IntN(len(of))]
	}
	return string(b)
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

// beijing is the offset in which WeChat Pay writes times and counts days.
var beijing = time.FixedZone("", 8*60*60)

func stamp(t time.Time) string { return t.In(beijing).Format(time.RFC3339) }
