// Package sqlstore keeps a ledger in an SQL database.
//
// What is always true: the rows of the database are what ledger.State makes of
// the journal in them. The rules run in Go, on rows that were read inside the
// writing transaction, and all that they decide is committed with the journal
// line that says so, or not at all. Nothing of the ledger is kept in memory
// between two transactions, so several processes may write one database.
//
// The obvious way, to read rows, decide and write them back, is wrong as soon
// as somebody else writes in between. Three things stand against it: writers
// take the head of the journal one after another and move it on by
// compare-and-set; every row that changes is written under the condition of a
// Strategy; and the schema repeats the rules as constraints.
//
// Read apply.go first, then load.go and strategy.go. All that differs between
// databases is in dialect.go and the file of each.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// ErrUnsafeDurability says that the database would answer before a write is on
// disk, and that nobody has allowed that.
var ErrUnsafeDurability = errors.New("unsafe durability")

// Limits of opening. Programs that start together on one empty database are
// in each other's way for a moment.
const (
	maxOpenTries = 8
	openPause    = 10 * time.Millisecond // before the second try; it grows by as much each time
)

// Options say how to open a store. The zero value is right for production.
type Options struct {
	// Strategy is how a balance is guarded; "" = Conditional.
	Strategy Strategy
	// Clock gives the time; nil = the clock of the database.
	Clock func() time.Time
	// AllowUnsafeDurability accepts settings under which a power cut loses
	// writes that were answered.
	AllowUnsafeDurability bool
}

// Store is a ledger.Store in an SQL database. Safe for concurrent use.
type Store struct {
	reads
	strategy   strategy
	clock      func() time.Time
	measured   *databaseClock // what clock goes by; nil = it needs no measuring
	conns      conns
	statements *statements
	last       atomic.Int64 // the latest time given out, Unix ms
	schema     int64
	id         string
	secret     []byte
	counted    counters
	owner      string        // of rows in locks; random
	taken      atomic.Int64  // how often rows in locks were asked for
	lease      time.Duration // of a row in locks

	commit func(*sql.Tx) error // (*sql.Tx).Commit, save in tests
}

// Open opens the database at url, makes or upgrades its tables and checks that
// it keeps what it answers. url is one of
//
//	sqlite:PATH
//	mysql://USER:PASSWORD@HOST:PORT/DATABASE
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE
//
// where a "?synchronous=normal" behind PATH trades durability for speed and
// needs AllowUnsafeDurability. A MySQL is a MariaDB just as well.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	scheme, _, _ := strings.Cut(url, ":")
	d := dialectOf(scheme)
	if d == nil {
		return nil, fmt.Errorf("sqlstore: no database is called %q; it is sqlite:PATH, or a URL of mysql:// or postgres://", scheme)
	}
	strategy, ok := strategyOf(o.Strategy)
	if !ok {
		return nil, fmt.Errorf("sqlstore: no strategy is called %q", o.Strategy)
	}
	for try := 1; ; try++ {
		s, err := connect(ctx, d, url, strategy, o)
		if err == nil {
			return s, nil
		}
		again := errors.Is(err, errMigrate) || d.again(err)
		if !again || d.hint(err) != "" || try == maxOpenTries || pause(ctx, time.Duration(try)*openPause) != nil {
			return nil, fmt.Errorf("sqlstore: open %s: %w", scheme, advised(d, err))
		}
	}
}

