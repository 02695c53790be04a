package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// seedWidth is how many bulk orders place the orders of before at once.
const seedWidth = 16

// product is a seller that is ours.
type product struct {
	core    *holdfast.Holdfast
	version string
	since   int64 // the end of the journal before this run
}

// openProduct opens a store with its stock and the orders placed before.
// Stock and orders come in through group commit, whatever the preset is.
func openProduct(ctx context.Context, t heat, full, empty []string) (p *product, placed load, err error) {
	// No hold ends while it is measured.
	o := holdfast.Options{Passive: true, HoldFor: holdfast.MaxHold}
	loader, err := holdfast.Open(ctx, t.store, o)
	if err != nil {
		return nil, placed, err
	}
	p = &product{}
	head, err := loader.Ledger().Head(ctx)
	if err == nil {
		p.since = head.Seq
		err = stockUp(ctx, loader, full, benchStock)
	}
	if err == nil {
		err = stockUp(ctx, loader, empty, 0)
	}
	if err == nil {
		placed, err = seed(ctx, loader, full, t.seed)
	}
	if err = errors.Join(err, closeStore(ctx, loader)); err != nil {
		return nil, placed, err
	}
	if p.version, err = serverVersion(ctx, t.store); err != nil {
		return nil, placed, err
	}
	o.Preset, o.Redis, o.Passive = t.preset, t.redis, false
	p.core, err = holdfast.Open(ctx, t.store, o)
	return p, placed, err
}

func stockUp(ctx context.Context, core *holdfast.Holdfast, skus []string, stock int64) error {
	var items []holdfast.ItemInput
	for _, sku := range skus {
		items = append(items, holdfast.ItemInput{SKU: sku, Name: sku, Price: 100, Currency: "EUR", Stock: stock})
	}
	return core.PutItems(ctx, items, func() {})
}

// seed places n orders, evenly over the SKUs.
func seed(ctx context.Context, core *holdfast.Holdfast, skus []string, n int) (load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	placed := load{accepted: map[string]int64{}}
	requests := make(chan []holdfast.OrderInput)
	var placing sync.WaitGroup
	for range seedWidth {
		placing.Go(func() {
			for in := range requests {
				if err := placeAll(ctx, core, in); err != nil {
					cancel(err)
				}
			}
		})
	}
	for first := 0; first < n && ctx.Err() == nil; first += holdfast.MaxBulk {
		var in []holdfast.OrderInput
		for i := first; i < min(first+holdfast.MaxBulk, n); i++ {
			sku := skus[i%len(skus)]
			placed.accepted[sku]++
			in = append(in, onePiece(sku))
		}
		requests <- in
	}
	close(requests)
	placing.Wait()
	return placed, context.Cause(ctx)
}

func placeAll(ctx context.Context, core *holdfast.Holdfast, in []holdfast.OrderInput) error {
	a, err := core.PlaceMany(ctx, holdfast.Key{}, in, false)
	if err != nil {
		return err
	}
	for _, o := range a.Value {
		if o.Order == nil {
			return fmt.Errorf("an order before was refused: %s %s", o.Code, o.Detail)
		}
	}
	return nil
}

func onePiece(sku string) holdfast.OrderInput {
	return holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: sku, Quantity: 1}}}
}

func (p *product) placers(ctx context.Context, b *benching, clients int) (all []placer, stop func(), err error) {
	if !b.http {
		place := p.place
		if b.bulk > 1 {
			place = p.placeMany
		}
		for range clients {
			all = append(all, place)
		}
		return all, func() {}, nil
	}
	key, _, err := p.core.CreateKey(ctx, "bench", []string{holdfast.ScopeWrite}, 0)
	if err != nil {
		return nil, nil, err
	}
	return overHTTP(ctx, httpapi.New(p.core, httpapi.Options{}), key, clients, b.bulk > 1)
}

func (p *product) place(ctx context.Context, key string, skus []string, fates []placed) {
	_, err := p.core.Place(ctx, holdfast.Key{Scope: "bench", Value: key}, onePiece(skus[0]))
	fates[0] = fate(err)
}

func (p *product) placeMany(ctx context.Context, key string, skus []string, fates []placed) {
	in := make([]holdfast.OrderInput, len(skus))
	for i, sku := range skus {
		in[i] = onePiece(sku)
	}
	a, err := p.core.PlaceMany(ctx, holdfast.Key{Scope: "bench", Value: key}, in, false)
	for i := range fates {
		switch {
		case err != nil:
			fates[i] = fate(err)
		case a.Value[i].Order != nil:
			fates[i] = placeHeld
		default:
			fates[i] = fate(&holdfast.Rejection{Code: a.Value[i].Code})
		}
	}
}

func fate(err error) placed {
	var rejected *holdfast.Rejection
	switch {
	case err == nil:
		return placeHeld
	case errors.As(err, &rejected) && rejected.Code == holdfast.CodeSoldOut:
		return placeSoldOut
	case errors.As(err, &rejected) && rejected.Code == holdfast.CodeOverloaded:
		return placeTurnedAway
	}
	return placeUnknown
}

// levels are read from the postings and balances.
func (p *product) levels(ctx context.Context) (map[string]level, error) {
	all := map[string]level{}
	q := ledger.PostingQuery{After: p.since}
	for {
		page, err := p.core.Ledger().Postings(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if sku, ok := skuOf(m.Asset); ok && m.From == flow.Supplier {
				v := all[sku]
				v.received += m.Amount
				all[sku] = v
			}
			q.After = m.Seq
		}
	}
	stock := ledger.BalanceQuery{Account: flow.Stock}
	for {
		page, err := p.core.Ledger().Balances(ctx, stock)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return all, nil
		}
		for _, b := range page {
			if sku, ok := skuOf(b.Asset); ok {
				v := all[sku]
				v.held, v.available = v.held+b.Held, v.available+b.Available()
				all[sku] = v
			}
			stock.After = b.Key
		}
	}
}

func skuOf(asset ledger.Asset) (sku string, ok bool) {
	return strings.CutPrefix(string(asset), string(flow.Pieces("")))
}

func (p *product) counts() counts {
	s := p.core.Stats()
	return counts{s.Batches, s.Entries, s.Decisions, s.Transactions}
}

func (p *product) verify(ctx context.Context, h *host) error {
	rep, err := h.verify(ctx, p.core)
	if err == nil && !rep.OK() {
		err = fmt.Errorf("verify: %d problems, the first: %+v", rep.Count, rep.Problems[0])
	}
	return err
}

func (p *product) close(ctx context.Context) error { return closeStore(ctx, p.core) }

func (p *product) server() string { return p.version }
