package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Of notifications that are about nothing here (yet).
const (
	kindParked  = "notification"
	parkedNow   = "parked"      // looked at again, now and then
	parkedStays = "quarantined" // for a person to look at
	parkTries   = 10
	parkWait    = 30 * time.Second
)

// Notify takes a gateway's notification. The errors are those of
// gateway.Gateway.Parse, a Rejection with CodeGatewayUnknown, or anything else:
// then it must be sent again. A doubled, late or reordered notification meets a
// state that has no use for it, and changes nothing.
func (h *Holdfast) Notify(ctx context.Context, name string, header http.Header, body []byte) error {
	name, gw, err := h.gateway(name)
	if err != nil {
		return err
	}
	n, err := gw.Parse(header, body, h.o.Clock())
	if err != nil {
		return fmt.Errorf("holdfast: notification of %s: %w", name, err)
	}
	if n.Ignored {
		return nil
	}
	found, err := h.take(ctx, name, n)
	if err != nil || found {
		return err
	}
	h.log.Error("notification about something unknown", "gateway", name, "notification", n.ID, "type", n.Type, "ref", n.Ref)
	return h.park(ctx, name, n)
}

// Acknowledge writes the gateway's own form of reply.
func (h *Holdfast) Acknowledge(name string, w http.ResponseWriter, ok bool) {
	if _, gw, err := h.gateway(name); err == nil {
		gw.Acknowledge(w, ok)
		return
	}
	http.Error(w, "unknown gateway", http.StatusNotFound)
}

// take lets a notification happen to the order or payout it is about; false = to
// none.
func (h *Holdfast) take(ctx context.Context, name string, n gateway.Notification) (bool, error) {
	if n.Payout != "" {
		return h.takePayout(ctx, name, n)
	}
	ev := flow.Event{ID: n.Payment, Ref: n.Ref, Amount: n.Amount, Currency: n.Currency, Code: n.Type}
	kind := flow.KindPayment
	switch {
	case n.Refund != "":
		kind, ev.ID, ev.Ref, ev.On = flow.KindRefund, n.Refund, n.RefundID, refundStatus(n.Refunded)
	case n.Status == gateway.Paid:
		ev.On = flow.MoneyCame
	case n.Status == gateway.Closed:
		ev.On = flow.ClosedThere
	}
	if ev.On == "" || ev.ID == "" {
		return false, nil
	}
	order, err := h.owner(ctx, name, kind, ev.ID)
	if err != nil || order == "" {
		return false, err
	}
	_, _, err = h.advance(ctx, order, ev, func(_ flow.Case, e *ledger.Entry) error {
		e.ID = "n/" + name + "/" + e.ID
		return nil
	})
	return err == nil, err
}

// takePayout is take for what became of a payout. That one is under way is left
// to the query, which tells more.
func (h *Holdfast) takePayout(ctx context.Context, name string, n gateway.Notification) (bool, error) {
	p, err := h.Payout(ctx, n.Payout)
	var missing *Rejection
	if errors.As(err, &missing) || (err == nil && p.Gateway != name) {
		return false, nil
	}
	on := payoutStatus(n.PaidOut)
	if err != nil || on == "" || on == flow.PayoutTaken {
		return on == flow.PayoutTaken, err
	}
	_, _, err = h.advancePayout(ctx, p.ID, flow.Event{On: on, Ref: n.PayoutID, Amount: n.Amount, Currency: n.Currency, Code: n.Type})
	return err == nil, err
}

// owner finds the order of a payment or refund that went through gateway name;
// "" = there is none.
func (h *Holdfast) owner(ctx context.Context, name, kind, id string) (string, error) {
	payment := id
	var missing *Rejection
	if kind == flow.KindRefund {
		f, err := h.RefundByID(ctx, id)
		if errors.As(err, &missing) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		payment = f.Payment
	}
	p, err := h.Payment(ctx, payment)
	if errors.As(err, &missing) || (err == nil && p.Gateway != name) {
		return "", nil
	}
	return p.Order, err
}

// parked is an authentic notification about something that is not here (yet).
type parked struct {
	Gateway string               `json:"gateway"`
	Note    gateway.Notification `json:"notification"`
	Tries   int                  `json:"tries"`
	Version int64                `json:"version"`
}

