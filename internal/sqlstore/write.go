package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

const (
	insertLines    = `INSERT INTO journal (seq, at, id, fingerprint, code, body, hash) VALUES `
	insertEvents   = `INSERT INTO events (seq, entry, at, type, subject, body) VALUES `
	insertPostings = `INSERT INTO postings (seq, n, from_account, to_account, asset, amount, hold) VALUES `
	insertHolds    = `INSERT INTO holds (id, from_account, to_account, asset, amount, committed, released, state, until_at, cap_at) VALUES `
	insertRecords  = `INSERT INTO records (kind, id, version, state, owner, ref, due, body) VALUES `
	insertBalances = `INSERT INTO balances (account, asset, posted, held, version) VALUES `
)

// Each update names the row as it was read: that no row is changed means that
// somebody else was there.
const (
	updateHead = `UPDATE head SET seq = ?, events = ?, at = ?, hash = ?
		WHERE one = 1 AND seq = ? AND hash = ?`
	updateHold = `UPDATE holds SET committed = ?, released = ?, state = ?, until_at = ?
		WHERE id = ? AND state = 'held' AND committed = ? AND released = ? AND until_at = ?`
	updateRecord = `UPDATE records SET version = ?, state = ?, owner = ?, ref = ?, due = ?, body = ?
		WHERE kind = ? AND id = ? AND version = ?`
)

// write writes what was decided. The head comes first: if it has moved, there
// is no need to look any further.
func (t *tx) write(ctx context.Context, ch ledger.Changes) error {
	h := ch.Head
	if err := t.update(ctx, t.setHead, h.Seq, h.Events, h.At, h.Hash[:], t.head.Seq, t.head.Hash[:]); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if err := insert(ctx, t, t.addLine, ch.Lines, argLine); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := insert(ctx, t, t.addEvent, ch.Events, argEvent); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := insert(ctx, t, t.addPosting, ch.Postings, argPosting); err != nil {
		return fmt.Errorf("postings: %w", err)
	}
	if err := t.writeHolds(ctx, ch.Holds); err != nil {
		return fmt.Errorf("holds: %w", err)
	}
	if err := t.writeRecords(ctx, ch.Records); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	if err := t.writeBalances(ctx, ch.Balances); err != nil {
		return fmt.Errorf("balances: %w", err)
	}
	return nil
}

func (t *tx) writeHolds(ctx context.Context, changes []ledger.HoldChange) error {
	var fresh []ledger.Hold
	for _, c := range changes {
		if c.Before.ID == "" {
			fresh = append(fresh, c.After)
			continue
		}
		h, was := c.After, c.Before
		err := t.update(ctx, t.updateHold, h.Committed, h.Released, string(h.State), h.Until,
			h.ID, was.Committed, was.Released, was.Until)
		if err != nil {
			return err
		}
	}
	return insert(ctx, t, t.addHold, fresh, argHold)
}

func (t *tx) writeRecords(ctx context.Context, changes []ledger.RecordChange) error {
	var fresh []ledger.Record
	for _, c := range changes {
		if c.Before == 0 {
			fresh = append(fresh, c.After)
			continue
		}
		r := c.After
		err := t.update(ctx, t.updateRecord, r.Version, r.State, r.Owner, r.Ref, r.Due, string(r.Body),
			r.Kind, r.ID, c.Before)
		if err != nil {
			return err
		}
	}
	return insert(ctx, t, t.addRecord, fresh, argRecord)
}

func (t *tx) writeBalances(ctx context.Context, changes []ledger.BalanceChange) error {
	var fresh []ledger.Balance
	var args []any
	for _, c := range changes {
		if c.Before.Version == 0 {
			fresh = append(fresh, c.After)
			continue
		}
		args = t.strategy.args(args[:0], c)
		if err := t.update(ctx, t.updateMoney, args...); err != nil {
			return err
		}
	}
	return insert(ctx, t, t.addBalance, fresh, argBalance)
}

// update changes one row, or says that it is not there as it was.
func (t *tx) update(ctx context.Context, stmt *sql.Stmt, args ...any) error {
	return wrote(1)(t.StmtContext(ctx, stmt).ExecContext(ctx, args...))
}

// insert adds rows, many a statement.
func insert[R any](ctx context.Context, t *tx, m many, rows []R, args func([]any, R) []any) error {
	var to []any
	for len(rows) > 0 {
		n, stmt := m.fit(len(rows))
		to = to[:0]
		for _, r := range rows[:n] {
			to = args(to, r)
		}
		rows = rows[n:]
		if err := wrote(n)(t.StmtContext(ctx, stmt).ExecContext(ctx, to...)); err != nil {
			return err
		}
	}
	return nil
}

// wrote checks that a statement has written n rows.
func wrote(n int) func(sql.Result, error) error {
	return func(res sql.Result, err error) error {
		if err != nil {
			return err
		}
		got, err := res.RowsAffected()
		if err != nil {
			return err
		}
		if got != int64(n) {
			return errConflict
		}
		return nil
	}
}

func argLine(to []any, l ledger.Line) []any {
	return append(to, l.Seq, l.At, l.ID, l.Fingerprint[:], string(l.Code), string(l.Body), l.Hash[:])
}

func argEvent(to []any, e ledger.Event) []any {
	return append(to, e.Seq, e.Entry, e.At, e.Type, e.Subject, string(e.Body))
}

func argPosting(to []any, p ledger.Posted) []any {
	return append(to, p.Seq, p.N, string(p.From), string(p.To), string(p.Asset), p.Amount, p.Hold)
}

func argHold(to []any, h ledger.Hold) []any {
	return append(to, h.ID, string(h.From), string(h.To), string(h.Asset), h.Amount,
		h.Committed, h.Released, string(h.State), h.Until, h.Cap)
}

func argRecord(to []any, r ledger.Record) []any {
	return append(to, r.Kind, r.ID, r.Version, r.State, r.Owner, r.Ref, r.Due, string(r.Body))
}

func argBalance(to []any, b ledger.Balance) []any {
	return append(to, string(b.Account), string(b.Asset), b.Posted, b.Held, b.Version)
}
