package redispipe

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// bell wakes those of this process who wait for something in a Log, by one
// subscription for all of them. It may miss a message, as a connection may break:
// who waits looks again after a while.
type bell struct {
	client  rueidis.Client
	channel string

	line    sync.Mutex   // held by who subscribes
	broken  <-chan error // says that the subscription is over; nil = there is none
	release func()       // of the subscription's connection
	closed  bool

	mu    sync.Mutex
	free  chan struct{}      // closed when a partition is free
	calls map[string]*caller // by entry id
}

// caller are those who wait for one entry.
type caller struct {
	rung  chan struct{}
	count int
}

func newBell(client rueidis.Client, channel string) *bell {
	return &bell{client: client, channel: channel, free: make(chan struct{}), calls: map[string]*caller{}}
}

// listen subscribes, unless somebody has or is about to.
func (b *bell) listen() {
	if !b.line.TryLock() {
		return
	}
	defer b.line.Unlock()
	select {
	case <-b.broken:
		b.hangUp()
	default:
	}
	if b.closed || b.broken != nil {
		return
	}
	conn, release := b.client.Dedicate()
	broken := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { b.ring(m.Message) }})
	ctx, cancel := context.WithTimeout(context.Background(), callDeadline)
	defer cancel()
	if err := conn.Do(ctx, conn.B().Subscribe().Channel(b.channel).Build()).Error(); err != nil {
		release()
		return
	}
	b.broken, b.release = broken, release
}

func (b *bell) hangUp() {
	if b.release != nil {
		b.release()
	}
	b.broken, b.release = nil, nil
}

func (b *bell) close() {
	b.line.Lock()
	defer b.line.Unlock()
	b.closed = true
	b.hangUp()
}

// offered is closed when a partition is free.
func (b *bell) offered() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// await returns a channel that is closed when the entry does not wait any more.
func (b *bell) await(id string) (rung <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.calls[id]
	if c == nil {
		c = &caller{rung: make(chan struct{})}
		b.calls[id] = c
	}
	c.count++
	return c.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.count--; c.count == 0 && b.calls[id] == c {
			delete(b.calls, id)
		}
	}
}

// ring takes a message: ids, one a line, that do not wait any more, or nothing: a
// partition is free.
func (b *bell) ring(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if message == "" {
		close(b.free)
		b.free = make(chan struct{})
		return
	}
	for id := range strings.SplitSeq(message, "\n") {
		if c := b.calls[id]; c != nil {
			close(c.rung)
			delete(b.calls, id)
		}
	}
}
