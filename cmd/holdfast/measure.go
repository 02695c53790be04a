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

func (h *host) measure(ctx context.Context, b *benching, preset, store string) (figures, error) {
	f := figures{Preset: preset, Store: store, Clients: b.clients, SKUs: b.skus, HTTP: b.http}
	if b.skus > 1 {
		f.Spread = b.spread
	}
	core, err := holdfast.Open(ctx, store, holdfast.Options{Preset: preset})
	if err != nil {
		return f, err
	}
	err = h.measureOpen(ctx, b, core, &f)
	return f, errors.Join(err, closeStore(ctx, core))
}

func (h *host) measureOpen(ctx context.Context, b *benching, core *holdfast.Holdfast, f *figures) error {
	run := "bench-" + strings.ToLower(rand.Text()[:8]) // a store may see many runs
	full, empty := names(run+"-full", b.skus), names(run+"-empty", b.skus)
	if err := stockUp(ctx, core, full, benchStock); err != nil {
		return err
	}
	if err := stockUp(ctx, core, empty, 0); err != nil {
		return err
	}
	first := time.Duration(b.seconds * float64(time.Second))
	place, stop, err := b.placer(ctx, core)
	if err != nil {
		return err
	}
	p := h.progress(f.Preset, (first + b.soldOut()).Milliseconds())
	before := core.Stats()
	held := b.drive(ctx, place, full, first, p, 0)
	batched := core.Stats()
	none := b.drive(ctx, place, empty, b.soldOut(), p, first)
	p.end()
	stop()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f.Unanswered = held.unanswered + held.refused + none.unanswered
	f.TurnedAway = held.turnedAway + none.turnedAway
	if err := auditBench(ctx, core, full, held, f); err != nil {
		return err
	}
	if err := auditBench(ctx, core, empty, none, f); err != nil {
		return err
	}
	rep, err := h.verify(ctx, core)
	if err != nil {
		return err
	}
	if !rep.OK() {
		return fmt.Errorf("verify: %d problems, the first: %+v", rep.Count, rep.Problems[0])
	}
	if !f.ok() || len(held.times) == 0 {
		return nil
	}
	slices.Sort(held.times)
	f.Accepted = per(int64(len(held.times)), held.elapsed)
	f.Refused = per(none.refused, none.elapsed)
	f.P50, f.P99 = quantile(held.times, 0.5), quantile(held.times, 0.99)
	if n := batched.Batches - before.Batches; n > 0 {
		avg := tenth(float64(batched.Entries-before.Entries) / float64(n))
		f.BatchAvg = &avg
	}
	return nil
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

// drive lets clients ask in a closed loop for as long as d.
func (b *benching) drive(ctx context.Context, place placer, skus []string, d time.Duration, p *bar, before time.Duration) load {
	all := load{accepted: map[string]int64{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	start := time.Now()
	for i := range b.clients {
		asking.Go(func() {
			one := ask(ctx, place, b.pick(skus, i), i, start.Add(d), func() {
				if i == 0 {
					done := before + time.Since(start)
					p.set(done.Milliseconds(), max(done, before+d).Milliseconds())
				}
			})
			mu.Lock()
			defer mu.Unlock()
			for sku, n := range one.accepted {
				all.accepted[sku] += n
			}
			all.refused += one.refused
			all.turnedAway += one.turnedAway
			all.unanswered += one.unanswered
			all.times = append(all.times, one.times...)
		})
	}
	asking.Wait()
	all.elapsed = time.Since(start)
	return all
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
func ask(ctx context.Context, place placer, pick func() string, client int, until time.Time, tick func()) load {
	l := load{accepted: map[string]int64{}}
	for n := 0; time.Now().Before(until) && ctx.Err() == nil && l.unanswered < maxBenchErrors; n++ {
		sku := pick()
		start := time.Now()
		switch place(ctx, fmt.Sprintf("%s-%d-%d-request", sku, client, n), sku) {
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
