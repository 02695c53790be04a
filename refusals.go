package holdfast

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// How a repeat is told from a new order when everything is sold.
const (
	// repeatsFor is how long after an order was accepted its repeats are certain to
	// be known for such in a rush.
	repeatsFor = time.Minute
	// rushGap is the longest time between two refusals of a rush.
	rushGap = 100 * time.Millisecond

	maxRushes = 10_000 // keys
)

// insist does what is left to do for an entry that was refused for lack of
// something: it may be the repeat of one that was accepted, which the gate did not
// know, and what is overdue may be taken before the sweeper comes to it. In a rush
// neither is tried, so that a refusal costs the store nothing.
func (h *Holdfast) insist(ctx context.Context, e ledger.Entry, grants []flow.Grant, res ledger.Result) (ledger.Result, []flow.Grant, error) {
	if h.gate != nil && res.Key.Account == flow.Stock {
		rush := h.told.rush(res.Key, time.Now())
		if rush && h.gate.Remembers(res.Key) >= repeatsFor {
			return res, grants, nil
		}
		old, ok, err := h.decided(ctx, e.ID, e.Fingerprint)
		if ok || err != nil {
			return old, grants, err
		}
	}
	if n, err := h.work.sweepSoon(ctx); err != nil || n == 0 {
		return res, grants, nil
	}
	return h.applyGranted(ctx, e, grants)
}

// refusals is what was refused when, for lack of what.
type refusals struct {
	mu   sync.Mutex
	last map[ledger.Key]time.Time
}

// rush notes a refusal for lack of key, and says whether there was another one
// just before.
func (r *refusals) rush(key ledger.Key, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.last[key]
	if r.last == nil || !ok && len(r.last) >= maxRushes {
		r.last = map[ledger.Key]time.Time{}
	}
	r.last[key] = now
	return ok && now.Sub(before) < rushGap
}
