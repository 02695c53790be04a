package doctor

import (
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// mysqlServer connects as the user who may do everything.
func mysqlServer(t *testing.T) (*sql.DB, *mysql.Config, *url.URL) {
	t.Helper()
	address := server(t, "HOLDFAST_TEST_MYSQL")
	cfg, err := mysqlConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	db, err := openMySQL(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return db, cfg, u
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// atCleanup executes a statement at the end of the test, when its context has ended.
func atCleanup(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := db.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	})
}

// Each of the proofs fails where its claim does not hold: a proof that can't
// fail proves nothing.
func TestAProofFailsOnMySQLWhereItsClaimDoesNotHold(t *testing.T) {
	db, sound, _ := mysqlServer(t)
	for _, c := range []struct {
		check  string
		table  string
		config func(*mysql.Config)
		spoil  func(*scratch)
	}{
		{check: "matched_rows", config: func(cfg *mysql.Config) { cfg.ClientFoundRows = false }},
		{check: "unique", table: `CREATE TABLE t (id BIGINT, n BIGINT NOT NULL, CHECK (n >= 0)) ENGINE=InnoDB`},
		{check: "check", table: `CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB`},
		{check: "strict", config: func(cfg *mysql.Config) { cfg.Params = map[string]string{"sql_mode": "''"} }},
		{check: "rollback", table: `CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, CHECK (n >= 0)) ENGINE=MyISAM`},
		{check: "blocks", spoil: func(s *scratch) { s.lock = `SELECT n FROM t WHERE id = 1` }},
		{check: "isolation", spoil: func(s *scratch) { s.isolation = sql.LevelRepeatableRead }},
	} {
		t.Run(c.check, func(t *testing.T) {
			cfg, table := sound.Clone(), mysqlTable
			if c.config != nil {
				c.config(cfg)
			}
			if c.table != "" {
				table = c.table
			}
			var found chart
			found.mysqlScratch(t.Context(), db, cfg, table, func(s *scratch) {
				if c.spoil != nil {
					c.spoil(s)
				}
				found.prove(t.Context(), s, only(c.check))
			})
			wantWrong(t, found.findings, c.check, "")
		})
	}
}

func TestWeakSettingsOfMySQLAreFound(t *testing.T) {
	sound := map[string]string{"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "log_bin": "ON", "sync_binlog": "1",
		"binlog_format": "ROW", "wsrep_on": "OFF", "read_only": "OFF", "super_read_only": "OFF"}
	for _, c := range []struct {
		name, value, check string
		want               Verdict
	}{
		{"innodb_flush_log_at_trx_commit", "2", "durability", Wrong}, {"innodb_flush_log_at_trx_commit", "0", "durability", Wrong},
		{"sync_binlog", "0", "binlog", Wrong}, {"sync_binlog", "1000", "binlog", Wrong}, {"binlog_format", "STATEMENT", "binlog_format", Wrong},
		{"innodb_doublewrite", "OFF", "torn_pages", Warning}, {"wsrep_on", "ON", "cluster", Wrong},
		{"read_only", "ON", "writable", Wrong}, {"super_read_only", "1", "writable", Wrong},
	} {
		var before, after chart
		before.judgeMySQL(sound)
		weak := maps.Clone(sound)
		weak[c.name] = c.value
		after.judgeMySQL(weak)
		if was, is := finding(before.findings, c.check), finding(after.findings, c.check); was.Verdict != OK || is.Verdict != c.want || is.Advice == "" {
			t.Errorf("%s=%s: got %+v after %+v, want %s", c.name, c.value, is, was, c.want)
		}
	}
}

func TestMySQLSaysWhatTheUserLacks(t *testing.T) {
	db, _, root := mysqlServer(t)
	user := scratchName()
	execute(t, db, fmt.Sprintf(`CREATE USER %s@'%%' IDENTIFIED BY 'a/b c'`, user), fmt.Sprintf("GRANT ALL ON `%s`.* TO %s@'%%'", root.Path[1:], user))
	atCleanup(t, db, fmt.Sprintf(`DROP USER %s@'%%'`, user))

	at := *root
	at.User = url.UserPassword(user, "a/b c")
	findings := look(t, at.String())
	wantWrong(t, findings, "scratch", "GRANT ALL ON `holdfast\\_doctor\\_%`.* TO '"+user)
	if f := finding(findings, "replica"); f.Verdict != Warning {
		t.Errorf("got %+v, want a warning that we may not see it", f)
	}
	execute(t, db, fmt.Sprintf("GRANT ALL ON `holdfast\\_doctor\\_%%`.* TO %s@'%%'", user))
	if wrong := verdicts(look(t, at.String()), Wrong); wrong != nil {
		t.Errorf("after the grant: got %v wrong, want nothing", wrong)
	}

	at.Path = "/mysql"
	wantWrong(t, look(t, at.String()), "connect", "GRANT ALL ON `mysql`")
	at.User = url.UserPassword(user, "wrong")
	wantWrong(t, look(t, at.String()), "connect", "check user and password")
	at.User, at.Path = root.User, "/"+user
	wantWrong(t, look(t, at.String()), "connect", "CREATE DATABASE `"+user)
}

func TestNothingIsLeftBehindOnMySQL(t *testing.T) {
	db, cfg, _ := mysqlServer(t)
	var name string
	var found chart
	found.mysqlScratch(t.Context(), db, cfg, mysqlTable, func(s *scratch) {
		if err := s.db.QueryRowContext(t.Context(), `SELECT DATABASE()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var count int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?`, name).Scan(&count); err != nil {
		t.Fatal(err)
	}
	if name == "" || count != 0 || found.findings != nil {
		t.Errorf("got %d of %q left, %+v, want none", count, name, found.findings)
	}
}
