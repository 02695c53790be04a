package sqlstore

import (
	"context"
	"database/sql"

	"github.com/holdfast-pay/holdfast/ledger"
)

// tx is one writing transaction.
type tx struct {
	*sql.Tx
	*statements
	strategy strategy
	head     ledger.Head // as it was when it was locked
	now      int64       // what the database's clock said then, Unix ms
	behind   bool        // the head has moved after the rows were read
}

const (
	selectHead     = `SELECT seq, events, at, hash FROM head WHERE one = 1`
	selectLines    = `SELECT seq, at, id, fingerprint, code, body, hash FROM journal`
	selectHolds    = `SELECT id, from_account, to_account, asset, amount, committed, released, state, until_at, cap_at FROM holds`
	selectVersions = `SELECT kind, id, version FROM records`
	selectBalances = `SELECT account, asset, posted, held, version FROM balances`
)

// load reads every row that entries may touch, and locks the head of the
// journal: until the commit, nobody else writes. It is the only lock that one
// writer waits for another with, so no two ever wait for each other.
//
// With headFirst it is taken before anything is read, and what is read is what
// there is. Otherwise it is taken last, so that it is held as short as can be,
// and t.behind says that somebody has written after the rows were read. The
// lines are read under the lock in any case: a call whose answer was lost may
// still be under way, and it ends before the lock is given.
func (t *tx) load(ctx context.Context, entries []ledger.Entry, headFirst bool) (*ledger.State, error) {
	take := func() (err error) {
		t.head, t.now, err = scanHeadAndTime(t.StmtContext(ctx, t.lockHead).QueryRowContext(ctx))
		return err
	}
	var before ledger.Head
	var err error
	if headFirst {
		err = take()
	} else {
		before, err = scanHead(t.StmtContext(ctx, t.statements.head).QueryRowContext(ctx))
	}
	if err != nil {
		return nil, err
	}
	needs := ledger.NeedsOf(wellFormed(entries))
	holds, err := look(ctx, t, t.holds, needs.Holds, argText, scanHold)
	if err != nil {
		return nil, err
	}
	needs.AddHold(holds...)
	records, err := look(ctx, t, t.records, needs.Records, argRecordKey, scanVersion)
	if err != nil {
		return nil, err
	}
	balances, err := look(ctx, t, t.balances, needs.Keys, argKey, scanBalance)
	if err != nil {
		return nil, err
	}
	if !headFirst {
		if err := take(); err != nil {
			return nil, err
		}
		t.behind = t.head.Seq != before.Seq
	}
	lines, err := look(ctx, t, t.lines, needs.IDs, argText, scanLine)
	if err != nil {
		return nil, err
	}
	return fill(t.head, holds, records, balances, lines)
}

// fill makes a State of what was loaded.
func fill(head ledger.Head, holds []ledger.Hold, records []ledger.Record, balances []ledger.Balance, lines []ledger.Line) (*ledger.State, error) {
	state := ledger.NewState(head)
	for _, h := range holds {
		state.PutHold(h)
	}
	for _, r := range records {
		state.PutRecord(r.Key(), r.Version)
	}
	for _, b := range balances {
		state.PutBalance(b)
	}
	for _, l := range lines {
		if err := state.PutLine(l); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// wellFormed leaves out what will be refused as invalid: its names may be such
// that a database chokes on them.
func wellFormed(entries []ledger.Entry) []ledger.Entry {
	out := make([]ledger.Entry, 0, len(entries))
	for _, e := range entries {
		if e.Check() == "" {
			out = append(out, e)
		}
	}
	return out
}

// look reads the rows that have one of keys.
func look[K, R any](ctx context.Context, t *tx, m many, keys []K, args func([]any, K) []any, scan func(scanner) (R, error)) (found []R, err error) {
	var to []any
	for len(keys) > 0 {
		s := m.cover(len(keys))
		n := min(s.rows, len(keys))
		to = to[:0]
		for i := range s.rows {
			to = args(to, keys[min(i, n-1)]) // room to spare is filled with the last key
		}
		keys = keys[n:]
		rows, err := t.StmtContext(ctx, s.Stmt).QueryContext(ctx, to...)
		if err != nil {
			return nil, err
		}
		err = each(rows, scan, func(row R) error {
			found = append(found, row)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// each visits all rows and closes them.
func each[R any](rows *sql.Rows, scan func(scanner) (R, error), visit func(R) error) error {
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return err
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

func argText(to []any, s string) []any { return append(to, s) }

func argKey(to []any, k ledger.Key) []any { return append(to, string(k.Account), string(k.Asset)) }

func argRecordKey(to []any, k ledger.RecordKey) []any { return append(to, k.Kind, k.ID) }

// scanner is a *sql.Row or a *sql.Rows.
type scanner interface{ Scan(to ...any) error }

func scanHead(row scanner) (h ledger.Head, err error) {
	var hash []byte
	err = row.Scan(&h.Seq, &h.Events, &h.At, &hash)
	copy(h.Hash[:], hash)
	return h, err
}

func scanHeadAndTime(row scanner) (h ledger.Head, now int64, err error) {
	var hash []byte
	err = row.Scan(&h.Seq, &h.Events, &h.At, &hash, &now)
	copy(h.Hash[:], hash)
	return h, now, err
}

func scanLine(row scanner) (l ledger.Line, err error) {
	var fingerprint, hash []byte
	err = row.Scan(&l.Seq, &l.At, &l.ID, &fingerprint, &l.Code, &l.Body, &hash)
	copy(l.Fingerprint[:], fingerprint)
	copy(l.Hash[:], hash)
	return l, err
}

func scanHold(row scanner) (h ledger.Hold, err error) {
	err = row.Scan(&h.ID, &h.From, &h.To, &h.Asset, &h.Amount, &h.Committed, &h.Released, &h.State, &h.Until, &h.Cap)
	return h, err
}

func scanVersion(row scanner) (r ledger.Record, err error) {
	err = row.Scan(&r.Kind, &r.ID, &r.Version)
	return r, err
}

func scanBalance(row scanner) (b ledger.Balance, err error) {
	err = row.Scan(&b.Account, &b.Asset, &b.Posted, &b.Held, &b.Version)
	return b, err
}
