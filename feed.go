package holdfast

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// elsewhere is how soon something that another process wrote is noticed.
const elsewhere = 500 * time.Millisecond

// bell wakes those who wait for an order (or any other subject) to change in
// this process. It carries no data: whoever wakes reads the store.
type bell struct {
	mu      sync.Mutex
	waiters map[string]map[chan struct{}]bool // by subject; "" = every subject
}

func newBell() *bell { return &bell{waiters: map[string]map[chan struct{}]bool{}} }

// listen returns a channel that receives after subject has changed. stop must
// be called.
func (b *bell) listen(subject string) (rung <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiters[subject] == nil {
		b.waiters[subject] = map[chan struct{}]bool{}
	}
	b.waiters[subject][c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiters[subject], c)
		if len(b.waiters[subject]) == 0 {
			delete(b.waiters, subject)
		}
	}
}

// ring says that subject has changed. It never blocks.
func (b *bell) ring(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range []string{subject, ""} {
		for c := range b.waiters[s] {
			select {
			case c <- struct{}{}:
			default: // already rung and not yet heard
			}
		}
	}
}

// followPage is how many events Follow reads at once.
const followPage = 200

// Follow calls f for every event after seq (of subject; "" = all), in order,
// those that are there and those that come, until ctx ends or f fails.
func (h *Holdfast) Follow(ctx context.Context, subject string, after int64, f func(ledger.Event) error) error {
	rung, stop := h.bell.listen(subject)
	defer stop()
	for {
		events, err := h.store.Events(ctx, ledger.EventQuery{Subject: subject, After: after, Limit: followPage})
		if err != nil {
			return fmt.Errorf("holdfast: follow events after %d: %w", after, err)
		}
		for _, e := range events {
			if err := f(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(events) == followPage {
			continue
		}
		select {
		case <-rung:
		case <-time.After(elsewhere):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
