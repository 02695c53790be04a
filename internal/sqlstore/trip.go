package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-pay/holdfast/ledger"
)

// tx is one writing transaction, on a connection of its own. Its statements are
// steps: they are added one after another and executed in that order, up to the
// first that fails, and after flush all of them are.
//
// A database in this process executes a step when it is added. A server gets all
// that were added since the last flush in one round trip: a batch has dozens of
// them, and to go back and forth for each took as long as the work itself.
type tx struct {
	*sql.Tx
	*statements
	conn     *sql.Conn
	dialect  *dialect
	strategy strategy
	steps    []step // that a server has still to be sent
	err      error  // of a step
	args     []any  // room for those of a step that is executed when it is added

	head   ledger.Head // as it was when it was locked
	now    int64       // what the database's clock said then, Unix ms
	behind bool        // the head has moved after the rows were read
}

// step is one statement, and what becomes of its answer.
type step struct {
	sized
	args []any
	row  func(scanner) error // takes each row of the answer; nil = it writes
	want int64               // rows that it must write, or anyRows
}

const anyRows = -1

// begin begins a transaction. Whoever calls it calls end.
func (s *Store) begin(ctx context.Context) (*tx, error) {
	conn, err := s.conns.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	sqlTx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &tx{Tx: sqlTx, statements: s.statements, conn: conn, dialect: s.dialect, strategy: s.strategy}, nil
}

// end undoes what was not committed, and gives the connection back.
func (t *tx) end() {
	_ = t.Rollback() // after Commit it does nothing
	_ = t.conn.Close()
}

// room is for the arguments of the next step.
func (t *tx) room() []any {
	if t.dialect.send != nil {
		return nil // they have to wait
	}
	return t.args[:0]
}

// add adds a step; its error is that of the next flush.
func (t *tx) add(ctx context.Context, s step) {
	switch {
	case t.err != nil:
	case t.dialect.send != nil:
		t.steps = append(t.steps, s)
	default:
		t.err = t.execute(ctx, s)
		t.args = s.args
	}
}

// flush executes what was added.
func (t *tx) flush(ctx context.Context) error {
	steps := t.steps
	t.steps = nil
	if t.err == nil && len(steps) > 0 {
		t.err = t.dialect.send(ctx, t, steps)
	}
	return t.err
}

// execute executes one step by itself.
func (t *tx) execute(ctx context.Context, s step) error {
	var rows *sql.Rows
	var res sql.Result
	var err error
	switch {
	case s.row != nil && s.Stmt != nil:
		rows, err = t.StmtContext(ctx, s.Stmt).QueryContext(ctx, s.args...)
	case s.row != nil:
		rows, err = t.QueryContext(ctx, s.text, s.args...)
	case s.Stmt != nil:
		res, err = t.StmtContext(ctx, s.Stmt).ExecContext(ctx, s.args...)
	default:
		res, err = t.ExecContext(ctx, s.text, s.args...)
	}
	if err != nil {
		return err
	}
	if s.row != nil {
		return each(rows, s.row)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	return s.wrote(n)
}

// wrote says that a row was not there as it was read.
func (s step) wrote(n int64) error {
	if s.want != anyRows && n != s.want {
		return errConflict
	}
	return nil
}

// each visits all rows and closes them.
func each(rows *sql.Rows, visit func(scanner) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// collect makes a visit that keeps what scan makes of each row.
func collect[R any](scan func(scanner) (R, error), all *[]R) func(scanner) error {
	return func(row scanner) error {
		r, err := scan(row)
		if err != nil {
			return err
		}
		*all = append(*all, r)
		return nil
	}
}
