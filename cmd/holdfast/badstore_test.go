package main

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
)

// secret is the password of every store that can't be used.
const secret = "hunter2"

// storeCommands need a store; most make one when there is none.
var storeCommands = []string{"serve --addr 127.0.0.1:0", "migrate", "verify", "keys create --name x",
	"stock import " + filepath.Join("internal", "stockfile", "testdata", "own.csv")}

// wantUnusable asserts that every command says what is wrong and what to do,
// fails, and tells nobody the password.
func wantUnusable(t *testing.T, store string, says ...string) {
	t.Helper()
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, line := range storeCommands {
		asking.Go(func() {
			r := do(t, append(strings.Fields(line), "--db", store)...)
			if r.status != exitFailed || r.out != "" {
				t.Errorf("%s: got %v, want status %d and no answer", line, r, exitFailed)
			}
			for _, s := range says {
				if !strings.Contains(r.err, s) {
					t.Errorf("%s: got %v, want it to say %q", line, r, s)
				}
			}
			if strings.Contains(r.err, secret) {
				t.Errorf("%s: it tells the password: %v", line, r)
			}
		})
	}
}

func TestAStoreThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for store, says := range map[string]string{
		"shop.db": "it is sqlite:PATH",
		"oracle://shop:" + secret + "@127.0.0.1/db": "it is sqlite:PATH",
		"sqlite:" + text:                                              "something else than a store",
		"sqlite:" + text + "?mode=ro":                                 "needs the path of a file",
		"sqlite:" + text + "?synchronous=off":                         "unsafe durability",
		"mysql://shop:" + secret + "@127.0.0.1:1":                     "needs a host and a database",
		"mysql://shop:" + secret + "%zz@127.0.0.1/d":                  "mysql://user:password@host",
		"mysql://shop:" + secret + "@127.0.0.1:1/d?tls=no&sql_mode=x": "mysql",
		"mysql://shop:" + secret + "@127.0.0.1:1/d":                   "is the server running",
		"postgres://shop:" + secret + "%zz@127.0.0.1:1/d":             "cannot parse",
		"postgres://shop:" + secret + "@127.0.0.1:x/d":                "port",
		"postgres://shop:" + secret + "@127.0.0.1:1/d":                "is the server running",
		"postgres://127.0.0.1:1/d?user=x&password=" + secret:          "is the server running",
	} {
		wantUnusable(t, store, says)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want only the file that was there", entries, err)
	}
	missing := "sqlite:" + filepath.Join(dir, "missing", "shop.db")
	for _, line := range storeCommands[:2] { // those that make a store
		if r := do(t, append(strings.Fields(line), "--db", missing)...); r.status != exitFailed || !strings.Contains(r.err, "make the folder first") {
			t.Errorf("%s: got %v, want status %d and what to do", line, r, exitFailed)
		}
	}
}

