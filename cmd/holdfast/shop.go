package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/flashsale"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/seal"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/web"
)

// A demo's times are short, so that it shows within a minute what takes a
// shop a day.
const (
	demoHold  = 3 * time.Second * demoPace // by the shop's clock
	demoPay   = 4 * time.Second * demoPace
	demoPoll  = time.Second * demoPace
	demoSweep = 200 * time.Millisecond // by ours
	demoWork  = 16                     // tasks at once

	deliverEvery = 20 * time.Millisecond // by ours
	deliverers   = 2                     // of each simulator
)

// catalogue is what is on sale.
var catalogue = []holdfast.ItemInput{
	{SKU: "tee-s", Name: "Tee, small", Names: map[string]string{"en": "Tee, small", "zh": "T恤 小号"}, Price: 1990, Currency: "CNY"},
	{SKU: "tee-m", Name: "Tee, medium", Names: map[string]string{"en": "Tee, medium", "zh": "T恤 中号"}, Price: 1990, Currency: "CNY"},
	{SKU: "tee-l", Name: "Tee, large", Names: map[string]string{"en": "Tee, large", "zh": "T恤 大号"}, Price: 2190, Currency: "CNY"},
}

// tryItem is there to play with when the sale is over.
const tryItem = "mug"

// shop is a whole shop in this process: the gateways' simulators, the store
// with its work, and the API in front, each talking to the next over HTTP.
type shop struct {
	core     *holdfast.Holdfast
	api, key string
	skus     []string
	clock    *paced // of the store and the gateways
	booths   []booth
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	failed   error // of a server that stopped by itself
}

// openShop opens everything, or nothing.
func openShop(ctx context.Context, d *demo) (*shop, error) {
	s := &shop{clock: newPaced(demoPace)}
	var live context.Context
	live, s.stop = context.WithCancel(ctx)
	l, err := listen(ctx, d.addr)
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	s.api = address(l)
	if err := s.start(ctx, live, d); err != nil {
		return nil, errors.Join(err, l.Close(), s.close(ctx))
	}
	api := faces(s.core, httpapi.Options{Version: version().Version}, web.Options{URL: s.api, Shop: true, Admin: true, Sandboxes: s.sandboxes()})
	s.serve(live, l, httpapi.Server(api, slog.New(slog.DiscardHandler)), api.Drain)
	return s, nil
}

// sandboxes are the simulators' pages for people.
func (s *shop) sandboxes() map[string]string {
	all := map[string]string{}
	for _, b := range s.booths {
		all[b.name] = b.url + "/_sim/"
	}
	return all
}

func (s *shop) start(ctx, live context.Context, d *demo) error {
	gateways, err := s.putUp(live, d)
	if err != nil {
		return err
	}
	preset := ""
	if d.redis != "" {
		preset = "queued"
	}
	key, err := seal.New("demo")
	if err != nil {
		return err
	}
	sealer, err := seal.Parse(key)
	if err != nil {
		return err
	}
	s.core, err = holdfast.Open(ctx, d.db, holdfast.Options{Preset: preset, Redis: d.redis, Sealer: sealer, PrivateEndpoints: true,
		Gateways: gateways, HoldFor: demoHold, PayFor: demoPay, Poll: demoPoll, Sweep: demoSweep, Workers: demoWork, Clock: s.clock.now,
	})
	if err != nil {
		return err
	}
	health, err := s.core.Health(ctx)
	if err != nil {
		return err
	}
	if health.Entries > 0 {
		return fmt.Errorf("demo: %s is not empty: it has %d entries, and the audit could not tell them apart", d.db, health.Entries)
	}
	if err := s.fill(ctx, d.stock); err != nil {
		return err
	}
	if s.key, _, err = s.core.CreateKey(ctx, holdfast.Key{}, "demo", []string{holdfast.ScopeAdmin}, 0); err != nil {
		return err
	}
	for _, b := range s.booths {
		for range deliverers {
			s.running.Go(func() { s.deliver(live, b.sim) })
		}
	}
	return nil
}

