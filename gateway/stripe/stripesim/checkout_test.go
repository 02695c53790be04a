package stripesim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestASessionHasNoIntentUntilTheBuyerPays(t *testing.T) {
	b := newBench(t)
	id := b.session()
	open := b.get("/v1/checkout/sessions/" + id)
	if open.at("payment_intent") != nil || open.text("status") != "open" || open.text("payment_status") != "unpaid" {
		t.Errorf("got %s", open.raw)
	}
	if got, want := open.text("url"), b.url+"/pay/"+id; got != want {
		t.Errorf("got url %s, want %s", got, want)
	}
	if got := open.text("amount_total"); got != "1234" {
		t.Errorf("got %s, want 1234", got)
	}
	b.must(b.sim.Pay(id))
	done := b.get("/v1/checkout/sessions/"+id, "expand[]", "payment_intent")
	if done.text("status") != "complete" || done.text("payment_status") != "paid" || done.at("url") != nil {
		t.Errorf("got %s", done.raw)
	}
	if done.text("payment_intent", "metadata", "order_id") != "order-1" || done.text("payment_intent", "amount_received") != "1234" {
		t.Errorf("got %s", done.raw)
	}
	if err := b.sim.Pay(id); err == nil {
		t.Errorf("paid twice")
	}
}

func TestADeclinedBuyerMayTryAgain(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.must(b.sim.Decline(id))
	if a := b.get("/v1/checkout/sessions/" + id); a.text("status") != "open" {
		t.Errorf("got %s, want open", a.text("status"))
	}
	b.must(b.sim.Pay(id))
	got := types(b.deliver())
	want := "payment_intent.created charge.failed payment_intent.payment_failed charge.succeeded payment_intent.succeeded checkout.session.completed"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(b.sim.Books().Payments); n != 1 {
		t.Errorf("got %d payments, want 1", n)
	}
}

func TestExpiresAtIsBetween30MinutesAnd24Hours(t *testing.T) {
	b := newBench(t)
	now := b.clock.Now()
	for life, status := range map[time.Duration]int{
		30*time.Minute - time.Second: 400, 30 * time.Minute: 200, 24 * time.Hour: 200, 24*time.Hour + time.Second: 400,
	} {
		a := b.post("/v1/checkout/sessions", append([]string{"expires_at", fmt.Sprint(now.Add(life).Unix())}, sessionOf1234...)...)
		if a.status != status {
			t.Errorf("%v: got %d, want %d", life, a.status, status)
		}
	}
	if got, want := b.get("/v1/checkout/sessions/"+b.session()).text("expires_at"), fmt.Sprintf("%v", float64(now.Add(24*time.Hour).Unix())); got != want {
		t.Errorf("got default %s, want %s", got, want)
	}
}

func TestASessionExpiresByItself(t *testing.T) {
	b := newBench(t)
	id := b.session("expires_at", fmt.Sprint(b.clock.Now().Add(30*time.Minute).Unix()))
	b.must(b.sim.Decline(id))
	b.clock.Advance(30*time.Minute - time.Second)
	if a := b.get("/v1/checkout/sessions/" + id); a.text("status") != "open" {
		t.Errorf("got %s, want open", a.text("status"))
	}
	b.deliver()
	b.clock.Advance(time.Second)
	if got := types(b.deliver()); got != "payment_intent.canceled checkout.session.expired" {
		t.Errorf("got %s", got)
	}
	if err := b.sim.Pay(id); err == nil {
		t.Errorf("an expired session was paid")
	}
}

