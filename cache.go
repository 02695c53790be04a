package holdfast

import (
	"sync"
	"time"
)

// cache keeps what was read for maxAge, at most maxCount of it. What is not
// there is read anew every time.
type cache[T any] struct {
	maxAge   time.Duration
	maxCount int

	mu   sync.RWMutex
	rows map[string]cached[T]
}

type cached[T any] struct {
	value T
	at    time.Time
}

func (c *cache[T]) get(now time.Time, key string, read func() (T, error)) (T, error) {
	c.mu.RLock()
	row, ok := c.rows[key]
	c.mu.RUnlock()
	if age := now.Sub(row.at); ok && age >= 0 && age < c.maxAge {
		return row.value, nil
	}
	v, err := read()
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil || len(c.rows) >= c.maxCount {
		c.rows = map[string]cached[T]{}
	}
	c.rows[key] = cached[T]{v, now}
	return v, nil
}

func (c *cache[T]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rows, key)
}
