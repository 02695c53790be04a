package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Limits of the connections to a database server. The head of the journal lets
// one writer on at a time: more connections would only wait in the database
// instead of here.
const (
	networkWriters = 4
	networkReaders = 8

	dialTimeout     = 5 * time.Second
	lockTimeout     = 5 * time.Second  // of one statement, for a row
	queryTimeout    = 30 * time.Second // of one statement, or of one read from the network
	abandonTimeout  = time.Minute      // until the database ends the transaction of a program that stands still
	connectionIdle  = 30 * time.Second // less than abandonTimeout: a database may count every idle second
	connectionsLast = 30 * time.Minute // then the address is looked up again
)

// errServer says that the server is not one that a ledger can be kept on.
var errServer = errors.New("unusable database server")

// session opens connections that are set up, and looks at the settings of the
// server for each of them: behind an address there may be another server than
// there was a minute ago.
type session struct {
	driver.Connector
	setup    []string // statements
	settings string   // a query for pairs of name and value
	check    func(settings map[string]string) error
}

// Connect implements driver.Connector.
func (s session) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s session) prepare(ctx context.Context, conn driver.Conn) error {
	for _, statement := range s.setup {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	settings, err := readSettings(ctx, conn.(driver.QueryerContext), s.settings)
	if err != nil {
		return fmt.Errorf("read the settings of the server: %w", err)
	}
	return s.check(settings)
}

func readSettings(ctx context.Context, conn driver.QueryerContext, query string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	pair := make([]driver.Value, 2)
	for err == nil {
		if err = rows.Next(pair); err == nil {
			settings[asText(pair[0])] = asText(pair[1])
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return settings, errors.Join(err, rows.Close())
}

func asText(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// openPools connects, for writing and for reading.
func openPools(ctx context.Context, write, read driver.Connector) (conns, error) {
	c := conns{write: pool(write, networkWriters), read: pool(read, networkReaders)}
	err := c.write.PingContext(ctx)
	if err == nil {
		err = c.read.PingContext(ctx)
	}
	if err != nil {
		return conns{}, errors.Join(err, c.write.Close(), c.read.Close())
	}
	return c, nil
}

func pool(connector driver.Connector, size int) *sql.DB {
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(connectionIdle)
	db.SetConnMaxLifetime(connectionsLast)
	return db
}

// durable judges the settings on which durability hangs: weak names the first
// that is too weak, "" = none is.
func durable(weak string, o Options) error {
	if weak == "" || o.AllowUnsafeDurability {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnsafeDurability, weak)
}

// cutOff says that a connection could not be made or is gone.
func cutOff(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// sessionLock is a goose lock.SessionLocker: one program migrates, the others
// wait for it. A program that goes away loses its connection and with it the lock.
type sessionLock struct {
	take, give string // queries that give 1 when it was done
}

// SessionLock implements lock.SessionLocker.
func (l *sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return l.ask(ctx, conn, l.take)
}

// SessionUnlock implements lock.SessionLocker.
func (l *sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return l.ask(ctx, conn, l.give)
}

func (l *sessionLock) ask(ctx context.Context, conn *sql.Conn, query string) error {
	var done sql.NullInt64
	if err := conn.QueryRowContext(ctx, query).Scan(&done); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	if done.Int64 != 1 {
		return fmt.Errorf("%s: %w", query, errLocked)
	}
	return nil
}

// errLocked says that somebody else migrates and takes long.
var errLocked = errors.New("the lock of the migrations was not given")

// durability is "full", or the setting that is too weak and was allowed.
func durability(ctx context.Context, c conns, query string, weakness func(map[string]string) string) (string, error) {
	settings := map[string]string{}
	rows, err := c.write.QueryContext(ctx, query)
	if err == nil {
		err = each(rows, func(row scanner) error {
			var name, value string
			err := row.Scan(&name, &value)
			settings[name] = value
			return err
		})
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("read the settings of the server: %w", err), c.write.Close(), c.read.Close())
	}
	if weak := weakness(settings); weak != "" {
		return weak, nil
	}
	return "full", nil
}
