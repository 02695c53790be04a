package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// team are the workers of a Queue. Only its run goroutine changes it.
type team struct {
	scaler  *Scaler
	workers []*worker
	all     sync.WaitGroup // with those that are leaving
}

type worker struct {
	leave context.CancelFunc // after what it has in its hands
	since atomic.Int64       // Unix ns of its inner call; 0 = none
}

// run keeps as many workers as the scaler says, until the Queue is closed and
// nothing waits that it has to serve.
func (q *Queue) run() {
	defer q.end()
	ticker := time.NewTicker(scaleTick)
	defer ticker.Stop()
	q.resize(q.team.scaler.Workers())
	for closing := q.closing.Done(); q.tick(); {
		select {
		case <-ticker.C:
		case <-closing:
			closing = nil
		case <-q.abandoned.Done():
		}
	}
	q.resize(0)
	q.team.all.Wait()
}

// tick is one step of the scaler; false = the work is over. While the Log does
// not answer, everything stays as it is.
func (q *Queue) tick() bool {
	ctx, cancel := context.WithTimeout(context.Background(), settleDeadline)
	defer cancel()
	closing := q.closing.Err() != nil // before the look at the log: nothing comes in after it
	if closing && q.options.Shared {
		return false
	}
	backlog, err := q.log.Backlog(ctx)
	if q.abandoned.Err() != nil {
		return false
	}
	if err != nil {
		return true
	}
	if closing && backlog.Waiting == 0 {
		return false
	}
	load := q.gauge.load(backlog, q.team.busy())
	q.resize(q.team.scaler.Step(load))
	q.gauge.report(backlog, load, q.team.scaler)
	return true
}

// busy is how long the longest inner call has been running.
func (t *team) busy() (longest time.Duration) {
	now := time.Now().UnixNano()
	for _, w := range t.workers {
		if since := w.since.Load(); since > 0 {
			longest = max(longest, time.Duration(now-since))
		}
	}
	return longest
}

// resize starts workers, or lets the last ones finish what they have and go.
func (q *Queue) resize(n int) {
	t := &q.team
	for len(t.workers) < n {
		ctx, leave := context.WithCancel(q.abandoned)
		w := &worker{leave: leave}
		t.workers = append(t.workers, w)
		t.all.Go(func() { q.work(ctx, w) })
	}
	for _, w := range t.workers[n:] {
		w.leave()
	}
	t.workers = t.workers[:n]
}

func (q *Queue) work(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		c, err := q.log.Take(ctx, q.options.MaxBatch)
		if err != nil {
			q.pause(ctx, takeBackoff)
			continue
		}
		q.serve(w, c)
	}
}

// serve works on its own time: no caller can stop what others wait for too. If
// the claim was lost meanwhile, its entries are somebody else's to settle.
func (q *Queue) serve(w *worker, c Claim) {
	endings := q.decide(w, c)
	if len(endings) < len(c.Entries) {
		q.pause(context.Background(), min(firstBackoff<<min(c.Failures, maxFailures), lastBackoff))
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleDeadline)
	defer cancel()
	err := q.log.Settle(ctx, c, endings)
	q.gauge.settled(endings, err)
}

// decide applies the entries of a claim, up to the first without an outcome.
func (q *Queue) decide(w *worker, c Claim) (endings []Ending) {
	ctx, cancel := context.WithTimeout(context.Background(), claimDeadline)
	defer cancel()
	results, err := q.ask(ctx, w, c.Entries)
	if err != nil && len(c.Entries) > 1 {
		results = q.askEach(ctx, w, c.Entries)
	}
	for _, r := range results {
		endings = append(endings, Ending{Result: r})
	}
	if len(endings) == 0 && c.Failures+1 >= maxFailures {
		endings = append(endings, Ending{GaveUp: true})
	}
	return endings
}

// askEach applies entries one by one, up to the first that fails.
func (q *Queue) askEach(ctx context.Context, w *worker, entries []ledger.Entry) (results []ledger.Result) {
	for _, e := range entries {
		r, err := q.ask(ctx, w, []ledger.Entry{e})
		if err != nil {
			break
		}
		results = append(results, r...)
	}
	return results
}

// ask applies entries. A panic below must not end the process: the outcome is
// unknown then, as after an error.
func (q *Queue) ask(ctx context.Context, w *worker, entries []ledger.Entry) (results []ledger.Result, err error) {
	began := time.Now()
	w.since.Store(began.UnixNano())
	results, err = askOnce(ctx, q.inner, entries)
	w.since.Store(0)
	q.gauge.committed(len(results), time.Since(began))
	return results, err
}

// pause waits for d, or until ctx ends or the Queue is abandoned.
func (q *Queue) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-q.abandoned.Done():
	}
}
