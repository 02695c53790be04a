package holdfast

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

func many(n int, sku string, pieces int64) []OrderInput {
	in := make([]OrderInput, n)
	for i := range in {
		in[i] = OrderInput{Lines: []LineInput{{sku, pieces}}}
	}
	return in
}

func TestManyOrdersAreEachPlacedOnTheirOwn(t *testing.T) {
	b := newBench(t)
	in := many(5, "tee", 1)
	in[1].Lines[0].SKU = "none"
	a, err := b.PlaceMany(ctx, Key{}, in, false)
	if err != nil || len(a.Value) != 5 {
		t.Fatalf("got %+v %v", a, err)
	}
	got := ""
	for _, o := range a.Value {
		got += " " + o.Code
		if (o.Order == nil) == (o.Code == "") {
			t.Errorf("got %+v, want an order or a code", o)
		}
	}
	if want := "  sku_unknown   sold_out"; got != want {
		t.Errorf("got%q, want%q", got, want)
	}
	b.available("tee", 0)
}

func TestManyOrdersTogetherAreAllOrNone(t *testing.T) {
	b := newBench(t)
	if _, err := b.PlaceMany(ctx, Key{}, many(4, "tee", 1), true); code(err) != CodeSoldOut {
		t.Errorf("4 of 3: got %v, want %s", err, CodeSoldOut)
	}
	b.available("tee", 3)
	a, err := b.PlaceMany(ctx, Key{}, many(3, "tee", 1), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range a.Value {
		b.is(o.Order.ID, flow.Held)
	}
	head, _ := b.store.Head(ctx)
	lines, _ := b.store.Lines(ctx, ledger.LineQuery{After: head.Seq - 1})
	if e, _, _ := lines[0].Open(); len(e.Ops) != 3 {
		t.Errorf("the last entry has %d ops, want all 3", len(e.Ops))
	}
	b.wait(time.Hour)
	b.run()
	b.available("tee", 3)
}

func TestTheSameKeyIsTheSameOrders(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprint("together ", together), func(t *testing.T) {
			b := newBench(t)
			key := Key{Scope: "s", Value: "bulk", Print: []byte("b")}
			first, err := b.PlaceMany(ctx, key, many(2, "tee", 1), together)
			if err != nil || first.Replayed {
				t.Fatalf("got %+v %v", first, err)
			}
			again, err := b.PlaceMany(ctx, key, many(2, "tee", 1), together)
			if err != nil || !again.Replayed || again.Value[1].Order.ID != first.Value[1].Order.ID {
				t.Errorf("got %+v %v, want the first answer", again, err)
			}
			if _, err := b.PlaceMany(ctx, Key{Scope: "s", Value: "bulk", Print: []byte("c")}, many(2, "tee", 1), together); code(err) != CodeKeyReused {
				t.Errorf("another body: got %v, want %s", err, CodeKeyReused)
			}
			b.available("tee", 1)
		})
	}
}

// The process dies after the orders were placed and before anybody was answered.
func TestOrdersThatWereNeverAnsweredAreFoundAgain(t *testing.T) {
	b := newBench(t)
	key := Key{Scope: "s", Value: "bulk", Print: []byte("b")}
	placed, err := b.placeEach(ctx, key, many(2, "tee", 1))
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.PlaceMany(ctx, key, many(2, "tee", 1), false)
	if err != nil || a.Value[0].Order.ID != placed[0].Order.ID || a.Value[1].Order.ID != placed[1].Order.ID {
		t.Errorf("got %+v %v, want the orders that are there", a.Value, err)
	}
	b.available("tee", 1)
}

func TestBulkLimits(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{0, MaxBulk + 1} {
		if _, err := b.PlaceMany(ctx, Key{}, many(n, "tee", 1), false); code(err) != CodeTooManyItems {
			t.Errorf("%d orders: got %v, want %s", n, err, CodeTooManyItems)
		}
	}
	big := many(MaxBulk, "tee", 1)
	for i := range big {
		big[i].Reference = fmt.Sprintf("ref-%d", i)
		for n := range 11 {
			sku := fmt.Sprintf("s%d", n)
			if i == 0 {
				b.item(sku, 1000)
			}
			big[i].Lines = append(big[i].Lines, LineInput{sku, 1})
		}
	}
	if _, err := b.PlaceMany(ctx, Key{}, big, true); code(err) != CodeTooManyItems {
		t.Errorf("1,200 lines together: got %v, want %s", err, CodeTooManyItems)
	}
	b.available("tee", 3)
}
