package ledger_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/ledger"
)

func move(from, to ledger.Account, asset ledger.Asset, amount int64) ledger.Op {
	return ledger.Move(ledger.Posting{From: from, To: to, Asset: asset, Amount: amount})
}

func reserve(hold string, from, to ledger.Account, amount int64) ledger.Op {
	return ledger.Reserve(hold, ledger.Posting{From: from, To: to, Asset: "x", Amount: amount}, 10, 0)
}

func TestNeedsNameEveryRowOnceInLockOrder(t *testing.T) {
	n := ledger.NeedsOf([]ledger.Entry{
		{ID: "e2", Ops: []ledger.Op{move("b", "a", "y", 1), reserve("h2", "b", "c", 1), ledger.Commit("h9")},
			Records: []ledger.Record{{Kind: "order", ID: "2"}, {Kind: "item", ID: "3"}}},
		{ID: "e1", Ops: []ledger.Op{reserve("h1", "b", "c", 1), ledger.Void("h2")}, Records: []ledger.Record{{Kind: "order", ID: "2"}}},
		{ID: "e2"},
	})
	n.AddHold(ledger.Hold{ID: "h9", From: "b", To: "@z", Asset: "x"}, ledger.Hold{ID: "h2", From: "b", To: "c", Asset: "x"})
	want := ledger.Needs{
		IDs: []string{"e1", "e2"}, Holds: []string{"h1", "h2", "h9"},
		Records: []ledger.RecordKey{{Kind: "item", ID: "3"}, {Kind: "order", ID: "2"}},
		Keys: []ledger.Key{{Account: "@z", Asset: "x"}, {Account: "a", Asset: "y"}, {Account: "b", Asset: "x"},
			{Account: "b", Asset: "y"}, {Account: "c", Asset: "x"}},
	}
	if !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", n, want)
	}
}

// load makes a State as an SQL store does: from the rows that entries need.
func load(t *rapid.T, m *ledger.Memory, entries []ledger.Entry) *ledger.State {
	ctx := t.Context()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	head, err := m.Head(ctx)
	must(err)
	s, n := ledger.NewState(head), ledger.NeedsOf(entries)
	for _, id := range n.Holds {
		rows, err := m.Holds(ctx, ledger.HoldQuery{ID: id})
		must(err)
		n.AddHold(rows...)
		for _, h := range rows {
			s.PutHold(h)
		}
	}
	for _, id := range n.IDs {
		rows, err := m.Lines(ctx, ledger.LineQuery{ID: id})
		must(err)
		for _, l := range rows {
			must(s.PutLine(l))
		}
	}
	for _, k := range n.Keys {
		rows, err := m.Balances(ctx, ledger.BalanceQuery{Account: k.Account, Asset: k.Asset})
		must(err)
		for _, b := range rows {
			s.PutBalance(b)
		}
	}
	for _, k := range n.Records {
		rows, err := m.Records(ctx, ledger.RecordQuery{Kind: k.Kind, ID: k.ID})
		must(err)
		for _, r := range rows {
			s.PutRecord(r.Key(), r.Version)
		}
	}
	return s
}

func TestAStateWithOnlyTheNeededRowsDecidesLikeOneWithAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(0)
		m := ledger.NewMemory(func() time.Time { return time.UnixMilli(now) })
		for ; now < 12; now++ {
			call := rapid.SliceOfN(rapid.Custom(drawEntry), 1, 4).Draw(t, "call")
			s := load(t, m, call)
			var got []ledger.Result
			for _, e := range call {
				got = append(got, s.Decide(e, now))
			}
			want, err := m.Apply(t.Context(), call...)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v:\n got %+v\nwant %+v, %v", call, got, want, err)
			}
			if head, _ := m.Head(t.Context()); s.Changes().Head != head {
				t.Fatalf("the journals differ after %+v", call)
			}
		}
	})
}

