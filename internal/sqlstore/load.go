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
	head     ledger.Head // as it was read
}

const (
	selectHead     = `SELECT seq, events, at, hash FROM head WHERE one = 1`
	selectLines    = `SELECT seq, at, id, fingerprint, code, body, hash FROM journal`
	selectHolds    = `SELECT id, from_account, to_account, asset, amount, committed, released, state, until_at, cap_at FROM holds`
	selectVersions = `SELECT kind, id, version FROM records`
	selectBalances = `SELECT account, asset, posted, held, version FROM balances`
)

// load reads every row that entries may touch. The head comes first: it is
// locked until the commit, so that whoever else writes waits here, before it
// has read anything. Then come the holds, the records and, in the end, the
// balances in one sorted sweep: no two writers ever wait for each other.
func (t *tx) load(ctx context.Context, entries []ledger.Entry) (*ledger.State, error) {
	var err error
	if t.head, err = scanHead(t.StmtContext(ctx, t.statements.head).QueryRowContext(ctx)); err != nil {
		return nil, err
	}
	state := ledger.NewState(t.head)
	needs := ledger.NeedsOf(wellFormed(entries))
	err = look(ctx, t, t.lines, needs.IDs, argText, scanLine, state.PutLine)
	if err != nil {
		return nil, err
	}
	err = look(ctx, t, t.holds, needs.Holds, argText, scanHold, func(h ledger.Hold) error {
		state.PutHold(h)
		needs.AddHold(h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = look(ctx, t, t.records, needs.Records, argRecordKey, scanVersion, func(r ledger.Record) error {
		state.PutRecord(r.Key(), r.Version)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = look(ctx, t, t.balances, needs.Keys, argKey, scanBalance, func(b ledger.Balance) error {
		state.PutBalance(b)
		return nil
	})
	return state, err
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

// look visits the rows that have one of keys.
func look[K, R any](ctx context.Context, t *tx, m many, keys []K, args func([]any, K) []any, scan func(scanner) (R, error), visit func(R) error) error {
	var to []any
	for len(keys) > 0 {
		room, stmt := m.cover(len(keys))
		n := min(room, len(keys))
		to = to[:0]
		for i := range room {
			to = args(to, keys[min(i, n-1)]) // room to spare is filled with the last key
		}
		keys = keys[n:]
		rows, err := t.StmtContext(ctx, stmt).QueryContext(ctx, to...)
		if err != nil {
			return err
		}
		if err := each(rows, scan, visit); err != nil {
			return err
		}
	}
	return nil
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
