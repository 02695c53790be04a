package holdfast

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Each lie is written as the next version of a true document, and taken back.
func TestVerifyFindsWalletsThatDoNotAgreeWithTheLedger(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100, Terms{Currency: "CNY", Ceiling: 200})
	b.fund("bob", 0)
	b.wants(b.give("ann", "bob", 10), "")
	hold, err := b.Hold(ctx, Key{}, HoldInput{TransferInput: TransferInput{From: "ann", To: "bob", Currency: "CNY", Amount: 5}})
	if err != nil {
		t.Fatal(err)
	}
	paid := b.sent("ann", 20)
	b.run()
	waits := b.sent("ann", 7)
	for name, lie := range map[string]struct {
		kind, id, old, new, where string
	}{
		"a payout that did not leave": {flow.KindPayout, waits.ID, `"state":"held"`, `"state":"paid"`, "payout"},
		"another amount":              {flow.KindPayout, paid.ID, `"amount":20`, `"amount":21`, "payout"},
		"returned":                    {flow.KindPayout, paid.ID, `"state":"paid"`, `"state":"returned"`, "balance"},
		"nobody asks":                 {flow.KindTask, waits.ID, `"due":"2026-`, `"due":"1970-01-01T00:00:00Z","x":"`, "payout"},
		"a hold that is over":         {flow.KindHold, hold.Value.ID, `"state":"held"`, `"state":"voided"`, "hold"},
		"money that did not move":     {flow.KindHold, hold.Value.ID, `"committed":0`, `"committed":5`, "balance"},
		"a floor":                     {flow.KindAccount, "bob", `"frozen":false`, `"frozen":false,"limits":[{"currency":"CNY","floor":3}]`, "balance"},
		"another ceiling":             {flow.KindAccount, "ann", `"ceiling":200`, `"ceiling":201`, "balance"},
	} {
		b.lie(name, lie.kind, lie.id, lie.old, lie.new, lie.where)
	}
}

// lie writes new for old in a document, asserts that Verify finds something of
// the kind where, and takes it back.
func (b *payBench) lie(name, kind, id, old, new, where string) {
	b.t.Helper()
	r, err := b.record(ctx, kind, id)
	if err != nil {
		b.t.Fatal(err)
	}
	truth := string(r.Body)
	if !strings.Contains(truth, old) {
		b.t.Fatalf("%s: %s is not in %s", name, old, truth)
	}
	b.rewrite(r, strings.Replace(truth, old, new, 1))
	rep, err := b.Verify(ctx, nil)
	found := false
	for _, p := range rep.Problems {
		found = found || p.What == where
	}
	if err != nil || !found {
		b.t.Errorf("%s: got %+v %v, want a problem with a %s", name, rep.Problems, err, where)
	}
	r.Version++
	b.rewrite(r, truth)
}

var versionOf = regexp.MustCompile(`"version":\d+`)

// rewrite writes the next version of a record, with attributes that agree with
// its document.
func (b *payBench) rewrite(r ledger.Record, body string) {
	b.t.Helper()
	r.Version++
	r.Body = []byte(versionOf.ReplaceAllString(body, fmt.Sprintf(`"version":%d`, r.Version)))
	if r.Kind == flow.KindPayout || r.Kind == flow.KindHold {
		var doc struct{ State string }
		if err := flow.Decode(r, &doc); err != nil {
			b.t.Fatal(err)
		}
		r.State = doc.State
	}
	id, err := newID()
	if err != nil {
		b.t.Fatal(err)
	}
	if res, err := b.apply(ctx, ledger.Entry{ID: id, Records: []ledger.Record{r}}); err != nil || res.Refused() {
		b.t.Fatalf("%+v %v", res, err)
	}
}
