package holdfast

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// outcomes counts what became of orders, by outcome: "held", "replayed",
// "unknown", or the code of a rejection, and how long
// that took.
type outcomes struct {
	mu   sync.Mutex
	of   map[string]int64
	took [tookSizes]int64 // Stats.Took
}

const (
	tookFirst = 50 * time.Microsecond
	tookSizes = 40 // up to 40 s, and everything longer
)

// size is the index of a duration in Stats.Took.
func size(d time.Duration) int {
	i := int(math.Ceil(2 * math.Log2(float64(d)/float64(tookFirst))))
	return min(max(i, 0), tookSizes-1)
}

// count notes what became of an order.
func (h *Holdfast) count(began time.Time, replayed bool, err error) {
	outcome := "held"
	var r *Rejection
	switch {
	case errors.As(err, &r):
		outcome = r.Code
	case err != nil:
		outcome = "unknown"
	case replayed:
		outcome = "replayed"
	}
	h.outcomes.mu.Lock()
	defer h.outcomes.mu.Unlock()
	if h.outcomes.of == nil {
		h.outcomes.of = map[string]int64{}
	}
	h.outcomes.of[outcome]++
	h.outcomes.took[size(time.Since(began))]++
}

func (o *outcomes) counts() (of map[string]int64, took []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.of), slices.Clone(o.took[:])
}
