package stripesim

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	eventRetention    = 30 * 24 * time.Hour
	reorderHold       = 2 * time.Second // of a notice that later ones overtake
	maxRound          = 10_000          // attempts of one Deliver
	maxAnswerBytes    = 64 << 10        // of a receiver's answer
	deliveryWorkers   = 4
	forgersSecret     = "whsec_forged"
	maxSelectedEvents = 20 // types in one list call
)

// retryDelays says when a delivery is tried again, from the attempt before;
// after the last it is given up, within three days.
var retryDelays = []time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second,
	3 * time.Minute, 6 * time.Minute, 12 * time.Minute, 24 * time.Minute, 48 * time.Minute,
	90 * time.Minute, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour,
}

// event is one change, with the thing as it was just after it.
type event struct {
	id       string
	created  time.Time
	kind     string
	by       origin
	data     object
	awaiting bool // a receiver has not acknowledged it yet
}

func (e *event) ident() string    { return e.id }
func (e *event) since() time.Time { return e.created }

func (e *event) object() object {
	pending := 0
	if e.awaiting {
		pending = 1
	}
	return object{
		"id": e.id, "object": "event", "api_version": apiVersion, "created": e.created.Unix(), "type": e.kind,
		"livemode": false, "pending_webhooks": pending, "data": object{"object": e.data},
		"request": object{"id": text(e.by.requestID), "idempotency_key": text(e.by.key)},
	}
}

// delivery is one event on its way to the receiver. Its body is the same on
// every attempt, its signature is not.
type delivery struct {
	event   *event
	url     string
	body    []byte
	attempt int  // made so far
	lost    bool // the first attempt never arrives
	forged  bool // signed with a wrong secret, tried once
}

// emit records an event and puts its deliveries into the outbox.
func (s *Sim) emit(now time.Time, by origin, kind string, data object) {
	s.emitOnce(now, by, kind, data)
	if s.luck.Chance(s.faults.TwoEvents) {
		s.emitOnce(now, by, kind, data)
	}
}

func (s *Sim) emitOnce(now time.Time, by origin, kind string, data object) {
	e := &event{id: s.id("evt_", 24), created: now, kind: kind, by: by, data: data, awaiting: s.webhookURL != ""}
	s.events.add(e)
	if s.webhookURL == "" {
		return
	}
	d := delivery{event: e, url: s.webhookURL, body: encode(e.object()), lost: s.luck.Chance(s.faults.LoseNotice)}
	s.post(now, d)
	if s.luck.Chance(s.faults.DuplicateNotice) {
		d.lost = false
		s.post(now, d)
	}
	if s.luck.Chance(s.faults.ForgeNotice) {
		d.lost, d.forged, d.body = false, true, encode(s.forge(e))
		s.post(now, d)
	}
}

// forge is what a thief would send: the same thing, said to be paid, or to have
// come back.
func (s *Sim) forge(e *event) object {
	lie := maps.Clone(e.data)
	o := e.object()
	switch lie["object"] {
	case "checkout.session":
		o["type"] = "checkout.session.completed"
		lie["status"], lie["payment_status"] = "complete", "paid"
	case "payment_intent":
		o["type"] = "payment_intent.succeeded"
		lie["status"], lie["amount_received"] = succeeded, lie["amount"]
	case "payout":
		o["type"] = "payout.failed"
		lie["status"] = payoutFailed
	case "transfer":
		o["type"] = "transfer.reversed"
		lie["reversed"], lie["amount_reversed"] = true, lie["amount"]
	}
	o["id"], o["data"] = s.id("evt_", 24), object{"object": lie}
	return o
}

// post puts a delivery into the outbox, as late as the dial makes it.
func (s *Sim) post(now time.Time, d delivery) {
	due := now.Add(s.luck.UpTo(s.faults.DelayNotice))
	if s.luck.Chance(s.faults.ReorderNotice) {
		due = due.Add(reorderHold)
	}
	s.outbox.Add(due, &d)
	s.rouse()
}

