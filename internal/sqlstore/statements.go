package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// statements are all that a write needs. Those of a database in this process are
// prepared, before the first transaction, because a store with one connection can't
// prepare while that connection is in use.
type statements struct {
	head, lockHead, setHead               sized
	addLock, dropLock, dropLapsed         sized
	lines, holds, records, balances       many
	addLine, addEvent, addPosting         many
	addHold, addRecord, addBalance        many
	updateHold, updateRecord, updateMoney many
}

func prepareStatements(ctx context.Context, db *sql.DB, d *dialect, s strategy) (*statements, error) {
	p := preparer{ctx: ctx, db: db, dialect: d}
	lockBalances, now := "", "0"
	if s.lock {
		lockBalances = d.lock
	}
	if d.now != "" {
		now = d.now
	}
	st := &statements{
		head:     p.one(selectHead),
		lockHead: p.one("SELECT seq, events, at, hash, " + now + " FROM head WHERE one = 1" + d.lock),
		setHead:  p.one(updateOne(updateHead)),

		addLock:    p.one("INSERT INTO locks (account, asset, owner, number, until_at) VALUES (?, ?, ?, ?, " + d.wallClock() + " + ?)"),
		dropLock:   p.one("DELETE FROM locks WHERE account = ? AND asset = ? AND owner = ? AND number = ?"),
		dropLapsed: p.one("DELETE FROM locks WHERE account = ? AND asset = ? AND until_at <= " + d.wallClock()),

		lines:    p.many(selectLines+" WHERE id IN (", "?", ")"),
		holds:    p.many(selectHolds+" WHERE id IN (", "?", ") ORDER BY id"),
		records:  p.many(selectVersions+d.byKey+" WHERE (kind, id) IN ("+d.tuples, "(?,?)", ") ORDER BY kind, id"),
		balances: p.many(selectBalances+d.byKey+" WHERE (account, asset) IN ("+d.tuples, "(?,?)", ") ORDER BY account, asset"+lockBalances),

		addLine:    p.many(d.insert+insertLines, "(?,?,?,?,?,?,?)", ""),
		addEvent:   p.many(d.insert+insertEvents, "(?,?,?,?,?,?)", ""),
		addPosting: p.many(d.insert+insertPostings, "(?,?,?,?,?,?,?)", ""),
		addHold:    p.many(d.insert+insertHolds, "(?,?,?,?,?,?,?,?,?,?)", ""),
		addRecord:  p.many(d.insert+insertRecords, "(?,?,?,?,?,?,?,?)", ""),
		addBalance: p.many(d.insert+insertBalances, "(?,?,?,?,?)", ""),

		updateHold:   p.updates(updateHold),
		updateRecord: p.updates(updateRecord),
		updateMoney:  p.updates(s.update),
	}
	return st, p.err
}

// many is one statement for several numbers of rows, largest first.
type many []sized

type sized struct {
	rows      int
	text      string
	*sql.Stmt // nil = it is sent as text
}

// fit is the largest statement that n rows fill, for writing.
func (m many) fit(n int) sized {
	for _, s := range m {
		if s.rows <= n {
			return s
		}
	}
	panic("sqlstore: no rows to write")
}

// cover is the smallest statement with room for n rows, or the largest of
// all, for reading.
func (m many) cover(n int) sized {
	for _, s := range slices.Backward(m) {
		if s.rows >= n {
			return s
		}
	}
	return m[0]
}

// preparer prepares until the first error.
type preparer struct {
	ctx     context.Context
	db      *sql.DB
	dialect *dialect
	err     error
}

func (p *preparer) one(query string) sized { return p.sized(1, query) }

func (p *preparer) sized(rows int, query string) sized {
	s := sized{rows: rows, text: p.dialect.bind(query)}
	if p.err != nil || p.dialect.send != nil {
		return s
	}
	if s.Stmt, p.err = p.db.PrepareContext(p.ctx, s.text); p.err != nil {
		p.err = fmt.Errorf("prepare %s: %w", query, p.err)
	}
	return s
}

// many prepares head, a list of rows and tail.
func (p *preparer) many(head, row, tail string) (m many) {
	for _, n := range p.dialect.rows {
		m = append(m, p.sized(n, head+strings.Repeat(row+",", n-1)+row+tail))
	}
	return m
}

// updates prepares an update of many rows.
func (p *preparer) updates(update string) (m many) {
	for _, n := range p.dialect.updates {
		m = append(m, p.sized(n, p.dialect.update(update, n)))
	}
	return m
}
