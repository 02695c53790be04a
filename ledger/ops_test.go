package ledger

import (
	"strings"
	"testing"
)

func TestFieldsThatMeanNothingAndBodiesWithoutEndAreRefused(t *testing.T) {
	move := Move(Posting{From: "@a", To: "b", Asset: "x", Amount: 1})
	for name, change := range map[string]func(*Entry){
		"move with a hold":  func(e *Entry) { e.Ops[0].Hold = "h" },
		"move until":        func(e *Entry) { e.Ops[0].Until = 1 },
		"reserve and keep":  func(e *Entry) { e.Ops[0] = Reserve("h", Posting{"b", "c", "x", 1}, 1, 1); e.Ops[0].Keep = true },
		"commit from":       func(e *Entry) { e.Ops[0] = Commit("h"); e.Ops[0].From = "b" },
		"void with amount":  func(e *Entry) { e.Ops[0] = Void("h"); e.Ops[0].Amount = 1 },
		"expire and keep":   func(e *Entry) { e.Ops[0] = Expire("h"); e.Ops[0].Keep = true },
		"extend with a cap": func(e *Entry) { e.Ops[0] = Extend("h", 1); e.Ops[0].Cap = 1 },
		"reply":             func(e *Entry) { e.Reply = []byte(`"` + strings.Repeat("x", MaxBody) + `"`) },
		"record": func(e *Entry) {
			e.Records = []Record{{Kind: "k", ID: "i", Version: 1, Body: []byte(`"` + strings.Repeat("x", MaxBody) + `"`)}}
		},
		"event": func(e *Entry) {
			e.Events = []Event{{Type: "t", Subject: "s", Body: []byte(`"` + strings.Repeat("x", MaxBody) + `"`)}}
		},
	} {
		e := Entry{ID: "e", Ops: []Op{move}}
		change(&e)
		if res := NewState(Head{}).Decide(e, 1); res.Code != Invalid {
			t.Errorf("%s: got %q, want %q", name, res.Code, Invalid)
		}
	}
}
