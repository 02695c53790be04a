package stripesim_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stripe/stripe-go/v86/webhook"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestNoticesAreSignedWithEverySecretAtTheTimeOfSending(t *testing.T) {
	secrets := []string{"whsec_old", "whsec_new"}
	var got *http.Request
	var body []byte
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = r
		body, _ = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
	})}
	sim := stripesim.New(stripesim.Config{WebhookURL: "http://shop.test/hook", WebhookSecrets: secrets, Client: client})
	b := &bench{t: t, sim: sim}
	b.url = serve(t, sim)
	b.intent()
	if n := sim.Deliver(t.Context()); n != 1 {
		t.Fatalf("got %d sent, want 1", n)
	}
	header := got.Header.Get("Stripe-Signature")
	if n := strings.Count(header, ",v1="); n != 2 {
		t.Errorf("got %d signatures in %s, want 2", n, header)
	}
	for _, secret := range secrets {
		e, err := webhook.ConstructEvent(body, header, secret)
		if err != nil || e.Type != "payment_intent.created" || !strings.HasPrefix(e.Request.ID, "req_") {
			t.Errorf("%s: got %v %v", secret, e.Type, err)
		}
	}
	if _, err := webhook.ConstructEvent(body, header, "whsec_other"); err == nil {
		t.Errorf("another secret was accepted")
	}
}

func TestOneCheckoutPaymentSendsAllItsEvents(t *testing.T) {
	b := newBench(t)
	id := b.session()
	b.must(b.sim.Pay(id))
	got := b.deliver()
	if want := "payment_intent.created charge.succeeded payment_intent.succeeded checkout.session.completed"; types(got) != want {
		t.Fatalf("got %s, want %s", types(got), want)
	}
	if o := got[3].Object; o["id"] != id || o["payment_status"] != "paid" || o["metadata"].(map[string]any)["order_id"] != "order-1" {
		t.Errorf("got %v", o)
	}
}

func TestAnUnacknowledgedNoticeIsRepeatedUnchangedForThreeDays(t *testing.T) {
	b := newBench(t)
	b.receiverAnswers(http.StatusFound)
	b.intent()
	start := b.clock.Now()
	first := b.deliver()[0]
	attempts, last := 1, start
	for {
		at, ok := b.sim.NextDelivery()
		if !ok {
			break
		}
		if gap := at.Sub(last); gap < 5*time.Second {
			t.Errorf("attempt %d after only %v", attempts, gap)
		}
		last = at
		b.clock.Advance(at.Sub(b.clock.Now()) - time.Second)
		if n := len(b.deliver()); n != 0 {
			t.Errorf("attempt %d came early", attempts)
		}
		b.clock.Advance(time.Second)
		again := b.deliver()
		if len(again) != 1 || again[0].ID != first.ID || !bytes.Equal(again[0].Body, first.Body) {
			t.Fatalf("attempt %d: got %v", attempts, types(again))
		}
		if again[0].Signature == first.Signature {
			t.Errorf("attempt %d has the first one's signature", attempts)
		}
		attempts++
	}
	if span := last.Sub(start); attempts != 18 || span > 72*time.Hour || span < 48*time.Hour {
		t.Errorf("got %d attempts in %v, want 18 within three days", attempts, span)
	}
	if n := len(b.get("/v1/events", "delivery_success", "false").ids()); n != 1 {
		t.Errorf("got %d undelivered events, want 1", n)
	}
}

func TestAny2xxAcknowledges(t *testing.T) {
	b := newBench(t)
	b.receiverAnswers(http.StatusInternalServerError)
	id := b.intent()
	b.deliver()
	b.receiverAnswers(http.StatusAccepted)
	b.clock.Advance(5 * time.Second)
	if n := len(b.deliver()); n != 1 {
		t.Errorf("got %d, want the second attempt", n)
	}
	if _, ok := b.sim.NextDelivery(); ok {
		t.Errorf("an acknowledged notice is sent again")
	}
	events := b.get("/v1/events", "delivery_success", "true", "type", "payment_intent.*")
	if len(events.ids()) != 1 {
		t.Fatalf("got %s", events.raw)
	}
	e := b.get("/v1/events/" + events.ids()[0])
	if e.text("data", "object", "id") != id || e.text("pending_webhooks") != "0" {
		t.Errorf("got %s", e.raw)
	}
}

func TestWithoutAURLEventsAreOnlyListed(t *testing.T) {
	b := newBench(t)
	b.sim.SetWebhookURL("")
	b.intent()
	if n := len(b.deliver()); n != 0 {
		t.Errorf("got %d notices, want none", n)
	}
	if n := len(b.get("/v1/events", "types[]", "payment_intent.created", "types[]", "charge.*").ids()); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
	b.clock.Advance(30 * 24 * time.Hour)
	if n := len(b.get("/v1/events").ids()); n != 0 {
		t.Errorf("got %d events after 30 days, want none", n)
	}
}

