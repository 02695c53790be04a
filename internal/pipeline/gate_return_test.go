package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestAnEntryOfSeveralKeysTakesAllOrNothing(t *testing.T) {
	bubble(t, 5, func(s *sale) {
		s.supply("mugs", mug, 1)
		gates := s.gates(2)
		a, b := gates[0], gates[1]
		both := func(id string) ledger.Entry {
			return ledger.Entry{ID: id, Ops: []ledger.Op{buy(id+"-t", tee, 1), buy(id+"-m", mug, 1)}}
		}
		s.wantCode(a, both("first"), ledger.OK)
		inner := s.inner()
		for _, g := range gates {
			if res := s.wantCode(g, both("second"), ledger.Insufficient); res.Key.Asset != mug || res.Op != 1 {
				t.Errorf("got %+v, want op 1 refused for a mug", res)
			}
		}
		if s.inner() != inner {
			t.Errorf("the ledger was asked for a mug that is not there")
		}
		for i := range 4 { // the refused ones have taken no tee
			s.wantCode(b, order(fmt.Sprint("tee-", i), 1), ledger.OK)
		}
		s.wantCode(b, order("last", 1), ledger.Insufficient)
		s.wantHeld(5)
	})
}

// The ledger may refuse what the gate let through. The unit must come back, and
// only once, or the counter lets in too many next time.
func TestWhatTheLedgerRefusesIsGivenBackOnce(t *testing.T) {
	bubble(t, 2, func(s *sale) {
		g := s.gate()
		bad := func(id string) ledger.Entry {
			e := order(id, 1)
			e.Ops = append(e.Ops, ledger.Commit("none"))
			return e
		}
		for i := range 20 {
			s.wantCode(g, bad("bad"), ledger.HoldUnknown)
			s.wantCode(g, bad(fmt.Sprint("bad-", i)), ledger.HoldUnknown)
		}
		s.wantCode(g, order("one", 2), ledger.OK)
		s.wantRefusedByGate(g, order("more", 1)) // or the counter has more than the ledger: a taking came back twice
	})
}

func TestAnUnknownOutcomeIsNotGivenBack(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.after = func([]string) error { return errStore } // it happened, and nobody is told
		if _, err := g.Apply(t.Context(), order("quick", 1)); !errors.Is(err, errStore) {
			t.Errorf("got %v, want %v", err, errStore)
		}
		s.after = nil
		s.wantRefusedByGate(g, order("late", 1)) // or the unit of the unknown outcome was offered again
		if res := s.wantCode(g, order("quick", 1), ledger.OK); !res.Replayed {
			t.Errorf("got %+v, want a replay", res)
		}
		s.wantHeld(1)
	})
}

// Nothing is lost for good by an unknown outcome: the ledger says what is left.
func TestAUnitOfAnUnknownOutcomeIsSoldAfterAll(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.double.before = func(context.Context, []string) error { return errStore } // it did not happen
		if _, err := g.Apply(t.Context(), order("quick", 1)); !errors.Is(err, errStore) {
			t.Errorf("got %v, want %v", err, errStore)
		}
		s.double.before = nil
		pass(2 * pipeline.DefaultResync)
		s.wantCode(g, order("next", 1), ledger.OK)
		s.wantHeld(1)
	})
}

// Whoever uses another's id must not give back what the other has taken.
func TestAnIDThatIsReusedGivesNothingBack(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("first", 1), ledger.OK)
		thief := order("first", 1)
		thief.Reply = []byte(`"another body"`)
		s.wantCode(g, thief, ledger.IDReused)
		s.wantRefusedByGate(g, order("late", 1)) // or the unit of the first was offered again
	})
}

// The gate may have read the ledger already when it is told that there is more.
func TestAChangeDuringAResyncIsNotMissed(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("first", 1), ledger.OK)
		s.wantCode(g, order("late", 1), ledger.Insufficient)
		sets, hold := 0, make(chan struct{})
		onSet := func() {
			switch sets++; sets {
			case 1:
				s.supply("more", tee, 1)
				g.Changed(ledger.Key{Account: stock, Asset: tee})
			case 2:
				<-hold // the resync that will see it
			}
		}
		s.counter.onSet.Store(&onSet)
		pass(pipeline.DefaultResync)
		s.wantCode(g, order("second", 1), ledger.OK)
		close(hold)
		s.wantHeld(2)
	})
}

// A process that dies between the counter and the ledger has taken a unit that
// nobody will settle.
func TestTheUnitOfAProcessThatDiedIsSoldToWhoeverComesNext(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		dead := pipeline.Taking{Op: "dead", Firm: true, Wants: []pipeline.Want{{Key: ledger.Key{Account: stock, Asset: tee}, Amount: 1}}}
		if v, err := s.counter.Take(t.Context(), dead); err != nil || v[0].Fate != pipeline.Took {
			t.Fatalf("got %+v, %v, want taken", v, err)
		}
		s.wantCode(g, order("early", 1), ledger.Insufficient)
		pass(2 * pipeline.DefaultResync)
		s.wantCode(g, order("next", 1), ledger.OK)
		s.wantCode(g, order("late", 1), ledger.Insufficient)
		s.wantHeld(1)
	})
}

