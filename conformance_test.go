package holdfast_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/sqlstore"
	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

// opener makes an empty store.
type opener func(t *testing.T, clock func() time.Time) ledger.Store

// stores are all databases with all their strategies; a new one is one row.
// With -short, those that need a server are left out.
func stores(t *testing.T) map[string]opener {
	file := sqliteFile(t)
	all := map[string]opener{
		"Memory":            func(_ *testing.T, clock func() time.Time) ledger.Store { return ledger.NewMemory(clock) },
		"SQLiteConditional": sqlite(file, sqlstore.Conditional),
		"SQLitePessimistic": sqlite(file, sqlstore.Pessimistic),
		"SQLiteOptimistic":  sqlite(file, sqlstore.Optimistic),
		"SQLiteLockRow":     sqlite(file, sqlstore.LockRow),

		"MySQLConditional":    server(sqlstoretest.MySQL, sqlstore.Conditional),
		"MySQLPessimistic":    server(sqlstoretest.MySQL, sqlstore.Pessimistic),
		"MySQLOptimistic":     server(sqlstoretest.MySQL, sqlstore.Optimistic),
		"MySQLLockRow":        server(sqlstoretest.MySQL, sqlstore.LockRow),
		"PostgresConditional": server(sqlstoretest.Postgres, sqlstore.Conditional),
		"PostgresPessimistic": server(sqlstoretest.Postgres, sqlstore.Pessimistic),
		"PostgresOptimistic":  server(sqlstoretest.Postgres, sqlstore.Optimistic),
		"PostgresLockRow":     server(sqlstoretest.Postgres, sqlstore.LockRow),
	}
	if testing.Short() {
		maps.DeleteFunc(all, func(name string, _ opener) bool {
			return strings.HasPrefix(name, "MySQL") || strings.HasPrefix(name, "Postgres")
		})
	}
	return all
}

// pipelines are all ways to put Appliers around a store; a new stage is one row.
var pipelines = map[string]func(t *testing.T, store ledger.Store) ledger.Applier{
	"Direct":    func(_ *testing.T, store ledger.Store) ledger.Applier { return store },
	"Batch":     func(t *testing.T, store ledger.Store) ledger.Applier { return batch(t, store) },
	"Gate":      func(t *testing.T, store ledger.Store) ledger.Applier { return gate(t, store, store) },
	"GateBatch": func(t *testing.T, store ledger.Store) ledger.Applier { return gate(t, batch(t, store), store) },
	"GateQueueBatch": func(t *testing.T, store ledger.Store) ledger.Applier {
		return gate(t, queue(t, batch(t, store)), store)
	},
}

var full = flag.Bool("full", false, "try every store behind every pipeline; takes many minutes")

// onServer says that a store is on a server, where every case's tables take long
// to make.
func onServer(store string) bool {
	return strings.HasPrefix(store, "MySQL") || strings.HasPrefix(store, "Postgres")
}

// suite is what of the suite a run tries. Without -full: all of every pipeline
// around a Memory, and of every database directly with the default strategy; of a
// store behind a pipeline, or with another strategy, what many callers at once can
// change.
func suite(store, pipe string) func(*testing.T, func(*testing.T, func() time.Time) ledger.Store) {
	if *full || store == "Memory" || (pipe == "Direct" && strings.HasSuffix(store, "Conditional")) {
		return ledgertest.Run
	}
	return ledgertest.RunStorms
}

// tried says which combinations a run tries: without -full, stores with another
// strategy than the default one are tried directly, since what is around a store
// does not know its strategy, and a server's behind what is used most. LockRow waits
// by asking again, so that its storms on servers take minutes: two processes in one
// are sqlstore's to try. With -short, SQL stores are only tried behind a Batch.
func tried(store, pipe string) bool {
	switch {
	case testing.Short():
		return pipe == "Batch" || store == "Memory"
	case *full:
		return true
	case store == "Memory", store == "SQLiteConditional":
		return true
	case onServer(store) && strings.HasSuffix(store, "LockRow"):
		return false
	case strings.HasSuffix(store, "Conditional"):
		return pipe == "Direct" || pipe == "GateBatch"
	}
	return pipe == "Direct"
}

// TestEveryStoreBehindEveryPipelineKeepsEveryRule is the promise of the whole:
// the rules do not depend on how they are stored or how fast.
func TestEveryStoreBehindEveryPipelineKeepsEveryRule(t *testing.T) {
	for storeName, open := range stores(t) {
		for pipeName, pipe := range pipelines {
			if !tried(storeName, pipeName) {
				continue
			}
			t.Run(storeName+"/"+pipeName, func(t *testing.T) {
				t.Parallel()
				suite(storeName, pipeName)(t, func(t *testing.T, clock func() time.Time) ledger.Store {
					store := open(t, clock)
					return piped{pipe(t, store), store}
				})
			})
		}
	}
}

