package ledgertest

import (
	"fmt"
	"strings"

	"github.com/holdfast-pay/holdfast/ledger"
)

var entries = []claim{
	{"LinesOnOneAccountAreSummed", summedLines},
	{"WhatIsTakenAndGivenBackIsNetted", nettedLines},
	{"APartAvailableOrderHoldsNothing", partAvailable},
	{"GoodsAndMoneyMoveTogetherOrNotAtAll", goodsAndMoney},
	{"ARefusedEntryLeavesNoTrace", noTrace},
	{"OneBadEntryNeverFailsItsNeighbours", badNeighbour},
	{"EntriesOfOneCallAreDecidedInOrder", inOrder},
	{"ACallOfManyEntriesAnswersEachOfThem", manyEntries},
	{"MalformedEntriesAreRefused", malformed},
	{"ExternalAccountsHaveNoFloor", noFloor},
	{"BalancesNeverOverflow", overflow},
}

// summedLines is the bundle bug: two lines of one cart share a part, each is
// in stock alone, together they are not.
func summedLines(w *world) {
	w.give("stock", tee, 3)
	res := w.refused(ledger.Insufficient, "bundle", take("h1", tee, 2), take("h2", tee, 2))
	if res.Available != 3 {
		w.Errorf("got %d available, want 3", res.Available)
	}
	w.refused(ledger.Insufficient, "move and hold", take("h1", tee, 2), ledger.Move(post("stock", "@gift", tee, 2)))
	w.refused(ledger.Insufficient, "moves", ledger.Move(post("stock", "a", tee, 2)), ledger.Move(post("stock", "b", tee, 2)))
	w.has("stock", tee, 3, 0)
	w.ok("fits", take("h1", tee, 2), take("h2", tee, 1))
	w.has("stock", tee, 3, 3)
}

func nettedLines(w *world) {
	w.ok("drop shipping", ledger.Move(post("shelf", "sold", tee, 2)), ledger.Move(post("@supplier", "shelf", tee, 2)))
	w.has("shelf", tee, 0, 0)
	w.has("sold", tee, 2, 0)
	w.refused(ledger.Insufficient, "one short", ledger.Move(post("shelf", "sold", tee, 2)), ledger.Move(post("@supplier", "shelf", tee, 1)))
	w.give("stock", tee, 1)
	w.ok("o1", take("h1", tee, 1))
	w.ok("exchange the hold", take("h2", tee, 1), ledger.Void("h1"))
	w.holdIs("h2", ledger.Held, 0, 0)
	w.has("stock", tee, 1, 1)
}

func partAvailable(w *world) {
	w.give("stock", tee, 5)
	w.give("stock", mug, 1)
	res := w.refused(ledger.Insufficient, "o1", take("h1", tee, 2), take("h2", mug, 2), take("h3", tee, 1))
	if want := (ledger.Key{Account: "stock", Asset: mug}); res.Key != want || res.Available != 1 || res.Op != 1 {
		w.Errorf("got op %d, %v with %d available; want op 1, %v with 1", res.Op, res.Key, res.Available, want)
	}
	w.has("stock", tee, 5, 0)
	w.has("stock", mug, 1, 0)
	w.ok("the hold ids are free", take("h1", tee, 5), take("h2", mug, 1))
}

func goodsAndMoney(w *world) {
	w.give("stock", tee, 1)
	w.give("wallet", cny, 4899)
	w.ok("hold", take("h1", tee, 1))
	pay := []ledger.Op{ledger.Commit("h1"), ledger.Move(post("wallet", "revenue", cny, 4900))}
	w.refused(ledger.Insufficient, "pay", pay...)
	w.has("stock", tee, 1, 1)
	w.has("sold", tee, 0, 0)
	w.holdIs("h1", ledger.Held, 0, 0)
	w.ok("top up", ledger.Move(post("@bank", "wallet", cny, 1)))
	w.ok("pay", pay...)
	w.has("sold", tee, 1, 0)
	w.has("revenue", cny, 4900, 0)
	w.has("wallet", cny, 0, 0)
}

