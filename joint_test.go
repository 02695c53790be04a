package holdfast

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A read that has begun may miss what was written since: only the next one is
// shared, and it is one for all.
func TestCallersShareAReadThatBeginsAfterTheyAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f joint[int64]
		var reads, written atomic.Int64
		read := func(context.Context) (int64, error) {
			reads.Add(1)
			seen := written.Load()
			time.Sleep(time.Second) // the answer is on its way
			return seen, nil
		}
		ask := func(want int64) {
			if got, err := f.get(t.Context(), "hot", read); got != want || err != nil {
				t.Errorf("got %d, %v, want %d", got, err, want)
			}
		}
		go ask(0)
		synctest.Wait()
		written.Store(1)
		for range 50 {
			go ask(1)
		}
		synctest.Wait()
		if got := reads.Load(); got != 1 {
			t.Errorf("%d reads are under way, want 1", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := reads.Load(); got != 2 || len(f.last) != 0 {
			t.Errorf("got %d reads and %d keys kept, want 2 and none", got, len(f.last))
		}
	})
}

func TestACallerWhoLeavesTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f joint[int]
		ctx, leave := context.WithCancel(t.Context())
		read := func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			return 7, ctx.Err()
		}
		go func() { _, _ = f.get(t.Context(), "k", read) }() // what comes now waits for it
		synctest.Wait()
		go func() { _, _ = f.get(ctx, "k", read) }() // reads for all that come now
		synctest.Wait()
		go func() {
			if _, err := f.get(ctx, "k", read); !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v", err)
			}
		}()
		go func() {
			if got, err := f.get(t.Context(), "k", read); got != 7 || err != nil {
				t.Errorf("who stayed got %d, %v, want 7", got, err)
			}
		}()
		synctest.Wait()
		leave()
		time.Sleep(3 * time.Second)
	})
}

func TestAReadThatPanicsIsAnErrorForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f joint[int]
		gone := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			panic("gone")
		}
		ask := func() { defer func() { _ = recover() }(); _, _ = f.get(t.Context(), "k", gone) }
		go ask()
		synctest.Wait()
		go ask()
		synctest.Wait()
		if _, err := f.get(t.Context(), "k", gone); !errors.Is(err, errUnread) {
			t.Errorf("got %v, want %v", err, errUnread)
		}
	})
}