func TestChangesNameEachRowOnceWithItsFormBefore(t *testing.T) {
	s := ledger.NewState(ledger.Head{Seq: 7, Events: 3, At: 5})
	s.PutBalance(ledger.Balance{Key: ledger.Key{Account: "a", Asset: "x"}, Posted: 9, Version: 4})
	s.PutRecord(ledger.RecordKey{Kind: "order", ID: "o"}, 1)
	s.PutHold(ledger.Hold{ID: "h0", From: "a", To: "b", Asset: "x", Amount: 0, State: ledger.Held})
	for i, e := range []ledger.Entry{
		{ID: "1", Ops: []ledger.Op{reserve("h1", "a", "b", 2)}, Records: []ledger.Record{{Kind: "order", ID: "o", Version: 2}}},
		{ID: "2", Ops: []ledger.Op{reserve("h2", "a", "b", 99)}},
		{ID: "3", Ops: []ledger.Op{ledger.Commit("h1"), ledger.Extend("h0", 9)}, Records: []ledger.Record{{Kind: "order", ID: "o", Version: 3}},
			Events: []ledger.Event{{Type: "t", Subject: "s"}}},
	} {
		if res := s.Decide(e, 6); res.Refused() != (i == 1) {
			t.Fatalf("%s: %+v", e.ID, res)
		}
	}
	ch := s.Changes()
	key := ledger.Key{Account: "a", Asset: "x"}
	if len(ch.Balances) != 2 || ch.Balances[0].Before != (ledger.Balance{Key: key, Posted: 9, Version: 4}) ||
		ch.Balances[0].After != (ledger.Balance{Key: key, Posted: 7, Version: 6}) || ch.Balances[1].Before.Version != 0 {
		t.Errorf("balances: got %+v", ch.Balances)
	}
	if len(ch.Holds) != 2 || ch.Holds[0].Before.State != ledger.Held || ch.Holds[1].Before.ID != "" || ch.Holds[1].After.State != ledger.Committed {
		t.Errorf("holds: got %+v", ch.Holds)
	}
	if len(ch.Records) != 1 || ch.Records[0].Before != 1 || ch.Records[0].After.Version != 3 {
		t.Errorf("records: got %+v", ch.Records)
	}
	if len(ch.Lines) != 2 || len(ch.Postings) != 1 || len(ch.Events) != 1 || ch.Events[0].Seq != 4 || ch.Events[0].Entry != 9 {
		t.Errorf("got %d lines, %d postings, events %+v", len(ch.Lines), len(ch.Postings), ch.Events)
	}
	if ch.Head != (ledger.Head{Seq: 9, Events: 4, At: 6, Hash: ch.Lines[1].Hash}) {
		t.Errorf("head: got %+v", ch.Head)
	}
	if again := s.Changes(); !reflect.DeepEqual(again, ledger.Changes{Head: ch.Head}) {
		t.Errorf("a second time: got %+v, want only the head", again)
	}
	s.Decide(ledger.Entry{ID: "4", Ops: []ledger.Op{ledger.Void("h0"), move("a", "b", "x", 1)}}, 6)
	next := s.Changes()
	if len(next.Balances) != 2 || next.Balances[0].Before != ch.Balances[0].After {
		t.Errorf("after another entry: got %+v, want it to go on from %+v", next.Balances, ch.Balances[0].After)
	}
	if len(next.Holds) != 1 || next.Holds[0].Before.State != ledger.Held || next.Holds[0].After.State != ledger.Voided {
		t.Errorf("after another entry: holds: got %+v", next.Holds)
	}
}

func TestTimeOfADecisionIsNeverBeforeTheLastLine(t *testing.T) {
	s := ledger.NewState(ledger.Head{Seq: 1, At: 100})
	if res := s.Decide(ledger.Entry{ID: "e"}, 50); res.At != 100 {
		t.Errorf("got %d, want 100", res.At)
	}
}

func TestABalanceThatWouldLeaveInt64IsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		from, to ledger.Balance
		op       ledger.Op
	}{
		"too much posted":       {to: ledger.Balance{Posted: math.MaxInt64 - 4}, op: move("@a", "b", "x", 5)},
		"too little posted":     {from: ledger.Balance{Posted: math.MinInt64 + 4}, op: move("@a", "b", "x", 5)},
		"too much held":         {from: ledger.Balance{Held: math.MaxInt64 - 4, Posted: math.MaxInt64}, op: reserve("h", "@a", "b", 5)},
		"too little available":  {from: ledger.Balance{Posted: math.MinInt64 + 6, Held: 4}, op: reserve("h", "@a", "b", 5)},
		"too little for a move": {from: ledger.Balance{Posted: math.MinInt64 + 6, Held: 4}, op: move("@a", "b", "x", 5)},
	} {
		s := ledger.NewState(ledger.Head{})
		c.from.Key, c.to.Key = ledger.Key{Account: "@a", Asset: "x"}, ledger.Key{Account: "b", Asset: "x"}
		s.PutBalance(c.from)
		s.PutBalance(c.to)
		if res := s.Decide(ledger.Entry{ID: "e", Ops: []ledger.Op{c.op}}, 0); res.Code != ledger.Overflow {
			t.Errorf("%s: got %+v, want %s", name, res, ledger.Overflow)
		}
		if ch := s.Changes(); len(ch.Balances)+len(ch.Lines)+len(ch.Holds) > 0 {
			t.Errorf("%s: left %+v", name, ch)
		}
	}
}

func TestKeysAreComparedAsBytes(t *testing.T) {
	keys := []ledger.Key{{Account: "b", Asset: "a"}, {Account: "a", Asset: "b"}, {Account: "B", Asset: "z"}, {Account: "a", Asset: "B"}, {Account: "@", Asset: "x"}}
	slices.SortFunc(keys, ledger.Key.Compare)
	want := []ledger.Key{{Account: "@", Asset: "x"}, {Account: "B", Asset: "z"}, {Account: "a", Asset: "B"}, {Account: "a", Asset: "b"}, {Account: "b", Asset: "a"}}
	if !slices.Equal(keys, want) {
		t.Errorf("got %v, want %v", keys, want)
	}
}
