package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// maxLocalKeys is how many keys a LocalCounter counts. One more, and it forgets another:
// it starts again with the next Set.
const maxLocalKeys = 100_000

// LocalCounter is the Counter of one process. It forgets everything when it goes.
type LocalCounter struct {
	options CounterOptions

	mu    sync.Mutex
	keys  map[ledger.Key]*count
	since time.Time // how far back the memory of a key without a count reaches
}

// count is what a LocalCounter keeps of one key; see Counter.
type count struct {
	free, doubt int64
	seq         int64
	at          time.Time // of the last Set; zero = there was none
	since       time.Time // how far back memory reaches
	pending     map[string]taken
	memory      map[string]int64 // operation -> its place in order
	order       []moment         // of operations; forgotten ones stay until they are trimmed
	trimmed     int64            // how many were cut off the front of order
}

type taken struct {
	amount   int64
	at       time.Time
	seq      int64 // 0 = not settled
	doubtful bool  // in doubt
}

type moment struct {
	op string
	at time.Time
}

// NewLocalCounter makes an empty LocalCounter.
func NewLocalCounter(o CounterOptions) *LocalCounter {
	return &LocalCounter{options: o.WithDefaults(), keys: map[ledger.Key]*count{}, since: time.Now()}
}

// Take implements Counter. The memory is asked before the stock: whoever has
// the last unit and asks again would be told that nothing is left.
func (c *LocalCounter) Take(_ context.Context, takings ...Taking) ([]Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	verdicts := make([]Verdict, len(takings))
	for i, taking := range takings {
		verdicts[i] = c.take(taking, now)
	}
	return verdicts, nil
}

func (c *LocalCounter) take(taking Taking, now time.Time) Verdict {
	for _, w := range taking.Wants {
		if _, ok := c.key(w.Key, now).memory[taking.Op]; ok {
			return Verdict{Fate: Repeated}
		}
	}
	fate := Took
	for _, w := range taking.Wants {
		k := c.key(w.Key, now)
		if k.free < w.Amount {
			fate = Doubted
		}
		if taking.Firm && c.sure(k, now) && k.free+k.doubt < w.Amount {
			return Verdict{Short, w.Key, max(k.free+k.doubt, 0)}
		}
	}
	for _, w := range taking.Wants {
		k := c.key(w.Key, now)
		if len(k.order) >= 2*c.options.MaxMemory { // nobody has set it for long
			k.forget(now)
		}
		k.free -= w.Amount
		k.pending[taking.Op] = taken{amount: w.Amount, at: now}
		k.memory[taking.Op] = k.trimmed + int64(len(k.order))
		k.order = append(k.order, moment{taking.Op, now})
	}
	return Verdict{Fate: fate}
}

// sure says whether what k says is recent, and its memory long enough.
func (c *LocalCounter) sure(k *count, now time.Time) bool {
	return now.Sub(k.at) <= c.options.Fresh && now.Sub(k.since) >= c.options.Recall
}

func (c *LocalCounter) key(key ledger.Key, now time.Time) *count {
	k, ok := c.keys[key]
	if ok {
		return k
	}
	if len(c.keys) >= maxLocalKeys {
		for other := range c.keys {
			delete(c.keys, other)
			c.since = now
			break
		}
	}
	k = &count{}
	k.forget(c.since)
	c.keys[key] = k
	return k
}

// quiet says that nothing could have been taken between since and now.
func (c *LocalCounter) quiet(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) == 0 && since.Before(c.since) {
		c.since = since
	}
}

// forget starts k anew, with a memory that reaches back to since, but for the cursors of those who list what was taken.
func (k *count) forget(since time.Time) {
	*k = count{since: since, pending: map[string]taken{}, memory: map[string]int64{}, trimmed: k.trimmed + int64(len(k.order))}
}

// Give implements Counter.
func (c *LocalCounter) Give(_ context.Context, op string, keys []ledger.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		k, ok := c.keys[key]
		if !ok {
			continue
		}
		if p, ok := k.pending[op]; ok {
			k.drop(op, p)
			k.free += p.amount
			delete(k.memory, op)
		}
	}
	return nil
}

// Settle implements Counter. What line the taking is in decides whether the last
// Set contains it: then free has been lessened twice.
func (c *LocalCounter) Settle(_ context.Context, settlements ...Settlement) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range settlements {
		k, ok := c.keys[s.Key]
		if !ok {
			continue
		}
		p, ok := k.pending[s.Op]
		if !ok {
			continue
		}
		k.drop(s.Op, p)
		if s.Seq <= k.seq {
			k.free += p.amount
			continue
		}
		p.seq, p.doubtful = s.Seq, false
		k.pending[s.Op] = p
	}
	return nil
}

// drop takes p out of pending and doubt.
func (k *count) drop(op string, p taken) {
	delete(k.pending, op)
	if p.doubtful {
		k.doubt -= p.amount
	}
}

// Set implements Counter.
func (c *LocalCounter) Set(_ context.Context, levels ...Level) ([]Left, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	lefts := make([]Left, len(levels))
	for i, l := range levels {
		k := c.key(l.Key, now)
		if l.Gap {
			k.since = now
		}
		// An old level whose successor is no longer fresh comes from a ledger that
		// was itself set back.
		if l.Seq >= k.seq || now.Sub(k.at) > c.options.Fresh {
			k.set(l, now, c.options.Lease)
		}
		k.trim(now, c.options)
		lefts[i] = Left{Amount: k.free + k.doubt, Sure: c.sure(k, now), Reach: min(now.Sub(k.since), c.options.Memory)}
	}
	return lefts, nil
}

func (k *count) set(l Level, now time.Time, lease time.Duration) {
	k.free, k.doubt, k.seq, k.at = l.Available, 0, l.Seq, now
	for op, p := range k.pending {
		if (p.seq != 0 && p.seq <= l.Seq) || (p.seq == 0 && now.Sub(p.at) > lease) {
			delete(k.pending, op)
			continue
		}
		k.free -= p.amount
		if p.doubtful = p.seq == 0; p.doubtful {
			k.doubt += p.amount
		}
		k.pending[op] = p
	}
}

// trim forgets what is too old or too much.
func (k *count) trim(now time.Time, o CounterOptions) {
	n := max(len(k.order)-o.MaxMemory, 0)
	if n > 0 && k.since.Before(k.order[n-1].at) {
		k.since = k.order[n-1].at
	}
	for n < len(k.order) && now.Sub(k.order[n].at) > o.Memory {
		n++
	}
	if n == 0 {
		return
	}
	for i, m := range k.order[:n] {
		if k.memory[m.op] == k.trimmed+int64(i) {
			delete(k.memory, m.op)
		}
	}
	k.order = slices.Delete(k.order, 0, n)
	k.trimmed += int64(n)
}

// Taken implements Counter.
func (c *LocalCounter) Taken(_ context.Context, key ledger.Key, after int64) (ops []string, next int64, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.keys[key]
	if !ok {
		return nil, after, false, nil
	}
	from := min(max(after-k.trimmed, 0), int64(len(k.order)))
	to := min(from+MaxTaken, int64(len(k.order)))
	for _, m := range k.order[from:to] {
		ops = append(ops, m.op)
	}
	return ops, k.trimmed + to, to < int64(len(k.order)), nil
}
