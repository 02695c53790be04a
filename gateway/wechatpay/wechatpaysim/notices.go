package wechatpaysim

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	deliveryTimeout = 5 * time.Second
	reorderHold     = 2 * time.Second // of a notification that later ones overtake
	maxRound        = 10_000          // attempts of one Deliver
	maxReply        = 64 << 10        // bytes of a receiver's reply
	deliveryWorkers = 4
)

// retryDelays says when a notification is sent again, from the attempt before;
// after the last it is given up, within about a day.
var retryDelays = []time.Duration{
	15 * time.Second, 15 * time.Second, 30 * time.Second, 3 * time.Minute, 10 * time.Minute, 20 * time.Minute,
	30 * time.Minute, 30 * time.Minute, 30 * time.Minute, time.Hour,
	3 * time.Hour, 3 * time.Hour, 3 * time.Hour, 6 * time.Hour, 6 * time.Hour,
}

// delivery is one notification on its way to the receiver. Its body is the
// same on every attempt, its signature is not.
type delivery struct {
	url      string
	body     []byte
	attempt  int           // made so far
	lost     bool          // the first attempt never arrives
	ahead    time.Duration // the first attempt is stamped so far off
	switched bool          // signed by the other kind of key
	forged   bool          // signed by a stranger's key under WeChat Pay's id, tried once
	probe    bool          // a SIGNTEST probe, tried once
}

// emit puts a notification and what goes wrong with it into the outbox.
func (s *Sim) emit(now time.Time, url, kind, about string, plain object) {
	f, l := s.faults, s.luck
	d := delivery{url: url, body: s.notice(now, kind, about, plain), lost: l.Chance(f.LoseNotice), switched: l.Chance(f.KeySwitch)}
	if l.Chance(f.SkewedNotice) {
		d.ahead = dial.Pick(l, -skew, skew)
	}
	s.post(now, d)
	d.lost, d.ahead = false, 0
	if l.Chance(f.DuplicateNotice) {
		s.post(now, d)
	}
	d.body = s.notice(now, kind, about, plain)
	if l.Chance(f.ProbeNotice) {
		probe := d
		probe.probe = true
		s.post(now, probe)
	}
	if l.Chance(f.ForgeNotice) {
		d.forged = true
		s.post(now, d)
	}
}

func (s *Sim) notice(now time.Time, kind, about string, plain object) []byte {
	sealed := s.encrypt(encode(plain), about)
	sealed["original_type"] = about
	return encode(object{
		"id": "EV-" + s.id(32, digits), "create_time": stamp(now), "resource_type": "encrypt-resource", "event_type": kind,
		"summary": map[string]string{"transaction": "支付成功", "refund": "退款结果", "mch_payment": "商家转账单据终态通知"}[about], "resource": sealed,
	})
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
		d, k, ok := s.nextDue()
		if !ok {
			return sent
		}
		acknowledged := false
		if lost := d.lost && d.attempt == 0; !lost {
			acknowledged = s.send(ctx, d, k)
			sent++
		}
		s.conclude(d, acknowledged)
	}
	return sent
}

// nextDue takes out a delivery, with the seal for this attempt.
func (s *Sim) nextDue() (*delivery, seal, bool) {
	now := s.enter()
	defer s.mu.Unlock()
	d, ok := s.outbox.Due(now)
	if !ok {
		return nil, seal{}, false
	}
	k := seal{by: s.signerFor("", d.switched), at: now, nonce: s.id(32, letters), probe: d.probe}
	if d.attempt == 0 {
		k.at = now.Add(d.ahead)
	}
	if d.forged {
		k.by.key = readKey(MerchantKeyFile)
	}
	return d, k, true
}

// NextDelivery says when the next delivery attempt falls due; false when none
// is waiting.
func (s *Sim) NextDelivery() (time.Time, bool) {
	s.enter()
	defer s.mu.Unlock()
	return s.outbox.Next()
}

// conclude notes who was fooled, or plans the next attempt.
func (s *Sim) conclude(d *delivery, acknowledged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d.attempt++; {
	case d.forged || d.probe:
		if acknowledged {
			s.fooled++
		}
	case !acknowledged && d.attempt <= len(retryDelays):
		s.outbox.Add(s.now().Add(retryDelays[d.attempt-1]), d)
		s.rouse()
	}
}

// send makes one attempt and says whether it was acknowledged: by 204, or by
// 200 without a code other than SUCCESS.
func (s *Sim) send(ctx context.Context, d *delivery, k seal) bool {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(string(d.body)))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Mozilla/4.0")
	req.Header.Set("Accept", "*/*")
	k.sign(req.Header, d.body)
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		return false
	}
	var said struct {
		Code string `json:"code"`
	}
	return len(reply) == 0 || json.Unmarshal(reply, &said) != nil || said.Code == "" || said.Code == "SUCCESS"
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