func connect(ctx context.Context, d *dialect, url string, strategy strategy, o Options) (*Store, error) {
	c, err := d.open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		reads:    reads{db: c.read, dialect: d, kept: &kept{db: c.read}},
		strategy: strategy,
		clock:    o.Clock,
		conns:    c,
		owner:    rand.Text(),
		lease:    lockLease,
		commit:   (*sql.Tx).Commit,
	}
	s.reads.counted = &s.counted
	switch {
	case s.clock != nil:
	case d.now == "":
		s.clock = time.Now
	default:
		s.measured = &databaseClock{}
		s.clock = s.measured.Now
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) (err error) {
	if s.schema, err = migrate(ctx, s.dialect, s.conns.write); err != nil {
		return err
	}
	if err := s.identify(ctx); err != nil {
		return fmt.Errorf("identify the ledger: %w", err)
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	if err := s.measure(ctx); err != nil {
		return err
	}
	s.now(head)
	s.statements, err = prepareStatements(ctx, s.conns.write, s.dialect, s.strategy)
	return err
}

// identify reads the identity of the ledger, and makes it when there is none.
func (s *Store) identify(ctx context.Context) error {
	tx, err := s.conns.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	const get = `SELECT id, secret FROM identity`
	err = tx.QueryRowContext(ctx, get).Scan(&s.id, &s.secret)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	id, secret := make([]byte, 16), make([]byte, 32)
	rand.Read(id) // never fails
	rand.Read(secret)
	const put = `INSERT INTO identity (one, id, secret) VALUES (1, ?, ?)`
	if _, err := tx.ExecContext(ctx, s.dialect.bind(put), hex.EncodeToString(id), secret); err != nil {
		return err
	}
	s.id, s.secret = hex.EncodeToString(id), secret
	return tx.Commit()
}

// Close waits for running calls and closes the database. Whoever calls it has
// stopped applying: a later Apply is an error.
func (s *Store) Close() error {
	return errors.Join(s.conns.read.Close(), s.conns.write.Close())
}

// Durability is "full" when an answered write survives a power cut, and
// otherwise names the setting that is weaker.
func (s *Store) Durability() string {
	if s.conns.durability == "extra" {
		return "full"
	}
	return s.conns.durability
}

// ID names the ledger. It is random and never changes.
func (s *Store) ID() string { return s.id }

// Secret is 32 random bytes that belong to the ledger and never leave it: the
// key for what is handed out signed. It never changes.
func (s *Store) Secret() []byte { return s.secret }

// Kind is the name of the kind of database: "sqlite", "mysql" or "postgres".
func (s *Store) Kind() string { return s.dialect.name }

// Schema is the version of the tables.
func (s *Store) Schema() int64 { return s.schema }

// Now implements ledger.Reader. It reads no row: a time that another process
// has written later is met by the transaction that decides.
func (s *Store) Now(ctx context.Context) (int64, error) {
	if s.measured != nil && s.measured.Old() {
		if err := s.measure(ctx); err != nil {
			return 0, err
		}
	}
	return s.now(ledger.Head{}), nil
}

// measure asks the database for its time, if that is where time comes from.
func (s *Store) measure(ctx context.Context) error {
	if s.measured == nil {
		return nil
	}
	said, err := list(ctx, s.reads, func(row scanner) (ms int64, err error) {
		err = row.Scan(&ms)
		return ms, err
	}, "SELECT "+s.dialect.now)
	if err != nil {
		return fmt.Errorf("sqlstore: ask the database for the time: %w", err)
	}
	s.measured.Set(said[0])
	return nil
}

// now is the store's time, given the end of the journal.
func (s *Store) now(head ledger.Head) int64 {
	now := max(s.clock().UnixMilli(), head.At)
	for {
		last := s.last.Load()
		if now <= last {
			return last
		}
		if s.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// Snapshot implements ledger.Reader.
func (s *Store) Snapshot(ctx context.Context, f func(ledger.Reader) error) error {
	tx, err := s.conns.read.BeginTx(ctx, s.dialect.snapshot)
	if err != nil {
		return fmt.Errorf("sqlstore: begin a snapshot: %w", s.dialect.away(err))
	}
	defer tx.Rollback() // nothing was written
	m := moment{reads: reads{db: tx, dialect: s.dialect, counted: &s.counted}}
	// The first read is what pins the moment.
	head, err := m.Head(ctx)
	if err != nil {
		return err
	}
	m.at = s.now(head)
	return f(m)
}

// moment is a Reader of one moment.
type moment struct {
	reads
	at int64
}

// Now implements ledger.Reader.
func (m moment) Now(context.Context) (int64, error) { return m.at, nil }

// Snapshot implements ledger.Reader.
func (m moment) Snapshot(_ context.Context, f func(ledger.Reader) error) error { return f(m) }
