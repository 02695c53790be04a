package holdfast

import (
	"context"
	"errors"
	"sync"
)

// joint reads a row once for all callers who want it at the same moment. What it
// gives is never older than the question, unlike what a cache gives: a caller
// shares a read that has still to begin, and not one that is under way. So however
// many ask, one read of a key is under way and one waits for it.
//
// The zero value is ready. Safe for concurrent use.
type joint[T any] struct {
	mu   sync.Mutex
	last map[string]*reading[T] // the newest of each key that has not ended
}

var errUnread = errors.New("the read that was shared did not end")

type reading[T any] struct {
	began bool          // guarded by joint.mu
	done  chan struct{} // closed when value and err are set
	value T
	err   error
}

// get reads key. The read is for others too, so it goes on when ctx ends; read
// has a deadline of its own.
func (j *joint[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	j.mu.Lock()
	before := j.last[key]
	if before != nil && !before.began {
		j.mu.Unlock()
		select {
		case <-before.done:
			return before.value, before.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
	mine := &reading[T]{done: make(chan struct{})}
	if j.last == nil {
		j.last = map[string]*reading[T]{}
	}
	j.last[key] = mine
	j.mu.Unlock()
	if before != nil {
		<-before.done
	}
	j.mu.Lock()
	mine.began = true
	j.mu.Unlock()
	mine.err = errUnread // if read panics
	defer func() {
		j.mu.Lock()
		if j.last[key] == mine {
			delete(j.last, key)
		}
		j.mu.Unlock()
		close(mine.done)
	}()
	mine.value, mine.err = read(context.WithoutCancel(ctx))
	return mine.value, mine.err
}
