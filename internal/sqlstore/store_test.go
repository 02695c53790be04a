package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
	"github.com/holdfast-pay/holdfast/ledger"
)

var everyStrategy = []Strategy{Conditional, Pessimistic, Optimistic, LockRow}

// testTime is what the clock of a test store says.
var testTime = time.UnixMilli(1_800_000_000_000)

func fixedClock() time.Time { return testTime }

// openAt opens the store at url; it is verified and closed in the end.
func openAt(t testing.TB, url string, o Options) *Store {
	t.Helper()
	if o.Clock == nil {
		o.Clock = fixedClock
	}
	s, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		rep, err := ledger.Verify(context.Background(), s, nil)
		if err != nil || !rep.OK() {
			t.Errorf("verify: got %+v, %v, want no problem", rep.Problems, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, sqliteURL(t), o)
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "shop.db") }

// everyDatabase makes an empty database of every kind and gives its URL.
var everyDatabase = []struct {
	name  string
	empty func(testing.TB) (url string)
}{
	{"SQLite", sqliteURL},
	{"MySQL", sqlstoretest.MySQL},
	{"Postgres", sqlstoretest.Postgres},
}

// onEveryDatabase calls check with the URL of an empty database of every kind.
func onEveryDatabase(t *testing.T, check func(t *testing.T, url string)) {
	for _, kind := range everyDatabase {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			check(t, kind.empty(t))
		})
	}
}

func onEveryDatabaseAndStrategy(t *testing.T, check func(t *testing.T, url string, strategy Strategy)) {
	for _, strategy := range everyStrategy {
		t.Run(string(strategy), func(t *testing.T) {
			onEveryDatabase(t, func(t *testing.T, url string) { check(t, url, strategy) })
		})
	}
}

// onEveryServer leaves out SQLite.
func onEveryServer(t *testing.T, check func(t *testing.T, url string)) {
	for _, kind := range everyDatabase[1:] {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			check(t, kind.empty(t))
		})
	}
}

func apply(t testing.TB, s *Store, entries ...ledger.Entry) []ledger.Result {
	t.Helper()
	results, err := s.Apply(t.Context(), entries...)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return results
}

func stock(id string, pieces int64) ledger.Entry {
	return ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(tee("@supplier", "shop", pieces))}}
}

func reserve(id string, pieces int64) ledger.Entry {
	return ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Reserve(id, tee("shop", "@sold", pieces), 0, 0)}}
}

func tee(from, to ledger.Account, pieces int64) ledger.Posting {
	return ledger.Posting{From: from, To: to, Asset: "sku:tee", Amount: pieces}
}

// held is how many pieces of the shop are held.
func held(t testing.TB, s *Store) int64 {
	t.Helper()
	rows, err := s.Balances(t.Context(), ledger.BalanceQuery{Account: "shop", Asset: "sku:tee"})
	if err != nil || len(rows) != 1 {
		t.Fatalf("balance: got %v, %v, want one row", rows, err)
	}
	return rows[0].Held
}

func TestOpeningAgainKeepsTheLedger(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		first := openAt(t, url, Options{})
		apply(t, first, stock("stock", 3))
		second := openAt(t, url, Options{})
		if first.ID() == "" || second.ID() != first.ID() {
			t.Errorf("id: got %q, want %q", second.ID(), first.ID())
		}
		if len(first.Secret()) != 32 || !slices.Equal(second.Secret(), first.Secret()) {
			t.Errorf("secret: got %d bytes, want the same 32", len(second.Secret()))
		}
		if got := second.Schema(); got < 1 || got != first.Schema() {
			t.Errorf("schema: got %d, want %d", got, first.Schema())
		}
		if res := apply(t, second, stock("stock", 3)); !res[0].Replayed {
			t.Errorf("got %+v, want a replay", res[0])
		}
	})
}

