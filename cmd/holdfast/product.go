package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// seedWidth is how many bulk orders place the orders of before at once.
const seedWidth = 16

// product is a seller that is ours.
type product struct {
	ware
	core    *holdfast.Holdfast
	version string
	since   int64 // the end of the journal before this run
}

// openProduct opens a store with its stock and the orders placed before.
// Stock and orders come in through group commit, whatever the preset is.
func openProduct(ctx context.Context, t heat, full, empty []string) (p *product, placed load, err error) {
	of := wareOf(t.payouts)
	// No hold ends while it is measured.
	o := holdfast.Options{Passive: true, HoldFor: holdfast.MaxHold, Gateways: of.gateways}
	loader, err := holdfast.Open(ctx, t.store, o)
	if err != nil {
		return nil, placed, err
	}
	p = &product{ware: of}
	head, err := loader.Ledger().Head(ctx)
	if err == nil {
		p.since = head.Seq
		err = of.supply(ctx, loader, full, benchStock)
	}
	if err == nil {
		err = of.supply(ctx, loader, empty, 0)
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
	o.Preset, o.Redis, o.Passive = t.preset, t.redis, of.passive
	p.core, err = holdfast.Open(ctx, t.store, o)
	return p, placed, err
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
	key, _, err := p.core.CreateKey(ctx, holdfast.Key{}, "bench", []string{holdfast.ScopeWrite}, 0)
	if err != nil {
		return nil, nil, err
	}
	return overHTTP(ctx, httpapi.New(p.core, httpapi.Options{}), p.ware, key, clients, b.bulk > 1)
}

func (p *product) place(ctx context.Context, key string, skus []string, fates []placed) {
	fates[0] = fate(p.ask(ctx, p.core, holdfast.Key{Scope: "bench", Value: key}, skus[0]))
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
	case errors.As(err, &rejected) && (rejected.Code == holdfast.CodeSoldOut || rejected.Code == holdfast.CodeInsufficientFunds):
		return placeSoldOut
	case errors.As(err, &rejected) && rejected.Code == holdfast.CodeOverloaded:
		return placeTurnedAway
	}
	return placeUnknown
}

func (p *product) levels(ctx context.Context) (map[string]level, error) {
	return p.audit(ctx, p.core.Ledger(), p.since)
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
