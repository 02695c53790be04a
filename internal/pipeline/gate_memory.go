package pipeline

import (
	"context"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// othersLag is how long lines of the journal may be missing among those that a
// gate has written before they count as somebody else's.
const othersLag = time.Second

// Remembers is how far back the gate's refusals of key are certain not to be
// answers to a repeat of what was accepted: whoever can't be repeating anything
// older need not look the id up. 0 = look it up.
//
// It is as far as the Counter's memory reaches, if takings cannot have passed by
// it. A LocalCounter knows the takings of one process only, so with it the gate
// compares the journal with what it has written itself, at every resync, and
// starts anew when there is more.
func (g *Gate) Remembers(key ledger.Key) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	k, ok := g.keys[key]
	if !ok || g.down || !g.trusts(k) {
		return 0
	}
	now := time.Now()
	reach := now.Sub(k.since)
	if _, local := g.counter.(*LocalCounter); local {
		if now.Sub(g.writer.seen) > othersLag {
			return 0
		}
		reach = min(reach, now.Sub(g.writer.since))
	}
	return reach
}

// writer is whether this gate has written all lines of the journal.
type writer struct {
	inside int64     // entries on their way
	lines  int64     // that it has written
	base   int64     // lines that were there besides
	since  time.Time // from then on, as far as is known; zero = nothing is
	seen   time.Time // when it was last certain
}

// through hands entries on, and counts the lines that they make.
func (g *Gate) through(ctx context.Context, entries []ledger.Entry) ([]ledger.Result, error) {
	g.mu.Lock()
	g.writer.inside += int64(len(entries))
	g.mu.Unlock()
	results, err := g.inner.Apply(ctx, entries...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writer.inside -= int64(len(entries))
	for _, r := range results {
		if r.Seq > 0 && !r.Replayed {
			g.writer.lines++
		}
	}
	return results, err
}

// written is how many lines the gate has written so far.
func (g *Gate) written() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writer.lines
}

// compare says that the journal had seq lines, a moment ago, when at least lines
// of them were the gate's own. What is missing may be on its way.
func (w *writer) compare(lines, seq int64, now time.Time) {
	missing := seq - w.base - lines
	switch others := missing > w.lines-lines+w.inside; {
	case w.since.IsZero(), others, missing > 0 && now.Sub(w.seen) > othersLag:
		w.since = now
	case missing > 0:
		return
	}
	w.base, w.seen = seq-lines, now // less than nothing was missing: base had some of its own
}

// look sees how long the journal is before anybody asks for anything; when it
// can't, the first resync does. Since the last line nobody has written, so memory
// reaches back to it, although this process was not there.
func (g *Gate) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, resyncDeadline)
	defer cancel()
	lines := g.written()
	head, err := g.store.Head(ctx)
	if err != nil {
		return
	}
	at, err := g.store.Now(ctx)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.writer.compare(lines, head.Seq, now)
	g.writer.since = now.Add(-time.Duration(at-head.At) * time.Millisecond)
	if local, ok := g.counter.(*LocalCounter); ok {
		local.quiet(g.writer.since)
	}
}
