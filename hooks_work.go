package holdfast

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// hooks is the delivery of events to endpoints, on every node at once. Which node
// takes an event for delivery is decided by the version of the endpoint's cursor,
// which node makes the next try by that of the delivery. A node that dies leaves
// its deliveries to the others after the lease; an answer that was lost with it is
// asked for again, under the same id.
//
// Each endpoint has its own log and its own calls, so one that is slow or dead
// delays nobody else.
type hooks struct {
	client *http.Client
	wake   chan struct{} // an endpoint or a delivery has changed

	mu      sync.Mutex
	running map[string]int     // calls under way, by endpoint
	busy    map[string]bool    // deliveries under way, by record
	seen    map[string]scanned // how far the feed was looked at, by endpoint
}

// scanned is how far an endpoint's events were looked at since its cursor was
// written.
type scanned struct{ version, at int64 }

func newHooks(client *http.Client) hooks {
	return hooks{client: client, wake: make(chan struct{}, 1), running: map[string]int{}, busy: map[string]bool{}, seen: map[string]scanned{}}
}

func (b *background) ringHooks() { nudge(b.h.hooks.wake) }

// watchHooks delivers until the end.
func (b *background) watchHooks() {
	tick := time.NewTicker(b.h.o.Sweep)
	defer tick.Stop()
	rung, stop := b.h.bell.listen(everything)
	defer stop()
	joined := 0 // whether the feed is read for us
	for {
		n, err := b.deliver(b.stopped)
		if err != nil && b.stopped.Err() == nil {
			b.h.log.Error("deliver webhooks", "error", err)
		}
		if n = min(n, 1); err == nil && n != joined {
			b.h.tail.join(n - joined)
			joined = n
		}
		if !b.rest(hookRest) {
			return
		}
		select {
		case <-tick.C:
		case <-rung:
		case <-b.h.hooks.wake:
		case <-b.stopped.Done():
			return
		}
	}
}

// deliver takes new events for delivery and starts what is due, for every
// endpoint that is enabled: n of them.
func (b *background) deliver(ctx context.Context) (n int, err error) {
	all, err := b.h.endpointsIn(ctx, EndpointEnabled)
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		if err := b.take(ctx, e); err != nil {
			b.h.log.Error("take events for delivery", "endpoint", e.ID, "error", err)
		}
		if err := b.startDue(ctx, e); err != nil {
			b.h.log.Error("start deliveries", "endpoint", e.ID, "error", err)
		}
	}
	return len(all), nil
}

// take begins deliveries of the events after the cursor.
func (b *background) take(ctx context.Context, e endpoint) error {
	c, err := document[cursor](ctx, b.h, kindCursor, e.ID)
	if err != nil {
		return err
	}
	at := c.At
	if s := b.h.hooks.seen[e.ID]; s.version == c.Version {
		at = max(at, s.at)
	}
	wanted := func(m Message) bool { return e.wants(m.Type) }
	for range planPage { // the next round goes on
		found, upTo, ok := b.h.tail.since(at, wanted)
		if _, heard := b.h.tail.at(); !ok || !heard {
			if found, upTo, err = b.storedSince(ctx, at, wanted); err != nil {
				return err
			}
		}
		if upTo == at {
			return nil
		}
		if at = upTo; len(found) == 0 && upTo < c.At+planSkip {
			b.h.hooks.seen[e.ID] = scanned{c.Version, upTo}
			continue
		}
		begun, ok, err := b.h.begin(ctx, Key{}, c, found, upTo)
		if begun > 0 || !ok {
			b.ringHooks() // there may be more; if another process was faster, its cursor says how far
		}
		return err
	}
	return nil
}

// storedSince reads one page of the feed.
func (b *background) storedSince(ctx context.Context, after int64, wanted func(Message) bool) (found []Message, upTo int64, err error) {
	rows, err := b.h.store.Events(ctx, ledger.EventQuery{After: after, Limit: feedPage})
	if err != nil {
		return nil, after, fmt.Errorf("holdfast: read events after %d: %w", after, err)
	}
	if upTo = after; len(rows) > 0 {
		upTo = rows[len(rows)-1].Seq
	}
	return slices.DeleteFunc(messages(rows), func(m Message) bool { return !wanted(m) }), upTo, nil
}

