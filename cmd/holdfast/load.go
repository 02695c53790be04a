package main

import (
	"context"
	"encoding/hex"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// maxBenchErrors is after how many requests without an answer a client gives up.
const maxBenchErrors = 10

// load is what the clients of one phase saw.
type load struct {
	orders     int64            // accepted
	accepted   map[string]int64 // pieces, by SKU
	refused    int64
	turnedAway int64
	unanswered int64
	notStarted int64           // requests that were due when too many were under way
	times      []time.Duration // of the requests with an accepted order
	elapsed    time.Duration
}

// add puts what others saw to l.
func (l *load) add(o load) {
	if l.accepted == nil {
		l.accepted = map[string]int64{}
	}
	for sku, n := range o.accepted {
		l.accepted[sku] += n
	}
	l.orders += o.orders
	l.refused += o.refused
	l.turnedAway += o.turnedAway
	l.unanswered += o.unanswered
	l.notStarted += o.notStarted
	l.times = append(l.times, o.times...)
	l.elapsed += o.elapsed
}

// drive lets the clients ask for as long as d.
func (b *benching) drive(ctx context.Context, askers []placer, skus []string, d time.Duration, tick func()) load {
	var all load
	var mu sync.Mutex
	var asking sync.WaitGroup
	start := time.Now()
	ask := func(*client) {}
	if b.rate == 0 {
		ask = func(c *client) { c.keepAsking(ctx, start.Add(d)) }
	}
	due := make(chan time.Time)
	if b.rate > 0 {
		ask = func(c *client) { c.askWhenDue(ctx, due) }
	}
	for i, place := range askers {
		asking.Go(func() {
			c := newClient(place, b.pick(skus, i), b.bulk)
			if i == 0 {
				c.tick = tick
			}
			ask(c)
			mu.Lock()
			defer mu.Unlock()
			all.add(c.seen)
		})
	}
	missed := int64(0)
	if b.rate > 0 {
		missed = pace(ctx, due, b.rate, start, d)
	}
	asking.Wait()
	all.notStarted = missed
	all.elapsed = time.Since(start)
	return all
}

// pace says when requests are due: rate a second, at random moments, as callers
// who know nothing of each other come. It closes due after d, and returns how
// many requests met nobody who was free.
func pace(ctx context.Context, due chan<- time.Time, rate float64, start time.Time, d time.Duration) (missed int64) {
	defer close(due)
	gap := func() time.Duration { return time.Duration(mathrand.ExpFloat64() / rate * float64(time.Second)) }
	for next := start.Add(gap()); next.Before(start.Add(d)) && ctx.Err() == nil; next = next.Add(gap()) {
		time.Sleep(time.Until(next))
		select {
		case due <- next:
		default:
			missed++
		}
	}
	return missed
}

// client is one who orders.
type client struct {
	place placer
	pick  func() string
	skus  []string // of one request
	fates []placed
	seen  load
	tick  func()
	keys  *mathrand.ChaCha8
}

func newClient(place placer, pick func() string, bulk int) *client {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(mathrand.Uint32())
	}
	return &client{place: place, pick: pick, skus: make([]string, bulk), fates: make([]placed, bulk),
		seen: load{accepted: map[string]int64{}}, tick: func() {}, keys: mathrand.NewChaCha8(seed)}
}

// keepAsking asks again as soon as there was an answer.
func (c *client) keepAsking(ctx context.Context, until time.Time) {
	for now := time.Now(); now.Before(until) && ctx.Err() == nil && c.seen.unanswered < maxBenchErrors; now = time.Now() {
		c.ask(ctx, now)
	}
}

// askWhenDue asks when a request is due. That it was late is part of the time
// that the answer took.
func (c *client) askWhenDue(ctx context.Context, due <-chan time.Time) {
	for from := range due {
		if c.seen.unanswered < maxBenchErrors {
			c.ask(ctx, from)
		}
	}
}

// ask places the orders of one request, under a random key as other programs
// make them.
func (c *client) ask(ctx context.Context, from time.Time) {
	for i := range c.skus {
		c.skus[i], c.fates[i] = c.pick(), placeUnknown
	}
	var key [16]byte
	c.keys.Read(key[:]) // never fails
	c.place(ctx, hex.EncodeToString(key[:]), c.skus, c.fates)
	held := false
	for i, fate := range c.fates {
		switch fate {
		case placeHeld:
			held = true
			c.seen.orders++
			c.seen.accepted[c.skus[i]]++
		case placeSoldOut:
			c.seen.refused++
		case placeTurnedAway:
			c.seen.turnedAway++
		default:
			c.seen.unanswered++
		}
	}
	if held {
		c.seen.times = append(c.seen.times, time.Since(from))
	}
	c.tick()
}

// zipfSteepness is how much of the orders the first SKUs get.
const zipfSteepness = 1.1

// pick is what a client orders, one order after another.
func (b *benching) pick(skus []string, client int) func() string {
	if b.spread == spreadZipf && len(skus) > 1 {
		z := mathrand.NewZipf(mathrand.New(mathrand.NewPCG(uint64(client), 1)), zipfSteepness, 1, uint64(len(skus)-1))
		return func() string { return skus[z.Uint64()] }
	}
	n := mathrand.IntN(len(skus))
	return func() string {
		n++
		return skus[n%len(skus)]
	}
}
