package holdfast

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

var ctx = context.Background()

func TestTheLastUnitIsSoldOnce(t *testing.T) {
	for _, preset := range []string{"batched", "conditional", "optimistic", "pessimistic", "gated", "queued"} {
		t.Run(preset, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.Preset = preset })
			b.item("last", 1)
			var wait sync.WaitGroup
			var mu sync.Mutex
			codes := map[string]int{}
			for range 20 {
				wait.Go(func() {
					_, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"last", 1}}})
					mu.Lock()
					defer mu.Unlock()
					codes[code(err)]++
				})
			}
			wait.Wait()
			if codes[""] != 1 || codes[CodeSoldOut] != 19 {
				t.Errorf("got %v, want 1 order and 19 sold out", codes)
			}
		})
	}
}

func TestAnOrderIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	b.item("cap", 1)
	_, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 1}, {"cap", 2}}})
	if code(err) != CodeSoldOut {
		t.Fatalf("got %v, want %s", err, CodeSoldOut)
	}
	b.available("tee", 3)
	b.available("cap", 1)
}

func TestLinesOfOneSKUAreSummed(t *testing.T) {
	b := newBench(t)
	_, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 2}, {"tee", 2}}})
	if code(err) != CodeSoldOut {
		t.Fatalf("4 of 3: got %v, want %s", err, CodeSoldOut)
	}
	a, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 2}, {"tee", 1}}})
	if err != nil || len(a.Value.Lines) != 1 || a.Value.Total != 300 {
		t.Errorf("got %+v %v, want one line of 3 for 300", a.Value, err)
	}
}

func TestTheSameKeyIsTheSameOrder(t *testing.T) {
	b := newBench(t)
	key := Key{Scope: "s", Value: "k", Print: []byte("body")}
	in := OrderInput{Lines: []LineInput{{"tee", 3}}}
	first, err := b.Place(ctx, key, in)
	if err != nil || first.Replayed {
		t.Fatalf("%+v %v", first, err)
	}
	b.wait(time.Minute)
	second, err := b.Place(ctx, key, in)
	if err != nil || !second.Replayed || second.Value.ID != first.Value.ID || second.Value.ExpiresAt != first.Value.ExpiresAt {
		t.Errorf("got %+v %v, want the first answer again", second, err)
	}
	if _, err := b.Place(ctx, Key{Scope: "s", Value: "k", Print: []byte("other")}, in); code(err) != CodeKeyReused {
		t.Errorf("another body: %v, want %s", err, CodeKeyReused)
	}
	if _, err := b.Place(ctx, Key{Scope: "t", Value: "k", Print: []byte("body")}, in); code(err) != CodeSoldOut {
		t.Errorf("another scope: %v, want %s", err, CodeSoldOut)
	}
}

func TestAReferenceIsUsedOnce(t *testing.T) {
	b := newBench(t)
	in := OrderInput{Reference: "A-1", Lines: []LineInput{{"tee", 1}}}
	if _, err := b.Place(ctx, Key{}, in); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Place(ctx, Key{}, in); code(err) != CodeOrderExists {
		t.Errorf("got %v, want %s", err, CodeOrderExists)
	}
	b.available("tee", 2)
}

