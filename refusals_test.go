package holdfast

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// elsewhereCounter and elsewhereLog stand for those of another machine: every
// call of theirs is a trip.
type elsewhereCounter struct {
	pipeline.Counter
	trips *atomic.Int64
}

func (c elsewhereCounter) Take(ctx context.Context, t ...pipeline.Taking) ([]pipeline.Verdict, error) {
	c.trips.Add(1)
	return c.Counter.Take(ctx, t...)
}

func (c elsewhereCounter) Give(ctx context.Context, op string, keys []ledger.Key) error {
	c.trips.Add(1)
	return c.Counter.Give(ctx, op, keys)
}

func (c elsewhereCounter) Settle(ctx context.Context, s ...pipeline.Settlement) error {
	c.trips.Add(1)
	return c.Counter.Settle(ctx, s...)
}

func (c elsewhereCounter) Set(ctx context.Context, l ...pipeline.Level) ([]pipeline.Left, error) {
	c.trips.Add(1)
	return c.Counter.Set(ctx, l...)
}

func (c elsewhereCounter) Taken(ctx context.Context, key ledger.Key, after int64) ([]string, int64, bool, error) {
	c.trips.Add(1)
	return c.Counter.Taken(ctx, key, after)
}

type elsewhereLog struct {
	pipeline.Log
	trips *atomic.Int64
}

func (l elsewhereLog) Append(ctx context.Context, r pipeline.Request) (pipeline.Place, error) {
	l.trips.Add(1)
	return l.Log.Append(ctx, r)
}

func (l elsewhereLog) Find(ctx context.Context, id string) (pipeline.Place, error) {
	l.trips.Add(1)
	return l.Log.Find(ctx, id)
}

func (l elsewhereLog) Wait(ctx context.Context, id string) (pipeline.Place, error) {
	l.trips.Add(1)
	return l.Log.Wait(ctx, id)
}

// elsewhere puts a line and a gate around the store whose memory is on another
// machine.
func (b *bench) elsewhere() (trips *atomic.Int64) {
	trips = &atomic.Int64{}
	b.queue = pipeline.NewQueue(b.applier, elsewhereLog{pipeline.NewRing(pipeline.LogOptions{}), trips}, pipeline.QueueOptions{})
	counter := elsewhereCounter{pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: time.Millisecond}), trips}
	b.gate = pipeline.NewGate(b.queue, b.store, counter, pipeline.GateOptions{Accounts: []ledger.Account{flow.Stock}})
	b.applier = b.gate
	b.stages = append(b.stages, b.queue, b.gate)
	return trips
}

func TestSoldOutCostsNoTripToAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, gw: newTill(), url: "sqlite:" + t.TempDir() + "/t.db"}
		b.Holdfast = b.open(func(o *Options) { o.Clock = nil })
		defer b.Close(context.Background())
		trips := b.elsewhere()
		b.item("tee", 1)
		time.Sleep(time.Minute)
		ask := func(key string) (Ticket, error) { return b.PlaceQueued(t.Context(), keyed(key), tees(1), time.Second) }
		sold, err := ask("buyer")
		if err != nil || sold.State != TicketHeld || trips.Load() == 0 {
			t.Fatalf("got %+v, %v after %d trips", sold, err, trips.Load())
		}
		late := func(key string) {
			if _, err := ask(key); code(err) != CodeSoldOut {
				t.Fatalf("%s: got %v, want %s", key, err, CodeSoldOut)
			}
		}
		for i := range 5 {
			late(fmt.Sprint("early-", i))
			time.Sleep(150 * time.Millisecond)
		}
		late("early")
		before, queries := trips.Load(), b.Stats().Queries
		for i := range 1000 {
			late(fmt.Sprint("late-", i))
		}
		if n := trips.Load() - before; n != 0 {
			t.Errorf("1000 answers cost %d trips, want none", n)
		}
		if n := b.Stats().Queries - queries; n != 0 {
			t.Errorf("1000 answers cost %d queries, want none", n)
		}
		again, err := ask("buyer")
		if err != nil || !again.Replayed || again.Order.ID != sold.Order.ID {
			t.Errorf("the buyer asked again: got %+v, %v", again, err)
		}
	})
}
