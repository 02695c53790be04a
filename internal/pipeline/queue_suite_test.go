package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

// everything makes every single entry wait, whatever it asks for.
func everything(ledger.Entry) string { return "all" }

// TestAQueueChangesNoRule runs the suite of every Applier over a Queue.
func TestAQueueChangesNoRule(t *testing.T) {
	for name, o := range map[string]pipeline.QueueOptions{
		"Default":    {},
		"AllWaits":   {Partition: everything},
		"OneAtATime": {Partition: everything, MaxBatch: 1, Scale: pipeline.ScaleOptions{Min: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store {
				store := ledger.NewMemory(clock)
				batch := pipeline.NewBatch(store, pipeline.BatchOptions{})
				q := pipeline.NewQueue(batch, pipeline.NewRing(pipeline.LogOptions{}), o)
				t.Cleanup(func() {
					for _, stage := range []interface{ Close(context.Context) error }{q, batch} {
						if err := stage.Close(context.Background()); err != nil {
							t.Errorf("close: %v", err)
						}
					}
				})
				return struct {
					ledger.Applier
					ledger.Reader
				}{q, store}
			})
		})
	}
}
