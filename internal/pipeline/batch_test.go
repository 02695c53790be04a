package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// double is an Applier around a Memory that can be held up, and that fails
// before or after the effect as the test says. It notes what it was called with.
type double struct {
	store  *ledger.Memory
	before func(ctx context.Context, ids []string) error // may block, fail, panic
	after  func(ids []string) error

	mu    sync.Mutex
	calls [][]string
}

func newDouble() *double { return &double{store: ledger.NewMemory(time.Now)} }

func (d *double) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	d.mu.Lock()
	d.calls = append(d.calls, ids)
	d.mu.Unlock()
	if d.before != nil {
		if err := d.before(ctx, ids); err != nil {
			return nil, err
		}
	}
	results, err := d.store.Apply(ctx, entries...)
	if d.after != nil && err == nil {
		err = d.after(ids)
	}
	return results, err
}

func (d *double) seen() [][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// held makes d wait in its first call until the test says go.
func (d *double) held() (release func()) {
	gate := make(chan struct{})
	var first sync.Once
	d.before = func(context.Context, []string) error {
		first.Do(func() { <-gate })
		return nil
	}
	return func() { close(gate) }
}

// happened is how often each entry is in the journal.
func (d *double) happened(t *testing.T) map[string]int {
	t.Helper()
	lines, err := d.store.Lines(t.Context(), ledger.LineQuery{})
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, l := range lines {
		n[l.ID]++
	}
	return n
}

func give(id string) ledger.Entry {
	return ledger.Entry{ID: id, Reply: []byte(`"` + id + `"`), Ops: []ledger.Op{
		ledger.Move(ledger.Posting{From: "@supplier", To: "stock", Asset: "sku:tee", Amount: 1})}}
}

// answer is what one Apply came back with.
type answer struct {
	results []ledger.Result
	err     error
}

// start applies entries in a goroutine of its own, and returns when it waits.
func start(ctx context.Context, b *pipeline.Batch, ids ...string) *answer {
	a := &answer{}
	entries := make([]ledger.Entry, len(ids))
	for i, id := range ids {
		entries[i] = give(id)
	}
	go func() { a.results, a.err = b.Apply(ctx, entries...) }()
	synctest.Wait()
	return a
}

func (a *answer) is(t *testing.T, ids ...string) {
	t.Helper()
	if a.err != nil || len(a.results) != len(ids) {
		t.Errorf("got %d results, error %v, want %q", len(a.results), a.err, ids)
		return
	}
	for i, id := range ids {
		if got := string(a.results[i].Reply); got != `"`+id+`"` || a.results[i].Refused() {
			t.Errorf("got answer %s %+v, want that of %q", got, a.results[i], id)
		}
	}
}

func wantCalls(t *testing.T, d *double, want ...string) {
	t.Helper()
	var got []string
	for _, ids := range d.seen() {
		got = append(got, strings.Join(ids, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("inner calls: got %q, want %q", got, want)
	}
}

func TestWhatWaitsIsCommittedTogetherInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		answers := []*answer{start(t.Context(), b, "a"), start(t.Context(), b, "b"),
			start(t.Context(), b, "c1", "c2", "c3"), start(t.Context(), b, "d")}
		release()
		synctest.Wait()
		answers[0].is(t, "a")
		answers[1].is(t, "b")
		answers[2].is(t, "c1", "c2", "c3")
		answers[3].is(t, "d")
		wantCalls(t, d, "a", "b c1 c2 c3 d")
		if batches, entries := b.Stats(); batches != 2 || entries != 6 {
			t.Errorf("stats: got %d batches of %d entries, want 2 of 6", batches, entries)
		}
	})
}

func TestASingleCallerIsNotKeptWaitingForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		began := time.Now()
		start(t.Context(), b, "a").is(t, "a")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v on the bubble's clock, want 0", waited)
		}
	})
}

func TestABatchIsCappedAndACallIsNeverSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{MaxEntries: 3})
		start(t.Context(), b, "a")
		start(t.Context(), b, "b", "c")
		start(t.Context(), b, "d", "e")
		start(t.Context(), b, "f")
		start(t.Context(), b, "1", "2", "3", "4")
		release()
		synctest.Wait()
		wantCalls(t, d, "a", "b c", "d e f", "1 2 3 4")
	})
}

func TestCommittersRunAtOnceUpToTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		gate := make(chan struct{})
		d.before = func(context.Context, []string) error { <-gate; return nil }
		b := pipeline.NewBatch(d, pipeline.BatchOptions{Committers: 2})
		start(t.Context(), b, "a")
		start(t.Context(), b, "b")
		start(t.Context(), b, "c")
		start(t.Context(), b, "d")
		wantCalls(t, d, "a", "b")
		close(gate)
		synctest.Wait()
		wantCalls(t, d, "a", "b", "c d")
	})
}

func TestACallOverTheBoundHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{MaxWaiting: 2})
		start(t.Context(), b, "taken")
		waits := start(t.Context(), b, "w1", "w2", "w3") // nothing waits yet, so even more than the bound may
		over := start(t.Context(), b, "over")
		if !errors.Is(over.err, pipeline.ErrOverloaded) {
			t.Errorf("got %v, want %v", over.err, pipeline.ErrOverloaded)
		}
		release()
		synctest.Wait()
		waits.is(t, "w1", "w2", "w3")
		start(t.Context(), b, "later").is(t, "later")
		if n := d.happened(t); n["over"] != 0 || len(n) != 5 {
			t.Errorf("got %v in the journal, want all but the one over the bound", n)
		}
	})
}

func TestACallThatEndsBeforeItIsTakenHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{MaxWaiting: 2})
		start(t.Context(), b, "taken")
		ctx, cancel := context.WithCancel(t.Context())
		gone := start(ctx, b, "gone")
		stays := start(t.Context(), b, "stays")
		cancel()
		synctest.Wait()
		if !errors.Is(gone.err, pipeline.ErrWithdrawn) || !errors.Is(gone.err, context.Canceled) {
			t.Errorf("got %v, want %v by %v", gone.err, pipeline.ErrWithdrawn, context.Canceled)
		}
		fits := start(t.Context(), b, "fits") // the place in the queue is free again
		if never := start(ctx, b, "never"); !errors.Is(never.err, pipeline.ErrWithdrawn) {
			t.Errorf("with an ended context: got %v, want %v", never.err, pipeline.ErrWithdrawn)
		}
		release()
		synctest.Wait()
		stays.is(t, "stays")
		fits.is(t, "fits")
		if n := d.happened(t); n["gone"]+n["never"] != 0 || len(n) != 3 {
			t.Errorf("got %v in the journal", n)
		}
	})
}

func TestACallThatEndsAfterItIsTakenIsUnknownAndMayHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		taken := start(ctx, b, "taken")
		cancel()
		synctest.Wait()
		if !errors.Is(taken.err, pipeline.ErrUnknown) || errors.Is(taken.err, pipeline.ErrWithdrawn) {
			t.Errorf("got %v, want %v", taken.err, pipeline.ErrUnknown)
		}
		release()
		again := start(t.Context(), b, "taken")
		again.is(t, "taken")
		if !again.results[0].Replayed || d.happened(t)["taken"] != 1 {
			t.Errorf("got %+v and %v in the journal, want a replay of one entry", again.results[0], d.happened(t))
		}
	})
}

func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		release := d.held()
		b := pipeline.NewBatch(d, pipeline.BatchOptions{})
		first, second := start(t.Context(), b, "first"), start(t.Context(), b, "second")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close while the store hangs: got %v, want %v", err, context.DeadlineExceeded)
		}
		if late := start(t.Context(), b, "late"); !errors.Is(late.err, pipeline.ErrClosed) {
			t.Errorf("got %v, want %v", late.err, pipeline.ErrClosed)
		}
		release()
		for range 2 {
			if err := b.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		synctest.Wait()
		first.is(t, "first")
		second.is(t, "second")
		if n := d.happened(t); n["late"] != 0 {
			t.Errorf("a call after Close happened")
		}
	})
}

func TestCloseOfAnIdleBatchReturns(t *testing.T) {
	b := pipeline.NewBatch(newDouble(), pipeline.BatchOptions{})
	if results, err := b.Apply(t.Context()); err != nil || len(results) != 0 {
		t.Errorf("apply of nothing: got %v, %v", results, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestEachOfManyCallersGetsItsOwnAnswer(t *testing.T) {
	d := newDouble()
	b := pipeline.NewBatch(d, pipeline.BatchOptions{MaxEntries: 7, Committers: 2})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for n := range 20 {
				ids := []string{fmt.Sprint(i, "-", n, "x"), fmt.Sprint(i, "-", n, "y")}
				results, err := b.Apply(t.Context(), give(ids[0]), give(ids[1]))
				(&answer{results, err}).is(t, ids...)
			}
		})
	}
	wg.Wait()
	if err := b.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if head, _ := d.store.Head(t.Context()); head.Seq != 32*20*2 {
		t.Errorf("got %d lines, want %d", head.Seq, 32*20*2)
	}
}
