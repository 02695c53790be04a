package sqlstore

import (
	"testing"
)

func TestStatsCountADecisionThatWasMadeAnew(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 2))
		before := s.Stats()
		failCommit(s, 1, rollBack(errConflict))
		apply(t, s, reserve("first", 1), reserve("second", 1))
		got := s.Stats()
		if got.Batches-before.Batches != 1 || got.Transactions-before.Transactions != 2 {
			t.Errorf("got %+v after %+v, want 1 batch more and 2 transactions", got, before)
		}
	})
}
