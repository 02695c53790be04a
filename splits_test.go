package holdfast

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

// market is a payBench with two sellers and the shop's account for fees.
func market(t *testing.T, change ...func(*Options)) *payBench {
	b := newPayBench(t, change...)
	for _, id := range []string{"ann", "bob", "fee"} {
		b.fund(id, 0)
	}
	return b
}

// split is an order of one tee, of whose 100 ann gets 70 and fee 10.
func (b *payBench) split(sku string) Order {
	b.t.Helper()
	a, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{sku, 1}}, Splits: []SplitInput{{"ann", 70}, {"fee", 10}}})
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Value
}

func (b *payBench) opened(order string) Payment {
	b.t.Helper()
	a, err := b.Pay(ctx, Key{}, PayInput{Order: order, Gateway: "till", Wait: time.Nanosecond})
	if err != nil {
		b.t.Fatal(err)
	}
	b.run()
	return a.Value
}

func (b *payBench) paid(order string) {
	b.t.Helper()
	p := b.opened(order)
	b.gw.pay(p.ID, 100)
	b.notify(gateway.Notification{ID: "n" + p.ID, Payment: p.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
	b.is(order, flow.Paid)
}

func (b *payBench) refund(order string, n int64) Refund {
	b.t.Helper()
	a, err := b.Refund(ctx, Key{}, RefundInput{Order: order, Amount: n})
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Value
}

func (b *payBench) owes(account string, want int64) {
	b.t.Helper()
	a, err := b.Account(ctx, account)
	if err != nil || len(a.Balances) != 1 || a.Balances[0].Receivable != want {
		b.t.Errorf("%s: got %+v %v, want a receivable of %d", account, a.Balances, err, want)
	}
}

func TestEveryWayToBePaidPaysTheSplits(t *testing.T) {
	for name, pay := range map[string]func(b *payBench, o Order){
		"notification": func(b *payBench, o Order) { b.paid(o.ID) },
		"query": func(b *payBench, o Order) {
			p := b.opened(o.ID)
			b.gw.pay(p.ID, 100)
			if _, err := b.Refresh(ctx, p.ID); err != nil {
				t.Fatal(err)
			}
		},
		"late": func(b *payBench, o Order) { b.late(o) },
		"backorder": func(b *payBench, o Order) {
			if _, err := b.Adjust(ctx, Key{}, Adjustment{SKU: "pot", Quantity: 1, Reason: "ordered", Backorder: true}); err != nil {
				t.Fatal(err)
			}
			b.late(o, func() { b.place("pot", 1) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := market(t)
			b.item("pot", 1, flow.Retake, flow.Backorder)
			o := b.split("pot")
			pay(b, o)
			b.is(o.ID, flow.Paid)
			b.has("ann", 70, 0, 70)
			b.has("fee", 10, 0, 10)
			lines, _, err := b.Statement(ctx, "ann", "CNY", StatementFrom{}, 10)
			if err != nil || len(lines) != 1 || lines[0].About != flow.KindOrder || lines[0].ID != o.ID || lines[0].Amount != 70 {
				t.Errorf("the statement has %+v %v, want the order's 70", lines, err)
			}
		})
	}
}

// late lets the order's money come when its stock is released.
func (b *payBench) late(o Order, then ...func()) {
	b.t.Helper()
	p := b.opened(o.ID)
	b.gw.mu.Lock()
	b.gw.down = true
	b.gw.mu.Unlock()
	b.wait(25 * time.Hour)
	b.run()
	b.is(o.ID, flow.Expired)
	for _, f := range then {
		f()
	}
	b.gw.mu.Lock()
	b.gw.down = false
	b.gw.mu.Unlock()
	b.gw.pay(p.ID, 100)
	b.notify(gateway.Notification{ID: "late", Payment: p.ID, Status: gateway.Paid, Amount: 100, Currency: "CNY"})
}

func TestLateMoneyThatGoesBackMovesNothingToWallets(t *testing.T) {
	b := market(t)
	b.item("pot", 1, flow.Repay)
	o := b.split("pot")
	b.late(o)
	b.run()
	b.is(o.ID, flow.Refunded)
	b.has("ann", 0, 0, 0)
}

func TestASellerWhoseMoneyIsGoneOwesItVisibly(t *testing.T) {
	b := market(t)
	o := b.split("tee")
	b.paid(o.ID)
	b.sent("ann", 60)
	r := b.refund(o.ID, 50)
	if want := []SplitPart{{Account: "ann", Amount: 35, Receivable: 25}, {Account: "fee", Amount: 5}}; !slices.Equal(r.Splits, want) {
		t.Errorf("the refund took %+v, want %+v", r.Splits, want)
	}
	b.run()
	b.is(o.ID, flow.PartlyRefunded)
	b.owes("ann", 25)
	b.has("fee", 5, 0, 5)
	if got := b.events("ann"); !slices.Contains(got, "account.receivable") {
		t.Errorf("nobody was told: %v", got)
	}

	// What comes pays it before anything can leave.
	if _, err := b.Deposit(ctx, Key{}, "ann", "CNY", 20, "test"); err != nil {
		t.Fatal(err)
	}
	_, why := b.payout("ann", 1)
	b.wants(why, CodeInsufficientFunds)
	b.owes("ann", 5)
	b.paid(b.split("tee").ID)
	a, err := b.Account(ctx, "ann")
	if want := (WalletBalance{Currency: "CNY", Posted: 70, Receivable: 5, Available: 65}); err != nil || a.Balances[0] != want {
		t.Errorf("got %+v %v, want %+v", a.Balances, err, want)
	}
	b.wants(b.give("ann", "bob", 66), CodeInsufficientFunds)
	b.wants(b.give("ann", "bob", 65), "")
	b.has("ann", 0, 0, 0)
	lines, _, err := b.Statement(ctx, "ann", "CNY", StatementFrom{}, 100)
	if err != nil || lines[len(lines)-2].Amount != -5 || lines[len(lines)-2].About != flow.KindTransfer {
		t.Errorf("got %+v %v, want 5 that were owed before the last", lines, err)
	}
}

func TestWhatIsOwedIsCollectedByItself(t *testing.T) {
	b := market(t)
	o := b.split("tee")
	b.paid(o.ID)
	b.wants(b.give("ann", "bob", 70), "")
	b.refund(o.ID, 0)
	b.freeze("ann", true) // does not keep what the buyer has got back
	b.wants(b.give("bob", "ann", 30), "")
	sweep := func() {
		t.Helper()
		if err := b.work.sweepReceivables(ctx); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	b.owes("ann", 40)
	b.wants(b.give("bob", "ann", 40), "")
	sweep()
	b.owes("ann", 40) // it was looked a moment ago
	b.wait(collectEvery)
	sweep()
	b.has("ann", 0, 0, 0)
	b.has("fee", 0, 0, 0)
}

func TestARefundThatBreaksGivesEachItsPartAgain(t *testing.T) {
	b := market(t)
	o := b.split("tee")
	b.paid(o.ID)
	b.gw.refuses["refund"] = true
	b.wants(b.give("ann", "bob", 60), "")
	b.refund(o.ID, 0)
	b.owes("ann", 60)
	b.run()
	b.is(o.ID, flow.Paid)
	b.wants(b.give("ann", "bob", 11), CodeInsufficientFunds)
	b.has("ann", 10, 0, 10)
	b.has("fee", 10, 0, 10)
}

func TestASplitMayExceedACeiling(t *testing.T) {
	b := newPayBench(t)
	b.fund("fee", 0)
	b.fund("ann", 40, Terms{Currency: "CNY", Ceiling: 100})
	o := b.split("tee")
	b.paid(o.ID)
	b.has("ann", 110, 0, 110)
	b.refund(o.ID, 50)
	b.has("ann", 75, 0, 75)
}

func TestManyOrdersAndTicketsCarryTheirSplits(t *testing.T) {
	in := OrderInput{Lines: []LineInput{{"tee", 1}}, Splits: []SplitInput{{"ann", 70}}}
	b := market(t)
	for _, together := range []bool{false, true} {
		a, err := b.PlaceMany(ctx, Key{}, []OrderInput{in}, together)
		if err != nil || len(a.Value[0].Order.Splits) != 1 {
			t.Fatalf("together %v: %+v %v", together, a.Value, err)
		}
		b.paid(a.Value[0].Order.ID)
	}
	b.has("ann", 140, 0, 140)

	b = market(t, func(o *Options) { o.Preset = "queued" })
	ticket, err := b.PlaceQueued(ctx, keyed("k"), in, time.Minute)
	if err != nil || ticket.State != TicketHeld {
		t.Fatalf("got %+v %v", ticket, err)
	}
	b.paid(ticket.Order.ID)
	b.has("ann", 70, 0, 70)
}

func TestSplitsThatCannotBeMeantAreRefused(t *testing.T) {
	b := market(t)
	many := make([]SplitInput, MaxSplits+1)
	for i := range many {
		many[i] = SplitInput{fmt.Sprint("a", i), 1}
	}
	for _, c := range []struct {
		splits []SplitInput
		want   string
	}{
		{many, CodeTooManyItems},
		{[]SplitInput{{"nobody", 1}}, CodeAccountUnknown},
		{[]SplitInput{{"", 1}}, CodeInvalidID},
		{[]SplitInput{{"@bank", 1}}, CodeInvalidID},
		{[]SplitInput{{"ann", 0}}, CodeAmountRange},
		{[]SplitInput{{"ann", -1}}, CodeAmountRange},
		{[]SplitInput{{"ann", 1}, {"ann", 1}}, CodeInvalidField},
		{[]SplitInput{{"ann", 60}, {"bob", 41}}, CodeSplitsExceed},
	} {
		_, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 1}}, Splits: c.splits})
		if code(err) != c.want {
			t.Errorf("%+v: got %v, want %s", c.splits, err, c.want)
		}
	}
	b.available("tee", 3)
	if _, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 1}}, Splits: []SplitInput{{"ann", 60}, {"bob", 40}}}); err != nil {
		t.Errorf("all of it: %v", err)
	}
}

