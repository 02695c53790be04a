package ledger_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/ledger"
)

// memory is a store whose time stands at 1000.
func memory() *ledger.Memory {
	return ledger.NewMemory(func() time.Time { return time.UnixMilli(1000) })
}

func lines(t *testing.T, m *ledger.Memory, entries ...ledger.Entry) []ledger.Line {
	t.Helper()
	if _, err := m.Apply(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	rows, err := m.Lines(t.Context(), ledger.LineQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The journal is read for as long as a shop lives: a change of this test's
// texts breaks every journal that was written before.
func TestTheEncodingOfALineIsFixed(t *testing.T) {
	all := lines(t, memory(),
		ledger.Entry{ID: "o1 <&> é", Fingerprint: []byte("f"), Ops: []ledger.Op{
			ledger.Move(ledger.Posting{From: "@s", To: "stock", Asset: "x", Amount: 5}),
			ledger.Reserve("h1", ledger.Posting{From: "stock", To: "sold", Asset: "x", Amount: 2}, 9, 99),
			ledger.CommitPart("h1", 1, true), ledger.Extend("h1", 10)},
			Records: []ledger.Record{{Kind: "order", ID: "o1", Version: 1, State: "held", Owner: "u", Ref: "r", Due: 9, Body: json.RawMessage(`{ "b": 1.0, "a": "<" }`)}},
			Events:  []ledger.Event{{Type: "t", Subject: "o1", Body: json.RawMessage(`[ ]`)}},
			Reply:   json.RawMessage(`{ }`)},
		ledger.Entry{ID: "o2", Remember: true, Ops: []ledger.Op{ledger.Void("h9")}},
		ledger.Entry{ID: "o3", Remember: true, Ops: []ledger.Op{ledger.Move(ledger.Posting{From: "a", To: "b", Asset: "x", Amount: 1})}},
		ledger.Entry{ID: "o4", Ops: []ledger.Op{ledger.Void("h9")}},
	)
	want := []string{
		`{"id":"o1 <&> é","fingerprint":"Zg==","ops":[{"op":"move","from":"@s","to":"stock","asset":"x","amount":5},{"op":"reserve","hold":"h1","from":"stock","to":"sold","asset":"x","amount":2,"until":9,"cap":99},{"op":"commit","hold":"h1","amount":1,"keep":true},{"op":"extend","hold":"h1","until":10}],"records":[{"kind":"order","id":"o1","version":1,"state":"held","owner":"u","ref":"r","due":9,"body":{"b":1.0,"a":"<"}}],"events":[{"type":"t","subject":"o1","body":[]}],"reply":{}}`,
		`{"id":"o2","remember":true,"ops":[{"op":"void","hold":"h9"}],"refusal":{"code":"hold_unknown"}}`,
		`{"id":"o3","remember":true,"ops":[{"op":"move","from":"a","to":"b","asset":"x","amount":1}],"refusal":{"code":"insufficient","key":{"account":"a","asset":"x"}}}`,
	}
	if len(all) != len(want) {
		t.Fatalf("got %d lines, want %d", len(all), len(want))
	}
	for i, l := range all {
		if string(l.Body) != want[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, l.Body, want[i])
		}
	}
	const hash = "86335bb1"
	if got := hex.EncodeToString(all[2].Hash[:4]); got != hash {
		t.Errorf("the chain ends with %s, want %s", got, hash)
	}
}

func TestALineOpensToTheEntryAndItsResult(t *testing.T) {
	e := ledger.Entry{ID: "payout", Remember: true, Reply: json.RawMessage(`{"a": 1}`),
		Ops: []ledger.Op{move("@out", "b", "x", 1), move("b", "a", "x", 3)}}
	m := memory()
	first, _ := m.Apply(t.Context(), e)
	got, res, err := lines(t, m)[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	e.Reply = json.RawMessage(`{"a":1}`)
	if !reflect.DeepEqual(got, e) {
		t.Errorf("entry: got %+v, want %+v", got, e)
	}
	if !reflect.DeepEqual(res, first[0]) || res.Code != ledger.Insufficient || res.Op != 1 {
		t.Errorf("result: got %+v, want %+v", res, first[0])
	}
	if _, _, err := (ledger.Line{Seq: 3, Body: []byte("{")}).Open(); err == nil {
		t.Errorf("a line of half a body opened")
	}
}

func TestTheHashCoversEverythingInALineAndTheLineBefore(t *testing.T) {
	l := ledger.Line{Seq: 1, At: 2, ID: "e", Fingerprint: ledger.Hash{3}, Body: []byte(`{"id":"e"}`)}
	seen := map[ledger.Hash]string{l.Chain(ledger.Hash{}): "as it was"}
	for name, edit := range map[string]func(l *ledger.Line, prev *ledger.Hash){
		"seq":         func(l *ledger.Line, _ *ledger.Hash) { l.Seq++ },
		"time":        func(l *ledger.Line, _ *ledger.Hash) { l.At++ },
		"swapped":     func(l *ledger.Line, _ *ledger.Hash) { l.Seq, l.At = l.At, l.Seq },
		"fingerprint": func(l *ledger.Line, _ *ledger.Hash) { l.Fingerprint[31]++ },
		"body":        func(l *ledger.Line, _ *ledger.Hash) { l.Body = []byte(`{"id":"f"}`) },
		"previous":    func(_ *ledger.Line, prev *ledger.Hash) { prev[0]++ },
	} {
		changed, prev := l, ledger.Hash{}
		edit(&changed, &prev)
		h := changed.Chain(prev)
		if seen[h] != "" {
			t.Errorf("%s: same hash as %s", name, seen[h])
		}
		seen[h] = name
	}
}

// Whatever a caller writes into an entry is either refused as invalid, or the
// store that took it verifies.
func TestAnyTextIsRefusedOrVerifies(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\xff", "a\x00", "<&>", "\u2028", "\ufffd", "é", "a b"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 6), func(b []byte) string { return string(b) }))
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.IntRange(0, 7).Draw(t, "odd field") // the others are in order
		field := func(i int) string {
			if i == odd {
				return text.Draw(t, "text")
			}
			return "plain"
		}
		document := func(i int) json.RawMessage { return json.RawMessage(`"` + field(i) + `"`) }
		e := ledger.Entry{ID: field(0), Fingerprint: []byte(field(1)), Reply: document(2),
			Records: []ledger.Record{{Kind: "order", ID: "o1", Version: 1, State: field(3), Owner: field(4), Ref: field(5), Body: document(6)}},
			Events:  []ledger.Event{{Type: "t", Subject: "s", Body: document(7)}}}
		m := memory()
		first, _ := m.Apply(t.Context(), e) // a Memory never fails
		again, _ := m.Apply(t.Context(), e)
		if first[0].Code != ledger.OK && first[0].Code != ledger.Invalid {
			t.Fatalf("%+v: got %+v, want taken or %s", e, first[0], ledger.Invalid)
		}
		if !first[0].Refused() {
			taken++
			if !again[0].Replayed || string(again[0].Reply) != string(first[0].Reply) {
				t.Fatalf("%+v: got %+v, then %+v", e, first[0], again[0])
			}
		}
		rep, err := ledger.Verify(t.Context(), m, nil)
		if err != nil || !rep.OK() {
			t.Fatalf("%+v: %+v, %v", e, rep.Problems, err)
		}
		l, _ := m.Lines(t.Context(), ledger.LineQuery{})
		if len(l) > 0 && !utf8.Valid(l[0].Body) {
			t.Fatalf("%+v: line is not UTF-8: %q", e, l[0].Body)
		}
	})
	if taken == 0 {
		t.Error("no entry was taken: the test has shown nothing")
	}
}

// A reply is the same bytes at first, when it is made of what was given, and on
// replay, when it comes out of the journal, whatever blanks stand in it.
func TestAReplyHasTheSameBytesOnReplay(t *testing.T) {
	token := rapid.SampledFrom([]string{`"a b"`, `"\\"`, `"\" "`, `"\""`, `"\\\" x"`, `" "`, `{"k":"v w"}`, `{"k" :"v"}`, `[ 1,2 ]`, `[]`, `7`, `"é<&>"`, "\"\u2028\""})
	blank := rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t "})
	rapid.Check(t, func(t *rapid.T) {
		reply := blank.Draw(t, "before") + "[" + token.Draw(t, "first")
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			reply += blank.Draw(t, "blank") + "," + token.Draw(t, "token")
		}
		reply += "]" + blank.Draw(t, "after")
		m := memory()
		first, err := m.Apply(context.Background(), ledger.Entry{ID: "e", Reply: json.RawMessage(reply)})
		if err != nil || first[0].Refused() {
			t.Fatalf("got %+v, %v", first, err)
		}
		rows, err := m.Lines(context.Background(), ledger.LineQuery{})
		if err != nil || len(rows) != 1 {
			t.Fatalf("got %d lines, %v", len(rows), err)
		}
		_, later, err := rows[0].Open()
		if err != nil || string(first[0].Reply) != string(later.Reply) {
			t.Errorf("reply %q: at first %q, then %q, %v", reply, first[0].Reply, later.Reply, err)
		}
	})
}
