package sqlstore

import "sync/atomic"

// Stats counts what a Store has done since it was opened.
type Stats struct {
	Batches      int64 // that Apply has decided or given up
	Transactions int64 // that were begun for them: more than Batches where a decision had to be made anew
	Queries      int64 // that were asked outside of them, the beginnings of snapshots included
}

// Stats reads the counters.
func (s *Store) Stats() Stats {
	return Stats{Batches: s.counted.batches.Load(), Transactions: s.counted.transactions.Load(), Queries: s.counted.queries.Load()}
}

// counters are what Stats reads. Safe for concurrent use.
type counters struct{ batches, transactions, queries atomic.Int64 }
