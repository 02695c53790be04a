package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-pay/holdfast"
)

// Bounds of a bench.
const (
	maxClients = 4096
	maxSKUs    = 100_000
	maxSeed    = 10_000_000 // orders
	maxRate    = 1_000_000  // requests a second
	maxSeconds = 3600
	benchTurns = 5 // in which each contender is measured
)

// benching is how a bench was asked to run. Every preset is measured on every
// store, with every number of clients, SKUs and orders placed before.
type benching struct {
	stores, presets      []string // no store = a new temporary one for each contender
	clients, skus, seeds []int
	bulk                 int // orders of one request
	seconds, rate        float64
	spread               string // of the orders over the SKUs
	payouts              bool   // instead of orders
	http, markdown       bool
	redis                string   // URL; "" = none
	charts               []string // files
	streams              int      // instead of orders; 0 = orders
}

// Spreads of orders over SKUs.
const (
	spreadEven = "even"
	spreadZipf = "zipf" // a few SKUs get most of the orders
)

const benchLong = `Measure the product's own path to a held order: one order of one piece under a
random Idempotency-Key, with its record, its hold and its event, committed.
accepted_per_s is from the first phase, where there is stock enough;
refused_per_s from a second phase of a fifth of the time, on SKUs that are sold
out. Each client asks again as soon as it was answered; with --rate, requests
start at random moments (Poisson) whatever the answers do, and take their time
from when they were due. Then --clients is how many may be under way, and one
that is due when so many are counts as not started.

--store, --preset, --clients, --skus and --seed may name several, and everything
is measured with everything, in turns: whatever else the machine does meanwhile
meets all of them alike. A turn that is not counted comes first.

The preset "textbook" is none: it is what one would write by hand, one
transaction for each order, BEGIN, SELECT FOR UPDATE, INSERT the order under its
key, UPDATE, COMMIT, prepared, in tables of its own, with the best of 8, 16 and
64 connections (SQLite: one). It knows no other records, events, expiry or proof.

With --payouts, each request asks for a payout of one cent instead, to a receiver
of its own, out of one account (--skus: several): its record, its task, its hold
and its event. It is answered when the money is held; the gateway is not called.

With --http they go through the HTTP API of a server in this process: API key,
Idempotency-Key, strict reading, and 201 after the durable commit. With --bulk N
a request places N orders.

In the same turns it measures floors to compare with: how often this disk makes a
small write durable, how many requests an empty JSON handler of the same server
answers to the same clients, and with --redis how many calls of a small script
that Redis answers, one for each request. ratios divides by them and by the textbook.

Figures are printed only if nothing was oversold, undersold or left unanswered,
as recomputed from the journal.`

func (h *host) benchCommand() *cobra.Command {
	b := &benching{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many orders a second are held and refused, and audit them",
		Long:  benchLong,
		Args:  cobra.NoArgs,
	}
	f := c.Flags()
	f.StringArrayVar(&b.stores, "store", nil, "the `store`s to use and to keep: sqlite:PATH, mysql://..., postgres://...; sqlite: alone, or none = a temporary SQLite for each")
	f.StringSliceVar(&b.presets, "preset", []string{"batched", "conditional"},
		"what to measure: batched, conditional, optimistic, pessimistic, lockrow, gated, queued, textbook")
	f.IntSliceVar(&b.clients, "clients", []int{64}, "how many ask at once")
	f.Float64Var(&b.seconds, "seconds", 5, "how long the first phase takes")
	f.Float64Var(&b.rate, "rate", 0, "how many requests start each second, whatever the answers do; 0 = each client waits for its answer")
	f.IntSliceVar(&b.skus, "skus", []int{1}, "over how many SKUs the orders are spread")
	f.StringVar(&b.spread, "spread", spreadEven, "how the orders are spread over the SKUs: even or zipf")
	f.IntSliceVar(&b.seeds, "seed", []int{0}, "how many orders are placed before")
	f.IntVar(&b.bulk, "bulk", 1, "how many orders one request places")
	f.BoolVar(&b.payouts, "payouts", false, "ask for payouts out of accounts instead of orders of SKUs")
	f.BoolVar(&b.http, "http", false, "go through the HTTP API")
	f.StringVar(&b.redis, "redis", "", "a Redis, redis://HOST:PORT, in which gated and queued count and queue")
	f.IntVar(&b.streams, "streams", 0, "open so many streams of a stock on one node instead, change it, and measure memory and delay; the other flags say nothing then")
	f.BoolVar(&b.markdown, "markdown", false, "print the table in Markdown")
	f.StringArrayVar(&b.charts, "chart", nil, "draw accepted/s and p99 into this `file.svg`, or file.html with the table and the machine")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := b.check(); err != nil {
			return err
		}
		if b.streams > 0 {
			return h.benchStreams(c.Context(), b.streams)
		}
		return h.bench(c.Context(), b)
	}
	return c
}