func TestOrdersThatCannotBeMeantAreRefused(t *testing.T) {
	b := newBench(t)
	if _, err := b.PutItem(ctx, Key{}, ItemInput{SKU: "yen", Name: "yen", Price: 1, Currency: "JPY", Stock: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutItem(ctx, Key{}, ItemInput{SKU: "dear", Name: "dear", Price: ledger.MaxAmount, Currency: "CNY", Stock: 9}); err != nil {
		t.Fatal(err)
	}
	many := make([]LineInput, MaxLines+1)
	for _, c := range []struct {
		in   OrderInput
		want string
	}{
		{OrderInput{}, CodeInvalidField},
		{OrderInput{Lines: many}, CodeTooManyItems},
		{OrderInput{Lines: []LineInput{{"tee", 0}}}, CodeAmountRange},
		{OrderInput{Lines: []LineInput{{"tee", -1}}}, CodeAmountRange},
		{OrderInput{Lines: []LineInput{{"tee", ledger.MaxAmount + 1}}}, CodeAmountRange},
		{OrderInput{Lines: []LineInput{{"tee", ledger.MaxAmount}, {"tee", 1}}}, CodeAmountRange},
		{OrderInput{Lines: []LineInput{{"t e", 1}}}, CodeInvalidID},
		{OrderInput{Lines: []LineInput{{"none", 1}}}, CodeSKUUnknown},
		{OrderInput{Lines: []LineInput{{"dear", 2}}}, CodeTotalOverflow},
		{OrderInput{Lines: []LineInput{{"dear", 1}, {"tee", 1}}}, CodeTotalOverflow},
		{OrderInput{Lines: []LineInput{{"tee", 1}, {"yen", 1}}}, CodeCurrencyMismatch},
		{OrderInput{Currency: "USD", Lines: []LineInput{{"tee", 1}}}, CodeCurrencyMismatch},
		{OrderInput{HoldFor: time.Second, Lines: []LineInput{{"tee", 1}}}, CodeHoldRange},
		{OrderInput{HoldFor: 10 * 365 * 24 * time.Hour, Lines: []LineInput{{"tee", 1}}}, CodeHoldRange},
		{OrderInput{Customer: "Ｂｏｂ", Lines: []LineInput{{"tee", 1}}}, CodeInvalidID},
	} {
		if _, err := b.Place(ctx, Key{}, c.in); code(err) != c.want {
			t.Errorf("%+v: got %v, want %s", c.in, err, c.want)
		}
	}
	b.available("tee", 3)
}

func TestAnUnpaidOrderExpiresAndGivesItsStockBack(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 3)
	b.wait(15*time.Minute - time.Millisecond)
	b.run()
	b.is(o.ID, flow.Held)
	b.wait(time.Millisecond)
	b.run()
	b.is(o.ID, flow.Expired)
	b.available("tee", 3)
}

func TestOverdueStockIsTakenBeforeTheSweeperComes(t *testing.T) {
	b := newBench(t)
	old := b.place("tee", 3)
	b.wait(time.Hour)
	b.place("tee", 1)
	b.is(old.ID, flow.Expired)
}

func TestOneBadOrderNeverStopsTheOthers(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	bad := ledger.Record{Kind: flow.KindOrder, ID: "0", Version: 1, State: "held", Due: 1, Body: []byte(`"not an order"`)}
	if _, err := b.apply(ctx, ledger.Entry{ID: "bad", Records: []ledger.Record{bad}}); err != nil {
		t.Fatal(err)
	}
	b.wait(time.Hour)
	if n, err := b.work.sweepOrders(ctx); n != 1 || err != nil {
		t.Errorf("%d orders expired, %v, want 1", n, err)
	}
	b.is(o.ID, flow.Expired)
	bad.Version, bad.Due, bad.Body = 2, 0, []byte(`{"id":"0","version":2,"state":"cancelled","lines":[]}`)
	bad.State = "cancelled"
	if _, err := b.apply(ctx, ledger.Entry{ID: "mended", Records: []ledger.Record{bad}}); err != nil {
		t.Fatal(err)
	}
}

func TestCancelGivesBackEverythingOnce(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 2)
	key := Key{Scope: "s", Value: "c", Print: []byte("c")}
	for i, replayed := range []bool{false, true} {
		a, err := b.Cancel(ctx, key, o.ID)
		if err != nil || a.Value.State != flow.Cancelled || a.Replayed != replayed {
			t.Errorf("cancel %d: %+v %v", i, a, err)
		}
	}
	if _, err := b.Cancel(ctx, Key{}, o.ID); err != nil {
		t.Errorf("cancelling again under another key: %v, want nothing to happen", err)
	}
	b.available("tee", 3)
	if _, err := b.Pay(ctx, Key{}, PayInput{Order: o.ID}); code(err) != CodeInvalidState {
		t.Errorf("paying a cancelled order: %v, want %s", err, CodeInvalidState)
	}
}

func TestAdjustNeverTakesWhatAnOrderHolds(t *testing.T) {
	b := newBench(t)
	b.place("tee", 2)
	if _, err := b.Adjust(ctx, Key{}, Adjustment{SKU: "tee", Quantity: -2, Reason: "count"}); code(err) != CodeStockInsufficient {
		t.Errorf("got %v, want %s", err, CodeStockInsufficient)
	}
	key := Key{Scope: "s", Value: "adj", Print: []byte("adj")}
	for range 2 {
		a, err := b.Adjust(ctx, key, Adjustment{SKU: "tee", Quantity: -1, Reason: "count"})
		if err != nil || a.Value.OnHand != 2 || a.Value.Available != 0 || a.Value.Lost != 1 {
			t.Errorf("got %+v %v", a.Value, err)
		}
	}
}

