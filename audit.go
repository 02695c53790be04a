package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Actor is who makes a change, for the audit log.
type Actor struct {
	ID     string // unique, such as staff/anna or key/ and an API key's id; 1..100 characters
	Name   string // for people
	Reason string // for people, at most MaxText characters; "" = whatever the request says
}

type actorKey struct{}

// By is a context in which every change of the store is written into the audit
// log, in the very entry of the change. Who is not named leaves no trace there:
// the work of Holdfast itself, and the traffic of buyers, which is in the journal
// under the key of whoever asked.
func By(ctx context.Context, who Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, who)
}

// because says why, unless whoever is in ctx has said so.
func because(ctx context.Context, reason string) context.Context {
	who, ok := ctx.Value(actorKey{}).(Actor)
	if !ok || who.Reason != "" {
		return ctx
	}
	who.Reason = reason
	return By(ctx, who)
}

const kindAudit = "audit"

// Audited is one change in the audit log.
type Audited struct {
	ID     string `json:"id"`
	At     Time   `json:"at"`
	By     string `json:"by"` // Actor.ID
	Name   string `json:"name"`
	Did    string `json:"did"`   // the event that it caused, or the kind of document and whether it was created or changed
	About  string `json:"about"` // the id of what was changed
	Reason string `json:"reason,omitempty"`
	Entry  string `json:"entry"` // in the journal
}

// audited are the entries with the audit log's records of whoever is in ctx. A
// record goes last, where no reply is made of it.
func (h *Holdfast) audited(ctx context.Context, entries []ledger.Entry) ([]ledger.Entry, error) {
	who, ok := ctx.Value(actorKey{}).(Actor)
	if !ok {
		return entries, nil
	}
	now, err := h.now(ctx)
	if err != nil {
		return nil, err
	}
	entries = slices.Clone(entries)
	for i, e := range entries {
		if len(e.Ops)+len(e.Records)+len(e.Events) == 0 {
			continue // it remembers an answer
		}
		a := Audited{At: now, By: who.ID, Name: who.Name, Reason: who.Reason, Entry: e.ID}
		a.Did, a.About = deed(e)
		if a.ID, err = newID(); err != nil {
			return nil, err
		}
		body, err := json.Marshal(a)
		if err != nil {
			return nil, fmt.Errorf("holdfast: audit %s: %w", e.ID, err)
		}
		entries[i].Records = append(slices.Clone(e.Records), ledger.Record{Kind: kindAudit, ID: a.ID, Version: 1,
			State: a.Did, Owner: auditOf(a.By), Ref: a.About, Body: body})
	}
	return entries, nil
}

// auditOf owns the audit records of somebody. The prefix keeps it apart from what
// belongs to documents.
func auditOf(by string) string { return "audit/" + by }

// deed is what an entry does, and to what. Digests of secrets are no names.
func deed(e ledger.Entry) (did, about string) {
	if len(e.Events) > 0 {
		return e.Events[0].Type, e.Events[0].Subject
	}
	if len(e.Records) == 0 {
		return "moved", string(e.Ops[0].Asset)
	}
	r := e.Records[0]
	did, about = r.Kind+".changed", r.ID
	if r.Version == 1 {
		did = r.Kind + ".created"
	}
	switch r.Kind {
	case kindKey:
		about = r.Ref
	case kindSession:
		about = r.State
	}
	return did, about
}

// AuditFilter chooses from the audit log; zero values choose all.
type AuditFilter struct {
	By    string // Actor.ID
	About string // the id of what was changed
	After string // id of the last one seen; newest first
	Limit int    // at most ledger.MaxPage
}

// Audit lists who changed what, when and why, newest first.
func (h *Holdfast) Audit(ctx context.Context, f AuditFilter) ([]Audited, error) {
	q := Filter{Ref: f.About, After: f.After, Limit: f.Limit}
	if f.By != "" {
		q.Owner = auditOf(f.By)
	}
	return newest[Audited](ctx, h, kindAudit, q)
}

// Filter chooses documents of one kind; zero values choose all.
type Filter struct {
	State string
	Owner string // the order of payments and refunds
	Ref   string // an id in somebody else's system
	After string // id of the last one seen; newest first
	Limit int    // at most ledger.MaxPage
}

func (f Filter) query(kind string) ledger.RecordQuery {
	q := ledger.RecordQuery{Kind: kind, State: f.State, Owner: f.Owner, Ref: f.Ref, Desc: true, Limit: f.Limit}
	if f.After != "" {
		q.After = ledger.RecordKey{Kind: kind, ID: f.After}
	}
	return q
}

// newest lists the documents of a kind, newest first.
func newest[T any](ctx context.Context, h *Holdfast, kind string, f Filter) ([]T, error) {
	rs, err := h.store.Records(ctx, f.query(kind))
	if err != nil {
		return nil, fmt.Errorf("holdfast: list %ss: %w", kind, err)
	}
	return documents[T](rs)
}

// Payments lists payment attempts, newest first.
func (h *Holdfast) Payments(ctx context.Context, f Filter) ([]Payment, error) {
	return newest[Payment](ctx, h, flow.KindPayment, f)
}

// Refunds lists refunds, newest first.
func (h *Holdfast) Refunds(ctx context.Context, f Filter) ([]Refund, error) {
	return newest[Refund](ctx, h, flow.KindRefund, f)
}

// Accounts lists accounts, from the highest id down.
func (h *Holdfast) Accounts(ctx context.Context, f Filter) ([]Account, error) {
	return newest[Account](ctx, h, flow.KindAccount, f)
}
