// Package sqlstoretest makes empty databases for tests, on servers that the
// environment names. A test without its server fails: one that is left out
// unseen proves nothing. With -short, all that needs a server is left out.
package sqlstoretest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// MySQL makes a database on the server that HOLDFAST_TEST_MYSQL names, whose
// user may create databases. It gives its URL, and drops it in the end.
func MySQL(t testing.TB) string {
	t.Helper()
	u := server(t, "HOLDFAST_TEST_MYSQL")
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	name := scratchName()
	between(t, "mysql", cfg.FormatDSN(), "CREATE DATABASE "+name, "DROP DATABASE "+name)
	u.Path = "/" + name
	return u.String()
}

// Postgres makes a schema in the database that HOLDFAST_TEST_POSTGRES names,
// whose user may create schemas. It gives its URL, and drops it in the end.
func Postgres(t testing.TB) string {
	t.Helper()
	u := server(t, "HOLDFAST_TEST_POSTGRES")
	name := scratchName()
	between(t, "pgx", u.String(), "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func server(t testing.TB, variable string) *url.URL {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short")
	}
	u, err := url.Parse(os.Getenv(variable))
	if err != nil || u.Host == "" {
		t.Fatalf("%s does not name a server: run scripts/test, or scripts/with-services and the command of your choice", variable)
	}
	return u
}

func scratchName() string { return "holdfast_test_" + strings.ToLower(rand.Text()) }

// On a busy machine MariaDB may still be removing a table's file when it wants
// to remove the folder.
const (
	dropTries = 50
	dropPause = 20 * time.Millisecond
)

func notEmpty(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1010
}

// between executes first now and last when the test ends.
func between(t testing.TB, driver, dsn, first, last string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err == nil {
		_, err = db.ExecContext(t.Context(), first)
	}
	if err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	t.Cleanup(func() {
		var err error
		for range dropTries {
			if _, err = db.ExecContext(context.Background(), last); !notEmpty(err) {
				break
			}
			time.Sleep(dropPause)
		}
		if err != nil {
			t.Errorf("%s: %v", last, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
