package sqlstore

import (
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

func TestSQLiteIsALedgerUnderEveryStrategy(t *testing.T) {
	for _, strategy := range everyStrategy {
		t.Run(string(strategy), func(t *testing.T) {
			ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store {
				return openAt(t, sqliteURL(t), Options{Strategy: strategy, Clock: clock})
			})
		})
	}
}
