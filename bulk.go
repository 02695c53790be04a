package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// MaxBulk is how many orders one call places.
const MaxBulk = 100

// BulkOrder is what became of one order of many: an order, or why not.
type BulkOrder struct {
	Order  *Order `json:"order,omitempty"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	SKU    string `json:"sku,omitempty"`
	// Available is what the SKU still has, with CodeSoldOut.
	Available int64 `json:"available,omitempty"`
}

// PlaceMany places many orders in one transaction: each on its own, or (together)
// all or none. The answers are in the order of in. An error that is a Rejection
// says that none was placed.
func (h *Holdfast) PlaceMany(ctx context.Context, key Key, in []OrderInput, together bool) (Answer[[]BulkOrder], error) {
	if a, ok, err := replayed[[]BulkOrder](ctx, h, key.settled()); ok || err != nil {
		return a, err
	}
	if len(in) == 0 || len(in) > MaxBulk {
		return Answer[[]BulkOrder]{}, reject(CodeTooManyItems, "orders: 1 to %d", MaxBulk)
	}
	began := time.Now()
	var out []BulkOrder
	var err error
	if together {
		out, err = h.placeTogether(ctx, key, in)
	} else {
		out, err = h.placeEach(ctx, key, in)
	}
	if err != nil {
		return Answer[[]BulkOrder]{}, err
	}
	for _, o := range out {
		h.count(began, false, o.err())
	}
	return settle(ctx, h, key, out)
}

// placeEach hands all orders to the ledger in one call. Those that it refuses
// take the way of a single order, which knows more to try.
func (h *Holdfast) placeEach(ctx context.Context, key Key, in []OrderInput) ([]BulkOrder, error) {
	out := make([]BulkOrder, len(in))
	drafts := make([]draft, len(in))
	var entries []ledger.Entry
	var at []int // of each entry in in
	for i, order := range in {
		d, err := h.draft(ctx, key.part(i), order)
		if err != nil {
			if err := out[i].refuse(err); err != nil {
				return nil, err
			}
			continue
		}
		drafts[i] = d
		entries, at = append(entries, d.granted()), append(at, i)
	}
	if len(entries) == 0 {
		return out, nil
	}
	results, err := h.applyAll(ctx, entries)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		if res := results[n]; res.Code == ledger.OK && !res.Replayed {
			out[i].Order = &drafts[i].order
			continue
		}
		a, err := h.placeDraft(ctx, drafts[i])
		if err == nil {
			out[i].Order = &a.Value
		} else if err := out[i].refuse(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// placeTogether makes one entry of all orders.
func (h *Holdfast) placeTogether(ctx context.Context, key Key, in []OrderInput) ([]BulkOrder, error) {
	out := make([]BulkOrder, len(in))
	e := ledger.Entry{ID: key.entry(), Fingerprint: key.Print}
	var lines []Line
	var grants []flow.Grant
	for i, order := range in {
		d, err := h.draft(ctx, Key{}, order)
		var r *Rejection
		if errors.As(err, &r) {
			r.Detail = fmt.Sprintf("order %d: %s", i, r.Detail)
		}
		if err != nil {
			return nil, err
		}
		out[i].Order = &d.order
		e.Ops, e.Records, e.Events = append(e.Ops, d.entry.Ops...), append(e.Records, d.entry.Records...), append(e.Events, d.entry.Events...)
		lines = append(lines, d.order.Lines...)
		grants = addGrants(grants, d.grants)
	}
	var err error
	if e.Reply, err = json.Marshal(out); err != nil {
		return nil, fmt.Errorf("holdfast: place many: %w", err)
	}
	if e.ID == "" {
		e.ID = out[0].Order.ID
	}
	if len(e.Ops)+len(grants) > ledger.MaxOps || len(e.Records)+len(grants) > ledger.MaxRecords || len(e.Reply) > ledger.MaxBody {
		return nil, reject(CodeTooManyItems, "the orders have too many lines for one transaction")
	}
	res, left, err := h.applyGranted(ctx, e, grants)
	if err == nil && res.Code == ledger.Insufficient {
		res, left, err = h.insist(ctx, e, left, res)
	}
	if err == nil {
		err = notPlaced(lines, res, left)
	}
	if err != nil {
		return nil, err
	}
	a, err := answer[[]BulkOrder](res.Reply, res.Replayed)
	return a.Value, err
}

// addGrants adds those that are not there yet: a customer gets one for a sale,
// however many orders it places.
func addGrants(to, from []flow.Grant) []flow.Grant {
next:
	for _, g := range from {
		for _, o := range to {
			if o.Record.Key() == g.Record.Key() {
				continue next
			}
		}
		to = append(to, g)
	}
	return to
}

// granted is the entry with all its grants.
func (d draft) granted() ledger.Entry {
	e := d.entry
	for _, g := range d.grants {
		e.Ops, e.Records = append(e.Ops, g.Op), append(e.Records, g.Record)
	}
	return e
}

// refuse notes why an order was not placed; an unknown outcome comes back.
func (b *BulkOrder) refuse(err error) error {
	var r *Rejection
	if !errors.As(err, &r) {
		return err
	}
	b.Code, b.Detail, b.SKU, b.Available = r.Code, r.Detail, r.SKU, r.Available
	return nil
}

// err is why it was not placed; nil = it was.
func (b BulkOrder) err() error {
	if b.Order != nil {
		return nil
	}
	return &Rejection{Code: b.Code}
}

// part is the key of one of many. No client can send it.
func (k Key) part(n int) Key {
	if k.Value != "" {
		k.Value = fmt.Sprintf("%s#%d", k.Value, n)
	}
	return k
}
