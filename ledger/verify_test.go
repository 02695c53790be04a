package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

// forged is a Reader over plain rows, which a test edits as somebody with a
// database shell would. Pages are short, so that Verify has to turn them.
type forged struct {
	head     ledger.Head
	lines    []ledger.Line
	events   []ledger.Event
	postings []ledger.Posted
	balances []ledger.Balance
	holds    []ledger.Hold
	records  []ledger.Record
}

const forgedPage = 2

func after[T any](rows []T, is func(T) bool) ([]T, error) {
	i := slices.IndexFunc(rows, is)
	if i < 0 {
		return nil, nil
	}
	return slices.Clone(rows[i:min(i+forgedPage, len(rows))]), nil
}

func (f *forged) Now(context.Context) (int64, error)                             { return f.head.At, nil }
func (f *forged) Head(context.Context) (ledger.Head, error)                      { return f.head, nil }
func (f *forged) Snapshot(_ context.Context, do func(ledger.Reader) error) error { return do(f) }

func (f *forged) Lines(_ context.Context, q ledger.LineQuery) ([]ledger.Line, error) {
	return after(f.lines, func(l ledger.Line) bool { return l.Seq > q.After })
}

func (f *forged) Events(_ context.Context, q ledger.EventQuery) ([]ledger.Event, error) {
	return after(f.events, func(e ledger.Event) bool { return e.Seq > q.After })
}

func (f *forged) Postings(_ context.Context, q ledger.PostingQuery) ([]ledger.Posted, error) {
	rows, err := after(f.postings, func(p ledger.Posted) bool { return p.Seq > q.After })
	if len(rows) == 0 {
		return nil, err
	}
	seq := rows[0].Seq // an entry's postings are never split
	return slices.DeleteFunc(slices.Clone(f.postings), func(p ledger.Posted) bool { return p.Seq != seq }), nil
}

func (f *forged) Balances(_ context.Context, q ledger.BalanceQuery) ([]ledger.Balance, error) {
	return after(f.balances, func(b ledger.Balance) bool { return b.Key.Compare(q.After) > 0 })
}

func (f *forged) Holds(_ context.Context, q ledger.HoldQuery) ([]ledger.Hold, error) {
	return after(f.holds, func(h ledger.Hold) bool { return h.ID > q.After })
}

func (f *forged) Records(_ context.Context, q ledger.RecordQuery) ([]ledger.Record, error) {
	return after(f.records, func(r ledger.Record) bool {
		return r.Kind > q.After.Kind || (r.Kind == q.After.Kind && r.ID > q.After.ID)
	})
}

// honest is a small shop's ledger: a restock, two holds, a refusal that was
// remembered, a payment, an expiry.
func honest(t *testing.T) *forged {
	t.Helper()
	ctx, m := t.Context(), memory()
	record := func(version int64, state string) []ledger.Record {
		return []ledger.Record{{Kind: "order", ID: "o1", Version: version, State: state, Owner: "u", Ref: "r", Due: 5, Body: json.RawMessage(`{"v":1}`)}}
	}
	event := func(what string) []ledger.Event {
		return []ledger.Event{{Type: what, Subject: "o1", Body: json.RawMessage(`{"v":1}`)}}
	}
	results, err := m.Apply(ctx,
		ledger.Entry{ID: "restock", Ops: []ledger.Op{move("@s", "stock", "x", 5)}},
		ledger.Entry{ID: "hold-1", Ops: []ledger.Op{reserve("h1", "stock", "sold", 2)}, Records: record(1, "held"), Events: event("held")},
		ledger.Entry{ID: "hold-2", Ops: []ledger.Op{reserve("h2", "stock", "sold", 1)}},
		ledger.Entry{ID: "refused", Remember: true, Ops: []ledger.Op{reserve("h3", "stock", "sold", 9)}},
		ledger.Entry{ID: "paid", Ops: []ledger.Op{ledger.Commit("h1"), move("@g", "revenue", "c", 99)}, Records: record(2, "paid"), Events: event("paid")},
		ledger.Entry{ID: "expired", Ops: []ledger.Op{ledger.Expire("h2")}},
		ledger.Entry{ID: "hold-4", Ops: []ledger.Op{reserve("h4", "stock", "sold", 1)}, Records: []ledger.Record{{Kind: "order", ID: "o2", Version: 1}}, Events: event("held")},
	)
	for i, r := range results {
		if err != nil || r.Refused() != (i == 3) {
			t.Fatalf("entry %d: %+v, %v", i, r, err)
		}
	}
	f := &forged{}
	for _, read := range []func() error{
		func() (err error) { f.head, err = m.Head(ctx); return err },
		func() (err error) { f.lines, err = m.Lines(ctx, ledger.LineQuery{}); return err },
		func() (err error) { f.events, err = m.Events(ctx, ledger.EventQuery{}); return err },
		func() (err error) { f.postings, err = m.Postings(ctx, ledger.PostingQuery{}); return err },
		func() (err error) { f.balances, err = m.Balances(ctx, ledger.BalanceQuery{}); return err },
		func() (err error) { f.holds, err = m.Holds(ctx, ledger.HoldQuery{}); return err },
		func() (err error) { f.records, err = m.Records(ctx, ledger.RecordQuery{}); return err },
	} {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *forged) balance(account ledger.Account) *ledger.Balance {
	return &f.balances[slices.IndexFunc(f.balances, func(b ledger.Balance) bool { return b.Account == account })]
}

// rewrite puts another entry into line seq, with its right hash.
func (f *forged) rewrite(seq int, e ledger.Entry) {
	l := &f.lines[seq-1]
	l.Body, _ = json.Marshal(e) // an Entry of plain text always encodes
	l.Hash = l.Chain(f.lines[seq-2].Hash)
}

func TestAnHonestStoreVerifies(t *testing.T) {
	f := honest(t)
	done := int64(0)
	rep, err := ledger.Verify(t.Context(), f, func(n, total int64) {
		if n < done || total != f.head.Seq {
			t.Errorf("progress: %d after %d of %d", n, done, total)
		}
		done = n
	})
	if err != nil || !rep.OK() || done != f.head.Seq {
		t.Errorf("got %+v, %v, after %d lines", rep, err, done)
	}
	want := ledger.Report{Entries: 7, Events: 3, Postings: 3, Balances: 5, Holds: 3, Records: 2}
	rep.Problems = nil
	if fmt.Sprint(rep) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", rep, want)
	}
}

