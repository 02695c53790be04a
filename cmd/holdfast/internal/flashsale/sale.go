// Package flashsale is a crowd of buyers that want more than there is, and a
// good part of which misbehaves: it clicks twice, gives up and asks again, has
// its card declined, changes its mind about how to pay, never pays, pays too
// late, cancels. Everything goes through the HTTP API and the gateways' own
// payment pages.
//
// The crowd says nothing about whether the promises were kept, save what only
// a caller can see: an answer that contradicts another one.
package flashsale

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sale is one flash sale.
type Sale struct {
	API    string // base address, e.g. http://127.0.0.1:8080
	Key    string // an API key with the scope write
	Seed   uint64
	Crowd  []Buyer
	Limit  time.Duration            // when to stop waiting for pieces that may come back
	Served func(done, buyers int64) // how many buyers are through; may be nil

	Until func(time.Time) time.Duration // how long it is until the shop's clock shows a time
}

// Outcome is what the buyers saw.
type Outcome struct {
	Requests int64           // answered, all kinds
	Rejected int64           // orders answered with sold_out
	Elapsed  time.Duration   // from the doors' opening until the last buyer left
	Holds    []time.Duration // from asking to having, of each order, sorted
	Broken   []string        // answers that must not be
}

// Quantile is the time within which the part q (0 to 1) of the orders was held.
func (o Outcome) Quantile(q float64) time.Duration {
	if len(o.Holds) == 0 {
		return 0
	}
	return o.Holds[min(int(q*float64(len(o.Holds))), len(o.Holds)-1)]
}

// maxBroken bounds Outcome.Broken.
const maxBroken = 20

// sale is a Sale under way.
type sale struct {
	Sale
	*client
	rooms map[string]*room

	rejected atomic.Int64
	mu       sync.Mutex
	holds    []time.Duration
	broken   []string
}

// Run opens the doors and returns when every buyer has left.
func Run(ctx context.Context, s Sale) Outcome {
	r := &sale{Sale: s, client: newClient(s.API, s.Key), rooms: map[string]*room{}}
	defer r.http.CloseIdleConnections()
	watch, stop := context.WithTimeout(ctx, s.Limit)
	var watching, buying sync.WaitGroup
	for _, b := range s.Crowd {
		if r.rooms[b.SKU] == nil {
			m := newRoom()
			r.rooms[b.SKU] = m
			watching.Go(func() { r.watch(watch, b.SKU, m) })
		}
	}
	start := time.Now()
	var done atomic.Int64
	for _, b := range s.Crowd {
		buying.Go(func() {
			r.visit(ctx, b)
			if n := done.Add(1); s.Served != nil {
				s.Served(n, int64(len(s.Crowd)))
			}
		})
	}
	buying.Wait()
	elapsed := time.Since(start)
	stop()
	watching.Wait()
	slices.Sort(r.holds)
	return Outcome{Requests: r.answered.Load(), Rejected: r.rejected.Load(), Elapsed: elapsed, Holds: r.holds, Broken: r.broken}
}

func (r *sale) bad(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broken) < maxBroken {
		r.broken = append(r.broken, fmt.Sprintf(format, args...))
	}
}

func (r *sale) held(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = append(r.holds, after)
}
