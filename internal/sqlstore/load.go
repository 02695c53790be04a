package sqlstore

import (
	"context"

	"github.com/holdfast-pay/holdfast/ledger"
)

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
	lock := step{sized: t.lockHead, row: func(row scanner) (err error) {
		t.head, t.now, err = scanHeadAndTime(row)
		return err
	}}
	var before ledger.Head
	first := step{sized: t.statements.head, row: func(row scanner) (err error) {
		before, err = scanHead(row)
		return err
	}}
	if headFirst {
		first = lock
	}
	var holds []ledger.Hold
	var records []ledger.Record
	var balances []ledger.Balance
	var lines []ledger.Line
	needs := ledger.NeedsOf(wellFormed(entries))
	t.add(ctx, first)
	look(ctx, t, t.holds, needs.Holds, argText, scanHold, &holds)
	look(ctx, t, t.records, needs.Records, argRecordKey, scanVersion, &records)
	look(ctx, t, t.balances, needs.Keys, argKey, scanBalance, &balances)
	if !headFirst {
		t.add(ctx, lock)
	}
	look(ctx, t, t.lines, needs.IDs, argText, scanLine, &lines)
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	t.behind = !headFirst && t.head.Seq != before.Seq
	look(ctx, t, t.balances, needs.AddHold(holds...), argKey, scanBalance, &balances) // only the holds tell which
	if err := t.flush(ctx); err != nil {
		return nil, err
	}
	state := ledger.NewState(t.head)
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

// look adds the steps that read the rows that have one of keys.
func look[K, R any](ctx context.Context, t *tx, m many, keys []K, args func([]any, K) []any, scan func(scanner) (R, error), found *[]R) {
	for len(keys) > 0 {
		s := m.cover(len(keys))
		n := min(s.rows, len(keys))
		to := t.room()
		for i := range s.rows {
			to = args(to, keys[min(i, n-1)]) // room to spare is filled with the last key
		}
		keys = keys[n:]
		t.add(ctx, step{sized: s, args: to, row: collect(scan, found)})
	}
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
