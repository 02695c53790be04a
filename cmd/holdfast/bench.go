package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

// Bounds of a bench.
const (
	maxClients = 4096
	maxSKUs    = 1000
	maxSeconds = 3600
	benchTurns = 5 // in which each preset is measured
)

// benching is how a bench was asked to run.
type benching struct {
	store         string // "" = a new temporary one for each preset
	presets       []string
	clients, skus int
	seconds       float64
	spread        string // of the orders over the SKUs
	http          bool
	chart         string // file; "" = none
}

// Spreads of orders over SKUs.
const (
	spreadEven = "even"
	spreadZipf = "zipf" // a few SKUs get most of the orders
)

func (h *host) benchCommand() *cobra.Command {
	b := &benching{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many orders a second are held and refused, and audit them",
		Long: `Measure the product's own path to a held order: one order of one piece, with its
record, its hold and its event, committed. Each client asks again as soon as it
was answered. accepted_per_s is from the first phase, where there is stock
enough; refused_per_s from a second phase of a fifth of the time, on SKUs that
are sold out. The presets take turns, so that whatever else the machine does
meanwhile meets all of them alike.

With --http the same goes through the HTTP API of a server in this process: API
key, Idempotency-Key, strict reading, and 201 after the durable commit.

In the same run it measures floors to compare with: how often this disk makes a
small write durable, and how many requests an empty JSON handler of the same
server answers from the same clients. ratios divides accepted_per_s by them.

The figures are printed only if nothing was oversold, undersold or left
unanswered, as recomputed from the journal.`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVar(&b.store, "store", "", "the `store` to use and to keep; none = a temporary one for each preset")
	f.StringSliceVar(&b.presets, "preset", []string{"batched", "conditional"}, "what to measure: batched, conditional, optimistic, pessimistic, gated, queued")
	f.IntVar(&b.clients, "clients", 64, "how many ask at once")
	f.Float64Var(&b.seconds, "seconds", 5, "how long the first phase takes")
	f.IntVar(&b.skus, "skus", 1, "over how many SKUs the orders are spread")
	f.StringVar(&b.spread, "spread", spreadEven, "how the orders are spread over the SKUs: even or zipf")
	f.BoolVar(&b.http, "http", false, "go through the HTTP API")
	f.StringVar(&b.chart, "chart", "", "draw accepted/s and p99 by preset into this `file.svg`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if b.spread != spreadEven && b.spread != spreadZipf {
			return usagef("--spread is neither %s nor %s", spreadEven, spreadZipf)
		}
		if b.chart != "" && filepath.Ext(b.chart) != ".svg" {
			return usagef("--chart writes .svg files")
		}
		if b.clients < 1 || b.clients > maxClients {
			return usagef("--clients is not within 1 to %d", maxClients)
		}
		if b.skus < 1 || b.skus > maxSKUs {
			return usagef("--skus is not within 1 to %d", maxSKUs)
		}
		if b.seconds <= 0 || b.seconds > maxSeconds {
			return usagef("--seconds is not within 0 to %d", maxSeconds)
		}
		return h.bench(c.Context(), b)
	}
	return c
}

// figures is one preset's line. The figures are left out when the last three
// are not all zero: a wrong answer is not fast.
type figures struct {
	Preset     string   `json:"preset"`
	Store      string   `json:"store"`
	Clients    int      `json:"clients"`
	SKUs       int      `json:"skus"`
	HTTP       bool     `json:"http,omitempty"`
	Spread     string   `json:"spread,omitempty"`
	Accepted   *float64 `json:"accepted_per_s,omitempty"`
	Refused    *float64 `json:"refused_per_s,omitempty"`
	P50        *float64 `json:"p50_ms,omitempty"` // of the accepted
	P99        *float64 `json:"p99_ms,omitempty"`
	BatchAvg   *float64 `json:"batch_avg,omitempty"`   // entries of one commit
	Ratios     *ratios  `json:"ratios,omitempty"`      // accepted_per_s, divided by the floors
	TurnedAway int64    `json:"turned_away,omitempty"` // told to come back, and not counted as answered
	Oversold   int64    `json:"oversold"`
	Undersold  int64    `json:"undersold"`
	Unanswered int64    `json:"unanswered"` // requests whose outcome the caller never learned, or learned wrongly
}

func (f figures) ok() bool { return f.Oversold|f.Undersold|f.Unanswered == 0 }

func (h *host) bench(ctx context.Context, b *benching) error {
	floors, err := h.floors(ctx, b)
	if err != nil {
		return fmt.Errorf("bench: floors: %w", err)
	}
	all, err := h.contest(ctx, b)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var broken error
	for i := range all {
		f := &all[i]
		f.compare(floors)
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
		h.showBench(all, floors)
	}
	if b.chart != "" {
		broken = errors.Join(broken, os.WriteFile(b.chart, chart(all), 0o644))
	}
	return broken
}

// contest measures all presets, turn by turn: whatever else the machine does
// meanwhile meets all of them alike.
func (h *host) contest(ctx context.Context, b *benching) (all []figures, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, fmt.Errorf("make temporary stores: %w", err)
	}
	defer os.RemoveAll(dir)
	var contenders []*contender
	defer func() {
		for _, c := range contenders {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	for _, preset := range b.presets {
		store := b.store
		if store == "" {
			store = "sqlite:" + filepath.Join(dir, preset+".db")
		}
		c, err := b.enter(ctx, preset, store)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", preset, err)
		}
		contenders = append(contenders, c)
	}
	if err := h.takeTurns(ctx, b, contenders); err != nil {
		return nil, err
	}
	for _, c := range contenders {
		if err := c.finish(ctx, h); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Preset, err)
		}
		all = append(all, c.figures)
	}
	return all, nil
}

func (h *host) takeTurns(ctx context.Context, b *benching, contenders []*contender) error {
	whole := (b.inStock() + b.soldOut()) * time.Duration(len(contenders))
	p := h.progress("bench", whole.Milliseconds())
	defer p.end()
	start := time.Now()
	tick := func() {
		done := time.Since(start)
		p.set(done.Milliseconds(), max(done, whole).Milliseconds())
	}
	for n := range benchTurns {
		for _, c := range contenders {
			if c.turn(ctx, b, n, tick); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// showBench puts the presets beside the slowest of them.
func (h *host) showBench(all []figures, floor floors) {
	slowest := 0.0
	for _, f := range all {
		if f.Accepted != nil && (slowest == 0 || *f.Accepted < slowest) {
			slowest = *f.Accepted
		}
	}
	var list []table.Row
	for _, f := range all {
		if f.Accepted == nil {
			list = append(list, table.Row{f.Preset, "-", "-", "-", "-", "-", f.Oversold, f.Undersold, f.Unanswered})
			continue
		}
		list = append(list, table.Row{f.Preset, *f.Accepted, fmt.Sprintf("%.1fx", *f.Accepted/slowest), *f.Refused, *f.P50, *f.P99,
			f.Oversold, f.Undersold, f.Unanswered})
	}
	rows(h.out, table.Row{"preset", "accepted/s", "ratio", "refused/s", "p50 ms", "p99 ms", "oversold", "undersold", "unanswered"}, list...)
	fmt.Fprintf(h.out, "Floors of this machine: %.0f durable writes a second, %.0f requests a second with an empty handler.\n", floor.Fsync, floor.Empty)
}

// inStock is how long the first phase of a preset takes in all.
func (b *benching) inStock() time.Duration { return time.Duration(b.seconds * float64(time.Second)) }

// soldOut is how long the second phase takes.
func (b *benching) soldOut() time.Duration { return max(b.inStock()/5, 100*time.Millisecond) }
