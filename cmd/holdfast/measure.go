package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// benchStock is the stock of each SKU of the first phase: more pieces than can
// be asked for.
const benchStock = 1 << 40

// maxBenchErrors is after how many requests without an answer a client gives up.
const maxBenchErrors = 10

// load is what the clients of one phase saw.
type load struct {
	accepted   map[string]int64 // pieces, by SKU
	refused    int64
	turnedAway int64
	unanswered int64
	times      []time.Duration // of the accepted
	elapsed    time.Duration
}

// contender is one preset while it is measured.
type contender struct {
	figures
	core        *holdfast.Holdfast
	place       placer
	stop        func()   // ends what place needs
	full, empty []string // SKUs with stock enough, and with none
	held, none  load     // of all turns
	batches     holdfast.Stats
}

func (b *benching) enter(ctx context.Context, preset, store string) (*contender, error) {
	c := &contender{figures: figures{Preset: preset, Store: store, Clients: b.clients, SKUs: b.skus, HTTP: b.http}, stop: func() {}}
	if b.skus > 1 {
		c.Spread = b.spread
	}
	var err error
	if c.core, err = holdfast.Open(ctx, store, holdfast.Options{Preset: preset}); err != nil {
		return nil, err
	}
	run := "bench-" + strings.ToLower(rand.Text()[:8]) // a store may see many runs
	c.full, c.empty = names(run+"-full", b.skus), names(run+"-empty", b.skus)
	err = stockUp(ctx, c.core, c.full, benchStock)
	if err == nil {
		err = stockUp(ctx, c.core, c.empty, 0)
	}
	if err == nil {
		c.place, c.stop, err = b.placer(ctx, c.core)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore(ctx, c.core))
	}
	return c, nil
}

// turn drives c for a part of the time: of the first phase, then of the second.
func (c *contender) turn(ctx context.Context, b *benching, n int, tick func()) {
	before := c.core.Stats()
	c.held.add(b.drive(ctx, c.place, c.full, n, b.inStock()/benchTurns, tick))
	after := c.core.Stats()
	c.batches.Batches += after.Batches - before.Batches
	c.batches.Entries += after.Entries - before.Entries
	c.none.add(b.drive(ctx, c.place, c.empty, n, b.soldOut()/benchTurns, tick))
}

// finish audits c and works out its figures.
func (c *contender) finish(ctx context.Context, h *host) error {
	c.Unanswered = c.held.unanswered + c.held.refused + c.none.unanswered
	c.TurnedAway = c.held.turnedAway + c.none.turnedAway
	if err := auditBench(ctx, c.core, c.full, c.held, &c.figures); err != nil {
		return err
	}
	if err := auditBench(ctx, c.core, c.empty, c.none, &c.figures); err != nil {
		return err
	}
	rep, err := h.verify(ctx, c.core)
	if err != nil {
		return err
	}
	if !rep.OK() {
		return fmt.Errorf("verify: %d problems, the first: %+v", rep.Count, rep.Problems[0])
	}
	if !c.ok() || len(c.held.times) == 0 {
		return nil
	}
	slices.Sort(c.held.times)
	c.Accepted = per(int64(len(c.held.times)), c.held.elapsed)
	c.Refused = per(c.none.refused, c.none.elapsed)
	c.P50, c.P99 = quantile(c.held.times, 0.5), quantile(c.held.times, 0.99)
	if n := c.batches.Batches; n > 0 {
		avg := tenth(float64(c.batches.Entries) / float64(n))
		c.BatchAvg = &avg
	}
	return nil
}

func (c *contender) close(ctx context.Context) error {
	c.stop()
	return closeStore(ctx, c.core)
}

func per(n int64, d time.Duration) *float64 {
	v := tenth(float64(n) / d.Seconds())
	return &v
}

