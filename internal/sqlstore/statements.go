package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// statements are all that a write needs, prepared once. They are prepared
// before the first transaction because a store with one connection can't
// prepare while that connection is in use.
type statements struct {
	head, setHead                         *sql.Stmt
	lines, holds, records, balances       many
	addLine, addEvent, addPosting         many
	addHold, addRecord, addBalance        many
	updateHold, updateRecord, updateMoney *sql.Stmt
}

func prepareStatements(ctx context.Context, db *sql.DB, d *dialect, s strategy) (*statements, error) {
	p := preparer{ctx: ctx, db: db}
	lockBalances := ""
	if s.lock {
		lockBalances = d.lock
	}
	st := &statements{
		head:    p.one(selectHead + d.lock),
		setHead: p.one(updateHead),

		lines:    p.many(selectLines+" WHERE id IN (", "?", ")"),
		holds:    p.many(selectHolds+" WHERE id IN (", "?", ") ORDER BY id"+d.lock),
		records:  p.many(selectVersions+" WHERE (kind, id) IN ("+d.tuples, "(?,?)", ") ORDER BY kind, id"+d.lock),
		balances: p.many(selectBalances+" WHERE (account, asset) IN ("+d.tuples, "(?,?)", ") ORDER BY account, asset"+lockBalances),

		addLine:    p.many(insertLines, "(?,?,?,?,?,?,?)", ""),
		addEvent:   p.many(insertEvents, "(?,?,?,?,?,?)", ""),
		addPosting: p.many(insertPostings, "(?,?,?,?,?,?,?)", ""),
		addHold:    p.many(insertHolds, "(?,?,?,?,?,?,?,?,?,?)", ""),
		addRecord:  p.many(insertRecords, "(?,?,?,?,?,?,?,?)", ""),
		addBalance: p.many(insertBalances, "(?,?,?,?,?)", ""),

		updateHold:   p.one(updateHold),
		updateRecord: p.one(updateRecord),
		updateMoney:  p.one(s.update),
	}
	return st, p.err
}

// rowsOf are the numbers of rows that one statement of a kind takes, largest
// first. More than 32 gain nothing.
var rowsOf = [...]int{32, 8, 1}

// many is one statement for several numbers of rows.
type many [len(rowsOf)]*sql.Stmt

// fit is the largest statement that n rows fill, for writing.
func (m many) fit(n int) (rows int, stmt *sql.Stmt) {
	for i, rows := range rowsOf {
		if rows <= n {
			return rows, m[i]
		}
	}
	panic("sqlstore: no rows to write")
}

// cover is the smallest statement with room for n rows, or the largest of
// all, for reading.
func (m many) cover(n int) (rows int, stmt *sql.Stmt) {
	for i := len(rowsOf) - 1; i > 0; i-- {
		if rowsOf[i] >= n {
			return rowsOf[i], m[i]
		}
	}
	return rowsOf[0], m[0]
}

// preparer prepares until the first error.
type preparer struct {
	ctx context.Context
	db  *sql.DB
	err error
}

func (p *preparer) one(query string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	stmt, err := p.db.PrepareContext(p.ctx, query)
	if err != nil {
		p.err = fmt.Errorf("prepare %s: %w", query, err)
	}
	return stmt
}

// many prepares head, a list of rows and tail.
func (p *preparer) many(head, row, tail string) (m many) {
	for i, n := range rowsOf {
		m[i] = p.one(head + strings.Repeat(row+",", n-1) + row + tail)
	}
	return m
}
