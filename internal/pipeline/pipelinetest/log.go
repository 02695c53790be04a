// Package pipelinetest holds the implementations of pipeline's interfaces to what
// they promise.
package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

const (
	patience   = 20 * time.Second       // for what must happen
	impatience = 100 * time.Millisecond // for what must not
	shortLease = 50 * time.Millisecond
)

// Log runs the suite of every pipeline.Log. make makes an empty one.
func Log(t *testing.T, make func(t *testing.T, o pipeline.LogOptions) pipeline.Log) {
	for name, check := range map[string]func(t *testing.T, l line){
		"APartitionHasOneClaimAndPartitionsTakeTurns": turns,
		"WhatIsLeftOverWaitsInFrontAgain":             leftOver,
		"UnitsOfThoseWhoAreServedMakeRoom":            units,
		"ARepeatGetsThePlaceOfTheFirst":               repeats,
		"WhoWasRefusedMayComeAgain":                   comeAgain,
		"WhatWasGivenUpIsNotKnown":                    gaveUp,
		"AnEntryAndItsResultStayAsTheyAre":            unchanged,
		"WhoWaitsIsToldTheOutcome":                    told,
		"NobodyIsLeftBehindInAStorm":                  storm,
	} {
		t.Run(name, func(t *testing.T) { check(t, line{t, make(t, pipeline.LogOptions{})}) })
	}
	t.Run("AClaimThatLapsedSettlesNothing", func(t *testing.T) {
		lapsed(t, line{t, make(t, pipeline.LogOptions{Lease: shortLease})})
	})
	t.Run("AFullLineTurnsAwayButNoRepeat", func(t *testing.T) {
		full(t, line{t, make(t, pipeline.LogOptions{MaxWaiting: 2})})
	})
	t.Run("TheLastThatWereDecidedAreRemembered", func(t *testing.T) {
		keeps(t, line{t, make(t, pipeline.LogOptions{Keep: 2})})
	})
}

// line is a Log in a test.
type line struct {
	*testing.T
	pipeline.Log
}

func (l line) put(partition string, ids ...string) {
	l.Helper()
	for _, id := range ids {
		if _, err := l.Append(l.Context(), pipeline.Request{Partition: partition, Entry: ledger.Entry{ID: id}}); err != nil {
			l.Errorf("append %s: %v", id, err)
		}
	}
}

// take takes within d, and asserts the ids.
func (l line) take(d time.Duration, most int, want ...string) pipeline.Claim {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), d)
	defer cancel()
	c, err := l.Take(ctx, most)
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || len(want) > 0) {
		l.Errorf("take: %v", err)
	}
	var got []string
	for _, e := range c.Entries {
		got = append(got, e.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.Errorf("took %q, want %q", got, want)
	}
	return c
}

func (l line) settle(c pipeline.Claim, endings ...pipeline.Ending) {
	l.Helper()
	if err := l.Settle(l.Context(), c, endings); err != nil {
		l.Errorf("settle: %v", err)
	}
}

// ok are n endings that went well.
func ok(n int) []pipeline.Ending { return make([]pipeline.Ending, n) }

func (l line) is(id string, want pipeline.PlaceState) pipeline.Place {
	l.Helper()
	p, err := l.Find(l.Context(), id)
	if err != nil || p.State != want {
		l.Errorf("find %s: got %+v, %v, want state %d", id, p, err, want)
	}
	return p
}

func (l line) waiting(entries, partitions int64) {
	l.Helper()
	b, err := l.Backlog(l.Context())
	if err != nil || b.Waiting != entries || b.Partitions != partitions || b.Oldest > patience || (entries == 0 && b.Oldest != 0) {
		l.Errorf("got %+v, %v, want %d in %d partitions", b, err, entries, partitions)
	}
}

func turns(t *testing.T, l line) {
	l.put("p", "p1", "p2", "p3")
	l.put("q", "q1", "q2")
	p := l.take(patience, 2, "p1", "p2")
	l.put("p", "p4")
	q := l.take(patience, 1, "q1")
	if q.Fence <= p.Fence || p.Partition != "p" || q.Partition != "q" {
		t.Errorf("got %+v, then %+v", p, q)
	}
	l.take(impatience, 9)
	l.settle(p, ok(2)...)
	l.settle(q, ok(1)...)
	l.take(patience, 9, "p3", "p4")
	l.take(patience, 9, "q2")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := l.Take(ended, 1); err == nil {
		t.Errorf("with an ended context: got %+v", c)
	}
}

