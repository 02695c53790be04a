package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/ncruces/go-sqlite3"
	sqlite "github.com/ncruces/go-sqlite3/driver"
)

// Limits of the connections that a bench makes by itself.
const (
	databaseTimeout = 30 * time.Second // to connect, and for one statement
	databaseBusy    = 5 * time.Second  // to wait for another writer of a SQLite
)

// scheme is the kind of database of a store.
func scheme(store string) string {
	kind, _, _ := strings.Cut(store, ":")
	return kind
}

// redacted is a store without its password.
func redacted(store string) string {
	u, err := url.Parse(store)
	if err != nil {
		return scheme(store)
	}
	return u.Redacted()
}

// openDatabase opens the database of a store with plain database/sql, as durable
// and as isolated as the store has it.
func openDatabase(store string) (*sql.DB, error) {
	switch scheme(store) {
	case "mysql":
		return openMySQL(store)
	case "postgres", "postgresql":
		cfg, err := pgx.ParseConfig(store)
		if err != nil {
			return nil, err
		}
		cfg.ConnectTimeout = databaseTimeout
		cfg.RuntimeParams["default_transaction_isolation"] = "read committed"
		return stdlib.OpenDB(*cfg), nil
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(store, "sqlite:"), "?")
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_txlock=immediate"}
	return sqlite.Open(file.String(), func(c *sqlite3.Conn) error {
		if err := c.BusyTimeout(databaseBusy); err != nil {
			return err
		}
		return c.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL`)
	})
}

func openMySQL(store string) (*sql.DB, error) {
	u, err := url.Parse(store)
	if err != nil {
		return nil, errors.New("the URL of the MySQL store can't be read") // err tells the password
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.TLSConfig = u.Query().Get("tls")
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = databaseTimeout, databaseTimeout, databaseTimeout
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(readCommitted{connector}), nil
}

// readCommitted makes that the isolation of every connection. The setting of
// that name is not the same in MySQL and MariaDB; the statement is.
type readCommitted struct{ driver.Connector }

// Connect implements driver.Connector.
func (r readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// serverVersion is the product and version of a store's database.
func serverVersion(ctx context.Context, store string) (string, error) {
	db, err := openDatabase(store)
	if err != nil {
		return "", err
	}
	defer db.Close()
	product, ask := "SQLite", `SELECT sqlite_version()`
	switch scheme(store) {
	case "mysql":
		product, ask = "MySQL", `SELECT VERSION()`
	case "postgres", "postgresql":
		product, ask = "PostgreSQL", `SHOW server_version`
	}
	var version string
	if err := db.QueryRowContext(ctx, ask).Scan(&version); err != nil {
		return "", fmt.Errorf("ask for the version of the database: %w", err)
	}
	if strings.Contains(version, "MariaDB") {
		product = "MariaDB"
	}
	number, _, _ := strings.Cut(version, " ")
	number, _, _ = strings.Cut(number, "-")
	return product + " " + number, nil
}
