package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Times of states that are listened to.
const (
	// stockRest is the least time between two looks at the stock. If a look takes
	// long, it is stockShare times as long: stock that people watch must not slow
	// down stock that people buy.
	stockRest  = 50 * time.Millisecond
	stockShare = 10
	// ticketLook is how often a place in the line is looked at; a decision is
	// noticed sooner. ticketRest is the least time in between.
	ticketLook = time.Second
	ticketRest = 20 * time.Millisecond
)

// freeHolds is how many open holds of a SKU are looked at for the first to end:
// the oldest.
const freeHolds = 200

// Availability is what a buyer may know of the stock of a SKU, in pieces.
type Availability struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"` // by orders that are not paid yet
	// NextFreeAt is when the next held piece may come free, when nothing is
	// available: the end of the first hold to end, of the 200 oldest. A payment may
	// commit or extend it, and one that is overdue is being closed. 0 = not known.
	NextFreeAt Time `json:"next_free_at,omitzero"`
}

// Availability reads what a listener to the SKU's stock is told.
func (h *Holdfast) Availability(ctx context.Context, sku string) (Availability, error) {
	a := Availability{SKU: sku}
	rows, err := h.store.Balances(ctx, ledger.BalanceQuery{Account: flow.Stock, Asset: flow.Pieces(sku), Limit: 1})
	if err != nil {
		return a, fmt.Errorf("holdfast: availability of %s: %w", sku, err)
	}
	if len(rows) == 0 {
		return a, nil
	}
	if a.Available, a.Held = rows[0].Available(), rows[0].Held; a.Available > 0 || a.Held == 0 {
		return a, nil
	}
	holds, err := h.store.Holds(ctx, ledger.HoldQuery{From: flow.Stock, Asset: flow.Pieces(sku), State: ledger.Held, Limit: freeHolds})
	if err != nil {
		return a, fmt.Errorf("holdfast: availability of %s: %w", sku, err)
	}
	for _, hold := range holds {
		if until := Time(hold.Until); until > 0 && (a.NextFreeAt == 0 || until < a.NextFreeAt) {
			a.NextFreeAt = until
		}
	}
	return a, nil
}

// QueuePlace is what a listener to a ticket is told.
type QueuePlace struct {
	State    TicketState `json:"state"`
	Position int64       `json:"position,omitempty"` // while waiting: 1 = next; 0 = not known
	ETA      int64       `json:"eta_ms,omitempty"`   // while waiting: an estimate, in milliseconds; 0 = not known
	Order    string      `json:"order,omitempty"`    // the id, once held
	Code     string      `json:"code,omitempty"`     // why it was refused
}

// states are computed once for everybody in this process who listens to them.
type states struct {
	grown   chan struct{} // the feed has grown
	looking sync.Mutex    // one look at the stock at a time, so that a newer one is never overwritten

	mu sync.Mutex
	of map[string]*state // by topic
}

type state struct {
	topic     string
	listeners int
	message   atomic.Pointer[Message] // nil = not known yet
	stop      context.CancelFunc      // of a ticket's watch
}

// watch finds the state of a topic, or begins to keep it.
func (ss *states) watch(ctx context.Context, h *Holdfast, topic string) (*state, error) {
	ss.mu.Lock()
	s := ss.of[topic]
	first := s == nil
	if first {
		s = &state{topic: topic, stop: func() {}}
		ss.of[topic] = s
	}
	s.listeners++
	ticket, isTicket := strings.CutPrefix(topic, TopicTicket+"/")
	if first && isTicket {
		var watching context.Context
		watching, s.stop = context.WithCancel(h.work.stopped)
		h.work.tasks.Go(func() { h.watchTicket(watching, s, ticket) })
	}
	ss.mu.Unlock()
	if isTicket || s.message.Load() != nil {
		return s, nil
	}
	if err := h.lookAtStock(ctx, s); err != nil {
		ss.leave(s)
		return nil, err
	}
	return s, nil
}

func (ss *states) leave(s *state) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.listeners--; s.listeners == 0 {
		s.stop()
		delete(ss.of, s.topic)
	}
}

func (ss *states) stocks() (out []*state) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for topic, s := range ss.of {
		if strings.HasPrefix(topic, TopicStock+"/") {
			out = append(out, s)
		}
	}
	return out
}

// lookAtStock reads a SKU's stock and tells its listeners if it is news.
func (h *Holdfast) lookAtStock(ctx context.Context, s *state) error {
	h.states.looking.Lock()
	defer h.states.looking.Unlock()
	at, _ := h.tail.at()
	a, err := h.Availability(ctx, strings.TrimPrefix(s.topic, TopicStock+"/"))
	if err != nil {
		return err
	}
	return h.tell(ctx, s, at, "stock.level", a)
}

// tell gives a state's listeners v, unless they have it.
func (h *Holdfast) tell(ctx context.Context, s *state, at int64, kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("holdfast: tell %s: %w", s.topic, err)
	}
	if old := s.message.Load(); old != nil && old.Type == kind && bytes.Equal(old.Data, data) {
		return nil
	}
	now, err := h.now(ctx)
	if err != nil {
		return err
	}
	s.message.Store(&Message{ID: at, Type: kind, Topic: s.topic, At: now, Data: data})
	h.bell.ring(s.topic)
	return nil
}

// watchStock looks at the stock that is listened to, when the feed has grown:
// what changes it is an event.
func (b *background) watchStock() {
	for {
		select {
		case <-b.h.states.grown:
		case <-b.stopped.Done():
			return
		}
		began := time.Now()
		for _, s := range b.h.states.stocks() {
			if err := b.h.lookAtStock(b.stopped, s); err != nil {
				if b.stopped.Err() != nil {
					return
				}
				b.h.log.Error("look at the stock", "topic", s.topic, "error", err)
				nudge(b.h.states.grown) // to try again
			}
		}
		if !b.rest(max(stockRest, stockShare*time.Since(began))) {
			return
		}
	}
}

// watchTicket tells where a ticket is, until it is decided or nobody listens.
func (h *Holdfast) watchTicket(ctx context.Context, s *state, id string) {
	for wait := time.Duration(0); ; wait = ticketLook {
		at, _ := h.tail.at()
		t, err := h.Ticket(ctx, id, wait)
		if err == nil {
			err = h.tell(ctx, s, at, "ticket."+string(t.State), placeOf(t))
		}
		if err != nil && ctx.Err() == nil {
			h.log.Error("look at a ticket", "ticket", id, "error", err)
		}
		if err == nil && (t.State == TicketHeld || t.State == TicketRefused) {
			return
		}
		rest := ticketLook
		if err == nil && t.State == TicketWaiting {
			rest = ticketRest // the next look waits for the decision
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return
		}
	}
}

func placeOf(t Ticket) QueuePlace {
	p := QueuePlace{State: t.State, Position: t.Position, ETA: t.ETA.Milliseconds()}
	if t.Order != nil {
		p.Order = t.Order.ID
	}
	if t.Refusal != nil {
		p.Code = t.Refusal.Code
	}
	return p
}
