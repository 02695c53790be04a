package redispipe_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
	"github.com/holdfast-pay/holdfast/internal/sqlstore"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

var rounds = flag.Int("rounds", 2, "sales in which Redis is treated badly")

const restored = 20 * time.Second // within which a sale is itself again

// counted is an Applier that counts what comes to it, and is as slow as a disk.
type counted struct {
	ledger.Applier
	entries atomic.Int64
}

const commit = 2 * time.Millisecond // of an entry, as many at a time as come

func (c *counted) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	c.entries.Add(int64(len(entries)))
	time.Sleep(commit)
	return c.Applier.Apply(ctx, entries...)
}

func gate(t *testing.T, inner ledger.Applier, store ledger.Reader, c pipeline.Counter) *pipeline.Gate {
	g := pipeline.NewGate(inner, store, c, pipeline.GateOptions{
		Accounts: []ledger.Account{"stock", "seller"}, Resync: 20 * time.Millisecond})
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

func TestAGateWithRedisKeepsEveryRule(t *testing.T) {
	r := shared(t)
	stores := map[string]func(t *testing.T, clock func() time.Time) ledger.Store{"Memory": memory, "SQLite": sqlite}
	for storeName, open := range stores {
		for name, counter := range counters {
			t.Run(storeName+"/"+name, func(t *testing.T) {
				if storeName != "Memory" && (testing.Short() || name != "Lua") {
					t.Skip("only scripts are tried with a database, and none with -short")
				}
				ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store {
					store := open(t, clock)
					return struct {
						ledger.Applier
						ledger.Reader
					}{gate(t, store, store, counter(r, space(), pipeline.CounterOptions{Recall: 1})), store}
				})
			})
		}
	}
}

func memory(_ *testing.T, clock func() time.Time) ledger.Store { return ledger.NewMemory(clock) }

func sqlite(t *testing.T, clock func() time.Time) ledger.Store {
	store, err := sqlstore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "shop.db"), sqlstore.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

// sale is a store of tees behind two gates, which have connections of their own.
type sale struct {
	*testing.T
	store *ledger.Memory
	inner *counted
	gates []*pipeline.Gate
}

func newSale(t *testing.T, units int64, url string, o pipeline.CounterOptions) *sale {
	s := &sale{T: t, store: ledger.NewMemory(time.Now)}
	s.inner = &counted{Applier: s.store}
	s.move("restock", "@supplier", "stock", units)
	name := space()
	for range 2 {
		s.gates = append(s.gates, gate(t, s.inner, s.store, open(t, url).Counter(name, o)))
	}
	return s
}

func (s *sale) move(id string, from, to ledger.Account, units int64) {
	s.Helper()
	res, _ := s.store.Apply(s.Context(), ledger.Entry{ID: id, Ops: []ledger.Op{
		ledger.Move(ledger.Posting{From: from, To: to, Asset: "tee", Amount: units})}})
	if res[0].Refused() {
		s.Fatalf("move: %+v", res[0])
	}
}

func order(id string, assets ...ledger.Asset) ledger.Entry {
	e := ledger.Entry{ID: id}
	for _, a := range assets {
		e.Ops = append(e.Ops, ledger.Reserve(id+"-"+string(a), ledger.Posting{From: "stock", To: "sold", Asset: a, Amount: 1}, 0, 0))
	}
	return e
}

// buy asks until there is a final answer, as every client must.
func (s *sale) buy(g *pipeline.Gate, e ledger.Entry) ledger.Result {
	s.Helper()
	deadline := time.Now().Add(restored)
	for {
		res, err := g.Apply(s.Context(), e)
		if err == nil {
			return res[0]
		}
		if !errors.Is(err, pipeline.ErrOverloaded) || time.Now().After(deadline) {
			s.Errorf("apply %q: %v", e.ID, err)
			return ledger.Result{Code: "no answer"}
		}
		time.Sleep(time.Millisecond)
	}
}

// storm lets buyers come to both gates, a few at a time. Some ask twice, and some
// give back what they have got, past the gates. It returns who keeps one.
func (s *sale) storm(name string, buyers int) (kept map[string]bool) {
	s.Helper()
	const atOnce = 24
	kept = map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	queue := make(chan int)
	for range atOnce {
		wg.Go(func() {
			for i := range queue {
				if e := order(fmt.Sprintf("%s-%d", name, i), "tee"); s.shop(e, i) {
					mu.Lock()
					kept[e.ID] = true
					mu.Unlock()
				}
			}
		})
	}
	for i := range buyers {
		queue <- i
	}
	close(queue)
	wg.Wait()
	return kept
}

// shop is what buyer i does. It says whether he keeps what he has ordered.
func (s *sale) shop(e ledger.Entry, i int) bool {
	s.Helper()
	res := s.buy(s.gates[i%2], e)
	if i%5 == 0 {
		again := s.buy(s.gates[(i+1)%2], e)
		if !res.Refused() && again.Refused() {
			s.Errorf("%s was told %+v, then %+v", e.ID, res, again)
		}
		res = again
	}
	if res.Refused() {
		if res.Code != ledger.Insufficient {
			s.Errorf("%s: got %+v", e.ID, res)
		}
		return false
	}
	if i%7 != 0 {
		return true
	}
	void, _ := s.store.Apply(s.Context(), ledger.Entry{ID: "void-" + e.ID, Ops: []ledger.Op{ledger.Void(e.Ops[0].Hold)}})
	if void[0].Refused() {
		s.Errorf("void %s: got %+v", e.ID, void[0])
	}
	return false
}

