package pipeline

import (
	"errors"
	"math/bits"
	"sync"
	"time"
)

// QueueStats are the figures of a Queue: those of the last tick, and counts since
// NewQueue.
type QueueStats struct {
	Workers    int
	Waiting    int64         // entries, in the whole Log
	Partitions int64         // in which they wait
	Oldest     time.Duration // age of the oldest: the lag
	Drain      time.Duration // to serve them all: Scaler.Drain
	Rate       float64       // entries decided a second, smoothed
	Commit     time.Duration // mean time of an inner call, or age of one that hangs

	Accepted int64 // entries that were put in the line
	Repeats  int64 // submitted again
	Full     int64 // turned away as ErrFull
	SoldOut  int64 // turned away as ErrSoldOut
	Straight int64 // handed on without waiting

	Served int64 // entries decided
	Failed int64 // inner calls without an outcome
	GaveUp int64 // entries whose outcome stays unknown
	Lost   int64 // claims that could not be settled, so that they are served again
	// Batches counts inner calls by how many entries they decided: index i is
	// 2^(i-1) to 2^i - 1 of them.
	Batches [sizeClasses]int64
}

// gauge counts what a Queue does.
type gauge struct {
	mu    sync.Mutex
	total QueueStats
	tick  struct { // since the last tick
		served, commits int64
		took            time.Duration
	}
	speed float64 // of one worker: Scaler.Speed
}

func (g *gauge) stats() QueueStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

func (g *gauge) submitted(p Place, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case errors.Is(err, ErrFull):
		g.total.Full++
	case errors.Is(err, ErrSoldOut):
		g.total.SoldOut++
	case err != nil:
	case p.Repeat:
		g.total.Repeats++
	default:
		g.total.Accepted++
	}
}

func (g *gauge) straight(entries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total.Straight += int64(entries)
}

// committed counts an inner call that decided so many entries; none = it failed.
func (g *gauge) committed(entries int, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if entries == 0 {
		g.total.Failed++
		return
	}
	g.tick.commits++
	g.tick.took += took
	g.tick.served += int64(entries)
	g.total.Batches[min(bits.Len(uint(entries)), sizeClasses-1)]++
}

func (g *gauge) settled(endings []Ending, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.total.Lost++
		return
	}
	for _, e := range endings {
		if e.GaveUp {
			g.total.GaveUp++
		} else {
			g.total.Served++
		}
	}
}

// load is what the scaler sees of the tick that ends now.
func (g *gauge) load(b Backlog, busy time.Duration) Load {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := Load{Waiting: b.Waiting, Oldest: b.Oldest, Served: g.tick.served, Commits: g.tick.commits, Commit: busy}
	if l.Commits > 0 {
		l.Commit = g.tick.took / time.Duration(l.Commits)
	}
	g.tick.served, g.tick.commits, g.tick.took = 0, 0, 0
	return l
}

func (g *gauge) report(b Backlog, l Load, s *Scaler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &g.total
	t.Workers, t.Drain, t.Rate, g.speed = s.Workers(), s.Drain(), s.Rate(), s.Speed()
	t.Waiting, t.Partitions, t.Oldest, t.Commit = b.Waiting, b.Partitions, b.Oldest, l.Commit
}

// eta estimates when the entry in this position is decided, if so many partitions
// share the workers: one partition is never faster than one worker.
func (g *gauge) eta(position, partitions int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.speed == 0 {
		return 0
	}
	share := max(1, float64(partitions)/float64(max(1, g.total.Workers)))
	return time.Duration(float64(position) / g.speed * share * float64(time.Second))
}
