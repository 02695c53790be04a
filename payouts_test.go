package holdfast

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

func TestOfManyPayoutsAtOnceOnlyThoseThatTheBalanceCoversAreHeld(t *testing.T) {
	for preset := range presets {
		t.Run(preset, func(t *testing.T) {
			b := newPayBench(t, func(o *Options) { o.Preset = preset })
			b.fund("hot", 100)
			var wait sync.WaitGroup
			var mu sync.Mutex
			codes := map[string]int{}
			for range 64 {
				wait.Go(func() {
					_, why := b.payout("hot", 60)
					mu.Lock()
					defer mu.Unlock()
					codes[why]++
				})
			}
			wait.Wait()
			if codes[""] != 1 || codes[CodeInsufficientFunds] != 63 {
				t.Errorf("got %v, want 1 held and 63 refused", codes)
			}
			b.has("hot", 100, 60, 40)
		})
	}
}

func TestAPayoutLeavesOnceAndItsFeeApart(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	p := b.sent("ann", 60, func(in *PayoutInput) { in.Fee = 2 })
	if p.State != flow.PayoutHeld {
		t.Errorf("it is %s, want held", p.State)
	}
	b.has("ann", 100, 62, 38)
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	b.has("ann", 38, 0, 38)
	if left, out := b.out.net(p.ID); left != 60 || out != 1 {
		t.Errorf("%d left in %d payments, want 60 in one", left, out)
	}
}

func TestWhatTheGatewayRefusesIsReleased(t *testing.T) {
	b := newPayBench(t)
	b.out.draw = func(string, gateway.Payout) string { return "refused" }
	b.fund("ann", 100)
	p := b.sent("ann", 60)
	b.run()
	if got := b.payoutIs(p.ID, flow.PayoutFailed); got.Code != "balance_short" {
		t.Errorf("got code %q, want balance_short", got.Code)
	}
	b.has("ann", 100, 0, 100)
}

func TestATimeOutIsNotAFailure(t *testing.T) {
	for do, left := range map[string]int64{"lost_after": 60, "lost_before": 60, "late": 60} {
		t.Run(do, func(t *testing.T) {
			b := newPayBench(t)
			calls := 0
			b.out.draw = func(what string, _ gateway.Payout) string {
				if calls++; calls == 1 {
					return do
				}
				return ""
			}
			b.fund("ann", 100)
			p := b.sent("ann", 60)
			b.run()
			if got := b.payoutIs(p.ID, flow.PayoutUnknown); got.NextTryAt == 0 {
				t.Error("nobody is to ask what became of it")
			}
			b.has("ann", 100, 60, 40)
			if _, err := b.CancelPayout(ctx, Key{}, p.ID); code(err) != CodeInvalidState {
				t.Errorf("cancelled with %v, want %s", err, CodeInvalidState)
			}
			for range 20 {
				b.wait(time.Minute)
				b.run()
			}
			b.payoutIs(p.ID, flow.PayoutPaid)
			b.has("ann", 40, 0, 40)
			if got, out := b.out.net(p.ID); got != left || out != 1 {
				t.Errorf("%d left in %d payments, want %d in one", got, out, left)
			}
		})
	}
}

func TestANumberThatMayBeForgottenIsNeverSentAgain(t *testing.T) {
	b := newPayBench(t)
	b.out.draw = func(what string, _ gateway.Payout) string {
		if what == "payout" {
			return "lost_before"
		}
		return ""
	}
	b.fund("ann", 100)
	p := b.sent("ann", 60)
	for range 23 * 6 {
		b.run()
		b.wait(10 * time.Minute)
	}
	before := b.out.payments
	for range 11 {
		b.wait(10 * time.Minute)
		b.run()
		b.payoutIs(p.ID, flow.PayoutUnknown)
	}
	if b.out.payments != before || before < 10 {
		t.Errorf("the number was sent %d times, %d of them after 23 hours", b.out.payments, b.out.payments-before)
	}
	b.wait(10 * time.Minute)
	b.run()
	b.payoutIs(p.ID, flow.PayoutFailed)
	b.has("ann", 100, 0, 100)
}

func TestMoneyThatComesBackHasItsOwnEntry(t *testing.T) {
	b := newPayBench(t)
	b.out.draw = func(string, gateway.Payout) string { return "paid_returned" }
	b.fund("ann", 100)
	p := b.sent("ann", 60, func(in *PayoutInput) { in.Fee = 2 })
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	for range 4 {
		b.wait(24 * time.Hour)
		b.run()
	}
	b.payoutIs(p.ID, flow.PayoutReturned)
	b.has("ann", 98, 0, 98)
	lines, more, err := b.Statement(ctx, "ann", "CNY", StatementFrom{}, 10)
	if err != nil || more || len(lines) != 4 || lines[3].Amount != 60 || lines[3].Balance != 98 || lines[3].ID != p.ID {
		t.Errorf("got %+v %v %v, want a deposit, two lines of the payout and its return", lines, more, err)
	}
}

