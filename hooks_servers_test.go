package holdfast

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
)

// TestWebhooksAreTheSameOnServers is the heart of the other tests of webhooks,
// on the stores that many nodes share: each delivery is made by one of two.
func TestWebhooksAreTheSameOnServers(t *testing.T) {
	for name, empty := range map[string]func(testing.TB) string{"MySQL": sqlstoretest.MySQL, "Postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, empty(t), hooked)
			n := nodes{b, b.open(hooked)}
			t.Cleanup(func() { _ = n.other.Close(context.Background()) })
			r := newReceiver(t)
			e, secret := b.endpoint(r.URL, "order.held")
			n.eachOnce(r, e)
			n.retried(r, e, secret)
			n.replayed(r, e)
			n.gone(r, e)
		})
	}
}

// nodes are two on one store.
type nodes struct {
	*bench
	other *Holdfast
}

// deliver lets both do at once what is due, until nothing is.
func (n nodes) deliver() {
	n.t.Helper()
	var wait sync.WaitGroup
	for _, h := range []*Holdfast{n.Holdfast, n.other} {
		wait.Go(func() { n.bench.deliver(h) })
	}
	wait.Wait()
	n.bench.deliver(n.Holdfast) // what the one left to the other
}

func (n nodes) eachOnce(r *receiver, e Endpoint) {
	n.t.Helper()
	n.item("cup", 1000)
	const orders = planPage + 10
	for range orders {
		n.place("cup", 1)
	}
	n.deliver()
	ids := r.got()
	if different := len(slices.Compact(slices.Sorted(slices.Values(ids)))); len(ids) != orders || different != orders {
		n.t.Errorf("got %d calls with %d ids, want %d", len(ids), different, orders)
	}
	for _, d := range n.deliveries(e.ID) {
		if d.State != DeliveryDelivered || d.Tries != 1 {
			n.t.Errorf("got %+v, want it delivered at once", d)
		}
	}
}

func (n nodes) retried(r *receiver, e Endpoint, secret string) {
	n.t.Helper()
	before := len(r.got())
	r.answer(500)
	n.place("tee", 1)
	n.deliver()
	if d := n.deliveries(e.ID)[0]; d.State != DeliveryPending || d.Status != 500 || d.Tries != 1 {
		n.t.Errorf("got %+v, want it to be tried again", d)
	}
	r.answer(200)
	n.deliver() // too early
	n.wait(2 * hookDelays[0])
	n.deliver()
	if d := n.deliveries(e.ID)[0]; d.State != DeliveryDelivered || d.Tries != 2 {
		n.t.Errorf("got %+v, want it delivered by the second try", d)
	}
	ids := r.got()[before:]
	if len(ids) != 2 || ids[0] != ids[1] || !signed(r.calls[before+1], r.bodies[before+1], secret) {
		n.t.Errorf("got %v, want the same id twice, signed", ids)
	}
}

func (n nodes) replayed(r *receiver, e Endpoint) {
	n.t.Helper()
	before := len(r.got())
	last := n.deliveries(e.ID)[0]
	if err := n.other.ReplayDelivery(ctx, Key{}, e.ID, last.Event); err != nil {
		n.t.Fatal(err)
	}
	n.deliver()
	n.wait(time.Hour)
	since := n.now()
	n.place("tee", 1)
	n.deliver()
	fresh := n.deliveries(e.ID)[0]
	if err := n.ReplaySince(ctx, e.ID, since); err != nil {
		n.t.Fatal(err)
	}
	n.deliver()
	if got, want := r.got()[before:], []string{last.ID, fresh.ID, fresh.ID}; !slices.Equal(got, want) {
		n.t.Errorf("got %v, want %v", got, want)
	}
}

func (n nodes) gone(r *receiver, e Endpoint) {
	n.t.Helper()
	before := len(r.got())
	r.answer(410)
	n.place("tee", 1)
	n.deliver()
	got, err := n.Endpoint(ctx, e.ID)
	if err != nil || got.State != EndpointDisabled {
		n.t.Errorf("got %+v, %v, want it disabled", got, err)
	}
	r.answer(204)
	n.place("cup", 1)
	n.deliver()
	if calls := len(r.got()) - before; calls != 1 {
		n.t.Errorf("a disabled endpoint was called: got %d calls, want 1", calls)
	}
	if _, err := n.other.EnableEndpoint(ctx, e.ID); err != nil {
		n.t.Fatal(err)
	}
	n.deliver()
	if calls := len(r.got()) - before; calls != 2 {
		n.t.Errorf("got %d calls, want that of the order placed meanwhile", calls-1)
	}
}