func noTrace(w *world) {
	w.give("stock", tee, 1)
	before := w.head()
	w.refusedEntry(ledger.Insufficient, ledger.Entry{ID: "o1",
		Ops: []ledger.Op{ledger.Move(post("@supplier", "new", mug, 1)), take("h1", tee, 1),
			ledger.Reserve("h2", post("nobody", "sold", tee, 1), 0, 0)},
		Records: []ledger.Record{{Kind: "order", ID: "o1", Version: 1}},
		Events:  []ledger.Event{{Type: "order.held", Subject: "o1"}}})
	if after := w.head(); after != before {
		w.Errorf("the journal went from %+v to %+v", before, after)
	}
	w.has("stock", tee, 1, 0)
	rows := w.rows()
	if len(rows.balances) != 2 || len(rows.holds) != 0 || len(rows.records) != 0 || len(rows.events) != 0 {
		w.Errorf("got %d balances, %d holds, %d records, %d events; want 2, 0, 0, 0",
			len(rows.balances), len(rows.holds), len(rows.records), len(rows.events))
	}
	w.ok("the ids are free", take("h1", tee, 1))
}

func badNeighbour(w *world) {
	w.give("stock", tee, 4)
	one := func(i int) ledger.Entry {
		id := fmt.Sprintf("o%d", i)
		return ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)}}
	}
	results := w.apply(
		one(0),
		ledger.Entry{ID: "too much", Ops: []ledger.Op{take("x", tee, 4)}},
		one(1),
		ledger.Entry{ID: ""},
		ledger.Entry{ID: "negative", Ops: []ledger.Op{take("y", tee, -1)}},
		one(2),
		ledger.Entry{ID: "no hold", Ops: []ledger.Op{ledger.Commit("nothing")}},
		ledger.Entry{ID: "stale", Records: []ledger.Record{{Kind: "order", ID: "o", Version: 7}}},
		ledger.Entry{ID: "broken", Reply: []byte("{")},
		one(3),
		one(4),
	)
	want := []ledger.Code{ledger.OK, ledger.Insufficient, ledger.OK, ledger.Invalid, ledger.Invalid, ledger.OK,
		ledger.HoldUnknown, ledger.Stale, ledger.Invalid, ledger.OK, ledger.Insufficient}
	for i, r := range results {
		if r.Code != want[i] {
			w.Errorf("entry %d: got %+v, want code %q", i, r, want[i])
		}
	}
	w.has("stock", tee, 4, 4)
}

func inOrder(w *world) {
	results := w.apply(
		ledger.Entry{ID: "sold out", Ops: []ledger.Op{take("h0", tee, 1)}},
		ledger.Entry{ID: "restock", Ops: []ledger.Op{ledger.Move(post("@supplier", "stock", tee, 1))}},
		ledger.Entry{ID: "hold", Ops: []ledger.Op{take("h1", tee, 1)}},
		ledger.Entry{ID: "commit", Ops: []ledger.Op{ledger.Commit("h1")}},
		ledger.Entry{ID: "return", Ops: []ledger.Op{ledger.Move(post("sold", "stock", tee, 1))}},
		ledger.Entry{ID: "again", Ops: []ledger.Op{take("h2", tee, 1)}},
	)
	seq := w.head().Seq - 5
	for i, r := range results {
		switch {
		case i == 0:
			if r.Code != ledger.Insufficient {
				w.Errorf("entry 0: got %+v, want %s", r, ledger.Insufficient)
			}
		case r.Refused() || r.Seq != seq+int64(i):
			w.Errorf("entry %d: got %+v, want line %d", i, r, seq+int64(i))
		}
	}
	w.holdIs("h1", ledger.Committed, 1, 0)
	w.has("stock", tee, 1, 1)
}

// manyEntries is more than any store puts into one transaction.
func manyEntries(w *world) {
	const n, units = 1100, 1000
	w.give("stock", tee, units)
	all := make([]ledger.Entry, n)
	for i := range all {
		id := fmt.Sprintf("o%d", i)
		all[i] = ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)}, Reply: fmt.Appendf(nil, "%d", i)}
	}
	for i, r := range w.apply(all...) {
		if i < units && (r.Refused() || string(r.Reply) != fmt.Sprint(i)) {
			w.Fatalf("entry %d: got %+v", i, r)
		}
		if i >= units && r.Code != ledger.Insufficient {
			w.Fatalf("entry %d: got %+v, want %s", i, r, ledger.Insufficient)
		}
	}
	w.has("stock", tee, units, units)
}

