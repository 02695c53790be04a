package main

import (
	"sync/atomic"
	"time"
)

// demoPace is how many seconds pass in a demo's shop, and at its gateways, in
// one of ours. An Alipay payment that nobody came for is surely over two
// minutes after its deadline and not before: nothing of that is cut short, the
// clock of everybody concerned is quicker.
const demoPace = 30

// paced is a clock that can be quicker than the real one. It never goes back.
type paced struct{ from atomic.Pointer[tempo] }

// tempo is since when a clock goes how quickly.
type tempo struct {
	real, shown time.Time
	times       int64
}

func newPaced(times int64) *paced {
	p := &paced{}
	now := time.Now()
	p.from.Store(&tempo{now, now.Round(0), times})
	return p
}

func (p *paced) now() time.Time {
	f := p.from.Load()
	return f.shown.Add(time.Since(f.real) * time.Duration(f.times))
}

// set changes the pace.
func (p *paced) set(times int64) {
	real := time.Now()
	f := p.from.Load()
	p.from.Store(&tempo{real, f.shown.Add(real.Sub(f.real) * time.Duration(f.times)), times})
}

// until is how long we have to wait until the clock shows t.
func (p *paced) until(t time.Time) time.Duration {
	return t.Sub(p.now()) / time.Duration(p.from.Load().times)
}
