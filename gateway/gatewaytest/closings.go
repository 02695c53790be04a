package gatewaytest

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var closings = []testCase{
	{"AClosedPaymentTakesNoMoney", "", closeOpen},
	{"ClosingTwiceIsClosed", "", closeTwice},
	{"ClosingWhatWasPaidSaysPaid", "", closePaid},
	{"MoneyFasterThanCloseIsSeenByClose", "", closePaidMeanwhile},
	{"ClosingWithoutRefClosesTheLostPayment", "", closeLost},
	{"ClosingWhatWasNeverCreatedKeepsItFromBeingPaid", "", closeNeverCreated},
	{"ClosingWithoutRefAfterTwoDaysStillSeesTheMoney", "", closeLatePaid},
	{"ALostCloseAnswerIsFoundOut", "", closeAnswerLost},
	{"AFailedCloseIsUnknownAndThePaymentStaysOpen", "", closeFailed},
	{"ABuyerWhoHasNotComeYetMayStillPay", "", closeUnvisited},
	{"ABuyerWhoNeverCameCannotPayAfterTheDeadline", "", closeUnvisitedLate},
}

func closeOpen(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	if err := h.Pay(p); err == nil {
		t.Error("the buyer paid what was closed")
	}
	wantBooks(t, h, p, Books{})
}

func closeTwice(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	wantStatus(t, "close again", h.Gateway.Close(t.Context(), p), gateway.Closed)
}

func closePaid(t *testing.T, h Harness) {
	p := h.paid(t)
	wantPaid(t, "close", h.Gateway.Close(t.Context(), p), p)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
}

func closePaidMeanwhile(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Open)
	h.Wire.Once(CallClose, After(func() { h.pay(t, p) }))
	wantPaid(t, "close", h.Gateway.Close(t.Context(), p), p)
	if h.Wire.Pending(CallClose) {
		t.Fatal("the adapter made no call that the wire knows as close")
	}
}

func closeLost(t *testing.T, h Harness) {
	p := h.lost(t)
	ref := h.Gateway.Query(t.Context(), p).Ref
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	p.Ref = ref
	if err := h.Pay(p); err == nil {
		t.Error("the buyer paid what was closed")
	}
}

// closeNeverCreated: a create call may still be on its way when the order is
// given up.
func closeNeverCreated(t *testing.T, h Harness) {
	p := h.payment()
	h.Advance(20 * time.Minute)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	late := h.Gateway.Create(t.Context(), p)
	if late.Outcome == gateway.Done && late.Status != gateway.Closed {
		t.Errorf("create after close: got %s, want closed or nothing", late.Status)
	}
	if p.Ref = late.Ref; p.Ref != "" && h.Pay(p) == nil {
		t.Error("the buyer paid what was closed")
	}
}

func closeLatePaid(t *testing.T, h Harness) {
	p := h.lost(t)
	p.Ref = h.Gateway.Query(t.Context(), p).Ref
	h.pay(t, p)
	h.Advance(48 * time.Hour)
	p.Ref = ""
	wantPaid(t, "close", h.Gateway.Close(t.Context(), p), p)
}

func closeAnswerLost(t *testing.T, h Harness) {
	p := h.created(t)
	h.Wire.Once(CallClose, Lost)
	a := h.Gateway.Close(t.Context(), p)
	if a.Outcome != gateway.Unknown && (a.Outcome != gateway.Done || a.Status != gateway.Closed) {
		t.Errorf("lost close: got %s %s, want unknown or closed", a.Outcome, a.Status)
	}
	wantStatus(t, "close again", h.Gateway.Close(t.Context(), p), gateway.Closed)
}

func closeFailed(t *testing.T, h Harness) {
	p := h.created(t)
	h.Wire.Once(CallClose, Answers(http.StatusServiceUnavailable, "try later"))
	wantOutcome(t, "close", h.Gateway.Close(t.Context(), p), gateway.Unknown)
	h.pay(t, p)
	wantPaid(t, "close again", h.Gateway.Close(t.Context(), p), p)
}

// closeUnvisited: that a gateway has not heard of a payment closes nothing.
func closeUnvisited(t *testing.T, h Harness) {
	if h.Visit == nil {
		t.Skip("not applicable: a payment exists as soon as it was created")
	}
	p := h.offered(t)
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Open)
	wantOutcome(t, "close", h.Gateway.Close(t.Context(), p), gateway.Unknown)
	h.Advance(p.ExpiresAt.Sub(h.Now()) - time.Second)
	wantOutcome(t, "close just before the deadline", h.Gateway.Close(t.Context(), p), gateway.Unknown)
	h.pay(t, p)
	wantPaid(t, "close after payment", h.Gateway.Close(t.Context(), p), p)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
}

func closeUnvisitedLate(t *testing.T, h Harness) {
	if h.Visit == nil {
		t.Skip("not applicable: a payment exists as soon as it was created")
	}
	p := h.offered(t)
	h.Advance(p.ExpiresAt.Sub(h.Now()) + time.Second)
	wantOutcome(t, "close just after the deadline", h.Gateway.Close(t.Context(), p), gateway.Unknown)
	h.Advance(5 * time.Minute)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Closed)
	if err := h.Pay(p); err == nil {
		t.Error("the buyer paid what was closed")
	}
}
