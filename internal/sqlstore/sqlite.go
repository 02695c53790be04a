package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/pressly/goose/v3"
)

// Limits of the connections to SQLite.
const (
	sqliteBusyTimeout    = 5 * time.Second // how long to wait for another process
	sqliteReaders        = 4               // connections
	sqliteAutoCheckpoint = 4000            // pages of 4 KiB in the log
	sqliteWriterCache    = 4 << 10         // KiB; a larger one is walked through whole at many a commit
)

// sqlite is an embedded database in one file. It has one writer at a time,
// BEGIN IMMEDIATE queues for it, and so no row needs a lock.
var sqlite = dialect{
	name:    "sqlite",
	goose:   goose.DialectSQLite3,
	insert:  "INSERT OR FAIL INTO ", // plain, it keeps a journal of its own to undo itself by
	tuples:  "VALUES ",
	rows:    []int{32, 16, 8, 4, 2, 1}, // more than 32 gain nothing
	updates: []int{1},
	open:    openSQLite,
	again:   sqliteAgain,
	hint:    sqliteHint,
}

func sqliteAgain(err error) bool {
	return errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED) ||
		errors.Is(err, sqlite3.CONSTRAINT_UNIQUE) || errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY)
}

func sqliteHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.CANTOPEN):
		return "this user needs to write the file and its folder"
	case errors.Is(err, fs.ErrNotExist):
		return "make the folder first"
	case errors.Is(err, sqlite3.NOTADB):
		return "the file is something else than a store"
	case errors.Is(err, sqlite3.FULL), errors.Is(err, sqlite3.IOERR):
		return "is the disk full?"
	default:
		return ""
	}
}

// openSQLite opens sqlite:PATH or sqlite:PATH?synchronous=LEVEL.
func openSQLite(ctx context.Context, url string, o Options) (conns, error) {
	_, path, _ := strings.Cut(url, ":")
	path, level, asked := strings.Cut(path, "?synchronous=")
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") || strings.Contains(path, "?") {
		return conns{}, fmt.Errorf("sqlite needs the path of a file, got %q", path)
	}
	if !asked {
		level = "full"
	}
	switch level {
	case "full", "extra":
	case "normal", "off":
		if !o.AllowUnsafeDurability {
			return conns{}, fmt.Errorf("%w: synchronous=%s", ErrUnsafeDurability, level)
		}
	default:
		return conns{}, fmt.Errorf("sqlite knows no synchronous=%q", level)
	}
	uri, err := sqliteFile(path)
	if err != nil {
		return conns{}, err
	}
	c := conns{durability: level}
	c.write, err = driver.Open(uri, sqliteSession(level,
		fmt.Sprintf("PRAGMA cache_size=-%d", sqliteWriterCache),
		fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", sqliteAutoCheckpoint)))
	if err != nil {
		return conns{}, err
	}
	c.write.SetMaxOpenConns(1)
	c.write.SetMaxIdleConns(1)
	if err := c.write.PingContext(ctx); err != nil {
		return conns{}, errors.Join(err, c.write.Close())
	}
	c.read, err = driver.Open(uri, sqliteSession(level, "PRAGMA query_only=ON"))
	if err != nil {
		return conns{}, errors.Join(err, c.write.Close())
	}
	c.read.SetMaxOpenConns(sqliteReaders)
	c.read.SetMaxIdleConns(sqliteReaders)
	return c, nil
}

// sqliteFile makes the file if there is none, for its owner alone, and gives
// its URI. Both the file and its log hold the ledger's secret; SQLite would let
// everybody read a new file, and "modeof" is how the log gets the same mode.
func sqliteFile(path string) (uri string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	query := strings.ReplaceAll(url.QueryEscape(path), "+", "%20") // SQLite takes + for itself
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "modeof=" + query}
	return u.String(), nil
}

// sqliteSession sets up a connection and reads back what durability hangs on:
// a pragma that isn't understood is no error in SQLite.
func sqliteSession(level string, pragmas ...string) func(*sqlite3.Conn) error {
	return func(c *sqlite3.Conn) error {
		// First, or the switch to WAL fails when another process opens the file.
		if err := c.BusyTimeout(sqliteBusyTimeout); err != nil {
			return err
		}
		mode, err := sqlitePragma(c, "PRAGMA journal_mode=WAL")
		if err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("sqlite can't keep a write-ahead log here: journal_mode is %s", mode)
		}
		pragmas := append([]string{"PRAGMA synchronous=" + level, "PRAGMA fullfsync=ON", "PRAGMA checkpoint_fullfsync=ON"}, pragmas...)
		for _, p := range pragmas {
			if err := c.Exec(p); err != nil {
				return err
			}
		}
		got, err := sqlitePragma(c, "PRAGMA synchronous")
		if err != nil {
			return err
		}
		want := map[string]string{"off": "0", "normal": "1", "full": "2", "extra": "3"}[level]
		if got != want {
			return fmt.Errorf("%w: synchronous is %s after asking for %s", ErrUnsafeDurability, got, want)
		}
		return nil
	}
}

func sqlitePragma(c *sqlite3.Conn, pragma string) (value string, err error) {
	s, _, err := c.Prepare(pragma)
	if err != nil {
		return "", err
	}
	if s.Step() {
		value = s.ColumnText(0)
	}
	return value, errors.Join(s.Err(), s.Close())
}
