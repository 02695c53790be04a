package holdfast

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Times of the feed.
const (
	// elsewhere is how soon something that another process wrote is noticed.
	elsewhere = 500 * time.Millisecond
	// feedRest is the least time between two reads of the feed, so that a rush
	// costs a bounded number of them.
	feedRest = 10 * time.Millisecond
	// hearAgain is how long after the connection to Redis broke it is tried again.
	hearAgain = time.Second
)

// Sizes of the feed in memory.
const (
	feedPage   = 500  // events that are read at once
	feedMemory = 2048 // last events that are certain to be kept
)

// bell wakes those who wait for a topic. It carries no data: whoever wakes looks
// for himself.
type bell struct {
	mu      sync.Mutex
	waiters map[string]map[chan struct{}]bool // by topic
}

func newBell() *bell { return &bell{waiters: map[string]map[chan struct{}]bool{}} }

// listen returns a channel that receives after one of the topics has rung. stop
// must be called.
func (b *bell) listen(topics ...string) (rung <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range topics {
		if b.waiters[t] == nil {
			b.waiters[t] = map[chan struct{}]bool{}
		}
		b.waiters[t][c] = true
	}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, t := range topics {
			delete(b.waiters[t], c)
			if len(b.waiters[t]) == 0 {
				delete(b.waiters, t)
			}
		}
	}
}

// ring says that something is new of the topics. It never blocks.
func (b *bell) ring(topics ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range topics {
		strike(b.waiters[t])
	}
}

// ringAll says that anything may be new.
func (b *bell) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range b.waiters {
		strike(waiting)
	}
}

func strike(waiting map[chan struct{}]bool) {
	for c := range waiting {
		nudge(c)
	}
}

// nudge wakes whoever reads c, which has room for one.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // already rung and not yet heard
	}
}

// tail is the end of the feed in memory: one reader of this process reads it for
// everybody who listens. Events are numbered without gaps, so that everybody
// knows from a number alone whether something is missing; whoever is further
// behind than the memory goes reads the store.
type tail struct {
	grown   chan struct{} // there is something to read, or somebody to read for
	written chan struct{} // this process has written something

	mu        sync.Mutex
	listeners int
	last      int64     // every event up to this one was read, or skipped
	recent    []Message // those up to last, without gaps
}

// since are the wanted events after after that are in memory, and up to which
// number that is all of them. ok = none is missing.
func (t *tail) since(after int64, wanted func(Message) bool) (found []Message, upTo int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after >= t.last {
		return nil, after, true
	}
	first := t.last - int64(len(t.recent)) + 1
	if after+1 < first {
		return nil, after, false
	}
	for _, m := range t.recent[after+1-first:] {
		if wanted(m) {
			found = append(found, m)
		}
	}
	return found, t.last, true
}

// append takes the events after last.
func (t *tail) append(events []Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.recent)+len(events) > 2*feedMemory {
		kept := t.recent[max(0, len(t.recent)-feedMemory):]
		t.recent = append(make([]Message, 0, 2*feedMemory), kept...)
	}
	t.recent = append(t.recent, events...)
	t.last = events[len(events)-1].ID
}

// skip goes on behind last without having read.
func (t *tail) skip(last int64) (moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last <= t.last {
		return false
	}
	t.last, t.recent = last, nil
	return true
}

// wrote says that this process has written events.
func (t *tail) wrote() {
	nudge(t.written)
	t.grew()
}

// grew says that there may be something to read.
func (t *tail) grew() {
	if _, heard := t.at(); heard {
		nudge(t.grown)
	}
}

func (t *tail) at() (last int64, heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.listeners > 0
}

func (t *tail) join(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listeners += n
}

// watchFeed rings when the feed has grown, whoever wrote it.
func (b *background) watchFeed() {
	tick := time.NewTicker(elsewhere)
	defer tick.Stop()
	for known := false; ; {
		err := b.readFeed(b.stopped, known)
		if err != nil && b.stopped.Err() == nil {
			b.h.log.Error("watch the feed", "error", err)
		}
		known = known || err == nil
		if !b.rest(feedRest) {
			return
		}
		select {
		case <-tick.C:
		case <-b.h.tail.grown:
		case <-b.stopped.Done():
			return
		}
	}
}

// wakeOthers tells the processes that share a Redis that the feed has grown. If
// that fails, they notice by themselves, later.
func (b *background) wakeOthers() {
	for {
		select {
		case <-b.h.tail.written:
			_ = b.h.shared.redis.Wake(b.stopped, b.h.shared.space+"feed")
		case <-b.stopped.Done():
		}
		if !b.rest(feedRest) {
			return
		}
	}
}

// hearOthers wakes the reader of the feed when one of them has said so.
func (b *background) hearOthers() {
	for {
		_ = b.h.shared.redis.Hear(b.stopped, b.h.shared.space+"feed", b.h.tail.grew)
		if !b.rest(hearAgain) {
			return
		}
	}
}

// rest waits; false = until the end.
func (b *background) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stopped.Done():
		return false
	}
}

// readFeed takes what is new of the feed into memory and rings for it. When
// nobody listens, or it is not known yet where the feed ends, it only looks there.
func (b *background) readFeed(ctx context.Context, known bool) error {
	last, heard := b.h.tail.at()
	if !known || !heard {
		head, err := b.h.store.Head(ctx)
		if err == nil && b.h.tail.skip(head.Events) {
			b.h.bell.ringAll()
		}
		return err
	}
	for {
		rows, err := b.h.store.Events(ctx, ledger.EventQuery{After: last, Limit: feedPage})
		if err != nil {
			return fmt.Errorf("holdfast: read events after %d: %w", last, err)
		}
		if len(rows) == 0 {
			return nil
		}
		last = rows[len(rows)-1].Seq
		b.h.tail.append(messages(rows))
		for _, e := range rows {
			b.h.bell.ring(e.Subject, topicOf(e), everything)
		}
		nudge(b.h.states.grown)
		if len(rows) < feedPage {
			return nil
		}
	}
}
