package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
)

const sqliteWait = 200 * time.Millisecond // for a lock

// examineSQLite tries a scratch file beside the store's: what matters is the
// folder it is in. The store itself need not be there yet and is only looked at.
func examineSQLite(ctx context.Context, c *chart, address string) error {
	path, _, _ := strings.Cut(strings.TrimPrefix(address, "sqlite:"), "?")
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return fmt.Errorf("%w: an SQLite store is sqlite:PATH", ErrAddress)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".holdfast-doctor-")
	if err != nil {
		c.add("writable", Wrong, err.Error(), "SQLite makes files beside the store: the folder must be there, and writable for this user, with space left")
		return nil
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			c.add("tidy", Warning, err.Error(), "remove it yourself")
		}
	}()
	c.add("writable", OK, "files can be made in "+filepath.Dir(path), "")
	c.sqliteFile(path)
	c.sqliteScratch(ctx, filepath.Join(folder, "scratch.db"), sqliteTable)
	return nil
}

// sqliteFile looks at a store that is there, without opening it as a database:
// that could begin to recover it.
func (c *chart) sqliteFile(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		c.add("file", OK, "there is no store yet at "+path, "")
		return
	}
	if err != nil {
		c.add("file", Wrong, err.Error(), "the file must be readable and writable for this user")
		return
	}
	defer f.Close()
	header := make([]byte, 20)
	if n, err := io.ReadFull(f, header); n > 0 && (err != nil || string(header[:16]) != "SQLite format 3\x00") {
		c.add("file", Wrong, path+" is no SQLite database", "give the path of a store, or of a file that is not there yet")
		return
	} else if n == 0 {
		c.add("file", OK, path+" is empty", "")
		return
	}
	// Bytes 18 and 19 are 2 when there is a write-ahead log.
	c.expect(header[18] == 2 && header[19] == 2, "file", fmt.Sprintf("journal of %s: %s", path, map[bool]string{true: "wal", false: "rollback"}[header[18] == 2]),
		Warning, "serve switches it to a write-ahead log; is it a Holdfast store?")
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		c.add("permissions", Warning, fmt.Sprintf("%s is %v", path, info.Mode().Perm()), "the store holds secrets: chmod 600")
	}
}

const sqliteTable = `CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0)) STRICT`

// sqliteScratch tries a database in a file that it makes at path.
func (c *chart) sqliteScratch(ctx context.Context, path, table string) {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	db, err := driver.Open(u.String(), func(conn *sqlite3.Conn) error {
		if err := conn.BusyTimeout(sqliteWait); err != nil {
			return err
		}
		return conn.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL`)
	})
	if err != nil {
		c.add("connect", Wrong, err.Error(), "SQLite can't work in this folder; a local file system is needed, no network share")
		return
	}
	defer db.Close()
	var version, mode, level string
	const ask = `SELECT sqlite_version(), (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous)`
	if err := db.QueryRowContext(ctx, ask).Scan(&version, &mode, &level); err != nil {
		c.add("connect", Wrong, err.Error(), "SQLite can't work in this folder; a local file system is needed, no network share")
		return
	}
	c.expect(atLeast(version, []int{3, 37, 0}), "version", version, Wrong, "STRICT tables need SQLite 3.37")
	c.expect(mode == "wal", "journal", "journal_mode="+mode, Wrong, "use a local file system: a write-ahead log needs shared memory")
	c.expect(level == "2", "durability", "synchronous="+level, Wrong, "a power cut would lose answered orders: synchronous must be 2 (full)")
	if _, err := db.ExecContext(ctx, table); err != nil {
		c.add("scratch", Wrong, err.Error(), "STRICT tables are needed")
		return
	}
	c.prove(ctx, &scratch{
		db: db, isolation: sql.LevelDefault, code: sqliteCode, lock: `UPDATE t SET n = n WHERE id = 1`,
		duplicate: codes(sqlite3.CONSTRAINT_PRIMARYKEY), broken: codes(sqlite3.CONSTRAINT_CHECK),
		mistyped: codes(sqlite3.CONSTRAINT_DATATYPE), waited: codes(sqlite3.ExtendedErrorCode(sqlite3.BUSY)),
	}, everywhere)
}

func codes(code sqlite3.ExtendedErrorCode) []string { return []string{strconv.Itoa(int(code))} }

func sqliteCode(err error) string {
	var extended sqlite3.ExtendedErrorCode
	if errors.As(err, &extended) {
		return strconv.Itoa(int(extended))
	}
	var code sqlite3.ErrorCode
	if errors.As(err, &code) {
		return strconv.Itoa(int(code))
	}
	return ""
}
