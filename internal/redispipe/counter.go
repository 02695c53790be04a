package redispipe

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of one script, which nothing else runs beside.
const (
	maxScriptWants  = 512 // wants of takings
	maxScriptLevels = 16  // levels; each may have a Lease's takings pending
)

//go:embed scripts/take.lua
var takeText string

//go:embed scripts/give.lua
var giveText string

//go:embed scripts/settle.lua
var settleText string

//go:embed scripts/set.lua
var setText string

// Counter is a pipeline.Counter in Redis, for the gates of many processes. Its
// times are those of the server's clock.
//
// Every change is one script, which is idempotent by operation. In a cluster, the
// parts of a taking that are in different slots are taken one after another, and
// given back when one is refused; a process that dies between them leaves
// takings that nobody settles, which the lease ends.
type Counter struct {
	redis   *Redis
	options pipeline.CounterOptions
	space   string

	take, give, settle, set *rueidis.Lua

	run     func(context.Context, []pipeline.Taking) ([]pipeline.Verdict, error) // takings of one slot
	mu      sync.Mutex
	gathers map[int]*gather // by slot
}

// Counter makes a Counter whose keys begin with space.
func (r *Redis) Counter(space string, o pipeline.CounterOptions) *Counter {
	c := &Counter{redis: r, options: o.WithDefaults(), space: space,
		take: rueidis.NewLuaScript(takeText), give: rueidis.NewLuaScript(giveText),
		settle: rueidis.NewLuaScript(settleText), set: rueidis.NewLuaScript(setText), gathers: map[int]*gather{}}
	c.run = c.takeSlot
	return c
}

// Take implements pipeline.Counter. Takings of many callers share a script.
func (c *Counter) Take(ctx context.Context, takings ...pipeline.Taking) ([]pipeline.Verdict, error) {
	verdicts := make([]pipeline.Verdict, len(takings))
	bySlot := map[int][]int{}
	for i, t := range takings {
		parts := c.apart(t)
		if len(parts) == 1 {
			slot := c.slot(t.Wants[0].Key)
			bySlot[slot] = append(bySlot[slot], i)
			continue
		}
		var err error
		if verdicts[i], err = c.takeApart(ctx, parts); err != nil {
			return nil, err
		}
	}
	for slot, members := range bySlot {
		for chunk := range slices.Chunk(members, maxScriptWants) {
			together := make([]pipeline.Taking, len(chunk))
			for n, i := range chunk {
				together[n] = takings[i]
			}
			got, err := c.gather(slot).take(ctx, together)
			if err != nil {
				return nil, err
			}
			for n, i := range chunk {
				verdicts[i] = got[n]
			}
		}
	}
	return verdicts, nil
}

// gather is where the callers of one slot meet.
func (c *Counter) gather(slot int) *gather {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.gathers[slot]
	if !ok {
		g = &gather{run: c.run}
		c.gathers[slot] = g
	}
	return g
}

// apart cuts t into parts of one slot each, in the order of slots.
func (c *Counter) apart(t pipeline.Taking) []pipeline.Taking {
	bySlot := map[int]*pipeline.Taking{}
	for _, w := range t.Wants {
		slot := c.slot(w.Key)
		part, ok := bySlot[slot]
		if !ok {
			part = &pipeline.Taking{Op: t.Op, Firm: t.Firm}
			bySlot[slot] = part
		}
		part.Wants = append(part.Wants, w)
	}
	parts := make([]pipeline.Taking, 0, len(bySlot))
	for _, slot := range slices.Sorted(maps.Keys(bySlot)) {
		parts = append(parts, *bySlot[slot])
	}
	return parts
}

// takeApart takes parts one after another. When one is short, what this call has
// taken is given back; what a call before it has taken is not its own to give.
func (c *Counter) takeApart(ctx context.Context, parts []pipeline.Taking) (pipeline.Verdict, error) {
	var taken []ledger.Key
	all := pipeline.Verdict{Fate: pipeline.Repeated}
	for _, part := range parts {
		got, err := c.gather(c.slot(part.Wants[0].Key)).take(ctx, []pipeline.Taking{part})
		if err != nil {
			return pipeline.Verdict{}, err
		}
		switch v := got[0]; v.Fate {
		case pipeline.Short:
			if len(taken) == 0 {
				return v, nil
			}
			return v, c.Give(ctx, part.Op, taken)
		case pipeline.Took, pipeline.Doubted:
			if all.Fate != pipeline.Doubted {
				all.Fate = v.Fate
			}
			for _, w := range part.Wants {
				taken = append(taken, w.Key)
			}
		}
	}
	return all, nil
}

