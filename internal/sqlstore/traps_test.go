package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pay/holdfast/ledger"
)

// code is the number or SQLSTATE of a server's error, or "".
func code(err error) string {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return fmt.Sprint(my.Number)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// oneConnection makes s write on one connection, so that what is set for its
// session stays.
func oneConnection(s *Store) {
	s.conns.write.SetMaxOpenConns(1)
	s.conns.write.SetConnMaxIdleTime(0)
}

// watchErrors notes the codes of the errors after which s may decide again,
// and calls first on the first.
func watchErrors(s *Store, first func()) (seen *[]string) {
	seen = new([]string)
	d := *s.dialect
	again := d.again
	d.again = func(err error) bool {
		if *seen = append(*seen, code(err)); len(*seen) == 1 {
			first()
		}
		return again(err)
	}
	s.dialect = &d
	return seen
}

func run(t *testing.T, db interface {
	Exec(query string, args ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// busy is an entry that writes to every table, into new rows and into old ones.
func busy(t *testing.T, s *Store) ledger.Entry {
	t.Helper()
	order := ledger.Record{Kind: "order", ID: "old", Version: 1}
	old := reserve("old", 3)
	old.Records = []ledger.Record{order}
	apply(t, s, stock("stock", 5), old)
	order.Version = 2
	return ledger.Entry{ID: "busy",
		Ops: []ledger.Op{ledger.CommitPart("old", 1, true), ledger.Reserve("fresh", tee("shop", "@sold", 2), 0, 0),
			ledger.Move(tee("@supplier", "fresh", 1))},
		Records: []ledger.Record{order, {Kind: "order", ID: "fresh", Version: 1}},
		Events:  []ledger.Event{{Type: "made", Subject: "order"}},
	}
}

// TestAnyErrorAtAnyStatementUndoesAllAndDecidesAgain: of some errors the
// server undoes one statement and leaves the rest of the transaction in place.
func TestAnyErrorAtAnyStatementUndoesAllAndDecidesAgain(t *testing.T) {
	codes := map[string][]string{
		"mysql":    {"1213", "1205", "1020", "1062", "3819", "4025"},
		"postgres": {"40001", "40P01", "55P03", "57014", "23505", "23514"},
	}
	onEveryServer(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		oneConnection(s)
		e := busy(t, s)
		kind := s.Kind()
		seen := watchErrors(s, func() {})
		written := journalLength(t, s)
		for i, at := range []string{"UPDATE ON head", "INSERT ON journal", "INSERT ON events", "INSERT ON postings",
			"INSERT ON holds", "UPDATE ON holds", "INSERT ON records", "UPDATE ON records", "INSERT ON balances", "UPDATE ON balances"} {
			code := codes[kind][i%len(codes[kind])]
			failOnce(t, s, at, code)
			if res := apply(t, s, rename(e, i)); res[0].Refused() || res[0].Replayed || res[0].Seq != written+1 {
				t.Errorf("%s at %s: got %+v, want line %d", code, at, res[0], written+1)
			}
			if want := []string{code}; !slices.Equal(*seen, want) {
				t.Errorf("%s: got errors %q, want %q", at, *seen, want)
			}
			*seen = nil
			written++
		}
	})
}

// rename makes e an entry of its own that does the same to other new rows.
func rename(e ledger.Entry, i int) ledger.Entry {
	e.ID = fmt.Sprintf("busy-%d", i)
	e.Ops = []ledger.Op{ledger.Extend("old", int64(i)), ledger.Move(tee("@supplier", "shop", 2)),
		ledger.Reserve(e.ID, tee("shop", "@sold", 2), 0, 0), ledger.Move(tee("@supplier", ledger.Account(e.ID), 1))}
	e.Records = []ledger.Record{{Kind: "order", ID: "old", Version: int64(2 + i)}, {Kind: "order", ID: e.ID, Version: 1}}
	return e
}

// failOnce makes one statement of the kind fail with code.
func failOnce(t *testing.T, s *Store, at, code string) {
	t.Helper()
	if s.Kind() == "mysql" {
		run(t, s.conns.write, "SET @failed = 0", "DROP TRIGGER IF EXISTS fail_once",
			`CREATE TRIGGER fail_once BEFORE `+at+` FOR EACH ROW IF @failed = 0 THEN
				SET @failed = 1; SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = `+code+`; END IF`)
		return
	}
	_, table, _ := strings.Cut(at, " ON ")
	run(t, s.conns.write, `DROP SEQUENCE IF EXISTS failed`, `CREATE SEQUENCE failed`, // it counts on after a rollback
		`CREATE OR REPLACE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('failed') = 1 THEN RAISE EXCEPTION USING ERRCODE = '`+code+`'; END IF; RETURN NEW; END $$`,
		`CREATE OR REPLACE TRIGGER fail_once BEFORE `+at+` FOR EACH ROW EXECUTE FUNCTION fail_once()`)
	t.Cleanup(func() { run(t, s.conns.write, `DROP TRIGGER IF EXISTS fail_once ON `+table) })
}

// deadlockTries is how often a deadlock is made until the server gives up the
// transaction that is looked at: on a busy machine it may be the other one.
const deadlockTries = 5

// TestADeadlockIsDecidedAgain: somebody else locks rows in the other order.
func TestADeadlockIsDecidedAgain(t *testing.T) {
	deadlock := map[string]string{"mysql": "1213", "postgres": "40P01"}
	onEveryServer(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 5))
		run(t, s.conns.write, `CREATE TABLE weight (n INT PRIMARY KEY)`)
		seen := watchErrors(s, func() {})
		want := deadlock[s.Kind()]
		for n := int64(1); n <= deadlockTries && !slices.Contains(*seen, want); n++ {
			if res := crossed(t, s, fmt.Sprint("order-", n)); res.Seq != n+1 || res.Replayed {
				t.Errorf("got %+v, want a new line %d", res, n+1)
			}
		}
		if !slices.Contains(*seen, want) {
			t.Errorf("got errors %q, want %q", *seen, want)
		}
	})
}

