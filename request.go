package holdfast

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// The documents, as they are stored and as the API shows them.
type (
	Item    = flow.Item
	Order   = flow.Order
	Line    = flow.Line
	Payment = flow.Payment
	Refund  = flow.Refund
	Restock = flow.Restock
	Task    = flow.Task
	Time    = flow.Time
	State   = flow.State
	Late    = flow.Late
)

// Limits of requests.
const (
	MaxLines    = 100 // lines of an order
	MaxSplits   = 20  // splits of an order
	MaxMetadata = 50  // keys of Order.Metadata
	MaxText     = 500 // characters of a name, description, reason or metadata value
	maxConflict = 64  // times that a decision is made anew because somebody else was faster
)

// Key makes a request happen once. The zero Key means: every call is a new one.
type Key struct {
	Scope string // whose key it is, e.g. an API key's id
	Value string // the client's Idempotency-Key
	Print []byte // what counts as the same request: its digest
}

func (k Key) entry() string {
	if k.Value == "" {
		return ""
	}
	return "k/" + k.Scope + "/" + k.Value
}

// Answer is the result of a keyed request. Replayed: it had happened before,
// and Value is what was answered then.
type Answer[T any] struct {
	Value    T
	Replayed bool
}

// apply writes one entry. A refusal is in the result.
func (h *Holdfast) apply(ctx context.Context, e ledger.Entry) (ledger.Result, error) {
	res, err := h.applyAll(ctx, []ledger.Entry{e})
	if err != nil {
		return ledger.Result{}, err
	}
	if res[0].Code == ledger.IDReused {
		return res[0], reject(CodeKeyReused, "the idempotency key belongs to another request")
	}
	return res[0], nil
}

// fresh writes an entry, under an id of its own if it has none, whose records must
// be the next versions of what there is; false = somebody else wrote one of them.
func (h *Holdfast) fresh(ctx context.Context, e ledger.Entry) (res ledger.Result, ok bool, err error) {
	if e.ID == "" {
		if e.ID, err = newID(); err != nil {
			return res, false, err
		}
	}
	if res, err = h.apply(ctx, e); err != nil {
		return res, false, err
	}
	if res.Refused() && res.Code != ledger.Stale {
		r := e.Records[0]
		return res, false, fmt.Errorf("holdfast: %s %s: the ledger refused: %s %s", r.Kind, r.ID, res.Code, res.Detail)
	}
	return res, !res.Refused(), nil
}

// applyAll writes many entries, each on its own.
func (h *Holdfast) applyAll(ctx context.Context, entries []ledger.Entry) ([]ledger.Result, error) {
	entries, err := h.audited(ctx, entries)
	if err != nil {
		return nil, err
	}
	res, err := h.applier.Apply(ctx, entries...)
	if errors.Is(err, pipeline.ErrOverloaded) || errors.Is(err, pipeline.ErrFull) {
		return nil, reject(CodeOverloaded, "too many requests are waiting")
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: apply %s: %w", entries[0].ID, err)
	}
	for i, e := range entries {
		if len(e.Events) > 0 && !res[i].Refused() && !res[i].Replayed {
			h.bell.ring(e.Events[0].Subject)
			h.tail.wrote()
		}
	}
	return res, nil
}

// replayed finds the answer that key has had before.
func replayed[T any](ctx context.Context, h *Holdfast, key Key) (Answer[T], bool, error) {
	var a Answer[T]
	if key.Value == "" {
		return a, false, nil
	}
	res, ok, err := h.decided(ctx, key.entry(), key.Print)
	if !ok || err != nil {
		return a, false, err
	}
	a, err = answer[T](res.Reply, true)
	return a, err == nil, err
}

// decided finds what an entry has come to, if it is in the journal.
func (h *Holdfast) decided(ctx context.Context, id string, print []byte) (ledger.Result, bool, error) {
	lines, err := h.store.Lines(ctx, ledger.LineQuery{ID: id})
	if err != nil {
		return ledger.Result{}, false, fmt.Errorf("holdfast: look up %s: %w", id, err)
	}
	if len(lines) == 0 {
		return ledger.Result{}, false, nil
	}
	if lines[0].Fingerprint != sha256.Sum256(print) {
		return ledger.Result{}, false, reject(CodeKeyReused, "the idempotency key belongs to another request")
	}
	_, res, err := lines[0].Open()
	res.Replayed = true
	return res, err == nil, err
}

