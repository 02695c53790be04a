package holdfast

import (
	"errors"
	"maps"
	"sync"
)

// outcomes counts what became of orders, by outcome: "held", "replayed",
// "unknown", or the code of a rejection.
type outcomes struct {
	mu sync.Mutex
	of map[string]int64
}

// count notes what became of an order.
func (h *Holdfast) count(replayed bool, err error) {
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
}

func (o *outcomes) counts() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.of)
}