func quantile(sorted []time.Duration, q float64) *float64 {
	v := milliseconds(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
	return &v
}

func names(prefix string, n int) []string {
	skus := make([]string, n)
	for i := range skus {
		skus[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return skus
}

func stockUp(ctx context.Context, core *holdfast.Holdfast, skus []string, stock int64) error {
	var items []holdfast.ItemInput
	for _, sku := range skus {
		items = append(items, holdfast.ItemInput{SKU: sku, Name: sku, Price: 100, Currency: "EUR", Stock: stock})
	}
	return core.PutItems(ctx, items, func() {})
}

// drive lets clients ask in a closed loop for as long as d. Their keys are
// fresh in every turn.
func (b *benching) drive(ctx context.Context, place placer, skus []string, turn int, d time.Duration, tick func()) load {
	var all load
	var mu sync.Mutex
	var asking sync.WaitGroup
	start := time.Now()
	for i := range b.clients {
		asking.Go(func() {
			first := func() {}
			if i == 0 {
				first = tick
			}
			one := ask(ctx, place, b.pick(skus, i), fmt.Sprintf("%d-%d", turn, i), start.Add(d), first)
			mu.Lock()
			defer mu.Unlock()
			all.add(one)
		})
	}
	asking.Wait()
	all.elapsed = time.Since(start)
	return all
}

// add puts what others saw to l.
func (l *load) add(o load) {
	if l.accepted == nil {
		l.accepted = map[string]int64{}
	}
	for sku, n := range o.accepted {
		l.accepted[sku] += n
	}
	l.refused += o.refused
	l.turnedAway += o.turnedAway
	l.unanswered += o.unanswered
	l.times = append(l.times, o.times...)
	l.elapsed += o.elapsed
}

// zipfSteepness is how much of the orders the first SKUs get.
const zipfSteepness = 1.1

// pick is what a client orders, one order after another.
func (b *benching) pick(skus []string, client int) func() string {
	if b.spread == spreadZipf && len(skus) > 1 {
		z := mathrand.NewZipf(mathrand.New(mathrand.NewPCG(uint64(client), 1)), zipfSteepness, 1, uint64(len(skus)-1))
		return func() string { return skus[z.Uint64()] }
	}
	n := client
	return func() string {
		n++
		return skus[n%len(skus)]
	}
}

// ask is one client.
func ask(ctx context.Context, place placer, pick func() string, key string, until time.Time, tick func()) load {
	l := load{accepted: map[string]int64{}}
	for n := 0; time.Now().Before(until) && ctx.Err() == nil && l.unanswered < maxBenchErrors; n++ {
		sku := pick()
		start := time.Now()
		switch place(ctx, fmt.Sprintf("%s-%s-%d-request", sku, key, n), sku) {
		case placeHeld:
			l.accepted[sku]++
			l.times = append(l.times, time.Since(start))
		case placeSoldOut:
			l.refused++
		case placeTurnedAway:
			l.turnedAway++
		default:
			l.unanswered++
		}
		tick()
	}
	return l
}

// auditBench recomputes from the postings and balances what became of the
// stock, and holds it against what the clients were told.
func auditBench(ctx context.Context, core *holdfast.Holdfast, skus []string, l load, f *figures) error {
	for _, sku := range skus {
		var received int64
		q := ledger.PostingQuery{Asset: flow.Pieces(sku)}
		for {
			page, err := core.Ledger().Postings(ctx, q)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, p := range page {
				if p.From == flow.Supplier {
					received += p.Amount
				}
				q.After = p.Seq
			}
		}
		stock, err := core.Ledger().Balances(ctx, ledger.BalanceQuery{Account: flow.Stock, Asset: flow.Pieces(sku)})
		if err != nil {
			return err
		}
		var held, available int64
		for _, b := range stock {
			held, available = held+b.Held, available+b.Available()
		}
		f.Oversold += max(0, held-received)
		f.Undersold += max(0, received-held-available)
		f.Unanswered += max(held-l.accepted[sku], l.accepted[sku]-held)
	}
	return nil
}
