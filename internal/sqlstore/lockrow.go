package sqlstore

import (
	"context"
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
	t, err := l.store.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	needs := ledger.NeedsOf(wellFormed(entries))
	var holds []ledger.Hold
	look(ctx, t, t.holds, needs.Holds, argText, scanHold, &holds)
	if err := t.flush(ctx); err != nil {
		return err
	}
	needs.AddHold(holds...)
	l.keys = slices.DeleteFunc(needs.Keys, func(k ledger.Key) bool { return k.Account.External() })
	for _, k := range l.keys {
		if lapsed {
			t.add(ctx, step{sized: t.dropLapsed, want: anyRows, args: argKey(t.room(), k)})
		}
		t.add(ctx, step{sized: t.addLock, want: 1, args: append(argKey(t.room(), k), l.store.owner, l.number, l.store.lease.Milliseconds())})
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	if err := t.Commit(); err != nil {
		return errors.Join(errCommit, err)
	}
	return nil
}

// give adds the steps that delete the rows that are still its own.
func (l *lockRows) give(ctx context.Context, t *tx) {
	for _, k := range l.keys {
		t.add(ctx, step{sized: t.dropLock, want: anyRows, args: append(argKey(t.room(), k), l.store.owner, l.number)})
	}
}

// end deletes the rows that no commit has deleted. If it can't, their lease
// ends them.
func (l *lockRows) end(ctx context.Context) {
	if len(l.keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
	defer cancel()
	t, err := l.store.begin(ctx)
	if err != nil {
		return
	}
	defer t.end()
	l.give(ctx, t)
	if t.flush(ctx) == nil {
		_ = t.Commit()
	}
}