func lapsed(t *testing.T, l line) {
	l.put("p", "a", "b")
	stale := l.take(patience, 9, "a", "b")
	fresh := l.take(patience, 9, "a") // alone: it may be what killed the worker
	if fresh.Fence <= stale.Fence || fresh.Failures != 1 {
		t.Errorf("got %+v after %+v", fresh, stale)
	}
	if err := l.Settle(t.Context(), stale, []pipeline.Ending{{Result: ledger.Result{Code: ledger.Stale}}}); !errors.Is(err, pipeline.ErrClaimLost) {
		t.Errorf("got %v, want %v", err, pipeline.ErrClaimLost)
	}
	l.settle(fresh, pipeline.Ending{Result: ledger.Result{Seq: 7}})
	if err := l.Settle(t.Context(), fresh, nil); !errors.Is(err, pipeline.ErrClaimLost) {
		t.Errorf("settled twice: got %v, want %v", err, pipeline.ErrClaimLost)
	}
	if place := l.is("a", pipeline.PlaceDecided); place.Result.Seq != 7 {
		t.Errorf("got %+v, want the outcome of the claim that held", place)
	}
	l.take(patience, 9, "b")
}

func leftOver(t *testing.T, l line) {
	l.put("p", "a", "b", "c", "d")
	c := l.take(patience, 3, "a", "b", "c")
	l.settle(c, ok(1)...)
	if place := l.is("b", pipeline.PlaceWaiting); place.Number != 2 || place.Served != 1 {
		t.Errorf("got %+v, want to be next", place)
	}
	if c = l.take(patience, 9, "b"); c.Failures != 1 {
		t.Errorf("got %+v, want one failure", c)
	}
	l.settle(c, ok(1)...)
	c = l.take(patience, 9, "c", "d")
	if err := l.Settle(t.Context(), c, ok(3)); err == nil || c.Failures != 0 {
		t.Errorf("3 endings for 2 entries were taken: %+v", c)
	}
	l.waiting(2, 1)
}

