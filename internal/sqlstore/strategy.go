package sqlstore

import "github.com/holdfast-pay/holdfast/ledger"

// Strategy is how a balance is guarded between reading and writing it. All of
// them end in the same entries; they differ in who waits and who tries again.
// Where there are several writers, Pessimistic takes the head of the journal
// before it reads; the others read first and take it last. A batch that meets a
// conflict is decided again with the head first, so it meets only one.
type Strategy string

const (
	// Conditional adds the change and lets the statement refuse to go below
	// zero. It is right whoever else wrote the row.
	Conditional Strategy = "conditional"
	// Pessimistic locks the row when it is read, so that writing it cannot fail.
	Pessimistic Strategy = "pessimistic"
	// Optimistic writes the row only if its version is still the one that was
	// read. One conflict sends the whole batch back to the start: the worst
	// strategy for a hot balance.
	Optimistic Strategy = "optimistic"
	// LockRow has a mutex for each balance: a row with a unique key, inserted and
	// committed before the balance is read, deleted when it has been written. It
	// costs a second commit and waits by asking again and again; it guards what is
	// written as Conditional does, so that it is right even when its lease was not.
	LockRow Strategy = "lockrow"
)

// strategy is what a Strategy does: whether balances are read under a lock, or
// under rows of the table locks, and the statement that writes one change. That it changes no row means that
// the row is not as it was read: everything is decided again.
type strategy struct {
	lock   bool
	rows   bool
	update string
	args   func(to []any, c ledger.BalanceChange) []any
}

func strategyOf(s Strategy) (strategy, bool) {
	switch s {
	case Conditional, "":
		return strategy{
			update: `UPDATE balances SET posted = posted + {more_posted bigint}, held = held + {more_held bigint},
				version = version + {more_versions bigint}
				WHERE account = {this_account text} AND asset = {this_asset text}
				AND (external = 1 OR posted - held + {more_available bigint} >= 0)`,
			args: func(to []any, c ledger.BalanceChange) []any {
				posted, held := c.After.Posted-c.Before.Posted, c.After.Held-c.Before.Held
				return append(to, posted, held, c.After.Version-c.Before.Version,
					string(c.After.Account), string(c.After.Asset), posted-held)
			},
		}, true
	case Pessimistic:
		return strategy{
			lock: true,
			update: `UPDATE balances SET posted = {new_posted bigint}, held = {new_held bigint}, version = {new_version bigint}
				WHERE account = {this_account text} AND asset = {this_asset text}`,
			args: func(to []any, c ledger.BalanceChange) []any {
				return append(to, c.After.Posted, c.After.Held, c.After.Version,
					string(c.After.Account), string(c.After.Asset))
			},
		}, true
	case Optimistic:
		return strategy{
			update: `UPDATE balances SET posted = {new_posted bigint}, held = {new_held bigint}, version = {new_version bigint}
				WHERE account = {this_account text} AND asset = {this_asset text} AND version = {old_version bigint}`,
			args: func(to []any, c ledger.BalanceChange) []any {
				return append(to, c.After.Posted, c.After.Held, c.After.Version,
					string(c.After.Account), string(c.After.Asset), c.Before.Version)
			},
		}, true
	case LockRow:
		guarded, ok := strategyOf(Conditional)
		guarded.rows = true
		return guarded, ok
	default:
		return strategy{}, false
	}
}
