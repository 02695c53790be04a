package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

// What is inserted into, behind the INSERT of the dialect.
const (
	insertLines    = `journal (seq, at, id, fingerprint, code, body, hash) VALUES `
	insertEvents   = `events (seq, entry, at, type, subject, body) VALUES `
	insertPostings = `postings (seq, n, from_account, to_account, asset, amount, hold) VALUES `
	insertHolds    = `holds (id, from_account, to_account, asset, amount, committed, released, state, until_at, cap_at) VALUES `
	insertRecords  = `records (kind, id, version, state, owner, ref, due, body) VALUES `
	insertBalances = `balances (account, asset, posted, held, version) VALUES `
)

// write writes what was decided. The head comes first: if it has moved, there
// is no need to look any further.
func (t *tx) write(ctx context.Context, ch ledger.Changes) error {
	h := ch.Head
	err := wrote(1)(t.StmtContext(ctx, t.setHead).
		ExecContext(ctx, h.Seq, h.Events, h.At, h.Hash[:], t.head.Seq, t.head.Hash[:]))
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if err := put(ctx, t, t.addLine, ch.Lines, argLine); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := put(ctx, t, t.addEvent, ch.Events, argEvent); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := put(ctx, t, t.addPosting, ch.Postings, argPosting); err != nil {
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
	old, fresh := part(changes, func(c ledger.HoldChange) bool { return c.Before.ID == "" })
	if err := put(ctx, t, t.updateHold, old, argHoldChange); err != nil {
		return err
	}
	return put(ctx, t, t.addHold, fresh, argHold)
}

func (t *tx) writeRecords(ctx context.Context, changes []ledger.RecordChange) error {
	old, fresh := part(changes, func(c ledger.RecordChange) bool { return c.Before == 0 })
	if err := put(ctx, t, t.updateRecord, old, argRecordChange); err != nil {
		return err
	}
	return put(ctx, t, t.addRecord, fresh, argRecord)
}

func (t *tx) writeBalances(ctx context.Context, changes []ledger.BalanceChange) error {
	old, fresh := part(changes, func(c ledger.BalanceChange) bool { return c.Before.Version == 0 })
	if err := put(ctx, t, t.updateMoney, old, t.strategy.args); err != nil {
		return err
	}
	return put(ctx, t, t.addBalance, fresh, argBalance)
}

// part parts the changes of rows that there are from those that make a row.
func part[C any](changes []C, isFresh func(C) bool) (old, fresh []C) {
	for _, c := range changes {
		if isFresh(c) {
			fresh = append(fresh, c)
		} else {
			old = append(old, c)
		}
	}
	return old, fresh
}

// put writes rows, many a statement, or says that one was not there as it was.
func put[R any](ctx context.Context, t *tx, m many, rows []R, args func([]any, R) []any) error {
	var to []any
	for len(rows) > 0 {
		s := m.fit(len(rows))
		to = to[:0]
		for _, r := range rows[:s.rows] {
			to = args(to, r)
		}
		rows = rows[s.rows:]
		if err := wrote(s.rows)(t.StmtContext(ctx, s.Stmt).ExecContext(ctx, to...)); err != nil {
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

func argHold(to []any, c ledger.HoldChange) []any {
	h := c.After
	return append(to, h.ID, string(h.From), string(h.To), string(h.Asset), h.Amount,
		h.Committed, h.Released, string(h.State), h.Until, h.Cap)
}

func argHoldChange(to []any, c ledger.HoldChange) []any {
	h, was := c.After, c.Before
	return append(to, h.Committed, h.Released, string(h.State), h.Until,
		h.ID, was.Committed, was.Released, was.Until)
}

func argRecord(to []any, c ledger.RecordChange) []any {
	r := c.After
	return append(to, r.Kind, r.ID, r.Version, r.State, r.Owner, r.Ref, r.Due, string(r.Body))
}

func argRecordChange(to []any, c ledger.RecordChange) []any {
	r := c.After
	return append(to, r.Version, r.State, r.Owner, r.Ref, r.Due, string(r.Body), r.Kind, r.ID, c.Before)
}

func argBalance(to []any, c ledger.BalanceChange) []any {
	b := c.After
	return append(to, string(b.Account), string(b.Asset), b.Posted, b.Held, b.Version)
}
