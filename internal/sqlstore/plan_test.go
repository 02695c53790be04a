package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

// explainer answers a query with its plan: as an error, because the rows are
// not of the kind that was asked for.
type explainer struct{ *sql.DB }

type plan string

func (p plan) Error() string { return string(p) }

func (e explainer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := e.DB.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	var steps []string
	err = each(rows, collect(func(row scanner) (step string, err error) {
		var id, parent, unused int
		err = row.Scan(&id, &parent, &unused, &step)
		return step, err
	}, &steps))
	if err != nil {
		return nil, err
	}
	return nil, plan(strings.Join(steps, "; "))
}

func TestNoListSortsOrScansWhatItDoesNotReturn(t *testing.T) {
	s := open(t, Options{})
	r := reads{db: explainer{s.conns.read}, dialect: &sqlite}
	records := func(q ledger.RecordQuery) error { _, err := r.Records(t.Context(), q); return err }
	holds := func(q ledger.HoldQuery) error { _, err := r.Holds(t.Context(), q); return err }
	postings := func(q ledger.PostingQuery) error { _, err := r.Postings(t.Context(), q); return err }
	balances := func(q ledger.BalanceQuery) error { _, err := r.Balances(t.Context(), q); return err }
	events := func(q ledger.EventQuery) error { _, err := r.Events(t.Context(), q); return err }
	lines := func(q ledger.LineQuery) error { _, err := r.Lines(t.Context(), q); return err }
	for _, c := range []struct {
		name string
		plan error
		want string
	}{
		{"the record of an id", records(ledger.RecordQuery{Kind: "order", ID: "o"}), "records_id (kind=? AND id=?)"},
		{"the next orders", records(ledger.RecordQuery{Kind: "order", After: ledger.RecordKey{Kind: "order", ID: "o"}}), "records_id (kind=? AND id>?)"},
		{"the orders before", records(ledger.RecordQuery{Kind: "order", Desc: true, After: ledger.RecordKey{Kind: "order", ID: "o"}}), "records_id (kind=? AND id<?)"},
		{"all next records", records(ledger.RecordQuery{After: ledger.RecordKey{Kind: "order", ID: "o"}}), "records_id ((kind,id)>(?,?))"},
		{"the next paid orders", records(ledger.RecordQuery{Kind: "order", State: "paid", After: ledger.RecordKey{Kind: "order", ID: "o"}}), "records_state (kind=? AND state=? AND id>?)"},
		{"the latest orders of a customer", records(ledger.RecordQuery{Kind: "order", Owner: "c", Desc: true}), "records_owner (owner=? AND kind=?)"},
		{"what a customer has", records(ledger.RecordQuery{Owner: "c"}), "records_owner (owner=?)"},
		{"the record of a reference", records(ledger.RecordQuery{Ref: "pi_1"}), "records_ref (ref=?)"},
		{"the orders that are due", records(ledger.RecordQuery{Kind: "order", DueBy: 1}), "records_due (kind=? AND due>? AND due<?)"},
		{"the hold of an id", holds(ledger.HoldQuery{ID: "h"}), "PRIMARY KEY (id=?)"},
		{"the next holds", holds(ledger.HoldQuery{After: "h"}), "PRIMARY KEY (id>?)"},
		{"the open holds of an account", holds(ledger.HoldQuery{From: "shop", Asset: "sku:tee", State: ledger.Held}), "holds_open (from_account=? AND asset=?"},
		{"the next postings", postings(ledger.PostingQuery{After: 1}), "PRIMARY KEY (seq>?)"},
		{"the next postings of an account", postings(ledger.PostingQuery{Account: "shop", After: 1}), "postings_from (from_account=? AND seq>?)"},
		{"the next postings to an account", postings(ledger.PostingQuery{Account: "shop", After: 1}), "postings_to (to_account=? AND seq>?)"},
		{"the balances of an account", balances(ledger.BalanceQuery{Account: "shop"}), "PRIMARY KEY (account=?)"},
		{"a balance", balances(ledger.BalanceQuery{Account: "shop", Asset: "sku:tee"}), "PRIMARY KEY (account=? AND asset=?)"},
		{"the balances of an asset", balances(ledger.BalanceQuery{Asset: "sku:tee"}), "balances_asset (asset=?)"},
		{"the next balances", balances(ledger.BalanceQuery{After: ledger.Key{Account: "shop", Asset: "sku:tee"}}), "PRIMARY KEY ((account,asset)>(?,?))"},
		{"the balances under a prefix", balances(ledger.BalanceQuery{Prefix: "wallet/"}), "PRIMARY KEY (account>? AND account<?)"},
		{"the next events", events(ledger.EventQuery{After: 1}), "PRIMARY KEY (rowid>?)"},
		{"the next events of a subject", events(ledger.EventQuery{Subject: "o", After: 1}), "events_subject (subject=? AND seq>?)"},
		{"the next lines", lines(ledger.LineQuery{After: 1}), "PRIMARY KEY (rowid>?)"},
		{"the line of an entry", lines(ledger.LineQuery{ID: "e"}), "journal_id (id=?)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fmt.Sprint(c.plan)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			// The two halves of an account's postings are sorted into one, a page of each.
			if strings.Contains(got, "TEMP B-TREE") && !strings.Contains(got, "UNION ALL") {
				t.Errorf("got %s\nwant nothing sorted", got)
			}
		})
	}
}

func TestAWriteLooksUpEveryRowInAnIndex(t *testing.T) {
	for _, strategy := range everyStrategy {
		s := open(t, Options{Strategy: strategy})
		list := func(head, row, tail string) string { return head + strings.Repeat(row+",", 7) + row + tail }
		for query, want := range map[string]string{
			list(selectLines+" WHERE id IN (", "?", ")"):                                                               "journal_id (id=?)",
			list(selectHolds+" WHERE id IN (", "?", ")"):                                                               "PRIMARY KEY (id=?)",
			list(selectVersions+" WHERE (kind, id) IN ("+s.dialect.tuples, "(?,?)", ") ORDER BY kind, id"):             "records_id (kind=? AND id=?)",
			list(selectBalances+" WHERE (account, asset) IN ("+s.dialect.tuples, "(?,?)", ") ORDER BY account, asset"): "PRIMARY KEY (account=? AND asset=?)",
			updateOne(updateHold):        "PRIMARY KEY (id=?)",
			updateOne(updateRecord):      "records_id (kind=? AND id=?)",
			updateOne(s.strategy.update): "PRIMARY KEY (account=? AND asset=?)",
		} {
			_, err := explainer{s.conns.read}.QueryContext(t.Context(), query, make([]any, strings.Count(query, "?"))...)
			if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, "SCAN records") ||
				strings.Contains(got, "SCAN balances") {
				t.Errorf("%s\ngot %s, want %s", query, got, want)
			}
		}
	}
}
