package gatewaytest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var failures = []testCase{
	{"WhatIsUnreachableIsUnknown", "", under(Unreachable)},
	{"ALostAnswerIsUnknown", "", under(Lost)},
	{"AServerErrorIsUnknown", "", under(Answers(http.StatusInternalServerError, `{"error":{"type":"api_error"}}`))},
	{"ServiceUnavailableIsUnknown", "", under(Answers(http.StatusServiceUnavailable, "<html>try later</html>"))},
	{"BadGatewayWithoutBodyIsUnknown", "", under(Answers(http.StatusBadGateway, ""))},
	{"ARateLimitIsUnknown", "", under(Answers(http.StatusTooManyRequests, "{}"))},
	{"AMissingPermissionIsUnknown", "", under(Answers(http.StatusUnauthorized, "{}"))},
	{"APageInPlaceOfAnAnswerIsUnknown", "", under(Answers(http.StatusOK, "<html>log in</html>"))},
	{"AnEmptyAnswerIsUnknown", "", under(Answers(http.StatusOK, ""))},
	{"AnAnswerThatSaysNothingIsUnknown", "", under(Answers(http.StatusOK, "{}"))},
	{"AnAnswerOfAnotherShapeIsUnknown", "", under(Answers(http.StatusOK, `[{"id":1}]`))},
	{"ANotFoundOfAnotherServerIsUnknown", "", under(Answers(http.StatusNotFound, "404 page not found"))},
	{"ARedirectIsUnknown", "", under(Answers(http.StatusFound, ""))},
	{"AfterTheDeadlineTheOutcomeIsUnknown", "", deadline},
	{"ACancelledCallIsUnknown", "", cancelled},
}

// under makes every call while the fault lasts: none of them may claim to know.
// Afterwards the truth is there to be asked for, and nothing moved twice.
func under(f Fault) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		everyCall(t, h, t.Context, func() { h.Wire.Every(f) })
	}
}

func deadline(t *testing.T, h Harness) {
	everyCall(t, h, func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}, func() { h.Wire.Every(Hung) })
}

func cancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	everyCall(t, h, func() context.Context { return ctx }, func() {})
}

func everyCall(t *testing.T, h Harness, call func() context.Context, begin func()) {
	t.Helper()
	p := h.paid(t)
	made := h.refund(p, "ref0001", p.Amount/10*3)
	made.Ref = h.refunded(t, made).Ref
	next := h.refund(p, "ref0002", p.Amount/10*3)
	fresh := h.payment()
	fresh.ID = "pay0002"
	forgotten := p
	forgotten.Ref = ""

	begin()
	if create := h.Gateway.Create(call(), fresh); h.Local {
		wantStatus(t, "create", create, gateway.Open)
	} else {
		wantOutcome(t, "create", create, gateway.Unknown)
	}
	wantOutcome(t, "query", h.Gateway.Query(call(), p), gateway.Unknown)
	wantOutcome(t, "query without ref", h.Gateway.Query(call(), forgotten), gateway.Unknown)
	wantOutcome(t, "close", h.Gateway.Close(call(), p), gateway.Unknown)
	wantOutcome(t, "close without ref", h.Gateway.Close(call(), fresh), gateway.Unknown)
	wantRefundOutcome(t, "refund", h.Gateway.Refund(call(), next), gateway.Unknown)
	wantRefundOutcome(t, "query refund", h.Gateway.QueryRefund(call(), made), gateway.Unknown)
	made.Ref = ""
	wantRefundOutcome(t, "query refund without ref", h.Gateway.QueryRefund(call(), made), gateway.Unknown)
	h.Wire.Every(nil)

	wantPaid(t, "query", h.Gateway.Query(t.Context(), p), p)
	h.refunded(t, next)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount, Refunded: p.Amount / 10 * 3 * 2})
}
