package stripesim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func (b *bench) refund(intent string, params ...string) answer {
	b.t.Helper()
	return b.post("/v1/refunds", append([]string{"payment_intent", intent}, params...)...)
}

func TestSeveralPartialRefundsUpToThePayment(t *testing.T) {
	b := newBench(t)
	id := b.paidIntent()
	for _, amount := range []string{"300", "300"} {
		if a := b.refund(id, "amount", amount, "reason", "requested_by_customer", "metadata[refund_id]", "r"); a.status != 200 || a.text("status") != "succeeded" {
			t.Errorf("got %d %s", a.status, a.raw)
		}
	}
	over := b.refund(id, "amount", "401")
	b.want(over, 400, "<nil>")
	if over.text("error", "param") != "amount" || !strings.Contains(over.raw, "$4.01 USD) is greater than unrefunded amount on charge ($4.00 USD)") {
		t.Errorf("got %s", over.raw)
	}
	if a := b.refund(id); a.text("amount") != "400" {
		t.Errorf("got %s, want the rest of 400", a.raw)
	}
	b.want(b.refund(id), 400, "charge_already_refunded")
	b.want(b.refund(id, "amount", "1"), 400, "charge_already_refunded")
	if p := b.payment(id); p.Refunded != 1000 || p.Captured != 1000 || len(p.Refunds) != 3 {
		t.Errorf("got %+v", p)
	}
	if got := len(b.get("/v1/refunds", "payment_intent", id).ids()); got != 3 {
		t.Errorf("got %d refunds listed, want 3", got)
	}
}

func TestWhatWasNotPaidIsNotRefunded(t *testing.T) {
	b := newBench(t)
	b.want(b.refund(b.intent()), 400, "<nil>")
	declined := b.intent()
	b.must(b.sim.Decline(declined))
	b.want(b.refund(declined), 400, "<nil>")
	b.want(b.post("/v1/refunds", "charge", b.get("/v1/payment_intents/"+declined).text("latest_charge")), 400, "<nil>")
	b.want(b.refund("pi_none"), 404, "resource_missing")
	b.want(b.post("/v1/refunds"), 400, "parameter_missing")
	id := b.paidIntent()
	for _, amount := range []string{"0", "-1", "1.5"} {
		b.want(b.refund(id, "amount", amount), 400, "parameter_invalid_integer")
	}
	b.want(b.refund(id, "reason", "changed my mind"), 400, "<nil>")
	if p := b.payment(id); len(p.Refunds) != 0 {
		t.Errorf("got %+v, want no refunds", p.Refunds)
	}
}

func TestARefundIsInWholeUnitsOfTheCurrency(t *testing.T) {
	b := newBench(t)
	id := b.intent("description", "in dinars")
	dinars := b.post("/v1/payment_intents", "amount", "1000", "currency", "kwd").text("id")
	for _, pi := range []string{id, dinars} {
		b.must(b.sim.Pay(pi))
	}
	b.want(b.refund(dinars, "amount", "105"), 400, "<nil>")
	for pi, amount := range map[string]string{id: "105", dinars: "110"} {
		if a := b.refund(pi, "amount", amount); a.status != 200 {
			t.Errorf("got %d %s", a.status, a.raw)
		}
	}
}

func TestARefundMayNameTheCharge(t *testing.T) {
	b := newBench(t)
	id := b.paidIntent()
	charge := b.get("/v1/payment_intents/" + id).text("latest_charge")
	a := b.post("/v1/refunds", "charge", charge, "amount", "100", "expand[]", "charge", "expand[]", "payment_intent")
	if a.text("payment_intent", "id") != id || a.text("charge", "amount_refunded") != "100" {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	b.want(b.post("/v1/refunds", "charge", "ch_none"), 404, "resource_missing")
}

func TestAPendingRefundSettlesLater(t *testing.T) {
	b := newBench(t)
	id := b.paidIntent()
	b.sim.SetFaults(stripesim.Faults{RefundPending: 1})
	re := b.refund(id, "amount", "600")
	if re.text("status") != "pending" {
		t.Errorf("got %s, want pending", re.text("status"))
	}
	if p := b.payment(id); p.Refunded != 0 || p.RefundPending != 600 {
		t.Errorf("got %+v", p)
	}
	b.want(b.refund(id, "amount", "401"), 400, "<nil>")
	b.deliver()
	b.clock.Advance(30 * time.Second)
	if got := types(b.deliver()); got != "refund.updated" {
		t.Errorf("got %s, want refund.updated", got)
	}
	if p := b.payment(id); p.Refunded != 600 || p.RefundPending != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestAFailedRefundGivesTheMoneyBack(t *testing.T) {
	for name, pending := range map[string]float64{"after success": 0, "while pending": 1} {
		b := newBench(t)
		id := b.paidIntent()
		b.sim.SetFaults(stripesim.Faults{RefundPending: pending})
		re := b.refund(id).text("id")
		b.deliver()
		b.must(b.sim.FailRefund(re))
		b.clock.Advance(time.Minute)
		if got := types(b.deliver()); got != "refund.updated refund.failed" {
			t.Errorf("%s: got %s", name, got)
		}
		if a := b.get("/v1/refunds/" + re); a.text("status") != "failed" || a.at("failure_reason") == nil {
			t.Errorf("%s: got %s", name, a.raw)
		}
		if p := b.payment(id); p.Refunded != 0 || p.RefundPending != 0 {
			t.Errorf("%s: got %+v", name, p)
		}
		if a := b.refund(id); a.text("amount") != "1000" {
			t.Errorf("%s: got %s, want all of it refundable again", name, a.raw)
		}
		if err := b.sim.FailRefund(re); err == nil {
			t.Errorf("%s: failed twice", name)
		}
	}
}

func TestARefundIsTold(t *testing.T) {
	b := newBench(t)
	id := b.paidIntent()
	b.deliver()
	re := b.refund(id, "amount", "250", "metadata[refund_id]", "r1").text("id")
	got := b.deliver()
	if types(got) != "refund.created charge.refunded" {
		t.Fatalf("got %s", types(got))
	}
	if o := got[0].Object; o["id"] != re || o["amount"] != 250.0 || o["metadata"].(map[string]any)["refund_id"] != "r1" {
		t.Errorf("got %v", o)
	}
	if o := got[1].Object; o["amount_refunded"] != 250.0 || o["refunded"] != false {
		t.Errorf("got %v", o)
	}
}
