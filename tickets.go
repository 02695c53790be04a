package holdfast

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// TicketState is where an order in the line is.
type TicketState string

const (
	TicketWaiting TicketState = "waiting"
	TicketHeld    TicketState = "held"    // the order's stock is held; what became of it since, the order says
	TicketRefused TicketState = "refused" // nothing was done
	// TicketUnknown: it does not wait in any line that this process sees, and there
	// is no order. To find out, or to try anew, place it again with the same Key.
	TicketUnknown TicketState = "unknown"
)

// Ticket is the place of an order in the line of the preset "queued".
type Ticket struct {
	ID       string // of whoever placed it with that key; two parts with a dot between
	State    TicketState
	Position int64         // while waiting: 1 = next; 0 = not known
	ETA      time.Duration // while waiting: an estimate; 0 = not known
	Order    *Order        // with TicketHeld: as it was answered
	Replayed bool          // with TicketHeld: it had been accepted before this request
	Refusal  *Rejection    // with TicketRefused
}

// Limits of the line's memory in this process.
const (
	maxPlacing = 32_768 // orders under way
	maxRefused = 16_384 // refusals that nobody has waited for
	leastWait  = 50 * time.Millisecond
)

// PlaceQueued is Place for whoever may not want to wait until the line has come to
// the order: after wait it comes back with a ticket. What needs no line (a refusal,
// a free counter) is waited for in any case. The order is placed though nobody
// waits, and whoever asks with the same key gets the same ticket. With another
// preset than "queued" there is no line, and the order is always decided.
//
// The ticket is TicketWaiting or TicketHeld; errors are those of Place. key.Scope
// must not contain a dot.
func (h *Holdfast) PlaceQueued(ctx context.Context, key Key, in OrderInput, wait time.Duration) (Ticket, error) {
	if strings.Contains(key.Scope, ".") {
		return Ticket{}, reject(CodeInvalidID, "scope: without dots")
	}
	if key.Value == "" {
		var err error
		if key.Value, err = newID(); err != nil {
			return Ticket{}, err
		}
	}
	if h.queue == nil {
		a, err := h.Place(ctx, key, in)
		return ticketOf(key, a, err)
	}
	if h.work.stopped.Err() != nil {
		return Ticket{}, reject(CodeOverloaded, "this server is closing")
	}
	p, first, err := h.tickets.open(key)
	if err != nil {
		return Ticket{}, err
	}
	if first {
		h.work.tasks.Go(func() { h.placeTicket(p, key, in) })
	}
	if !h.tickets.wait(ctx, p, max(wait, leastWait)) {
		return h.inLine(ctx, key)
	}
	t, err := ticketOf(key, p.answer, p.err)
	t.Replayed = t.Replayed || err == nil && !first
	return t, err
}

// placeTicket places an order on nobody's time. When this process ends, what waits
// in a line of its own is waited for; in one that others share, it stays.
func (h *Holdfast) placeTicket(p *placing, key Key, in OrderInput) {
	ctx := h.work.calls
	if h.shared != nil {
		ctx = h.work.stopped
	}
	a, err := h.Place(ctx, key, in)
	h.tickets.close(p, a, err)
}

func ticketOf(key Key, a Answer[Order], err error) (Ticket, error) {
	if err != nil {
		return Ticket{}, err
	}
	return Ticket{ID: key.ticket(), State: TicketHeld, Order: &a.Value, Replayed: a.Replayed}, nil
}

// Ticket says where an order is, and waits for as long as wait for its decision.
// An order that was held is found for as long as it is in the store; a refusal for
// as long as this process, or the line, remembers it.
func (h *Holdfast) Ticket(ctx context.Context, id string, wait time.Duration) (Ticket, error) {
	key, ok := ticketKey(id)
	if !ok {
		return Ticket{}, reject(CodeNotFound, "no ticket %s", id)
	}
	if p := h.tickets.find(id); p != nil && !h.tickets.wait(ctx, p, wait) {
		return h.inLine(ctx, key)
	}
	t, err := h.settledTicket(ctx, key)
	if err != nil || t.State != TicketWaiting {
		return t, err
	}
	if wait > 0 { // in the line of another process
		bounded, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		_, _ = h.queue.Wait(bounded, pipeline.Ticket{ID: key.entry()}) // looked at anew, whatever it was
		return h.settledTicket(ctx, key)
	}
	return t, nil
}

// inLine is the ticket of an order that waits in this process.
func (h *Holdfast) inLine(ctx context.Context, key Key) (Ticket, error) {
	t := Ticket{ID: key.ticket(), State: TicketWaiting}
	place, err := h.queue.Look(ctx, key.entry())
	if err == nil && place.State == pipeline.PlaceWaiting {
		t.Position, t.ETA = place.Position, place.ETA
	}
	return t, nil
}

