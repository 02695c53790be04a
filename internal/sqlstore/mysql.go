package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

// mysqlDialect is MySQL and MariaDB.
var mysqlDialect = dialect{
	name:     "mysql",
	goose:    goose.DialectMySQL,
	lock:     " FOR UPDATE",
	now:      "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)", // NOW() is when the statement began, before it waited
	seek:     true,
	insert:   "INSERT INTO ",
	byKey:    " FORCE INDEX (PRIMARY)", // with many keys, to weigh the other indexes takes 50 times as long as to read
	rows:     []int{256, 64, 16, 4, 1},
	updates:  []int{256, 64, 16, 4, 1},
	send:     sendMySQL,
	snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
	migrate: &sessionLock{
		take: "SELECT GET_LOCK(CONCAT('holdfast ', MD5(DATABASE())), 60)", // seconds
		give: "SELECT RELEASE_LOCK(CONCAT('holdfast ', MD5(DATABASE())))",
	},
	open:  openMySQL,
	again: mysqlAgain,
	hint:  mysqlHint,
}

// The oldest servers that enforce CHECK constraints.
var (
	oldestMySQL   = [3]int{8, 0, 16}
	oldestMariaDB = [3]int{10, 6, 0}
)

// mysqlPacket is the most bytes of one packet; what is longer is sent in parts.
// No server's default is less.
const mysqlPacket = 4 << 20

// mysqlModes make a server refuse a value that it can't store as it is.
const mysqlModes = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO"

// mysqlSettings leaves out, and so tells nothing about, what a server does not know.
const mysqlSettings = `SHOW SESSION VARIABLES WHERE Variable_name IN ('version', 'sql_mode', 'tx_isolation',
	'transaction_isolation', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format',
	'wsrep_on', 'read_only')`

// openMySQL opens mysql://USER:PASSWORD@HOST:PORT/DATABASE, where ?tls=true,
// skip-verify or preferred encrypts.
func openMySQL(ctx context.Context, url string, o Options) (conns, error) {
	cfg, err := mysqlConfig(url)
	if err != nil {
		return conns{}, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return conns{}, err
	}
	s := session{Connector: connector, settings: mysqlSettings,
		check: func(settings map[string]string) error { return checkMySQL(settings, o) }}
	several := cfg.Clone()
	several.MultiStatements = true
	writer, err := mysql.NewConnector(several)
	if err != nil {
		return conns{}, err
	}
	write, read := s, s
	write.Connector = writer
	set := fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d, wait_timeout = %d",
		mysqlModes, int(lockTimeout.Seconds()), int(abandonTimeout.Seconds()))
	write.setup = []string{set, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"}
	read.setup = []string{set, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"}
	c, err := openPools(ctx, write, read)
	if err != nil {
		return conns{}, err
	}
	c.durability, err = durability(ctx, c, mysqlSettings, mysqlWeakness)
	return c, err
}

func mysqlConfig(text string) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("mysql needs a URL like mysql://user:password@host:3306/database") // err tells the password
	}
	database := strings.TrimPrefix(u.Path, "/")
	if u.Host == "" || database == "" || strings.Contains(database, "/") {
		return nil, errors.New("mysql needs a host and a database, as in mysql://user:password@host:3306/database")
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, database
	for name, values := range u.Query() {
		if name != "tls" {
			return nil, fmt.Errorf("mysql knows no parameter %q", name)
		}
		cfg.TLSConfig = values[0]
	}
	cfg.Collation = "utf8mb4_bin"
	cfg.ClientFoundRows = true   // an update that changes nothing has still met its row
	cfg.InterpolateParams = true // one round trip for what is not prepared
	cfg.MaxAllowedPacket = mysqlPacket
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = dialTimeout, queryTimeout, queryTimeout
	cfg.Logger = &mysql.NopLogger{} // every error is returned as well
	return cfg, nil
}

func checkMySQL(settings map[string]string, o Options) error {
	if err := checkMySQLVersion(settings["version"]); err != nil {
		return err
	}
	if !strings.Contains(settings["sql_mode"], "STRICT_ALL_TABLES") {
		return fmt.Errorf("%w: sql_mode is %q although STRICT_ALL_TABLES was asked for", errServer, settings["sql_mode"])
	}
	if isolation := settings["tx_isolation"] + settings["transaction_isolation"]; !strings.HasPrefix(isolation, "READ-COMMITTED") {
		return fmt.Errorf("%w: the isolation is %s although READ COMMITTED was asked for", errServer, isolation)
	}
	if settings["log_bin"] == "ON" && settings["binlog_format"] == "STATEMENT" {
		return fmt.Errorf("%w: READ COMMITTED can't be logged with binlog_format=STATEMENT, set it to ROW", errServer)
	}
	if r := settings["read_only"]; r != "OFF" && r != "0" {
		return fmt.Errorf("%w: it is read only, as a replica is", errServer)
	}
	return durable(mysqlWeakness(settings), o)
}

func checkMySQLVersion(version string) error {
	name, oldest := "MySQL", oldestMySQL
	if strings.Contains(version, "MariaDB") {
		name, oldest = "MariaDB", oldestMariaDB
	}
	var v [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n < 2 {
		return fmt.Errorf("%w: its version %q can't be understood", errServer, version)
	}
	if older(v, oldest) {
		return fmt.Errorf("%w: it is %s %s, and the oldest that will do is %d.%d.%d",
			errServer, name, version, oldest[0], oldest[1], oldest[2])
	}
	return nil
}

func older(v, than [3]int) bool {
	for i := range v {
		if v[i] != than[i] {
			return v[i] < than[i]
		}
	}
	return false
}

// mysqlWeakness is the first setting under which an answered write can be lost.
func mysqlWeakness(settings map[string]string) string {
	switch {
	case settings["innodb_flush_log_at_trx_commit"] != "1":
		return "innodb_flush_log_at_trx_commit=" + settings["innodb_flush_log_at_trx_commit"]
	case settings["log_bin"] == "ON" && settings["sync_binlog"] != "1":
		return "sync_binlog=" + settings["sync_binlog"]
	case settings["wsrep_on"] == "ON":
		return "wsrep_on=ON"
	default:
		return ""
	}
}

// mysqlAgain knows the errors after which a decision is made anew. Most of them
// leave the transaction open, half done: whoever sees one rolls back.
func mysqlAgain(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return cutOff(err) || errors.Is(err, mysql.ErrInvalidConn)
	}
	switch e.Number {
	case 1213, // deadlock: rolled back
		1205,       // lock wait timeout: only the statement is undone
		1020,       // the row has changed since it was read
		1062,       // duplicate key
		3819, 4025, // CHECK, in MySQL and in MariaDB
		1690,             // a number out of range
		1040,             // too many connections
		1053, 1077, 1079, // the server shuts down
		1927, 3024: // the connection or the statement was killed
		return true
	default:
		return false
	}
}

func mysqlHint(err error) string {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Number {
	case 1045, 1698:
		return hintPassword
	case 1044, 1142, 1143, 1227, 1370:
		return hintPrivileges
	case 1419:
		return "set log_bin_trust_function_creators=1, or the tables can't have triggers"
	case 1049:
		return hintDatabase
	default:
		return ""
	}
}
