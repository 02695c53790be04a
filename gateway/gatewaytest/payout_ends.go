package gatewaytest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

var payoutEnds = []payoutCase{
	{"APayoutUnderWayIsPendingAndThenPaid", Pending, pendThenPaid},
	{"APayoutUnderWayIsPendingAndThenFailed", Pending, pendThenFailed},
	{"APayoutThatWasPaidAndCameBackSaysSoDaysLater", Return, paidThenBack},
	{"ARecalledPayoutFailsAndItsMoneyStays", Recall, recallPending},
	{"APaidPayoutCannotBeRecalled", Recall, recallPaid},
	{"RecallingWhatIsNotThereIsNoSuccess", Recall, recallNeverSent},
	{"RecallingTwiceIsRecalledOnce", Recall, recallTwice},
}

func pendThenPaid(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	h.wantPayout(t, p, gateway.PayoutPending)
	if err := h.Pay(p); err != nil {
		t.Fatalf("pay %s: %v", p.ID, err)
	}
	h.wantPayout(t, p, gateway.PayoutPaid)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func pendThenFailed(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	h.wantPayout(t, p, gateway.PayoutPending)
	if err := h.Fail(p); err != nil {
		t.Fatalf("fail %s: %v", p.ID, err)
	}
	h.wantPayout(t, p, gateway.PayoutFailed)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1})
}

func paidThenBack(t *testing.T, h PayoutHarness) {
	p := h.paid(t)
	h.Advance(72 * time.Hour)
	if err := h.Bounce(p); err != nil {
		t.Fatalf("bounce %s: %v", p.ID, err)
	}
	h.wantPayout(t, p, gateway.PayoutReturned, gateway.PayoutFailed)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1})
}

func (h PayoutHarness) recall(t *testing.T, p gateway.Payout) gateway.PayoutAnswer {
	t.Helper()
	return h.Gateway.(gateway.Recaller).RecallPayout(t.Context(), p)
}

// recallPending loses the answer of a first recall and repeats it.
func recallPending(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	h.Wire.Once(CallRecall, Lost)
	wantPayoutOutcome(t, "a lost recall", h.recall(t, p), gateway.Unknown)
	if h.Wire.Pending(CallRecall) {
		t.Fatal("the adapter made no call that the wire knows as recall")
	}
	h.Advance(time.Hour)
	h.wantPayout(t, p, gateway.PayoutFailed)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1})
	if err := h.Pay(p); err == nil {
		t.Error("it was paid after it was taken back")
	}
}

func recallPaid(t *testing.T, h PayoutHarness) {
	p := h.paid(t)
	wantPayoutOutcome(t, "recall", h.recall(t, p), gateway.Refused)
	h.wantPayout(t, p, gateway.PayoutPaid)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func recallNeverSent(t *testing.T, h PayoutHarness) {
	p := h.payout()
	if a := h.recall(t, p); a.Outcome == gateway.Accepted || a.Outcome == gateway.Done {
		t.Errorf("recall: got %s, want refused or unknown", a.Outcome)
	}
	h.wantPayoutBooks(t, p, PayoutBooks{})
}

func recallTwice(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	wantPayoutOutcome(t, "recall", h.recall(t, p), gateway.Accepted)
	if a := h.recall(t, p); a.Outcome == gateway.Unknown {
		t.Errorf("recall again: got unknown (%v)", a.Err)
	}
	h.Advance(time.Hour)
	h.wantPayout(t, p, gateway.PayoutFailed)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1})
}

var payoutNotices = []payoutCase{
	{"APaidPayoutIsNotifiedWithItsNumberAndAmount", Notices, noticePaid},
	{"AFailedPayoutIsNotified", Notices, noticeFailed},
	{"APayoutThatCameBackIsNotified", Notices, noticeBack},
	{"AChangedOrForgedPayoutNotificationIsRefused", Notices, noticeForged},
}

// notice finds the notification that says what became of p.
func (h PayoutHarness) notice(t *testing.T, p gateway.Payout, want ...gateway.PayoutStatus) {
	t.Helper()
	n := Harness{Gateway: h.Gateway, Now: h.Now}.find(t, h.Notify(true), func(n gateway.Notification) bool {
		return slices.Contains(want, n.PaidOut)
	})
	if n.Payout != p.ID || (n.PayoutID != "" && n.PayoutID != p.Ref) || n.ID == "" || n.Type == "" || n.Ignored {
		t.Errorf("got %+v, want it about payout %s, %s", n, p.ID, p.Ref)
	}
	if n.Payment != "" || n.Refund != "" || n.Status != "" || n.Refunded != "" {
		t.Errorf("got %+v, want it about nothing but a payout", n)
	}
	if n.Amount != 0 && (n.Amount != p.Amount || n.Currency != p.Currency) {
		t.Errorf("got %d %s, want %d %s, or no amount", n.Amount, n.Currency, p.Amount, p.Currency)
	}
}

func noticePaid(t *testing.T, h PayoutHarness) { h.notice(t, h.paid(t), gateway.PayoutPaid) }

func noticeFailed(t *testing.T, h PayoutHarness) {
	if !h.able(t, Pending) {
		t.Skipf("not applicable: %s", h.Lacks[Pending])
	}
	p := h.sent(t)
	h.Notify(true)
	if err := h.Fail(p); err != nil {
		t.Fatalf("fail %s: %v", p.ID, err)
	}
	h.notice(t, p, gateway.PayoutFailed)
}

func noticeBack(t *testing.T, h PayoutHarness) {
	if !h.able(t, Return) {
		t.Skipf("not applicable: %s", h.Lacks[Return])
	}
	p := h.paid(t)
	h.Notify(true)
	if err := h.Bounce(p); err != nil {
		t.Fatalf("bounce %s: %v", p.ID, err)
	}
	h.notice(t, p, gateway.PayoutReturned, gateway.PayoutFailed)
}

func noticeForged(t *testing.T, h PayoutHarness) {
	const step = 7 // bytes
	h.paid(t)
	sent := h.Notify(true)
	if len(sent) == 0 {
		t.Fatal("nothing was notified")
	}
	for _, d := range sent {
		if _, err := h.Stranger.Parse(d.Header, d.Body, h.Now()); !errors.Is(err, gateway.ErrSignatureInvalid) {
			t.Errorf("of another secret: got %v, want %v", err, gateway.ErrSignatureInvalid)
		}
		for i := 0; i < len(d.Body); i += step {
			body := slices.Clone(d.Body)
			body[i] ^= 1
			if _, err := h.Gateway.Parse(d.Header, body, h.Now()); err == nil {
				t.Fatalf("byte %d changed from %q to %q was accepted", i, d.Body[i], body[i])
			}
		}
	}
}