// startDue starts the tries that are due, as many as the endpoint may have at
// once.
func (b *background) startDue(ctx context.Context, e endpoint) error {
	free := hookWidth - b.h.hooks.under(e.ID)
	if free == 0 {
		return nil
	}
	now, err := b.h.now(ctx)
	if err != nil {
		return err
	}
	rs, err := b.h.store.Records(ctx, ledger.RecordQuery{Kind: kindDelivery, Owner: e.ID, DueBy: int64(now), Limit: hookWidth})
	if err != nil {
		return fmt.Errorf("holdfast: deliveries due to %s: %w", e.ID, err)
	}
	due, err := documents[Delivery](rs)
	if err != nil {
		return err
	}
	for _, d := range due[:min(free, len(due))] {
		if !b.h.hooks.start(e.ID, slotID(e.ID, d.Slot)) {
			continue
		}
		b.tasks.Go(func() {
			err := b.try(b.calls, e, d)
			b.h.hooks.finish(e.ID, slotID(e.ID, d.Slot))
			if err == nil {
				b.ringHooks()
			} else if b.calls.Err() == nil {
				b.h.log.Error("delivery", "delivery", d.ID, "error", err)
			}
		})
	}
	return nil
}

func (s *hooks) under(endpoint string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[endpoint]
}

func (s *hooks) start(endpoint, delivery string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[delivery] {
		return false
	}
	s.busy[delivery] = true
	s.running[endpoint]++
	return true
}

func (s *hooks) finish(endpoint, delivery string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, delivery)
	if s.running[endpoint]--; s.running[endpoint] == 0 {
		delete(s.running, endpoint)
	}
}

// try claims a delivery, calls its endpoint outside of any transaction, and
// writes what came of it.
func (b *background) try(ctx context.Context, e endpoint, d Delivery) error {
	now, err := b.h.now(ctx)
	if err != nil {
		return err
	}
	d.NextAt = now.Add(hookLease)
	if ok, err := b.writeDelivery(ctx, &d); err != nil || !ok {
		return err
	}
	rows, err := b.h.store.Events(ctx, ledger.EventQuery{After: d.Event - 1, Limit: 1})
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("holdfast: delivery %s: read event: %w", d.ID, err)
	}
	began := time.Now()
	status, why := b.h.deliverOnce(ctx, e, d.ID, messages(rows)[0], now)
	if ctx.Err() != nil {
		return ctx.Err() // cut off: another process, or the next one, tries again
	}
	if now, err = b.h.now(ctx); err != nil {
		return err
	}
	d = d.outcome(now, status, why)
	d.Took = time.Since(began).Milliseconds()
	if ok, err := b.writeDelivery(ctx, &d); err != nil || !ok || d.State != DeliveryFailed {
		return err
	}
	return b.h.giveUp(ctx, d)
}

// deliverOnce signs and sends. status 0 = there was no answer; why = it failed.
func (h *Holdfast) deliverOnce(ctx context.Context, e endpoint, id string, m Message, now Time) (status int, why error) {
	secrets, err := h.signing(e, now)
	if err != nil {
		return 0, err
	}
	r, err := hookRequest(ctx, e.URL, id, m, secrets)
	if err != nil {
		return 0, err
	}
	return h.callHook(r)
}

// writeDelivery stores the next version; false = somebody else did.
func (b *background) writeDelivery(ctx context.Context, d *Delivery) (bool, error) {
	d.Version++
	r, err := d.record()
	if err != nil {
		return false, err
	}
	_, ok, err := b.h.fresh(ctx, ledger.Entry{Records: []ledger.Record{r}})
	return ok, err
}

// giveUp disables the endpoint of a delivery that has failed for good: it said
// that it is gone, or it has taken nothing else since either.
func (h *Holdfast) giveUp(ctx context.Context, d Delivery) error {
	if d.Status == http.StatusGone {
		_, err := h.DisableEndpoint(ctx, d.Endpoint, "it answered 410 Gone")
		return err
	}
	taken, err := h.Deliveries(ctx, d.Endpoint, DeliveryDelivered)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(taken, func(o Delivery) bool { return o.DoneAt >= d.CreatedAt }) {
		return nil
	}
	_, err = h.DisableEndpoint(ctx, d.Endpoint, fmt.Sprintf("%d tries of %s failed, the last one: %s", d.Tries, d.ID, d.Error))
	return err
}
