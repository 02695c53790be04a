package doctor

import (
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresServer connects as the user who may do everything.
func postgresServer(t *testing.T) (*sql.DB, *pgx.ConnConfig, *url.URL) {
	t.Helper()
	address := server(t, "HOLDFAST_TEST_POSTGRES")
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { db.Close() })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return db, cfg, u
}

func TestAProofFailsOnPostgreSQLWhereItsClaimDoesNotHold(t *testing.T) {
	db, cfg, _ := postgresServer(t)
	for _, c := range []struct {
		check string
		table string
		spoil func(*scratch)
	}{
		{check: "unique", table: `CREATE TABLE t (id BIGINT PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, n BIGINT NOT NULL, CHECK (n >= 0))`},
		{check: "check", table: `CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)`},
		{check: "strict", table: `CREATE TABLE t (id BIGINT PRIMARY KEY, n TEXT NOT NULL)`},
		{check: "blocks", spoil: func(s *scratch) { s.lock = `SELECT n FROM t WHERE id = 1` }},
		{check: "isolation", spoil: func(s *scratch) { s.isolation = sql.LevelRepeatableRead }},
	} {
		t.Run(c.check, func(t *testing.T) {
			table := postgresTable
			if c.table != "" {
				table = c.table
			}
			var found chart
			found.postgresScratch(t.Context(), db, cfg, table, func(s *scratch) {
				if c.spoil != nil {
					c.spoil(s)
				}
				found.prove(t.Context(), s, only(c.check))
			})
			wantWrong(t, found.findings, c.check, "")
		})
	}
}

func TestWeakSettingsOfPostgreSQLAreFound(t *testing.T) {
	sound := map[string]string{"server_version_num": "130000", "server_version": "13.0", "fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on", "in_recovery": "false", "transaction_read_only": "off", "server_encoding": "UTF8"}
	for _, c := range []struct{ name, value, check string }{
		{"server_version_num", "120022", "version"}, {"server_version_num", "", "version"}, {"fsync", "off", "fsync"},
		{"synchronous_commit", "off", "durability"}, {"full_page_writes", "off", "torn_pages"},
		{"in_recovery", "true", "replica"}, {"transaction_read_only", "on", "writable"}, {"server_encoding", "SQL_ASCII", "encoding"},
	} {
		var before, after chart
		before.postgresSettings(sound)
		weak := maps.Clone(sound)
		weak[c.name] = c.value
		after.postgresSettings(weak)
		if was := finding(before.findings, c.check); was.Verdict != OK {
			t.Errorf("%s: got %+v, want ok", c.check, was)
		}
		if is := finding(after.findings, c.check); is.Verdict != Wrong || is.Advice == "" {
			t.Errorf("%s=%s: got %+v, want wrong", c.name, c.value, is)
		}
	}
}

func TestPostgreSQLSaysWhatTheUserLacks(t *testing.T) {
	db, cfg, root := postgresServer(t)
	user := scratchName()
	execute(t, db, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'a/b c'`, user))
	atCleanup(t, db, `DROP ROLE `+user)
	at := *root
	at.User = url.UserPassword(user, "a/b c")
	wantWrong(t, look(t, at.String()), "scratch", fmt.Sprintf(`GRANT CREATE ON DATABASE "%s" TO "%s"`, cfg.Database, user))
	execute(t, db, fmt.Sprintf(`GRANT CREATE ON DATABASE "%s" TO %s`, cfg.Database, user))
	atCleanup(t, db, `DROP OWNED BY `+user)
	if wrong := verdicts(look(t, at.String()), Wrong); wrong != nil {
		t.Errorf("after the grant: got %v wrong, want nothing", wrong)
	}
	execute(t, db, fmt.Sprintf(`ALTER ROLE %s SET synchronous_commit = off`, user))
	wantWrong(t, look(t, at.String()), "durability", "synchronous_commit = on")

	at.User = url.UserPassword(user, "wrong")
	wantWrong(t, look(t, at.String()), "connect", "check user and password")
	at.User, at.Path = root.User, "/"+user
	wantWrong(t, look(t, at.String()), "connect", `CREATE DATABASE "`+user)
}

func TestNothingIsLeftBehindOnPostgreSQL(t *testing.T) {
	db, cfg, _ := postgresServer(t)
	var name string
	var found chart
	found.postgresScratch(t.Context(), db, cfg, postgresTable, func(s *scratch) {
		if err := s.db.QueryRowContext(t.Context(), `SELECT current_schema()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var count int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_namespace WHERE nspname = $1`, name).Scan(&count); err != nil {
		t.Fatal(err)
	}
	if name == "" || count != 0 || found.findings != nil {
		t.Errorf("got %d of %q left, %+v, want none", count, name, found.findings)
	}
}
