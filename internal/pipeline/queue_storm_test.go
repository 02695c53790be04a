package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Two queues share a log and a store; the store fails before or after its
// effect, and workers die before they settle, both at random. Every buyer asks
// until there is an answer, at one queue or the other.
func TestTwoQueuesOnOneLogSellEachUnitOnce(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const units, buyers = 40, 120
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 1))
			sometimes := func() error {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(5) == 0 {
					return errStore
				}
				return nil
			}
			l := &line{t: t, store: newDouble(), log: pipeline.NewRing(pipeline.LogOptions{MaxWaiting: 100})}
			l.stock("cap", units)
			l.store.before = func(context.Context, []string) error { return sometimes() }
			l.store.after = func([]string) error { return sometimes() }
			var queues []*pipeline.Queue
			for range 2 {
				queues = append(queues, pipeline.NewQueue(l.store, lossy{l.log, func() bool { return sometimes() != nil }},
					pipeline.QueueOptions{MaxBatch: 7, Scale: pipeline.ScaleOptions{Min: 2}}))
			}
			var wg sync.WaitGroup
			sold := make([]bool, buyers)
			for i := range buyers {
				wg.Go(func() {
					for n := i; ; n++ {
						res, err := queues[n%2].Apply(t.Context(), want(fmt.Sprint("b-", i), "cap"))
						if errors.Is(err, pipeline.ErrFull) {
							time.Sleep(100 * time.Millisecond) // on the bubble's clock
							continue
						}
						if err == nil {
							sold[i] = !res[0].Refused()
							return
						}
					}
				})
			}
			wg.Wait()
			for _, q := range queues {
				if err := q.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			happened := l.store.happened(t)
			for i, told := range sold {
				if got := happened[fmt.Sprint("b-", i)]; got > 1 || told != (got == 1) {
					t.Errorf("buyer %d was told %v and is %d times in the journal", i, told, got)
				}
			}
			if len(happened) != units+1 {
				t.Errorf("%d units were sold, want %d", len(happened)-1, units)
			}
			if rep, err := ledger.Verify(t.Context(), l.store.store, nil); err != nil || !rep.OK() {
				t.Errorf("verify: %+v, %v", rep.Problems, err)
			}
		})
	}
}