// guest is a user of a server who may do what grant says, and nothing else.
func guest(t *testing.T, store, driver, dsn string, grant func(name string) []string, drop func(name string) []string) string {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	name := "guest_" + strings.ToLower(rand.Text())[:16]
	for _, statement := range grant(name) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range drop(name) {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return with(t, store, func(u *url.URL) { u.User = url.UserPassword(name, secret) })
}

func with(t *testing.T, store string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

func mysqlDSN(t *testing.T, store string) string {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	return cfg.FormatDSN()
}

func wrongPassword(u *url.URL) { u.User = url.UserPassword(u.User.Username(), secret) }

func noDatabase(u *url.URL) {
	u.Path = "/holdfast_is_not_there"
}

func TestAServerThatWillNotServeUsIsTold(t *testing.T) {
	t.Parallel() // it waits for most of its time
	my, pg := sqlstoretest.MySQL(t), sqlstoretest.Postgres(t)
	_, schema, _ := strings.Cut(pg, "search_path=")
	myGuest := guest(t, my, "mysql", mysqlDSN(t, my), func(name string) []string {
		return []string{"CREATE USER " + name + " IDENTIFIED BY '" + secret + "'", "GRANT SELECT ON *.* TO " + name}
	}, func(name string) []string { return []string{"DROP USER " + name} })
	pgGuest := guest(t, pg, "pgx", pg, func(name string) []string {
		return []string{"CREATE ROLE " + name + " LOGIN PASSWORD '" + secret + "'", "GRANT USAGE ON SCHEMA " + schema + " TO " + name}
	}, func(name string) []string { return []string{"DROP OWNED BY " + name, "DROP ROLE " + name} })
	for _, store := range []string{my, pg} {
		wantUnusable(t, with(t, store, wrongPassword), "check the user and the password")
		wantUnusable(t, with(t, store, noDatabase), "make the database first")
	}
	wantUnusable(t, myGuest, "give the user all privileges")
	wantUnusable(t, pgGuest, "give the user all privileges")
	wantUnusable(t, pg+"&synchronous_commit=off", "unsafe durability: synchronous_commit=off", "before it is answered")
	wantUnusable(t, pg+"_none", "make the schema")
}

func TestAStoreOfANewerVersionIsLeftAlone(t *testing.T) {
	file, my, pg := newStore(t), sqlstoretest.MySQL(t), sqlstoretest.Postgres(t)
	for _, c := range []struct{ store, driver, dsn string }{
		{file, "sqlite3", "file:" + strings.TrimPrefix(file, "sqlite:")}, {my, "mysql", mysqlDSN(t, my)}, {pg, "pgx", pg},
	} {
		must(t, &struct{}{}, "migrate", "--db", c.store)
		db, err := sql.Open(c.driver, c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{
			`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`,
			`DELETE FROM goose_db_version WHERE version_id = 2`, // it would be made again
			`DROP TABLE locks`,
		} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		wantUnusable(t, c.store, "made by a newer version", "run that version")
		if _, err := db.Exec(`SELECT * FROM locks`); err == nil {
			t.Errorf("%s: the tables were changed", c.driver)
		}
	}
}

func TestHelpTellsNoPassword(t *testing.T) {
	env := map[string]string{"HOLDFAST_DB": "mysql://shop:" + secret + "@db/shop", "HOLDFAST_REDIS": "redis://:" + secret + "@db:6379"}
	for _, line := range append([]string{"doctor", "bench", "demo"}, storeCommands...) {
		r := doIn(t, env, append(strings.Fields(line), "--help")...)
		if r.status != exitOK || strings.Contains(r.String(), secret) {
			t.Errorf("%s --help: got %v, want help without the password", line, r)
		}
	}
	if got := shown("postgres://shop:" + secret + "@db/shop?password=" + secret); got != "postgres://shop:xxxxx@db/shop" {
		t.Errorf("got %q, want it without the password", got)
	}
	if got := shown("postgres://shop:%zz" + secret + "@db/shop"); got != "postgres://..." {
		t.Errorf("got %q, want nothing of what can't be read", got)
	}
}

// limited runs a command line as a process that a shell has limited first.
// Even root may write only what its files say.
func limited(t *testing.T, limit string, args ...string) ran {
	t.Helper()
	script := limit + `exec "$0" "$@"`
	c := exec.Command("bash", append([]string{"-c", script, os.Args[0]}, args...)...)
	if os.Geteuid() == 0 {
		c = exec.Command("setpriv", append([]string{"--bounding-set=-dac_override,-dac_read_search", "bash", "-c", script, os.Args[0]}, args...)...)
	}
	c.Env = append(os.Environ(), asCommand+"=1")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run() // the status says it
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestAReadOnlyFileIsToldAndLeftAlone(t *testing.T) {
	store := newStore(t)
	path := strings.TrimPrefix(store, "sqlite:")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	for _, line := range storeCommands {
		r := limited(t, "", append(strings.Fields(line), "--db", store)...)
		if r.status != exitFailed || !strings.Contains(r.err, "needs to write the file and its folder") {
			t.Errorf("%s: got %v, want status %d and what to do", line, r, exitFailed)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestAFullDiskIsToldAndLeavesTheStoreWhole(t *testing.T) {
	store := newStore(t)
	dir := t.TempDir()
	many := filepath.Join(dir, "many.csv")
	var rows strings.Builder
	rows.WriteString("sku,name,price,currency,quantity\n")
	for range 100 {
		rows.WriteString("sku-" + rand.Text() + ",Thing,1.00,EUR,1\n")
	}
	if err := os.WriteFile(many, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const noRoom = "ulimit -f 300; " // KiB of one file: some of the import fits
	r := limited(t, noRoom, "stock", "import", many, "--db", store)
	if r.status != exitFailed || !strings.Contains(r.err, "disk") {
		t.Errorf("got %v, want status %d and why", r, exitFailed)
	}
	if r := limited(t, "ulimit -f 1; ", "migrate", "--db", "sqlite:"+filepath.Join(dir, "new.db")); r.status != exitFailed || !strings.Contains(r.err, "is the disk full?") {
		t.Errorf("a new store: got %v, want status %d and what to do", r, exitFailed)
	}
	if r := do(t, "verify", "--db", store); r.status != exitOK {
		t.Errorf("got %v, want a clean verify", r)
	}
	var done imported
	must(t, &done, "stock", "import", many, "--db", store)
	if r := do(t, "verify", "--db", store); r.status != exitOK {
		t.Errorf("once there is room: got %v, want a clean verify", r)
	}
}
