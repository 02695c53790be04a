package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func examineMySQL(ctx context.Context, c *chart, address string) error {
	cfg, err := mysqlConfig(address)
	if err != nil {
		return err
	}
	db, err := openMySQL(cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	version, ok := c.connectMySQL(ctx, db, cfg)
	if !ok || !c.mysqlVersion(version) {
		return nil
	}
	c.mysqlSettings(ctx, db)
	c.clock(func() (time.Time, error) {
		var ms int64
		err := db.QueryRowContext(ctx, `SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)`).Scan(&ms)
		return time.UnixMilli(ms), err
	})
	if c.sound() {
		c.mysqlScratch(ctx, db, cfg, mysqlTable, func(s *scratch) { c.prove(ctx, s, slices.Concat(everywhere, servers)) })
	}
	return nil
}

func mysqlConfig(address string) (*mysql.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" || len(u.Path) < 2 || strings.Count(u.Path, "/") != 1 {
		return nil, fmt.Errorf("%w: a MySQL store is mysql://USER:PASSWORD@HOST:PORT/DATABASE; special characters of a password are written as %%XX", ErrAddress)
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr += ":3306"
	}
	for name, value := range u.Query() {
		if name != "tls" {
			return nil, fmt.Errorf("%w: a MySQL store's URL takes tls=true, tls=skip-verify or tls=preferred, got %s", ErrAddress, name)
		}
		cfg.TLSConfig = value[0]
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = connectFor, examineFor, examineFor
	cfg.ClientFoundRows = true
	cfg.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES'"}
	cfg.Logger = &mysql.NopLogger{} // errors are findings, no lines on the standard error
	return cfg, nil
}

func openMySQL(cfg *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrAddress, err)
	}
	return sql.OpenDB(connector), nil
}

func mysqlCode(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return strconv.Itoa(int(e.Number))
	}
	return ""
}

// connectMySQL asks for the version, the first statement of all; it says which
// of the two databases this is.
func (c *chart) connectMySQL(ctx context.Context, db *sql.DB, cfg *mysql.Config) (version string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	err := db.QueryRowContext(ctx, `SELECT VERSION()`).Scan(&version)
	if strings.Contains(version, "MariaDB") {
		c.server = "mariadb"
	}
	if err == nil {
		c.add("connect", OK, "connected to "+cfg.Addr, "")
		return version, true
	}
	advice := fmt.Sprintf("nothing answers as MySQL or MariaDB at %s: check host, port, firewall and bind_address", cfg.Addr)
	switch mysqlCode(err) {
	case "1045", "1698":
		advice = fmt.Sprintf("check user and password; special characters of a password are written as %%XX. On the server: ALTER USER '%s'@'%%' IDENTIFIED BY '...'", cfg.User)
	case "1044":
		advice = fmt.Sprintf("on the server: GRANT ALL ON `%s`.* TO '%s'@'%%'", cfg.DBName, cfg.User)
	case "1049":
		advice = fmt.Sprintf("on the server: CREATE DATABASE `%s`", cfg.DBName)
	case "1040", "1203":
		advice = "raise max_connections, or find out who holds them all"
	case "1130":
		advice = fmt.Sprintf("let the user in from this machine: CREATE USER '%s'@'%%'", cfg.User)
	}
	c.add("connect", Wrong, err.Error(), advice)
	return "", false
}

func (c *chart) mysqlVersion(version string) bool {
	least := []int{8, 0, 16}
	if c.server == "mariadb" {
		least = []int{10, 6, 0}
		version = strings.TrimPrefix(version, "5.5.5-") // a prefix for old replicas
	}
	ok := atLeast(version, least)
	c.expect(ok, "version", version, Wrong, "use MariaDB 10.6 or MySQL 8.0.16, or newer")
	return ok
}

// atLeast compares the numbers that a version begins with.
func atLeast(version string, least []int) bool {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	for i, want := range least {
		got := 0
		if i < len(parts) {
			got, _ = strconv.Atoi(parts[i]) // digits; too many of them are a large number
		}
		if got != want {
			return got > want
		}
	}
	return true
}

func (c *chart) mysqlSettings(ctx context.Context, db *sql.DB) {
	set, err := settings(ctx, db, `SHOW GLOBAL VARIABLES WHERE Variable_name IN
		('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog', 'binlog_format', 'wsrep_on', 'read_only', 'super_read_only')`)
	if err != nil {
		c.add("settings", Wrong, err.Error(), "let the user read the global variables")
		return
	}
	c.judgeMySQL(set)
	c.replica(ctx, db)
}

