package ledgertest

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

var reading = []claim{
	{"EveryQueryAnswersAsMemoryDoes", queriesAgree},
	{"PagesHoldEveryRowOnceAndInOrder", pagesAreComplete},
	{"TimeNeverGoesBackWhenTheClockDoes", timeNeverGoesBack},
	{"AnEmptyStoreIsEmpty", emptyStore},
}

// rows is everything that a store has.
type rows struct {
	head     ledger.Head
	lines    []ledger.Line
	events   []ledger.Event
	postings []ledger.Posted
	balances []ledger.Balance
	holds    []ledger.Hold
	records  []ledger.Record
}

// rows reads everything; no case writes more than a page of anything.
func (w *world) rows() rows {
	w.Helper()
	var all rows
	err := w.store.Snapshot(w.ctx, func(r ledger.Reader) (err error) {
		read := func(f func() error) {
			if err == nil {
				err = f()
			}
		}
		read(func() (err error) { all.head, err = r.Head(w.ctx); return })
		read(func() (err error) { all.lines, err = r.Lines(w.ctx, ledger.LineQuery{}); return })
		read(func() (err error) { all.events, err = r.Events(w.ctx, ledger.EventQuery{}); return })
		read(func() (err error) { all.postings, err = r.Postings(w.ctx, ledger.PostingQuery{}); return })
		read(func() (err error) { all.balances, err = r.Balances(w.ctx, ledger.BalanceQuery{}); return })
		read(func() (err error) { all.holds, err = r.Holds(w.ctx, ledger.HoldQuery{}); return })
		read(func() (err error) { all.records, err = r.Records(w.ctx, ledger.RecordQuery{}); return })
		return err
	})
	if err != nil {
		w.Errorf("read everything: %v", err)
	}
	return all
}

func compareRows(w *world, got, want rows) {
	w.Helper()
	if got.head != want.head {
		w.Errorf("head: got %+v, want %+v", got.head, want.head)
	}
	sameRows(w.T, "lines", got.lines, want.lines)
	sameRows(w.T, "events", got.events, want.events)
	sameRows(w.T, "postings", got.postings, want.postings)
	sameRows(w.T, "balances", got.balances, want.balances)
	sameRows(w.T, "holds", got.holds, want.holds)
	sameRows(w.T, "records", got.records, want.records)
}

func sameRows[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		// An absent document may be nil or empty.
		if !reflect.DeepEqual(got[i], want[i]) && fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("%s, row %d: got %+v, want %+v", what, i, got[i], want[i])
			return
		}
	}
}

// queriesAgree asks the store and the model everything that can be asked about
// one random history.
func queriesAgree(w *world) {
	model := history(w, 11, 60)
	for _, limit := range []int{0, 1, 3, -1, ledger.MaxPage + 1} {
		ask(w, model, ledger.Reader.Lines, lineQueries(limit))
		ask(w, model, ledger.Reader.Events, eventQueries(limit))
		ask(w, model, ledger.Reader.Postings, postingQueries(limit))
		ask(w, model, ledger.Reader.Balances, balanceQueries(limit))
		ask(w, model, ledger.Reader.Holds, holdQueries(limit))
		ask(w, model, ledger.Reader.Records, recordQueries(limit))
	}
}

// ask compares the answers to queries; at least one must not be empty.
func ask[Q, T any](w *world, model ledger.Reader, read func(ledger.Reader, context.Context, Q) ([]T, error), queries []Q) {
	w.Helper()
	found := 0
	for _, q := range queries {
		got, err := read(w.store, w.ctx, q)
		if err != nil {
			w.Errorf("%+v: %v", q, err)
		}
		want, err := read(model, w.ctx, q)
		if err != nil {
			w.Errorf("model: %+v: %v", q, err)
		}
		sameRows(w.T, fmt.Sprintf("%T%+v", q, q), got, want)
		found += len(got)
	}
	if found == 0 {
		w.Errorf("%T: nothing was found", *new(Q))
	}
}

func lineQueries(limit int) []ledger.LineQuery {
	return []ledger.LineQuery{{Limit: limit}, {After: 7, Limit: limit}, {After: 1 << 40, Limit: limit},
		{ID: "e1", Limit: limit}, {ID: "e3", Limit: limit}, {ID: "E3", Limit: limit}, {ID: "nothing", Limit: limit}}
}

func eventQueries(limit int) []ledger.EventQuery {
	return []ledger.EventQuery{{Limit: limit}, {After: 5, Limit: limit}, {Subject: "s1", Limit: limit},
		{Subject: "s1", After: 20, Limit: limit}, {Subject: "nothing", Limit: limit}}
}

func postingQueries(limit int) []ledger.PostingQuery {
	return []ledger.PostingQuery{{Limit: limit}, {After: 9, Limit: limit}, {Account: "acc1", Limit: limit},
		{Account: "@out0", Asset: "sku:1", Limit: limit}, {Asset: "sku:0", After: 30, Limit: limit}, {Account: "nobody", Limit: limit},
		{Desc: true, Limit: limit}, {Desc: true, After: 20, Limit: limit}, {Account: "acc1", Desc: true, After: 30, Limit: limit},
		{Asset: "sku:0", Desc: true, Limit: limit}}
}

func balanceQueries(limit int) []ledger.BalanceQuery {
	return []ledger.BalanceQuery{{Limit: limit}, {Account: "acc1", Limit: limit}, {Asset: "sku:1", Limit: limit},
		{Account: "acc2", Asset: "sku:0", Limit: limit}, {Prefix: "acc", Limit: limit}, {Prefix: "@", Asset: "sku:0", Limit: limit},
		{Prefix: "a_c", Limit: limit}, {Prefix: "%", Limit: limit}, {Prefix: "ACC", Limit: limit},
		{After: ledger.Key{Account: "acc1", Asset: "sku:0"}, Limit: limit}, {After: ledger.Key{Account: "acc1"}, Limit: limit},
		{Prefix: "acc", After: ledger.Key{Account: "acc1", Asset: "sku:1"}, Limit: limit}}
}

