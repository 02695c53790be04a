package flow

import "testing"

func (s *shop) pays(gateway, method string) {
	s.t.Helper()
	if code := s.on(Event{On: Pay, Gateway: gateway, Method: method}); code != "" {
		s.t.Fatalf("pay by %s: refused as %s", gateway, code)
	}
}

func (s *shop) attempt(n int) Payment {
	s.t.Helper()
	for _, p := range s.c.Payments {
		if p.ID == PaymentID("o", n) {
			return p
		}
	}
	s.t.Fatalf("there is no attempt %d", n)
	return Payment{}
}

func (s *shop) attemptIs(n int, state State, do Do) {
	s.t.Helper()
	if p := s.attempt(n); p.State != state || s.todo(p.ID) != do {
		s.t.Errorf("attempt %d is %s with the task %s, want %s and %s", n, p.State, s.todo(p.ID), state, do)
	}
}

// A buyer who opened Alipay and takes WeChat Pay instead pays once: the second
// attempt exists at no gateway before the first is closed.
func TestAnotherWayToPayWaitsUntilTheFirstIsClosed(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.pays("alipay", "qr")
	s.on(Event{On: Opened, ID: PaymentID("o", 1)})
	s.pays("wechatpay", "native")
	s.attemptIs(1, Open, DoClose)
	s.attemptIs(2, Waiting, DoNone)
	s.pays("wechatpay", "native") // a double click is the same attempt
	if len(s.c.Payments) != 2 {
		t.Fatalf("%d attempts, want 2", len(s.c.Payments))
	}
	s.now += 700
	s.on(Event{On: ClosedThere, ID: PaymentID("o", 1)})
	s.attemptIs(1, AttemptClosed, DoNone)
	s.attemptIs(2, Requested, DoCreate)
	if p := s.attempt(2); p.ExpiresAt != s.now+1000 || s.c.Order.ExpiresAt != p.ExpiresAt {
		t.Errorf("the second may be paid until %d, want its whole second until %d", p.ExpiresAt, s.now+1000)
	}
	s.is(Paying)
	s.on(Event{On: Opened, ID: PaymentID("o", 2)})
	s.paid(PaymentID("o", 2))
	s.is(Paid)
	s.has(Clearing("wechatpay"), "CNY", -100)
}

func TestTheFirstWayToPayIsPaidWhileTheSecondWaits(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.pays("alipay", "qr")
	s.on(Event{On: Opened, ID: PaymentID("o", 1)})
	s.pays("stripe", "checkout")
	s.paid(PaymentID("o", 1))
	s.is(Paid)
	s.attemptIs(2, AttemptClosed, DoNone)
	s.has(Clearing("alipay"), "CNY", -100)
}

// The gateway said closed and took money all the same: the order is paid, and
// what the second attempt brings goes back by itself.
func TestMoneyOfBothWaysToPayIsRefundedOnce(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.pays("alipay", "qr")
	s.on(Event{On: Opened, ID: PaymentID("o", 1)})
	s.pays("wechatpay", "native")
	s.on(Event{On: ClosedThere, ID: PaymentID("o", 1)})
	s.on(Event{On: Opened, ID: PaymentID("o", 2)})
	s.paid(PaymentID("o", 1))
	s.is(Paid)
	s.attemptIs(2, Open, DoClose)
	s.paid(PaymentID("o", 2))
	s.is(Paid)
	if len(s.c.Refunds) != 1 || s.c.Refunds[0].Payment != PaymentID("o", 2) || s.todo(s.c.Refunds[0].ID) != DoRefund {
		t.Errorf("got refunds %+v, want one of the second attempt", s.c.Refunds)
	}
}

func TestWhoChangesHisMindTwiceLeavesOneAttempt(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.pays("alipay", "qr")
	s.pays("wechatpay", "native")
	s.pays("stripe", "checkout")
	s.attemptIs(1, Requested, DoClose)
	s.attemptIs(2, AttemptClosed, DoNone)
	s.attemptIs(3, Waiting, DoNone)
	s.on(Event{On: Refused, ID: PaymentID("o", 1)})
	s.attemptIs(3, Requested, DoCreate)
}

func TestACancelEndsTheAttemptThatWaits(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.pays("alipay", "qr")
	s.pays("wechatpay", "native")
	s.on(Event{On: Cancel})
	s.is(Closing)
	s.attemptIs(2, AttemptClosed, DoNone)
	s.on(Event{On: ClosedThere, ID: PaymentID("o", 1)})
	s.is(Cancelled)
	s.has(Stock, "sku:tee", 1)
}
