package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
	"github.com/holdfast-pay/holdfast/ledger"
)

func with(settings map[string]string, changes ...string) map[string]string {
	settings = maps.Clone(settings)
	for i := 0; i < len(changes); i += 2 {
		settings[changes[i]] = changes[i+1]
	}
	return settings
}

func TestAServerThatCannotKeepALedgerIsRefused(t *testing.T) {
	maria := map[string]string{"version": "10.11.19-MariaDB-log", "sql_mode": mysqlModes, "tx_isolation": "READ-COMMITTED",
		"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1", "binlog_format": "MIXED",
		"wsrep_on": "OFF", "read_only": "OFF"}
	pg := map[string]string{"server_version_num": "150018", "server_version": "15.18", "server_encoding": "UTF8",
		"default_transaction_isolation": "read committed", "fsync": "on", "full_page_writes": "on",
		"synchronous_commit": "on", "is_replica": "false", "schema": "public"}
	for _, c := range []struct {
		settings map[string]string
		want     error
		says     string
	}{
		{maria, nil, ""},
		{with(maria, "version", "8.0.16", "tx_isolation", "", "transaction_isolation", "READ-COMMITTED"), nil, ""},
		{with(maria, "log_bin", "OFF", "sync_binlog", "0", "binlog_format", "STATEMENT"), nil, ""},
		{with(maria, "version", "8.0.15"), errServer, "MySQL 8.0.15, and the oldest that will do is 8.0.16"},
		{with(maria, "version", "5.7.44-log"), errServer, "8.0.16"},
		{with(maria, "version", "10.5.29-MariaDB"), errServer, "10.6.0"},
		{with(maria, "version", "?"), errServer, "understood"},
		{with(maria, "sql_mode", "NO_ENGINE_SUBSTITUTION"), errServer, "STRICT_ALL_TABLES"},
		{with(maria, "tx_isolation", "REPEATABLE-READ"), errServer, "REPEATABLE-READ"},
		{with(maria, "binlog_format", "STATEMENT"), errServer, "binlog_format=STATEMENT"},
		{with(maria, "read_only", "ON"), errServer, "read only"},
		{with(maria, "innodb_flush_log_at_trx_commit", "2"), ErrUnsafeDurability, "innodb_flush_log_at_trx_commit=2"},
		{with(maria, "sync_binlog", "0"), ErrUnsafeDurability, "sync_binlog=0"},
		{with(maria, "wsrep_on", "ON"), ErrUnsafeDurability, "wsrep_on=ON"},
		{map[string]string{}, errServer, ""},

		{pg, nil, ""},
		{with(pg, "server_version_num", "120022", "server_version", "12.22"), errServer, "12.22, and the oldest that will do is 13"},
		{with(pg, "is_replica", "true"), errServer, "replica"},
		{with(pg, "server_encoding", "SQL_ASCII"), errServer, "SQL_ASCII"},
		{with(pg, "default_transaction_isolation", "serializable"), errServer, "serializable"},
		{with(pg, "fsync", "off"), ErrUnsafeDurability, "fsync=off"},
		{with(pg, "full_page_writes", "off"), ErrUnsafeDurability, "full_page_writes=off"},
		{with(pg, "synchronous_commit", "off"), ErrUnsafeDurability, "synchronous_commit=off"},
	} {
		check := checkMySQL
		if c.settings["server_version_num"] != "" {
			check = checkPostgres
		}
		err := check(c.settings, Options{})
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v\ngot %v, want %v: %s", c.settings, err, c.want, c.says)
		}
		if err := check(c.settings, Options{AllowUnsafeDurability: true}); errors.Is(c.want, ErrUnsafeDurability) && err != nil {
			t.Errorf("%s allowed: got %v", c.says, err)
		}
	}
}

func TestAConnectionToAWorseServerIsRefused(t *testing.T) {
	worse := errors.New("the server is another one")
	s := session{Connector: plainConnector(t, sqlstoretest.MySQL(t)), settings: `SELECT 'a', 'b'`,
		check: func(settings map[string]string) error {
			if settings["a"] != "b" {
				t.Errorf("got %v, want the answer to the query", settings)
			}
			return worse
		}}
	if conn, err := s.Connect(t.Context()); !errors.Is(err, worse) {
		t.Errorf("got %v, %v, want %v", conn, err, worse)
	}
}

