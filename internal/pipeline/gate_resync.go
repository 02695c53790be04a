package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// idleResyncs is after how many resyncs a key that nobody wants is forgotten.
const idleResyncs = 20

// resyncAll looks at the ledger in turn, and whenever it is asked to; after a
// failure in turn only.
func (g *Gate) resyncAll(ctx context.Context) {
	defer close(g.done)
	g.look(ctx)
	tick := time.NewTicker(g.options.Resync)
	defer tick.Stop()
	kick := g.kick
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-kick:
		}
		kick = g.kick
		if err := g.resync(ctx); err != nil {
			kick = nil
			g.mu.Lock()
			g.stats.Failures++
			g.mu.Unlock()
		}
	}
}

// resyncSoon asks for a resync. One that is asked for already will do.
func (g *Gate) resyncSoon() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// resync sets the Counter of the keys that are wanted from the ledger.
func (g *Gate) resync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resyncDeadline)
	defer cancel()
	g.settle(ctx)
	levels, clock := g.due()
	if len(levels) == 0 {
		return nil
	}
	lines := g.written()
	at, err := g.read(ctx, levels)
	if err != nil {
		g.wantedStill(levels)
		return fmt.Errorf("pipeline: read balances for the gate: %w", err)
	}
	call, cancel := context.WithTimeout(ctx, gateDeadline)
	defer cancel()
	lefts, err := g.counter.Set(call, levels...)
	if err == nil && len(lefts) != len(levels) {
		err = fmt.Errorf("%d answers for %d keys", len(lefts), len(levels))
	}
	if err != nil {
		g.wantedStill(levels)
		return fmt.Errorf("pipeline: set the counter: %w", err)
	}
	g.mu.Lock()
	now := time.Now()
	g.writer.compare(lines, levels[0].Seq, now)
	g.down, g.at = false, at
	g.stats.Resyncs++
	for i, l := range levels {
		k := g.keys[l.Key]
		k.set, k.since = clock, now.Add(-lefts[i].Reach)
		if k.gap <= clock {
			k.gap = 0
		}
		if !lefts[i].Sure {
			k.known, k.cursor = nil, 0
		}
		if !lefts[i].Sure || lefts[i].Amount > 0 {
			k.until = time.Time{}
		}
	}
	g.mu.Unlock()
	for i, l := range levels {
		if lefts[i].Sure && lefts[i].Amount < 1 {
			if err := g.remember(ctx, l.Key); err != nil {
				return fmt.Errorf("pipeline: list what was taken of %s %s: %w", l.Key.Account, l.Key.Asset, err)
			}
		}
	}
	return nil
}

// due lists the keys to be set, with what the Gate has heard of them so far, and
// forgets those that nobody has wanted for long.
func (g *Gate) due() (levels []Level, clock int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, k := range g.keys {
		if !k.wanted && k.gap == 0 {
			if k.idle++; k.idle > idleResyncs {
				delete(g.keys, key)
			}
			continue
		}
		if len(levels) == resyncKeys {
			g.resyncSoon()
			break
		}
		levels = append(levels, Level{Key: key, Gap: k.gap > 0})
		k.wanted, k.idle = false, 0
	}
	return levels, g.clock
}

// wantedStill puts levels that could not be set back among those that are due.
func (g *Gate) wantedStill(levels []Level) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range levels {
		g.keys[l.Key].wanted = true
	}
}

// read fills levels in, all at one line of the journal.
func (g *Gate) read(ctx context.Context, levels []Level) (at int64, err error) {
	err = g.store.Snapshot(ctx, func(r ledger.Reader) error {
		head, err := r.Head(ctx)
		if err != nil {
			return err
		}
		at = head.At
		for i := range levels {
			key := levels[i].Key
			rows, err := r.Balances(ctx, ledger.BalanceQuery{Account: key.Account, Asset: key.Asset, Limit: 1})
			if err != nil {
				return err
			}
			levels[i].Seq = head.Seq
			if len(rows) > 0 {
				levels[i].Available = min(rows[0].Available(), ledger.MaxAmount)
			}
		}
		return nil
	})
	return at, err
}

// remember lets the gate answer by itself that key has nothing left, once it
// knows every operation that has taken of it.
func (g *Gate) remember(ctx context.Context, key ledger.Key) error {
	g.mu.Lock()
	k := g.keys[key]
	if k.known == nil {
		k.known = map[uint64]struct{}{}
	}
	cursor, n := k.cursor, len(k.known)
	g.mu.Unlock()
	for more := true; more; {
		if n > maxKnown {
			return nil
		}
		call, cancel := context.WithTimeout(ctx, gateDeadline)
		ops, next, again, err := g.counter.Taken(call, key, cursor)
		cancel()
		if err != nil {
			return err
		}
		g.mu.Lock()
		for _, op := range ops {
			k.known[g.hash(op)] = struct{}{}
		}
		k.cursor, n = next, len(k.known)
		g.mu.Unlock()
		cursor, more = next, again
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k.until = time.Now().Add(g.options.SoldOut)
	return nil
}

// settle tells the Counter what has ended, as one call.
func (g *Gate) settle(ctx context.Context) {
	g.mu.Lock()
	settled := g.settled
	g.settled = nil
	down := g.down
	g.mu.Unlock()
	if len(settled) == 0 || down {
		return // what nobody tells is doubtful until its lease is over
	}
	call, cancel := context.WithTimeout(ctx, gateDeadline)
	defer cancel()
	if err := g.counter.Settle(call, settled...); err != nil {
		g.mu.Lock()
		g.stats.Failures++
		g.mu.Unlock()
	}
}
