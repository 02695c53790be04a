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
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	dialTimeout  = time.Second
	writeTimeout = time.Second     // of a connection that does not move
	openDeadline = 5 * time.Second // of looking at every server
)

// ErrUnfit means that the server must not be used as it is configured.
var ErrUnfit = errors.New("redis is not fit")

// Redis is a connection to one Redis server, or to a Redis Cluster. Safe for
// concurrent use.
type Redis struct {
	client  rueidis.Client
	cluster bool
}

// Open connects to redis://user:password@host:port/db, or to a cluster by any of
// its nodes. It refuses, with ErrUnfit, a server that throws keys away when its
// memory is full, because then a repeat may be taken for a new operation, and one
// that is a replica.
//
// Nothing that writes is ever sent twice: what an answer that is lost means is for
// the caller to say.
func Open(ctx context.Context, url string) (*Redis, error) {
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redispipe: parse url: %w", err)
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

func (r *Redis) fit(ctx context.Context, node rueidis.Client) error {
	role, err := info(ctx, node, "replication", "role")
	if err != nil {
		return err
	}
	if role != "master" {
		if r.cluster {
			return nil // its master is asked
		}
		return fmt.Errorf("%w: it is a %s", ErrUnfit, role)
	}
	policy, err := info(ctx, node, "memory", "maxmemory_policy")
	if err != nil {
		return err
	}
	if policy != "noeviction" {
		return fmt.Errorf("%w: maxmemory-policy is %s, must be noeviction", ErrUnfit, policy)
	}
	return nil
}

// info is one field of what the server says about itself.
func info(ctx context.Context, node rueidis.Client, section, field string) (string, error) {
	text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("info %s has no %s", section, field)
}