func plainConnector(t *testing.T, url string) driver.Connector {
	t.Helper()
	cfg, err := mysqlConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPostgresMayNotAnswerBeforeItWrites(t *testing.T) {
	url := sqlstoretest.Postgres(t) + "&synchronous_commit=off"
	if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, ErrUnsafeDurability) {
		t.Errorf("got %v, want %v", err, ErrUnsafeDurability)
	}
	s := openAt(t, url, Options{AllowUnsafeDurability: true})
	if got := s.Durability(); got != "synchronous_commit=off" {
		t.Errorf("durability: got %q", got)
	}
}

func TestMySQLIsStrictWhateverItsDefaultIs(t *testing.T) {
	s := openAt(t, sqlstoretest.MySQL(t), Options{})
	for _, statement := range []string{
		`UPDATE balances SET held = -7`,
		`INSERT INTO balances (account, asset, posted, held, version) VALUES ('a', 'b', 'lots', 0, 1)`,
		`INSERT INTO balances (account, asset, posted, held, version) VALUES (REPEAT('a', 129), 'b', 0, 0, 1)`,
	} {
		apply(t, s, stock("stock", 1))
		if _, err := s.conns.write.Exec(statement); err == nil {
			t.Errorf("%s: got no error", statement)
		}
	}
}

func TestACommitThatWasARollbackIsNoSuccess(t *testing.T) {
	s := openAt(t, sqlstoretest.Postgres(t), Options{})
	apply(t, s, stock("stock", 2))
	failed := failCommit(s, 1, func(tx *sql.Tx) error {
		if _, err := tx.Exec(`SELECT 1/0`); err == nil {
			t.Error("got no error")
		}
		return tx.Commit() // the server answers ROLLBACK, and that is no error to it
	})
	if res := apply(t, s, reserve("order", 1)); res[0].Refused() || res[0].Replayed || *failed != 1 {
		t.Errorf("got %+v after %d rollbacks, want a new line after 1", res[0], *failed)
	}
	if got := held(t, s); got != 1 {
		t.Errorf("held: got %d, want 1", got)
	}
}

// TestALockWaitTimeoutLeavesNoHalfTransfer also shows what it is a guard
// against: MySQL commits the half that did not wait.
func TestALockWaitTimeoutLeavesNoHalfTransfer(t *testing.T) {
	t.Parallel()
	url := sqlstoretest.MySQL(t)
	s := openAt(t, url, Options{})
	oneConnection(s)
	give := func(id string, to ledger.Account) ledger.Entry {
		return ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(tee("@supplier", to, 100))}}
	}
	apply(t, s, give("a", "a"), give("b", "b"))
	other := openAt(t, url, Options{})
	hold, err := other.conns.write.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Rollback()
	run(t, hold, `UPDATE balances SET version = version + 1 WHERE account = 'b'`)
	run(t, s.conns.write, `SET SESSION innodb_lock_wait_timeout = 1`, // second
		`BEGIN`, `UPDATE balances SET posted = posted - 10 WHERE account = 'a'`)
	if _, err := s.conns.write.Exec(`UPDATE balances SET posted = posted + 10 WHERE account = 'b'`); code(err) != "1205" {
		t.Fatalf("got %v, want error 1205", err)
	}
	var half int64
	if err := s.conns.write.QueryRow(`SELECT posted FROM balances WHERE account = 'a'`).Scan(&half); err != nil || half != 90 {
		t.Errorf("got %d, %v, want that the first half is still there", half, err)
	}
	run(t, s.conns.write, `ROLLBACK`)

	seen := watchErrors(s, func() { hold.Rollback() })
	e := ledger.Entry{ID: "transfer", Ops: []ledger.Op{ledger.Move(tee("a", "b", 10))}}
	if res := apply(t, s, e); res[0].Refused() || res[0].Replayed {
		t.Errorf("got %+v, want a new line", res[0])
	}
	if len(*seen) != 1 || (*seen)[0] != "1205" {
		t.Errorf("got errors %q, want one 1205", *seen)
	}
}