// putUp serves the simulators of the demo's gateways.
func (s *shop) putUp(live context.Context, d *demo) (map[string]gateway.Gateway, error) {
	gateways := map[string]gateway.Gateway{}
	for _, name := range boothNames(d.gateway) {
		l, err := listen(live, "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		b, err := booths[name](stage{
			url: address(l), notify: s.api + "/webhooks/" + name, now: s.clock.now, seed: d.seed, faults: d.faults == "on",
		})
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		s.booths, gateways[name] = append(s.booths, b), b.gateway
		s.serve(live, l, simServer(b.sim), func() {})
	}
	return gateways, nil
}

// deliver lets a simulator send what is due by the shop's clock, until the end.
func (s *shop) deliver(live context.Context, sim sender) {
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	for {
		sim.Deliver(live)
		select {
		case <-tick.C:
		case <-live.Done():
			return
		}
	}
}

func (s *shop) serve(live context.Context, l net.Listener, srv *http.Server, drain func()) {
	s.running.Go(func() {
		err := serveHTTP(live, l, srv, drain)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = errors.Join(s.failed, err)
	})
}

// fill spreads the stock over the catalogue.
func (s *shop) fill(ctx context.Context, stock int) error {
	items := make([]holdfast.ItemInput, 0, len(catalogue))
	for i, in := range catalogue {
		in.Stock = int64((stock + len(catalogue) - 1 - i) / len(catalogue))
		if in.Stock == 0 {
			break
		}
		s.skus = append(s.skus, in.SKU)
		items = append(items, in)
	}
	return s.core.PutItems(ctx, items, func() {})
}

// reopen puts something on sale that people have the time to pay for: now, and
// in a little while.
func (s *shop) reopen(ctx context.Context) error {
	s.clock.set(1)
	const hold = 15 * time.Minute
	if err := s.core.PutItems(ctx, []holdfast.ItemInput{
		{SKU: tryItem, Name: "Mug", Names: map[string]string{"en": "Mug", "zh": "马克杯"}, Price: 900, Currency: "CNY", HoldFor: hold, Stock: 100},
		{SKU: "seat", Name: "Front row seat", Names: map[string]string{"en": "Front row seat", "zh": "前排座位"}, Price: 28000, Currency: "CNY", HoldFor: hold, Stock: 5},
		{SKU: "print", Name: "Signed print", Names: map[string]string{"en": "Signed print", "zh": "签名版画"}, Price: 12000, Currency: "CNY", HoldFor: hold, Stock: 20},
	}, func() {}); err != nil {
		return err
	}
	now := s.clock.now()
	_, err := s.core.PutSale(ctx, holdfast.Key{}, holdfast.SaleInput{
		SKU: "print", OpensAt: now.Add(2 * time.Minute), ClosesAt: now.Add(time.Hour), Price: 6000, PerCustomer: 2,
	})
	return err
}

// ways are those that buyers have: the usual one of each gateway, or all of the
// only one.
func (s *shop) ways() (ways []flashsale.Way) {
	if len(s.booths) == 1 {
		return s.booths[0].ways
	}
	for _, b := range s.booths {
		ways = append(ways, b.ways[0])
	}
	return ways
}

// settle waits until nothing is under way. What still is after settleFor, the
// audit finds.
func (s *shop) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		rest, err := audit.AtRest(ctx, s.core.Ledger())
		if err != nil && ctx.Err() == nil {
			return err
		}
		if rest && !s.announcing() {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// announcing says that a gateway has something to send, now or later.
func (s *shop) announcing() bool {
	return slices.ContainsFunc(s.booths, func(b booth) bool {
		_, more := b.sim.NextDelivery()
		return more
	})
}

func (s *shop) audit(ctx context.Context, crowd []flashsale.Buyer) (audit.Verdict, error) {
	willing := audit.Willing{}
	for _, b := range crowd {
		if b.Willing() {
			willing[b.SKU] = append(willing[b.SKU], b.ID)
		}
	}
	books := audit.Books{}
	for _, b := range s.booths {
		books[b.name] = b.charges()
	}
	return audit.Check(ctx, s.core.Ledger(), books, willing)
}

// close ends everything, from the outside in.
func (s *shop) close(ctx context.Context) error {
	s.stop()
	s.running.Wait()
	if s.core != nil {
		s.failed = errors.Join(s.failed, closeStore(ctx, s.core))
	}
	return s.failed
}
