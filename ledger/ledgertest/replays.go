package ledgertest

import (
	"github.com/holdfast-pay/holdfast/ledger"
)

var replays = []claim{
	{"SameEntryGivesTheStoredAnswer", sameEntry},
	{"WithoutAReplyTheFirstRecordIsTheReply", recordAsReply},
	{"SameIDWithAnotherBodyIsRefused", anotherBody},
	{"AFingerprintSaysWhatIsTheSame", fingerprints},
	{"ARememberedRefusalStaysRefused", rememberedRefusal},
	{"AForgottenRefusalMaySucceedLater", forgottenRefusal},
	{"AReplayIsAnsweredWhateverIsLeft", replayAfterSoldOut},
	{"DoublesInOneCallHappenOnce", doublesInOneCall},
	{"IDsAreComparedAsBytes", idsAreBytes},
}

func sameEntry(w *world) {
	w.give("stock", tee, 5)
	e := ledger.Entry{ID: "o1", Ops: []ledger.Op{take("h1", tee, 2)},
		Records: []ledger.Record{{Kind: "order", ID: "o1", Version: 1, State: "held"}},
		Events:  []ledger.Event{{Type: "order.held", Subject: "o1"}},
		Reply:   []byte(`{ "order": "o1", "title": "T恤 <M>", "n": 1.50 }`)}
	first := w.okEntry(e)
	w.clock.set(at(9, 30))
	again := w.okEntry(e)
	if !again.Replayed {
		w.Errorf("the second answer does not say that it is a replay")
	}
	if again.Seq != first.Seq || again.At != first.At || again.At != morning.UnixMilli() {
		w.Errorf("got line %d at %d, want line %d at %d", again.Seq, again.At, first.Seq, first.At)
	}
	if len(first.Reply) == 0 || string(again.Reply) != string(first.Reply) {
		w.Errorf("got reply %s, want the bytes of the first answer, %s", again.Reply, first.Reply)
	}
	w.has("stock", tee, 5, 2)
	if h := w.head(); h.Seq != first.Seq || h.Events != 1 {
		w.Errorf("the replay made the journal %d lines and %d events long", h.Seq, h.Events)
	}
}

func recordAsReply(w *world) {
	e := ledger.Entry{ID: "o1", Remember: true, Records: []ledger.Record{
		{Kind: "order", ID: "o1", Version: 1, Body: []byte(`{"n":1}`)},
		{Kind: "task", ID: "o1", Version: 1, Body: []byte(`{"n":2}`)},
	}}
	for range 2 {
		if got := w.okEntry(e); string(got.Reply) != `{"n":1}` {
			w.Errorf("got reply %s, want the first record's body", got.Reply)
		}
	}
	e.ID, e.Ops = "o2", []ledger.Op{ledger.Void("none")}
	if got := w.refusedEntry(ledger.Stale, e); len(got.Reply) > 0 {
		w.Errorf("a refusal replies %s, though its record was not written", got.Reply)
	}
}

func anotherBody(w *world) {
	w.give("stock", tee, 5)
	w.ok("o1", take("h1", tee, 1))
	before := w.head()
	for _, e := range []ledger.Entry{
		{ID: "o1", Ops: []ledger.Op{take("h1", tee, 2)}},
		{ID: "o1", Ops: []ledger.Op{take("h2", tee, 1)}},
		{ID: "o1", Ops: []ledger.Op{take("h1", tee, 1)}, Remember: true},
		{ID: "o1", Ops: []ledger.Op{take("h1", tee, 1)}, Events: []ledger.Event{{Type: "t", Subject: "s"}}},
		{ID: "o1"},
	} {
		w.refusedEntry(ledger.IDReused, e)
	}
	if after := w.head(); after != before {
		w.Errorf("the journal went from %+v to %+v", before, after)
	}
	w.has("stock", tee, 5, 1)
}

func fingerprints(w *world) {
	w.give("stock", tee, 5)
	body := func(hold, request string) ledger.Entry {
		return ledger.Entry{ID: "o1", Fingerprint: []byte(request), Ops: []ledger.Op{take(hold, tee, 1)}}
	}
	first := w.okEntry(body("h1", "POST one tee"))
	// The retry was given a fresh hold id, but is the same request.
	if again := w.okEntry(body("h2", "POST one tee")); !again.Replayed || again.Seq != first.Seq {
		w.Errorf("got %+v, want the stored result of line %d", again, first.Seq)
	}
	w.refusedEntry(ledger.IDReused, body("h1", "POST two tees"))
	w.refusedEntry(ledger.IDReused, ledger.Entry{ID: "o1", Ops: []ledger.Op{take("h1", tee, 1)}})
	w.has("stock", tee, 5, 1)
}

