package holdfast

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

// recaller is a sender that can take back what is under way, and whose payouts
// wait for their receiver.
type recaller struct {
	*sender
	deaf  int // recalls that are not answered
	hears func(s *sending)
	asked int
}

func (g *recaller) RecallPayout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked++; g.asked <= g.deaf {
		return gateway.PayoutAnswer{Outcome: gateway.Unknown, Err: errLost}
	}
	s := g.settle(p.ID)
	if s == nil || s.status != gateway.PayoutPending {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "too late"}
	}
	g.hears(s)
	return gateway.PayoutAnswer{Outcome: gateway.Accepted}
}

func (g *recaller) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	a := g.sender.QueryPayout(ctx, p)
	if a.Status == gateway.PayoutPending {
		a.Confirm = "package of " + p.ID
	}
	return a
}

// newRecallBench has a gateway whose payouts are pending for an hour.
func newRecallBench(t *testing.T) (*payBench, *recaller) {
	g := &recaller{}
	b := newPayBench(t, func(o *Options) {
		g.sender = o.Gateways["out"].(*sender)
		o.Gateways["out"] = g
	})
	b.out.draw = func(what string, _ gateway.Payout) string {
		return map[string]string{"payout": "pending_paid"}[what]
	}
	g.hears = func(s *sending) { s.to, s.settles = gateway.PayoutFailed, b.out.clock().Add(time.Minute) }
	b.fund("ann", 100)
	return b, g
}

// submitted is a payout of 60 that is under way.
func (b *payBench) submitted() Payout {
	b.t.Helper()
	p := b.sent("ann", 60, func(in *PayoutInput) { in.Fee = 2 })
	b.run()
	return b.payoutIs(p.ID, flow.PayoutSubmitted)
}

func (b *payBench) recall(id string) Payout {
	b.t.Helper()
	a, err := b.CancelPayout(ctx, Key{}, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Value
}

func TestARecalledPayoutIsCancelledWhenTheGatewaySaysThatItFailed(t *testing.T) {
	for deaf := range 3 {
		b, g := newRecallBench(t)
		g.deaf = deaf
		p := b.submitted()
		if got := b.recall(p.ID); got.State != flow.PayoutSubmitted || got.Recall != flow.RecallWanted {
			t.Errorf("got %s, recall %q, want it submitted, and wanted", got.State, got.Recall)
		}
		b.has("ann", 100, 62, 38)
		for range 10 {
			b.run()
			b.wait(time.Minute)
		}
		if got := b.payoutIs(p.ID, flow.PayoutCancelled); got.Recall != flow.RecallAsked || got.Confirm != "" {
			t.Errorf("recall %q, confirm %q, want it asked, and nothing to confirm", got.Recall, got.Confirm)
		}
		b.has("ann", 100, 0, 100)
		if _, out := b.out.net(p.ID); out != 0 {
			t.Errorf("it was cancelled, and %d payments left", out)
		}
		if want := []string{"payout.held", "payout.submitted", "payout.recall"}; !slices.Equal(b.events(p.ID)[:3], want) {
			t.Errorf("got events %v, want %v first", b.events(p.ID), want)
		}
	}
}

func TestARecallThatComesTooLateLeavesThePayoutPaid(t *testing.T) {
	b, g := newRecallBench(t)
	p := b.submitted()
	g.hears = func(*sending) {} // taken on, and overtaken by its receiver
	b.recall(p.ID)
	b.run()
	b.wait(2 * time.Hour)
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	b.has("ann", 38, 0, 38)
	if _, err := b.CancelPayout(ctx, Key{}, p.ID); code(err) != CodeInvalidState {
		t.Errorf("a paid one: got %v, want %s", err, CodeInvalidState)
	}
}

func TestWhatTheReceiverNeedsIsShownWhileHeHasToAgree(t *testing.T) {
	b, _ := newRecallBench(t)
	p := b.submitted()
	b.wait(time.Minute)
	b.run()
	if got := b.payoutIs(p.ID, flow.PayoutSubmitted); got.Confirm != "package of "+p.ID {
		t.Errorf("got %q to confirm", got.Confirm)
	}
	b.wait(2 * time.Hour)
	b.run()
	if got := b.payoutIs(p.ID, flow.PayoutPaid); got.Confirm != "" {
		t.Errorf("it is paid, and there is %q to confirm", got.Confirm)
	}
}

// told sends a notification about a payout as its gateway would.
func (b *payBench) told(p Payout, id string, status gateway.PayoutStatus, change ...func(*gateway.Notification)) {
	b.t.Helper()
	n := gateway.Notification{ID: id, Type: "payout." + string(status), Payout: p.ID, PayoutID: "ref", PaidOut: status, Amount: p.Amount, Currency: p.Currency}
	for _, f := range change {
		f(&n)
	}
	body, _ := json.Marshal(n)
	if err := b.Notify(ctx, "out", nil, body); err != nil {
		b.t.Fatal(err)
	}
}

// Whatever order they come in, however often: the money is where the gateway's
// last word has it.
func TestNotificationsOfAPayoutMoveItsMoneyOnce(t *testing.T) {
	paid, failed, back, pending := gateway.PayoutPaid, gateway.PayoutFailed, gateway.PayoutReturned, gateway.PayoutPending
	for name, c := range map[string]struct {
		says []gateway.PayoutStatus
		want State
		has  int64
	}{
		"paid":                    {[]gateway.PayoutStatus{paid}, flow.PayoutPaid, 38},
		"paid twice":              {[]gateway.PayoutStatus{paid, pending, paid}, flow.PayoutPaid, 38},
		"failed twice":            {[]gateway.PayoutStatus{failed, failed}, flow.PayoutFailed, 100},
		"paid and failed":         {[]gateway.PayoutStatus{paid, failed, failed, paid}, flow.PayoutReturned, 98},
		"paid and returned":       {[]gateway.PayoutStatus{paid, back, failed, paid, back}, flow.PayoutReturned, 98},
		"the return is first":     {[]gateway.PayoutStatus{back, paid, back}, flow.PayoutFailed, 100},
		"pending changes nothing": {[]gateway.PayoutStatus{pending, pending}, flow.PayoutSubmitted, 100},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newRecallBench(t)
			p := b.submitted()
			for i, s := range c.says {
				b.told(p, string(s)+string(rune('0'+i)), s)
			}
			b.payoutIs(p.ID, c.want)
			held := int64(0)
			if c.want == flow.PayoutSubmitted {
				held = 62
			}
			b.has("ann", c.has, held, c.has-held)
		})
	}
}