// Each lie is written as the next version of a true document, and taken back.
func TestVerifyFindsSplitsThatDoNotAgreeWithTheLedger(t *testing.T) {
	b := market(t)
	o := b.split("tee")
	b.paid(o.ID)
	b.wants(b.give("ann", "bob", 60), "")
	r := b.refund(o.ID, 50)
	for name, lie := range map[string]struct{ kind, id, old, new, where string }{
		"another split":       {flow.KindOrder, o.ID, `"account":"ann","amount":70`, `"account":"ann","amount":69`, "balance"},
		"another account":     {flow.KindOrder, o.ID, `"account":"fee"`, `"account":"bob"`, "balance"},
		"nothing taken back":  {flow.KindOrder, o.ID, `"amount":70,"refunded":35`, `"amount":70,"refunded":0`, "order"},
		"a part of another":   {flow.KindRefund, r.ID, `"amount":35,"receivable":25`, `"amount":36,"receivable":25`, "order"},
		"nothing is owed":     {flow.KindRefund, r.ID, `"amount":35,"receivable":25`, `"amount":35`, "balance"},
		"a split of nobody's": {flow.KindOrder, o.ID, `"splits":[`, `"splits":[{"account":"bob","amount":5,"refunded":0},`, "balance"},
	} {
		b.lie(name, lie.kind, lie.id, lie.old, lie.new, lie.where)
	}
}