func rememberedRefusal(w *world) {
	w.give("seller", cny, 10)
	e := ledger.Entry{ID: "payout", Remember: true, Reply: []byte(`"p1"`),
		Ops:     []ledger.Op{ledger.Reserve("p1", post("seller", "@bank", cny, 11), 0, 0)},
		Records: []ledger.Record{{Kind: "payout", ID: "p1", Version: 1}},
		Events:  []ledger.Event{{Type: "payout.created", Subject: "p1"}}}
	first := w.refusedEntry(ledger.Insufficient, e)
	if first.Seq == 0 {
		w.Errorf("a remembered refusal has no line")
	}
	w.ok("sale", ledger.Move(post("@stripe", "seller", cny, 100)))
	again := w.refusedEntry(ledger.Insufficient, e)
	if !again.Replayed || again.Seq != first.Seq || again.At != first.At || again.Available != 10 ||
		again.Key != first.Key || string(again.Reply) != `"p1"` {
		w.Errorf("got %+v, want the stored refusal %+v", again, first)
	}
	other := e
	other.Ops = []ledger.Op{ledger.Reserve("p1", post("seller", "@bank", cny, 5), 0, 0)}
	w.refusedEntry(ledger.IDReused, other)
	w.has("seller", cny, 110, 0)
	if h := w.head(); h.Events != 0 {
		w.Errorf("a refused entry wrote %d events", h.Events)
	}
	w.ok("p1 under another id", ledger.Reserve("p1", post("seller", "@bank", cny, 11), 0, 0))
}

func forgottenRefusal(w *world) {
	op := take("h1", tee, 1)
	if res := w.refused(ledger.Insufficient, "o1", op); res.Seq != 0 {
		w.Errorf("a forgotten refusal has line %d", res.Seq)
	}
	w.give("stock", tee, 1)
	if res := w.ok("o1", op); res.Replayed {
		w.Errorf("got a replay, want a new decision")
	}
	w.has("stock", tee, 1, 1)
}

// replayAfterSoldOut asks again for the last unit by the one who has it: a
// store that looks at the stock before it looks at the id answers "sold out".
func replayAfterSoldOut(w *world) {
	w.give("stock", tee, 1)
	w.ok("o1", take("h1", tee, 1))
	if res := w.ok("o1", take("h1", tee, 1)); !res.Replayed {
		w.Errorf("got %+v, want a replay", res)
	}
	w.ok("void", ledger.Void("h1"))
	if res := w.ok("o1", take("h1", tee, 1)); !res.Replayed {
		w.Errorf("after the hold's end: got %+v, want a replay", res)
	}
	w.has("stock", tee, 1, 0)
}

func doublesInOneCall(w *world) {
	w.give("stock", tee, 5)
	e := ledger.Entry{ID: "o1", Ops: []ledger.Op{take("h1", tee, 1)}}
	other := ledger.Entry{ID: "o1", Ops: []ledger.Op{take("h9", tee, 1)}}
	got := w.apply(e, other, e)
	if got[0].Refused() || got[0].Replayed {
		w.Errorf("first: got %+v, want accepted", got[0])
	}
	if got[1].Code != ledger.IDReused {
		w.Errorf("second: got %+v, want %s", got[1], ledger.IDReused)
	}
	if got[2].Refused() || !got[2].Replayed || got[2].Seq != got[0].Seq {
		w.Errorf("third: got %+v, want a replay of line %d", got[2], got[0].Seq)
	}
	w.has("stock", tee, 5, 1)
}

// idsAreBytes uses ids that some databases take for one another.
func idsAreBytes(w *world) {
	w.give("stock", tee, 100)
	ids := []string{"key", "KEY", "key ", " key", "k\u00e9y", "ke\u0301y", "kéy ", "钥匙"}
	for i, id := range ids {
		w.ok(id, ledger.Move(post("stock", "sold", tee, 1)))
		w.has("sold", tee, int64(i)+1, 0)
	}
	for i, hold := range []string{"h", "H"} {
		w.ok("hold-"+hold, take(hold, tee, 1))
		w.has("stock", tee, int64(100-len(ids)), int64(i)+1)
	}
	w.ok("upper", ledger.Move(post("@supplier", "STOCK", tee, 1)), ledger.Move(post("@supplier", "stock", "SKU:TEE-M", 1)))
	w.has("STOCK", tee, 1, 0)
	w.has("stock", "SKU:TEE-M", 1, 0)
	w.has("stock", tee, int64(100-len(ids)), 2)
	for _, kind := range []string{"order", "Order"} {
		w.okEntry(ledger.Entry{ID: "record-" + kind, Records: []ledger.Record{{Kind: kind, ID: "o1", Version: 1}}})
	}
}