// takeSlot runs one script.
func (c *Counter) takeSlot(ctx context.Context, takings []pipeline.Taking) ([]pipeline.Verdict, error) {
	keys := c.newKeys()
	args := []string{ms(c.options.Fresh), ms(c.options.Recall), c.ttl()}
	for _, t := range takings {
		args = append(args, t.Op, flag(t.Firm), strconv.Itoa(len(t.Wants)))
		for _, w := range t.Wants {
			args = append(args, keys.number(w.Key), decimal(w.Amount))
		}
	}
	out, err := c.take.Exec(ctx, c.redis.client, keys.names, args).AsIntSlice()
	if err == nil && len(out) != 3*len(takings) {
		err = fmt.Errorf("%d numbers for %d takings", len(out), len(takings))
	}
	if err != nil {
		return nil, fmt.Errorf("redispipe: take %q: %w", takings[0].Op, err)
	}
	verdicts := make([]pipeline.Verdict, len(takings))
	for i := range takings {
		fate, key, left := out[3*i], out[3*i+1], out[3*i+2]
		verdicts[i] = pipeline.Verdict{Fate: fates[fate]}
		if verdicts[i].Fate == pipeline.Short {
			verdicts[i].Key, verdicts[i].Left = keys.keys[key-1], left
		}
	}
	return verdicts, nil
}

// fates are those of take.lua.
var fates = [...]pipeline.Fate{pipeline.Took, pipeline.Doubted, pipeline.Repeated, pipeline.Short}

// Give implements pipeline.Counter.
func (c *Counter) Give(ctx context.Context, op string, keys []ledger.Key) error {
	for _, group := range c.bySlot(keys) {
		ks := c.newKeys()
		for _, i := range group {
			ks.number(keys[i])
		}
		if err := done(c.give.Exec(ctx, c.redis.client, ks.names, []string{op})); err != nil {
			return fmt.Errorf("redispipe: give back %q: %w", op, err)
		}
	}
	return nil
}

// Settle implements pipeline.Counter.
func (c *Counter) Settle(ctx context.Context, settlements ...pipeline.Settlement) error {
	keys := make([]ledger.Key, len(settlements))
	for i, s := range settlements {
		keys[i] = s.Key
	}
	for _, group := range c.bySlot(keys) {
		for chunk := range slices.Chunk(group, maxScriptWants) {
			ks := c.newKeys()
			var args []string
			for _, i := range chunk {
				args = append(args, ks.number(keys[i]), settlements[i].Op, decimal(settlements[i].Seq))
			}
			if err := done(c.settle.Exec(ctx, c.redis.client, ks.names, args)); err != nil {
				return fmt.Errorf("redispipe: settle %d takings: %w", len(chunk), err)
			}
		}
	}
	return nil
}

// Set implements pipeline.Counter.
func (c *Counter) Set(ctx context.Context, levels ...pipeline.Level) ([]pipeline.Left, error) {
	keys := make([]ledger.Key, len(levels))
	for i, l := range levels {
		keys[i] = l.Key
	}
	lefts := make([]pipeline.Left, len(levels))
	for _, group := range c.bySlot(keys) {
		for chunk := range slices.Chunk(group, maxScriptLevels) {
			ks := c.newKeys()
			args := []string{ms(c.options.Fresh), ms(c.options.Recall), c.ttl(), ms(c.options.Lease), ms(c.options.Memory),
				strconv.Itoa(c.options.MaxMemory)}
			for _, i := range chunk {
				ks.number(keys[i])
				args = append(args, decimal(levels[i].Available), decimal(levels[i].Seq), flag(levels[i].Gap))
			}
			out, err := c.set.Exec(ctx, c.redis.client, ks.names, args).AsIntSlice()
			if err == nil && len(out) != 3*len(chunk) {
				err = fmt.Errorf("%d numbers for %d keys", len(out), len(chunk))
			}
			if err != nil {
				return nil, fmt.Errorf("redispipe: set %d keys: %w", len(chunk), err)
			}
			for n, i := range chunk {
				lefts[i] = pipeline.Left{Amount: out[3*n], Sure: out[3*n+1] == 1,
					Reach: time.Duration(min(out[3*n+2], c.options.Memory.Milliseconds())) * time.Millisecond}
			}
		}
	}
	return lefts, nil
}

// Taken implements pipeline.Counter. The cursor is the time of the last operation,
// in Unix ms; those of that ms come again.
func (c *Counter) Taken(ctx context.Context, key ledger.Key, after int64) ([]string, int64, bool, error) {
	b := c.redis.client.B()
	rows, err := c.redis.client.Do(ctx, b.Zrangebyscore().Key(c.name(key, memoryPart)).Min(decimal(after)).Max("+inf").
		Withscores().Limit(0, pipeline.MaxTaken).Build()).AsZScores()
	if err != nil {
		return nil, after, false, fmt.Errorf("redispipe: list what was taken: %w", err)
	}
	if len(rows) == 0 {
		return nil, after, false, nil
	}
	ops := make([]string, len(rows))
	for i, row := range rows {
		ops[i] = row.Member
	}
	next, more := int64(rows[len(rows)-1].Score), len(rows) == pipeline.MaxTaken
	if more && next == after {
		return nil, after, false, fmt.Errorf("redispipe: %d operations in one millisecond", len(rows))
	}
	return ops, next, more, nil
}

// done is the error of a script that returns nothing.
func done(r rueidis.RedisResult) error {
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		return err
	}
	return nil
}

func (c *Counter) ttl() string { return ms(2*c.options.Memory + c.options.Lease) }

func ms(d time.Duration) string { return decimal(d.Milliseconds()) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