// settle fixes what is answered to key from now on, for answers that are only
// known after the effect. The first one to settle is right.
func settle[T any](ctx context.Context, h *Holdfast, key Key, v T) (Answer[T], error) {
	if key.Value == "" {
		return Answer[T]{Value: v}, nil
	}
	reply, err := json.Marshal(v)
	if err != nil {
		return Answer[T]{}, fmt.Errorf("holdfast: settle: %w", err)
	}
	key = key.settled()
	res, err := h.apply(ctx, ledger.Entry{ID: key.entry(), Fingerprint: key.Print, Reply: reply})
	if err != nil {
		return Answer[T]{}, err
	}
	return answer[T](res.Reply, res.Replayed)
}

// settled is the key of the answer, beside that of the effect. No client can
// send it.
func (k Key) settled() Key {
	if k.Value != "" {
		k.Value += "#answer"
	}
	return k
}

func answer[T any](reply json.RawMessage, again bool) (Answer[T], error) {
	a := Answer[T]{Replayed: again}
	if err := json.Unmarshal(reply, &a.Value); err != nil {
		return a, fmt.Errorf("holdfast: stored answer: %w", err)
	}
	return a, nil
}

// command lets ev happen to an order, once for key. pick is the answer.
func command[T any](ctx context.Context, h *Holdfast, key Key, order string, ev flow.Event, pick func(flow.Case) T) (Answer[T], error) {
	if a, ok, err := replayed[T](ctx, h, key); ok || err != nil {
		return a, err
	}
	res, c, err := h.advance(ctx, order, ev, func(c flow.Case, e *ledger.Entry) (err error) {
		if key.Value != "" {
			e.ID, e.Fingerprint = key.entry(), key.Print
			e.Reply, err = json.Marshal(pick(c))
			if len(e.Records) > 0 && bytes.Equal(e.Reply, e.Records[0].Body) {
				e.Reply = nil // the entry replies with it anyway
			}
		}
		return err
	})
	if err != nil {
		return Answer[T]{}, err
	}
	if res.Replayed {
		return answer[T](res.Reply, true)
	}
	return Answer[T]{Value: pick(c)}, nil
}

// put writes the entry that decide makes, once for key, and decides anew when
// somebody else was faster. The answer is what decide says beside the entry,
// whose first record is that document.
func put[T any](ctx context.Context, h *Holdfast, key Key, decide func() (ledger.Entry, T, error)) (Answer[T], error) {
	for range maxConflict {
		e, v, err := decide()
		if err != nil {
			return Answer[T]{}, err
		}
		e.ID, e.Fingerprint = key.entry(), key.Print
		if e.ID == "" {
			if e.ID, err = newID(); err != nil {
				return Answer[T]{}, err
			}
		}
		res, err := h.apply(ctx, e)
		if err != nil {
			return Answer[T]{}, err
		}
		switch {
		case res.Replayed:
			return answer[T](res.Reply, true)
		case res.Code == ledger.Stale:
			continue
		case res.Refused():
			return Answer[T]{}, fmt.Errorf("holdfast: put %s: the ledger refused: %s %s", e.Records[0].ID, res.Code, res.Detail)
		}
		return Answer[T]{Value: v}, nil
	}
	return Answer[T]{}, fmt.Errorf("holdfast: put: %d conflicts", maxConflict)
}

