package pipeline

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// soldOut finds a key of t that is known to be empty, if t may be refused and
// can't be a repeat.
func (g *Gate) soldOut(t Taking) (Verdict, bool) {
	if !t.Firm {
		return Verdict{}, false
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range t.Wants {
		k, ok := g.keys[w.Key]
		if !ok {
			continue
		}
		k.wanted = true
		if !now.Before(k.until) || !g.trusts(k) {
			continue
		}
		if _, ok := k.known[g.hash(t.Op)]; ok {
			return Verdict{}, false
		}
		g.stats.SoldOut++
		return Verdict{Short, w.Key, 0}, true
	}
	return Verdict{}, false
}

// hash shortens an operation. Two that collide cost a question to the Counter.
func (g *Gate) hash(op string) uint64 { return maphash.String(g.seed, op) }

// take asks the Counter; nil = it can't be asked, and the takings pass by it.
func (g *Gate) take(ctx context.Context, takings []Taking) []Verdict {
	var verdicts []Verdict
	if g.enter(takings) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateDeadline)
		defer cancel()
		var err error
		if verdicts, err = g.counter.Take(call, takings...); err != nil || len(verdicts) != len(takings) {
			verdicts = nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if verdicts == nil {
		g.passedBy(takings)
		return nil
	}
	for i, v := range verdicts {
		switch v.Fate {
		case Short:
			g.stats.Refused++
			return verdicts
		case Repeated:
			g.stats.Repeats++
		case Took, Doubted:
			g.knows(takings[i])
		}
	}
	g.stats.Through += int64(len(takings))
	return verdicts
}

// enter notes that the keys of takings are wanted, and makes takings that might
// be refused wrongly not Firm. It says whether the Counter is to be asked.
func (g *Gate) enter(takings []Taking) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range takings {
		for _, w := range takings[i].Wants {
			k, ok := g.keys[w.Key]
			if !ok && len(g.keys) < maxGateKeys {
				k = &guarded{}
				g.keys[w.Key] = k
			}
			if k == nil {
				takings[i].Firm = false
				continue
			}
			k.wanted = true
			takings[i].Firm = takings[i].Firm && g.trusts(k)
		}
	}
	return !g.down
}

// trusts says whether a refusal may rest on what the Counter knows of k: the
// ledger has been looked at since more may have come, and nothing passed by.
func (g *Gate) trusts(k *guarded) bool { return k.set >= max(k.heard, g.heard) && k.gap == 0 }

// knows notes that t.Op has taken, for the keys that have been sold out before.
func (g *Gate) knows(t Taking) {
	for _, w := range t.Wants {
		k, ok := g.keys[w.Key]
		if !ok {
			continue
		}
		k.until = time.Time{} // there was something left
		if k.known != nil && len(k.known) <= maxKnown {
			k.known[g.hash(t.Op)] = struct{}{}
		}
	}
}

// passedBy notes that takings are not counted. The Counter does not know them,
// so that its memory has a gap.
func (g *Gate) passedBy(takings []Taking) {
	if !g.down {
		g.down = true
		g.stats.Failures++
	}
	g.stats.Blind += int64(len(takings))
	g.clock++
	for _, t := range takings {
		for _, w := range t.Wants {
			if k, ok := g.keys[w.Key]; ok {
				k.gap = g.clock
			}
		}
	}
}

// doubt lets an entry through for doubtful stock, if not too many are inside.
func (g *Gate) doubt() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.doubts >= maxDoubts {
		g.stats.TurnedAway++
		return false
	}
	g.doubts++
	return true
}

func (g *Gate) decided() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doubts--
}

// noEffect says whether err means that nothing was or will be applied.
func noEffect(err error) bool {
	return errors.Is(err, ErrOverloaded) || errors.Is(err, ErrClosed) || errors.Is(err, ErrWithdrawn)
}

// giveBack gives back what this call took. A repeat belongs to the call before.
func (g *Gate) giveBack(ctx context.Context, takings []Taking, verdicts []Verdict) {
	for i, v := range verdicts {
		if v.Fate == Took || v.Fate == Doubted {
			g.give(ctx, takings[i])
		}
	}
}

func (g *Gate) give(ctx context.Context, t Taking) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateDeadline)
	defer cancel()
	keys := make([]ledger.Key, len(t.Wants))
	for i, w := range t.Wants {
		keys[i] = w.Key
	}
	err := g.counter.Give(call, t.Op, keys)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.stats.Failures++ // it stays doubtful until its lease is over
		return
	}
	g.stats.Returned++
}

// ended tells the Counter what became of t.
func (g *Gate) ended(ctx context.Context, t Taking, res ledger.Result) {
	if res.Code == ledger.IDReused {
		return // the taking is that of another entry
	}
	if res.Refused() {
		g.give(ctx, t)
		return
	}
	g.mu.Lock()
	if len(g.settled) < maxSettlements { // what does not fit is doubtful until its lease is over
		for _, w := range t.Wants {
			g.settled = append(g.settled, Settlement{t.Op, w.Key, res.Seq})
		}
	}
	full := len(g.settled) >= settleNow
	g.mu.Unlock()
	if full {
		g.settle(context.WithoutCancel(ctx))
	}
}

// changed notes that something may have come back.
func (g *Gate) changed() {
	g.mu.Lock()
	g.clock++
	g.heard = g.clock
	g.mu.Unlock()
	g.resyncSoon()
}

// refusal is the gate's own answer.
func (g *Gate) refusal(e ledger.Entry, v Verdict) ledger.Result {
	g.mu.Lock()
	defer g.mu.Unlock()
	op := slices.IndexFunc(e.Ops, func(op ledger.Op) bool { return op.From == v.Key.Account && op.Asset == v.Key.Asset })
	return ledger.Result{At: g.at, Code: ledger.Insufficient, Op: op, Key: v.Key, Available: v.Left}
}
