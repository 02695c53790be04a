package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// heat is what one contender is measured with.
type heat struct {
	store, preset       string
	redis               string // that the preset uses; "" = none
	pool                int    // connections of a textbook; 0 = the store's own
	clients, skus, seed int
	payouts             bool // are asked for, instead of orders
}

// temporary is a store that is made for one contender and removed.
const temporary = "sqlite:"

// heats are all combinations that were asked for. dir is for temporary stores.
func (b *benching) heats(dir string) []heat {
	var all []heat
	stores := b.stores
	if len(stores) == 0 {
		stores = []string{temporary}
	}
	for _, store := range stores {
		for _, clients := range b.clients {
			for _, skus := range b.skus {
				for _, seed := range b.seeds {
					for _, preset := range b.presets {
						at := store
						if at == temporary {
							at = fmt.Sprintf("sqlite:%s.db", filepath.Join(dir, fmt.Sprint(preset, len(all))))
						}
						for _, pool := range pools(at, preset) {
							all = append(all, heat{at, preset, overRedis(preset, b.redis), pool, clients, skus, seed, b.payouts})
						}
					}
				}
			}
		}
	}
	return all
}

// contest measures all contenders and the floors, turn by turn: whatever else
// the machine does meanwhile meets all of them alike.
func (h *host) contest(ctx context.Context, b *benching) (all []figures, floors *floors, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, nil, fmt.Errorf("make temporary stores: %w", err)
	}
	defer os.RemoveAll(dir)
	floors, err = b.floors(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("floors: %w", err)
	}
	defer floors.stop()
	var contenders []*contender
	defer func() {
		for _, c := range contenders {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	heats := b.heats(dir)
	prepared := h.progress("prepare", int64(len(heats)))
	for i, heat := range heats {
		c, err := b.enter(ctx, heat)
		if err != nil {
			prepared.end()
			return nil, nil, fmt.Errorf("%s: %w", heat.preset, err)
		}
		contenders = append(contenders, c)
		prepared.set(int64(i+1), int64(len(heats)))
	}
	prepared.end()
	if err := h.takeTurns(ctx, b, contenders, floors); err != nil {
		return nil, nil, err
	}
	verified := map[string]bool{} // stores
	for _, c := range contenders {
		if err := c.finish(ctx, h, verified); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Preset, err)
		}
	}
	return best(contenders), floors, nil
}

func (h *host) takeTurns(ctx context.Context, b *benching, contenders []*contender, floors *floors) error {
	whole := (b.warmUp()+b.inStock()+b.soldOut())*time.Duration(len(contenders)) + floors.takes()
	p := h.progress("bench", whole.Milliseconds())
	defer p.end()
	start := time.Now()
	tick := func() {
		done := time.Since(start)
		p.set(done.Milliseconds(), max(done, whole).Milliseconds())
	}
	for _, c := range contenders {
		c.placed.add(b.drive(ctx, c.askers, c.full, b.warmUp(), tick))
	}
	for n := range benchTurns {
		if err := floors.turn(ctx, tick); err != nil {
			return fmt.Errorf("floors: %w", err)
		}
		for _, c := range contenders {
			if c.turn(ctx, b, tick); ctx.Err() != nil {
				return fmt.Errorf("turn %d of %s: %w", n, c.Preset, context.Cause(ctx))
			}
		}
	}
	return nil
}

// best leaves of each textbook the one with the number of connections that
// served it best. One that sold wrongly is never better.
func best(contenders []*contender) []figures {
	var all []figures
	at := map[heat]int{}
	for _, c := range contenders {
		same := c.heat
		same.pool = 0
		i, seen := at[same]
		switch {
		case !seen || c.pool == 0:
			at[same] = len(all)
			all = append(all, c.figures)
		case all[i].Accepted == nil:
		case c.Accepted == nil || *c.Accepted > *all[i].Accepted:
			all[i] = c.figures
		}
	}
	return all
}
