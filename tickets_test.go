package holdfast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// turnstile is an Applier that lets entries through when the test says.
type turnstile struct {
	ledger.Applier
	open chan struct{}
}

func (s turnstile) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	select {
	case <-s.open:
		return s.Applier.Apply(ctx, entries...)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// line puts a queue before the turnstile. Two benches with one log share it.
func (b *bench) line(log pipeline.Log, open chan struct{}) {
	b.queue = pipeline.NewQueue(turnstile{b.store, open}, log, pipeline.QueueOptions{})
	b.applier = b.queue
	b.stages = append(b.stages, b.queue)
}

func tees(n int64) OrderInput { return OrderInput{Lines: []LineInput{{"tee", n}}} }

func keyed(value string) Key {
	return Key{Scope: "shop", Value: value, Print: []byte("body of " + value)}
}

func (b *bench) queued(key string, n int64) Ticket {
	b.t.Helper()
	t, err := b.PlaceQueued(ctx, keyed(key), tees(n), 0)
	if err != nil || t.State != TicketWaiting || t.ID != "shop."+key {
		b.t.Fatalf("got %+v, %v, want a ticket", t, err)
	}
	return t
}

func (b *bench) wantTicket(id string, state TicketState, why string) {
	b.t.Helper()
	t, err := b.Ticket(ctx, id, time.Minute)
	got := ""
	if t.Refusal != nil {
		got = t.Refusal.Code
	}
	if err != nil || t.State != state || got != why {
		b.t.Errorf("ticket %s: got %+v, %v, want %s %s", id, t, err, state, why)
	}
}

func TestAFullLineTurnsAwayWhatItHasNoRoomFor(t *testing.T) {
	b := newBench(t)
	open := make(chan struct{})
	b.line(pipeline.NewRing(pipeline.LogOptions{MaxWaiting: 2}), open)
	first, second := b.queued("first", 1), b.queued("second", 1)
	for b.Stats().Queue.Accepted < 2 { // a ticket may be ahead of its place
		b.queued("second", 1)
	}
	_, err := b.PlaceQueued(ctx, keyed("third"), tees(1), 0)
	if code(err) != CodeOverloaded {
		t.Errorf("got %v, want %s", err, CodeOverloaded)
	}
	if got := b.queued("first", 1); got.ID != first.ID { // a repeat needs no room
		t.Errorf("got %+v, want the ticket of %+v", got, first)
	}
	close(open)
	b.wantTicket(first.ID, TicketHeld, "")
	b.wantTicket(second.ID, TicketHeld, "")
	b.wantTicket("shop.third", TicketUnknown, "")
}

func TestATicketOfASharedLineIsSeenByEveryProcess(t *testing.T) {
	b := newBench(t)
	log, open := pipeline.NewRing(pipeline.LogOptions{}), make(chan struct{})
	b.line(log, open)
	other := &bench{t: t, at: b.at, gw: b.gw, url: b.url}
	other.Holdfast = other.open()
	other.line(log, open)
	defer other.Close(ctx)
	all, late := b.queued("all", 3), b.queued("late", 1)
	for b.Stats().Queue.Accepted < 2 {
		b.queued("late", 1)
	}
	seen, err := other.Ticket(ctx, late.ID, 0)
	if err != nil || seen.State != TicketWaiting || seen.Position < 1 {
		t.Errorf("got %+v, %v, want a place in the line", seen, err)
	}
	close(open)
	b.wantTicket(late.ID, TicketRefused, CodeSoldOut)
	other.wantTicket(late.ID, TicketRefused, CodeSoldOut)
	other.wantTicket(all.ID, TicketHeld, "")
}

func TestRefusalsNobodyWaitedForAreRememberedUpToALimit(t *testing.T) {
	var ts tickets
	refuse := func(key string, left bool) {
		p, first, err := ts.open(keyed(key))
		if err != nil || !first {
			t.Fatal(first, err)
		}
		p.left = left
		ts.close(p, Answer[Order]{}, reject(CodeSoldOut, "none"))
	}
	refuse("waited", false)
	if ts.find("shop.waited") != nil {
		t.Error("a refusal that was waited for is kept")
	}
	for i := range maxRefused + 10 {
		refuse(fmt.Sprint(i), true)
	}
	refuse("15", true) // anew: the older one's turn to be forgotten must not take it along
	for i := range maxRefused - 1 {
		refuse(fmt.Sprint("more-", i), true)
	}
	if len(ts.known) > maxRefused || len(ts.refused) != maxRefused || ts.placing != 0 {
		t.Errorf("got %d known, %d refused, %d under way", len(ts.known), len(ts.refused), ts.placing)
	}
	if ts.find("shop.15") == nil || ts.find("shop.20") != nil {
		t.Error("the oldest are not the ones that were forgotten")
	}
}

func TestATicketNeedsAScopeThatCanBeToldApart(t *testing.T) {
	b := newBench(t)
	if _, err := b.PlaceQueued(ctx, Key{Scope: "a.b", Value: "c"}, tees(1), 0); code(err) != CodeInvalidID {
		t.Errorf("got %v, want %s", err, CodeInvalidID)
	}
	for _, id := range []string{"", "nothing", "shop."} {
		if _, err := b.Ticket(ctx, id, 0); code(err) != CodeNotFound {
			t.Errorf("%q: got %v, want %s", id, err, CodeNotFound)
		}
	}
	got, err := b.PlaceQueued(ctx, Key{}, tees(1), 0) // this preset has no line
	if err != nil || got.State != TicketHeld || got.Order == nil {
		t.Errorf("got %+v, %v, want an order", got, err)
	}
	b.wantTicket(got.ID, TicketHeld, "")
}
