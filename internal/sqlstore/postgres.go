package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// postgres is PostgreSQL.
var postgres = dialect{
	name:     "postgres",
	goose:    goose.DialectPostgres,
	lock:     " FOR UPDATE",
	now:      "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint", // now() is when the transaction began
	numbered: true,
	insert:   "INSERT INTO ",
	tuples:   "VALUES ", // a list of tuples itself would be planned as so many conditions
	rows:     []int{256, 64, 16, 4, 1},
	updates:  []int{256, 64, 16, 4, 1},
	send:     sendPostgres,
	snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
	migrate: &sessionLock{
		take: "SELECT 1 FROM (SELECT pg_advisory_lock(hashtext('holdfast'), hashtext(current_schema()))) AS taken",
		give: "SELECT pg_advisory_unlock(hashtext('holdfast'), hashtext(current_schema()))::int",
	},
	open:  openPostgres,
	again: postgresAgain,
	hint:  postgresHint,
}

// oldestPostgres is the oldest version that is tested and still maintained, as
// server_version_num has it.
const oldestPostgres = 130000

const postgresSettings = `SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'server_version',
		'server_encoding', 'default_transaction_isolation', 'fsync', 'full_page_writes', 'synchronous_commit')
	UNION ALL SELECT 'is_replica', pg_is_in_recovery()::text
	UNION ALL SELECT 'schema', coalesce(current_schema(), '')`

// openPostgres opens postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the
// parameters that libpq knows and settings of a session, such as search_path.
func openPostgres(ctx context.Context, url string, o Options) (conns, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return conns{}, err
	}
	if cfg.Database == "" {
		return conns{}, errors.New("postgres needs a database, as in postgres://user:password@host:5432/database")
	}
	cfg.ConnectTimeout = dialTimeout
	for name, value := range map[string]string{
		"application_name":                    "holdfast",
		"jit":                                 "off", // to compile a statement takes longer than any of ours; it is done to all that use what is off below
		"default_transaction_isolation":       "read committed",
		"default_transaction_read_only":       "off",
		"lock_timeout":                        strconv.FormatInt(lockTimeout.Milliseconds(), 10),
		"statement_timeout":                   strconv.FormatInt(queryTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(abandonTimeout.Milliseconds(), 10),
	} {
		cfg.RuntimeParams[name] = value
	}
	reader := cfg.Copy()
	for _, plan := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		cfg.RuntimeParams[plan] = "off" // a writer names every row by its key, however small the table still is
	}
	reader.RuntimeParams["default_transaction_read_only"] = "on"
	check := func(settings map[string]string) error { return checkPostgres(settings, o) }
	c, err := openPools(ctx,
		session{Connector: stdlib.GetConnector(*cfg), settings: postgresSettings, check: check},
		session{Connector: stdlib.GetConnector(*reader), settings: postgresSettings, check: check})
	if err != nil {
		return conns{}, err
	}
	c.durability, err = durability(ctx, c, postgresSettings, postgresWeakness)
	return c, err
}

func checkPostgres(settings map[string]string, o Options) error {
	version, err := strconv.Atoi(settings["server_version_num"])
	if err != nil || version < oldestPostgres {
		return fmt.Errorf("%w: it is PostgreSQL %s, and the oldest that will do is %d",
			errServer, settings["server_version"], oldestPostgres/10000)
	}
	if settings["is_replica"] != "false" {
		return fmt.Errorf("%w: it is a replica", errServer)
	}
	if settings["schema"] == "" {
		return errors.New("no schema is selected; make the schema that search_path names")
	}
	if settings["server_encoding"] != "UTF8" {
		return fmt.Errorf("%w: the encoding of the database is %s, it must be UTF8", errServer, settings["server_encoding"])
	}
	if isolation := settings["default_transaction_isolation"]; isolation != "read committed" {
		return fmt.Errorf("%w: the isolation is %s although read committed was asked for", errServer, isolation)
	}
	return durable(postgresWeakness(settings), o)
}

// postgresWeakness is the first setting under which an answered write can be lost.
func postgresWeakness(settings map[string]string) string {
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if settings[name] == "off" {
			return name + "=off"
		}
	}
	return ""
}

// postgresAgain knows the errors after which a decision is made anew.
func postgresAgain(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return cutOff(err) || pgconn.SafeToRetry(err)
	}
	switch e.Code {
	case "40001", "40P01", // serialization failure, deadlock
		"55P03", "57014", // a lock or a statement took too long
		"23505", "23514", // unique, CHECK
		"22003",                                     // a number out of range
		"25P03",                                     // idle in transaction for too long
		"53300", "57P01", "57P02", "57P03", "57P05": // too many connections, or the server shuts down
		return true
	default:
		return strings.HasPrefix(e.Code, "08") // connection
	}
}

func postgresHint(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code {
	case "28P01", "28000":
		return hintPassword
	case "42501":
		return hintPrivileges
	case "3D000":
		return hintDatabase
	default:
		return ""
	}
}

// sendPostgres executes steps as one pipeline: the server need not be waited for
// between two of them. Their statements are prepared, the first time that a
// connection has them.
func sendPostgres(ctx context.Context, t *tx, steps []step) error {
	return t.conn.Raw(func(conn any) error {
		batch := &pgx.Batch{}
		for _, s := range steps {
			batch.Queue(s.text, s.args...)
		}
		answers := conn.(*stdlib.Conn).Conn().SendBatch(ctx, batch)
		for _, s := range steps {
			if err := answerPostgres(answers, s); err != nil {
				_ = answers.Close() // it says the same
				return err
			}
		}
		return answers.Close()
	})
}

func answerPostgres(answers pgx.BatchResults, s step) error {
	if s.row == nil {
		tag, err := answers.Exec()
		if err != nil {
			return err
		}
		return s.wrote(tag.RowsAffected())
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := s.row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
