package flow

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Kinds of records.
const (
	KindItem    = "item"
	KindOrder   = "order"
	KindPayment = "payment"
	KindRefund  = "refund"
	KindTask    = "task"
)

// States of a task's record.
const (
	TaskReady = "ready"
	TaskDone  = "done"
	TaskStuck = "stuck" // given up, for a person to look at
)

// Records are the changed documents, to be written in the entry of the ops.
func (c Change) Records() []ledger.Record {
	var out []ledger.Record
	if o := c.Case.Order; c.dirty[o.ID] {
		out = append(out, o.record())
	}
	for _, p := range c.Case.Payments {
		if c.dirty[p.ID] {
			out = append(out, ledger.Record{Kind: KindPayment, ID: p.ID, Version: p.Version, State: string(p.State), Owner: p.Order, Ref: p.Ref, Body: marshal(p)})
		}
	}
	for _, r := range c.Case.Refunds {
		if c.dirty[r.ID] {
			out = append(out, ledger.Record{Kind: KindRefund, ID: r.ID, Version: r.Version, State: string(r.State), Owner: r.Order, Ref: r.Ref, Body: marshal(r)})
		}
	}
	if p := c.Case.Payout; p != nil && c.dirty[p.ID] {
		out = append(out, p.record())
	}
	for _, t := range c.Case.Tasks {
		if c.dirty["task/"+t.ID] {
			out = append(out, t.Record())
		}
	}
	return out
}

func (o Order) record() ledger.Record {
	due := Time(0)
	switch o.State {
	case Held, Paying:
		due = o.ExpiresAt
	case Closing:
		due = o.CapAt
	}
	return ledger.Record{Kind: KindOrder, ID: o.ID, Version: o.Version, State: string(o.State),
		Owner: CustomerOwner(o.Customer), Ref: o.Reference, Due: int64(due), Body: marshal(o)}
}

// CustomerOwner is the owner of a customer's orders. The prefix keeps a customer
// from owning what belongs to an order.
func CustomerOwner(customer string) string {
	if customer == "" {
		return ""
	}
	return "customer/" + customer
}

// HasTasks says whether something is to be done at a gateway.
func (c Change) HasTasks() bool {
	for _, t := range c.Case.Tasks {
		if c.dirty["task/"+t.ID] && t.Do != DoNone {
			return true
		}
	}
	return false
}

// Record is the task as it is stored.
func (t Task) Record() ledger.Record {
	state := TaskReady
	if t.Do == DoNone {
		state = TaskDone
	}
	return ledger.Record{Kind: KindTask, ID: t.ID, Version: t.Version, State: state, Owner: t.Order, Due: int64(t.Due), Body: marshal(t)}
}

// Load puts a Case together from the order's record and those it owns, by ID.
func Load(order ledger.Record, owned []ledger.Record) (Case, error) {
	var c Case
	if err := Decode(order, &c.Order); err != nil {
		return c, err
	}
	for _, r := range owned {
		var err error
		switch r.Kind {
		case KindPayment:
			c.Payments, err = appendDecoded(c.Payments, r)
		case KindRefund:
			c.Refunds, err = appendDecoded(c.Refunds, r)
		case KindTask:
			c.Tasks, err = appendDecoded(c.Tasks, r)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func appendDecoded[T any](to []T, r ledger.Record) ([]T, error) {
	var v T
	if err := Decode(r, &v); err != nil {
		return to, err
	}
	return append(to, v), nil
}

// Decode reads a record's body.
func Decode(r ledger.Record, into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("flow: decode %s %s: %w", r.Kind, r.ID, err)
	}
	return nil
}

// marshal writes a document. Our own documents always can be written.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
