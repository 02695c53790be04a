package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

// dialect is all that differs between databases. Statements are written once,
// with ? for arguments.
type dialect struct {
	name  string // of the folder under migrations
	goose goose.Dialect

	// lock ends a SELECT whose rows stay locked until the commit; "" = there is
	// one writer anyway.
	lock string
	// now is the database's time in Unix ms, in SQL; "" = it runs in this process.
	now      string
	insert   string // begins an INSERT that may undo its transaction in part when it fails: that is rolled back anyway
	tuples   string // stands before a list of tuples after IN
	byKey    string // stands behind a table whose rows are named by their primary key
	numbered bool   // arguments are $1, $2 and so on
	seek     bool   // it finds (a, b) > (x, y) in an index only if a >= x is said too

	// rows and updates are how many rows one statement takes, largest first; the
	// last is 1.
	rows, updates []int

	// send executes steps in one round trip, or as few as can be; nil = there are
	// none to save, each step is executed when it is added.
	send func(ctx context.Context, t *tx, steps []step) error

	snapshot *sql.TxOptions // of a transaction that sees one moment; nil = every one does
	migrate  *sessionLock   // keeps two programs from migrating at once; nil = one writer

	// open connects to url.
	open func(ctx context.Context, url string, o Options) (conns, error)
	// again says that the database gave up on a transaction that may well
	// succeed when it is decided anew: busy, deadlocked, cut off, or a row was
	// there first. It knows codes and no texts.
	again func(error) bool
	// hint says what to do about an error that opening ends with, by its code;
	// "" = it knows nothing.
	hint func(error) string
}

// ErrAway says that the database gave no answer, or none yet: it is down, starts,
// or is too busy. Nothing is wrong with what was asked, and asking again will do.
var ErrAway = errors.New("the database does not answer")

// away marks err with ErrAway if it is of that kind.
func (d *dialect) away(err error) error {
	if d.again(err) {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}

// conns is an open database.
type conns struct {
	write, read *sql.DB
	durability  string
}

func dialectOf(scheme string) *dialect {
	switch scheme {
	case "sqlite":
		return &sqlite
	case "mysql":
		return &mysqlDialect
	case "postgres", "postgresql":
		return &postgres
	default:
		return nil
	}
}

// wallClock is the database's time in Unix ms, in SQL, for a database that runs
// in this process as well: leases are compared by all processes.
func (d *dialect) wallClock() string {
	if d.now == "" {
		return "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
	}
	return d.now
}

// bind writes the arguments of query as the database wants them. No statement
// has a ? that is something else.
func (d *dialect) bind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}
