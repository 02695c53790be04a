package gatewaytest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var notifications = []testCase{
	{"APaidNotificationCarriesOurNumberAmountAndCurrency", "", notifyPaid},
	{"ARefundNotificationCarriesOurRefundNumber", "", notifyRefund},
	{"AClosedPaymentIsNeverNotifiedAsPaid", "", notifyClosed},
	{"ANotificationComesAgainUntilAcknowledgedWithTheSameID", "", notifyAgain},
	{"AChangedBodyIsRefused", "", notifyTampered},
	{"ASignatureOfAnotherSecretIsRefused", "", notifyStranger},
	{"ANotificationWithoutSignatureIsRefused", Unsigned, notifyUnsigned},
	{"AnOldNotificationIsRefused", Freshness, notifyOld},
	{"ANotificationFromTheFutureIsRefused", Freshness, notifyFuture},
}

// retryAfter is longer than any gateway waits before it sends again.
const retryAfter = time.Hour

func notifyPaid(t *testing.T, h Harness) {
	p := h.paid(t)
	n := h.paidNotification(t, h.Notify(true))
	if n.Payment != p.ID {
		t.Errorf("payment: got %q, want %q", n.Payment, p.ID)
	}
	if n.Ref != "" && n.Ref != p.Ref {
		t.Errorf("ref: got %q, want %q or none", n.Ref, p.Ref)
	}
	if n.Amount != p.Amount || n.Currency != p.Currency {
		t.Errorf("got %d %s, want %d %s", n.Amount, n.Currency, p.Amount, p.Currency)
	}
	if n.Amount != h.Books(p).Captured {
		t.Errorf("got %d, want what was captured, %d", n.Amount, h.Books(p).Captured)
	}
	if n.ID == "" || n.Type == "" {
		t.Errorf("got id %q and type %q, want both", n.ID, n.Type)
	}
}

func notifyRefund(t *testing.T, h Harness) {
	p := h.paid(t)
	h.Notify(true)
	r := h.refund(p, "ref0001", p.Amount/10*3)
	h.refunded(t, r)
	n := h.find(t, h.Notify(true), func(n gateway.Notification) bool { return n.Refunded != "" })
	if n.Refund != r.ID || n.Payment != p.ID {
		t.Errorf("got refund %q of payment %q, want %q of %q", n.Refund, n.Payment, r.ID, p.ID)
	}
	if n.Amount != r.Amount || n.Currency != p.Currency {
		t.Errorf("got %d %s, want %d %s", n.Amount, n.Currency, r.Amount, p.Currency)
	}
	if n.Status != "" {
		t.Errorf("got status %q, want none: it is about a refund", n.Status)
	}
}

func notifyClosed(t *testing.T, h Harness) {
	p := h.created(t)
	wantStatus(t, "close", h.Gateway.Close(t.Context(), p), gateway.Closed)
	for _, d := range h.Notify(true) {
		if n := h.parse(t, d); n.Status == gateway.Paid {
			t.Errorf("notification %s says paid", n.ID)
		}
	}
}

func notifyAgain(t *testing.T, h Harness) {
	h.paid(t)
	first := h.paidNotification(t, h.Notify(false))
	h.Advance(retryAfter)
	again := h.find(t, h.Notify(true), func(n gateway.Notification) bool { return n.ID == first.ID })
	if again != first {
		t.Errorf("sent again: got %+v, want %+v", again, first)
	}
	h.Advance(retryAfter)
	for _, d := range h.Notify(true) {
		if n := h.parse(t, d); n.ID == first.ID {
			t.Errorf("notification %s came again after it was acknowledged", n.ID)
		}
	}
}

// notifyTampered changes one bit at many places, each of which must be covered.
func notifyTampered(t *testing.T, h Harness) {
	const step = 7 // bytes
	h.paid(t)
	for _, d := range h.Notify(true) {
		for i := 0; i < len(d.Body); i += step {
			body := slices.Clone(d.Body)
			body[i] ^= 1
			if _, err := h.Gateway.Parse(d.Header, body, h.Now()); err == nil {
				t.Fatalf("byte %d changed from %q to %q was accepted", i, d.Body[i], body[i])
			}
		}
		if _, err := h.Gateway.Parse(d.Header, nil, h.Now()); err == nil {
			t.Error("an empty body was accepted")
		}
	}
}

func notifyStranger(t *testing.T, h Harness) {
	h.paid(t)
	d := h.Notify(true)[0]
	if _, err := h.Stranger.Parse(d.Header, d.Body, h.Now()); !errors.Is(err, gateway.ErrSignatureInvalid) {
		t.Errorf("got %v, want %v", err, gateway.ErrSignatureInvalid)
	}
}

func notifyUnsigned(t *testing.T, h Harness) {
	h.paid(t)
	d := h.Unsigned(h.Notify(true)[0])
	if _, err := h.Gateway.Parse(d.Header, d.Body, h.Now()); !errors.Is(err, gateway.ErrSignatureMissing) {
		t.Errorf("got %v, want %v", err, gateway.ErrSignatureMissing)
	}
}

func notifyOld(t *testing.T, h Harness) { notifyShifted(t, h, h.Tolerance) }

func notifyFuture(t *testing.T, h Harness) { notifyShifted(t, h, -h.Tolerance) }

// notifyShifted reads a notification that is just in time, and one that is a
// second further off.
func notifyShifted(t *testing.T, h Harness, limit time.Duration) {
	h.paid(t)
	d := h.Notify(true)[0]
	sent := h.Now().Truncate(time.Second)
	if _, err := h.Gateway.Parse(d.Header, d.Body, sent.Add(limit)); err != nil {
		t.Errorf("read %s after it was sent: %v", limit, err)
	}
	beyond := limit + limit/limit.Abs()*time.Second
	if _, err := h.Gateway.Parse(d.Header, d.Body, sent.Add(beyond)); !errors.Is(err, gateway.ErrTimestamp) {
		t.Errorf("read %s after it was sent: got %v, want %v", beyond, err, gateway.ErrTimestamp)
	}
}

func (h Harness) parse(t *testing.T, d Delivery) gateway.Notification {
	t.Helper()
	n, err := h.Gateway.Parse(d.Header, d.Body, h.Now())
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return n
}

func (h Harness) paidNotification(t *testing.T, sent []Delivery) gateway.Notification {
	t.Helper()
	return h.find(t, sent, func(n gateway.Notification) bool { return n.Status == gateway.Paid })
}

// find returns the first notification that matches; all of them must be
// authentic.
func (h Harness) find(t *testing.T, sent []Delivery, match func(gateway.Notification) bool) gateway.Notification {
	t.Helper()
	var found *gateway.Notification
	for _, d := range sent {
		if n := h.parse(t, d); found == nil && match(n) {
			found = &n
		}
	}
	if found == nil {
		t.Fatalf("none of %d notifications is the one looked for", len(sent))
	}
	return *found
}
