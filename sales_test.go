package holdfast

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
)

// sale puts a sale of tees at 70, from in an hour to in two hours.
func (b *bench) sale(change ...func(*SaleInput)) Sale {
	b.t.Helper()
	in := SaleInput{SKU: "tee", OpensAt: b.now().Add(time.Hour), ClosesAt: b.now().Add(2 * time.Hour), Price: 70}
	for _, f := range change {
		f(&in)
	}
	a, err := b.PutSale(ctx, Key{}, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Value
}

func TestAnItemIsSoldInTheWindowOfItsSale(t *testing.T) {
	b := newBench(t)
	s := b.sale()
	b.wait(time.Hour - time.Millisecond)
	_, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 1}}})
	var r *Rejection
	if !errors.As(err, &r) || r.Code != CodeSaleNotOpen || r.SKU != "tee" || r.OpensAt != s.OpensAt {
		t.Errorf("before the window: got %+v, want %s with its opening", err, CodeSaleNotOpen)
	}
	b.wait(time.Millisecond)
	if o := b.place("tee", 1); o.Total != 70 || o.Lines[0].Sale != s.ID {
		t.Errorf("at the opening: got %+v, want one for 70 in sale %s", o, s.ID)
	}
	b.wait(time.Hour - time.Millisecond)
	b.place("tee", 1)
	b.wait(time.Millisecond)
	if _, why := b.buy(1); why != CodeSaleClosed {
		t.Errorf("at the closing: got %q, want %s", why, CodeSaleClosed)
	}
}

func TestAnItemMayBeSoldOnItsOwnTermsOutsideOfTheWindow(t *testing.T) {
	b := newBench(t)
	b.sale(func(in *SaleInput) { in.SoldOutside, in.PerCustomer = true, 1 })
	for _, want := range []int64{100, 70, 100} {
		if o := b.bought(1); o.Total != want {
			t.Errorf("got a total of %d, want %d", o.Total, want)
		}
		b.wait(time.Hour)
	}
}

func TestBetweenTwoSalesTheNextOneDecides(t *testing.T) {
	b := newBench(t)
	first := b.sale()
	b.sale(func(in *SaleInput) {
		in.OpensAt, in.ClosesAt, in.SoldOutside = first.ClosesAt.Std().Add(time.Hour), first.ClosesAt.Std().Add(2*time.Hour), true
	})
	if _, why := b.buy(1); why != CodeSaleNotOpen {
		t.Errorf("before the first: got %q, want %s", why, CodeSaleNotOpen)
	}
	b.wait(2 * time.Hour)
	if o := b.place("tee", 1); o.Total != 100 {
		t.Errorf("between: got a total of %d, want 100", o.Total)
	}
}

func TestHoldAndLatePolicyAreThoseOfTheSale(t *testing.T) {
	b := newBench(t)
	b.sale(limited(0), func(in *SaleInput) { in.HoldFor, in.Late = 2*time.Minute, []Late{flow.Repay} })
	o := b.place("tee", 1)
	if got := o.ExpiresAt - o.CreatedAt; got != Time((2 * time.Minute).Milliseconds()) {
		t.Errorf("held for %d ms, want two minutes", got)
	}
	if !slices.Equal(o.Lines[0].Late, []Late{flow.Repay}) {
		t.Errorf("got late policy %v, want refund", o.Lines[0].Late)
	}
}