func TestExplainNamesTheHolds(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 2)
	x, err := b.Explain(ctx, "tee")
	if err != nil || x.Available != 1 || len(x.Holds) != 1 || x.Holds[0].ID != flow.HoldID(o.ID, 0) {
		t.Errorf("got %+v %v", x, err)
	}
}

func TestAnOldVersionOfAnItemIsNotReplaced(t *testing.T) {
	b := newBench(t)
	in := ItemInput{SKU: "tee", Name: "Tee", Price: 200, Currency: "CNY", IfMatch: 7}
	if _, err := b.PutItem(ctx, Key{}, in); code(err) != CodeStale {
		t.Errorf("got %v, want %s", err, CodeStale)
	}
	in.IfMatch = 1
	if a, err := b.PutItem(ctx, Key{}, in); err != nil || a.Value.Version != 2 {
		t.Errorf("got %+v %v", a, err)
	}
	if o := b.place("tee", 1); o.Total != 200 {
		t.Errorf("the order's total is %d, want the new price 200", o.Total)
	}
}

func TestAnItemHasACurrency(t *testing.T) {
	b := newBench(t)
	for _, currency := range []string{"", "XXX", "cny", "XYZ"} {
		if _, err := b.PutItem(ctx, Key{}, ItemInput{SKU: "cap", Name: "Cap", Price: 1, Currency: currency}); code(err) != CodeCurrencyInvalid {
			t.Errorf("%q: got %v, want %s", currency, err, CodeCurrencyInvalid)
		}
	}
}

func TestNamesThatLookTheSameAreTheSame(t *testing.T) {
	b := newBench(t)
	in := ItemInput{SKU: "cafe", Name: "Cafe\u0301", Names: map[string]string{"fr": "e\u0301"}, Price: 1, Currency: "EUR"}
	a, err := b.PutItem(ctx, Key{}, in)
	if err != nil || a.Value.Name != "Caf\u00e9" || a.Value.Names["fr"] != "\u00e9" {
		t.Errorf("got %+q %v", a.Value.Name, err)
	}
}

func TestEventsAreGaplessAndTellTheStory(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 100)
	b.notify(gateway.Notification{ID: "n1", Payment: p.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	want := []string{"order.held", "order.paying", "payment.open", "order.paid", "payment.paid"}
	if got := b.events(o.ID); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	l, err := b.Listen(ctx, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for want := int64(1); want <= 6; want++ {
		if m, err := l.Next(ctx); err != nil || m.ID != want {
			t.Errorf("heard %+v, %v, want event %d", m, err, want)
		}
	}
}

func TestKeysAreStoredAsDigestsAndEndWhenRevoked(t *testing.T) {
	b := newBench(t)
	plain, k, err := b.CreateKey(ctx, Key{}, "till", []string{ScopeWrite}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := b.Authenticate(ctx, plain)
	if err != nil || !ok || got.ID != k.ID || !got.Allows(ScopeRead) || got.Allows(ScopeAdmin) {
		t.Errorf("got %+v %v %v", got, ok, err)
	}
	if _, ok, _ := b.Authenticate(ctx, plain+"x"); ok {
		t.Error("another key was let in")
	}
	b.wait(2 * time.Hour)
	if _, ok, _ := b.Authenticate(ctx, plain); ok {
		t.Error("an expired key was let in")
	}
	plain, k, _ = b.CreateKey(ctx, Key{}, "till", []string{ScopeRead}, 0)
	b.Authenticate(ctx, plain)
	if err := b.RevokeKey(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := b.Authenticate(ctx, plain); ok {
		t.Error("a revoked key was let in")
	}
	lines, _ := b.store.Lines(ctx, ledger.LineQuery{})
	for _, l := range lines {
		if slices.Contains([]string{string(l.Body)}, plain) {
			t.Error("the journal has a key in it")
		}
	}
}

func TestClientSecretsAreOfOneOrder(t *testing.T) {
	b := newBench(t)
	if !b.CheckClientSecret("a", b.ClientSecret("a")) || b.CheckClientSecret("b", b.ClientSecret("a")) {
		t.Error("a client secret is not of its order alone")
	}
}

func TestOnlyWaysThatFitAreOffered(t *testing.T) {
	b := newBench(t)
	b.item("dear", 20)
	cheap, dear := b.place("dear", 1), b.place("dear", 11)
	if got := b.Ways(cheap, PayInput{}); len(got) != 2 || got[0].Method != "page" || got[1].Method != "code" {
		t.Errorf("got %v, want both methods of the till", got)
	}
	if got := b.Ways(dear, PayInput{}); len(got) != 0 {
		t.Errorf("got %v for what the till can't take", got)
	}
}
