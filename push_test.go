package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// heard is a listener of a test.
type heard struct {
	t *testing.T
	*Listener
}

func (b *bench) hear(h *Holdfast, after int64, topics ...string) heard {
	b.t.Helper()
	l, err := h.Listen(ctx, topics, after)
	if err != nil {
		b.t.Fatalf("listen to %v: %v", topics, err)
	}
	b.t.Cleanup(l.Close)
	return heard{b.t, l}
}

const hearing = 20 * time.Second // after which a test has lost a message

func (l heard) next() Message {
	l.t.Helper()
	bounded, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	m, err := l.Next(bounded)
	if err != nil {
		l.t.Fatalf("next: %v", err)
	}
	return m
}

// stock reads messages until the stock is as wanted.
func (l heard) stock(available, held int64) (m Message, a Availability) {
	l.t.Helper()
	for {
		m = l.next()
		if m.Type != "stock.level" {
			l.t.Fatalf("got %+v, want a level", m)
		}
		if err := json.Unmarshal(m.Data, &a); err != nil {
			l.t.Fatal(err)
		}
		if a.Available == available && a.Held == held {
			return m, a
		}
	}
}

func TestAListenerHearsItsTopicsInOrderAndNothingElse(t *testing.T) {
	b := newBench(t)
	other, own := b.place("tee", 1), b.place("tee", 1)
	l := b.hear(b.Holdfast, 0, "order/"+own.ID)
	first := l.next()
	if first.Type != "order.held" || first.Topic != "order/"+own.ID || first.ID != 3 {
		t.Errorf("got %+v, want order.held of %s as 3", first, own.ID)
	}
	for _, id := range []string{other.ID, own.ID} {
		if _, err := b.Cancel(ctx, Key{}, id); err != nil {
			t.Fatal(err)
		}
	}
	if m := l.next(); m.Type != "order.cancelled" || m.Topic != first.Topic || m.ID != 5 {
		t.Errorf("got %+v, want order.cancelled as 5", m)
	}
}

func TestStockIsToldAtOnceAndWhenItChangesWithTheEndOfTheFirstHold(t *testing.T) {
	b := newBench(t)
	l := b.hear(b.Holdfast, FromNow, "stock/tee")
	if m, a := l.stock(3, 0); m.ID != 1 || a.NextFreeAt != 0 {
		t.Errorf("got %+v, want event 1 and nothing to come free", m)
	}
	first := b.place("tee", 2)
	l.stock(1, 2)
	b.wait(time.Minute)
	b.place("tee", 1)
	if _, a := l.stock(0, 3); a.NextFreeAt != first.ExpiresAt {
		t.Errorf("got %v, want the end of the first hold, %v", a.NextFreeAt.Std(), first.ExpiresAt.Std())
	}
	if _, err := b.Cancel(ctx, Key{}, first.ID); err != nil {
		t.Fatal(err)
	}
	if m, a := l.stock(2, 1); a.NextFreeAt != 0 || m.ID != 4 {
		t.Errorf("got %+v %+v, want event 4 and no time", m, a)
	}
}

// What is not listened to must cost nothing, and what many listen to as much as
// what one does.
func TestAThousandListenersAreOneReader(t *testing.T) {
	b := newBench(t)
	queries := func(n int) int64 {
		listeners := make([]heard, n)
		for i := range listeners {
			listeners[i] = b.hear(b.Holdfast, FromNow, "stock/tee")
			listeners[i].next()
		}
		before := b.Stats().Queries
		o := b.place("tee", 1)
		for _, l := range listeners {
			l.stock(2, 1)
		}
		spent := b.Stats().Queries - before
		if _, err := b.Cancel(ctx, Key{}, o.ID); err != nil {
			t.Fatal(err)
		}
		for _, l := range listeners {
			l.stock(3, 0)
		}
		return spent
	}
	if one, many := queries(1), queries(1000); many > one+50 {
		t.Errorf("a change cost %d queries for one listener and %d for a thousand", one, many)
	}
}

func TestListeningGoesOnAtAnotherNodeWithoutAGap(t *testing.T) {
	b := newBench(t)
	other := b.open()
	t.Cleanup(func() {
		if err := other.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.item("cup", 1000)
	nodes := []*Holdfast{b.Holdfast, other}
	const orders, writers = 40, 4
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range orders / writers {
				if _, err := nodes[i%2].Place(ctx, Key{}, OrderInput{Lines: []LineInput{{"cup", 1}}}); err != nil {
					t.Errorf("place: %v", err)
				}
			}
		})
	}
	var at int64
	for turn := 0; at < 2+orders; turn++ { // two items, then orders
		l := b.hear(nodes[turn%2], at, []string(nil)...)
		for range 1 + turn%5 {
			if at == 2+orders {
				break
			}
			m := l.next()
			if m.ID != at+1 {
				t.Fatalf("got event %d after %d", m.ID, at)
			}
			at = m.ID
		}
		l.Close()
	}
	wait.Wait()
}

