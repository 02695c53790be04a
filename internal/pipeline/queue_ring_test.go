package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

func put(t *testing.T, log pipeline.Log, partition string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := log.Append(t.Context(), pipeline.Request{Partition: partition, Entry: ledger.Entry{ID: id}}); err != nil {
			t.Errorf("append %s: %v", id, err)
		}
	}
}

// taken takes and returns the claim and its ids.
func taken(t *testing.T, log pipeline.Log, most int) (c pipeline.Claim, ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c, err := log.Take(ctx, most)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("take: %v", err)
	}
	for _, e := range c.Entries {
		ids = append(ids, e.ID)
	}
	return c, ids
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPartitionHasOneClaimAndPartitionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := pipeline.NewRing(pipeline.RingOptions{})
		put(t, log, "p", "p1", "p2", "p3")
		put(t, log, "q", "q1", "q2")
		p, ids := taken(t, log, 2)
		same(t, ids, "p1", "p2")
		put(t, log, "p", "p4")
		q, ids := taken(t, log, 1)
		same(t, ids, "q1")
		_, ids = taken(t, log, 9)
		same(t, ids)
		if err := log.Settle(t.Context(), p, make([]pipeline.Ending, 2)); err != nil {
			t.Errorf("settle: %v", err)
		}
		if err := log.Settle(t.Context(), q, make([]pipeline.Ending, 1)); err != nil {
			t.Errorf("settle: %v", err)
		}
		_, ids = taken(t, log, 9)
		same(t, ids, "p3", "p4")
		_, ids = taken(t, log, 9)
		same(t, ids, "q2")
	})
}

func TestAClaimThatLapsedSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := pipeline.NewRing(pipeline.RingOptions{Lease: time.Second})
		put(t, log, "p", "a", "b")
		stale, _ := taken(t, log, 9)
		pass(time.Second)
		fresh, ids := taken(t, log, 9)
		same(t, ids, "a") // alone: it may be what killed the worker
		if fresh.Fence <= stale.Fence || fresh.Failures != 1 {
			t.Errorf("got %+v after %+v", fresh, stale)
		}
		if err := log.Settle(t.Context(), stale, []pipeline.Ending{{Result: ledger.Result{Code: ledger.Stale}}}); !errors.Is(err, pipeline.ErrClaimLost) {
			t.Errorf("got %v, want %v", err, pipeline.ErrClaimLost)
		}
		if err := log.Settle(t.Context(), fresh, []pipeline.Ending{{Result: ledger.Result{Seq: 7}}}); err != nil {
			t.Errorf("settle: %v", err)
		}
		if err := log.Settle(t.Context(), fresh, nil); !errors.Is(err, pipeline.ErrClaimLost) {
			t.Errorf("settled twice: got %v, want %v", err, pipeline.ErrClaimLost)
		}
		if place, _ := log.Find(t.Context(), "a"); place.State != pipeline.PlaceDecided || place.Result.Seq != 7 {
			t.Errorf("got %+v, want the outcome of the claim that held", place)
		}
		_, ids = taken(t, log, 9)
		same(t, ids, "b")
	})
}

func TestWhatIsLeftOverWaitsInFrontAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := pipeline.NewRing(pipeline.RingOptions{})
		put(t, log, "p", "a", "b", "c", "d")
		c, _ := taken(t, log, 3)
		if err := log.Settle(t.Context(), c, make([]pipeline.Ending, 1)); err != nil {
			t.Errorf("settle: %v", err)
		}
		if place, _ := log.Find(t.Context(), "b"); place.Number != 2 || place.Served != 1 {
			t.Errorf("got %+v, want to be next", place)
		}
		c, ids := taken(t, log, 9)
		same(t, ids, "b")
		if err := log.Settle(t.Context(), c, make([]pipeline.Ending, 1)); err != nil || c.Failures != 1 {
			t.Errorf("settle %+v: %v", c, err)
		}
		c, ids = taken(t, log, 9)
		same(t, ids, "c", "d")
		if err := log.Settle(t.Context(), c, make([]pipeline.Ending, 3)); err == nil {
			t.Errorf("3 endings for 2 entries were taken")
		}
		if b, _ := log.Backlog(t.Context()); b.Waiting != 2 || b.Partitions != 1 {
			t.Errorf("got %+v, want 2 waiting", b)
		}
	})
}

func TestUnitsOfThoseWhoAreServedMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := pipeline.NewRing(pipeline.RingOptions{})
		ask := func(id string, units int64) error {
			_, err := log.Append(t.Context(), pipeline.Request{Partition: "p", Entry: ledger.Entry{ID: id}, Units: units, Most: 5})
			return err
		}
		for id, units := range map[string]int64{"a": 2, "b": 2} {
			if err := ask(id, units); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if err := ask("c", 2); !errors.Is(err, pipeline.ErrSoldOut) {
			t.Errorf("2 more than 4 of 5: got %v, want %v", err, pipeline.ErrSoldOut)
		}
		c, _ := taken(t, log, 1)
		if err := log.Settle(t.Context(), c, make([]pipeline.Ending, 1)); err != nil {
			t.Errorf("settle: %v", err)
		}
		if err := ask("c", 3); err != nil {
			t.Errorf("3 more than 2 of 5: %v", err)
		}
	})
}

func TestATakerThatLeavesLeavesTheOthersAwake(t *testing.T) {
	for range 50 { // most times the first one leaves before it looks
		synctest.Test(t, func(t *testing.T) {
			log := pipeline.NewRing(pipeline.RingOptions{})
			took := make(chan bool, 2)
			wait := func(ctx context.Context) {
				go func() {
					_, err := log.Take(ctx, 1)
					took <- err == nil
				}()
				synctest.Wait()
			}
			leaves, leave := context.WithCancel(t.Context())
			stays, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			wait(leaves)
			wait(stays)
			put(t, log, "p", "a") // wakes the first
			leave()
			if first, second := <-took, <-took; !first && !second {
				t.Errorf("both left, and nobody took what came")
			}
		})
	}
}

// No order of appends, takers that leave, and settlements may leave somebody
// behind whom nobody is told of.
func TestNobodyIsLeftBehindInAStorm(t *testing.T) {
	const writers, each, takers = 8, 500, 6
	log := pipeline.NewRing(pipeline.RingOptions{})
	var wg, working sync.WaitGroup
	stop, cancel := context.WithCancel(t.Context())
	for range takers {
		working.Go(func() {
			for turn := 0; stop.Err() == nil; turn++ {
				ctx, leave := context.WithCancel(stop)
				if turn%3 == 0 {
					go leave() // while it waits, or while it takes
				}
				if c, err := log.Take(ctx, 1+turn%5); err == nil {
					if err := log.Settle(t.Context(), c, make([]pipeline.Ending, 1+turn%len(c.Entries))); err != nil {
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
				put(t, log, fmt.Sprint("p", i%7), id)
				if place, err := log.Wait(t.Context(), id); err != nil || place.State != pipeline.PlaceDecided {
					t.Errorf("wait for %s: got %+v, %v", id, place, err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	working.Wait()
	if b, _ := log.Backlog(t.Context()); b != (pipeline.Backlog{}) {
		t.Errorf("got %+v, want nothing", b)
	}
}
