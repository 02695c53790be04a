package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Step is one entry of the journal that is about an order.
type Step struct {
	Seq  int64  `json:"seq"`
	At   Time   `json:"at"`
	What string `json:"what"` // the event that it caused, or one of the Step constants
	// Cause is who caused it: key/ and an API key's id, staff/ and a name, a buyer's
	// order:ID, gateway/ and the name of one whose notification it was; "" =
	// Holdfast itself.
	Cause   string          `json:"cause,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Task    *Task           `json:"task,omitempty"` // of a step that is about nothing else
	Ops     []ledger.Op     `json:"ops,omitempty"`
	Records []ledger.Record `json:"records,omitempty"`
	Events  []ledger.Event  `json:"events,omitempty"`
}

// What a Step is that caused no event.
const (
	StepCalled = "gateway.called" // a gateway is going to be asked
	StepSilent = "gateway.silent" // it gave no definite answer
	StepSame   = "gateway.same"   // it answered that nothing has changed
	StepOther  = "changed"
)

// timelineLines is how many lines of the journal one page of a timeline looks at.
const timelineLines = 20_000

// Timeline lists what the journal says about an order in order: what happened to
// it, and every time that a gateway was asked about it. after is a Step's Seq, or
// next of the page before; 0 = from the beginning. next is where to go on; 0 = this
// was all. A page ends when many entries in a row are of others: next is then before
// the order's next event, and calls in between are left out.
func (h *Holdfast) Timeline(ctx context.Context, order string, after int64) (steps []Step, next int64, err error) {
	if _, err := h.Order(ctx, order); err != nil {
		return nil, 0, err
	}
	seen := int64(0) // event
	first, err := h.eventAfter(ctx, order, &seen, after)
	if err != nil {
		return nil, 0, err
	}
	if first == 0 {
		return nil, 0, nil
	}
	if after == 0 {
		after = first - 1
	}
	name, tasks := []byte(order), map[string]Task{}
	for looked := 0; looked < timelineLines; {
		lines, err := h.store.Lines(ctx, ledger.LineQuery{After: after})
		if err != nil {
			return nil, 0, fmt.Errorf("holdfast: timeline of %s: %w", order, err)
		}
		if len(lines) == 0 {
			return steps, 0, nil
		}
		for _, l := range lines {
			if l.Code != ledger.OK || !bytes.Contains(l.Body, name) {
				continue
			}
			s, ok, err := step(l, order, tasks)
			if err != nil {
				return nil, 0, fmt.Errorf("holdfast: timeline of %s: %w", order, err)
			}
			if ok {
				steps = append(steps, s)
			}
		}
		looked += len(lines)
		after = lines[len(lines)-1].Seq
	}
	entry, err := h.eventAfter(ctx, order, &seen, after)
	if entry > 0 {
		next = entry - 1
	}
	return steps, next, err
}

// eventAfter is the entry of the first event about an order, behind event seen,
// that is in no entry up to after; 0 = there is none.
func (h *Holdfast) eventAfter(ctx context.Context, order string, seen *int64, after int64) (int64, error) {
	for {
		page, err := h.store.Events(ctx, ledger.EventQuery{Subject: order, After: *seen})
		if err != nil {
			return 0, fmt.Errorf("holdfast: events of %s: %w", order, err)
		}
		if len(page) == 0 {
			return 0, nil
		}
		for _, ev := range page {
			if ev.Entry > after {
				return ev.Entry, nil
			}
			*seen = ev.Seq
		}
	}
}

// step is a line of the journal as a step of an order; false = it only names it.
// tasks are as the lines before left them.
func step(l ledger.Line, order string, tasks map[string]Task) (Step, bool, error) {
	e, _, err := l.Open()
	if err != nil {
		return Step{}, false, err
	}
	s := Step{Seq: l.Seq, At: Time(l.At), Cause: causeOf(e.ID), Ops: e.Ops, Events: e.Events}
	ours := false
	for _, r := range e.Records {
		switch {
		case r.Kind == kindAudit:
			var a Audited
			if err := flow.Decode(r, &a); err != nil {
				return s, false, err
			}
			s.Cause, s.Reason = a.By, a.Reason
			continue
		case r.ID == order, r.Owner == order:
			ours = true
		}
		s.Records = append(s.Records, r)
	}
	if !ours || len(s.Records) == 0 {
		return s, false, nil
	}
	s.What = StepOther
	if len(e.Events) > 0 {
		s.What = e.Events[0].Type
	}
	for _, r := range s.Records {
		if r.Kind != flow.KindTask {
			continue
		}
		var t Task
		if err := flow.Decode(r, &t); err != nil {
			return s, false, err
		}
		if len(s.Records) == 1 && len(e.Events) == 0 {
			s.Task, s.What = &t, callOf(tasks[t.ID], t, s.At)
		}
		tasks[t.ID] = t
	}
	return s, true, nil
}

// callOf says what a new version of a task means. A worker claims one that is due,
// and puts it off while its lease still runs.
func callOf(was, is Task, at Time) string {
	switch {
	case was.Due <= at:
		return StepCalled
	case is.Error != "":
		return StepSilent
	}
	return StepSame
}

// causeOf reads an entry's id.
func causeOf(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	who, _, found := strings.Cut(rest, "/")
	switch {
	case kind == "n" && found:
		return "gateway/" + who
	case kind != "k" || !found:
		return ""
	case strings.Contains(who, ":"):
		return who
	}
	return "key/" + who
}

// Found is a document that a search leads to.
type Found struct {
	Kind string `json:"kind"` // item, order, payment, refund, payout, account, sale, transfer or hold
	ID   string `json:"id"`
}

// Find looks for an id: ours of anything, an order's reference, a gateway's number
// of a payment or refund, or a ticket. It finds whole ids only.
func (h *Holdfast) Find(ctx context.Context, id string) ([]Found, error) {
	var found []Found
	add := func(f Found) {
		if f.Kind != "" {
			found = append(found, f)
		}
	}
	if id == "" || len(id) > ledger.MaxText || !text(id) {
		return nil, nil
	}
	for _, q := range append([]ledger.RecordQuery{{Ref: id, Limit: findLimit}}, byKind(id)...) {
		rs, err := h.store.Records(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("holdfast: find %s: %w", id, err)
		}
		for _, r := range rs {
			switch {
			case r.Kind == kindReference:
				add(Found{flow.KindOrder, r.Ref})
			case r.Kind != kindAudit && foundKinds[r.Kind]:
				add(Found{r.Kind, r.ID})
			}
		}
	}
	t, err := h.Ticket(ctx, id, 0)
	var no *Rejection
	if err != nil && !errors.As(err, &no) {
		return nil, err
	}
	if err == nil && t.Order != nil {
		add(Found{flow.KindOrder, t.Order.ID})
	}
	return distinct(found), nil
}

// findLimit is how many documents of one number are found.
const findLimit = 20

// foundKinds are the kinds of documents that have pages.
var foundKinds = map[string]bool{flow.KindItem: true, flow.KindOrder: true, flow.KindPayment: true, flow.KindRefund: true,
	flow.KindPayout: true, flow.KindAccount: true, flow.KindSale: true, flow.KindTransfer: true, flow.KindHold: true}

func byKind(id string) (all []ledger.RecordQuery) {
	if len(id) > ledger.MaxName {
		return nil
	}
	for kind := range foundKinds {
		all = append(all, ledger.RecordQuery{Kind: kind, ID: id, Limit: 1})
	}
	return append(all, ledger.RecordQuery{Kind: kindReference, ID: id, Limit: 1})
}

func distinct(all []Found) (out []Found) {
	seen := map[Found]bool{}
	for _, f := range all {
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	return out
}
