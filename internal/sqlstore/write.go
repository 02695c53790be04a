package sqlstore

import (
	"context"

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
	t.add(ctx, step{sized: t.setHead, want: 1,
		args: append(t.room(), h.Seq, h.Events, h.At, h.Hash[:], t.head.Seq, t.head.Hash[:])})
	put(ctx, t, t.addLine, ch.Lines, argLine)
	put(ctx, t, t.addEvent, ch.Events, argEvent)
	put(ctx, t, t.addPosting, ch.Postings, argPosting)
	oldHolds, newHolds := part(ch.Holds, func(c ledger.HoldChange) bool { return c.Before.ID == "" })
	put(ctx, t, t.updateHold, oldHolds, argHoldChange)
	put(ctx, t, t.addHold, newHolds, argHold)
	oldRecords, newRecords := part(ch.Records, func(c ledger.RecordChange) bool { return c.Before == 0 })
	put(ctx, t, t.updateRecord, oldRecords, argRecordChange)
	put(ctx, t, t.addRecord, newRecords, argRecord)
	oldBalances, newBalances := part(ch.Balances, func(c ledger.BalanceChange) bool { return c.Before.Version == 0 })
	put(ctx, t, t.updateMoney, oldBalances, t.strategy.args)
	put(ctx, t, t.addBalance, newBalances, argBalance)
	return t.flush(ctx)
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

// put adds the steps that write rows, many a statement.
func put[R any](ctx context.Context, t *tx, m many, rows []R, args func([]any, R) []any) {
	for len(rows) > 0 {
		s := m.fit(len(rows))
		to := t.room()
		for _, r := range rows[:s.rows] {
			to = args(to, r)
		}
		rows = rows[s.rows:]
		t.add(ctx, step{sized: s, args: to, want: int64(s.rows)})
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
