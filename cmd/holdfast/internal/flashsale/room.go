package flashsale

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// watchEvery is how often the stock of a SKU is looked at, once for everybody.
const watchEvery = 150 * time.Millisecond

// room is where buyers wait who were told "sold out" while pieces were still
// held by others and might come back. They are let out in the order in which
// they came, a few for each piece that is back, and all of them when none can
// come back any more.
type room struct {
	mu     sync.Mutex
	line   []chan bool // true = try again
	closed bool
}

// perPiece is how many of those who wait try for one piece.
const perPiece = 2

func newRoom() *room { return &room{} }

// wait says whether to try again.
func (m *room) wait(ctx context.Context) bool {
	turn := make(chan bool, 1)
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.line = append(m.line, turn)
	m.mu.Unlock()
	select {
	case again := <-turn:
		return again
	case <-ctx.Done():
		return false
	}
}

func (m *room) letOut(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ; n > 0 && len(m.line) > 0; n-- {
		m.line[0] <- true
		m.line = m.line[1:]
	}
}

func (m *room) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, turn := range m.line {
		turn <- false
	}
	m.line = nil
}

// watch looks at the stock until no piece can come back any more.
func (r *sale) watch(ctx context.Context, sku string, m *room) {
	defer m.close()
	for sleep(ctx, watchEvery) {
		a, err := r.once(ctx, http.MethodGet, "/v1/items/"+sku+"/stock", "", nil)
		if err != nil || !a.ok() {
			continue // the next look will tell
		}
		var stock struct {
			Available int64 `json:"available"`
			Held      int64 `json:"held"`
		}
		if err := a.read(&stock); err != nil {
			r.bad("stock of %s: %v", sku, err)
			return
		}
		if stock.Available == 0 && stock.Held == 0 {
			return
		}
		m.letOut(stock.Available * perPiece)
	}
}
