package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// benchStores are all databases that are there: SQLite always, the servers
// when the environment names them.
func benchStores(t *testing.T) []string {
	stores := []string{"sqlite:" + filepath.Join(t.TempDir(), "bench.db")}
	for _, name := range []string{"HOLDFAST_TEST_MYSQL", "HOLDFAST_TEST_POSTGRES"} {
		if url := os.Getenv(name); url != "" {
			stores = append(stores, url)
		}
	}
	return stores
}

// The baseline must be right as well: one that oversells would be fast.
func TestTheTextbookSellsExactlyWhatIsThereAndLeavesNothingBehind(t *testing.T) {
	for _, store := range benchStores(t) {
		pool := slices.Max(pools(store, textbookPreset))
		s, err := openTextbook(t.Context(), heat{store: store, preset: textbookPreset, pool: pool}, []string{"full"}, []string{"tee"})
		if err != nil {
			t.Fatal(err)
		}
		const pieces = 5
		if _, err := s.db.ExecContext(t.Context(), "UPDATE "+s.stock+" SET available = 5 WHERE sku = 'tee'"); err != nil {
			t.Error(err)
		}
		var held, soldOut atomic.Int64
		var asking sync.WaitGroup
		for i := range 40 {
			asking.Go(func() {
				fates := make([]placed, 1)
				s.place(t.Context(), names("key", 40)[i], []string{"tee"}, fates)
				switch fates[0] {
				case placeHeld:
					held.Add(1)
				case placeSoldOut:
					soldOut.Add(1)
				}
			})
		}
		asking.Wait()
		levels, err := s.levels(t.Context())
		if err != nil || held.Load() != pieces || soldOut.Load() != 40-pieces || levels["tee"].held != pieces || levels["tee"].available != 0 || levels["full"].received != benchStock {
			t.Errorf("%s: %d held, %d sold out, %v, %v; want %d held", s.version, held.Load(), soldOut.Load(), levels, err, pieces)
		}
		tables := []string{s.stock, s.orders}
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
		}
		db, err := openDatabase(store)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if rows, err := db.QueryContext(t.Context(), "SELECT 1 FROM "+table); err == nil {
				rows.Close()
				t.Errorf("%s is left in %s", table, s.version)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerIsBenchedWithTheBestPoolAndItsPasswordStaysHidden(t *testing.T) {
	for _, store := range benchStores(t)[1:] {
		all := benched(t, "--store", store, "--preset", "batched,textbook", "--clients", "8")
		if len(all) != 2 || all[0].Store != redacted(store) || all[0].Store == store || all[1].Pool == 0 || all[0].Ratios.Textbook == nil {
			t.Errorf("got %+v", all)
		}
	}
}

func TestCallsOfAScriptAreAFloor(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short")
	}
	redis := os.Getenv("HOLDFAST_TEST_REDIS")
	if redis == "" {
		t.Fatal("HOLDFAST_TEST_REDIS names no Redis: run scripts/test, or scripts/with-services and the command of your choice")
	}
	f := benched(t, "--preset", "batched", "--clients", "8", "--redis", redis)[0]
	if f.Ratios.Lua == nil || *f.Ratios.Lua <= 0 {
		t.Errorf("got %+v, want a ratio to the calls", f.Ratios)
	}
}