func TestStoresThatOpenOneEmptyFileAtOnceAreOneLedger(t *testing.T) {
	const files, stores = 4, 4
	dir := t.TempDir()
	var ids [files][stores]string
	var wg sync.WaitGroup
	for i := range files * stores {
		wg.Go(func() {
			s, err := Open(t.Context(), fmt.Sprintf("sqlite:%s/%d.db", dir, i%files), Options{Clock: fixedClock})
			if err != nil {
				t.Errorf("open %d: %v", i, err)
				return
			}
			ids[i%files][i/files] = s.ID()
			if err := s.Close(); err != nil {
				t.Errorf("close %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for _, same := range ids {
		if len(slices.Compact(same[:])) != 1 {
			t.Errorf("ids: got %q, want one", same)
		}
	}
}

func TestNewerTablesAreRefused(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		if _, err := s.conns.write.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`); err != nil {
			t.Fatal(err)
		}
		if newer, err := Open(t.Context(), url, Options{}); err == nil {
			newer.Close()
			t.Error("got a store, want an error")
		}
	})
}

func TestUnsafeDurabilityIsRefusedUnlessAllowed(t *testing.T) {
	for _, level := range []string{"off", "normal"} {
		path := filepath.Join(t.TempDir(), "shop.db")
		url := "sqlite:" + path + "?synchronous=" + level
		if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, ErrUnsafeDurability) {
			t.Errorf("%s: got %v, want %v", level, err, ErrUnsafeDurability)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the refused store left a file", level)
		}
		s, err := Open(t.Context(), url, Options{AllowUnsafeDurability: true})
		if err != nil {
			t.Fatalf("%s: %v", level, err)
		}
		if got := s.Durability(); got != level {
			t.Errorf("durability: got %q, want %q", got, level)
		}
		s.Close()
	}
	if got := open(t, Options{}).Durability(); got != "full" {
		t.Errorf("durability: got %q, want full", got)
	}
}

func TestUnusableURLsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, url := range []string{"", "sqlite", "sqlite:", "sqlite::memory:", "oracle:x", "sqlite:" + dir,
		"sqlite:" + dir + "/x?mode=ro", "sqlite:" + dir + "/x?synchronous=2", "sqlite:" + dir + "/missing/x"} {
		if s, err := Open(t.Context(), url, Options{}); err == nil {
			s.Close()
			t.Errorf("%q: got a store, want an error", url)
		}
	}
	if s, err := Open(t.Context(), "sqlite:"+dir+"/x", Options{Strategy: "hopeful"}); err == nil {
		s.Close()
		t.Error("got a store with an unknown strategy, want an error")
	}
}

func TestTheFilesAreForTheirOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a shop + #1 & 100%20.db")
	apply(t, openAt(t, "sqlite:"+path, Options{}), stock("stock", 1))
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode of %q: got %o, want 600", suffix, got)
		}
	}
}

func TestTwoStoresOnOneFileNeverSellTheLastUnitTwice(t *testing.T) {
	const buyers, pieces = 16, 5
	for _, strategy := range everyStrategy {
		t.Run(string(strategy), func(t *testing.T) {
			url := sqliteURL(t)
			stores := [2]*Store{openAt(t, url, Options{Strategy: strategy}), openAt(t, url, Options{Strategy: strategy})}
			apply(t, stores[0], stock("stock", pieces))
			var won [buyers]bool
			var wg sync.WaitGroup
			for i := range buyers {
				wg.Go(func() {
					res, err := stores[i%2].Apply(t.Context(), reserve(fmt.Sprintf("order-%d", i), 1))
					if err != nil {
						t.Errorf("order %d: %v", i, err)
						return
					}
					won[i] = !res[0].Refused()
					if res[0].Refused() && res[0].Code != ledger.Insufficient {
						t.Errorf("order %d: got %q, want %q", i, res[0].Code, ledger.Insufficient)
					}
				})
			}
			wg.Wait()
			sold := 0
			for _, w := range won {
				if w {
					sold++
				}
			}
			if sold != pieces || held(t, stores[1]) != pieces {
				t.Errorf("got %d sold and %d held, want %d", sold, held(t, stores[1]), pieces)
			}
		})
	}
}

func TestRefusalsAndReplaysWriteNothing(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 1))
		s.commit = nil // would panic
		for _, res := range apply(t, s, stock("stock", 1), reserve("order", 2), ledger.Entry{}) {
			if !res.Replayed && !res.Refused() {
				t.Errorf("got %+v, want a replay or a refusal", res)
			}
		}
	})
}

func TestMoreEntriesThanABatchAreAllDecided(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		entries := []ledger.Entry{stock("stock", MaxBatch)}
		for i := range MaxBatch + 1 {
			entries = append(entries, reserve(fmt.Sprintf("order-%04d", i), 1))
		}
		results := apply(t, s, entries...)
		for i, res := range results {
			if want := i == len(results)-1; res.Refused() != want {
				t.Errorf("result %d: got %+v, want refused = %v", i, res, want)
			}
		}
	})
}

func TestTimeNeverGoesBack(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		now := testTime
		s := openAt(t, url, Options{Clock: func() time.Time { return now }})
		apply(t, s, stock("stock", 1))
		now = now.Add(-time.Hour)
		if got, err := s.Now(t.Context()); err != nil || got != testTime.UnixMilli() {
			t.Errorf("now: got %d, %v, want %d", got, err, testTime.UnixMilli())
		}
		slow := openAt(t, url, Options{Clock: func() time.Time { return now }})
		if got, err := slow.Now(t.Context()); err != nil || got != testTime.UnixMilli() {
			t.Errorf("now of a slow node: got %d, %v, want %d", got, err, testTime.UnixMilli())
		}
		if res := apply(t, slow, stock("more", 1)); res[0].At != testTime.UnixMilli() {
			t.Errorf("at: got %d, want %d", res[0].At, testTime.UnixMilli())
		}
	})
}

func TestAPrefixFindsEveryNameThatBeginsSo(t *testing.T) {
	s := open(t, Options{})
	for i, to := range []ledger.Account{"wallet", "wallet/", "wallet/a", "wallet/~~", "wallet0", "wallets/a"} {
		apply(t, s, ledger.Entry{ID: fmt.Sprint(i), Ops: []ledger.Op{ledger.Move(tee("@supplier", to, 1))}})
	}
	rows, err := s.Balances(t.Context(), ledger.BalanceQuery{Prefix: "wallet/"})
	if err != nil {
		t.Fatal(err)
	}
	var got []ledger.Account
	for _, b := range rows {
		got = append(got, b.Account)
	}
	if want := []ledger.Account{"wallet/", "wallet/a", "wallet/~~"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASnapshotSeesOneMoment(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 1))
		err := s.Snapshot(t.Context(), func(r ledger.Reader) error {
			apply(t, s, stock("more", 1))
			lines, err := r.Lines(t.Context(), ledger.LineQuery{})
			if err != nil || len(lines) != 1 {
				t.Errorf("got %d lines, %v, want the one of before", len(lines), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestManyRowsChangeAtOnce: as many as no single statement takes.
func TestManyRowsChangeAtOnce(t *testing.T) {
	t.Parallel()
	const n = 256 + 64 + 16 + 4 + 1
	onEveryDatabaseAndStrategy(t, func(t *testing.T, url string, strategy Strategy) {
		s := openAt(t, url, Options{Strategy: strategy})
		var first, second []ledger.Entry
		for i := range n {
			id := fmt.Sprintf("h%03d", i)
			shop := ledger.Account("shop/" + id)
			first = append(first, ledger.Entry{ID: "first-" + id,
				Ops:     []ledger.Op{ledger.Move(tee("@supplier", shop, 2)), ledger.Reserve(id, tee(shop, "@sold", 2), 0, 0)},
				Records: []ledger.Record{{Kind: "order", ID: id, Version: 1, Body: []byte(`"é"`)}}})
			second = append(second, ledger.Entry{ID: "second-" + id, Ops: []ledger.Op{ledger.CommitPart(id, 1, true)},
				Records: []ledger.Record{{Kind: "order", ID: id, Version: 2, Due: int64(i), Body: []byte(`"ü"`)}}})
		}
		for i, res := range append(apply(t, s, first...), apply(t, s, second...)...) {
			if res.Refused() || res.Replayed {
				t.Fatalf("entry %d: got %+v, want a new line", i, res)
			}
		}
		rows, err := s.Balances(t.Context(), ledger.BalanceQuery{Prefix: "shop/"})
		if err != nil || len(rows) != n || rows[n-1].Posted != 1 || rows[n-1].Held != 1 {
			t.Errorf("got %d rows, %v, want %d with one piece held", len(rows), err, n)
		}
	})
}