func TestUnusableServerURLsAreRefusedAndKeepTheirPassword(t *testing.T) {
	const secret = "hunter2"
	for _, url := range []string{
		"mysql://root:" + secret + "@127.0.0.1:1/shop",
		"mysql://root:" + secret + "@127.0.0.1:1",
		"mysql://root:" + secret + "@127.0.0.1:1/shop?sql_mode=",
		"mysql://root:" + secret + "%@127.0.0.1:1/shop",
		"postgres://root:" + secret + "@127.0.0.1:1/shop",
		"postgres://root:" + secret + "%@127.0.0.1:1/shop",
		"postgresql://root:" + secret + "@127.0.0.1:1/shop",
	} {
		s, err := Open(t.Context(), url, Options{})
		if err == nil {
			s.Close()
			t.Errorf("%q: got a store, want an error", url)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestTimeIsTheDatabases(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		s, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.measured.Set(testTime.UnixMilli()) // a measurement of long ago
		s.measured.last.Load().at = time.Now().Add(-2 * clockAge)
		now, err := s.Now(t.Context())
		if want := time.Now().UnixMilli(); err != nil || now < want-60_000 || now > want+60_000 {
			t.Errorf("now: got %d, %v, want about %d", now, err, want)
		}
		s.measured.Set(now + 3_600_000)
		if res := apply(t, s, stock("stock", 1)); res[0].At < now || res[0].At > now+60_000 {
			t.Errorf("at: got %d, want what the database says, some ms after %d", res[0].At, now)
		}
		if again, err := s.Now(t.Context()); err != nil || again < now {
			t.Errorf("now: got %d, %v after %d", again, err, now)
		}
	})
}

func TestProgramsThatStartAtOnceMakeOneLedger(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		ids := make([]string, 4)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				s, err := Open(t.Context(), url, Options{})
				if err != nil {
					t.Errorf("open %d: %v", i, err)
					return
				}
				ids[i] = s.ID()
				if err := s.Close(); err != nil {
					t.Errorf("close %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if ids[0] == "" || len(slices.Compact(ids)) != 1 {
			t.Errorf("ids: got %q, want one", ids)
		}
	})
}

// TestAMigrationThatWasKilledGoesOn: MySQL commits each statement of it.
func TestAMigrationThatWasKilledGoesOn(t *testing.T) {
	url := sqlstoretest.MySQL(t)
	s := openAt(t, url, Options{})
	run(t, s.conns.write, `DROP VIEW items`, `DROP TRIGGER head_is_kept`, `DELETE FROM goose_db_version WHERE version_id > 0`)
	again := openAt(t, url, Options{})
	apply(t, again, stock("stock", 1))
	if _, err := again.conns.write.Exec(`DELETE FROM head`); breachOf(err) != trigger {
		t.Errorf("got %v, want that the trigger is there again", err)
	}
	if again.ID() != s.ID() {
		t.Errorf("id: got %q, want %q", again.ID(), s.ID())
	}
}

func TestAStoreSaysWhatItIs(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		if got := s.Kind(); !strings.HasPrefix(url, got+":") {
			t.Errorf("got %q for %s", got, strings.SplitN(url, ":", 2)[0])
		}
	})
}

// TestProgramsThatMigrateAtOnceWaitForEachOther: opening would try again, but
// a migration that meets another half-way must not happen in the first place.
func TestProgramsThatMigrateAtOnceWaitForEachOther(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		scheme, _, _ := strings.Cut(url, ":")
		d := dialectOf(scheme)
		var wg sync.WaitGroup
		for i := range 4 {
			c, err := d.open(t.Context(), url, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.read.Close()
			defer c.write.Close()
			wg.Go(func() {
				if _, err := migrate(t.Context(), d, c.write); err != nil {
					t.Errorf("program %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	})
}
