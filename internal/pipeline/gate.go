package pipeline

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Defaults and limits of a Gate.
const (
	DefaultResync  = 100 * time.Millisecond
	DefaultSoldOut = 500 * time.Millisecond

	gateDeadline   = 250 * time.Millisecond // of one call of the Counter
	resyncDeadline = 5 * time.Second        // of reading the ledger and telling the Counter
	resyncKeys     = 256                    // keys of one resync; the others come with the next
	maxGateKeys    = 10_000                 // keys that a Gate knows of at a time
	maxGateWants   = 100                    // keys of one entry
	maxGateAmount  = 1 << 40                // of one want, in minor units
	maxKnown       = 100_000                // operations of a key that a sold-out verdict is kept beside
	maxSettlements = 4096                   // that wait to be told to the Counter
	settleNow      = 64                     // settlements that are told at once
	maxDoubts      = 32                     // entries let through at once for doubtful stock
)

// GateOptions say what a Gate guards, and how often it looks at the ledger.
type GateOptions struct {
	// Accounts are those of which what is taken passes the gate, with any asset.
	// External ones never do.
	Accounts []ledger.Account
	// Resync is the time between two looks at the ledger; 0 = 100 ms.
	Resync time.Duration
	// SoldOut is how long the gate may answer from its own memory that a key has
	// nothing left; 0 = 500 ms.
	SoldOut time.Duration
}

// Gate is the bouncer of a flash sale: an Applier that lets through to the
// Applier inside only as many entries as there is stock for, by a Counter that
// is cheaper to ask than the ledger, and tells all others that nothing is left.
//
// What is always true:
//   - The gate may be wrong; the ledger never is. Every entry that takes anything
//     is decided by the Applier inside. Whatever the Counter says, nothing is sold
//     twice.
//   - The gate refuses only what it is sure of: the Counter was set from the ledger
//     a moment ago, remembers long enough to know a repeat, and what is left and
//     what is doubtful are together too little. Everything else is counted and let
//     through. So a Counter that is empty, stale, flushed or gone costs speed only.
//   - One taking for each entry id, however often it comes, and the repeat is
//     recognised before the stock is looked at. A counter that is lessened first
//     loses a unit with every repeat; one that looks at the stock first tells the
//     buyer of the last unit, when his browser asks again, that he got nothing.
//   - A taking of an entry that the ledger refused is given back, once. If the
//     outcome is unknown it is not: the unit may be sold. It stays doubtful until
//     the ledger has told, or its lease is over.
//
// What flows back (an expired hold, a restock) is never added to the Counter,
// because there are too many ways to hear of it twice or never. Instead, the gate
// sets the Counter from the ledger again and again. The naive way to do that
// loses the entries on their way: they have lessened the Counter and are not in
// the ledger yet, so they would be admitted again. So a Set names the line of the
// journal that it was read at. Takings that ended in a later line are subtracted;
// those that have not ended may be in it or not: they are subtracted as well, and
// noted as doubtful. For doubtful stock a few entries are let through at a time, and
// the ledger decides; more are turned away with ErrOverloaded, because nobody
// knows yet whether they are too late.
//
// Commits, voids, expiries and all that takes nothing from a guarded account go
// straight through. After one that may have brought something back, the gate lets
// everything through until it has looked at the ledger, which it does at once.
// What other processes bring back it sees with the next resync, or by Changed.
//
// A key of which nothing is left is answered from the gate's own memory, without
// Counter or ledger, save for operations that may have taken of it. That verdict
// is short-lived and renewed with every resync, whose cost does not depend on how
// many ask.
//
// In two ways a refusal is weaker than the ledger's. It may be as old as
// GateOptions.Resync when other processes have brought something back. And it may
// be the answer to a repeat of what was accepted, when everything is sold: after the
// Counter's memory is over, and when another gate let it through that could not
// reach the Counter. Who may be repeating looks the id up before believing it,
// unless Remembers says that nobody can be repeating anything so old.
//
// Safe for concurrent use. Owns one goroutine, which Close ends.
type Gate struct {
	inner   ledger.Applier
	store   ledger.Reader
	counter Counter
	options GateOptions
	seed    maphash.Seed

	mu      sync.Mutex
	keys    map[ledger.Key]*guarded
	clock   int64 // counts what may have brought something back
	heard   int64 // clock when it may have been anything
	down    bool  // the Counter failed, and has not been set since
	doubts  int   // entries inside for doubtful stock
	at      int64 // the store's time at the last resync, Unix ms
	settled []Settlement
	writer  writer
	stats   GateStats

	kick chan struct{} // asks for a resync now
	stop context.CancelFunc
	done chan struct{}
}