// settledTicket is the ticket of an order that nobody in this process works on.
func (h *Holdfast) settledTicket(ctx context.Context, key Key) (Ticket, error) {
	t := Ticket{ID: key.ticket(), State: TicketUnknown}
	order, ok, err := h.orderOf(ctx, key)
	if err != nil {
		return t, err
	}
	if ok {
		t.State, t.Order, t.Replayed = TicketHeld, &order, true
		return t, nil
	}
	if p := h.tickets.find(t.ID); p != nil {
		if !p.decided() { // it was placed anew meanwhile
			return h.inLine(ctx, key)
		}
		var r *Rejection
		if errors.As(p.err, &r) {
			t.State, t.Refusal = TicketRefused, r
		}
		return t, nil
	}
	if h.queue == nil {
		return t, nil
	}
	place, err := h.queue.Look(ctx, key.entry())
	switch {
	case err != nil:
		return t, err
	case place.State == pipeline.PlaceWaiting:
		t.State, t.Position, t.ETA = TicketWaiting, place.Position, place.ETA
	case place.State == pipeline.PlaceDecided:
		if t.Refusal, err = h.refusalOf(ctx, place.Result); err != nil {
			return t, err
		}
		if t.Refusal != nil {
			t.State = TicketRefused
		}
	}
	return t, nil
}

// orderOf finds the order that key has placed.
func (h *Holdfast) orderOf(ctx context.Context, key Key) (o Order, ok bool, err error) {
	lines, err := h.store.Lines(ctx, ledger.LineQuery{ID: key.entry(), Limit: 1})
	if err != nil || len(lines) == 0 {
		return o, false, err
	}
	e, res, err := lines[0].Open()
	if err != nil || res.Refused() || len(e.Reply) > 0 || len(e.Records) == 0 ||
		e.Records[0].Kind != flow.KindOrder || e.Records[0].Version != 1 {
		return o, false, err // the key belongs to another request
	}
	a, err := answer[Order](res.Reply, true)
	return a.Value, err == nil, err
}

// refusalOf is why another process was refused; nil = it is at it still. What its
// grants would have given is not known here.
func (h *Holdfast) refusalOf(ctx context.Context, res ledger.Result) (*Rejection, error) {
	if res.Code == ledger.IDReused {
		return reject(CodeKeyReused, "the idempotency key belongs to another request"), nil
	}
	var lines []Line
	if sale, ok := strings.CutPrefix(string(res.Key.Asset), string(flow.Limit(""))); ok && res.Code == ledger.Insufficient {
		s, err := h.Sale(ctx, sale)
		if err != nil {
			return nil, err
		}
		lines = []Line{{SKU: s.SKU, Sale: s.ID, PerCustomer: s.PerCustomer}}
	}
	var r *Rejection
	_ = errors.As(notPlaced(lines, res, nil), &r)
	return r, nil
}

// ticket is the id of the ticket of an order with this key.
func (k Key) ticket() string { return k.Scope + "." + k.Value }

func ticketKey(id string) (k Key, ok bool) {
	k.Scope, k.Value, ok = strings.Cut(id, ".")
	return k, ok && k.Value != ""
}

// TicketSecret lets a buyer's page see this one ticket. It is computed, never
// stored.
func (h *Holdfast) TicketSecret(ticket string) string {
	return "hft_" + letters(h.MAC("ticket secret", ticket))
}

// CheckTicketSecret compares in constant time.
func (h *Holdfast) CheckTicketSecret(ticket, secret string) bool {
	return hmac.Equal([]byte(h.TicketSecret(ticket)), []byte(secret))
}

// tickets are the orders that are being placed, and the refusals that whoever
// asked has not waited for.
type tickets struct {
	mu      sync.Mutex
	known   map[string]*placing
	placing int
	refused []*placing // a ring of the last maxRefused
	oldest  int        // index in refused, once it is full
}

// placing is an order on its way.
type placing struct {
	ticket string
	print  []byte
	left   bool          // somebody did not wait
	done   chan struct{} // closed when answer and err are set
	answer Answer[Order]
	err    error
}

// open finds what is being placed with key, or begins it: then it is the first.
func (ts *tickets) open(key Key) (p *placing, first bool, err error) {
	id := key.ticket()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if p := ts.known[id]; p != nil && !p.decided() {
		if !bytes.Equal(p.print, key.Print) {
			return nil, false, reject(CodeKeyReused, "the idempotency key belongs to another request")
		}
		return p, false, nil
	}
	if ts.placing >= maxPlacing {
		return nil, false, reject(CodeOverloaded, "too many requests are waiting")
	}
	if ts.known == nil {
		ts.known = map[string]*placing{}
	}
	p = &placing{ticket: id, print: key.Print, done: make(chan struct{})}
	ts.known[id] = p
	ts.placing++
	return p, true, nil
}

// close ends p. A refusal that somebody did not wait for is kept; what was
// accepted is in the ledger.
func (ts *tickets) close(p *placing, a Answer[Order], err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	p.answer, p.err = a, err
	close(p.done)
	ts.placing--
	var r *Rejection
	if !p.left || !errors.As(err, &r) {
		delete(ts.known, p.ticket)
		return
	}
	if len(ts.refused) < maxRefused {
		ts.refused = append(ts.refused, p)
		return
	}
	if old := ts.refused[ts.oldest]; ts.known[old.ticket] == old {
		delete(ts.known, old.ticket)
	}
	ts.refused[ts.oldest] = p
	ts.oldest = (ts.oldest + 1) % len(ts.refused)
}

// wait says whether p was decided in time. Once it has said no, a refusal is kept
// for whoever comes back.
func (ts *tickets) wait(ctx context.Context, p *placing, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if p.decided() {
		return true
	}
	p.left = true
	return false
}

func (ts *tickets) find(id string) *placing {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.known[id]
}

func (p *placing) decided() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
