package holdfast

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// background is everything that happens without being asked: tasks that are
// due, orders that are overdue, notifications that came too early.
//
// All of it is stored, so that nothing here has to be remembered: a loop looks
// for what is due and does it, on every node at once. Two nodes that find the
// same thing are told apart by the version of its record. The obvious way, a
// timer for each order and a call from the request that needs it, loses both
// when the process dies.
type background struct {
	h     *Holdfast
	wake  chan struct{} // a task may be due now
	slots chan struct{} // one for each task that runs

	mu      sync.Mutex
	running map[string]bool // tasks of this process

	sweeping sync.Mutex // one sweep of orders at a time
	swept    time.Time  // when the last one began
	looked   time.Time  // when it was last looked for what accounts owe
	loops    sync.WaitGroup
	tasks    sync.WaitGroup
	stopped  context.Context // ends the loops
	end      context.CancelFunc
	calls    context.Context // ends the gateway calls under way
	cut      context.CancelFunc
}

func newBackground(h *Holdfast) *background {
	b := &background{h: h, wake: make(chan struct{}, 1), slots: make(chan struct{}, h.o.Workers), running: map[string]bool{}}
	b.stopped, b.end = context.WithCancel(context.Background())
	b.calls, b.cut = context.WithCancel(context.Background())
	return b
}

func (b *background) start() {
	b.loops.Go(b.watchFeed)
	b.loops.Go(b.watchStock)
	if b.h.shared != nil {
		b.loops.Go(b.wakeOthers)
		b.loops.Go(b.hearOthers)
	}
	if b.h.o.Passive {
		return
	}
	b.loops.Go(b.watchHooks)
	b.loops.Go(func() { b.every("tasks", b.wake, b.dispatch) })
	b.loops.Go(func() {
		b.every("orders", nil, func(ctx context.Context) error {
			_, err := b.sweepOrders(ctx)
			return errors.Join(err, b.sweepParked(ctx), b.sweepHolds(ctx), b.sweepReceivables(ctx))
		})
	})
}

// stop ends the loops, lets tasks finish until ctx ends, then cuts them off.
func (b *background) stop(ctx context.Context) error {
	b.end()
	b.loops.Wait()
	done := make(chan struct{})
	go func() {
		b.tasks.Wait()
		close(done)
	}()
	defer func() {
		b.cut()
		<-done
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("holdfast: tasks cut off: %w", ctx.Err())
	}
}

// every runs f now, after each Sweep, and when wake is rung, until the end.
func (b *background) every(what string, wake <-chan struct{}, f func(context.Context) error) {
	tick := time.NewTicker(b.h.o.Sweep)
	defer tick.Stop()
	for {
		if err := f(b.stopped); err != nil && b.stopped.Err() == nil {
			b.h.log.Error("sweep", "what", what, "error", err)
		}
		select {
		case <-tick.C:
		case <-wake:
		case <-b.stopped.Done():
			return
		}
	}
}

// kick makes the tasks of a change start at once.
func (b *background) kick(ch flow.Change) {
	if !ch.HasTasks() {
		return
	}
	b.ring()
}

func (b *background) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// sweepBatch is how many overdue rows one sweep takes, sweepWidth how many of
// them are written at once, so that they share commits.
const (
	sweepBatch = 500
	sweepWidth = 64
)

// sweepOrders lets every overdue order take its next step, each on its own: one
// that fails is told and left for the next sweep. n is how many took one.
func (b *background) sweepOrders(ctx context.Context) (n int, err error) {
	b.sweeping.Lock()
	defer b.sweeping.Unlock()
	return b.sweepLocked(ctx)
}

// lazySweep is how often buyers who found too little may sweep, together.
const lazySweep = 20 * time.Millisecond

// sweepSoon is sweepOrders for somebody who waits. It does nothing when another
// one is at it, or was just now: in a sold-out storm everybody would ask.
func (b *background) sweepSoon(ctx context.Context) (int, error) {
	if !b.sweeping.TryLock() {
		return 0, nil
	}
	defer b.sweeping.Unlock()
	if age := b.h.o.Clock().Sub(b.swept); age >= 0 && age < lazySweep {
		return 0, nil
	}
	return b.sweepLocked(ctx)
}

func (b *background) sweepLocked(ctx context.Context) (n int, err error) {
	b.swept = b.h.o.Clock()
	due, err := b.due(ctx, flow.KindOrder, sweepBatch)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	inParallel(due, func(r ledger.Record) {
		ev := flow.Event{On: flow.Due}
		if State(r.State) == flow.Closing {
			ev.On = flow.GiveUp
		}
		res, _, err := b.h.advance(ctx, r.ID, ev, nil)
		if err != nil {
			b.h.log.Error("expire order", "order", r.ID, "error", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if res.Seq > 0 {
			n++
		}
	})
	return n, nil
}

// due lists the records whose time has come.
func (b *background) due(ctx context.Context, kind string, limit int) ([]ledger.Record, error) {
	now, err := b.h.now(ctx)
	if err != nil {
		return nil, err
	}
	rs, err := b.h.store.Records(ctx, ledger.RecordQuery{Kind: kind, DueBy: int64(now), Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("holdfast: list overdue %ss: %w", kind, err)
	}
	return rs, nil
}

// inParallel runs f for every row, sweepWidth at a time, and waits.
func inParallel[T any](rows []T, f func(T)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, sweepWidth)
	for _, r := range rows {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			f(r)
		})
	}
	wait.Wait()
}
