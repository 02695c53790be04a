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

// bell wakes those who wait for an order (or any other subject) to change. It
// carries no data: whoever wakes reads the store. Changes of this process ring
// at once; one look at the end of the feed, now and then, finds those of others
// for everybody who waits.
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
		strike(b.waiters[s])
	}
}

// ringAll says that anything may have changed.
func (b *bell) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range b.waiters {
		strike(waiting)
	}
}

func strike(waiting map[chan struct{}]bool) {
	for c := range waiting {
		select {
		case c <- struct{}{}:
		default: // already rung and not yet heard
		}
	}
}

// watchFeed rings when the feed has grown, whoever wrote it.
func (b *background) watchFeed() {
	tick := time.NewTicker(elsewhere)
	defer tick.Stop()
	var seen int64
	for {
		select {
		case <-tick.C:
		case <-b.stopped.Done():
			return
		}
		head, err := b.h.store.Head(b.stopped)
		if err != nil {
			if b.stopped.Err() == nil {
				b.h.log.Error("watch the feed", "error", err)
			}
			continue
		}
		if head.Events > seen {
			seen = head.Events
			b.h.bell.ringAll()
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
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
