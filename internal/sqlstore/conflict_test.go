package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/holdfast-pay/holdfast/ledger"
)

// failCommit makes the next n commits fail as commit says.
func failCommit(s *Store, n int, commit func(*sql.Tx) error) (failed *int) {
	failed = new(int)
	s.commit = func(tx *sql.Tx) error {
		if *failed == n {
			return tx.Commit()
		}
		*failed++
		return commit(tx)
	}
	return failed
}

func rollBack(err error) func(*sql.Tx) error {
	return func(tx *sql.Tx) error { return errors.Join(err, tx.Rollback()) }
}

func journalLength(t *testing.T, s *Store) int64 {
	t.Helper()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head.Seq
}

func TestALostAnswerToACommitIsFoundUnderTheEntryID(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 2))
		failed := failCommit(s, 1, func(tx *sql.Tx) error {
			return errors.Join(errors.New("connection reset"), tx.Commit())
		})
		results := apply(t, s, reserve("first", 1), reserve("second", 2))
		if *failed != 1 {
			t.Errorf("got %d failed commits, want 1", *failed)
		}
		if results[0].Refused() || !results[0].Replayed || results[0].Seq != 2 {
			t.Errorf("got %+v, want the result of line 2", results[0])
		}
		if results[1].Code != ledger.Insufficient {
			t.Errorf("got %+v, want %q", results[1], ledger.Insufficient)
		}
		if got := held(t, s); got != 1 {
			t.Errorf("held: got %d, want 1", got)
		}
	})
}

func TestACommitThatDidNotHappenIsDoneAgain(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 2))
		failCommit(s, maxTries-1, rollBack(errors.New("connection reset")))
		if res := apply(t, s, reserve("order", 1)); res[0].Refused() || res[0].Replayed {
			t.Errorf("got %+v, want a new line", res[0])
		}
		if got := held(t, s); got != 1 {
			t.Errorf("held: got %d, want 1", got)
		}
	})
}

func TestACommitThatNeverHappensIsAnErrorInTheEnd(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 2))
		cause := errors.New("connection reset")
		failed := failCommit(s, 2*maxTries, rollBack(cause))
		results, err := s.Apply(t.Context(), reserve("order", 1))
		if results != nil || !errors.Is(err, cause) {
			t.Errorf("got %v, %v, want %v", results, err, cause)
		}
		if *failed != maxTries {
			t.Errorf("got %d tries, want %d", *failed, maxTries)
		}
		s.commit = (*sql.Tx).Commit
		if got := held(t, s); got != 0 {
			t.Errorf("held: got %d, want 0", got)
		}
	})
}

func TestAConflictDecidesAgainOnFreshRows(t *testing.T) {
	t.Parallel()
	onEveryDatabaseAndStrategy(t, func(t *testing.T, url string, strategy Strategy) {
		s := openAt(t, url, Options{Strategy: strategy})
		other := openAt(t, url, Options{Strategy: strategy})
		s.lease = time.Millisecond // the other one takes over what it finds locked
		apply(t, s, stock("stock", 1))
		failCommit(s, 1, func(tx *sql.Tx) error {
			if err := tx.Rollback(); err != nil {
				return err
			}
			apply(t, other, reserve("faster", 1))
			return errConflict
		})
		if res := apply(t, s, reserve("order", 1)); res[0].Code != ledger.Insufficient {
			t.Errorf("got %+v, want %q", res[0], ledger.Insufficient)
		}
	})
}

func TestAConflictWhileWritingLeavesNothingBehind(t *testing.T) {
	onEveryDatabaseAndStrategy(t, func(t *testing.T, url string, strategy Strategy) {
		s := openAt(t, url, Options{Strategy: strategy})
		apply(t, s, stock("stock", 2))
		args, written := s.strategy.args, 0
		s.strategy.args = func(to []any, c ledger.BalanceChange) []any {
			if written++; written == 1 {
				c.Before.Account, c.After.Account = "nobody", "nobody"
			}
			return args(to, c)
		}
		if res := apply(t, s, reserve("order", 1)); res[0].Refused() || res[0].Replayed || res[0].Seq != 2 {
			t.Errorf("got %+v, want a new line 2", res[0])
		}
		if written != 2 || held(t, s) != 1 {
			t.Errorf("got %d writes and %d held, want 2 and 1", written, held(t, s))
		}
	})
}

