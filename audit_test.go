package holdfast

import "testing"

func TestWhatPeopleChangeIsInTheAuditLogWithTheReason(t *testing.T) {
	b := newBench(t)
	anna := By(ctx, Actor{ID: "staff/anna", Name: "Anna"})
	key := Key{Scope: "s", Value: "adjust", Print: []byte("body")}
	for range 2 { // a repeat changes nothing, and so is not logged
		if _, err := b.Adjust(anna, key, Adjustment{SKU: "tee", Quantity: -1, Reason: "torn"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Adjust(anna, Key{}, Adjustment{SKU: "tee", Quantity: -100, Reason: "too many"}); code(err) != CodeStockInsufficient {
		t.Fatal(err)
	}
	_, k, err := b.CreateKey(anna, Key{}, "shop", []string{ScopeRead}, 0)
	if err != nil {
		t.Fatal(err)
	}
	order := b.place("tee", 1)
	if _, err := b.Cancel(By(ctx, Actor{ID: "key/1", Name: "shop", Reason: "asked by phone"}), Key{}, order.ID); err != nil {
		t.Fatal(err)
	}
	log, err := b.Audit(ctx, AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Audited{
		{By: "key/1", Name: "shop", Did: "order.cancelled", About: order.ID, Reason: "asked by phone"},
		{By: "staff/anna", Name: "Anna", Did: "apikey.created", About: k.ID},
		{By: "staff/anna", Name: "Anna", Did: "stock.adjusted", About: "tee", Reason: "torn", Entry: key.entry()},
	}
	if len(log) != len(want) {
		t.Fatalf("got %d in the log, want %d: %+v", len(log), len(want), log)
	}
	for i, got := range log {
		if got.At == 0 || got.Entry == "" || got.ID == "" {
			t.Errorf("%d: got %+v", i, got)
		}
		got.ID, got.At = "", 0
		if want[i].Entry == "" {
			got.Entry = ""
		}
		if got != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, got, want[i])
		}
	}
	if mine, err := b.Audit(ctx, AuditFilter{By: "staff/anna", About: "tee"}); err != nil || len(mine) != 1 || mine[0].Did != "stock.adjusted" {
		t.Errorf("what Anna did to the tee: got %+v %v", mine, err)
	}
	next, err := b.Audit(ctx, AuditFilter{After: log[0].ID, Limit: 1})
	if err != nil || len(next) != 1 || next[0] != log[1] {
		t.Errorf("the next page: got %+v %v", next, err)
	}
}
