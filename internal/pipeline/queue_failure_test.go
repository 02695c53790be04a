package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// lossy is a Log that loses what Settle says, as if the worker had died just
// before it.
type lossy struct {
	*pipeline.Ring
	lose func() bool
}

func (l lossy) Settle(ctx context.Context, c pipeline.Claim, endings []pipeline.Ending) error {
	if l.lose() {
		return errStore
	}
	return l.Ring.Settle(ctx, c, endings)
}

func TestAWorkerThatDiesBeforeItSettlesIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		ring := pipeline.NewRing(pipeline.LogOptions{})
		fail := failing(2)
		q := pipeline.NewQueue(d, lossy{ring, func() bool { return fail() != nil }}, pipeline.QueueOptions{Partition: everything})
		began := time.Now()
		res, err := q.Apply(t.Context(), give("a"))
		if err != nil || res[0].Refused() || !res[0].Replayed {
			t.Errorf("got %+v, %v, want a replay", res, err)
		}
		if d := time.Since(began); d != 2*pipeline.DefaultLease {
			t.Errorf("answered after %v, want two leases of %v", d, pipeline.DefaultLease)
		}
		if n := d.happened(t); n["a"] != 1 {
			t.Errorf("got %v in the journal", n)
		}
		if s := q.Stats(); s.Lost != 2 || s.Served != 1 {
			t.Errorf("got %+v", s)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestPlacesSurviveTheQueueThatGaveThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 1})
		release := l.store.held()
		var tickets []pipeline.Ticket
		for _, id := range []string{"a", "b", "c"} {
			tickets = append(tickets, l.submit("tee", id))
		}
		waits := make(chan error, 1)
		go func() { _, err := l.Wait(t.Context(), tickets[2]); waits <- err }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close while the store hangs: got %v, want %v", err, context.DeadlineExceeded)
		}
		release()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-waits; !errors.Is(err, pipeline.ErrUnknown) || !errors.Is(err, pipeline.ErrClosed) {
			t.Errorf("who waited in the closed queue: got %v, want %v by %v", err, pipeline.ErrUnknown, pipeline.ErrClosed)
		}
		l.has(pipeline.Ticket{ID: "a"}, ledger.OK) // what is decided can still be asked for
		l.store.before = func(context.Context, []string) error { time.Sleep(time.Second); return nil }
		l.Queue = pipeline.NewQueue(l.store, l.log, pipeline.QueueOptions{MaxBatch: 1})
		if b, c := l.position("b"), l.position("c"); b != 1 || c != 2 {
			t.Errorf("after the restart: got positions %d and %d, want 1 and 2", b, c)
		}
		if again := l.submit("tee", "c"); !again.Repeat || again.Position != 2 {
			t.Errorf("submitted again after the restart: got %+v", again)
		}
		for _, ticket := range tickets {
			l.has(ticket, ledger.OK)
		}
		if got := l.order(""); !slices.Equal(got[1:], []string{"a", "b", "c"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestCloseAnswersEverybodyWhoWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 2})
		l.store.before = func(context.Context, []string) error { time.Sleep(time.Second); return nil }
		answers := make(chan error, 20)
		for i := range 20 {
			go func() {
				_, err := l.Apply(t.Context(), want(fmt.Sprint(i), "tee"))
				answers <- err
			}()
		}
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		for range 20 {
			if err := <-answers; err != nil {
				t.Errorf("got %v, want an answer", err)
			}
		}
		for name, e := range map[string]ledger.Entry{"waits": want("late", "tee"), "straight": give("late")} {
			if _, err := l.Apply(t.Context(), e); !errors.Is(err, pipeline.ErrClosed) || errors.Is(err, pipeline.ErrUnknown) {
				t.Errorf("%s, after Close: got %v, want %v", name, err, pipeline.ErrClosed)
			}
		}
	})
}

func TestWhatWaitsInASharedLogIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 1, Shared: true})
		release := l.store.held()
		first, second := l.submit("tee", "a"), l.submit("tee", "b")
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		release()
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		l.has(pipeline.Ticket{ID: first.ID}, ledger.OK) // it was in a worker's hands
		if place, err := l.log.Find(t.Context(), second.ID); err != nil || place.State != pipeline.PlaceWaiting {
			t.Errorf("got %+v, %v, want it waiting for another queue", place, err)
		}
		other := pipeline.NewQueue(l.store, l.log, pipeline.QueueOptions{})
		if res, err := other.Wait(t.Context(), second); err != nil || res.Refused() {
			t.Errorf("got %+v, %v", res, err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestABadEntryIsGivenUpAndItsNeighboursPassInOrder(t *testing.T) {
	for name, poison := range map[string]func(){"error": func() {}, "panic": func() { panic("a bug") }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{})
				l.store.before = func(_ context.Context, ids []string) error {
					if slices.Contains(ids, "bad") {
						poison()
						return errStore
					}
					return nil
				}
				var before pipeline.Ticket
				for i := range 200 {
					before = l.submit("tee", fmt.Sprint("x", i))
				}
				bad, after := l.submit("tee", "bad"), l.submit("tee", "y")
				other := l.submit("mug", "other")
				began := time.Now()
				l.has(before, ledger.OK)
				l.has(other, ledger.Insufficient)
				if time.Since(began) > time.Second {
					t.Errorf("the ones before it and beside it waited for %v", time.Since(began))
				}
				if _, err := l.Wait(t.Context(), bad); !errors.Is(err, pipeline.ErrUnknown) {
					t.Errorf("got %v, want %v", err, pipeline.ErrUnknown)
				}
				l.has(after, ledger.OK)
				if d := time.Since(began); d > time.Minute {
					t.Errorf("it held the others up for %v", d)
				}
				if ticket, err := l.Look(t.Context(), "bad"); err != nil || ticket.State != pipeline.PlaceUnknown {
					t.Errorf("got %+v, %v, want it forgotten", ticket, err)
				}
				l.store.before = nil
				l.has(l.submit("tee", "bad"), ledger.OK)
				if s := l.Stats(); s.GaveUp != 1 {
					t.Errorf("got %+v", s)
				}
			})
		})
	}
}

func TestAStoreThatComesBackFindsEverybodyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 7})
		back := time.Now().Add(5 * time.Second)
		l.store.before = func(context.Context, []string) error {
			if time.Now().Before(back) {
				return errStore
			}
			return nil
		}
		fail := failing(1)
		l.store.after = func([]string) error { return fail() }
		var ids []string
		var tickets []pipeline.Ticket
		for i := range 40 {
			ids = append(ids, fmt.Sprintf("x%02d", i))
			tickets = append(tickets, l.submit("tee", ids[i]))
		}
		for _, ticket := range tickets {
			l.has(ticket, ledger.OK)
		}
		if got := l.order("x"); !slices.Equal(got, ids) {
			t.Errorf("got %q, want the order in which they came, each once", got)
		}
	})
}

func TestAStoreThatHangsIsLeftAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{})
		hang := true
		l.store.before = func(ctx context.Context, _ []string) error {
			if hang {
				hang = false
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		began := time.Now()
		l.has(l.submit("tee", "a"), ledger.OK)
		if d := time.Since(began); d < 30*time.Second || d >= pipeline.DefaultLease {
			t.Errorf("answered after %v, want before its lease lapses", d)
		}
	})
}

// torn loses the first result of every answer to several entries.
type torn struct{ ledger.Applier }

func (a torn) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	results, err := a.Applier.Apply(ctx, entries...)
	return results[min(1, len(results)-1):], err
}

func TestAnAnswerOfTheWrongLengthIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		q := pipeline.NewQueue(torn{d}, pipeline.NewRing(pipeline.LogOptions{}), pipeline.QueueOptions{Partition: everything})
		for _, id := range []string{"a", "b", "c"} {
			go func() {
				res, err := q.Apply(t.Context(), give(id))
				(&answer{res, err}).is(t, id)
			}()
			synctest.Wait()
		}
		release()
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func TestWorkersFollowTheLoadAndGoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 10, Scale: pipeline.ScaleOptions{Max: 6}})
		l.store.before = func(context.Context, []string) error { time.Sleep(50 * time.Millisecond); return nil }
		for i := range 15_000 {
			l.submit(fmt.Sprint("sku-", i%50), fmt.Sprint(i))
		}
		pass(10 * time.Second)
		busy := l.Stats()
		if busy.Workers < 4 || busy.Rate < 600 || busy.Drain <= 0 || busy.Oldest < 9*time.Second || busy.Partitions != 50 {
			t.Errorf("in the burst: got %+v, want about 6 workers that serve 200 a second each", busy)
		}
		if tens := busy.Batches[4]; tens*11 < busy.Served || busy.Commit < 50*time.Millisecond {
			t.Errorf("in the burst: got %+v, want inner calls of 8 to 15 entries", busy)
		}
		ticket, err := l.Look(t.Context(), "14999")
		drain := time.Duration(float64(busy.Waiting) / busy.Rate * float64(time.Second))
		if err != nil || ticket.ETA < drain/2 || ticket.ETA > drain*2 {
			t.Errorf("the last of %d is told %v (%v), want about %v", busy.Waiting, ticket.ETA, err, drain)
		}
		pass(2 * time.Minute)
		if s := l.Stats(); s.Workers != 1 || s.Waiting != 0 || s.Served != 15_000 || s.Accepted != 15_000 || s.Drain != 0 || s.Oldest != 0 {
			t.Errorf("afterwards: got %+v", s)
		}
	})
}

func TestALogThatIsAwayStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		d := newDouble()
		q := pipeline.NewQueue(d, absent{pipeline.NewRing(pipeline.LogOptions{}), &away}, pipeline.QueueOptions{Partition: everything})
		if _, err := q.Submit(t.Context(), "all", give("a")); !errors.Is(err, pipeline.ErrUnknown) || !errors.Is(err, errStore) {
			t.Errorf("a ticket: got %v, want %v by %v", err, pipeline.ErrUnknown, errStore)
		}
		for _, back := range []bool{false, true} {
			away.Store(!back)
			if res, err := q.Apply(t.Context(), give("a")); err != nil || res[0].Refused() || res[0].Replayed != back {
				t.Errorf("back %v: got %+v, %v", back, res, err)
			}
			pass(time.Second)
		}
		if s := q.Stats(); s.Straight != 1 || s.Served != 1 {
			t.Errorf("got %+v, want one past the log and one through it", s)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// A Log that loses what waits loses no buyer: the ledger is asked.
func TestWhatTheLogHasForgottenTheLedgerDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		q := pipeline.NewQueue(d, forgetful{pipeline.NewRing(pipeline.LogOptions{})}, pipeline.QueueOptions{Partition: everything})
		if res, err := q.Apply(t.Context(), give("a")); err != nil || res[0].Refused() {
			t.Errorf("got %+v, %v", res, err)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := d.happened(t); n["a"] != 1 {
			t.Errorf("got %v in the journal", n)
		}
	})
}

// forgetful is a Log that does not know what waits.
type forgetful struct{ *pipeline.Ring }

func (forgetful) Wait(context.Context, string) (pipeline.Place, error) { return pipeline.Place{}, nil }

// absent is a Log that fails while it is away.
type absent struct {
	*pipeline.Ring
	away *atomic.Bool
}

func (a absent) Append(ctx context.Context, r pipeline.Request) (pipeline.Place, error) {
	if a.away.Load() {
		return pipeline.Place{}, errStore
	}
	return a.Ring.Append(ctx, r)
}

func (a absent) Take(ctx context.Context, most int) (pipeline.Claim, error) {
	if a.away.Load() {
		return pipeline.Claim{}, errStore
	}
	return a.Ring.Take(ctx, most)
}

func (a absent) Backlog(ctx context.Context) (pipeline.Backlog, error) {
	if a.away.Load() {
		return pipeline.Backlog{}, errStore
	}
	return a.Ring.Backlog(ctx)
}
