package gatewaytest

import (
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var refunds = []testCase{
	{"PartialRefundsAddUpAndNoMoreThanWasPaid", "", refundParts},
	{"TheSameRefundTwiceMovesMoneyOnce", "", refundTwice},
	{"ALostRefundAnswerMovesMoneyOnce", "", refundLost},
	{"ALostFullRefundIsNotMistakenForRefused", "", refundFullLost},
	{"RefundingAgainAfterTwoDaysMovesNothing", "", refundAfterTwoDays},
	{"AnUnpaidPaymentIsNotRefunded", "", refundUnpaid},
	{"AnUnknownRefundIsRefused", "", queryRefundUnknown},
	{"ALostRefundIsFoundByOurNumber", "", queryRefundWithoutRef},
	{"ARefundThatFailsLaterIsSeen", FailRefund, refundFails},
}

func refundParts(t *testing.T, h Harness) {
	p := h.paid(t)
	part := p.Amount / 10 * 4 / 10 * 10
	h.refunded(t, h.refund(p, "ref0001", part))
	h.refunded(t, h.refund(p, "ref0002", part))
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: 2 * part})

	over := h.Gateway.Refund(t.Context(), h.refund(p, "ref0003", part))
	wantRefundOutcome(t, "over the rest", over, gateway.Refused)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: 2 * part})

	h.refunded(t, h.refund(p, "ref0004", p.Amount-2*part))
	after := h.Gateway.Refund(t.Context(), h.refund(p, "ref0005", 10))
	wantRefundOutcome(t, "after everything", after, gateway.Refused)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: p.Amount})
}

func refundTwice(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	first := h.refunded(t, r)
	second := h.refunded(t, r)
	if first.Ref != second.Ref {
		t.Errorf("ref: got %q, want %q", second.Ref, first.Ref)
	}
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: r.Amount})
}

func refundLost(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	h.loseRefund(t, r)
	h.refunded(t, r)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: r.Amount})
}

func refundFullLost(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount)
	h.loseRefund(t, r)
	h.refunded(t, r)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: r.Amount})
}

func refundAfterTwoDays(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	h.loseRefund(t, r)
	h.Advance(48 * time.Hour)
	if a := h.Gateway.Refund(t.Context(), r); a.Outcome == gateway.Refused {
		t.Errorf("refund after two days: got refused (%s), although it was made", a.Code)
	}
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: r.Amount})
}

func refundUnpaid(t *testing.T, h Harness) {
	p := h.created(t)
	a := h.Gateway.Refund(t.Context(), h.refund(p, "ref0001", p.Amount))
	wantRefundOutcome(t, "refund", a, gateway.Refused)
	wantBooks(t, h, p, Books{})
}

func queryRefundUnknown(t *testing.T, h Harness) {
	p := h.paid(t)
	h.refunded(t, h.refund(p, "ref0001", p.Amount/10*3))
	a := h.Gateway.QueryRefund(t.Context(), h.refund(p, "ref0002", p.Amount/10*3))
	wantRefundOutcome(t, "query", a, gateway.Refused)
}

func queryRefundWithoutRef(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	h.loseRefund(t, r)
	a := h.Gateway.QueryRefund(t.Context(), r)
	wantRefundOutcome(t, "query", a, gateway.Done)
	if a.Amount != r.Amount {
		t.Errorf("amount: got %d, want %d", a.Amount, r.Amount)
	}
}

func refundFails(t *testing.T, h Harness) {
	p := h.paid(t)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	r.Ref = h.refunded(t, r).Ref
	h.Notify(true)
	if err := h.FailRefund(r); err != nil {
		t.Fatalf("fail refund: %v", err)
	}
	a := h.Gateway.QueryRefund(t.Context(), r)
	if a.Outcome != gateway.Done || a.Status != gateway.RefundFailed {
		t.Errorf("query: got %s %s (%v), want done failed", a.Outcome, a.Status, a.Err)
	}
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
	if n := h.find(t, h.Notify(true), func(n gateway.Notification) bool {
		return n.Refunded == gateway.RefundFailed
	}); n.Refund != r.ID || n.RefundID != r.Ref {
		t.Errorf("notification: got refund %q %q, want %q %q", n.Refund, n.RefundID, r.ID, r.Ref)
	}
}

// loseRefund makes the refund and loses the answer.
func (h Harness) loseRefund(t *testing.T, r gateway.Refund) {
	t.Helper()
	h.Wire.Once(CallRefund, Lost)
	a := h.Gateway.Refund(t.Context(), r)
	if h.Wire.Pending(CallRefund) {
		t.Fatal("the adapter made no call that the wire knows as refund")
	}
	if a.Outcome == gateway.Refused {
		t.Errorf("lost refund: got refused (%s), although it was made", a.Code)
	}
}

// refunded makes the refund and waits for no more than that it was taken on.
func (h Harness) refunded(t *testing.T, r gateway.Refund) gateway.RefundAnswer {
	t.Helper()
	a := h.Gateway.Refund(t.Context(), r)
	taken := a.Outcome == gateway.Accepted ||
		a.Outcome == gateway.Done && (a.Status == gateway.RefundDone || a.Status == gateway.RefundPending)
	if !taken {
		t.Fatalf("refund %s: got %s %s (%s, %v), want it taken on", r.ID, a.Outcome, a.Status, a.Code, a.Err)
	}
	if a.Outcome == gateway.Done && a.Amount != r.Amount {
		t.Errorf("refund %s: got amount %d, want %d", r.ID, a.Amount, r.Amount)
	}
	return a
}

func wantRefundOutcome(t *testing.T, what string, a gateway.RefundAnswer, want gateway.Outcome) {
	t.Helper()
	if a.Outcome != want {
		t.Errorf("%s: got %s %s (%s, %v), want %s", what, a.Outcome, a.Status, a.Code, a.Err, want)
	}
	if a.Outcome == gateway.Unknown && a.Err == nil {
		t.Errorf("%s: unknown without a reason", what)
	}
}