func malformed(w *world) {
	w.give("stock", tee, 5)
	before := w.head()
	good := post("stock", "sold", tee, 1)
	amount := func(n int64) ledger.Posting { p := good; p.Amount = n; return p }
	op := func(ops ...ledger.Op) ledger.Entry { return ledger.Entry{ID: "e", Ops: ops} }
	record := func(r ledger.Record) ledger.Entry { return ledger.Entry{ID: "e", Records: []ledger.Record{r}} }
	long := strings.Repeat("x", 300)
	for name, e := range map[string]ledger.Entry{
		"no id":              {},
		"long id":            {ID: long},
		"id not UTF-8":       {ID: "\xff"},
		"id with a NUL":      {ID: "a\x00b"},
		"amount 0":           op(ledger.Move(amount(0))),
		"amount -1":          op(ledger.Move(amount(-1))),
		"amount 2^53":        op(ledger.Move(amount(1 << 53))),
		"hold of 0":          op(ledger.Reserve("h", amount(0), 0, 0)),
		"commit of -1":       op(take("h", tee, 1), ledger.CommitPart("h", -1, true)),
		"to itself":          op(ledger.Move(post("stock", "stock", tee, 1))),
		"no account":         op(ledger.Move(post("", "sold", tee, 1))),
		"no asset":           op(ledger.Move(post("stock", "sold", "", 1))),
		"blank in a name":    op(ledger.Move(post("stock", "so ld", tee, 1))),
		"accent in a name":   op(ledger.Move(post("stock", "sold\u00e9", tee, 1))),
		"no hold":            op(ledger.Commit("")),
		"long hold":          op(ledger.Reserve(long, good, 0, 0)),
		"negative deadline":  op(ledger.Reserve("h", good, -1, 0)),
		"unknown kind":       op(ledger.Op{Kind: "steal", Hold: "h"}),
		"too many ops":       op(make([]ledger.Op, ledger.MaxOps+1)...),
		"version 0":          record(ledger.Record{Kind: "order", ID: "o"}),
		"no kind":            record(ledger.Record{ID: "o", Version: 1}),
		"owner not UTF-8":    record(ledger.Record{Kind: "order", ID: "o", Version: 1, Owner: "\xff"}),
		"long ref":           record(ledger.Record{Kind: "order", ID: "o", Version: 1, Ref: long}),
		"body not JSON":      record(ledger.Record{Kind: "order", ID: "o", Version: 1, Body: []byte("{")}),
		"body not UTF-8":     record(ledger.Record{Kind: "order", ID: "o", Version: 1, Body: []byte("\"\xff\"")}),
		"numbered event":     {ID: "e", Events: []ledger.Event{{Seq: 1, Type: "t", Subject: "s"}}},
		"event of nothing":   {ID: "e", Events: []ledger.Event{{Type: "t"}}},
		"record twice in it": {ID: "e", Records: []ledger.Record{{Kind: "o", ID: "o", Version: 1}, {Kind: "o", ID: "o", Version: 1}}},
	} {
		e.Remember = false
		if res := w.apply(e)[0]; res.Code != ledger.Invalid || res.Detail == "" {
			w.Errorf("%s: got %+v, want %s with a detail", name, res, ledger.Invalid)
		}
	}
	if after := w.head(); after != before {
		w.Errorf("the journal went from %+v to %+v", before, after)
	}
	w.ok("e", ledger.Move(good))
}

func noFloor(w *world) {
	w.ok("in", ledger.Move(post("@supplier", "stock", tee, 5)))
	w.has("@supplier", tee, -5, 0)
	w.ok("hold outside", ledger.Reserve("h", post("@supplier", "stock", tee, 7), 0, 0))
	w.has("@supplier", tee, -5, 7)
	w.ok("arrived", ledger.Commit("h"))
	w.has("@supplier", tee, -12, 0)
	w.refused(ledger.Insufficient, "inside", ledger.Move(post("supplier", "stock", tee, 1)))
}

func overflow(w *world) {
	ops := make([]ledger.Op, ledger.MaxOps)
	for i := range ops {
		ops[i] = ledger.Move(post("@mint", "vault", cny, ledger.MaxAmount))
	}
	const full = ledger.MaxOps * ledger.MaxAmount
	w.ok("fill", ops...)
	w.has("vault", cny, full, 0)
	before := w.head()
	w.refused(ledger.Overflow, "spill", ops...)
	if after := w.head(); after != before {
		w.Errorf("the journal went from %+v to %+v", before, after)
	}
	w.ok("the largest amount", ledger.Move(post("vault", "till", cny, ledger.MaxAmount)))
	w.has("vault", cny, full-ledger.MaxAmount, 0)
	w.has("@mint", cny, -full, 0)
}
