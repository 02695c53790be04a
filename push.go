package holdfast

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Message is what a listener is told: an event of the feed, or a state that is
// computed when the feed has grown.
type Message struct {
	// ID is the number of the event. That of a state is the number up to which
	// this listener has been told everything. In both cases: listening again after
	// ID, in any process on the store, misses nothing.
	ID    int64           `json:"id"`
	Type  string          `json:"type"`
	Topic string          `json:"topic"`
	At    Time            `json:"at"` // by the store's clock
	Data  json.RawMessage `json:"data,omitempty"`
}

// Topics are a kind and an id, such as "order/0123". Those of events give what
// happened; stock and ticket give a state at once and whenever it changes.
const (
	TopicOrder  = "order"  // an order with its payments and refunds
	TopicSale   = "sale"   // its terms
	TopicItem   = "item"   // its document, and adjustments of its stock
	TopicStock  = "stock"  // of a SKU, as Availability; type "stock.level"
	TopicTicket = "ticket" // as QueuePlace; type "ticket.waiting", "ticket.held", "ticket.refused" or "ticket.unknown"

	everything = "" // the bell of those who hear all events
)

// topicKinds are the kinds there are.
var topicKinds = []string{TopicOrder, TopicSale, TopicItem, TopicStock, TopicTicket,
	"payout", "account", "transfer", "hold", "notification", "endpoint"}

// Limits of topics.
const (
	MaxTopics = 64  // of one listener
	maxTopic  = 256 // bytes of one
)

// FromNow listens to what happens from now on.
const FromNow = -1

// topicOf is the topic of an event.
func topicOf(e ledger.Event) string {
	kind, _, _ := strings.Cut(e.Type, ".")
	switch kind {
	case "payment", "refund":
		kind = TopicOrder
	case "stock":
		kind = TopicItem
	}
	return kind + "/" + e.Subject
}

func messages(events []ledger.Event) []Message {
	out := make([]Message, len(events))
	for i, e := range events {
		out[i] = Message{ID: e.Seq, Type: e.Type, Topic: topicOf(e), At: Time(e.At), Data: e.Body}
	}
	return out
}

// Listener hears of its topics. It is used by one goroutine at a time.
type Listener struct {
	h      *Holdfast
	events []string // topics of events
	all    bool     // every event
	states []*state
	told   []*Message // the last one of each state
	at     int64      // everything up to this number is in queue, or was taken from it
	head   int64      // the end of the feed when it began
	queue  []Message
	rung   <-chan struct{}
	leave  func()
}

// Listen begins to listen to topics (none = every event of the feed) after the
// event with the number after: 0 = from the beginning, FromNow = from now on; a
// number that the feed has not reached is its end. Events come in order, each
// once; states come at once and are the newest there are: those in between may
// be left out. Rejections are CodeInvalidField, CodeTooManyItems, CodeNotFound
// and CodeOverloaded. The listener must be closed.
func (h *Holdfast) Listen(ctx context.Context, topics []string, after int64) (*Listener, error) {
	if h.work.stopped.Err() != nil {
		return nil, reject(CodeOverloaded, "this server is closing")
	}
	if err := h.CheckTopics(ctx, topics); err != nil {
		return nil, err
	}
	l := &Listener{h: h, all: len(topics) == 0}
	bells := slices.Compact(slices.Sorted(slices.Values(topics)))
	if l.all {
		bells = []string{everything}
	}
	head, err := h.store.Head(ctx)
	if err != nil {
		return nil, fmt.Errorf("holdfast: listen: %w", err)
	}
	l.head = head.Events
	if l.at = after; after < 0 || after > head.Events {
		l.at = head.Events
	}
	var stop func()
	l.rung, stop = h.bell.listen(bells...)
	h.tail.join(1)
	l.leave = func() { h.tail.join(-1); stop() }
	h.tail.grew()
	for _, t := range bells {
		if kind, _, _ := strings.Cut(t, "/"); kind != TopicStock && kind != TopicTicket {
			l.events = append(l.events, t)
			continue
		}
		s, err := h.states.watch(ctx, h, t)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.states, l.told = append(l.states, s), append(l.told, nil)
	}
	return l, nil
}

