package doctor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// scratch is a database or schema of our own with one table,
//
//	CREATE TABLE t (id PRIMARY KEY, n CHECK (n >= 0))
//
// that holds the row (1, 100) when a proof begins.
type scratch struct {
	db        *sql.DB
	isolation sql.IsolationLevel // as the store asks for it
	code      func(error) string // the database's code of an error, "" if it has none
	lock      string             // locks row 1 until the commit
	impatient string             // makes a session give up soon on a lock; "" if it does so anyway

	duplicate, broken, mistyped, waited []string // codes of what must be refused
}

// proof tries one thing that the store relies on.
type proof struct {
	check, claim, advice string
	try                  func(*scratch, context.Context) error
}

// everywhere is what every database must do.
var everywhere = []proof{
	{"matched_rows", "an UPDATE counts the rows it matches", "let nothing between us and the database change the session (clientFoundRows)", (*scratch).matched},
	{"unique", "a second row with the same key is refused at once", "the primary key must be immediate; is this really the database it says it is?", (*scratch).unique},
	{"check", "a CHECK constraint is enforced", "use a version that enforces CHECK (MariaDB 10.6, MySQL 8.0.16, PostgreSQL 13); in MariaDB leave check_constraint_checks on", (*scratch).check},
	{"strict", "a value of another type is refused", "let nothing between us and the database change the session (sql_mode)", (*scratch).strict},
	{"rollback", "a rolled back transaction leaves nothing", "tables must be transactional: InnoDB must be available", (*scratch).rollback},
	{"blocks", "a locked row makes a second session wait", "each connection needs a session of its own (no statement pooling, no multi-master), SQLite a local file system", (*scratch).blocks},
}

// servers is what a database must do in addition when it has many writers.
var servers = []proof{
	{"isolation", "a transaction is READ COMMITTED when it asks for that", "let nothing between us and the database change the session (transaction isolation)", (*scratch).readCommitted},
}

func (c *chart) prove(ctx context.Context, s *scratch, proofs []proof) {
	for _, p := range proofs {
		err := s.reset(ctx)
		if err == nil {
			err = p.try(s, ctx)
		}
		if err != nil {
			c.add(p.check, Wrong, err.Error(), p.advice)
			continue
		}
		c.add(p.check, OK, p.claim, "")
	}
}

// scratchName is a name that nobody else has.
func scratchName() string {
	b := make([]byte, nameBytes)
	rand.Read(b) // never fails
	return "holdfast_doctor_" + hex.EncodeToString(b)
}

func (s *scratch) reset(ctx context.Context) error {
	for _, q := range []string{`DELETE FROM t`, `INSERT INTO t (id, n) VALUES (1, 100)`} {
		if _, err := s.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("prepare the scratch table: %w", err)
		}
	}
	return nil
}

func (s *scratch) begin(ctx context.Context) (*sql.Tx, error) {
	return s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation})
}

func (s *scratch) n(ctx context.Context, in interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (n int64, err error) {
	err = in.QueryRowContext(ctx, `SELECT n FROM t WHERE id = 1`).Scan(&n)
	return n, err
}

func (s *scratch) matched(ctx context.Context) error {
	r, err := s.db.ExecContext(ctx, `UPDATE t SET n = n WHERE id = 1`)
	if err != nil {
		return err
	}
	count, err := r.RowsAffected()
	if err == nil && count != 1 {
		err = fmt.Errorf("an UPDATE that matches 1 row and changes none counts %d", count)
	}
	return err
}

func (s *scratch) unique(ctx context.Context) error {
	return s.refuses(ctx, `INSERT INTO t (id, n) VALUES (1, 1)`, s.duplicate)
}

func (s *scratch) check(ctx context.Context) error {
	return s.refuses(ctx, `UPDATE t SET n = -1 WHERE id = 1`, s.broken)
}

func (s *scratch) strict(ctx context.Context) error {
	return s.refuses(ctx, `INSERT INTO t (id, n) VALUES (2, 'lots')`, s.mistyped)
}

// refuses says why a statement in a transaction is not refused with one of the codes.
func (s *scratch) refuses(ctx context.Context, statement string, codes []string) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing is kept
	if _, err = tx.ExecContext(ctx, statement); err == nil {
		return fmt.Errorf("%s: accepted", statement)
	}
	if !slices.Contains(codes, s.code(err)) {
		return fmt.Errorf("%s: refused for another reason: %w", statement, err)
	}
	return nil
}

func (s *scratch) rollback(ctx context.Context) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after the other one it does nothing
	for _, q := range []string{`UPDATE t SET n = 7 WHERE id = 1`, `INSERT INTO t (id, n) VALUES (2, 2)`} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if err := tx.Rollback(); err != nil {
		return err
	}
	var rows, sum int64
	if err := s.db.QueryRowContext(ctx, `SELECT COUNT(*), SUM(n) FROM t`).Scan(&rows, &sum); err != nil {
		return err
	}
	if rows != 1 || sum != 100 {
		return fmt.Errorf("after a ROLLBACK there are %d rows with a sum of %d, before the transaction 1 with 100", rows, sum)
	}
	return nil
}

// blocks takes the lock in one session, is kept out in a second one, and lets
// the second one see what the first has committed.
func (s *scratch) blocks(ctx context.Context) error {
	first, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer first.Rollback() // after Commit it does nothing
	if _, err := first.ExecContext(ctx, s.lock); err != nil {
		return err
	}
	if _, err := first.ExecContext(ctx, `UPDATE t SET n = 60 WHERE id = 1`); err != nil {
		return err
	}
	second, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer second.Close() // gives it back
	if _, err := s.locked(ctx, second); err == nil {
		return errors.New("two sessions hold the same lock")
	} else if !slices.Contains(s.waited, s.code(err)) {
		return fmt.Errorf("wait for a lock: %w", err)
	}
	if err := first.Commit(); err != nil {
		return err
	}
	n, err := s.locked(ctx, second)
	if err == nil && n != 60 {
		err = fmt.Errorf("whoever has waited for a lock sees %d, committed was 60", n)
	}
	return err
}

// locked takes the lock in a session that gives up soon, and reads.
func (s *scratch) locked(ctx context.Context, session *sql.Conn) (n int64, err error) {
	if s.impatient != "" {
		if _, err := session.ExecContext(ctx, s.impatient); err != nil {
			return 0, err
		}
	}
	tx, err := session.BeginTx(ctx, &sql.TxOptions{Isolation: s.isolation})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // nothing is kept
	if _, err := tx.ExecContext(ctx, s.lock); err != nil {
		return 0, err
	}
	return s.n(ctx, tx)
}

func (s *scratch) readCommitted(ctx context.Context) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing is kept
	if _, err := s.n(ctx, tx); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `UPDATE t SET n = 60 WHERE id = 1`); err != nil {
		return err
	}
	n, err := s.n(ctx, tx)
	if err == nil && n != 60 {
		err = fmt.Errorf("a transaction still reads %d after another one has committed 60", n)
	}
	return err
}
