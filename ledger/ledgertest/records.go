package ledgertest

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

var records = []claim{
	{"RecordsAndEventsFollowTheirEntry", recordsFollow},
	{"AStaleVersionRefusesTheOps", staleVersion},
	{"WritesOfOneCallBuildOnOneAnother", versionsInOneCall},
	{"DocumentsComeBackAsTheyWere", documentsComeBack},
	{"AttributesAreWrittenAndCleared", attributes},
}

func (w *world) record(kind, id string) (ledger.Record, bool) {
	w.Helper()
	rows, err := w.store.Records(w.ctx, ledger.RecordQuery{Kind: kind, ID: id})
	if err != nil {
		w.Errorf("record %s %s: %v", kind, id, err)
	}
	if len(rows) != 1 {
		return ledger.Record{}, false
	}
	return rows[0], true
}

func recordsFollow(w *world) {
	w.give("stock", tee, 1)
	order := func(id string) ledger.Entry {
		return ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)},
			Records: []ledger.Record{{Kind: "order", ID: id, Version: 1, State: "held"}, {Kind: "task", ID: id, Version: 1}},
			Events:  []ledger.Event{{Type: "order.held", Subject: id}}}
	}
	res := w.okEntry(order("o1"))
	w.refusedEntry(ledger.Insufficient, order("o2"))
	if r, ok := w.record("order", "o1"); !ok || r.State != "held" {
		w.Errorf("order of an accepted entry: got %+v, %v", r, ok)
	}
	if _, ok := w.record("task", "o1"); !ok {
		w.Errorf("the task of an accepted entry is missing")
	}
	if r, ok := w.record("order", "o2"); ok {
		w.Errorf("a refused entry wrote %+v", r)
	}
	events, err := w.store.Events(w.ctx, ledger.EventQuery{})
	if err != nil || len(events) != 1 || events[0].Subject != "o1" || events[0].Entry != res.Seq || events[0].At != res.At {
		w.Errorf("got events %+v, error %v; want one of line %d", events, err, res.Seq)
	}
}

func staleVersion(w *world) {
	w.give("stock", tee, 9)
	write := func(id string, version int64) ledger.Entry {
		return ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)},
			Records: []ledger.Record{{Kind: "order", ID: "o1", Version: version}}}
	}
	w.refusedEntry(ledger.Stale, write("v2-before-v1", 2))
	w.okEntry(write("v1", 1))
	w.refusedEntry(ledger.Stale, write("v1-again", 1))
	w.refusedEntry(ledger.Stale, write("v3-before-v2", 3))
	w.okEntry(write("v2", 2))
	w.has("stock", tee, 9, 2)
	if r, _ := w.record("order", "o1"); r.Version != 2 {
		w.Errorf("got version %d, want 2", r.Version)
	}
}

func versionsInOneCall(w *world) {
	write := func(version int64) ledger.Entry {
		return ledger.Entry{ID: fmt.Sprint("v", version), Records: []ledger.Record{
			{Kind: "order", ID: "o1", Version: version, State: fmt.Sprint("s", version)}}}
	}
	codes := []ledger.Code{ledger.OK, ledger.OK, ledger.Stale, ledger.OK}
	for i, r := range w.apply(write(1), write(2), write(9), write(3)) {
		if r.Code != codes[i] {
			w.Errorf("entry %d: got %q, want %q", i, r.Code, codes[i])
		}
	}
	if r, _ := w.record("order", "o1"); r.Version != 3 || r.State != "s3" {
		w.Errorf("got %+v, want version 3", r)
	}
}

func documentsComeBack(w *world) {
	bodies := []string{`{"a":[1,2,{"b":null}],"n":12345678901234567890.000,"e":1e400}`, `"T恤 <&> \u0000 \ud83d\ude00 😀 \u2028"`,
		`null`, `false`, `0`, `""`, `[]`, `{"b":1,"a":2,"a":3}`, ``}
	for i, body := range bodies {
		id := fmt.Sprintf("d%d", i)
		w.okEntry(ledger.Entry{ID: id, Records: []ledger.Record{{Kind: "doc", ID: id, Version: 1, Body: json.RawMessage(body)}},
			Events: []ledger.Event{{Type: "doc", Subject: id, Body: json.RawMessage(body)}}})
		if r, _ := w.record("doc", id); string(r.Body) != body {
			w.Errorf("record body: got %q, want %q", r.Body, body)
		}
		events, err := w.store.Events(w.ctx, ledger.EventQuery{Subject: id})
		if err != nil || len(events) != 1 || string(events[0].Body) != body {
			w.Errorf("event body: got %+v, error %v, want %q", events, err, body)
		}
	}
}

func attributes(w *world) {
	full := ledger.Record{Kind: "order", ID: "o1", Version: 1, State: "held", Owner: "张三 <x>", Ref: "pi_3' OR 1=1 --",
		Due: at(9, 15), Body: json.RawMessage(`{"x":1}`)}
	bare := ledger.Record{Kind: "order", ID: "o1", Version: 2}
	for i, want := range []ledger.Record{full, bare} {
		w.okEntry(ledger.Entry{ID: fmt.Sprint(i), Records: []ledger.Record{want}})
		if got, _ := w.record("order", "o1"); !sameRecord(got, want) {
			w.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func sameRecord(a, b ledger.Record) bool {
	body := string(a.Body) == string(b.Body)
	a.Body, b.Body = nil, nil
	return body && a.Key() == b.Key() && a.Version == b.Version && a.State == b.State &&
		a.Owner == b.Owner && a.Ref == b.Ref && a.Due == b.Due
}
