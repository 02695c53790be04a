package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const leastPostgres = 13_00_00 // server_version_num

func examinePostgres(ctx context.Context, c *chart, address string) error {
	cfg, err := pgx.ParseConfig(address)
	if err != nil { // its text hides the password
		return fmt.Errorf("%w: a PostgreSQL store is postgres://USER:PASSWORD@HOST:PORT/DATABASE: %v", ErrAddress, err)
	}
	cfg.ConnectTimeout = connectFor
	cfg.RuntimeParams["default_transaction_read_only"] = "off" // as the store does
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	set, ok := c.connectPostgres(ctx, db, cfg)
	if !ok {
		return nil
	}
	c.postgresSettings(set)
	c.clock(func() (time.Time, error) {
		var ms int64
		err := db.QueryRowContext(ctx, `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint`).Scan(&ms)
		return time.UnixMilli(ms), err
	})
	if c.sound() {
		c.postgresScratch(ctx, db, cfg, postgresTable, func(s *scratch) { c.prove(ctx, s, slices.Concat(everywhere, servers)) })
	}
	return nil
}

func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// connectPostgres asks for the settings, the first statement of all.
func (c *chart) connectPostgres(ctx context.Context, db *sql.DB, cfg *pgx.ConnConfig) (set map[string]string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	set, err := settings(ctx, db, `SELECT name, setting FROM pg_settings WHERE name IN
		('server_version_num', 'server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'transaction_read_only', 'server_encoding')
		UNION ALL SELECT 'in_recovery', pg_is_in_recovery()::text`)
	at := fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
	if err == nil {
		c.add("connect", OK, "connected to "+at, "")
		return set, true
	}
	advice := fmt.Sprintf("nothing answers as PostgreSQL at %s: check host, port, firewall and listen_addresses", at)
	switch postgresCode(err) {
	case "28P01", "28000":
		advice = fmt.Sprintf("check user and password (special characters of a password are written as %%XX) and pg_hba.conf. On the server: ALTER ROLE \"%s\" LOGIN PASSWORD '...'", cfg.User)
	case "3D000":
		advice = fmt.Sprintf("on the server: CREATE DATABASE \"%s\" OWNER \"%s\"", cfg.Database, cfg.User)
	case "42501":
		advice = fmt.Sprintf("on the server: GRANT CONNECT, CREATE ON DATABASE \"%s\" TO \"%s\"", cfg.Database, cfg.User)
	case "53300":
		advice = "raise max_connections, or find out who holds them all"
	case "57P03":
		advice = "the server is starting: ask again"
	}
	c.add("connect", Wrong, err.Error(), advice)
	return nil, false
}

func (c *chart) postgresSettings(set map[string]string) {
	number, err := strconv.Atoi(set["server_version_num"])
	c.expect(err == nil && number >= leastPostgres, "version", set["server_version"], Wrong, "use PostgreSQL 13 or newer")
	c.expect(set["fsync"] == "on", "fsync", "fsync="+set["fsync"], Wrong,
		"a power cut would destroy the database: fsync = on in postgresql.conf")
	c.expect(set["synchronous_commit"] != "off", "durability", "synchronous_commit="+set["synchronous_commit"], Wrong,
		"a power cut would lose answered orders: synchronous_commit = on for the server, the database and the role")
	c.expect(set["full_page_writes"] == "on", "torn_pages", "full_page_writes="+set["full_page_writes"], Wrong,
		"a power cut could tear pages: full_page_writes = on in postgresql.conf")
	c.expect(set["in_recovery"] == "false", "replica", "pg_is_in_recovery="+set["in_recovery"], Wrong,
		"what a replica answers is late: point the store at the primary")
	c.expect(set["transaction_read_only"] == "off", "writable", "transaction_read_only="+set["transaction_read_only"], Wrong,
		"the server lets nobody write: point the store at the primary")
	c.expect(set["server_encoding"] == "UTF8", "encoding", "server_encoding="+set["server_encoding"], Wrong,
		"CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")
}

const postgresTable = `CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, CHECK (n >= 0))`

// postgresScratch runs f on the table in a schema that is dropped afterwards.
func (c *chart) postgresScratch(ctx context.Context, db *sql.DB, cfg *pgx.ConnConfig, table string, f func(*scratch)) {
	name, advice := scratchName(), fmt.Sprintf("GRANT CREATE ON DATABASE \"%s\" TO \"%s\"", cfg.Database, cfg.User)
	if _, err := db.ExecContext(ctx, `CREATE SCHEMA `+name); err != nil {
		c.add("scratch", Wrong, err.Error(), advice)
		return
	}
	defer c.drop(ctx, db, `DROP SCHEMA `+name+` CASCADE`)
	own := cfg.Copy()
	own.RuntimeParams["search_path"] = name
	in := stdlib.OpenDB(*own)
	defer in.Close()
	if _, err := in.ExecContext(ctx, table); err != nil {
		c.add("scratch", Wrong, err.Error(), advice)
		return
	}
	f(&scratch{
		db: in, isolation: sql.LevelReadCommitted, code: postgresCode,
		lock: `SELECT n FROM t WHERE id = 1 FOR UPDATE`, impatient: `SET lock_timeout = '300ms'`,
		duplicate: []string{"23505"}, broken: []string{"23514"}, mistyped: []string{"22P02"}, waited: []string{"55P03"},
	})
}
