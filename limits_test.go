package holdfast

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// limited makes a sale open now, with a limit for each customer.
func limited(n int64) func(*SaleInput) {
	return func(in *SaleInput) {
		in.OpensAt, in.PerCustomer = in.OpensAt.Add(-time.Hour), n
	}
}

// buy places an order of ann's for n tees; the answer is the refusal's code.
func (b *bench) buy(n int64) (Order, string) {
	a, err := b.Place(ctx, Key{}, OrderInput{Customer: "ann", Lines: []LineInput{{"tee", n}}})
	return a.Value, code(err)
}

// bought is an order of ann's that was accepted.
func (b *bench) bought(n int64) Order {
	b.t.Helper()
	o, why := b.buy(n)
	if why != "" {
		b.t.Fatalf("ann's order of %d: %s", n, why)
	}
	return o
}

func (b *bench) overLimit(n, left int64) {
	b.t.Helper()
	_, err := b.Place(ctx, Key{}, OrderInput{Customer: "ann", Lines: []LineInput{{"tee", n}}})
	var r *Rejection
	if !errors.As(err, &r) || r.Code != CodeCustomerLimit || r.SKU != "tee" || r.Available != left {
		b.t.Errorf("ann's order of %d: got %+v, want %s with %d left", n, err, CodeCustomerLimit, left)
	}
}

func TestOneCustomerNeverHasMoreThanTheLimit(t *testing.T) {
	for _, preset := range []string{"batched", "conditional", "optimistic"} {
		t.Run(preset, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.Preset = preset })
			b.item("hot", 100)
			s := b.sale(limited(5), func(in *SaleInput) { in.SKU = "hot" })
			var wait sync.WaitGroup
			var mu sync.Mutex
			codes, pieces := map[string]int{}, int64(0)
			for i := range 30 {
				wait.Go(func() {
					key := Key{Scope: "s", Value: fmt.Sprint("k", i), Print: []byte("body")}
					n := int64(i%2 + 1)
					_, err := b.Place(ctx, key, OrderInput{Customer: "ann", Lines: []LineInput{{"hot", n}}})
					mu.Lock()
					defer mu.Unlock()
					if codes[code(err)]++; err == nil {
						pieces += n
					}
				})
			}
			wait.Wait()
			if pieces != 5 || codes[""]+codes[CodeCustomerLimit] != 30 {
				t.Errorf("got %d pieces and %v, want 5 pieces and the rest over the limit", pieces, codes)
			}
			b.available("hot", 95)
			bs, err := b.store.Balances(ctx, ledger.BalanceQuery{Account: flow.Allowance("ann"), Asset: flow.Limit(s.ID)})
			if err != nil || len(bs) != 1 || bs[0].Posted != 5 || bs[0].Held != 5 {
				t.Errorf("got allowance %+v %v, want 5, all held", bs, err)
			}
		})
	}
}

func TestTheLimitIsEachCustomersOwn(t *testing.T) {
	b := newBench(t)
	b.sale(limited(1))
	for _, customer := range []string{"ann", "bob"} {
		if _, err := b.Place(ctx, Key{}, OrderInput{Customer: customer, Lines: []LineInput{{"tee", 1}}}); err != nil {
			t.Errorf("%s: %v", customer, err)
		}
	}
	if _, err := b.Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"tee", 1}}}); code(err) != CodeCustomerRequired {
		t.Errorf("nobody: got %v, want %s", err, CodeCustomerRequired)
	}
}

func TestTheLimitSaysWhatIsLeft(t *testing.T) {
	b := newBench(t)
	b.sale(limited(2))
	b.overLimit(3, 2)
	b.bought(1)
	b.overLimit(2, 1)
}

func TestASoldOutOrderUsesNoAllowance(t *testing.T) {
	b := newBench(t)
	b.item("cap", 1)
	b.sale(limited(3))
	_, err := b.Place(ctx, Key{}, OrderInput{Customer: "ann", Lines: []LineInput{{"tee", 3}, {"cap", 2}}})
	if code(err) != CodeSoldOut {
		t.Fatalf("got %v, want %s", err, CodeSoldOut)
	}
	b.bought(3)
}