func TestSalesOfOneItemNeverOverlap(t *testing.T) {
	b := newBench(t)
	first := b.sale()
	at := func(from, to time.Duration) SaleInput {
		return SaleInput{SKU: "tee", Price: 60, OpensAt: first.OpensAt.Std().Add(from), ClosesAt: first.OpensAt.Std().Add(to)}
	}
	for _, in := range []SaleInput{at(0, time.Hour), at(-time.Hour, time.Millisecond), at(59*time.Minute, 2*time.Hour), at(time.Minute, 2*time.Minute), at(-time.Hour, 2*time.Hour)} {
		if _, err := b.PutSale(ctx, Key{}, in); code(err) != CodeSaleOverlaps {
			t.Errorf("%v to %v: got %v, want %s", in.OpensAt, in.ClosesAt, err, CodeSaleOverlaps)
		}
	}
	for _, in := range []SaleInput{at(-time.Hour, 0), at(time.Hour, 2*time.Hour)} {
		if _, err := b.PutSale(ctx, Key{}, in); err != nil {
			t.Errorf("%v to %v: %v", in.OpensAt, in.ClosesAt, err)
		}
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for range 10 {
		wait.Go(func() {
			_, err := b.PutSale(ctx, Key{}, at(3*time.Hour, 4*time.Hour))
			mu.Lock()
			defer mu.Unlock()
			codes[code(err)]++
		})
	}
	wait.Wait()
	if codes[""] != 1 || codes[CodeSaleOverlaps] != 9 {
		t.Errorf("ten at once: got %v, want one", codes)
	}
}

func TestASaleIsReplacedByItsVersion(t *testing.T) {
	b := newBench(t)
	s := b.sale(func(in *SaleInput) { in.ID = "double-11" })
	if _, why := b.buy(1); why != CodeSaleNotOpen {
		t.Errorf("version 1: got %q, want %s", why, CodeSaleNotOpen)
	}
	in := SaleInput{ID: s.ID, SKU: "tee", OpensAt: b.now(), ClosesAt: b.now().Add(time.Minute), Price: 50, IfMatch: 1}
	a, err := b.PutSale(ctx, Key{}, in)
	if err != nil || a.Value.Version != 2 {
		t.Fatalf("got %+v %v, want version 2", a.Value, err)
	}
	if o := b.place("tee", 1); o.Total != 50 {
		t.Errorf("got a total of %d, want 50", o.Total)
	}
	if _, err := b.PutSale(ctx, Key{}, in); code(err) != CodeStale {
		t.Errorf("an old version: got %v, want %s", err, CodeStale)
	}
	in.IfMatch, in.PerCustomer = 0, 1
	if _, err := b.PutSale(ctx, Key{}, in); code(err) != CodeInvalidField {
		t.Errorf("another limit: got %v, want %s", err, CodeInvalidField)
	}
	if got := b.events(s.ID); !slices.Equal(got, []string{"sale.created", "sale.updated"}) {
		t.Errorf("got events %v", got)
	}
	list, err := b.Sales(ctx, "tee", "", 0)
	if err != nil || len(list) != 1 || list[0].Price != 50 {
		t.Errorf("got %+v %v, want the one sale", list, err)
	}
}

func TestAnOrderIsAnsweredAsBeforeWhenTheSaleIsOver(t *testing.T) {
	b := newBench(t)
	b.sale(limited(1))
	key := Key{Scope: "s", Value: "k", Print: []byte("body")}
	in := OrderInput{Customer: "ann", Lines: []LineInput{{"tee", 1}}}
	first, err := b.Place(ctx, key, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at the limit", "after the sale"} {
		again, err := b.Place(ctx, key, in)
		if err != nil || !again.Replayed || again.Value.ID != first.Value.ID {
			t.Errorf("%s: got %+v %v, want the first answer", when, again, err)
		}
		b.wait(3 * time.Hour)
	}
}

func TestASaleIsMadeOnceForItsKey(t *testing.T) {
	b := newBench(t)
	key := Key{Scope: "s", Value: "k", Print: []byte("body")}
	in := SaleInput{SKU: "tee", OpensAt: b.now(), ClosesAt: b.now().Add(time.Hour), Price: 70}
	first, err := b.PutSale(ctx, key, in)
	if err != nil {
		t.Fatal(err)
	}
	b.wait(2 * time.Hour)
	again, err := b.PutSale(ctx, key, in)
	if err != nil || !again.Replayed || again.Value.ID != first.Value.ID {
		t.Errorf("got %+v %v, want the first answer", again, err)
	}
}

func TestSalesThatCannotBeMeantAreRefused(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name   string
		change func(*SaleInput)
		want   string
	}{
		{"id", func(in *SaleInput) { in.ID = "a/b" }, CodeInvalidID},
		{"long id", func(in *SaleInput) { in.ID = string(make([]byte, 49)) }, CodeInvalidID},
		{"sku", func(in *SaleInput) { in.SKU = "t e" }, CodeInvalidID},
		{"unknown sku", func(in *SaleInput) { in.SKU = "none" }, CodeSKUUnknown},
		{"no opening", func(in *SaleInput) { in.OpensAt = time.Time{} }, CodeInvalidTime},
		{"year 10000", func(in *SaleInput) { in.ClosesAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, CodeInvalidTime},
		{"empty window", func(in *SaleInput) { in.ClosesAt = in.OpensAt }, CodeInvalidField},
		{"past window", func(in *SaleInput) { in.OpensAt, in.ClosesAt = b.now().Add(-time.Hour), b.now() }, CodeInvalidField},
		{"price", func(in *SaleInput) { in.Price = 0 }, CodeAmountRange},
		{"limit", func(in *SaleInput) { in.PerCustomer = -1 }, CodeAmountRange},
		{"row 92", func(in *SaleInput) { in.HoldFor = -time.Second }, CodeHoldRange},
		{"row 92", func(in *SaleInput) { in.HoldFor = 10 * 365 * 24 * time.Hour }, CodeHoldRange},
		{"policy", func(in *SaleInput) { in.Late = []Late{"shrug"} }, CodeInvalidField},
		{"preset", func(in *SaleInput) { in.Preset = "psychic" }, CodeInvalidField},
		{"another preset", func(in *SaleInput) { in.Preset = "optimistic" }, CodeInvalidField},
		{"version", func(in *SaleInput) { in.IfMatch = 1 }, CodeStale},
	} {
		in := SaleInput{SKU: "tee", OpensAt: b.now(), ClosesAt: b.now().Add(time.Hour), Price: 1, Preset: "batched"}
		c.change(&in)
		if _, err := b.PutSale(ctx, Key{}, in); code(err) != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestSalesAheadAreBounded(t *testing.T) {
	b := newBench(t)
	next := func() error {
		b.t.Helper()
		list, err := b.Sales(ctx, "tee", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		from := b.now().Add(time.Duration(len(list)) * time.Minute)
		_, err = b.PutSale(ctx, Key{}, SaleInput{SKU: "tee", OpensAt: from, ClosesAt: from.Add(time.Minute), Price: 1})
		return err
	}
	for range MaxSales {
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := next(); code(err) != CodeTooManyItems {
		t.Errorf("got %v, want %s", err, CodeTooManyItems)
	}
	b.wait(2 * time.Minute) // one of those that are over is kept
	if err := next(); err != nil {
		t.Errorf("after two are over: %v", err)
	}
}