func (p parked) record(state string, due Time) (ledger.Record, error) {
	id := p.Note.ID
	if !idForm.MatchString(id) {
		id = digest(id)
	}
	body, err := json.Marshal(p)
	return ledger.Record{Kind: kindParked, ID: p.Gateway + "/" + id, Version: p.Version, State: state, Due: int64(due), Body: body}, err
}

// park keeps what can't be used yet: it may be about a payment whose record is
// not here yet, or about somebody else's.
func (h *Holdfast) park(ctx context.Context, name string, n gateway.Notification) error {
	now, err := h.now(ctx)
	if err != nil {
		return err
	}
	return h.putParked(ctx, parked{Gateway: name, Note: n, Version: 1}, parkedNow, now.Add(parkWait))
}

func (h *Holdfast) putParked(ctx context.Context, p parked, state string, due Time) error {
	r, err := p.record(state, due)
	if err != nil {
		return fmt.Errorf("holdfast: park %s: %w", p.Note.ID, err)
	}
	e := ledger.Entry{Records: []ledger.Record{r}}
	if p.Version == 1 || state == parkedStays {
		e.Events = []ledger.Event{{Type: "notification." + state, Subject: r.ID}}
	}
	_, _, err = h.fresh(ctx, e) // not ok: it is parked already
	return err
}

// sweepParked looks again at what was parked.
func (b *background) sweepParked(ctx context.Context) error {
	due, err := b.due(ctx, kindParked, sweepBatch)
	if err != nil {
		return err
	}
	for _, r := range due {
		if err := b.retryParked(ctx, r); err != nil {
			b.h.log.Error("parked notification", "notification", r.ID, "error", err)
		}
	}
	return nil
}

func (b *background) retryParked(ctx context.Context, r ledger.Record) error {
	var p parked
	if err := flow.Decode(r, &p); err != nil {
		return err
	}
	found, err := b.h.take(ctx, p.Gateway, p.Note)
	if err != nil {
		return err
	}
	now, err := b.h.now(ctx)
	if err != nil {
		return err
	}
	p.Version++
	p.Tries++
	switch {
	case found:
		return b.h.putParked(ctx, p, "applied", 0)
	case p.Tries >= parkTries:
		return b.h.putParked(ctx, p, parkedStays, 0)
	}
	return b.h.putParked(ctx, p, parkedNow, now.Add(parkWait))
}

// Parked is an authentic notification that was about nothing here when it came.
type Parked struct {
	ID      string               `json:"id"`
	State   string               `json:"state"` // parked, quarantined or applied
	Gateway string               `json:"gateway"`
	Note    gateway.Notification `json:"notification"`
	Tries   int                  `json:"tries"`
	NextAt  Time                 `json:"next_at,omitzero"` // when it is looked at again
}

// Notifications lists what was parked, from the highest id down.
func (h *Holdfast) Notifications(ctx context.Context, f Filter) ([]Parked, error) {
	rs, err := h.store.Records(ctx, f.query(kindParked))
	if err != nil {
		return nil, fmt.Errorf("holdfast: list notifications: %w", err)
	}
	out := make([]Parked, len(rs))
	for i, r := range rs {
		if out[i], err = parkedOf(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parkedOf(r ledger.Record) (Parked, error) {
	var p parked
	err := flow.Decode(r, &p)
	return Parked{ID: r.ID, State: r.State, Gateway: p.Gateway, Note: p.Note, Tries: p.Tries, NextAt: Time(r.Due)}, err
}

// NotificationByID finds one notification that was parked.
func (h *Holdfast) NotificationByID(ctx context.Context, id string) (Parked, error) {
	r, err := h.record(ctx, kindParked, id)
	if err != nil {
		return Parked{}, err
	}
	return parkedOf(r)
}

// RetryNotification looks at a parked or quarantined notification again, now and
// then, as if it had just come.
func (h *Holdfast) RetryNotification(ctx context.Context, id string) error {
	r, err := h.record(ctx, kindParked, id)
	if err != nil {
		return err
	}
	var p parked
	if err := flow.Decode(r, &p); err != nil {
		return err
	}
	if r.State != parkedNow && r.State != parkedStays {
		return reject(CodeInvalidState, "the notification is %s", r.State)
	}
	now, err := h.now(ctx)
	if err != nil {
		return err
	}
	p.Version, p.Tries = p.Version+1, 0
	return h.putParked(ctx, p, parkedNow, now)
}
