package holdfast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// give moves CNY; the answer is the refusal's code.
func (b *payBench) give(from, to string, n int64) string {
	_, err := b.Transfer(ctx, Key{}, TransferInput{From: from, To: to, Currency: "CNY", Amount: n})
	return code(err)
}

func (b *payBench) wants(got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

func TestATransferNeverOverdraws(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	b.fund("bob", 0)
	b.wants(b.give("ann", "bob", 60), "")
	b.wants(b.give("ann", "bob", 41), CodeInsufficientFunds)
	b.wants(b.give("ann", "bob", 40), "")
	b.has("ann", 0, 0, 0)
	b.has("bob", 100, 0, 100)
}

func TestAFloorIsKeptAndACreditLineCanBeUsed(t *testing.T) {
	b := newPayBench(t)
	b.fund("bob", 0)
	b.fund("low", 100)
	if _, err := b.SetTerms(ctx, Key{}, "low", []Terms{{Currency: "CNY", Floor: 101}}, 0); code(err) != CodeInsufficientFunds {
		t.Errorf("a floor above the balance: got %v", err)
	}
	if _, err := b.SetTerms(ctx, Key{}, "low", []Terms{{Currency: "CNY", Floor: 30}}, 0); err != nil {
		t.Fatal(err)
	}
	b.has("low", 100, 0, 70)
	b.wants(b.give("low", "bob", 71), CodeInsufficientFunds)
	b.wants(b.give("low", "bob", 70), "")
	b.has("low", 30, 0, 0)

	b.fund("credit", 0, Terms{Currency: "CNY", Floor: -50})
	b.has("credit", 0, 0, 50)
	b.wants(b.give("credit", "bob", 51), CodeInsufficientFunds)
	b.wants(b.give("credit", "bob", 50), "")
	b.has("credit", -50, 0, 0)
	if _, err := b.SetTerms(ctx, Key{}, "credit", nil, 0); code(err) != CodeInsufficientFunds {
		t.Errorf("taking back a credit that is used: got %v", err)
	}
}

func TestACeilingIsKeptByWhatComesAndWhatIsOnItsWay(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 500)
	b.fund("full", 0, Terms{Currency: "CNY", Ceiling: 100})
	b.wants(b.give("ann", "full", 101), CodeCeiling)
	hold, err := b.Hold(ctx, Key{}, HoldInput{TransferInput: TransferInput{From: "ann", To: "full", Currency: "CNY", Amount: 60}})
	if err != nil {
		t.Fatal(err)
	}
	b.wants(b.give("ann", "full", 41), CodeCeiling)
	b.wants(b.give("ann", "full", 40), "")
	if _, err := b.CommitHold(ctx, Key{}, hold.Value.ID, 50, false); err != nil {
		t.Fatal(err)
	}
	b.has("full", 90, 0, 90)
	b.wants(b.give("full", "ann", 30), "")
	b.wants(b.give("ann", "full", 41), CodeCeiling)
	for terms, want := range map[Terms]string{{Currency: "CNY", Ceiling: 59}: CodeCeiling, {Currency: "CNY"}: CodeLimits, {Currency: "CNY", Ceiling: 80}: ""} {
		_, err := b.SetTerms(ctx, Key{}, "full", []Terms{terms}, 0)
		b.wants(code(err), want)
	}
	b.wants(b.give("ann", "full", 21), CodeCeiling)
	b.wants(b.give("ann", "full", 20), "")
}

func TestMoneyThatComesBackIsTakenEvenByAFullAccount(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 500)
	b.fund("full", 100, Terms{Currency: "CNY", Ceiling: 100})
	p := b.sent("full", 60)
	b.run()
	b.wants(b.give("ann", "full", 60), "")
	if _, _, err := b.advancePayout(ctx, p.ID, flow.Event{On: flow.PayoutBack}); err != nil {
		t.Fatal(err)
	}
	b.payoutIs(p.ID, flow.PayoutReturned)
	b.has("full", 160, 0, 160)
	if _, err := b.SetTerms(ctx, Key{}, "full", []Terms{{Currency: "CNY", Ceiling: 160}}, 0); err != nil {
		t.Fatal(err)
	}
	b.wants(b.give("ann", "full", 1), CodeCeiling)
}

