package redispipe

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// BenchmarkTakeTogether compares, at 512 callers, scripts that many callers share with a
// script for each, which the client pipelines. They take turns in one run, so that
// whatever else the machine does meets both alike.
func BenchmarkTakeTogether(b *testing.B) {
	url := os.Getenv("HOLDFAST_TEST_REDIS")
	if url == "" {
		b.Skip("HOLDFAST_TEST_REDIS is not set: run scripts/with-services go test -bench")
	}
	r, err := Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	const callers, turns = 512, 10
	c := r.Counter(fmt.Sprint("bench-", time.Now().UnixNano(), ":"), pipeline.CounterOptions{})
	key := ledger.Key{Account: "stock", Asset: "tee"}
	if _, err := c.Set(b.Context(), pipeline.Level{Key: key, Available: 1 << 40, Seq: 1}); err != nil {
		b.Fatal(err)
	}
	var op atomic.Int64
	drive := func(n int, take func(context.Context, ...pipeline.Taking) ([]pipeline.Verdict, error)) time.Duration {
		var left atomic.Int64
		left.Store(int64(n))
		var wg sync.WaitGroup
		began := time.Now()
		for range callers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					id := fmt.Sprint("op-", op.Add(1))
					if _, err := take(b.Context(), pipeline.Taking{Op: id, Firm: true, Wants: []pipeline.Want{{Key: key, Amount: 1}}}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	single := func(ctx context.Context, t ...pipeline.Taking) ([]pipeline.Verdict, error) { return c.takeSlot(ctx, t) }
	var shared, each time.Duration
	b.ResetTimer()
	for range turns {
		each += drive(b.N/turns+1, single)
		shared += drive(b.N/turns+1, c.Take)
	}
	n := float64(b.N/turns+1) * turns
	b.ReportMetric(n/shared.Seconds(), "shared/s")
	b.ReportMetric(n/each.Seconds(), "each/s")
	b.ReportMetric(each.Seconds()/shared.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}
