package redispipe

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
)

const gatherDeadline = 250 * time.Millisecond // of one script for many callers

// gather lets callers that come at once share a script: one of them leads, takes
// what all have asked that wait, and passes the lead on when it is done. Whoever
// comes alone leads at once and waits for nobody.
//
// It is what pipeline.Batch does without a goroutine of its own: here the work of
// a turn is short, and a caller can do it for the others.
type gather struct {
	run func(ctx context.Context, takings []pipeline.Taking) ([]pipeline.Verdict, error)

	mu      sync.Mutex
	waiting []*ask
	led     bool // somebody leads
}

type ask struct {
	takings  []pipeline.Taking
	lead     chan struct{} // closed when this caller is to lead
	done     chan struct{} // closed when verdicts and err are set
	verdicts []pipeline.Verdict
	err      error
}

// take runs takings together with others, at most maxScriptWants of wants unless
// a single call has more.
func (g *gather) take(ctx context.Context, takings []pipeline.Taking) ([]pipeline.Verdict, error) {
	a := &ask{takings: takings, lead: make(chan struct{}), done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, a)
	if !g.led {
		g.led = true
		close(a.lead)
	}
	g.mu.Unlock()
	select {
	case <-a.done:
	case <-a.lead:
		g.turn(ctx)
	case <-ctx.Done():
		if g.leave(a) {
			return nil, ctx.Err()
		}
		select {
		case <-a.lead: // the others wait for it
			g.turn(ctx)
		default:
			return nil, ctx.Err() // it may be taken
		}
	}
	return a.verdicts, a.err
}

// leave takes a out of those that wait, unless it was taken or is to lead.
func (g *gather) leave(a *ask) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, a)
	if i < 0 {
		return false
	}
	select {
	case <-a.lead:
		return false
	default:
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// turn answers the first that wait, among them the caller, and passes the lead on.
func (g *gather) turn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherDeadline)
	defer cancel()
	asks := g.first()
	var takings []pipeline.Taking
	for _, a := range asks {
		takings = append(takings, a.takings...)
	}
	verdicts, err := g.run(ctx, takings)
	for _, a := range asks {
		if a.err = err; err == nil {
			a.verdicts, verdicts = verdicts[:len(a.takings):len(a.takings)], verdicts[len(a.takings):]
		}
		close(a.done)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.led = len(g.waiting) > 0; g.led {
		close(g.waiting[0].lead)
	}
}

func (g *gather) first() []*ask {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, wants := 0, 0
	for n < len(g.waiting) {
		for _, t := range g.waiting[n].takings {
			wants += len(t.Wants)
		}
		if n > 0 && wants > maxScriptWants {
			break
		}
		n++
	}
	asks := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return asks
}