func TestAFrozenAccountKeepsItsMoneyAndMayGetMore(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	b.fund("bob", 10)
	hold, err := b.Hold(ctx, Key{}, HoldInput{TransferInput: TransferInput{From: "ann", To: "bob", Currency: "CNY", Amount: 10}})
	if err != nil {
		t.Fatal(err)
	}
	p := b.sent("ann", 20)
	b.freeze("ann", true)
	b.wants(b.give("ann", "bob", 1), CodeAccountFrozen)
	_, err = b.CommitHold(ctx, Key{}, hold.Value.ID, 0, false)
	b.wants(code(err), CodeAccountFrozen)
	_, why := b.payout("ann", 1)
	b.wants(why, CodeAccountFrozen)
	b.wants(b.give("bob", "ann", 1), "")
	b.run()
	b.payoutIs(p.ID, flow.PayoutHeld)
	b.freeze("ann", false)
	b.wait(time.Minute)
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	b.wants(b.give("ann", "bob", 1), "")
}

func TestAHoldIsCommittedInPartsExtendedAndExpires(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	b.fund("bob", 0)
	hold := func() string {
		h, err := b.Hold(ctx, Key{}, HoldInput{TransferInput: TransferInput{From: "ann", To: "bob", Currency: "CNY", Amount: 30}, HoldFor: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return h.Value.ID
	}
	id := hold()
	commit := func(n int64, keep bool) string {
		_, err := b.CommitHold(ctx, Key{}, id, n, keep)
		return code(err)
	}
	b.wants(commit(10, true), "")
	b.has("ann", 90, 20, 70)
	b.wants(commit(21, true), CodeExceedsHold)
	b.wants(commit(5, false), "")
	b.has("ann", 85, 0, 85)
	b.wants(commit(1, false), CodeHoldFinal)
	_, err := b.VoidHold(ctx, Key{}, id)
	b.wants(code(err), CodeHoldFinal)

	id = hold()
	if h, err := b.ExtendHold(ctx, Key{}, id, time.Hour); err != nil || h.Value.ExpiresAt != h.Value.CreatedAt.Add(time.Hour) {
		t.Errorf("got %+v %v", h.Value, err)
	}
	b.wait(2 * time.Minute)
	b.sweep()
	b.has("ann", 85, 30, 55)
	b.wait(time.Hour)
	b.sweep()
	b.has("ann", 85, 0, 85)
	b.wants(commit(0, false), CodeHoldFinal)
}

func (b *payBench) sweep() {
	b.t.Helper()
	if err := b.work.sweepHolds(ctx); err != nil {
		b.t.Fatal(err)
	}
}

func TestLimitsOfPayoutsAreKept(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 1000, Terms{Currency: "CNY", PerPayout: 60, PerDay: 100, ApproveAbove: 50})
	_, why := b.payout("ann", 61)
	b.wants(why, CodePayoutLimit)
	b.sent("ann", 45)
	b.sent("ann", 45)
	_, why = b.payout("ann", 11)
	b.wants(why, CodeDailyLimit)
	cancelled := b.sent("ann", 10)
	if _, err := b.CancelPayout(ctx, Key{}, cancelled.ID); err != nil {
		t.Fatal(err)
	}
	b.sent("ann", 10)
	b.run()
	_, why = b.payout("ann", 1)
	b.wants(why, CodeDailyLimit)
	b.wait(15 * time.Hour)
	b.sent("ann", 50)
}

func TestTheSecondPersonIsNotTheFirst(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100, Terms{Currency: "CNY", ApproveAbove: 50})
	_, why := b.payout("ann", 51, func(in *PayoutInput) { in.By = "" })
	b.wants(why, CodeInvalidField)
	p := b.sent("ann", 51)
	b.run()
	b.payoutIs(p.ID, flow.PayoutPending)
	b.has("ann", 100, 51, 49)
	for by, want := range map[string]string{"": CodeSelfApproval, "ann": CodeSelfApproval} {
		_, err := b.ApprovePayout(ctx, Key{}, p.ID, by)
		b.wants(code(err), want)
	}
	a, err := b.ApprovePayout(ctx, Key{}, p.ID, "eve")
	if err != nil || a.Value.State != flow.PayoutHeld || a.Value.ApprovedBy != "eve" {
		t.Errorf("got %+v %v", a.Value, err)
	}
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	_, err = b.ApprovePayout(ctx, Key{}, p.ID, "eve")
	b.wants(code(err), CodeInvalidState)
}