func TestEveryNoticeFault(t *testing.T) {
	pay := "charge.succeeded payment_intent.succeeded"
	for name, c := range map[string]struct {
		faults      stripesim.Faults
		now, within string // what arrives at once, and in the 5 seconds after
	}{
		"none":      {stripesim.Faults{}, pay, ""},
		"lose":      {stripesim.Faults{LoseNotice: 1}, "", pay},
		"duplicate": {stripesim.Faults{DuplicateNotice: 1}, "charge.succeeded charge.succeeded payment_intent.succeeded payment_intent.succeeded", ""},
		"two":       {stripesim.Faults{TwoEvents: 1}, "charge.succeeded charge.succeeded payment_intent.succeeded payment_intent.succeeded", ""},
		"hold back": {stripesim.Faults{ReorderNotice: 1}, "", pay},
	} {
		b := newBench(t)
		id := b.intent()
		b.deliver()
		b.sim.SetFaults(c.faults)
		b.must(b.sim.Pay(id))
		first := b.deliver()
		b.clock.Advance(5 * time.Second)
		later := b.deliver()
		if types(first) != c.now || types(later) != c.within {
			t.Errorf("%s: got %q then %q, want %q then %q", name, types(first), types(later), c.now, c.within)
		}
		if len(first) == 4 && (first[0].ID == first[1].ID) != (name == "duplicate") {
			t.Errorf("%s: got ids %s and %s", name, first[0].ID, first[1].ID)
		}
	}
}

func TestDelayAndReorderGiveAnyOrder(t *testing.T) {
	orders := map[string]bool{}
	for _, faults := range []stripesim.Faults{{DelayNotice: time.Minute}, {ReorderNotice: 0.5}} {
		b := newBench(t)
		b.sim.SetFaults(faults)
		for range 20 {
			b.must(b.sim.Pay(b.session()))
			b.clock.Advance(time.Minute)
			got := types(b.deliver())
			if strings.Count(got, " ") != 3 {
				t.Fatalf("%+v: got %s, want four notices", faults, got)
			}
			orders[got] = true
		}
	}
	if len(orders) < 5 {
		t.Errorf("got %d different orders of 40, want at least 5", len(orders))
	}
}

func TestAForgedNoticeSaysPaidUnderAWrongSignature(t *testing.T) {
	b := newBench(t)
	b.sim.SetFaults(stripesim.Faults{ForgeNotice: 1})
	id := b.session()
	b.post("/v1/checkout/sessions/" + id + "/expire")
	b.receiverAnswers(http.StatusBadRequest)
	got := b.deliver()
	if types(got) != "checkout.session.expired checkout.session.completed" {
		t.Fatalf("got %s", types(got))
	}
	lie := got[1]
	if lie.Object["payment_status"] != "paid" || lie.Object["id"] != id || lie.ID == got[0].ID {
		t.Errorf("got %s", lie.Body)
	}
	for i, n := range got {
		_, err := webhook.ConstructEventWithOptions(n.Body, n.Signature, stripesim.DefaultWebhookSecret, webhook.ConstructEventOptions{IgnoreTolerance: true})
		if (err == nil) != (i == 0) {
			t.Errorf("%s: got %v", n.Type, err)
		}
	}
	b.clock.Advance(5 * time.Second)
	if again := b.deliver(); types(again) != "checkout.session.expired" {
		t.Errorf("got %s, want only the true one again", types(again))
	}
	if a := b.get("/v1/checkout/sessions/" + id); a.text("payment_status") != "unpaid" {
		t.Errorf("the lie became true: %s", a.raw)
	}
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	b.intent()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := b.sim.Deliver(ctx); n != 0 {
		t.Errorf("got %d sent, want 0", n)
	}
	if n := len(b.deliver()); n != 1 {
		t.Errorf("got %d, want the notice still there", n)
	}
}

func TestRunDeliversUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan time.Time, 10)
		status := 500
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			got <- time.Now()
			defer func() { status = 200 }()
			return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
		})}
		sim := stripesim.New(stripesim.Config{WebhookURL: "http://shop.test/hook", Client: client})
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { sim.Run(ctx); close(stopped) }()
		synctest.Wait()
		start := time.Now()
		create(sim)
		if at := <-got; at.Sub(start) != 0 {
			t.Errorf("the first attempt came after %v, want at once", at.Sub(start))
		}
		if at := <-got; at.Sub(start) != 5*time.Second {
			t.Errorf("the second attempt came after %v, want 5s", at.Sub(start))
		}
		stop()
		<-stopped
		create(sim)
		if len(got) != 0 {
			t.Errorf("delivered after the end")
		}
	})
}
