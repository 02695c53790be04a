package holdfast

import (
	"sync"
	"time"
)

// cache keeps what was read for maxAge, at most maxCount of it. In the second
// half of that time one caller reads anew while the others go on with what there
// is: otherwise all of them would read at once, every maxAge. What is not there
// is read every time.
type cache[T any] struct {
	maxAge   time.Duration
	maxCount int

	mu   sync.RWMutex
	rows map[string]*cached[T]
}

type cached[T any] struct {
	value   T
	at      time.Time
	reading bool // somebody reads it anew
}

func (c *cache[T]) get(now time.Time, key string, read func() (T, error)) (T, error) {
	c.mu.RLock()
	row := c.rows[key]
	good := c.good(row, now)
	c.mu.RUnlock()
	if good || row != nil && !c.begin(row, now) {
		return row.value, nil
	}
	v, err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if row != nil {
			row.reading = false
		}
		return v, err
	}
	if c.rows == nil || c.rows[key] == nil && len(c.rows) >= c.maxCount {
		c.rows = map[string]*cached[T]{}
	}
	c.rows[key] = &cached[T]{value: v, at: now}
	return v, nil
}

// good says that row need not be read, or not by this caller.
func (c *cache[T]) good(row *cached[T], now time.Time) bool {
	if row == nil {
		return false
	}
	age := now.Sub(row.at)
	return age >= 0 && (age < c.maxAge/2 || age < c.maxAge && row.reading)
}

// begin makes this caller the one who reads row; false = another one was faster.
func (c *cache[T]) begin(row *cached[T], now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.good(row, now) {
		return false
	}
	row.reading = true
	return true
}

func (c *cache[T]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rows, key)
}