func TestARowThatChangedMeanwhileIsAConflict(t *testing.T) {
	t.Parallel()
	const anything = "every strategy"
	onEveryDatabaseAndStrategy(t, func(t *testing.T, url string, strategy Strategy) {
		s := openAt(t, url, Options{Strategy: strategy})
		for _, c := range []struct {
			strategy  Strategy
			meanwhile string
			conflict  bool   // by the rows that were not there
			breach    breach // by what the schema refused
		}{
			{anything, `UPDATE head SET seq = seq + 1`, true, ""},
			{anything, `UPDATE head SET hash = zeroblob(32)`, true, ""},
			{anything, `UPDATE holds SET state = 'voided', released = amount`, true, ""},
			{anything, `UPDATE holds SET committed = 1`, true, ""},
			{anything, `UPDATE holds SET released = 1`, true, ""},
			{anything, `UPDATE holds SET until_at = 1`, true, ""},
			{anything, `UPDATE records SET version = version + 1`, true, ""},
			{anything, `INSERT INTO holds VALUES ('fresh', 'a', 'b', 'CNY', 5, 1, 1, 'held', 0, 0)`, false, unique},
			{anything, `INSERT INTO records VALUES ('order', 'fresh', 1, '', '', '', 0, '')`, false, unique},
			{anything, `INSERT INTO balances (account, asset, posted, held, version) VALUES ('fresh', 'sku:tee', 0, 0, 1)`, false, unique},
			{Optimistic, `UPDATE balances SET version = version + 1`, true, ""},
			{Conditional, `UPDATE balances SET posted = held WHERE account = 'shop'`, true, ""},
			{Conditional, `UPDATE balances SET version = version + 1`, false, ""},
			{Conditional, `UPDATE balances SET posted = posted + 1`, false, ""},
			{LockRow, `UPDATE balances SET posted = held WHERE account = 'shop'`, true, ""},
			{anything, `DELETE FROM records WHERE kind = 'nothing'`, false, ""},
		} {
			if c.strategy != anything && c.strategy != strategy {
				continue
			}
			err := writeAfter(t, s, c.meanwhile)
			if errors.Is(err, errConflict) != c.conflict || !c.conflict && breachOf(err) != c.breach {
				t.Errorf("%s: got %v, want conflict = %v, breach %q", c.meanwhile, err, c.conflict, c.breach)
			}
			if c.breach != "" && !s.dialect.again(err) {
				t.Errorf("%s: %v is not decided again", c.meanwhile, err)
			}
		}
	})
}

// writeAfter loads and decides an entry that changes a row of each kind and
// makes one of each kind, then does something else, then writes. It rolls back.
func writeAfter(t *testing.T, s *Store, meanwhile string) error {
	t.Helper()
	order := ledger.Record{Kind: "order", ID: "old", Version: 1}
	old := reserve("old", 3)
	old.Records = []ledger.Record{order}
	apply(t, s, stock("stock", 5), old)
	order.Version = 2
	e := ledger.Entry{
		ID: "change",
		Ops: []ledger.Op{
			ledger.CommitPart("old", 1, true),
			ledger.Reserve("fresh", tee("shop", "@sold", 2), 0, 0),
			ledger.Move(tee("@supplier", "fresh", 1)),
		},
		Records: []ledger.Record{order, {Kind: "order", ID: "fresh", Version: 1}},
	}
	tx, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.end()
	state, err := tx.load(t.Context(), []ledger.Entry{e}, true)
	if err != nil {
		t.Fatal(err)
	}
	if res := state.Decide(e, 0); res.Refused() {
		t.Fatalf("got %+v, want an entry that is not refused", res)
	}
	if _, err := tx.Exec(inSQL(s, meanwhile)); err != nil {
		t.Fatal(err)
	}
	return tx.write(t.Context(), state.Changes())
}

func TestAFullDiskIsAnErrorAndNoRefusal(t *testing.T) {
	s := open(t, Options{})
	apply(t, s, stock("stock", 100))
	var full int
	if err := s.conns.write.QueryRow(`PRAGMA max_page_count=1`).Scan(&full); err != nil {
		t.Fatal(err) // SQLite makes it the pages that there are
	}
	e := reserve("order", 1)
	e.Events = []ledger.Event{{Type: "made", Subject: "order", Body: []byte(`"` + strings.Repeat("x", 64<<10) + `"`)}}
	results, err := s.Apply(t.Context(), e)
	if results != nil || !errors.Is(err, sqlite3.FULL) {
		t.Errorf("got %v, %v, want %v", results, err, sqlite3.FULL)
	}
	if got := journalLength(t, s); got != 1 {
		t.Errorf("journal: got %d lines, want 1", got)
	}
	if _, err := s.conns.write.Exec(fmt.Sprintf(`PRAGMA max_page_count=%d`, full+1000)); err != nil {
		t.Fatal(err)
	}
	if res := apply(t, s, e); res[0].Refused() || res[0].Replayed {
		t.Errorf("got %+v, want a new line once there is room", res[0])
	}
}

// lockOut keeps the database of s busy until release, and makes s impatient.
func lockOut(t *testing.T, s *Store, path string) (release func()) {
	t.Helper()
	if _, err := s.conns.write.Exec(`PRAGMA busy_timeout=1`); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestABusyDatabaseIsAskedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	s := openAt(t, "sqlite:"+path, Options{})
	apply(t, s, stock("stock", 1))
	release := lockOut(t, s, path)
	d := sqlite
	asked := 0
	d.again = func(err error) bool {
		if asked++; asked == 1 {
			release()
		}
		return sqlite.again(err)
	}
	s.dialect = &d
	if res := apply(t, s, reserve("order", 1)); res[0].Refused() || asked != 1 {
		t.Errorf("got %+v after %d busy tries, want success after 1", res[0], asked)
	}
}

func TestADatabaseThatStaysBusyIsAnErrorAndNoRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	s := openAt(t, "sqlite:"+path, Options{})
	apply(t, s, stock("stock", 1))
	release := lockOut(t, s, path)
	results, err := s.Apply(t.Context(), reserve("order", 1))
	if results != nil || !errors.Is(err, sqlite3.BUSY) {
		t.Errorf("got %v, %v, want %v", results, err, sqlite3.BUSY)
	}
	release()
}

func TestACancelledApplyWritesNothing(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		failCommit(s, 1, func(tx *sql.Tx) error {
			cancel()
			return tx.Commit()
		})
		if results, err := s.Apply(ctx, stock("stock", 1)); results != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v, want %v", results, err, context.Canceled)
		}
		if got := journalLength(t, s); got != 0 {
			t.Errorf("journal: got %d lines, want 0", got)
		}
	})
}
