package holdfast

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

// busyDay is a day with everything that can happen to the stock of tee. mark is
// called after every step.
func busyDay(b *bench, mark func()) {
	b.t.Helper()
	must := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
		mark()
	}
	_, err := b.Adjust(ctx, Key{}, Adjustment{SKU: "tee", Quantity: 4, Reason: "delivery 7"})
	must(err)
	b.item("cap", 9)
	kept := b.place("tee", 2)
	must(nil)
	both, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"cap", 1}, {"tee", 1}}})
	must(err)
	late := b.place("tee", 1)
	p := b.start(late.ID)
	must(nil)
	_, err = b.Cancel(ctx, Key{}, both.Value.ID)
	must(err)
	pay := b.start(kept.ID)
	b.gw.pay(pay.ID, 200)
	b.notify(gateway.Notification{ID: "n1", Payment: pay.ID, Status: gateway.Paid, Amount: 200, Currency: "CNY"})
	must(nil)
	b.wait(time.Hour)
	b.run()
	must(nil)
	b.gw.pay(p.ID, 100)
	b.notify(gateway.Notification{ID: "n2", Payment: p.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	must(nil)
	_, err = b.Refund(ctx, Key{}, RefundInput{Order: kept.ID, Amount: 100, Reason: "torn", Restock: []Restock{{SKU: "tee", Quantity: 1}}})
	must(err)
	_, err = b.Adjust(ctx, Key{}, Adjustment{SKU: "tee", Quantity: -1, Reason: "broken"})
	must(err)
	b.place("tee", 1)
	must(nil)
	b.run()
}

func TestThePastIsExplainedAsItWas(t *testing.T) {
	b := newBench(t)
	type moment struct {
		at time.Time
		Explanation
	}
	var past []moment
	busyDay(b, func() {
		x, err := b.Explain(ctx, "tee")
		if err != nil {
			t.Fatal(err)
		}
		past = append(past, moment{b.now(), x})
		b.wait(time.Second)
	})
	seen := map[int64]bool{}
	for i, was := range past {
		seen[was.Available] = true
		x, err := b.ExplainAt(ctx, "tee", was.at)
		if err != nil {
			t.Fatal(err)
		}
		for _, holds := range []*Explanation{&x, &was.Explanation} {
			for j := range holds.Holds {
				holds.Holds[j].Until = 0 // told as of now
			}
		}
		if !reflect.DeepEqual(x, was.Explanation) {
			t.Errorf("step %d: got %+v, want %+v", i, x, was.Explanation)
		}
	}
	if len(seen) < 4 {
		t.Errorf("only %d different numbers were there to explain", len(seen))
	}
	if x, err := b.ExplainAt(ctx, "tee", past[0].at.Add(-time.Hour)); err != nil || x.StockLevel != (StockLevel{SKU: "tee"}) {
		t.Errorf("before there was anything: got %+v %v", x, err)
	}
}

func TestMovementsExplainWhatIsOnHand(t *testing.T) {
	b := newBench(t)
	busyDay(b, func() { b.wait(time.Second) })
	var all []Movement
	for before := int64(0); ; {
		page, more, err := b.Movements(ctx, "tee", before, 2)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if !more {
			break
		}
		before = page[len(page)-1].Seq
	}
	var sum int64
	var told []string
	for _, m := range slices.Backward(all) {
		sum += m.Quantity
		told = append(told, m.Kind+" "+m.Reason)
		if m.At == 0 || m.Entry == "" || (m.Kind == "sold" && m.Order == "") {
			t.Errorf("got %+v", m)
		}
	}
	s, err := b.Stock(ctx, "tee")
	if err != nil || sum != s.OnHand {
		t.Errorf("movements sum to %d, on hand are %d (%v)", sum, s.OnHand, err)
	}
	const want = "received |received delivery 7|sold |sold |written_off broken|restocked torn"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestATimelineTellsEveryCallAndWhoCausedWhat(t *testing.T) {
	b := newBench(t)
	anna := By(ctx, Actor{ID: "staff/anna", Name: "Anna", Reason: "asked by phone"})
	a, err := b.Place(ctx, Key{Scope: "thekey", Value: "v", Print: []byte("p")}, OrderInput{Lines: []LineInput{{"tee", 1}}, Reference: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	order := a.Value.ID
	b.place("tee", 1) // of no interest
	b.gw.down = true
	p := b.start(order)
	b.gw.down = false
	b.wait(time.Second)
	b.run()
	b.wait(time.Minute)
	b.run()
	b.notify(gateway.Notification{ID: "n1", Payment: p.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY", Ref: "trade-9"})
	if _, err := b.Refund(anna, Key{}, RefundInput{Order: order}); err != nil {
		t.Fatal(err)
	}
	b.run()
	var told []string
	for after, next := int64(0), int64(1); next > 0; after = next {
		var steps []Step
		if steps, next, err = b.Timeline(ctx, order, after); err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			said := s.What
			if s.Task != nil {
				said += " " + string(s.Task.Do)
			}
			if s.Cause != "" {
				said += " by " + s.Cause
			}
			if s.Reason != "" {
				said += ", " + s.Reason
			}
			told = append(told, said)
		}
	}
	want := []string{"order.held by key/thekey", "order.paying", "gateway.called create", "gateway.silent create", "gateway.called create",
		"payment.open", "gateway.called query", "gateway.same query", "order.paid by gateway/till",
		"refund.requested by staff/anna, asked by phone", "gateway.called refund", "order.refunded"}
	if !slices.Equal(told, want) {
		t.Errorf("got  %q\nwant %q", told, want)
	}
	for id, want := range map[string]Found{order: {Kind: flow.KindOrder, ID: order}, "shop-1": {Kind: flow.KindOrder, ID: order}, "thekey.v": {Kind: flow.KindOrder, ID: order},
		p.ID: {Kind: flow.KindPayment, ID: p.ID}, "trade-9": {Kind: flow.KindPayment, ID: p.ID}, order + "r01": {Kind: flow.KindRefund, ID: order + "r01"}, "tee": {Kind: flow.KindItem, ID: "tee"}} {
		if got, err := b.Find(ctx, id); err != nil || !slices.Contains(got, want) {
			t.Errorf("find %s: got %v %v, want %v", id, got, err, want)
		}
	}
	for _, id := range []string{"", "te", "%", "' OR 1=1--", strings.Repeat("x", 5000)} {
		if got, err := b.Find(ctx, id); err != nil || len(got) > 0 {
			t.Errorf("find %.10q: got %v %v", id, got, err)
		}
	}
}

func TestATaskIsParkedAndTriedAgain(t *testing.T) {
	b := newBench(t)
	b.gw.down = true
	p := b.start(b.place("tee", 1).ID)
	if _, err := b.ParkTask(ctx, Key{}, p.ID); err != nil {
		t.Fatal(err)
	}
	b.gw.down = false
	b.wait(time.Minute)
	b.run()
	if n := b.gw.count("create " + p.ID); n != 1 {
		t.Errorf("a parked task called the gateway, in all %d times", n)
	}
	stuck, err := b.Tasks(ctx, Filter{State: flow.TaskStuck})
	if err != nil || len(stuck) != 1 || stuck[0].ID != p.ID {
		t.Fatalf("got %+v %v, want the parked one", stuck, err)
	}
	key := Key{Scope: "s", Value: "again", Print: []byte("x")}
	for range 2 {
		if _, err := b.RetryTask(ctx, key, p.ID); err != nil {
			t.Fatal(err)
		}
		b.run()
	}
	if n := b.gw.count("create " + p.ID); n != 2 {
		t.Errorf("the gateway was called %d times, want 2", n)
	}
	if got, err := b.Payment(ctx, p.ID); err != nil || got.State != flow.Open {
		t.Errorf("got %+v %v, want an open payment", got, err)
	}
}

func TestAQuarantinedNotificationIsLookedAtAgain(t *testing.T) {
	b := newBench(t)
	b.notify(gateway.Notification{ID: "n1", Payment: "nobody's", Status: gateway.Paid, Amount: 1, Currency: "CNY"})
	for range parkTries {
		b.wait(parkWait)
		b.run()
	}
	list, err := b.Notifications(ctx, Filter{State: parkedStays})
	if err != nil || len(list) != 1 || list[0].Note.ID != "n1" || list[0].Gateway != "till" {
		t.Fatalf("got %+v %v", list, err)
	}
	if err := b.RetryNotification(ctx, list[0].ID); err != nil {
		t.Fatal(err)
	}
	b.run()
	if list, err := b.Notifications(ctx, Filter{}); err != nil || list[0].State != parkedNow || list[0].Tries != 1 {
		t.Errorf("got %+v %v, want it parked again", list, err)
	}
}
