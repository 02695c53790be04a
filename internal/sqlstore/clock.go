package sqlstore

import (
	"sync/atomic"
	"time"
)

// clockAge is how long a measurement of the database's clock is good for: two
// clocks part by some 0.1 ms a second at worst.
const clockAge = time.Minute

// databaseClock tells the time of the database without asking for it each
// time. It counts on from the last measurement with this machine's monotonic
// clock, so setting the clock of this machine changes nothing. It is late by
// what the answer took on its way, never early. Safe for concurrent use.
type databaseClock struct {
	last atomic.Pointer[measurement]
}

type measurement struct {
	said int64     // Unix ms
	at   time.Time // here
}

// Set notes what the database has just said, in Unix ms.
func (c *databaseClock) Set(said int64) { c.last.Store(&measurement{said, time.Now()}) }

// Old says that it is time to ask again.
func (c *databaseClock) Old() bool {
	m := c.last.Load()
	return m == nil || time.Since(m.at) > clockAge
}

// Now is the time; it has been Set before.
func (c *databaseClock) Now() time.Time {
	m := c.last.Load()
	return time.UnixMilli(m.said).Add(time.Since(m.at))
}