// Close ends listening. Closing again does nothing.
func (l *Listener) Close() {
	l.leave()
	l.leave = func() {}
	for _, s := range l.states {
		l.h.states.leave(s)
	}
	l.states = nil
}

// CheckTopics refuses what can't be listened to.
func (h *Holdfast) CheckTopics(ctx context.Context, topics []string) error {
	if len(topics) > MaxTopics {
		return reject(CodeTooManyItems, "topics: at most %d", MaxTopics)
	}
	for _, t := range topics {
		if err := h.checkTopic(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (h *Holdfast) checkTopic(ctx context.Context, topic string) (err error) {
	kind, id, ok := strings.Cut(topic, "/")
	if !ok || len(topic) > maxTopic || !slices.Contains(topicKinds, kind) {
		return reject(CodeInvalidField, "topic: a kind of %v, a slash, and an id", topicKinds)
	}
	if _, isTicket := ticketKey(id); kind == TopicTicket && !isTicket || kind != TopicTicket && !idForm.MatchString(id) {
		return reject(CodeInvalidField, "topic: %s has no such id", kind)
	}
	switch kind {
	case TopicOrder:
		_, err = h.record(ctx, flow.KindOrder, id)
	case TopicSale:
		_, err = h.record(ctx, flow.KindSale, id)
	case TopicItem, TopicStock:
		_, err = h.item(ctx, id)
	}
	if r := (*Rejection)(nil); errors.As(err, &r) {
		return reject(CodeNotFound, "no %s %s", kind, id)
	}
	return err
}

// Next waits for the next message. When ctx ends, nothing is lost: Next may be
// called again. Other errors end the listener.
func (l *Listener) Next(ctx context.Context) (Message, error) {
	for {
		if len(l.queue) == 0 {
			if err := l.fill(ctx); err != nil {
				return Message{}, err
			}
		}
		if len(l.queue) > 0 {
			m := l.queue[0]
			l.queue = l.queue[1:]
			return m, nil
		}
		select {
		case <-l.rung:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		case <-l.h.work.stopped.Done():
			return Message{}, fmt.Errorf("holdfast: listen: %w", context.Canceled)
		}
	}
}

func (l *Listener) wants(m Message) bool { return l.all || slices.Contains(l.events, m.Topic) }

// fill puts what is new into the queue: first events, then states, so that the
// number of a state has nothing before it that was not told.
func (l *Listener) fill(ctx context.Context) (err error) {
	if len(l.events) > 0 {
		found, upTo, ok := l.h.tail.since(l.at, l.wants)
		if !ok || upTo < l.head {
			if found, upTo, err = l.stored(ctx); err != nil {
				return err
			}
		}
		l.queue, l.at = append(l.queue, found...), upTo
	}
	for i, s := range l.states {
		m := s.message.Load()
		if m == nil || m == l.told[i] {
			continue
		}
		l.told[i] = m
		if len(l.events) == 0 {
			l.at = max(l.at, m.ID)
		}
		told := *m
		told.ID = l.at
		l.queue = append(l.queue, told)
	}
	return nil
}

// stored reads the events after l.at from the store, a page of each topic, and
// says up to which number that is all of them.
func (l *Listener) stored(ctx context.Context) (found []Message, upTo int64, err error) {
	head, err := l.h.store.Head(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("holdfast: listen: %w", err)
	}
	upTo = head.Events
	for _, t := range l.events {
		_, subject, _ := strings.Cut(t, "/")
		rows, err := l.h.store.Events(ctx, ledger.EventQuery{Subject: subject, After: l.at, Limit: feedPage})
		if err != nil {
			return nil, 0, fmt.Errorf("holdfast: read events after %d: %w", l.at, err)
		}
		if len(rows) == feedPage {
			upTo = min(upTo, rows[feedPage-1].Seq)
		}
		for _, m := range messages(rows) {
			if l.all || m.Topic == t {
				found = append(found, m)
			}
		}
	}
	found = slices.DeleteFunc(found, func(m Message) bool { return m.ID > upTo })
	slices.SortFunc(found, func(a, b Message) int { return cmp.Compare(a.ID, b.ID) })
	return found, upTo, nil
}