// crossed applies an order against a transaction that locks the balance first and
// the head last.
func crossed(t *testing.T, s *Store, order string) (res ledger.Result) {
	t.Helper()
	other, err := s.conns.write.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	for i := range 50 { // the lighter transaction is the one that a server gives up
		run(t, other, fmt.Sprintf(`INSERT INTO weight VALUES (%d)`, i))
	}
	run(t, other, `UPDATE balances SET version = version + 1 WHERE account = 'shop'`)
	var applying sync.WaitGroup
	applying.Go(func() {
		results, err := s.Apply(t.Context(), reserve(order, 1))
		if err != nil {
			t.Errorf("apply: %v", err)
			return
		}
		res = results[0]
	})
	awaitBlocked(t, s, other)
	var seq int64
	_ = other.QueryRow(`SELECT seq FROM head FOR UPDATE`).Scan(&seq) // fails if it is the one
	_ = other.Rollback()
	applying.Wait()
	return res
}

// TestACommitOnADeadConnectionIsDoneAgain: the server ends the session.
func TestACommitOnADeadConnectionIsDoneAgain(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 2))
		killed := failCommit(s, 1, func(tx *sql.Tx) error {
			kill(t, s, tx)
			return tx.Commit()
		})
		if res := apply(t, s, reserve("order", 1)); res[0].Refused() || res[0].Replayed || *killed != 1 {
			t.Errorf("got %+v after %d lost connections, want a new line after 1", res[0], *killed)
		}
		if got := held(t, s); got != 1 {
			t.Errorf("held: got %d, want 1", got)
		}
	})
}

// kill ends the session of tx.
func kill(t *testing.T, s *Store, tx *sql.Tx) {
	t.Helper()
	own, end := `SELECT CONNECTION_ID()`, `KILL %d`
	if s.Kind() == "postgres" {
		own, end = `SELECT pg_backend_pid()`, `SELECT pg_terminate_backend(%d, 5000)`
	}
	var id int64
	if err := tx.QueryRow(own).Scan(&id); err != nil {
		t.Fatal(err)
	}
	run(t, s.conns.write, fmt.Sprintf(end, id))
}