// A state's number must not run ahead of an event that is still to come.
func TestNoEventIsLostByGoingOnBehindAState(t *testing.T) {
	b := newBench(t)
	b.item("cup", 1000)
	ids := []string{}
	for range 5 {
		ids = append(ids, b.place("cup", 1).ID)
	}
	topics := []string{"stock/cup"}
	for _, id := range ids {
		topics = append(topics, "order/"+id)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for _, id := range ids {
			if _, err := b.Cancel(ctx, Key{}, id); err != nil {
				t.Errorf("cancel: %v", err)
			}
		}
	})
	var at int64
	heardOf := map[string]int{}
	for len(heardOf) < 2*len(ids) {
		l := b.hear(b.Holdfast, at, topics...)
		for range 2 { // come back behind whatever it was
			m := l.next()
			if m.ID < at {
				t.Fatalf("went back from %d to %d", at, m.ID)
			}
			if at = m.ID; strings.HasPrefix(m.Topic, "order/") {
				heardOf[m.Topic+" "+m.Type]++
			}
			if len(heardOf) == 2*len(ids) {
				break
			}
		}
		l.Close()
	}
	wait.Wait()
	for what, n := range heardOf {
		if n != 1 {
			t.Errorf("%s was told %d times", what, n)
		}
	}
}

func TestWhoIsBehindTheMemoryReadsTheStore(t *testing.T) {
	b := newBench(t)
	l := b.hear(b.Holdfast, FromNow)
	o := b.place("tee", 1)
	one := b.hear(b.Holdfast, FromNow, "order/"+o.ID)
	for i := range 2*feedMemory + 10 { // as if so much had happened meanwhile
		b.tail.append([]Message{{ID: 3 + int64(i), Topic: "order/x"}})
	}
	_, _, ok := b.tail.since(1, l.wants)
	if n := len(b.tail.recent); ok || n > 2*feedMemory || n < feedMemory {
		t.Errorf("%d events are in memory", n)
	}
	if m := l.next(); m.ID != 2 || m.Type != "order.held" {
		t.Errorf("got %+v, want the order from the store", m)
	}
	bounded, cancel := context.WithCancel(ctx)
	cancel()
	if m, err := one.Next(bounded); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestATicketIsToldUntilItIsDecided(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Preset = "queued" })
	key := Key{Scope: "till", Value: "order-of-a-listener"}
	l := b.hear(b.Holdfast, FromNow, "ticket/"+key.ticket())
	place := func(m Message) (p QueuePlace) {
		if err := json.Unmarshal(m.Data, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if m := l.next(); m.Type != "ticket.unknown" || place(m).State != TicketUnknown {
		t.Errorf("got %+v, want unknown", m)
	}
	a, err := b.PlaceQueued(ctx, key, OrderInput{Lines: []LineInput{{"tee", 1}}}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	m := l.next()
	for m.Type == "ticket.waiting" {
		m = l.next()
	}
	if p := place(m); m.Type != "ticket.held" || p.Order != a.Order.ID {
		t.Errorf("got %+v, want held %s", m, a.Order.ID)
	}
}

func TestTopicsThatCannotBeHeardAreRefused(t *testing.T) {
	b := newBench(t)
	many := make([]string, MaxTopics+1)
	for i := range many {
		many[i] = fmt.Sprintf("stock/sku-%d", i)
	}
	for code, topics := range map[string][][]string{
		CodeInvalidField: {{"tee"}, {"oder/1"}, {"order/"}, {"order/a b"}, {"ticket/nodot"}, {"stock/" + strings.Repeat("a", 65)}},
		CodeNotFound:     {{"order/none"}, {"stock/none"}, {"sale/none"}, {"stock/tee", "item/none"}},
		CodeTooManyItems: {many},
	} {
		for _, ts := range topics {
			_, err := b.Listen(ctx, ts, 0)
			var r *Rejection
			if !errors.As(err, &r) || r.Code != code {
				t.Errorf("%v: got %v, want %s", ts, err, code)
			}
		}
	}
	if _, n := b.tail.at(); n || len(b.states.of) > 0 {
		t.Errorf("a refused listener is still counted: %v", b.states.of)
	}
}

func TestANumberThatTheFeedHasNotReachedIsItsEnd(t *testing.T) {
	b := newBench(t)
	l := b.hear(b.Holdfast, 1_000_000)
	o := b.place("tee", 1)
	if m := l.next(); m.Topic != "order/"+o.ID {
		t.Errorf("got %+v", m)
	}
}

func TestEveryEventHasATopicThatCanBeHeard(t *testing.T) {
	b := newBench(t)
	o := b.place("tee", 1)
	b.start(o.ID)
	if _, err := b.Adjust(ctx, Key{}, Adjustment{SKU: "tee", Quantity: 1, Reason: "found"}); err != nil {
		t.Fatal(err)
	}
	l := b.hear(b.Holdfast, 0)
	for m := l.next(); m.Type != "stock.adjusted"; m = l.next() {
		if kind, _, _ := strings.Cut(m.Topic, "/"); !slices.Contains(topicKinds, kind) {
			t.Errorf("%+v", m)
		}
	}
}
