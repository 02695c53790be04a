package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/pipeline/pipelinetest"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestARingKeepsWhatALogPromises(t *testing.T) {
	pipelinetest.Log(t, func(_ *testing.T, o pipeline.LogOptions) pipeline.Log { return pipeline.NewRing(o) })
}

func TestATakerThatLeavesLeavesTheOthersAwake(t *testing.T) {
	for range 50 { // most times the first one leaves before it looks
		synctest.Test(t, func(t *testing.T) {
			log := pipeline.NewRing(pipeline.LogOptions{})
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
			if _, err := log.Append(t.Context(), pipeline.Request{Partition: "p", Entry: ledger.Entry{ID: "a"}}); err != nil { // wakes the first
				t.Errorf("append: %v", err)
			}
			leave()
			if first, second := <-took, <-took; !first && !second {
				t.Errorf("both left, and nobody took what came")
			}
		})
	}
}
