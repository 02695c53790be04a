package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

var errStore = errors.New("the connection is gone")

// pass lets time go by on the bubble's clock, until nothing moves any more.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// failing fails its first n calls.
func failing(n int) func() error {
	return func() error {
		if n--; n >= 0 {
			return errStore
		}
		return nil
	}
}

func TestALostAnswerIsAskedForAgainAndHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		fail := failing(2)
		d.after = func([]string) error { return fail() }
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		first, second := start(t.Context(), b, "a"), start(t.Context(), b, "b", "c")
		release()
		pass(time.Second)
		first.is(t, "a")
		second.is(t, "b", "c")
		for id, n := range d.happened(t) {
			if n != 1 {
				t.Errorf("%q happened %d times", id, n)
			}
		}
		wantCalls(t, d, "a", "a", "a", "b c")
	})
}

func TestAFailureBeforeTheEffectIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		fail := failing(3)
		d.before = func(context.Context, []string) error { return fail() }
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		a := start(t.Context(), b, "a")
		pass(time.Second)
		a.is(t, "a")
		wantCalls(t, d, "a", "a", "a", "a")
	})
}

func TestAStoreThatStaysAwayIsUnknownAfterBoundedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		d.before = func(context.Context, []string) error { return errStore }
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		a := start(t.Context(), b, "a")
		pass(time.Second)
		if !errors.Is(a.err, pipeline.ErrUnknown) || !errors.Is(a.err, errStore) {
			t.Errorf("got %v, want %v by %v", a.err, pipeline.ErrUnknown, errStore)
		}
		wantCalls(t, d, "a", "a", "a", "a")
		d.before = nil
		start(t.Context(), b, "b").is(t, "b")
	})
}

func TestOneBadCallNeverFailsItsNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, poison := range map[string]func(){
			"error": func() {},
			"panic": func() { panic("a bug") },
		} {
			d := newDouble()
			release := d.held()
			hold := d.before
			d.before = func(ctx context.Context, ids []string) error {
				if slices.Contains(ids, "bad") {
					poison()
					return errStore
				}
				return hold(ctx, ids)
			}
			b := pipeline.NewBatch(d, pipeline.BatchOptions{})
			start(t.Context(), b, "first")
			before, bad, after := start(t.Context(), b, "x"), start(t.Context(), b, "bad"), start(t.Context(), b, "y", "z")
			release()
			pass(time.Second)
			before.is(t, "x")
			after.is(t, "y", "z")
			if !errors.Is(bad.err, pipeline.ErrUnknown) {
				t.Errorf("%s: got %v, want %v", name, bad.err, pipeline.ErrUnknown)
			}
			if n := d.happened(t); n["bad"] != 0 || len(n) != 4 {
				t.Errorf("%s: got %v in the journal", name, n)
			}
		}
	})
}

func TestAStoreThatHangsIsGivenUpAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		d.before = func(ctx context.Context, _ []string) error { <-ctx.Done(); return ctx.Err() }
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		a, c := start(t.Context(), b, "a"), start(t.Context(), b, "c")
		pass(2 * time.Minute)
		for _, got := range []*answer{a, c} {
			if !errors.Is(got.err, pipeline.ErrUnknown) || !errors.Is(got.err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v by %v", got.err, pipeline.ErrUnknown, context.DeadlineExceeded)
			}
		}
	})
}

// short loses one result of every call.
type short struct{ ledger.Applier }

func (s short) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	results, err := s.Applier.Apply(ctx, entries...)
	return results[:len(results)-1], err
}

func TestAnAnswerOfTheWrongLengthIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pipeline.NewBatch(short{newDouble()}, pipeline.BatchOptions{})
		a := start(t.Context(), b, "a")
		pass(time.Second)
		if !errors.Is(a.err, pipeline.ErrUnknown) {
			t.Errorf("got %v, want %v", a.err, pipeline.ErrUnknown)
		}
	})
}
