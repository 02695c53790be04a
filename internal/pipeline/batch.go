// Package pipeline holds the Appliers that go around an Applier: each takes
// entries, and hands them on in a way that the one below can serve faster. None
// of them decides anything; the ledger does.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Defaults and limits of a Batch.
const (
	DefaultMaxEntries = 512    // entries of one inner call
	DefaultMaxWaiting = 16_384 // entries that wait
	DefaultCommitters = 1

	batchDeadline = 30 * time.Second // of one batch, with all its attempts
	batchAttempts = 4                // inner calls for one batch while it fails
	firstBackoff  = 10 * time.Millisecond
)

// These errors mean that the call had no effect and will have none.
var (
	ErrOverloaded = errors.New("too many entries are waiting")
	ErrClosed     = errors.New("closed")
	ErrWithdrawn  = errors.New("withdrawn before it was applied")
)

// ErrUnknown means that the call may have happened, or may still happen. Apply
// the same entries again to find out.
var ErrUnknown = errors.New("outcome unknown")

// BatchOptions are the bounds of a Batch.
type BatchOptions struct {
	// MaxEntries is how many entries one inner call gets at most; 0 = 512. A
	// single call with more is handed on as it is.
	MaxEntries int
	// MaxWaiting is how many entries may wait to be taken; 0 = 16384. A call that
	// would exceed it is turned away, unless nothing waits.
	MaxWaiting int
	// Committers is how many inner calls may run at once; 0 = 1. More than one
	// helps a store that commits in parallel, and gives up the order between
	// batches.
	Committers int
}

// Batch is group commit: an Applier that gathers the entries of many callers
// into few calls of the Applier inside.
//
// What is always true:
//   - Every call that was accepted is answered once, with the results of its own
//     entries. Its entries stay together and in order, and with one committer
//     calls are decided in the order in which they came.
//   - A call that was turned away, or whose context ended before it was taken,
//     has no effect. Once it is taken, the caller can stop waiting, but can't
//     stop it.
//   - What waits is bounded by MaxWaiting, what one inner call gets by MaxEntries.
//
// A committer takes whatever waits and comes back for more when it is done. No
// timer gathers a batch: it would make the single caller of a quiet hour wait
// for company that does not come, and in a busy hour, the time of the commit
// before is already enough for the next batch to gather. A mutex around the
// inner Applier would keep the order too, but pays one commit for each entry;
// and the commit, not the decision, is what costs.
//
// When the inner call fails, the outcome of the whole batch is unknown, and the
// same entries are applied again: entry ids make that a replay, never a second
// effect. A batch that keeps failing is taken apart and applied call by call, so
// that a call that can't be applied does not fail its neighbours. A first answer
// may therefore say Replayed.
//
// Idle, a Batch has no goroutine. Safe for concurrent use.
type Batch struct {
	inner   ledger.Applier
	options BatchOptions

	batches, applied atomic.Int64
	sizes            [sizeClasses]atomic.Int64

	mu      sync.Mutex
	queue   []*call
	waiting int // entries in queue
	running int // committers
	closed  bool
	drained chan struct{} // closed when closed and no committer is left
}

type call struct {
	entries []ledger.Entry
	done    chan struct{} // closed when results and err are set
	results []ledger.Result
	err     error
}

// NewBatch puts a Batch around inner. Close it before inner.
func NewBatch(inner ledger.Applier, o BatchOptions) *Batch {
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = DefaultMaxWaiting
	}
	if o.Committers <= 0 {
		o.Committers = DefaultCommitters
	}
	return &Batch{inner: inner, options: o, drained: make(chan struct{})}
}

// Apply implements ledger.Applier. Errors that are ErrOverloaded, ErrClosed or
// ErrWithdrawn mean no effect; every other one is ErrUnknown. The entries must
// not be changed afterwards.
func (b *Batch) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("pipeline: apply %q: %w: %w", entries[0].ID, ErrWithdrawn, err)
	}
	c := &call{entries: make([]ledger.Entry, len(entries)), done: make(chan struct{})}
	for i, e := range entries {
		c.entries[i] = e.Prepare() // here, where many callers do it at once
	}
	if err := b.enqueue(c); err != nil {
		return nil, fmt.Errorf("pipeline: apply %q: %w", entries[0].ID, err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		why := ErrUnknown
		if b.withdraw(c) {
			why = ErrWithdrawn
		}
		return nil, fmt.Errorf("pipeline: apply %q: %w: %w", entries[0].ID, why, ctx.Err())
	}
	if c.err != nil {
		return nil, fmt.Errorf("pipeline: apply %q: %w: %w", entries[0].ID, ErrUnknown, c.err)
	}
	return c.results, nil
}