func (c *chart) judgeMySQL(set map[string]string) {
	flush := set["innodb_flush_log_at_trx_commit"]
	c.expect(flush == "1", "durability", "innodb_flush_log_at_trx_commit="+flush, Wrong,
		"a power cut would lose answered orders: SET GLOBAL innodb_flush_log_at_trx_commit=1, and in my.cnf")
	if isOn(set["log_bin"]) {
		c.expect(set["sync_binlog"] == "1", "binlog", "log_bin=ON, sync_binlog="+set["sync_binlog"], Wrong,
			"after a power cut replicas would differ: SET GLOBAL sync_binlog=1, and in my.cnf")
		c.expect(set["binlog_format"] != "STATEMENT", "binlog_format", "binlog_format="+set["binlog_format"], Wrong,
			"READ COMMITTED can't be logged so: SET GLOBAL binlog_format=ROW, and in my.cnf")
	}
	c.expect(set["innodb_doublewrite"] != "OFF" && set["innodb_doublewrite"] != "0", "torn_pages", "innodb_doublewrite="+set["innodb_doublewrite"], Warning,
		"switch innodb_doublewrite on unless the file system writes whole pages")
	c.expect(!isOn(set["wsrep_on"]), "cluster", "wsrep_on="+orOff(set["wsrep_on"]), Wrong,
		"Galera lets two nodes sell the same unit: point the store at a single primary without wsrep")
	c.expect(!isOn(set["read_only"]) && !isOn(set["super_read_only"]), "writable",
		fmt.Sprintf("read_only=%s, super_read_only=%s", set["read_only"], orOff(set["super_read_only"])), Wrong,
		"this is a replica or a primary under maintenance: point the store at the primary")
}

// replica asks whether the server follows another one.
func (c *chart) replica(ctx context.Context, db *sql.DB) {
	statement := `SHOW REPLICA STATUS` // MySQL since 8.0.22; MariaDB since 10.5
	r, err := db.QueryContext(ctx, statement)
	if mysqlCode(err) == "1064" {
		r, err = db.QueryContext(ctx, `SHOW SLAVE STATUS`)
	}
	if err != nil {
		c.add("replica", Warning, err.Error(), "we may not see whether this is a replica; GRANT REPLICATION CLIENT (MariaDB: REPLICA MONITOR) ON *.* to the user, or make sure yourself")
		return
	}
	defer r.Close()
	follows := r.Next()
	if err := r.Err(); err != nil {
		c.add("replica", Warning, err.Error(), "ask again")
		return
	}
	c.expect(!follows, "replica", map[bool]string{true: "follows another server", false: "follows nobody"}[follows], Wrong,
		"what a replica answers is late: point the store at the primary")
}

func isOn(value string) bool { return value == "ON" || value == "1" }

func orOff(value string) string {
	if value == "" {
		return "OFF"
	}
	return value
}

// settings reads rows of a name and a value.
func settings(ctx context.Context, db *sql.DB, query string) (map[string]string, error) {
	r, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	set := map[string]string{}
	for r.Next() {
		var name, value string
		if err := r.Scan(&name, &value); err != nil {
			return nil, err
		}
		set[name] = value
	}
	return set, r.Err()
}

const mysqlTable = `CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, CHECK (n >= 0)) ENGINE=InnoDB`

// mysqlScratch runs f on the table in a database that is dropped afterwards.
func (c *chart) mysqlScratch(ctx context.Context, db *sql.DB, cfg *mysql.Config, table string, f func(*scratch)) {
	name, advice := scratchName(), fmt.Sprintf("for the examination only: GRANT ALL ON `holdfast\\_doctor\\_%%`.* TO '%s'@'%%'", cfg.User)
	if _, err := db.ExecContext(ctx, "CREATE DATABASE `"+name+"`"); err != nil {
		c.add("scratch", Wrong, err.Error(), advice)
		return
	}
	defer c.drop(ctx, db, "DROP DATABASE `"+name+"`")
	own := cfg.Clone()
	own.DBName = name
	in, err := openMySQL(own)
	if err == nil {
		defer in.Close()
		_, err = in.ExecContext(ctx, table)
	}
	if err != nil {
		c.add("scratch", Wrong, err.Error(), advice+"; InnoDB must be available")
		return
	}
	f(&scratch{
		db: in, isolation: sql.LevelReadCommitted, code: mysqlCode,
		lock: `SELECT n FROM t WHERE id = 1 FOR UPDATE`, impatient: `SET SESSION innodb_lock_wait_timeout = 1`,
		duplicate: []string{"1062"}, broken: []string{"3819", "4025"}, mistyped: []string{"1366"}, waited: []string{"1205"},
	})
}

// drop removes what we have made, also when ctx has ended.
func (c *chart) drop(ctx context.Context, db *sql.DB, statement string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyFor)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		c.add("tidy", Warning, err.Error(), "run it yourself: "+statement)
	}
}
