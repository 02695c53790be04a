package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

const (
	stock = ledger.Account("stock")
	tee   = ledger.Asset("sku:tee")
	mug   = ledger.Asset("sku:mug")
)

const recall = time.Second // of the counters in these tests

// sale is a shop behind gates, on the clock of a synctest bubble.
type sale struct {
	*testing.T
	*double // the ledger, and what it was called with
	counter *watched
}

// watched is a Counter that counts its calls and fails as the test says.
type watched struct {
	pipeline.Counter
	fail  atomic.Bool
	onSet atomic.Pointer[func()] // called before each Set
	takes atomic.Int64
	gives atomic.Int64
}

var errCounter = errors.New("the counter is gone")

func (w *watched) Take(ctx context.Context, t ...pipeline.Taking) ([]pipeline.Verdict, error) {
	w.takes.Add(1)
	if w.fail.Load() {
		return nil, errCounter
	}
	return w.Counter.Take(ctx, t...)
}

func (w *watched) Give(ctx context.Context, op string, keys []ledger.Key) error {
	w.gives.Add(1)
	if w.fail.Load() {
		return errCounter
	}
	return w.Counter.Give(ctx, op, keys)
}

func (w *watched) Set(ctx context.Context, l ...pipeline.Level) ([]pipeline.Left, error) {
	if w.fail.Load() {
		return nil, errCounter
	}
	if f := w.onSet.Load(); f != nil {
		(*f)()
	}
	return w.Counter.Set(ctx, l...)
}

// open makes a ledger with units tees and a counter beside it.
func openSale(t *testing.T, units int64) *sale {
	s := &sale{t, newDouble(), &watched{Counter: pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: recall})}}
	s.supply("restock", tee, units)
	return s
}

// supply brings units in, past every gate.
func (s *sale) supply(id string, asset ledger.Asset, units int64) {
	s.Helper()
	res, _ := s.store.Apply(s.Context(), ledger.Entry{ID: id, Ops: []ledger.Op{
		ledger.Move(ledger.Posting{From: "@supplier", To: stock, Asset: asset, Amount: units})}})
	if res[0].Refused() {
		s.Fatalf("supply: %+v", res[0])
	}
}

// gates opens gates that have seen the stock and may refuse: the counter has to
// remember for as long as its Recall first.
func (s *sale) gates(n int) []*pipeline.Gate {
	s.Helper()
	gates := make([]*pipeline.Gate, n)
	for i := range gates {
		gates[i] = pipeline.NewGate(s.double, s.store, s.counter, pipeline.GateOptions{Accounts: []ledger.Account{stock}})
		s.Cleanup(func() {
			if err := gates[i].Close(context.Background()); err != nil {
				s.Errorf("close: %v", err)
			}
		})
	}
	for round := range 3 {
		for i, g := range gates {
			for _, asset := range []ledger.Asset{tee, mug} {
				look := fmt.Sprintf("look-%d-%d-%s", round, i, asset)
				s.ask(g, ledger.Entry{ID: look, Ops: []ledger.Op{buy(look, asset, 1), ledger.Commit("none")}})
			}
		}
		pass(recall)
	}
	return gates
}

func (s *sale) gate() *pipeline.Gate {
	s.Helper()
	return s.gates(1)[0]
}

func buy(hold string, asset ledger.Asset, n int64) ledger.Op {
	return ledger.Reserve(hold, ledger.Posting{From: stock, To: "sold", Asset: asset, Amount: n}, 0, 0)
}

// order is an entry that takes n tees.
func order(id string, n int64) ledger.Entry {
	return ledger.Entry{ID: id, Ops: []ledger.Op{buy(id, tee, n)}}
}

func (s *sale) ask(a ledger.Applier, e ledger.Entry) ledger.Result {
	s.Helper()
	res, err := a.Apply(s.Context(), e)
	if err != nil {
		s.Errorf("apply %q: %v", e.ID, err)
		return ledger.Result{Code: "no answer"}
	}
	return res[0]
}

func (s *sale) wantCode(a ledger.Applier, e ledger.Entry, want ledger.Code) ledger.Result {
	s.Helper()
	res := s.ask(a, e)
	if res.Code != want {
		s.Errorf("%s: got %+v, want code %q", e.ID, res, want)
	}
	return res
}

// wantRefusedByGate asserts that e is refused, and that the ledger was not asked:
// the gate must know.
func (s *sale) wantRefusedByGate(g *pipeline.Gate, e ledger.Entry) {
	s.Helper()
	before := s.inner()
	s.wantCode(g, e, ledger.Insufficient)
	if s.inner() != before {
		s.Errorf("%s came to the ledger", e.ID)
	}
}

// wantHeld asserts how many tees the ledger holds, and that its books are right.
func (s *sale) wantHeld(want int64) {
	s.Helper()
	rep, err := ledger.Verify(s.Context(), s.store, nil)
	if err != nil || !rep.OK() {
		s.Errorf("verify: %+v, %v", rep.Problems, err)
	}
	rows, err := s.store.Balances(s.Context(), ledger.BalanceQuery{Account: stock, Asset: tee})
	if err != nil || len(rows) != 1 || rows[0].Held != want {
		s.Errorf("stock: got %+v, %v, want %d held", rows, err, want)
	}
}

// inner counts the calls of the ledger behind the gates.
func (s *sale) inner() int { return len(s.seen()) }

func TestAGateOverAMemoryKeepsEveryRule(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store {
		store := ledger.NewMemory(clock)
		counter := pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: 1})
		g := pipeline.NewGate(store, store, counter, pipeline.GateOptions{Accounts: []ledger.Account{stock, "seller"}})
		t.Cleanup(func() {
			if err := g.Close(context.Background()); err != nil {
				t.Errorf("close: %v", err)
			}
			t.Logf("%+v", g.Stats())
		})
		return struct {
			ledger.Applier
			ledger.Reader
		}{g, store}
	})
}

// bubble runs a sale of units tees on a synctest clock.
func bubble(t *testing.T, units int64, tell func(s *sale)) {
	synctest.Test(t, func(t *testing.T) { tell(openSale(t, units)) })
}