func TestANotificationThatIsNotAboutThisPayoutIsTold(t *testing.T) {
	for name, change := range map[string]func(*gateway.Notification){
		"amount":     func(n *gateway.Notification) { n.Amount++ },
		"currency":   func(n *gateway.Notification) { n.Currency = "USD" },
		"gateway id": func(n *gateway.Notification) { n.PayoutID = "another" },
	} {
		b, _ := newRecallBench(t)
		p := b.submitted()
		b.told(p, "n1", gateway.PayoutPaid, change)
		if got := b.payoutIs(p.ID, flow.PayoutSubmitted); got.Code != flow.Contradiction || got.NextTryAt == 0 {
			t.Errorf("%s: code %q, next try at %d, want the contradiction, and that it is asked about", name, got.Code, got.NextTryAt)
		}
		b.has("ann", 100, 62, 38)
		if e := b.events(p.ID); e[len(e)-1] != "payout.contradiction" {
			t.Errorf("%s: nobody was told: %v", name, e)
		}
	}
	b, _ := newRecallBench(t)
	p := b.submitted()
	for _, elsewhere := range []func(*gateway.Notification){
		func(n *gateway.Notification) { n.Payout = "nobody" },
		func(n *gateway.Notification) { n.ID, n.PaidOut = "n2", "eaten" },
	} {
		b.told(p, "n1", gateway.PayoutPaid, elsewhere)
		b.payoutIs(p.ID, flow.PayoutSubmitted)
	}
	body, _ := json.Marshal(gateway.Notification{ID: "n3", Payout: p.ID, PaidOut: gateway.PayoutPaid})
	if err := b.Notify(ctx, "till", nil, body); err != nil {
		t.Fatal(err)
	}
	b.payoutIs(p.ID, flow.PayoutSubmitted) // it is another gateway's
}

// A payout that takes days is not asked about every 30 seconds.
func TestALongPayoutIsAskedAboutMoreRarely(t *testing.T) {
	b, _ := newRecallBench(t)
	p := b.submitted()
	b.out.mu.Lock()
	b.out.sent[p.ID].settles = b.now().Add(3 * 24 * time.Hour)
	b.out.mu.Unlock()
	questions := 0
	b.out.draw = func(string, gateway.Payout) string { questions++; return "" }
	for range 4 * 24 * 2 {
		b.wait(30 * time.Minute)
		b.run()
	}
	b.payoutIs(p.ID, flow.PayoutPaid)
	if questions > 150 {
		t.Errorf("it was asked about %d times in 3 days, want about 100", questions)
	}
}
