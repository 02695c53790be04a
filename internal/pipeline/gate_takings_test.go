package pipeline_test

import (
	"context"
	"testing"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

func TestLinesOfOneKeyAreSummedBeforeTheCounterIsAsked(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantRefusedByGate(g, ledger.Entry{ID: "two", Ops: []ledger.Op{buy("two-a", tee, 1), buy("two-b", tee, 1)}})
		s.wantCode(g, order("one", 1), ledger.OK)
	})
}

// What one entry of a call leaves to the next, only the ledger knows.
func TestACallOfSeveralEntriesIsDecidedByTheLedger(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := s.gate()
		s.wantCode(g, order("first", 1), ledger.OK)
		s.wantRefusedByGate(g, order("late", 1))
		results, err := g.Apply(t.Context(), order("a", 1), ledger.Entry{ID: "void", Ops: []ledger.Op{ledger.Void("first")}}, order("b", 1), order("c", 1))
		if err != nil || len(results) != 4 {
			t.Fatalf("got %d results, %v", len(results), err)
		}
		for i, want := range []ledger.Code{ledger.Insufficient, ledger.OK, ledger.OK, ledger.Insufficient} {
			if results[i].Code != want {
				t.Errorf("entry %d: got %+v, want code %q", i, results[i], want)
			}
		}
		if results, err = g.Apply(t.Context(), order("d", 1), order("e", 1)); err != nil || len(results) != 2 {
			t.Errorf("got %d results, %v, want 2 refusals", len(results), err)
		}
		s.wantHeld(1)
	})
}

// Whatever may bring something back is believed at once.
func TestAfterAReturnTheNextOneIsNotRefused(t *testing.T) {
	for name, back := range map[string]ledger.Op{
		"void":        ledger.Void("all"),
		"expire":      ledger.Expire("all"),
		"part commit": ledger.CommitPart("all", 1, false),
		"restock":     ledger.Move(ledger.Posting{From: "@supplier", To: stock, Asset: tee, Amount: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(s *sale) {
				g := s.gate()
				all := order("all", 2)
				all.Ops[0].Until = 1
				s.wantCode(g, all, ledger.OK)
				pass(2 * pipeline.DefaultResync)
				s.wantRefusedByGate(g, order("late", 1))
				s.wantCode(g, ledger.Entry{ID: "back", Ops: []ledger.Op{back}}, ledger.OK)
				s.wantCode(g, order("next", 1), ledger.OK)
			})
		})
	}
}

// An external account has no floor: it never has anything, and gives without end.
func TestExternalAccountsAreNotGuarded(t *testing.T) {
	bubble(t, 1, func(s *sale) {
		g := pipeline.NewGate(s.double, s.store, s.counter, pipeline.GateOptions{Accounts: []ledger.Account{"@supplier"}})
		defer g.Close(context.Background())
		for _, id := range []string{"one", "two", "three", "four"} {
			s.wantCode(g, ledger.Entry{ID: id, Ops: []ledger.Op{
				ledger.Move(ledger.Posting{From: "@supplier", To: "attic", Asset: tee, Amount: 1})}}, ledger.OK)
			pass(recall)
		}
	})
}