// frauds are what an attacker or a bug may do to the rows, and the problems of
// which Verify has to name at least one kind, at the line where it shows.
var frauds = []struct {
	name string
	what string
	seq  int64
	edit func(f *forged)
}{
	{"a line's body is edited", "hash", 2, func(f *forged) { f.lines[1].Body = slices.Clone(f.lines[2].Body) }},
	{"a line's body is no JSON", "journal", 2, func(f *forged) { f.lines[1].Body = []byte("{") }},
	{"a line's time is edited", "hash", 2, func(f *forged) { f.lines[1].At++ }},
	{"a line is set before the one before it", "time", 3, func(f *forged) { f.lines[2].At-- }},
	{"a line's fingerprint is edited", "hash", 2, func(f *forged) { f.lines[1].Fingerprint[0]++ }},
	{"a line's hash is edited", "hash", 2, func(f *forged) { f.lines[1].Hash[0]++ }},
	{"a line's id is edited", "decision", 2, func(f *forged) { f.lines[1].ID = "other" }},
	{"a refusal is edited into a success", "decision", 4, func(f *forged) { f.lines[3].Code = ledger.OK }},
	{"a success is edited into a refusal", "decision", 2, func(f *forged) { f.lines[1].Code = ledger.Insufficient }},
	{"a line is deleted", "journal", 3, func(f *forged) { f.lines = slices.Delete(f.lines, 1, 2) }},
	{"the first line is deleted", "journal", 2, func(f *forged) { f.lines = f.lines[1:] }},
	{"a line is inserted", "decision", 8, func(f *forged) {
		l := f.lines[6]
		l.Seq++
		f.lines = append(f.lines, l)
	}},
	{"two lines change places", "hash", 2, func(f *forged) {
		f.lines[1], f.lines[2] = f.lines[2], f.lines[1]
		f.lines[1].Seq, f.lines[2].Seq = 2, 3
	}},
	{"the tail is cut off", "journal", 6, func(f *forged) { f.lines = f.lines[:6] }},
	{"the head is set back", "journal", 7, func(f *forged) { f.head.Seq-- }},
	{"the head's hash is edited", "journal", 7, func(f *forged) { f.head.Hash[0]++ }},
	{"a line is rewritten with its right hash", "hash", 8, func(f *forged) {
		f.rewrite(7, ledger.Entry{ID: "hold-4", Ops: []ledger.Op{reserve("h4", "stock", "sold", 2)}})
		f.lines = append(f.lines, ledger.Line{Seq: 8, ID: "x", Body: []byte(`{"id":"x"}`)})
	}},
	{"a line is rewritten to what the rules refuse", "decision", 7, func(f *forged) {
		f.rewrite(7, ledger.Entry{ID: "hold-4", Ops: []ledger.Op{reserve("h4", "stock", "sold", 200)}})
	}},
	{"a line is rewritten with blanks in it", "journal", 7, func(f *forged) {
		f.lines[6].Body = append([]byte(" "), f.lines[6].Body...)
		f.lines[6].Hash = f.lines[6].Chain(f.lines[5].Hash)
		f.head.Hash = f.lines[6].Hash
	}},
	{"a balance's posted is edited", "balance", 0, func(f *forged) { f.balance("revenue").Posted++ }},
	{"a balance's posted is moved to another", "balance", 0, func(f *forged) { f.balance("sold").Posted--; f.balance("stock").Posted++ }},
	{"assets come out of nothing", "conservation", 0, func(f *forged) { f.balance("revenue").Posted++ }},
	{"a balance's held is edited", "held", 0, func(f *forged) { f.balance("stock").Held-- }},
	{"a balance is overdrawn", "overdrawn", 0, func(f *forged) { f.balance("stock").Posted = -3 }},
	{"a balance is deleted", "balance", 0, func(f *forged) { f.balances = f.balances[:4] }},
	{"a balance is inserted", "balance", 0, func(f *forged) {
		f.balances = append(f.balances, ledger.Balance{Key: ledger.Key{Account: "zz", Asset: "x"}})
	}},
	{"a hold's state is edited", "hold", 0, func(f *forged) { f.holds[0].State = ledger.Voided }},
	{"a hold's deadline is edited", "hold", 0, func(f *forged) { f.holds[2].Until += 1000 }},
	{"a hold is deleted", "hold", 0, func(f *forged) { f.holds = f.holds[1:] }},
	{"a hold is inserted", "hold", 0, func(f *forged) { f.holds = append(f.holds, ledger.Hold{ID: "h9"}) }},
	{"a record's state is edited", "record", 0, func(f *forged) { f.records[0].State = "shipped" }},
	{"a record's version is edited", "record", 0, func(f *forged) { f.records[0].Version++ }},
	{"a record's owner is edited", "record", 0, func(f *forged) { f.records[0].Owner = "me" }},
	{"a record's ref is edited", "record", 0, func(f *forged) { f.records[0].Ref = "pi_2" }},
	{"a record's due is edited", "record", 0, func(f *forged) { f.records[0].Due++ }},
	{"a record's body is edited", "record", 0, func(f *forged) { f.records[0].Body = json.RawMessage(`{"v":2}`) }},
	{"a record is deleted", "record", 0, func(f *forged) { f.records = f.records[:1] }},
	{"a record is inserted", "record", 0, func(f *forged) { f.records = append(f.records, ledger.Record{Kind: "order", ID: "o3"}) }},
	{"a posting's amount is edited", "posting", 5, func(f *forged) { f.postings[1].Amount++ }},
	{"a posting's account is edited", "posting", 5, func(f *forged) { f.postings[2].To = "me" }},
	{"a posting is deleted", "posting", 5, func(f *forged) { f.postings = slices.Delete(f.postings, 1, 2) }},
	{"the last posting is deleted", "posting", 5, func(f *forged) { f.postings = f.postings[:2] }},
	{"a posting is inserted", "posting", 6, func(f *forged) { f.postings = append(f.postings, ledger.Posted{Seq: 6}) }},
	{"an event's type is edited", "event", 5, func(f *forged) { f.events[1].Type = "refunded" }},
	{"an event's body is edited", "event", 2, func(f *forged) { f.events[0].Body = json.RawMessage(`{"v":9}`) }},
	{"an event is deleted", "event", 5, func(f *forged) { f.events = slices.Delete(f.events, 1, 2) }},
	{"an event is inserted", "event", 0, func(f *forged) { f.events = append(f.events, ledger.Event{Seq: 4, Type: "t"}) }},
	{"two events change places", "event", 2, func(f *forged) {
		f.events[0], f.events[1] = f.events[1], f.events[0]
		f.events[0].Seq, f.events[1].Seq = 1, 2
	}},
	{"the count of events is edited", "journal", 7, func(f *forged) { f.head.Events++ }},
}

func TestVerifyFindsEveryKindOfTampering(t *testing.T) {
	for _, fraud := range frauds {
		f := honest(t)
		fraud.edit(f)
		rep, err := ledger.Verify(t.Context(), f, nil)
		if err != nil {
			t.Errorf("%s: %v", fraud.name, err)
		}
		if !slices.ContainsFunc(rep.Problems, func(p ledger.Problem) bool { return p.What == fraud.what && p.Seq == fraud.seq }) {
			t.Errorf("%s: got %+v, want a problem %q at line %d", fraud.name, rep.Problems, fraud.what, fraud.seq)
		}
	}
}

func TestVerifyListsABoundedNumberOfProblemsAndCountsAll(t *testing.T) {
	var rep ledger.Report
	for i := range ledger.MaxProblems + 5 {
		rep.Found(int64(i), "test", "problem %d", i)
	}
	if len(rep.Problems) != ledger.MaxProblems || rep.Count != ledger.MaxProblems+5 || rep.OK() {
		t.Errorf("got %d of %d problems listed", len(rep.Problems), rep.Count)
	}
}
