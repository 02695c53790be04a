package redispipe

import (
	"context"

	"github.com/redis/rueidis"
)

// Wake wakes every process that hears the channel. Who is not connected just now
// misses it, so it must never be all that somebody waits for.
func (r *Redis) Wake(ctx context.Context, channel string) error {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	return r.client.Do(ctx, r.client.B().Publish().Channel(channel).Message("").Build()).Error()
}

// Hear calls f after each Wake of the channel, by any process, until ctx ends or
// the connection breaks.
func (r *Redis) Hear(ctx context.Context, channel string, f func()) error {
	return r.client.Receive(ctx, r.client.B().Subscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) { f() })
}