// Close turns new calls away and waits until all that were accepted are
// answered. ctx bounds the wait, not the work. Closing twice is fine.
func (b *Batch) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.drainedIfIdle()
	}
	b.mu.Unlock()
	select {
	case <-b.drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pipeline: close batch: %w", ctx.Err())
	}
}

// Stats says how many batches were made so far, and of how many entries.
func (b *Batch) Stats() (batches, entries int64) { return b.batches.Load(), b.applied.Load() }

// Sizes counts batches by their entries: index i is 2^(i-1) to 2^i - 1 of them.
func (b *Batch) Sizes() []int64 {
	sizes := make([]int64, len(b.sizes))
	for i := range sizes {
		sizes[i] = b.sizes[i].Load()
	}
	return sizes
}

func (b *Batch) enqueue(c *call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	if b.waiting > 0 && b.waiting+len(c.entries) > b.options.MaxWaiting {
		return ErrOverloaded
	}
	b.queue = append(b.queue, c)
	b.waiting += len(c.entries)
	if b.running < b.options.Committers {
		b.running++
		go b.commitAll()
	}
	return nil
}

// withdraw takes c out of the queue; false = it was taken before.
func (b *Batch) withdraw(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, c)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.waiting -= len(c.entries)
	return true
}

// commitAll is a committer: it ends when nothing waits.
func (b *Batch) commitAll() {
	for {
		// The callers that the last batch has woken are about to come back. Let
		// them in first, or every other batch is a batch of one.
		runtime.Gosched()
		calls := b.take()
		if len(calls) == 0 {
			return
		}
		b.commit(calls)
		for _, c := range calls {
			close(c.done)
		}
	}
}

// take removes the first calls from the queue, at least one, at most MaxEntries
// entries. When nothing waits, the committer that asked is gone.
func (b *Batch) take() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, entries := 0, 0
	for n < len(b.queue) && (n == 0 || entries+len(b.queue[n].entries) <= b.options.MaxEntries) {
		entries += len(b.queue[n].entries)
		n++
	}
	if n == 0 {
		b.running--
		b.drainedIfIdle()
		return nil
	}
	calls := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	b.waiting -= entries
	return calls
}

// drainedIfIdle is called when closed is set, and when a committer leaves:
// after the first, none can start, so it fires once.
func (b *Batch) drainedIfIdle() {
	if b.closed && b.running == 0 {
		close(b.drained)
	}
}

// commit answers calls. It works on its own time: no caller's context may fail
// the others.
func (b *Batch) commit(calls []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), batchDeadline)
	defer cancel()
	var entries []ledger.Entry
	for _, c := range calls {
		entries = append(entries, c.entries...)
	}
	b.batches.Add(1)
	b.applied.Add(int64(len(entries)))
	b.sizes[min(bits.Len(uint(len(entries))), sizeClasses-1)].Add(1)
	results, err := b.ask(ctx, entries)
	if err != nil && len(calls) > 1 {
		for _, c := range calls {
			c.results, c.err = askOnce(ctx, b.inner, c.entries)
		}
		return
	}
	for _, c := range calls {
		c.err = err
		if err == nil {
			c.results, results = results[:len(c.entries):len(c.entries)], results[len(c.entries):]
		}
	}
}

// ask applies entries until their outcome is known, as often as is allowed.
func (b *Batch) ask(ctx context.Context, entries []ledger.Entry) ([]ledger.Result, error) {
	backoff := firstBackoff
	for attempt := 1; ; attempt++ {
		results, err := askOnce(ctx, b.inner, entries)
		if err == nil || attempt == batchAttempts {
			return results, err
		}
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return nil, err
		}
		backoff *= 2
	}
}

// askOnce applies entries. A panic below must not leave the callers waiting: it
// becomes an error, as the outcome is unknown all the same.
func askOnce(ctx context.Context, inner ledger.Applier, entries []ledger.Entry) (results []ledger.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	results, err = inner.Apply(ctx, entries...)
	if err == nil && len(results) != len(entries) {
		return nil, fmt.Errorf("%d results for %d entries", len(results), len(entries))
	}
	return results, err
}
