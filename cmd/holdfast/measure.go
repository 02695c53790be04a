package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// benchStock is the stock of each SKU of the first phase: more pieces than can
// be asked for.
const benchStock = 1 << 40

// maxEmpty is how many SKUs are sold out in the second phase, at most.
const maxEmpty = 1000

// seller is what the clients of a bench buy from.
type seller interface {
	// placers are the ways of so many clients to place orders; end what they need
	// with stop.
	placers(ctx context.Context, b *benching, clients int) (all []placer, stop func(), err error)
	// levels say what became of the pieces of the SKUs of this run, from the books.
	levels(ctx context.Context) (map[string]level, error)
	// counts since it was opened; all 0 where there are none.
	counts() counts
	// verify proves the books, if it has any.
	verify(ctx context.Context, h *host) error
	close(ctx context.Context) error
	// server is the product and version of the database.
	server() string
}

// level is what became of the pieces of a SKU.
type level struct{ received, held, available int64 }

// counts are of a seller's transactions.
type counts struct{ batches, entries, decisions, transactions int64 }

func (c *counts) add(after, before counts) {
	c.batches += after.batches - before.batches
	c.entries += after.entries - before.entries
	c.decisions += after.decisions - before.decisions
	c.transactions += after.transactions - before.transactions
}

// contender is one combination while it is measured.
type contender struct {
	heat
	figures
	from        seller
	askers      []placer
	stop        func()   // ends what askers need
	full, empty []string // SKUs with stock enough, and with none
	placed      load     // before measuring
	held, none  load     // of all turns
	counted     counts   // in the first phase
	cpu         time.Duration
}

func (b *benching) enter(ctx context.Context, t heat) (*contender, error) {
	c := &contender{heat: t, stop: func() {}, figures: figures{Preset: t.preset, Store: redacted(t.store), Clients: t.clients,
		SKUs: t.skus, Seed: t.seed, Pool: t.pool, Redis: t.redis != "", HTTP: b.http, Payouts: b.payouts, Rate: b.rate}}
	if t.skus > 1 {
		c.Spread = b.spread
	}
	if b.bulk > 1 {
		c.Bulk = b.bulk
	}
	run := "bench-" + strings.ToLower(rand.Text()[:8]) // a store may see many runs
	c.full, c.empty = names(run+"-full", t.skus), names(run+"-empty", min(t.skus, maxEmpty))
	var err error
	c.from, c.placed, err = open(ctx, t, c.full, c.empty)
	if err != nil {
		return nil, err
	}
	c.Server = c.from.server()
	if c.askers, c.stop, err = c.from.placers(ctx, b, t.clients); err != nil {
		return nil, errors.Join(err, c.from.close(ctx))
	}
	return c, nil
}

// open opens the seller of a heat with its stock and the orders placed before.
func open(ctx context.Context, t heat, full, empty []string) (seller, load, error) {
	if t.preset == textbookPreset {
		s, err := openTextbook(ctx, t, full, empty)
		return s, load{}, err
	}
	return openProduct(ctx, t, full, empty)
}

// turn drives c for a part of the time: of the first phase, then of the second.
func (c *contender) turn(ctx context.Context, b *benching, tick func()) {
	before, used := c.from.counts(), processTime()
	c.held.add(b.drive(ctx, c.askers, c.full, b.inStock()/benchTurns, tick))
	c.cpu += processTime() - used
	c.counted.add(c.from.counts(), before)
	c.none.add(b.drive(ctx, c.askers, c.empty, b.soldOut()/benchTurns, tick))
}

// finish audits c and works out its figures. A store is verified once.
func (c *contender) finish(ctx context.Context, h *host, verified map[string]bool) error {
	c.Unanswered = c.placed.unanswered + c.placed.refused + c.held.unanswered + c.held.refused + c.none.unanswered
	c.TurnedAway, c.NotStarted = c.held.turnedAway+c.none.turnedAway, c.held.notStarted
	levels, err := c.from.levels(ctx)
	if err != nil {
		return err
	}
	c.placed.add(load{accepted: c.held.accepted})
	c.audit(levels, c.full, c.placed.accepted)
	c.audit(levels, c.empty, c.none.accepted)
	if !verified[c.store] {
		if err := c.from.verify(ctx, h); err != nil {
			return err
		}
		verified[c.store] = c.preset != textbookPreset
	}
	if !c.ok() || len(c.held.times) == 0 {
		return nil
	}
	slices.Sort(c.held.times)
	c.Accepted = per(c.held.orders, c.held.elapsed)
	c.Refused = per(c.none.refused, c.none.elapsed)
	c.P50, c.P99 = quantile(c.held.times, 0.5), quantile(c.held.times, 0.99)
	n := c.counted
	c.BatchAvg, c.TriesAvg = quotient(n.entries, n.batches), quotient(n.transactions, n.decisions)
	if c.preset != textbookPreset {
		c.SQLTx = quotient(n.transactions, c.held.orders)
	}
	c.CPU = quotient(c.cpu.Microseconds(), c.held.orders)
	return nil
}

// audit holds what the books say became of the stock against what the clients
// were told.
func (c *contender) audit(levels map[string]level, skus []string, told map[string]int64) {
	for _, sku := range skus {
		v := levels[sku]
		c.Oversold += max(0, v.held-v.received)
		c.Undersold += max(0, v.received-v.held-v.available)
		c.Unanswered += max(v.held-told[sku], told[sku]-v.held)
	}
}

func (c *contender) close(ctx context.Context) error {
	c.stop()
	return c.from.close(ctx)
}

func per(n int64, d time.Duration) *float64 {
	v := tenth(float64(n) / d.Seconds())
	return &v
}

func quantile(sorted []time.Duration, q float64) *float64 {
	v := milliseconds(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
	return &v
}

// quotient is nil where there is nothing to divide by.
func quotient(n, by int64) *float64 {
	if by == 0 {
		return nil
	}
	v := thousandth(float64(n) / float64(by))
	return &v
}

func names(prefix string, n int) []string {
	skus := make([]string, n)
	for i := range skus {
		skus[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return skus
}