func TestOnlyAnOpenSessionCanBeExpired(t *testing.T) {
	b := newBench(t)
	for name, before := range map[string]func(id string){
		"complete": func(id string) { b.must(b.sim.Pay(id)) },
		"expired":  func(id string) { b.post("/v1/checkout/sessions/" + id + "/expire") },
	} {
		id := b.session()
		before(id)
		a := b.post("/v1/checkout/sessions/" + id + "/expire")
		b.want(a, 400, "<nil>")
		if a.text("error", "type") != "invalid_request_error" || !strings.Contains(a.text("error", "message"), name) {
			t.Errorf("%s: got %s", name, a.raw)
		}
	}
	b.want(b.post("/v1/checkout/sessions/cs_none/expire"), 404, "resource_missing")
	id := b.session()
	if a := b.post("/v1/checkout/sessions/" + id + "/expire"); a.status != 200 || a.text("status") != "expired" {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	if err := b.sim.Pay(id); err == nil {
		t.Errorf("an expired session was paid")
	}
}

func TestTheIntentOfASessionCannotBeCancelledOrConfirmed(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.must(b.sim.Decline(id))
	pi := b.get("/v1/checkout/sessions/" + id).text("payment_intent")
	for _, act := range []string{"cancel", "confirm"} {
		if a := b.post("/v1/payment_intents/" + pi + "/" + act); a.status != 400 || !strings.Contains(a.raw, "created by Checkout") {
			t.Errorf("%s: got %d %s", act, a.status, a.raw)
		}
	}
	b.must(b.sim.Pay(pi))
	if a := b.get("/v1/checkout/sessions/" + id); a.text("payment_status") != "paid" {
		t.Errorf("got %s, want paid", a.text("payment_status"))
	}
}

func TestASlowMethodCompletesTheSessionUnpaid(t *testing.T) {
	for name, c := range map[string]struct {
		settle        func(*stripesim.Sim, string) error
		status, event string
	}{
		"paid":   {func(s *stripesim.Sim, id string) error { return s.Pay(id) }, "paid", "checkout.session.async_payment_succeeded"},
		"failed": {(*stripesim.Sim).Decline, "unpaid", "checkout.session.async_payment_failed"},
	} {
		b := newBench(t)
		id := b.session()
		b.must(b.sim.Pay(id, stripesim.Async()))
		if a := b.get("/v1/checkout/sessions/" + id); a.text("status") != "complete" || a.text("payment_status") != "unpaid" {
			t.Errorf("%s: got %s", name, a.raw)
		}
		if got := types(b.deliver()); got != "payment_intent.created payment_intent.processing checkout.session.completed" {
			t.Errorf("%s: got %s", name, got)
		}
		if err := b.sim.Pay(id, stripesim.Async()); err == nil {
			t.Errorf("%s: processing was started twice", name)
		}
		b.must(c.settle(b.sim, id))
		if got := types(b.deliver()); !strings.HasSuffix(got, c.event) {
			t.Errorf("%s: got %s, want %s at the end", name, got, c.event)
		}
		if a := b.get("/v1/checkout/sessions/" + id); a.text("payment_status") != c.status {
			t.Errorf("%s: got %s, want %s", name, a.text("payment_status"), c.status)
		}
		if err := b.sim.Pay(id); err == nil {
			t.Errorf("%s: a settled session was paid again", name)
		}
	}
}

func TestSessionsAreListedByIntentAndStatus(t *testing.T) {
	b := newBench(t)
	open, done := b.session(), b.session()
	b.must(b.sim.Pay(done))
	pi := b.get("/v1/checkout/sessions/" + done).text("payment_intent")
	for want, params := range map[string][]string{done: {"payment_intent", pi}, open: {"status", "open"}} {
		if got := strings.Join(b.get("/v1/checkout/sessions", params...).ids(), " "); got != want {
			t.Errorf("%v: got %s, want %s", params, got, want)
		}
	}
}

func TestASessionNeedsItsParts(t *testing.T) {
	b := newBench(t)
	without := func(names ...string) []string {
		var left []string
		for i := 0; i < len(sessionOf1234); i += 2 {
			drop := false
			for _, n := range names {
				drop = drop || strings.HasPrefix(sessionOf1234[i], n)
			}
			if !drop {
				left = append(left, sessionOf1234[i], sessionOf1234[i+1])
			}
		}
		return left
	}
	for name, c := range map[string]struct {
		params []string
		code   string
	}{
		"mode":         {without("mode"), "parameter_missing"},
		"subscription": {append(without("mode"), "mode", "subscription"), "<nil>"},
		"success_url":  {without("success_url"), "parameter_missing"},
		"bad url":      {append(without("cancel_url"), "cancel_url", "shop/cart"), "url_invalid"},
		"script host":  {append(without("cancel_url"), "cancel_url", "javascript://shop/%0aalert(1)"), "url_invalid"},
		"script url":   {append(without("cancel_url"), "cancel_url", "javascript:alert(1)"), "url_invalid"},
		"line_items":   {without("line_items"), "parameter_missing"},
		"quantity":     {without("line_items[0][quantity]"), "parameter_missing"},
		"name":         {without("line_items[0][price_data][product_data]"), "parameter_missing"},
		"too much":     {append(without("line_items[0][quantity]"), "line_items[0][quantity]", "999999"), "amount_too_large"},
		"mixed": {append(without(), "line_items[1][price_data][currency]", "eur", "line_items[1][price_data][unit_amount]", "1",
			"line_items[1][price_data][product_data][name]", "x", "line_items[1][quantity]", "1"), "<nil>"},
	} {
		if a := b.post("/v1/checkout/sessions", c.params...); a.status != 400 || a.text("error", "code") != c.code {
			t.Errorf("%s: got %d %s, want 400 %s", name, a.status, a.raw, c.code)
		}
	}
}