func TestASecondPayoutToOneDestinationIsPointedOut(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	first := b.sent("ann", 10)
	if first.DuplicateOf != "" {
		t.Errorf("the first is called a duplicate of %s", first.DuplicateOf)
	}
	if p := b.sent("ann", 11); p.DuplicateOf != first.ID {
		t.Errorf("got %q, want %s", p.DuplicateOf, first.ID)
	}
	if p := b.sent("ann", 10, func(in *PayoutInput) { in.Destination = "eve" }); p.DuplicateOf != "" {
		t.Errorf("another destination is called a duplicate of %s", p.DuplicateOf)
	}
	b.run()
	b.wait(25 * time.Hour)
	if p := b.sent("ann", 10); p.DuplicateOf != "" {
		t.Errorf("a day later: %q", p.DuplicateOf)
	}
}

func TestThePastOfAnAccountIsInTheJournal(t *testing.T) {
	b := newPayBench(t)
	b.fund("bob", 0)
	start := b.now()
	b.wait(time.Second)
	b.fund("ann", 100)
	if _, err := b.SetTerms(ctx, Key{}, "ann", []Terms{{Currency: "CNY", Floor: 10}}, 1); err != nil {
		t.Fatal(err)
	}
	var want []int64
	for i := range 5 {
		b.wait(time.Minute)
		b.wants(b.give("ann", "bob", int64(i+1)), "")
		a, err := b.Account(ctx, "ann")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, a.Balances[0].Posted)
	}
	for i, n := range want {
		got, err := b.AccountAt(ctx, "ann", start.Add(time.Second+time.Duration(i+1)*time.Minute))
		if err != nil || len(got) != 1 || got[0].Posted != n {
			t.Errorf("after %d minutes: got %+v %v, want %d", i+1, got, err, n)
		}
	}
	if got, err := b.AccountAt(ctx, "ann", start); err != nil || len(got) != 0 {
		t.Errorf("before it was opened: got %+v %v", got, err)
	}
	var all []StatementLine
	from := StatementFrom{}
	for more := true; more; {
		page, rest, err := b.Statement(ctx, "ann", "CNY", from, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("got %d lines, %v", len(page), err)
		}
		all, more = append(all, page...), rest
		from = StatementFrom{page[len(page)-1].Seq, page[len(page)-1].Balance}
	}
	if len(all) != 6 || all[5].Balance != 85 || all[0].Amount != 100 || all[5].About != flow.KindTransfer || all[5].ID == "" {
		t.Errorf("got %+v, want 6 lines that end with 85", all)
	}
}

func TestManyTransfersAreMadeTogetherOrEachOnItsOwn(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	b.fund("bob", 0)
	b.fund("eve", 0)
	in := []TransferInput{
		{From: "ann", To: "bob", Currency: "CNY", Amount: 100},
		{From: "ann", To: "eve", Currency: "CNY", Amount: 1},
		{From: "bob", To: "eve", Currency: "CNY", Amount: 40},
	}
	if _, err := b.TransferMany(ctx, Key{}, in, true); code(err) != CodeInsufficientFunds {
		t.Errorf("together: got %v, want %s", err, CodeInsufficientFunds)
	}
	b.has("ann", 100, 0, 100)
	key := Key{Scope: "s", Value: "many", Print: []byte("many")}
	for _, replayed := range []bool{false, true} {
		a, err := b.TransferMany(ctx, key, in, false)
		if err != nil || a.Replayed != replayed || a.Value[0].Transfer == nil || a.Value[1].Code != CodeInsufficientFunds || a.Value[2].Transfer == nil {
			t.Errorf("each: got %+v %v", a, err)
		}
	}
	if _, err := b.Transfer(ctx, Key{Scope: "s", Value: "many", Print: []byte("one")}, in[2]); code(err) != CodeKeyReused {
		t.Errorf("the key for another request: %v", err)
	}
	if a, err := b.TransferMany(ctx, Key{}, []TransferInput{in[2], {From: "eve", To: "ann", Currency: "CNY", Amount: 80}}, true); err != nil || len(a.Value) != 2 {
		t.Errorf("together, out of what comes in: %+v %v", a, err)
	}
	b.has("ann", 80, 0, 80)
	in[0].From = "nobody"
	if a, err := b.TransferMany(ctx, Key{}, in, false); err != nil || a.Value[0].Code != CodeAccountUnknown || a.Value[2].Code != CodeInsufficientFunds {
		t.Errorf("each, one from nobody: %+v %v", a, err)
	}
	if _, err := b.TransferMany(ctx, Key{}, in, true); code(err) != CodeAccountUnknown {
		t.Errorf("together, one from nobody: %v", err)
	}
	if _, err := b.TransferMany(ctx, Key{}, make([]TransferInput, MaxBulk+1), true); code(err) != CodeTooManyItems {
		t.Errorf("too many: %v", err)
	}
}