// guarded is what a Gate knows of one key.
type guarded struct {
	wanted bool      // since the last resync
	idle   int       // resyncs without being wanted
	gap    int64     // Gate.clock when something passed by the Counter; 0 = nothing
	heard  int64     // Gate.clock when more may have come
	set    int64     // Gate.clock when the ledger was last looked at; 0 = never
	since  time.Time // how far back the Counter's memory reaches, with set

	until  time.Time           // until when it is known that nothing is left
	known  map[uint64]struct{} // operations that may have taken of it
	cursor int64               // of known, for Counter.Taken
}

// GateStats count entries since the gate was made.
type GateStats struct {
	Straight   int64 // took nothing that is guarded
	Through    int64 // were counted and let through
	Repeats    int64 // of those, had been counted before
	Blind      int64 // were let through without the Counter
	Refused    int64 // were refused by the Counter
	SoldOut    int64 // were refused from the gate's own memory
	TurnedAway int64 // came for doubtful stock when many had
	Returned   int64 // were given back to the Counter
	Resyncs    int64 // looks at the ledger
	Failures   int64 // of the Counter, or of a look at the ledger
}

// NewGate puts a Gate around inner, whose truth is read from store. Close it
// before inner.
func NewGate(inner ledger.Applier, store ledger.Reader, counter Counter, o GateOptions) *Gate {
	if o.Resync <= 0 {
		o.Resync = DefaultResync
	}
	if o.SoldOut <= 0 {
		o.SoldOut = DefaultSoldOut
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &Gate{inner: inner, store: store, counter: counter, options: o, seed: maphash.MakeSeed(),
		keys: map[ledger.Key]*guarded{}, clock: 1, heard: 1, kick: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go g.resyncAll(ctx)
	return g
}

// Close ends the resync and waits for it. Entries are still let through, and
// soon nothing is refused any more. Closing twice is fine.
func (g *Gate) Close(ctx context.Context) error {
	g.stop()
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pipeline: close gate: %w", ctx.Err())
	}
}

// Stats returns the counts.
func (g *Gate) Stats() GateStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// Changed says that key may have got more. The gate does not refuse anything of
// it until it has looked at the ledger.
func (g *Gate) Changed(key ledger.Key) {
	g.mu.Lock()
	g.clock++
	if k, ok := g.keys[key]; ok {
		k.heard, k.wanted = g.clock, true
	}
	g.mu.Unlock()
	g.resyncSoon()
}

// Apply implements ledger.Applier. Its own refusals are Insufficient, with what
// the gate believes to be available. Its errors are those of the Applier inside,
// and ErrOverloaded.
//
// A call of several entries is never refused in part: its entries are decided in
// order, and what one leaves to the next only the ledger knows.
func (g *Gate) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	takings, owners, returns := g.takings(entries)
	if len(takings) == 0 {
		return g.straight(ctx, entries, returns)
	}
	if v, ok := g.soldOut(takings[0]); ok {
		return []ledger.Result{g.refusal(entries[0], v)}, nil
	}
	verdicts := g.take(ctx, takings)
	if len(verdicts) > 0 && takings[0].Firm { // then it is the only one
		switch verdicts[0].Fate {
		case Short:
			return []ledger.Result{g.refusal(entries[0], verdicts[0])}, nil
		case Doubted:
			if !g.doubt() {
				g.give(ctx, takings[0])
				return nil, fmt.Errorf("pipeline: apply %q: %w", entries[0].ID, ErrOverloaded)
			}
			defer g.decided()
		}
	}
	results, err := g.through(ctx, entries)
	if returns {
		g.changed()
	}
	if err != nil || len(results) != len(entries) {
		if noEffect(err) {
			g.giveBack(ctx, takings, verdicts)
		}
		return results, err
	}
	if verdicts != nil {
		for i, t := range takings {
			g.ended(ctx, t, results[owners[i]])
		}
	}
	return results, nil
}

func (g *Gate) straight(ctx context.Context, entries []ledger.Entry, returns bool) ([]ledger.Result, error) {
	results, err := g.through(ctx, entries)
	if returns {
		g.changed()
	}
	g.mu.Lock()
	g.stats.Straight += int64(len(entries))
	g.mu.Unlock()
	return results, err
}