// TestNothingIsLostOrDoubledWhenTheStoreFails lets calls fail before or after
// their effect at random, and asks again as every caller must.
func TestNothingIsLostOrDoubledWhenTheStoreFails(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const units, buyers = 20, 60
			store := open(t, time.Now)
			pipe := batch(t, &faulty{Applier: store})
			mustApply(t, store, ledger.Entry{ID: "restock", Ops: []ledger.Op{
				ledger.Move(ledger.Posting{From: "@supplier", To: "stock", Asset: "sku:tee", Amount: units})}})
			var sold atomic.Int64
			var wg sync.WaitGroup
			for i := range buyers {
				wg.Go(func() {
					if res := mustApply(t, pipe, purchase(i)); !res.Refused() {
						sold.Add(1)
					} else if res.Code != ledger.Insufficient {
						t.Errorf("buyer %d: got %+v", i, res)
					}
				})
			}
			wg.Wait()
			if sold.Load() != units {
				t.Errorf("%d buyers were told that they have one of %d units", sold.Load(), units)
			}
			wantSold(t, store, units)
		})
	}
}

func purchase(i int) ledger.Entry {
	id := fmt.Sprintf("order-%d", i)
	return ledger.Entry{ID: id,
		Ops:     []ledger.Op{ledger.Reserve(id, ledger.Posting{From: "stock", To: "sold", Asset: "sku:tee", Amount: 1}, 0, 0), ledger.Commit(id)},
		Records: []ledger.Record{{Kind: "order", ID: id, Version: 1, State: "paid"}},
		Events:  []ledger.Event{{Type: "order.paid", Subject: id}}}
}

// mustApply asks until the outcome is known.
func mustApply(t *testing.T, a ledger.Applier, e ledger.Entry) ledger.Result {
	const limit = 100 // times that one entry is applied
	var err error
	for range limit {
		var results []ledger.Result
		if results, err = a.Apply(t.Context(), e); err == nil {
			return results[0]
		}
	}
	t.Errorf("apply %q: %v", e.ID, err)
	return ledger.Result{Code: "no answer"}
}

// wantSold asserts what the books say after units purchases: one line, posting,
// order and event for each, and no promise broken.
func wantSold(t *testing.T, store ledger.Store, units int64) {
	t.Helper()
	rep, err := ledger.Verify(t.Context(), store, nil)
	if err != nil || !rep.OK() {
		t.Errorf("verify: %+v, %v", rep.Problems, err)
	}
	if rep.Entries != units+1 || rep.Postings != units+1 || rep.Events != units || rep.Records != units || rep.Holds != units {
		t.Errorf("got %+v, want %d of each, and one restock", rep, units)
	}
	rows, err := store.Balances(t.Context(), ledger.BalanceQuery{Account: "stock"})
	if err != nil || len(rows) != 1 || rows[0].Posted != 0 || rows[0].Held != 0 {
		t.Errorf("stock: got %+v, %v, want one empty balance", rows, err)
	}
}

// faulty fails one call in four before it has an effect, and one in four after.
type faulty struct {
	ledger.Applier
}

var errLost = errors.New("the connection was lost")

func (f *faulty) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	dice := rand.IntN(4)
	if dice == 0 {
		return nil, errLost
	}
	results, err := f.Applier.Apply(ctx, entries...)
	if dice == 1 {
		return nil, errLost
	}
	return results, err
}

// piped is a store that is written through a pipeline.
type piped struct {
	ledger.Applier
	ledger.Reader
}

func batch(t *testing.T, inner ledger.Applier) ledger.Applier {
	b := pipeline.NewBatch(inner, pipeline.BatchOptions{})
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func queue(t *testing.T, inner ledger.Applier) ledger.Applier {
	q := pipeline.NewQueue(inner, pipeline.NewRing(pipeline.LogOptions{}), pipeline.QueueOptions{})
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return q
}

// gate is a Gate that may refuse as soon as it has looked at the store.
func gate(t *testing.T, inner ledger.Applier, store ledger.Reader) ledger.Applier {
	counter := pipeline.NewLocalCounter(pipeline.CounterOptions{Recall: 1})
	g := pipeline.NewGate(inner, store, counter, pipeline.GateOptions{Accounts: []ledger.Account{"stock", "seller"}})
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

// sqliteFile makes an empty database once; each case copies it, which is much
// faster than making it anew.
func sqliteFile(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "empty.db")
	store, err := sqlstore.Open(t.Context(), "sqlite:"+path, sqlstore.Options{})
	if err != nil {
		t.Fatalf("make an empty database: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatalf("close the empty database: %v", err)
	}
	return path
}

func sqlite(empty string, s sqlstore.Strategy) opener {
	return func(t *testing.T, clock func() time.Time) ledger.Store {
		bytes, err := os.ReadFile(empty)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "shop.db")
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		return openStore(t, "sqlite:"+path, sqlstore.Options{Strategy: s, Clock: clock})
	}
}

// server opens an empty database on a server.
func server(empty func(testing.TB) (url string), s sqlstore.Strategy) opener {
	return func(t *testing.T, clock func() time.Time) ledger.Store {
		return openStore(t, empty(t), sqlstore.Options{Strategy: s, Clock: clock})
	}
}

func openStore(t *testing.T, url string, o sqlstore.Options) ledger.Store {
	store, err := sqlstore.Open(t.Context(), url, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}