func holdQueries(limit int) []ledger.HoldQuery {
	return []ledger.HoldQuery{{Limit: limit}, {ID: "h1", Limit: limit}, {ID: "h2", Limit: limit}, {ID: "h3", After: "h9", Limit: limit},
		{From: "acc1", Limit: limit}, {Asset: "sku:0", Limit: limit}, {State: ledger.Held, Limit: limit},
		{State: ledger.Voided, After: "h10", Limit: limit}, {From: "acc0", Asset: "sku:1", State: ledger.Held, Limit: limit}}
}

func recordQueries(limit int) []ledger.RecordQuery {
	key := ledger.RecordKey{Kind: "kind0", ID: "r3"}
	return []ledger.RecordQuery{{Limit: limit}, {Kind: "kind0", Limit: limit}, {Kind: "kind1", ID: "r2", Limit: limit},
		{State: "s1", Limit: limit}, {Kind: "kind0", Owner: "o1", Limit: limit}, {Ref: "ref2", Limit: limit},
		{After: key, Limit: limit}, {Desc: true, Limit: limit}, {Desc: true, After: key, Limit: limit},
		{Kind: "kind0", Desc: true, After: key, Limit: limit}, {DueBy: at(9, 30), Limit: limit},
		{Kind: "kind1", DueBy: at(9, 59), Limit: limit}, {State: "s0", DueBy: at(9, 59), Limit: limit}, {DueBy: 1, Limit: limit}}
}

func pagesAreComplete(w *world) {
	history(w, 13, 40)
	all := w.rows()
	const limit = 3
	walk(w, "lines", all.lines, func(last ledger.Line) ([]ledger.Line, error) {
		return w.store.Lines(w.ctx, ledger.LineQuery{After: last.Seq, Limit: limit})
	})
	walk(w, "events", all.events, func(last ledger.Event) ([]ledger.Event, error) {
		return w.store.Events(w.ctx, ledger.EventQuery{After: last.Seq, Limit: limit})
	})
	walk(w, "postings", all.postings, func(last ledger.Posted) ([]ledger.Posted, error) {
		return w.store.Postings(w.ctx, ledger.PostingQuery{After: last.Seq, Limit: 1})
	})
	walk(w, "balances", all.balances, func(last ledger.Balance) ([]ledger.Balance, error) {
		return w.store.Balances(w.ctx, ledger.BalanceQuery{After: last.Key, Limit: limit})
	})
	walk(w, "holds", all.holds, func(last ledger.Hold) ([]ledger.Hold, error) {
		return w.store.Holds(w.ctx, ledger.HoldQuery{After: last.ID, Limit: limit})
	})
	walk(w, "records", all.records, func(last ledger.Record) ([]ledger.Record, error) {
		return w.store.Records(w.ctx, ledger.RecordQuery{After: last.Key(), Limit: limit})
	})
}

// walk reads a list page by page and compares it with the whole.
func walk[T any](w *world, what string, want []T, next func(last T) ([]T, error)) {
	w.Helper()
	var got []T
	var last T
	for range len(want) + 1 {
		page, err := next(last)
		if err != nil {
			w.Errorf("%s: %v", what, err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		last = page[len(page)-1]
	}
	if len(want) < 4 {
		w.Errorf("%s: only %d rows to page through", what, len(want))
	}
	sameRows(w.T, what, got, want)
}

func timeNeverGoesBack(w *world) {
	w.give("stock", tee, 2)
	w.ok("hold", take("h1", tee, 1))
	w.clock.set(at(9, 20))
	w.ok("late", ledger.Move(post("@supplier", "stock", tee, 1)))
	w.clock.set(at(3, 0)) // somebody set the clock back
	now, err := w.store.Now(w.ctx)
	if err != nil || now != at(9, 20) {
		w.Errorf("now: got %d, error %v, want %d", now, err, at(9, 20))
	}
	if res := w.ok("expire", ledger.Expire("h1")); res.At != at(9, 20) {
		w.Errorf("decided at %d, want %d", res.At, at(9, 20))
	}
	w.clock.set(at(9, 40))
	if now, _ := w.store.Now(w.ctx); now != at(9, 40) { // a read moves the store's time too
		w.Errorf("now: got %d, want %d", now, at(9, 40))
	}
	w.clock.set(at(9, 30))
	if now, _ := w.store.Now(w.ctx); now != at(9, 40) {
		w.Errorf("after a read and a step back, now: got %d, want %d", now, at(9, 40))
	}
	if res := w.ok("decided in the past", ledger.Move(post("@supplier", "stock", tee, 1))); res.At != at(9, 40) {
		w.Errorf("decided at %d, which readers had left behind; want %d", res.At, at(9, 40))
	}
	var last int64
	for _, l := range w.rows().lines {
		if l.At < last {
			w.Errorf("line %d at %d follows one at %d", l.Seq, l.At, last)
		}
		last = l.At
	}
}

func emptyStore(w *world) {
	if all := w.rows(); !reflect.DeepEqual(all, rows{}) && len(all.lines)+len(all.balances)+len(all.events) > 0 {
		w.Errorf("got %+v, want nothing", all)
	}
	if h := w.head(); h != (ledger.Head{}) {
		w.Errorf("head: got %+v, want nothing", h)
	}
	if results, err := w.store.Apply(w.ctx); err != nil || len(results) != 0 {
		w.Errorf("apply of no entries: got %v, %v, want nothing", results, err)
	}
}
