package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of LockRow.
const (
	lockLease = 5 * time.Second       // a row is its owner's for so long; more than a transaction takes
	lockPause = 2 * time.Millisecond  // before the second look at a row that is taken; it grows by as much each time
	lockCalm  = 50 * time.Millisecond // the longest pause
)

// lockRows are the mutexes of one try: a row of the table locks for each
// balance that it may overdraw. The zero value has none.
//
// All rows are inserted in one short transaction of their own, or none is, so
// nobody waits while having a part of them. They are deleted in the transaction
// that they were taken for. Between the two stands only a lease: whoever is late
// has lost its rows without knowing, and writes all the same. So no promise may
// rest on a row: what is written is guarded as Conditional does it, and a row
// is deleted only by its owner, which its number tells from earlier ones.
type lockRows struct {
	store  *Store
	number int64 // with the owner, of this taking alone
	keys   []ledger.Key
}

// takeRows waits until it has the mutexes of all balances that entries may
// overdraw. An owner that is gone is waited for until its lease is over.
func (s *Store) takeRows(ctx context.Context, entries []ledger.Entry) (lockRows, error) {
	if !s.strategy.rows {
		return lockRows{}, nil
	}
	l := lockRows{store: s, number: s.taken.Add(1)}
	for wait := lockPause; ; wait = min(wait+lockPause, lockCalm) {
		err := l.take(ctx, entries, wait > lockPause)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, errCommit) && !s.dialect.again(err) {
			return lockRows{}, err
		}
		if pause(ctx, wait) != nil {
			return lockRows{}, err
		}
	}
}

// take inserts all rows, or fails as INSERT does where there is one. With
// lapsed it first deletes those whose lease is over: of two that do so, the
// second waits for the first and finds another row.
func (l *lockRows) take(ctx context.Context, entries []ledger.Entry, lapsed bool) error {
	sqlTx, err := l.store.conns.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer sqlTx.Rollback() // after Commit it does nothing
	t := tx{Tx: sqlTx, statements: l.store.statements}
	needs := ledger.NeedsOf(wellFormed(entries))
	holds, err := look(ctx, &t, t.holds, needs.Holds, argText, scanHold)
	if err != nil {
		return err
	}
	needs.AddHold(holds...)
	l.keys = slices.DeleteFunc(needs.Keys, func(k ledger.Key) bool { return k.Account.External() })
	for _, k := range l.keys {
		if lapsed {
			if _, err := t.StmtContext(ctx, t.dropLapsed).ExecContext(ctx, string(k.Account), string(k.Asset)); err != nil {
				return err
			}
		}
		_, err := t.StmtContext(ctx, t.addLock).
			ExecContext(ctx, string(k.Account), string(k.Asset), l.store.owner, l.number, l.store.lease.Milliseconds())
		if err != nil {
			return err
		}
	}
	if err := sqlTx.Commit(); err != nil {
		return errors.Join(errCommit, err)
	}
	return nil
}

// give deletes the rows that are still its own, with dropLock or that of a
// transaction.
func (l *lockRows) give(ctx context.Context, drop *sql.Stmt) error {
	for _, k := range l.keys {
		if _, err := drop.ExecContext(ctx, string(k.Account), string(k.Asset), l.store.owner, l.number); err != nil {
			return err
		}
	}
	return nil
}

// end deletes the rows that no commit has deleted. If it can't, their lease
// ends them.
func (l *lockRows) end(ctx context.Context) {
	if len(l.keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
	defer cancel()
	_ = l.give(ctx, l.store.statements.dropLock)
}