func TestWhatIsReleasedIsSoldToWhoeverComesNext(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		gates := s.gates(2)
		a, b := gates[0], gates[1]
		s.wantCode(a, order("first", 1), ledger.OK)
		s.wantCode(b, order("late", 1), ledger.Insufficient)
		pass(2 * pipeline.DefaultResync)
		s.wantCode(a, order("late-1", 1), ledger.Insufficient)
		s.wantCode(b, order("late-2", 1), ledger.Insufficient)
		s.wantCode(a, ledger.Entry{ID: "void", Ops: []ledger.Op{ledger.Void("first")}}, ledger.OK)
		synctest.Wait() // the gate that let it through looks at once, not in its turn
		s.wantCode(a, order("second", 1), ledger.OK)
		s.wantRefusedByGate(a, order("late-3", 1))
		s.wantCode(a, ledger.Entry{ID: "void-2", Ops: []ledger.Op{ledger.Void("second")}}, ledger.OK)
		pass(2 * pipeline.DefaultResync) // the other one with its next look
		s.wantCode(b, order("third", 1), ledger.OK)
		s.supply("more", tee, 1) // past both
		b.Changed(ledger.Key{Account: stock, Asset: tee})
		synctest.Wait()
		s.wantCode(b, order("fourth", 1), ledger.OK)
		s.wantRefusedByGate(b, order("late-4", 1))
		s.wantHeld(2)
	})
}

func TestARefusalThatMustBeRememberedIsLeftToTheLedger(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("first", 1), ledger.OK)
		e := order("final", 1)
		e.Remember = true
		if res := s.wantCode(g, e, ledger.Insufficient); res.Seq == 0 {
			t.Errorf("got %+v, want a line of the journal", res)
		}
		s.supply("more", tee, 5)
		if res := s.wantCode(g, e, ledger.Insufficient); !res.Replayed {
			t.Errorf("got %+v, want the remembered refusal", res)
		}
	})
}

// Without a counter the ledger decides, and nobody notices but the clock.
func TestACounterThatIsGoneCostsSpeedOnly(t *testing.T) {
	bubble(t, 3, func(s *sale) {
		g := s.gate()
		s.counter.fail.Store(true)
		s.wantCode(g, order("one", 1), ledger.OK)
		takes := s.counter.takes.Load()
		s.wantCode(g, order("two", 1), ledger.OK)
		s.wantCode(g, order("three", 1), ledger.OK)
		s.wantCode(g, order("four", 1), ledger.Insufficient)
		if n := s.counter.takes.Load() - takes; n != 0 {
			t.Errorf("the counter was asked %d times after it had failed", n)
		}
		s.counter.fail.Store(false)
		pass(2 * pipeline.DefaultResync)
		// It is back, but knows nobody who came meanwhile.
		if res := s.wantCode(g, order("three", 1), ledger.OK); !res.Replayed {
			t.Errorf("got %+v, want a replay", res)
		}
		pass(recall)
		s.wantCode(g, order("five", 1), ledger.Insufficient)
		pass(2 * pipeline.DefaultResync)
		s.wantRefusedByGate(g, order("six", 1)) // or the counter is not trusted again
		s.wantHeld(3)
	})
}

func TestACallThatWasTurnedAwayGivesBackWhatItTook(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.double.before = func(context.Context, []string) error { return fmt.Errorf("busy: %w", pipeline.ErrOverloaded) }
		if _, err := g.Apply(t.Context(), order("early", 1)); !errors.Is(err, pipeline.ErrOverloaded) {
			t.Errorf("got %v, want %v", err, pipeline.ErrOverloaded)
		}
		s.double.before = nil
		s.wantCode(g, order("next", 1), ledger.OK)
		s.wantRefusedByGate(g, order("late", 1)) // or it was given back twice
	})
}

// Operations that nobody sets or repeats must not fill the memory of a process.
func TestACounterThatNobodySetsForgetsAfterTwiceItsMemory(t *testing.T) {
	c := pipeline.NewLocalCounter(pipeline.CounterOptions{MaxMemory: 3})
	take := func(i int) pipeline.Fate {
		v, err := c.Take(t.Context(), pipeline.Taking{Op: fmt.Sprint("op-", i), Wants: []pipeline.Want{{Key: ledger.Key{Account: stock, Asset: tee}, Amount: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return v[0].Fate
	}
	for i := range 6 {
		take(i)
	}
	if got := take(0); got != pipeline.Repeated {
		t.Errorf("got %v for one of six, want a repeat", got)
	}
	take(6)
	if got := take(0); got == pipeline.Repeated {
		t.Errorf("it remembers more than six")
	}
}
