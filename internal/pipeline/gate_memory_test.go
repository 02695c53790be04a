package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// alone is a gate whose counter no other gate has.
func alone(t *testing.T, units int64, tell func(s *sale, g *pipeline.Gate)) {
	synctest.Test(t, func(t *testing.T) {
		s := openSale(t, units)
		g := pipeline.NewGate(s.double, s.store, pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: time.Millisecond}),
			pipeline.GateOptions{Accounts: []ledger.Account{stock}})
		defer g.Close(context.Background())
		pass(time.Minute)
		tell(s, g)
	})
}

func (s *sale) wantMemory(g *pipeline.Gate, least, most time.Duration) {
	s.Helper()
	if got := g.Remembers(ledger.Key{Account: stock, Asset: tee}); got < least || got > most {
		s.Errorf("the memory reaches back %v, want %v to %v", got, least, most)
	}
}

// storm asks for what is sold out until the gate knows.
func (s *sale) storm(g *pipeline.Gate, name string) {
	s.Helper()
	for i := range 5 {
		s.wantCode(g, order(fmt.Sprint(name, i), 1), ledger.Insufficient)
		pass(pipeline.DefaultResync)
	}
}

// sellOut sells the only unit.
func (s *sale) sellOut(g *pipeline.Gate) {
	s.Helper()
	s.wantCode(g, order("first", 1), ledger.OK)
	s.storm(g, "late-")
	s.wantMemory(g, time.Minute, time.Minute+time.Second)
}

func TestAGateThatWritesAloneRemembersSinceItWasMade(t *testing.T) {
	alone(t, 1, func(s *sale, g *pipeline.Gate) {
		s.wantMemory(g, 0, 0) // it has not looked
		s.sellOut(g)
		pass(5 * time.Minute)
		s.storm(g, "later-")
		s.wantMemory(g, 2*time.Minute, 2*time.Minute+time.Second) // the counter forgets what is older
	})
}

// A process that starts on a store that was left alone for a while knows as much
// as one that was there: nothing was accepted meanwhile.
func TestAGateRemembersSinceTheStoreWasLastWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSale(t, 1)
		pass(90 * time.Second)
		g := pipeline.NewGate(s.double, s.store, pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: time.Millisecond}),
			pipeline.GateOptions{Accounts: []ledger.Account{stock}})
		defer g.Close(context.Background())
		pass(time.Millisecond)
		s.wantCode(g, order("first", 1), ledger.OK)
		s.storm(g, "late-")
		s.wantMemory(g, 90*time.Second, 91*time.Second)
	})
}

func TestAGateBelievesItsMemoryOnlyWhileNobodyElseWrites(t *testing.T) {
	alone(t, 1, func(s *sale, g *pipeline.Gate) {
		s.sellOut(g)
		if res, err := s.store.Apply(s.Context(), ledger.Entry{ID: "of another process"}); err != nil || res[0].Refused() {
			t.Fatal(res, err)
		}
		s.wantCode(g, order("late", 1), ledger.Insufficient)
		pass(2 * pipeline.DefaultResync)
		s.wantMemory(g, 0, time.Second)
		pass(time.Minute)
		s.storm(g, "later-")
		s.wantMemory(g, time.Minute, time.Minute+2*time.Second)
	})
}

func TestAGateWithoutItsCounterRemembersNothing(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("first", 1), ledger.OK)
		s.storm(g, "late-")
		s.wantMemory(g, time.Second, time.Minute)
		s.counter.fail.Store(true)
		pass(time.Second)
		s.ask(g, order("blind", 1))
		s.wantMemory(g, 0, 0)
		s.counter.fail.Store(false)
		pass(time.Second)
		s.storm(g, "later-")
		s.wantMemory(g, 0, 2*time.Second) // there is a gap in it
	})
}
