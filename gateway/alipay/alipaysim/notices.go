package alipaysim

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const (
	reorderHold     = 2 * time.Second // of a notification that later ones overtake
	maxRound        = 10_000          // attempts of one Deliver
	maxReply        = 64              // bytes of a receiver's reply; only "success" counts
	deliveryWorkers = 4
)

// retryDelays says when a notification is sent again, from the attempt before:
// 8 attempts within 25 hours.
var retryDelays = []time.Duration{
	4 * time.Minute, 10 * time.Minute, 10 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 15 * time.Hour,
}

// delivery is one notification on its way. On every attempt it has the same
// notify_id, its own time, and so its own signature.
type delivery struct {
	url     string
	params  map[string]string
	attempt int  // made so far
	lost    bool // the first attempt never arrives
	forged  bool // sent by a thief, tried once
}

// notify puts what a trade is at into the outbox; r is the refund it is about.
func (s *Sim) notify(t *trade, now time.Time, r *refund) {
	if t.notifyURL == "" {
		return
	}
	charset := "utf-8"
	if t.gbk || s.luck.Chance(s.faults.GBKNotice) {
		charset = "GBK"
	}
	p := map[string]string{
		"notify_type": "trade_status_sync", "notify_id": s.number(now, 26), "charset": charset, "version": "1.0",
		"app_id": s.appID, "auth_app_id": s.appID, "seller_id": s.sellerID, "buyer_id": buyerID, "buyer_logon_id": "hol***@example.com",
		"trade_no": t.no, "out_trade_no": t.number, "trade_status": t.status, "total_amount": yuan(t.amount),
		"subject": t.subject, "body": t.body, "gmt_create": stamp(t.created),
	}
	if !t.paid.IsZero() {
		p["gmt_payment"], p["receipt_amount"], p["buyer_pay_amount"] = stamp(t.paid), yuan(t.amount), yuan(t.amount)
		p["fund_bill_list"] = `[{"amount":"` + yuan(t.amount) + `","fundChannel":"ALIPAYACCOUNT"}]`
	}
	if t.status == closed {
		p["gmt_close"], p["refund_fee"] = stamp(t.closed), yuan(t.refunded())
	}
	if r != nil {
		p["refund_fee"], p["out_biz_no"], p["gmt_refund"] = yuan(t.refunded()), r.number, stamp(r.at)+".536"
	}
	s.mail(now, t.notifyURL, p)
}

// mail puts a message into the outbox, and what the dial adds to it.
func (s *Sim) mail(now time.Time, to string, params map[string]string) {
	d := delivery{url: to, params: params, lost: s.luck.Chance(s.faults.LoseNotice)}
	s.post(now, d)
	if s.luck.Chance(s.faults.DuplicateNotice) {
		d.lost = false
		s.post(now, d)
	}
	if s.luck.Chance(s.faults.ForgeNotice) {
		d.lost, d.forged = false, true
		s.post(now, d)
	}
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

// encode is the body of one attempt: the values in their charset, signed so.
func (s *Sim) encode(d *delivery, now time.Time) string {
	p := map[string]string{}
	if d.params["msg_method"] == "" {
		p["notify_time"] = stamp(now)
	}
	for name, value := range d.params {
		p[name] = value
		if d.params["charset"] == "GBK" {
			p[name] = toGBK(value)
		}
	}
	text := noticeText(p)
	p["sign_type"], p["sign"] = "RSA2", s.keys.sign(text)
	if d.forged {
		s.forge(p)
	}
	form := url.Values{}
	for name, value := range p {
		form.Set(name, value)
	}
	return form.Encode()
}

// forge is what a thief would send: the same thing, said to be paid. He has no
// key, so he signs for another text, or with nothing, or in another way.
func (s *Sim) forge(p map[string]string) {
	p["notify_id"] = "9" + p["notify_id"]
	if p["msg_method"] == "" {
		p["trade_status"], p["gmt_payment"] = success, p["gmt_create"]
	} else {
		p["biz_content"] = strings.NewReplacer(`"FAIL"`, `"SUCCESS"`, `"SUCCESS"`, `"FAIL"`).Replace(p["biz_content"])
	}
	switch dial.Pick(s.luck, 0, 1, 2) {
	case 0:
		delete(p, "sign")
	case 1:
		p["sign_type"] = "RSA"
	}
}

// noticeText is what a notification's signature is over: empty values too.
func noticeText(p map[string]string) string {
	var list []string
	for name := range p {
		list = append(list, name)
	}
	sort.Strings(list)
	for i, name := range list {
		list[i] = name + "=" + p[name]
	}
	return strings.Join(list, "&")
}

// toGBK writes a question mark for what GBK has not.
func toGBK(s string) string {
	out, err := encoding.ReplaceUnsupported(simplifiedchinese.GBK.NewEncoder()).String(s)
	if err != nil {
		return s
	}
	return out
}

// Deliver makes every delivery attempt that is due, one after another, and
// returns how many requests it sent. A failed one comes back on the schedule
// of retries. It ends early when ctx does.
func (s *Sim) Deliver(ctx context.Context) (sent int) {
	for range maxRound {
		if ctx.Err() != nil {
			return sent
		}
		d, body, ok := s.nextDue()
		if !ok {
			return sent
		}
		acknowledged := false
		if lost := d.lost && d.attempt == 0; !lost {
			acknowledged = s.send(ctx, d.url, body)
			sent++
		}
		s.conclude(d, acknowledged)
	}
	return sent
}

func (s *Sim) nextDue() (*delivery, string, bool) {
	now := s.enter()
	defer s.mu.Unlock()
	d, ok := s.outbox.Due(now)
	if !ok {
		return nil, "", false
	}
	return d, s.encode(d, now), true
}

// NextDelivery says when the next delivery attempt falls due; false when none
// is waiting.
func (s *Sim) NextDelivery() (time.Time, bool) {
	s.enter()
	defer s.mu.Unlock()
	return s.outbox.Next()
}

// conclude plans the next attempt of what was not acknowledged.
func (s *Sim) conclude(d *delivery, acknowledged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.attempt++
	if d.forged || acknowledged || d.attempt > len(retryDelays) {
		return
	}
	s.outbox.Add(s.now().Add(retryDelays[d.attempt-1]), d)
	s.rouse()
}

// send makes one attempt and says whether it was acknowledged: by the word
// success and nothing else.
func (s *Sim) send(ctx context.Context, to, body string) bool {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; text/html; charset=utf-8") // so it is
	req.Header.Set("User-Agent", "Mozilla/4.0")
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	return err == nil && res.StatusCode == http.StatusOK && string(reply) == "success"
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