// wantHeld asserts that the books are right, and how many tees are held.
func (s *sale) wantHeld(want int) {
	s.Helper()
	rep, err := ledger.Verify(s.Context(), s.store, nil)
	if err != nil || !rep.OK() {
		s.Errorf("verify: %+v, %v", rep.Problems, err)
	}
	rows, err := s.store.Balances(s.Context(), ledger.BalanceQuery{Account: "stock", Asset: "tee"})
	if err != nil || len(rows) != 1 || rows[0].Held != int64(want) {
		s.Errorf("stock: got %+v, %v, want %d held", rows, err, want)
	}
}

// sellOut lets one buyer after another come until the last unit is sold: what a
// fault has left over must go to whoever comes next.
func (s *sale) sellOut(name string, units int) {
	s.Helper()
	sold := 0
	deadline := time.Now().Add(restored)
	for i := 0; sold < units && time.Now().Before(deadline); i++ {
		if res := s.buy(s.gates[i%2], order(fmt.Sprintf("%s-%d", name, i), "tee")); !res.Refused() {
			sold++
			continue
		}
		time.Sleep(5 * time.Millisecond)
	}
	if sold != units {
		s.Errorf("%s: sold %d of %d units that were left", name, sold, units)
	}
}

// trusted waits until both gates refuse by themselves.
func (s *sale) trusted(name string) {
	s.Helper()
	deadline := time.Now().Add(restored)
	for i := 0; ; i++ {
		before := s.inner.entries.Load()
		for n, g := range s.gates {
			s.buy(g, order(fmt.Sprintf("%s-%d-%d", name, i, n), "tee"))
		}
		if s.inner.entries.Load() == before {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the gates do not refuse: %+v %+v", s.gates[0].Stats(), s.gates[1].Stats())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var faultOptions = pipeline.CounterOptions{Recall: 100 * time.Millisecond, Fresh: 200 * time.Millisecond, Lease: 500 * time.Millisecond}

// opening makes a sale whose gates refuse, and then brings units in.
func opening(t *testing.T, server *redispipetest.Server, units int64) *sale {
	s := newSale(t, 1, server.URL(), faultOptions)
	s.sellOut("first", 1)
	s.trusted("warm")
	s.move("more", "@supplier", "stock", units)
	for _, g := range s.gates {
		g.Changed(key("tee"))
	}
	return s
}

func TestTwoGatesOnOneCounterSellExactlyWhatIsThere(t *testing.T) {
	const units, buyers = 50, 1000
	s := opening(t, redispipetest.New(t), units)
	before := s.inner.entries.Load()
	kept := s.storm("buyer", buyers)
	if len(kept) > units {
		t.Errorf("%d keep one of %d", len(kept), units)
	}
	if n := s.inner.entries.Load() - before; n > buyers/2 {
		t.Errorf("%d of %d buyers came to the ledger: the gates do not refuse", n, buyers)
	}
	s.sellOut("next", units-len(kept))
	s.wantHeld(units + 1)
}

// faults are what happens to Redis in the middle of a sale.
var faults = map[string]func(s *redispipetest.Server){
	"Killed":  func(s *redispipetest.Server) { s.Kill() },
	"Flushed": func(s *redispipetest.Server) { s.Do("FLUSHALL") },
	"Restarted": func(s *redispipetest.Server) {
		s.Kill()
		s.Start()
	},
	"Rewound": func(s *redispipetest.Server) { // to what was saved before the sale
		s.Kill()
		s.Start()
	},
	"Hung": func(s *redispipetest.Server) {
		resume := s.Hang()
		time.AfterFunc(500*time.Millisecond, resume)
	},
	"OutOfMemory": func(s *redispipetest.Server) { s.Do("CONFIG", "SET", "maxmemory", "1") },
}

func TestNothingIsOversoldOrLostWhateverHappensToRedis(t *testing.T) {
	const units, buyers = 100, 2500
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for round := range *rounds {
				server := redispipetest.New(t)
				s := opening(t, server, units)
				if name == "Rewound" {
					server.Do("SAVE")
				}
				began, middle := s.inner.entries.Load(), int64(20+round*37%100)
				done := make(chan map[string]bool)
				go func() { done <- s.storm("buyer", buyers) }()
				for s.inner.entries.Load() < began+middle {
					time.Sleep(100 * time.Microsecond)
				}
				fault(server)
				kept := <-done
				if len(kept) > units {
					t.Errorf("%d keep one of %d", len(kept), units)
				}
				left := units - len(kept)
				s.sellOut("next", left)
				s.wantHeld(units + 1)
				t.Logf("%d units were left after the storm; %+v", left, s.gates[0].Stats())
			}
		})
	}
}

// After a fault the gates are as good as before, and until they are, they refuse
// nobody who came while the counter was away.
func TestTheGatesRecoverWhenRedisIsBack(t *testing.T) {
	server := redispipetest.New(t)
	s := newSale(t, 2, server.URL(), faultOptions)
	s.sellOut("before", 1)
	server.Kill()
	last := order("while-it-was-gone", "tee")
	if res := s.buy(s.gates[0], last); res.Refused() {
		t.Errorf("got %+v, want the last unit", res)
	}
	server.Start()
	for _, g := range s.gates {
		if res := s.buy(g, last); res.Refused() || !res.Replayed {
			t.Errorf("got %+v, want a replay", res)
		}
	}
	s.trusted("after")
	s.wantHeld(2)
	s.move("more", "@supplier", "stock", 4)
	s.sellOut("restocked", 4)
	s.wantHeld(6)
}
