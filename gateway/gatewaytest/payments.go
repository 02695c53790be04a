package gatewaytest

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var payments = []testCase{
	{"AnOpenPaymentTellsTheBuyerWhereToPay", "", openIsPayable},
	{"CreatingTwiceIsOnePayment", "", createTwice},
	{"CreatingAtOnceIsOnePayment", "", createAtOnce},
	{"ALostCreateAnswerLeavesOnePayment", "", createLost},
	{"ALostPaymentIsFoundByOurNumber", "", queryWithoutRef},
	{"CreatingAgainAfterTwoDaysMakesNoSecondPayment", "", createAfterTwoDays},
	{"AMethodThatDoesNotExistIsRefused", "", createWithoutMethod},
	{"AnUnknownPaymentIsRefused", "", queryUnknown},
	{"QuerySeesOpenThenPaid", "", queryPaid},
	{"QuerySeesClosed", "", queryClosed},
	{"ADeclinedTryLeavesThePaymentOpen", Decline, declined},
}

func openIsPayable(t *testing.T, h Harness) {
	a := h.Gateway.Create(t.Context(), h.payment())
	wantStatus(t, "create", a, gateway.Open)
	if a.Ref == "" {
		t.Error("no ref")
	}
	if a.URL == "" && a.Secret == "" {
		t.Error("neither an address nor a secret to pay with")
	}
}

func createTwice(t *testing.T, h Harness) {
	p := h.created(t)
	again := p
	again.Ref = ""
	h.Advance(5 * time.Minute)
	a := h.Gateway.Create(t.Context(), again)
	wantStatus(t, "create again", a, gateway.Open)
	if a.Ref != p.Ref {
		t.Errorf("ref: got %q, want %q", a.Ref, p.Ref)
	}
	h.pay(t, p)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
}

func createAtOnce(t *testing.T, h Harness) {
	const callers = 8
	p := h.payment()
	answers := make([]gateway.Answer, callers)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = h.Gateway.Create(t.Context(), p) })
	}
	all.Wait()
	a := h.Gateway.Create(t.Context(), p)
	wantStatus(t, "create", a, gateway.Open)
	for i, other := range answers {
		if other.Outcome == gateway.Refused {
			t.Errorf("caller %d: refused (%s)", i, other.Code)
		}
		if other.Outcome == gateway.Done && other.Ref != a.Ref {
			t.Errorf("caller %d: got ref %q, want %q", i, other.Ref, a.Ref)
		}
	}
}

func createLost(t *testing.T, h Harness) {
	if h.Local {
		t.Skip("not applicable: create makes no call")
	}
	p := h.payment()
	h.Wire.Once(CallCreate, Lost)
	a := h.Gateway.Create(t.Context(), p)
	if h.Wire.Pending(CallCreate) {
		t.Fatal("the adapter made no call that the wire knows as create")
	}
	if a.Outcome == gateway.Refused {
		t.Errorf("lost create: got refused (%s), although the payment exists", a.Code)
	}
	a = h.Gateway.Create(t.Context(), p)
	wantStatus(t, "create again", a, gateway.Open)
	p.Ref = a.Ref
	h.pay(t, p)
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
}

func queryWithoutRef(t *testing.T, h Harness) {
	p := h.lost(t)
	a := h.Gateway.Query(t.Context(), p)
	wantStatus(t, "query without ref", a, gateway.Open)
	p.Ref = a.Ref
	h.pay(t, p)
	p.Ref = ""
	wantStatus(t, "query without ref after payment", h.Gateway.Query(t.Context(), p), gateway.Paid)
}

func createAfterTwoDays(t *testing.T, h Harness) {
	p := h.lost(t)
	found := h.Gateway.Query(t.Context(), p)
	wantStatus(t, "query", found, gateway.Open)
	p.Ref = found.Ref
	h.pay(t, p)

	h.Advance(48 * time.Hour)
	p.Ref = ""
	a := h.Gateway.Create(t.Context(), p)
	if a.Outcome == gateway.Done && (a.Ref != found.Ref || a.Status != gateway.Paid) {
		t.Errorf("create after two days: got %s %s, want paid %s", a.Status, a.Ref, found.Ref)
	}
	if a.Outcome == gateway.Refused {
		t.Errorf("create after two days: got refused (%s), although the payment exists", a.Code)
	}
	p.Ref = found.Ref
	wantBooks(t, h, p, Books{Payments: 1, Captured: p.Amount})
}

func createWithoutMethod(t *testing.T, h Harness) {
	p := h.payment()
	p.Method = "shells"
	wantOutcome(t, "create", h.Gateway.Create(t.Context(), p), gateway.Refused)
}

func queryUnknown(t *testing.T, h Harness) {
	h.created(t)
	other := h.payment()
	other.ID = "pay0002"
	wantOutcome(t, "query", h.Gateway.Query(t.Context(), other), gateway.Refused)
}

func queryPaid(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Open)
	h.pay(t, p)
	a := h.Gateway.Query(t.Context(), p)
	wantPaid(t, "query", a, p)
	if a.Ref != p.Ref {
		t.Errorf("ref: got %q, want %q", a.Ref, p.Ref)
	}
}

func queryClosed(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Closed)
}

func declined(t *testing.T, h Harness) {
	p := h.created(t)
	if err := h.Decline(p); err != nil {
		t.Fatalf("decline: %v", err)
	}
	wantStatus(t, "query", h.Gateway.Query(t.Context(), p), gateway.Open)
	for _, d := range h.Notify(true) {
		if n := h.parse(t, d); n.Status == gateway.Paid || n.Status == gateway.Closed {
			t.Errorf("a declined try is notified as %s", n.Status)
		}
	}
	h.pay(t, p)
	wantPaid(t, "query", h.Gateway.Query(t.Context(), p), p)
}

func wantPaid(t *testing.T, what string, a gateway.Answer, p gateway.Payment) {
	t.Helper()
	wantStatus(t, what, a, gateway.Paid)
	if a.Amount != p.Amount || a.Currency != p.Currency {
		t.Errorf("%s: got %d %s, want %d %s", what, a.Amount, a.Currency, p.Amount, p.Currency)
	}
}
