package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestTheLastUnitsGoToExactlyAsManyThroughTwoGates(t *testing.T) {
	bubble(t, 5, func(s *sale) {
		gates := s.gates(2)
		before := s.inner()
		var sold, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				switch res := s.ask(gates[i%2], order(fmt.Sprint("buyer-", i), 1)); res.Code {
				case ledger.OK:
					sold.Add(1)
				case ledger.Insufficient:
					refused.Add(1)
					if res.Key != (ledger.Key{Account: stock, Asset: tee}) || res.Available != 0 || res.At == 0 {
						t.Errorf("refused with %+v", res)
					}
				}
			})
		}
		wg.Wait()
		if sold.Load() != 5 || refused.Load() != 35 {
			t.Errorf("sold %d and refused %d, want 5 and 35", sold.Load(), refused.Load())
		}
		if n := s.inner() - before; n != 5 {
			t.Errorf("the ledger was asked %d times, want 5", n)
		}
		s.wantHeld(5)
	})
}

// A counter that is lessened before it looks who is asking loses a unit with
// every repeat, and the sale ends with stock left.
func TestRepeatsTakeOneUnit(t *testing.T) {
	bubble(t, 3, func(s *sale) {
		gates := s.gates(2)
		a, b := gates[0], gates[1]
		for range 10 {
			s.wantCode(a, order("eager", 1), ledger.OK)
			s.wantCode(b, order("eager", 1), ledger.OK)
		}
		s.wantCode(a, order("second", 1), ledger.OK)
		s.wantCode(b, order("third", 1), ledger.OK)
		s.wantCode(a, order("fourth", 1), ledger.Insufficient)
		s.wantHeld(3)
	})
}

// A counter that looks at the stock before it looks who is asking tells the
// buyer of the last unit that there is none.
func TestTheBuyerOfTheLastUnitMayAskAgain(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		gates := s.gates(2)
		a, b := gates[0], gates[1]
		s.wantCode(a, order("quick", 1), ledger.OK)
		for i := range 3 { // the second and third time, both gates know that nothing is left
			for _, g := range gates {
				if res := s.wantCode(g, order("quick", 1), ledger.OK); !res.Replayed {
					t.Errorf("got %+v, want a replay", res)
				}
				s.wantCode(g, order(fmt.Sprint("late-", i), 1), ledger.Insufficient)
			}
			pass(2 * pipeline.DefaultResync)
		}
		if a.Stats().SoldOut == 0 || b.Stats().SoldOut == 0 {
			t.Errorf("got %+v and %+v, want refusals without the counter", a.Stats(), b.Stats())
		}
		s.wantHeld(1)
	})
}

func TestSoldOutCostsNeitherCounterNorLedger(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("quick", 1), ledger.OK)
		s.wantCode(g, order("slow", 1), ledger.Insufficient)
		pass(2 * pipeline.DefaultResync)
		inner, takes := s.inner(), s.counter.takes.Load()
		for i := range 1000 {
			s.wantCode(g, order(fmt.Sprint("late-", i), 1), ledger.Insufficient)
			if i%100 == 0 {
				pass(pipeline.DefaultResync)
			}
		}
		if s.inner() != inner || s.counter.takes.Load() != takes {
			t.Errorf("the ledger was asked %d times and the counter %d times, want 0 and 0", s.inner()-inner, s.counter.takes.Load()-takes)
		}
	})
}

// What comes back while buyers are on their way between the counter and the
// ledger must not be counted twice: a counter that is simply set to what the
// ledger has free would admit them all again.
func TestARebuildAdmitsNobodyForUnitsThatAreOnTheirWay(t *testing.T) {
	bubble(t, 10, func(s *sale) {
		g := s.gate()
		gate := make(chan struct{})
		s.before = func(context.Context, []string) error { <-gate; return nil }
		before := s.inner()
		var sold, refused, away, late atomic.Int64
		var wg sync.WaitGroup
		buyer := func(i int) {
			res, err := g.Apply(t.Context(), order(fmt.Sprint("buyer-", i), 1))
			switch {
			case errors.Is(err, pipeline.ErrOverloaded):
				away.Add(1)
				late.Store(int64(i))
			case err != nil:
				t.Errorf("buyer %d: %v", i, err)
			case res[0].Code == ledger.OK:
				sold.Add(1)
			case res[0].Code == ledger.Insufficient:
				refused.Add(1)
			}
		}
		for i := range 10 {
			wg.Go(func() { buyer(i) })
		}
		synctest.Wait()
		for i := range 500 {
			wg.Go(func() { buyer(100 + i) })
			if i%100 == 0 {
				pass(pipeline.DefaultResync)
			}
		}
		synctest.Wait()
		const doubtful = 32 // are let through at once, for the ledger to decide
		if n := s.inner() - before; n > 10+doubtful {
			t.Errorf("%d were let through to 10 units, want at most %d more", n, doubtful)
		}
		close(gate)
		wg.Wait()
		if sold.Load() != 10 || sold.Load()+refused.Load()+away.Load() != 510 {
			t.Errorf("sold %d, refused %d, turned away %d", sold.Load(), refused.Load(), away.Load())
		}
		pass(2 * pipeline.DefaultResync)
		s.wantCode(g, order("next", 1), ledger.Insufficient)
		s.wantRefusedByGate(g, order(fmt.Sprint("buyer-", late.Load()), 1)) // he was turned away, and is no repeat
		s.wantHeld(10)
	})
}

// What is known to be sold must not be in doubt: too many would be turned away.
func TestWhatIsSettledIsNotDoubted(t *testing.T) {
	const units = 80
	bubble(t, units, func(s *sale) {
		g := s.gate()
		for i := range units / 2 {
			s.wantCode(g, order(fmt.Sprint("early-", i), 1), ledger.OK)
		}
		pass(2 * pipeline.DefaultResync)
		slow := make(chan struct{})
		s.before = func(context.Context, []string) error { <-slow; return nil }
		var wg sync.WaitGroup
		for i := range units / 2 {
			wg.Go(func() { s.wantCode(g, order(fmt.Sprint("late-", i), 1), ledger.OK) })
		}
		synctest.Wait()
		close(slow)
		wg.Wait()
		s.wantHeld(units)
	})
}
