package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/flashsale"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// troubled is a gateway on a bad day.
var troubled = stripesim.Faults{
	DelayNotice: 300 * time.Millisecond, LoseNotice: 0.1, DuplicateNotice: 0.2, ReorderNotice: 0.1, ForgeNotice: 0.1, TwoEvents: 0.1,
	LostAnswer: 0.05, Stored500: 0.03, Unavailable: 0.05, RateLimited: 0.02, KeyInUse: 0.02,
	SlowAnswer: 100 * time.Millisecond, PaidBeforeClose: 0.3,
}

// A demo's times are short, so that it shows within a minute what takes a
// shop a day.
const (
	demoHold  = 3 * time.Second
	demoPay   = 5 * time.Second
	demoPoll  = time.Second
	demoSweep = 200 * time.Millisecond
	demoWork  = 16 // tasks at once
)

// catalogue is what is on sale.
var catalogue = []holdfast.ItemInput{
	{SKU: "tee-s", Name: "Tee, small", Names: map[string]string{"en": "Tee, small", "zh": "T恤 小号"}, Price: 1990, Currency: "EUR"},
	{SKU: "tee-m", Name: "Tee, medium", Names: map[string]string{"en": "Tee, medium", "zh": "T恤 中号"}, Price: 1990, Currency: "EUR"},
	{SKU: "tee-l", Name: "Tee, large", Names: map[string]string{"en": "Tee, large", "zh": "T恤 大号"}, Price: 2190, Currency: "EUR"},
}

// tryItem is there to play with when the sale is over.
const tryItem = "mug"

// shop is a whole shop in this process: the gateway's simulator, the store
// with its work, and the API in front, each talking to the next over HTTP.
type shop struct {
	core     *holdfast.Holdfast
	api, key string
	skus     []string
	sim      simulator
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	failed   error // of a server that stopped by itself
}

type simulator struct {
	*stripesim.Sim
	url string
}

// openShop opens everything, or nothing.
func openShop(ctx context.Context, d *demo) (*shop, error) {
	s := &shop{}
	var live context.Context
	live, s.stop = context.WithCancel(ctx)
	if err := s.start(ctx, live, d); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *shop) start(ctx, live context.Context, d *demo) error {
	gateways, err := s.startSim(live, d)
	if err != nil {
		return err
	}
	preset := ""
	if d.redis != "" {
		preset = "queued"
	}
	s.core, err = holdfast.Open(ctx, d.db, holdfast.Options{Preset: preset, Redis: d.redis,
		Gateways: gateways, HoldFor: demoHold, PayFor: demoPay, Poll: demoPoll, Sweep: demoSweep, Workers: demoWork,
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
	if s.key, _, err = s.core.CreateKey(ctx, "demo", []string{holdfast.ScopeAdmin}, 0); err != nil {
		return err
	}
	l, err := listen(ctx, d.addr)
	if err != nil {
		return err
	}
	s.api = address(l)
	s.sim.SetWebhookURL(s.api + "/webhooks/stripe")
	api := httpapi.New(s.core, httpapi.Options{Version: version().Version})
	s.serve(live, l, httpapi.Server(api, slog.New(slog.DiscardHandler)), api.Drain)
	s.running.Go(func() { s.sim.Run(live) })
	return nil
}

func (s *shop) startSim(live context.Context, d *demo) (map[string]gateway.Gateway, error) {
	l, err := listen(live, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.sim = simulator{stripesim.New(stripesim.Config{Seed: d.seed}), address(l)}
	if d.faults == "on" {
		s.sim.SetFaults(troubled)
	}
	s.serve(live, l, simServer(s.sim.Sim), func() {})
	g, err := stripe.New(stripe.Options{
		SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: s.sim.url,
	})
	if err != nil {
		return nil, err
	}
	return map[string]gateway.Gateway{"stripe": g}, nil
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

// reopen puts something on sale that people have the time to pay for.
func (s *shop) reopen(ctx context.Context) error {
	return s.core.PutItems(ctx, []holdfast.ItemInput{{
		SKU: tryItem, Name: "Mug", Names: map[string]string{"en": "Mug", "zh": "马克杯"}, Price: 900, Currency: "EUR",
		HoldFor: 15 * time.Minute, Stock: 100,
	}}, func() {})
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
		if _, notices := s.sim.NextDelivery(); rest && !notices {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *shop) audit(ctx context.Context, crowd []flashsale.Buyer) (audit.Verdict, error) {
	willing := audit.Willing{}
	for _, b := range crowd {
		if b.Willing() {
			willing[b.SKU] = append(willing[b.SKU], b.ID)
		}
	}
	return audit.Check(ctx, s.core.Ledger(), s.sim.Books(), willing)
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