func units(t *testing.T, l line) {
	ask := func(id string, units int64) error {
		_, err := l.Append(t.Context(), pipeline.Request{Partition: "p", Entry: ledger.Entry{ID: id}, Units: units, Most: 5})
		return err
	}
	for _, id := range []string{"a", "b"} {
		if err := ask(id, 2); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := ask("c", 2); !errors.Is(err, pipeline.ErrSoldOut) {
		t.Errorf("2 more than 4 of 5: got %v, want %v", err, pipeline.ErrSoldOut)
	}
	l.is("c", pipeline.PlaceUnknown)
	l.settle(l.take(patience, 1, "a"), ok(1)...)
	if err := ask("c", 3); err != nil {
		t.Errorf("3 more than 2 of 5: %v", err)
	}
}

func full(t *testing.T, l line) {
	l.put("p", "a")
	l.put("q", "b")
	if _, err := l.Append(t.Context(), pipeline.Request{Partition: "r", Entry: ledger.Entry{ID: "c"}}); !errors.Is(err, pipeline.ErrFull) {
		t.Errorf("got %v, want %v", err, pipeline.ErrFull)
	}
	l.put("p", "a")
	l.waiting(2, 2)
}

func repeats(t *testing.T, l line) {
	l.put("p", "x")
	r := pipeline.Request{Partition: "p", Entry: ledger.Entry{ID: "a"}, Print: ledger.Hash{1}}
	first, err := l.Append(t.Context(), r)
	if err != nil || first.Repeat || first.Number != 2 || first.Partition != "p" || first.Partitions != 1 {
		t.Errorf("got %+v, %v", first, err)
	}
	again, err := l.Append(t.Context(), r)
	if err != nil || !again.Repeat || again.State != pipeline.PlaceWaiting || again.Number != 2 {
		t.Errorf("again: got %+v, %v", again, err)
	}
	other := r
	other.Print, other.Partition = ledger.Hash{2}, "q"
	if _, err := l.Append(t.Context(), other); !errors.Is(err, pipeline.ErrReused) {
		t.Errorf("another entry: got %v, want %v", err, pipeline.ErrReused)
	}
	l.settle(l.take(patience, 9, "x", "a"), ok(2)...)
	if again, err = l.Append(t.Context(), r); err != nil || !again.Repeat || again.State != pipeline.PlaceDecided {
		t.Errorf("after its decision: got %+v, %v", again, err)
	}
	if _, err := l.Append(t.Context(), other); !errors.Is(err, pipeline.ErrReused) {
		t.Errorf("another entry, after the decision: got %v, want %v", err, pipeline.ErrReused)
	}
	l.waiting(0, 0)
}

func comeAgain(t *testing.T, l line) {
	refused := pipeline.Ending{Result: ledger.Result{Code: ledger.Insufficient}}
	remembered := pipeline.Ending{Result: ledger.Result{Code: ledger.Insufficient, Seq: 3}}
	l.put("p", "a", "b")
	l.settle(l.take(patience, 9, "a", "b"), refused, remembered)
	l.is("a", pipeline.PlaceDecided)
	l.put("p", "a", "b")
	l.is("a", pipeline.PlaceWaiting)
	if place := l.is("b", pipeline.PlaceDecided); place.Result.Code != ledger.Insufficient {
		t.Errorf("got %+v, want the refusal", place)
	}
	l.settle(l.take(patience, 9, "a"), ok(1)...)
	if place := l.is("a", pipeline.PlaceDecided); place.Result.Refused() {
		t.Errorf("got %+v", place)
	}
}

func gaveUp(_ *testing.T, l line) {
	l.put("p", "a", "b")
	l.settle(l.take(patience, 1, "a"), pipeline.Ending{GaveUp: true})
	l.is("a", pipeline.PlaceUnknown)
	l.put("p", "a")
	l.take(patience, 9, "b", "a")
}

func keeps(_ *testing.T, l line) {
	refused := pipeline.Ending{Result: ledger.Result{Code: ledger.Insufficient}}
	l.put("p", "a")
	l.settle(l.take(patience, 1, "a"), refused)
	l.put("p", "a", "e") // a anew, which its old refusal must not make unknown
	first := l.take(patience, 1, "a")
	l.put("q", "b", "c", "d")
	l.settle(l.take(patience, 2, "b", "c"), ok(2)...)
	l.is("a", pipeline.PlaceWaiting)
	l.settle(first, ok(1)...)
	for id, want := range map[string]pipeline.PlaceState{"b": pipeline.PlaceUnknown, "c": pipeline.PlaceDecided,
		"a": pipeline.PlaceDecided, "d": pipeline.PlaceWaiting, "e": pipeline.PlaceWaiting, "f": pipeline.PlaceUnknown} {
		l.is(id, want)
	}
}

func unchanged(t *testing.T, l line) {
	e := ledger.Entry{ID: "a <&> \u2028 \"", Fingerprint: []byte{0, 255}, Remember: true, Reply: []byte(`{"a":"<&>\u00e9é"}`),
		Ops:     []ledger.Op{ledger.Reserve("h", ledger.Posting{From: "stock", To: "sold", Asset: "sku:{tee}", Amount: ledger.MaxAmount}, 1, 2)},
		Records: []ledger.Record{{Kind: "order", ID: "o", Version: 1, Body: []byte(`{"x":"<"}`)}}, Events: []ledger.Event{{Type: "t", Subject: "s"}}}
	partition := "stock sku:{tee} 它"
	if _, err := l.Append(t.Context(), pipeline.Request{Partition: partition, Entry: e}); err != nil {
		t.Errorf("append: %v", err)
	}
	c := l.take(patience, 1, e.ID)
	if len(c.Entries) != 1 || !reflect.DeepEqual(c.Entries[0], e) || c.Partition != partition {
		t.Errorf("got %+v, want %+v", c, e)
	}
	want := ledger.Result{Seq: 1 << 50, At: 9, Replayed: true, Reply: []byte(`{ "a": "<" }`), Code: ledger.Insufficient, Op: 2,
		Key: ledger.Key{Account: "stock", Asset: "sku:{tee}"}, Available: 3}
	l.settle(c, pipeline.Ending{Result: want})
	if place := l.is(e.ID, pipeline.PlaceDecided); !reflect.DeepEqual(place.Result, want) || place.Partition != partition {
		t.Errorf("got %+v, want %+v", place, want)
	}
}

func told(t *testing.T, l line) {
	if place, err := l.Wait(t.Context(), "nobody"); err != nil || place.State != pipeline.PlaceUnknown {
		t.Errorf("wait for nobody: got %+v, %v", place, err)
	}
	l.put("p", "a", "b")
	c := l.take(patience, 1, "a")
	leaves, cancel := context.WithTimeout(t.Context(), impatience)
	defer cancel()
	if place, err := l.Wait(leaves, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it waits: got %+v, %v", place, err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if place, err := l.Wait(t.Context(), "a"); err != nil || place.Result.Seq != 5 {
				t.Errorf("got %+v, %v, want the outcome", place, err)
			}
		})
	}
	l.settle(c, pipeline.Ending{Result: ledger.Result{Seq: 5}})
	wg.Wait()
	if place, err := l.Wait(t.Context(), "a"); err != nil || place.Result.Seq != 5 {
		t.Errorf("afterwards: got %+v, %v", place, err)
	}
}

// No order of appends, takers that leave, and settlements may leave somebody
// behind whom nobody is told of.
func storm(t *testing.T, l line) {
	const writers, each, takers = 8, 150, 6
	var wg, working sync.WaitGroup
	stop, cancel := context.WithCancel(t.Context())
	for range takers {
		working.Go(func() {
			for turn := 0; stop.Err() == nil; turn++ {
				ctx, leave := context.WithCancel(stop)
				if turn%3 == 0 {
					go leave() // while it waits, or while it takes
				}
				if c, err := l.Take(ctx, 1+turn%5); err == nil {
					if err := l.Settle(t.Context(), c, ok(1+turn%len(c.Entries))); err != nil {
						t.Errorf("settle: %v", err)
					}
				}
				leave()
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprint(w, "-", i)
				l.put(fmt.Sprint("p", i%7), id)
				if place, err := l.Wait(t.Context(), id); err != nil || place.State != pipeline.PlaceDecided {
					t.Errorf("wait for %s: got %+v, %v", id, place, err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	working.Wait()
	l.waiting(0, 0)
}