// Deliver makes every delivery attempt that is due, one after another, and
// returns how many requests it sent. A failed one comes back on the schedule
// of retries. It ends early when ctx does.
func (s *Sim) Deliver(ctx context.Context) (sent int) {
	for range maxRound {
		if ctx.Err() != nil {
			return sent
		}
		d, now, ok := s.nextDue()
		if !ok {
			return sent
		}
		acknowledged := false
		if lost := d.lost && d.attempt == 0; !lost {
			acknowledged = s.send(ctx, d, now)
			sent++
		}
		s.conclusion(d, acknowledged)
	}
	return sent
}

func (s *Sim) nextDue() (*delivery, time.Time, bool) {
	now := s.enter()
	defer s.mu.Unlock()
	d, ok := s.outbox.Due(now)
	return d, now, ok
}

// NextDelivery says when the next delivery attempt falls due; false when none
// is waiting.
func (s *Sim) NextDelivery() (time.Time, bool) {
	s.enter()
	defer s.mu.Unlock()
	return s.outbox.Next()
}

// conclusion notes an acknowledgement, or plans the next attempt.
func (s *Sim) conclusion(d *delivery, acknowledged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d.attempt++; {
	case d.forged:
	case acknowledged:
		d.event.awaiting = false
	case d.attempt <= len(retryDelays):
		s.outbox.Add(s.now().Add(retryDelays[d.attempt-1]), d)
		s.rouse()
	}
}

// send makes one attempt and says whether it was acknowledged, by any 2xx.
func (s *Sim) send(ctx context.Context, d *delivery, now time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(string(d.body)))
	if err != nil {
		return false
	}
	secrets := s.secrets
	if d.forged {
		secrets = []string{forgersSecret}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	req.Header.Set("Stripe-Signature", signature(secrets, now, d.body))
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswerBytes) // so that the connection can be used again
	return res.StatusCode/100 == 2
}

// signature is the Stripe-Signature header: one v1 for each secret.
func signature(secrets []string, at time.Time, body []byte) string {
	header := fmt.Sprintf("t=%d", at.Unix())
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

// deliverForever delivers until ctx ends, sleeping while nothing is due.
func (s *Sim) deliverForever(ctx context.Context) {
	wake := func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.wake
	}
	dial.Serve(ctx, wake, func() { s.Deliver(ctx) }, s.idle)
}

// idle is how long nothing will happen by itself.
func (s *Sim) idle() time.Duration {
	now := s.enter()
	defer s.mu.Unlock()
	wait := time.Hour
	for _, next := range []func() (time.Time, bool){s.outbox.Next, s.agenda.Next} {
		if at, ok := next(); ok {
			wait = min(wait, at.Sub(now))
		}
	}
	return wait
}

func (s *Sim) listEvents(c *call) (object, *apiError) {
	f := c.form
	kinds := f.list("types")
	if f.has("type") {
		kinds = append(kinds, f.text("type", maxTextLen))
	}
	if len(kinds) > maxSelectedEvents {
		f.wrong("", "types", fmt.Sprintf("At most %d event types.", maxSelectedEvents))
	}
	wantDelivered := f.flag("delivery_success")
	return list(c, s.events, func(e *event) bool {
		return c.now.Sub(e.created) < eventRetention &&
			(len(kinds) == 0 || slices.ContainsFunc(kinds, e.is)) &&
			(!f.has("delivery_success") || wantDelivered != e.awaiting)
	})
}

// is compares the type with a name or with a pattern such as charge.*.
func (e *event) is(kind string) bool {
	prefix, open := strings.CutSuffix(kind, "*")
	return e.kind == kind || open && strings.HasPrefix(e.kind, prefix)
}

func (s *Sim) retrieveEvent(c *call) (object, *apiError) {
	return show(s.events.get(c.id, "event", "id"))
}