// check refuses what can't be meant.
func (b *benching) check() error {
	if b.spread != spreadEven && b.spread != spreadZipf {
		return usagef("--spread is neither %s nor %s", spreadEven, spreadZipf)
	}
	for _, file := range b.charts {
		if ext := filepath.Ext(file); ext != ".svg" && ext != ".html" {
			return usagef("--chart writes .svg and .html files")
		}
	}
	for _, r := range []struct {
		flag       string
		values     []int
		least, max int
	}{
		{"clients", b.clients, 1, maxClients},
		{"skus", b.skus, 1, maxSKUs},
		{"seed", b.seeds, 0, maxSeed},
		{"streams", []int{b.streams}, 0, maxBenchStreams},
		{"bulk", []int{b.bulk}, 1, holdfast.MaxBulk},
	} {
		if len(r.values) == 0 || slices.Min(r.values) < r.least || slices.Max(r.values) > r.max {
			return usagef("--%s is not within %d to %d", r.flag, r.least, r.max)
		}
	}
	if b.rate < 0 || b.rate > maxRate {
		return usagef("--rate is not within 0 to %d", maxRate)
	}
	if b.seconds <= 0 || b.seconds > maxSeconds {
		return usagef("--seconds is not within 0 to %d", maxSeconds)
	}
	if b.payouts && (b.bulk > 1 || slices.Max(b.seeds) > 0) {
		return usagef("--payouts takes no --bulk and no --seed")
	}
	if slices.Contains(b.presets, textbookPreset) && (b.http || b.bulk > 1) {
		return usagef("the textbook takes no --http and no --bulk")
	}
	return nil
}

func (h *host) bench(ctx context.Context, b *benching) error {
	all, floors, err := h.contest(ctx, b)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	compare(all, floors)
	var broken error
	for _, f := range all {
		if !f.ok() {
			broken = errors.Join(broken, fmt.Errorf("bench %s: %d oversold, %d undersold, %d unanswered", f.Preset, f.Oversold, f.Undersold, f.Unanswered))
		}
		if !h.json {
			continue
		}
		if err := json.NewEncoder(h.out).Encode(f); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	if !h.json {
		showBench(h.out, b, all, floors)
	}
	for _, file := range b.charts {
		drawn := chart(all)
		if filepath.Ext(file) == ".html" {
			drawn = page(all, floors)
		}
		broken = errors.Join(broken, os.WriteFile(file, drawn, 0o644))
	}
	return broken
}

// warmUp is how long a contender is driven before it is measured: connections
// are made and statements prepared.
func (b *benching) warmUp() time.Duration { return b.inStock() / benchTurns }

// inStock is how long the first phase of a contender takes in all.
func (b *benching) inStock() time.Duration { return time.Duration(b.seconds * float64(time.Second)) }

// soldOut is how long the second phase takes.
func (b *benching) soldOut() time.Duration { return max(b.inStock()/5, 100*time.Millisecond) }