// Whatever an account is called, it is no other part of the books.
func TestNoRequestReachesAnythingButWallets(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	b.fund("stock", 5) // a name like any other
	for _, id := range []string{"@bank", "@till", "@supplier", "wallet/ann", "daily/ann", "room/ann", "", "a b", "ａｎｎ", strings.Repeat("x", 65)} {
		if got := b.give(id, "ann", 1); got != CodeInvalidID {
			t.Errorf("from %q: got %s", id, got)
		}
		if got := b.give("ann", id, 1); got != CodeInvalidID {
			t.Errorf("to %q: got %s", id, got)
		}
		if _, err := b.OpenAccount(ctx, Key{}, AccountInput{ID: id}); id != "" && code(err) != CodeInvalidID {
			t.Errorf("open %q: got %v", id, err)
		}
		if _, err := b.Deposit(ctx, Key{}, id, "CNY", 1, "x"); code(err) != CodeNotFound {
			t.Errorf("deposit to %q: got %v", id, err)
		}
	}
	for _, id := range []string{"revenue", "sold", "backorder", "nobody"} {
		b.wants(b.give("ann", id, 1), CodeAccountUnknown)
		b.wants(b.give(id, "ann", 1), CodeAccountUnknown)
	}
	b.wants(b.give("stock", "ann", 5), "")
	for n, want := range map[int64]string{0: CodeAmountRange, -1: CodeAmountRange, ledger.MaxAmount + 1: CodeAmountRange} {
		b.wants(b.give("ann", "stock", n), want)
	}
	b.wants(b.give("ann", "ann", 1), CodeInvalidField)
	for _, currency := range []string{"cny", "XXX", "CNYY", "sku:tee", ""} {
		_, err := b.Transfer(ctx, Key{}, TransferInput{From: "ann", To: "stock", Currency: currency, Amount: 1})
		b.wants(code(err), CodeCurrencyInvalid)
	}
	_, err := b.OpenAccount(ctx, Key{}, AccountInput{ID: "ann"})
	b.wants(code(err), CodeAccountExists)
	b.available("tee", 3)
}

func TestPayoutsThatCannotBeMeantAreRefused(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	for name, c := range map[string]struct {
		change func(*PayoutInput)
		want   string
	}{
		"no account":      {func(in *PayoutInput) { in.Account = "nobody" }, CodeAccountUnknown},
		"outside":         {func(in *PayoutInput) { in.Account = "@bank" }, CodeInvalidID},
		"nothing":         {func(in *PayoutInput) { in.Amount = 0 }, CodeAmountRange},
		"too much":        {func(in *PayoutInput) { in.Amount = ledger.MaxAmount + 1 }, CodeAmountRange},
		"negative fee":    {func(in *PayoutInput) { in.Fee = -1 }, CodeAmountRange},
		"fee not covered": {func(in *PayoutInput) { in.Fee = 91 }, CodeInsufficientFunds},
		"no destination":  {func(in *PayoutInput) { in.Destination = "" }, CodeInvalidField},
		"long name":       {func(in *PayoutInput) { in.Destination = strings.Repeat("x", 256) }, CodeInvalidField},
		"currency":        {func(in *PayoutInput) { in.Currency = "usd" }, CodeCurrencyInvalid},
		"other money":     {func(in *PayoutInput) { in.Currency = "USD" }, CodeInsufficientFunds},
		"no gateway":      {func(in *PayoutInput) { in.Gateway = "none" }, CodeGatewayUnknown},
		"no payer":        {func(in *PayoutInput) { in.Gateway = "till" }, CodeGatewayUnknown},
		"which gateway":   {func(in *PayoutInput) { in.Gateway = "" }, CodeGatewayUnknown},
	} {
		if _, why := b.payout("ann", 10, c.change); why != c.want {
			t.Errorf("%s: got %q, want %q", name, why, c.want)
		}
	}
	b.has("ann", 100, 0, 100)
	if rs, err := b.Payouts(ctx, PayoutFilter{Account: "ann"}); err != nil || len(rs) != 0 {
		t.Errorf("got %+v %v", rs, err)
	}
	for i := range 3 {
		b.sent("ann", int64(i+1))
	}
	rs, err := b.Payouts(ctx, PayoutFilter{Account: "ann", State: flow.PayoutHeld, Limit: 2})
	if err != nil || len(rs) != 2 || rs[0].Amount != 3 {
		t.Errorf("got %v %v, want the newest two", fmt.Sprint(rs), err)
	}
}
