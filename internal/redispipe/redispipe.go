// Package redispipe keeps what pipelines share among processes in Redis. Redis
// holds no truth: all of it may be lost at any time.
//
// The scripts say above their text what they are given and what they return. All
// keys that a script is given are in one slot, so that a Redis Cluster serves too.
package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	dialTimeout  = time.Second
	writeTimeout = time.Second     // of a connection that does not move
	openDeadline = 5 * time.Second // of looking at every server
)

// Redis is a connection to one Redis server, or to a Redis Cluster. Safe for
// concurrent use.
type Redis struct {
	client  rueidis.Client
	cluster bool
}

// Open connects to redis://user:password@host:port/db, or to a cluster by any of
// its nodes. It refuses, with ErrUnfit, a server that throws keys away when its
// memory is full, because then a repeat may be taken for a new operation, one that
// is a replica, and one that is too old.
//
// Nothing that writes is ever sent twice: what an answer that is lost means is for
// the caller to say.
func Open(ctx context.Context, address string) (*Redis, error) {
	o, err := rueidis.ParseURL(address)
	if bad := (*url.Error)(nil); errors.As(err, &bad) {
		err = bad.Err // without the address, which has a password
	}
	if err != nil {
		return nil, fmt.Errorf("redispipe: a Redis is redis://USER:PASSWORD@HOST:PORT: %w", err)
	}
	o.DisableRetry, o.DisableCache = true, true
	o.Dialer.Timeout, o.ConnWriteTimeout = dialTimeout, writeTimeout
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("redispipe: connect to %s: %w", strings.Join(o.InitAddress, ", "), err)
	}
	r := &Redis{client: client, cluster: client.Mode() == rueidis.ClientModeCluster}
	ctx, cancel := context.WithTimeout(ctx, openDeadline)
	defer cancel()
	for addr, node := range client.Nodes() {
		if err := r.fit(ctx, node); err != nil {
			client.Close()
			return nil, fmt.Errorf("redispipe: look at %s: %w", addr, err)
		}
	}
	return r, nil
}

// Close ends the connection.
func (r *Redis) Close() { r.client.Close() }