func TestAnOrderDrawsOnEveryLimitOfItsLines(t *testing.T) {
	b := newBench(t)
	b.item("cap", 9)
	b.sale(limited(2))
	b.sale(limited(2), func(in *SaleInput) { in.SKU = "cap" })
	b.bought(1) // the allowance of tee is given before that of cap
	both := func(n int64) string {
		_, err := b.Place(ctx, Key{}, OrderInput{Customer: "ann", Lines: []LineInput{{"cap", n}, {"tee", 1}}})
		return code(err)
	}
	for _, c := range []struct {
		n    int64
		want string
	}{{3, CodeCustomerLimit}, {2, ""}, {1, CodeCustomerLimit}} {
		if got := both(c.n); got != c.want {
			t.Errorf("%d caps: got %q, want %q", c.n, got, c.want)
		}
	}
	b.overLimit(1, 0)
}

func TestWhatIsNotBoughtMayBeBoughtAgain(t *testing.T) {
	b := newBench(t)
	b.sale(limited(1))
	o := b.bought(1)
	b.overLimit(1, 0)
	if _, err := b.Cancel(ctx, Key{}, o.ID); err != nil {
		t.Fatal(err)
	}
	o = b.bought(1)
	b.overLimit(1, 0)
	b.wait(15 * time.Minute)
	b.run()
	b.is(o.ID, flow.Expired)
	b.bought(1)
	b.overLimit(1, 0)
}

// payFor lets the buyer pay an order.
func (b *bench) payFor(o Order) {
	b.t.Helper()
	p := b.start(o.ID)
	b.gw.pay(p.ID, o.Total)
	b.notify(gateway.Notification{Payment: p.ID, Status: gateway.Paid, Amount: o.Total, Currency: "CNY"})
	b.is(o.ID, flow.Paid)
}

func TestOnlyWhatComesBackFromABuyerMayBeBoughtAgain(t *testing.T) {
	b := newBench(t)
	b.sale(limited(2))
	o := b.bought(2)
	b.payFor(o)
	b.overLimit(1, 0)
	if _, err := b.Refund(ctx, Key{}, RefundInput{Order: o.ID, Amount: 70}); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.overLimit(1, 0)
	if _, err := b.Refund(ctx, Key{}, RefundInput{Order: o.ID, Amount: 70, Restock: []Restock{{SKU: "tee", Quantity: 1}}}); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.is(o.ID, flow.Refunded)
	b.overLimit(2, 1)
	b.bought(1)
}

// The first order expires without a definite answer of the gateway; its money
// comes when ann has bought what she may have.
func TestLateMoneyBuysNothingBeyondTheLimit(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBench(t)
		b.sale(limited(1), func(in *SaleInput) { in.ClosesAt = in.ClosesAt.Add(72 * time.Hour) })
		o := b.bought(1)
		p := b.start(o.ID)
		b.gw.down = true
		b.wait(25 * time.Hour)
		b.run()
		b.wait(25 * time.Hour)
		b.run()
		b.is(o.ID, flow.Expired)
		b.gw.down = false
		want := flow.Paid
		if again {
			b.bought(1)
			want = flow.Refunding
		}
		b.gw.pay(p.ID, 70)
		b.notify(gateway.Notification{Payment: p.ID, Status: gateway.Paid, Amount: 70, Currency: "CNY"})
		b.is(o.ID, want)
		b.overLimit(1, 0)
	}
}

func TestVerifyFindsAllowanceThatNoOrderUsed(t *testing.T) {
	b := newBench(t)
	s := b.sale(limited(2))
	b.bought(1)
	for _, c := range []struct {
		from, to ledger.Account
		problems int
	}{
		{flow.Allowance("ann"), flow.Used("ann"), 1},
		{flow.Used("ann"), flow.Allowance("ann"), 0},
		{flow.Limits, flow.Allowance("bob"), 1},
		{flow.Allowance("bob"), flow.Limits, 0},
	} {
		id, _ := newID()
		_, err := b.apply(ctx, ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(ledger.Posting{From: c.from, To: c.to, Asset: flow.Limit(s.ID), Amount: 1})}})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := b.Verify(ctx, nil)
		if err != nil || len(rep.Problems) != c.problems {
			t.Errorf("%s to %s: got %v %+v, want %d problems", c.from, c.to, err, rep.Problems, c.problems)
		}
	}
}
