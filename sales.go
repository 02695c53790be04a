package holdfast

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Sale is a window of time in which an item is sold on terms of its own.
type Sale = flow.Sale

// SaleInput is what a caller says of a sale.
type SaleInput struct {
	ID       string // [A-Za-z0-9_-]{1,48}, new or that of the sale that is replaced; "" = a new one
	SKU      string // of an item; never changes
	OpensAt  time.Time
	ClosesAt time.Time // the first moment after the window
	Price    int64     // of one piece, minor units of the item's currency, 1..ledger.MaxAmount
	// PerCustomer is how many pieces one customer may have, over all orders that
	// hold them or have paid for them; never changes. 0 = no limit.
	PerCustomer int64
	HoldFor     time.Duration // whole seconds, MinHold..MaxHold; 0 = the item's
	Late        []Late        // for money that comes late; nil = the item's
	// SoldOutside sells the item on its own terms while the sale is not open.
	// Otherwise it is not sold then, from now until another sale decides.
	SoldOutside bool
	Preset      string // the one that the server runs with; "" = whichever
	IfMatch     int64  // the version that is replaced; 0 = whichever
}

// MaxSales is how many sales of one SKU can lie ahead.
const MaxSales = 50

// saleForm leaves room in a record's id for the customer beside the sale.
var saleForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,48}$`)

const lastYear = 9999 // that RFC 3339 can write

func (in SaleInput) check() error {
	if in.ID != "" && !saleForm.MatchString(in.ID) {
		return reject(CodeInvalidID, "id: 1 to 48 of A-Z a-z 0-9 _ -")
	}
	if !idForm.MatchString(in.SKU) {
		return reject(CodeInvalidID, "sku: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.OpensAt.UnixMilli() <= 0 || in.OpensAt.UTC().Year() > lastYear {
		return reject(CodeInvalidTime, "opens_at: from 1970 to %d", lastYear)
	}
	if in.ClosesAt.UnixMilli() <= 0 || in.ClosesAt.UTC().Year() > lastYear {
		return reject(CodeInvalidTime, "closes_at: from 1970 to %d", lastYear)
	}
	if in.ClosesAt.UnixMilli() <= in.OpensAt.UnixMilli() {
		return reject(CodeInvalidField, "closes_at: later than opens_at")
	}
	if in.Price < 1 || in.Price > ledger.MaxAmount {
		return reject(CodeAmountRange, "price: 1 to %d minor units", int64(ledger.MaxAmount))
	}
	if in.PerCustomer < 0 || in.PerCustomer > ledger.MaxAmount {
		return reject(CodeAmountRange, "per_customer: 0 to %d pieces", int64(ledger.MaxAmount))
	}
	if in.HoldFor != 0 && !holdInRange(in.HoldFor) {
		return reject(CodeHoldRange, "hold: %v to %v, whole seconds", MinHold, MaxHold)
	}
	return checkLate(in.Late)
}

// PutSale creates or replaces a sale. Two sales of one SKU never overlap.
func (h *Holdfast) PutSale(ctx context.Context, key Key, in SaleInput) (Answer[Sale], error) {
	if a, ok, err := replayed[Sale](ctx, h, key); ok || err != nil {
		return a, err
	}
	if err := in.check(); err != nil {
		return Answer[Sale]{}, err
	}
	if in.Preset != "" && in.Preset != h.o.Preset {
		return Answer[Sale]{}, reject(CodeInvalidField, "preset: this server runs with %s", h.o.Preset)
	}
	if in.ID == "" {
		var err error
		if in.ID, err = newID(); err != nil {
			return Answer[Sale]{}, err
		}
	}
	defer h.sales.forget(in.SKU)
	return put(ctx, h, key, func() (ledger.Entry, Sale, error) { return h.saleEntry(ctx, in) })
}

func (h *Holdfast) saleEntry(ctx context.Context, in SaleInput) (e ledger.Entry, s Sale, err error) {
	if _, err := h.knownItem(ctx, in.SKU); err != nil {
		return e, s, err
	}
	old, err := h.Sale(ctx, in.ID)
	var r *Rejection
	if err != nil && !errors.As(err, &r) {
		return e, s, err
	}
	if in.IfMatch != 0 && in.IfMatch != old.Version {
		return e, s, reject(CodeStale, "sale %s is at version %d", in.ID, old.Version)
	}
	if old.Version > 0 && (in.SKU != old.SKU || in.PerCustomer != old.PerCustomer) {
		return e, s, reject(CodeInvalidField, "sku and per_customer of a sale never change")
	}
	now, err := h.now(ctx)
	if err != nil {
		return e, s, err
	}
	s = Sale{ID: in.ID, Version: old.Version + 1, SKU: in.SKU,
		OpensAt: Time(in.OpensAt.UnixMilli()), ClosesAt: Time(in.ClosesAt.UnixMilli()), Price: in.Price, PerCustomer: in.PerCustomer,
		HoldFor: int64(in.HoldFor / time.Second), Late: in.Late, SoldOutside: in.SoldOutside, Preset: in.Preset}
	if old.Version == 0 && s.ClosesAt <= now {
		return e, s, reject(CodeInvalidField, "closes_at: in the past")
	}
	c, err := h.calendar(ctx, in.SKU)
	if err != nil {
		return e, s, err
	}
	next, other := c.Put(s, now)
	if other != nil {
		return e, s, reject(CodeSaleOverlaps, "sale %s of %s is from %v to %v", other.ID, s.SKU, other.OpensAt.Std(), other.ClosesAt.Std())
	}
	if len(next.Sales) > MaxSales {
		return e, s, reject(CodeTooManyItems, "at most %d sales of %s ahead", MaxSales, s.SKU)
	}
	e.Records = []ledger.Record{s.Record(), next.Record(s.SKU)}
	e.Events = []ledger.Event{{Type: "sale.updated", Subject: s.ID, Body: e.Records[0].Body}}
	if s.Version == 1 {
		e.Events[0].Type = "sale.created"
	}
	return e, s, nil
}

// Sale finds one sale.
func (h *Holdfast) Sale(ctx context.Context, id string) (Sale, error) {
	return document[Sale](ctx, h, flow.KindSale, id)
}

// Sales lists the sales of sku ("" = all) by id, from the one after after.
func (h *Holdfast) Sales(ctx context.Context, sku, after string, limit int) ([]Sale, error) {
	q := ledger.RecordQuery{Kind: flow.KindSale, Limit: limit}
	if sku != "" {
		q.Owner = flow.SKUOwner(sku)
	}
	if after != "" {
		q.After = ledger.RecordKey{Kind: flow.KindSale, ID: after}
	}
	rs, err := h.store.Records(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("holdfast: list sales: %w", err)
	}
	return documents[Sale](rs)
}

// calendar reads the sales of a SKU; one without sales has an empty one.
func (h *Holdfast) calendar(ctx context.Context, sku string) (flow.Calendar, error) {
	c, err := document[flow.Calendar](ctx, h, flow.KindCalendar, sku)
	var r *Rejection
	if errors.As(err, &r) {
		return flow.Calendar{}, nil
	}
	return c, err
}

// CurrentSale is the sale that decides on what terms sku is sold: the one that
// is open, else the next to open, else the last that closed; without an ID = none.
func (h *Holdfast) CurrentSale(ctx context.Context, sku string) (Sale, error) {
	now, err := h.now(ctx)
	if err != nil {
		return Sale{}, err
	}
	c, err := h.sales.get(h.o.Clock(), sku, func() (flow.Calendar, error) { return h.calendar(ctx, sku) })
	s, _ := c.At(now)
	return s, err
}

// offer is the line of an order at now: the item, on the terms of its sale if
// one is open. It is refused when the item is only sold in a sale that is not.
// hold is how long the stock is held; 0 = the shop's default.
func (h *Holdfast) offer(ctx context.Context, item Item, now Time) (l Line, hold time.Duration, err error) {
	l = Line{SKU: item.SKU, Name: item.Name, Price: item.Price, Late: item.Late}
	hold = time.Duration(item.HoldFor) * time.Second
	c, err := h.sales.get(h.o.Clock(), item.SKU, func() (flow.Calendar, error) { return h.calendar(ctx, item.SKU) })
	if err != nil {
		return l, hold, err
	}
	s, ok := c.At(now)
	open := s.OpensAt <= now && now < s.ClosesAt
	switch {
	case !ok, !open && s.SoldOutside:
		return l, hold, nil
	case now < s.OpensAt:
		return l, hold, &Rejection{Code: CodeSaleNotOpen, SKU: item.SKU, OpensAt: s.OpensAt,
			Detail: fmt.Sprintf("the sale of %s opens at %v", item.SKU, s.OpensAt.Std())}
	case !open:
		return l, hold, &Rejection{Code: CodeSaleClosed, SKU: item.SKU, Detail: "the sale of " + item.SKU + " is over"}
	}
	l.Sale, l.Price, l.PerCustomer = s.ID, s.Price, s.PerCustomer
	if s.HoldFor > 0 {
		hold = time.Duration(s.HoldFor) * time.Second
	}
	if s.Late != nil {
		l.Late = s.Late
	}
	return l, hold, nil
}

// applyGranted applies the entry of a new order, and in it gives the customer
// the allowances that were not given before. Most customers of a sale order
// once, so whether they were is not looked up: the ledger says so, as stale. left
// are those that were not.
func (h *Holdfast) applyGranted(ctx context.Context, e ledger.Entry, grants []flow.Grant) (res ledger.Result, left []flow.Grant, err error) {
	left = grants
	for range len(grants) + 1 {
		full := e
		full.Ops, full.Records = slices.Clone(e.Ops), slices.Clone(e.Records)
		for _, g := range left {
			full.Ops = append(full.Ops, g.Op)
			full.Records = append(full.Records, g.Record)
		}
		res, err = h.apply(ctx, full)
		n := slices.IndexFunc(left, func(g flow.Grant) bool { return g.Record.Key() == res.Record })
		if err != nil || res.Code != ledger.Stale || n < 0 {
			return res, left, err
		}
		left = slices.Delete(slices.Clone(left), n, n+1)
	}
	return res, left, nil
}

// short says what the ledger had not enough of: pieces, or allowance. grants
// are those that did not happen either.
func short(lines []Line, res ledger.Result, grants []flow.Grant) *Rejection {
	if sku, ok := skuOf(res.Key); ok {
		return &Rejection{Code: CodeSoldOut, SKU: sku, Available: res.Available, Detail: fmt.Sprintf("%s has %d available", sku, res.Available)}
	}
	r := &Rejection{Code: CodeCustomerLimit, Available: res.Available}
	for _, g := range grants {
		if g.Op.Asset == res.Key.Asset {
			r.Available += g.Op.Amount
		}
	}
	for _, l := range lines {
		if flow.Limit(l.Sale) == res.Key.Asset {
			r.SKU = l.SKU
			r.Detail = fmt.Sprintf("%s is limited to %d for each customer, and %d are left", l.SKU, l.PerCustomer, r.Available)
		}
	}
	return r
}