func TestAWorkerThatDiedInTheCallIsFollowedByAQuestion(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	p := b.sent("ann", 60)
	if _, _, err := b.advancePayout(ctx, p.ID, flow.Event{On: flow.Send}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	b.out.draw = func(what string, _ gateway.Payout) string {
		asked = append(asked, what)
		return "paid"
	}
	for range 5 {
		b.run()
		b.wait(time.Minute)
	}
	b.payoutIs(p.ID, flow.PayoutPaid)
	if want := []string{"query", "payout"}; fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("the gateway was asked %v, want %v", asked, want)
	}
}

// A worker that was stopped with its task in its hands, and goes on when another
// one has done it, sends nothing; and neither does the other if the first is in
// the middle of its call.
func TestAWorkerThatWasStoppedPaysNothingTwice(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	p := b.sent("ann", 30)
	task := b.claimed(p.ID)
	b.wait(b.o.lease())
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	if err := b.work.runPayout(ctx, task); err != nil {
		t.Fatal(err)
	}
	if b.out.payments != 1 {
		t.Errorf("the number was sent %d times, want once", b.out.payments)
	}

	p = b.sent("ann", 30)
	b.out.draw = func(what string, _ gateway.Payout) string {
		if what == "payout" {
			b.out.draw = func(string, gateway.Payout) string { return "" }
			b.wait(b.o.lease()) // the first worker is in its call, and the lease is over
			b.out.mu.Unlock()
			for _, want := range []State{flow.PayoutUnknown, flow.PayoutUnknown, flow.PayoutPaid} { // it asks first, and is told that there is nothing
				if err := b.work.runPayout(ctx, b.claimed(p.ID)); err != nil {
					t.Error(err)
				}
				b.payoutIs(p.ID, want)
			}
			b.out.mu.Lock()
		}
		return "paid"
	}
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	if left, out := b.out.net(p.ID); left != 30 || out != 1 {
		t.Errorf("%d left in %d payments, want 30 in one", left, out)
	}
}

// claimed is a payout's task, in a worker's hands.
func (b *payBench) claimed(payout string) Task {
	b.t.Helper()
	t, err := document[Task](ctx, b.Holdfast, flow.KindTask, payout)
	if err != nil {
		b.t.Fatal(err)
	}
	t, ok, err := b.work.claim(ctx, t)
	if err != nil || !ok {
		b.t.Fatalf("the task is not to be had: %v", err)
	}
	return t
}

func TestAPayoutIsCancelledOnlyBeforeItIsSent(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	p := b.sent("ann", 60)
	key := Key{Scope: "s", Value: "c", Print: []byte("c")}
	for _, replayed := range []bool{false, true} {
		if a, err := b.CancelPayout(ctx, key, p.ID); err != nil || a.Value.State != flow.PayoutCancelled || a.Replayed != replayed {
			t.Errorf("got %+v %v", a, err)
		}
	}
	b.run()
	b.payoutIs(p.ID, flow.PayoutCancelled)
	b.has("ann", 100, 0, 100)
	if b.out.payments != 0 {
		t.Error("a cancelled payout was sent")
	}
}

func TestARefusedKeyStaysRefused(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 50)
	ask := func(key string) string {
		in := PayoutInput{Account: "ann", Currency: "CNY", Amount: 60, Gateway: "out", Destination: "bob"}
		_, err := b.RequestPayout(ctx, Key{Scope: "s", Value: key, Print: []byte("body")}, in)
		return code(err)
	}
	if got := ask("poor"); got != CodeInsufficientFunds {
		t.Errorf("got %s", got)
	}
	b.freeze("ann", true)
	if got := ask("frozen"); got != CodeAccountFrozen {
		t.Errorf("got %s", got)
	}
	b.freeze("ann", false)
	if _, err := b.Deposit(ctx, Key{}, "ann", "CNY", 100, "more"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"poor": CodeInsufficientFunds, "frozen": CodeAccountFrozen, "new": ""} {
		if got := ask(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	b.has("ann", 150, 60, 90)
}

func TestWhatTheGatewayWouldSurelyRefuseHoldsNothing(t *testing.T) {
	b := newPayBench(t)
	b.fund("ann", 100)
	if _, why := b.payout("ann", 60, func(in *PayoutInput) { in.Destination = "nowhere" }); why != CodePayoutUnfit {
		t.Errorf("got %q, want %s", why, CodePayoutUnfit)
	}
	b.has("ann", 100, 0, 100)
}

func (b *payBench) freeze(account string, frozen bool) {
	b.t.Helper()
	if _, err := b.Freeze(ctx, Key{}, account, frozen, "test"); err != nil {
		b.t.Fatal(err)
	}
}