// TestKeysAreComparedAsBytes: what a collation takes for the same, and pads or
// folds, are four different requests here.
func TestKeysAreComparedAsBytes(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		for i, id := range []string{"abc", "ABC", "abc ", "ábc"} {
			e := ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(tee("@supplier", "shop", int64(i+1)))}}
			if res := apply(t, s, e)[0]; res.Refused() || res.Replayed {
				t.Errorf("%q: got %+v, want an entry of its own", id, res)
			}
		}
		for _, account := range []ledger.Account{"wallet/a", "wallet/A"} {
			apply(t, s, ledger.Entry{ID: string(account), Ops: []ledger.Op{ledger.Move(tee("@supplier", account, 1))}})
		}
		rows, err := s.Balances(t.Context(), ledger.BalanceQuery{Prefix: "wallet/"})
		if err != nil || len(rows) != 2 || rows[0].Account != "wallet/A" {
			t.Errorf("got %v, %v, want two balances in the order of their bytes", rows, err)
		}
	})
}

// TestAWriterSeesWhatOthersHaveCommitted: at the isolation that MySQL has by
// default, it would check what was and change what is.
func TestAWriterSeesWhatOthersHaveCommitted(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 5))
		tx, err := s.conns.write.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, want := range []int64{0, 2} {
			var got int64
			if err := tx.QueryRow(`SELECT held FROM balances WHERE account = 'shop'`).Scan(&got); err != nil || got != want {
				t.Errorf("held: got %d, %v, want %d", got, err, want)
			}
			apply(t, s, reserve(fmt.Sprint("order", want), 2))
		}
	})
}

// TestAnUpdateThatChangesNothingHasMetItsRow: counted by changed rows, it would
// look like a conflict.
func TestAnUpdateThatChangesNothingHasMetItsRow(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		res, err := s.conns.write.Exec(`UPDATE head SET at = at WHERE one = 1`)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			t.Errorf("got %d rows, %v, want 1", n, err)
		}
	})
}

// TestARefusalOnOldRowsIsDecidedAgain: somebody restocks after the rows were
// read and before the head is locked.
func TestARefusalOnOldRowsIsDecidedAgain(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		s, other := openAt(t, url, Options{}), openAt(t, url, Options{})
		apply(t, s, stock("stock", 1), reserve("first", 1))
		restocking, done := make(chan struct{}), make(chan struct{})
		other.commit = func(tx *sql.Tx) error {
			close(restocking)
			awaitBlocked(t, other, tx)
			return tx.Commit()
		}
		go func() {
			defer close(done)
			if _, err := other.Apply(t.Context(), stock("more", 1)); err != nil {
				t.Errorf("restock: %v", err)
			}
		}()
		<-restocking
		if res := apply(t, s, reserve("second", 1)); res[0].Refused() {
			t.Errorf("got %+v, want the piece that had come in", res[0])
		}
		<-done
	})
}

// awaitBlocked returns when somebody waits for tx.
func awaitBlocked(t *testing.T, s *Store, tx *sql.Tx) {
	t.Helper()
	const looks = 100 // of some 0.1 s
	// MySQL makes this table anew when nobody has read it for 100 ms.
	query := `SELECT COUNT(*) + SLEEP(0.11) FROM information_schema.innodb_trx AS x
		JOIN information_schema.processlist AS p ON p.id = x.trx_mysql_thread_id
		WHERE x.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`
	if s.Kind() == "postgres" {
		query = `SELECT COUNT(*) FROM pg_locks, (SELECT pg_sleep(0.05)) AS pause
			WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))`
	}
	for range looks {
		var n int
		if err := tx.QueryRow(query).Scan(&n); err != nil {
			t.Errorf("%s: %v", query, err)
			return
		}
		if n > 0 {
			return
		}
	}
	t.Error("nobody waits")
}
