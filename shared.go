package holdfast

import (
	"context"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe"
)

// shared is what the stages of many processes on one store have in common, in
// Redis. nil = they have nothing, and each process keeps its own.
type shared struct {
	redis *redispipe.Redis
	space string         // what keys begin with
	line  *redispipe.Log // nil = there is no queue
}

// share opens the Redis at url for the processes of a ledger. url "" = nil.
func share(ctx context.Context, url, ledger string) (*shared, error) {
	if url == "" {
		return nil, nil
	}
	r, err := redispipe.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &shared{redis: r, space: "holdfast:" + ledger + ":"}, nil
}

// log makes the queue's.
func (s *shared) log() pipeline.Log {
	if s == nil {
		return pipeline.NewRing(pipeline.LogOptions{})
	}
	s.line = s.redis.Log(s.space, pipeline.LogOptions{})
	return s.line
}

// counter makes the gate's.
func (s *shared) counter(o pipeline.CounterOptions) pipeline.Counter {
	if s == nil {
		return pipeline.NewLocalCounter(o)
	}
	return s.redis.Counter(s.space, o)
}

func (s *shared) close() {
	if s == nil {
		return
	}
	if s.line != nil {
		s.line.Close()
	}
	s.redis.Close()
}