// advance lets ev happen to an order and writes all that follows, or nothing.
// It decides anew when somebody else was faster. name (may be nil) gives the
// entry its identity; without one, an event that changes nothing writes nothing.
func (h *Holdfast) advance(ctx context.Context, order string, ev flow.Event, name func(flow.Case, *ledger.Entry) error) (ledger.Result, flow.Case, error) {
	ev.Poll, ev.PayFor = h.o.Poll, h.o.PayFor
	ev.Short, ev.Has = map[ledger.Asset]int{}, map[ledger.Account]int64{}
	for range maxConflict {
		c, err := h.load(ctx, order)
		if err != nil {
			return ledger.Result{}, c, err
		}
		now, err := h.now(ctx)
		if err != nil {
			return ledger.Result{}, c, err
		}
		ch, refusal := flow.Step(c, ev, now)
		if refusal != nil {
			return ledger.Result{}, c, &Rejection{Code: refusal.Code, Detail: refusal.Detail}
		}
		e := ledger.Entry{Ops: ch.Ops, Records: ch.Records(), Events: ch.Events}
		if e.ID, err = newID(); err != nil {
			return ledger.Result{}, c, err
		}
		if name != nil {
			if err := name(ch.Case, &e); err != nil {
				return ledger.Result{}, c, fmt.Errorf("holdfast: %s %s: %w", ev.On, order, err)
			}
		}
		if ch.Empty() && e.Fingerprint == nil {
			return ledger.Result{}, c, nil
		}
		res, err := h.apply(ctx, e)
		if err != nil {
			return res, c, err
		}
		again, err := h.refused(ev, res)
		if err != nil {
			return res, c, err
		}
		if !again {
			if res.Refused() {
				return res, c, nil
			}
			h.work.kick(ch)
			return res, ch.Case, nil
		}
	}
	return ledger.Result{}, flow.Case{}, fmt.Errorf("holdfast: %s %s: %d conflicts", ev.On, order, maxConflict)
}

// refused says whether to decide anew after what the ledger said.
func (h *Holdfast) refused(ev flow.Event, res ledger.Result) (again bool, err error) {
	switch res.Code {
	case ledger.OK:
		return false, nil
	case ledger.Stale:
		return true, nil
	case ledger.NotDue:
		return false, nil // the deadline is not over by the store's clock: nothing happened
	case ledger.Insufficient:
		if flow.OfSplit(res.Key.Account) {
			ev.Has[res.Key.Account] = res.Available
			return true, nil
		}
		if ev.On == flow.MoneyCame {
			ev.Short[res.Key.Asset]++
			return true, nil
		}
		return false, reject(CodeRefundExceeds, "account %s has %d", res.Key.Account, res.Available)
	}
	return false, fmt.Errorf("holdfast: the ledger refused %s: %s %s", ev.On, res.Code, res.Detail)
}

// load reads an order with all that belongs to it. The order is read first: it
// is written with every change to any of them, so that a decision on a mixture
// is refused as stale.
func (h *Holdfast) load(ctx context.Context, order string) (flow.Case, error) {
	r, err := h.record(ctx, flow.KindOrder, order)
	if err != nil {
		return flow.Case{}, err
	}
	owned, err := h.store.Records(ctx, ledger.RecordQuery{Owner: order})
	if err != nil {
		return flow.Case{}, fmt.Errorf("holdfast: load order %s: %w", order, err)
	}
	return flow.Load(r, owned)
}

// record finds one record, or rejects with not_found.
func (h *Holdfast) record(ctx context.Context, kind, id string) (ledger.Record, error) {
	if id == "" {
		return ledger.Record{}, reject(CodeNotFound, "no %s without an id", kind)
	}
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kind, ID: id, Limit: 1})
	if err != nil {
		return ledger.Record{}, fmt.Errorf("holdfast: find %s %s: %w", kind, id, err)
	}
	if len(rs) == 0 {
		return ledger.Record{}, reject(CodeNotFound, "no %s %s", kind, id)
	}
	return rs[0], nil
}

// document finds and decodes one record.
func document[T any](ctx context.Context, h *Holdfast, kind, id string) (v T, err error) {
	r, err := h.record(ctx, kind, id)
	if err != nil {
		return v, err
	}
	return v, flow.Decode(r, &v)
}

// documents decodes a list of records.
func documents[T any](rs []ledger.Record) ([]T, error) {
	out := make([]T, len(rs))
	for i, r := range rs {
		if err := flow.Decode(r, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
