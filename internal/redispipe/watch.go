package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
)

const watchAttempts = 32 // transactions for one taking while others are faster

// ErrBusy means that others were faster than every attempt. Nothing was taken.
var ErrBusy = errors.New("too many take at once")

// Watching is the Counter that takes with WATCH, MULTI and EXEC, as is often
// recommended: it reads, decides, and writes if nobody has written meanwhile. It
// keeps the same promises, and is here to be compared with: on a hot key nearly
// every attempt but one is in vain. It takes from several slots one after another
// as well.
type Watching struct{ *Counter }

// Watching makes a Watching whose keys begin with space.
func (r *Redis) Watching(space string, o pipeline.CounterOptions) Watching {
	c := r.Counter(space, o)
	w := Watching{c}
	c.run = w.takeEach
	return w
}

func (w Watching) takeEach(ctx context.Context, takings []pipeline.Taking) ([]pipeline.Verdict, error) {
	verdicts := make([]pipeline.Verdict, len(takings))
	for i, t := range takings {
		var err error
		if verdicts[i], err = w.takeOne(ctx, t); err != nil {
			return nil, fmt.Errorf("redispipe: take %q: %w", t.Op, err)
		}
	}
	return verdicts, nil
}

func (w Watching) takeOne(ctx context.Context, t pipeline.Taking) (v pipeline.Verdict, err error) {
	err = w.redis.client.Dedicated(func(conn rueidis.DedicatedClient) error {
		for range watchAttempts {
			again, err := w.attempt(ctx, conn, t, &v)
			if err != nil || !again {
				return err
			}
		}
		return ErrBusy
	})
	return v, err
}

// attempt decides t on what it has watched. again = somebody has written meanwhile.
func (w Watching) attempt(ctx context.Context, conn rueidis.DedicatedClient, t pipeline.Taking, v *pipeline.Verdict) (again bool, err error) {
	ks := w.newKeys()
	for _, want := range t.Wants {
		ks.number(want.Key)
	}
	if err := conn.Do(ctx, conn.B().Watch().Key(ks.names...).Build()).Error(); err != nil {
		return false, err
	}
	now, err := serverTime(ctx, conn)
	if err != nil {
		return false, err
	}
	if *v, err = w.decide(ctx, conn, t, now); err != nil {
		return false, err
	}
	if v.Fate == pipeline.Repeated || v.Fate == pipeline.Short {
		return false, conn.Do(ctx, conn.B().Unwatch().Build()).Error()
	}
	at := decimal(now.UnixMilli())
	commands := rueidis.Commands{conn.B().Multi().Build()}
	for _, want := range t.Wants {
		count, pending, memory := w.name(want.Key, countPart), w.name(want.Key, pendingPart), w.name(want.Key, memoryPart)
		commands = append(commands,
			conn.B().Hincrby().Key(count).Field("free").Increment(-want.Amount).Build(),
			conn.B().Hset().Key(pending).FieldValue().FieldValue(t.Op, decimal(want.Amount)+" 0 "+at+" 0").Build(),
			conn.B().Zadd().Key(memory).ScoreMember().ScoreMember(float64(now.UnixMilli()), t.Op).Build())
		for _, name := range []string{count, pending, memory} {
			commands = append(commands, conn.B().Arbitrary("PEXPIRE").Keys(name).Args(w.ttl()).Build())
		}
	}
	commands = append(commands, conn.B().Exec().Build())
	results := conn.DoMulti(ctx, commands...)
	for _, r := range results[:len(results)-1] {
		if err := r.Error(); err != nil {
			return false, err
		}
	}
	_, err = results[len(results)-1].ToArray()
	if rueidis.IsRedisNil(err) {
		return true, nil
	}
	return false, err
}

// decide is what take.lua does.
func (w Watching) decide(ctx context.Context, conn rueidis.DedicatedClient, t pipeline.Taking, now time.Time) (pipeline.Verdict, error) {
	for _, want := range t.Wants {
		err := conn.Do(ctx, conn.B().Zscore().Key(w.name(want.Key, memoryPart)).Member(t.Op).Build()).Error()
		if err == nil {
			return pipeline.Verdict{Fate: pipeline.Repeated}, nil
		}
		if !rueidis.IsRedisNil(err) {
			return pipeline.Verdict{}, err
		}
	}
	fate := pipeline.Took
	for _, want := range t.Wants {
		h, err := conn.Do(ctx, conn.B().Hgetall().Key(w.name(want.Key, countPart)).Build()).AsStrMap()
		if err != nil {
			return pipeline.Verdict{}, err
		}
		free, doubt := number(h["free"]), number(h["doubt"])
		at, since := time.UnixMilli(number(h["at"])), time.UnixMilli(number(h["since"]))
		sure := h["at"] != "" && h["since"] != "" && now.Sub(at).Abs() <= w.options.Fresh &&
			now.Sub(since).Milliseconds() >= w.options.Recall.Milliseconds()
		if t.Firm && sure && free+doubt < want.Amount {
			return pipeline.Verdict{Fate: pipeline.Short, Key: want.Key, Left: max(free+doubt, 0)}, nil
		}
		if free < want.Amount {
			fate = pipeline.Doubted
		}
	}
	return pipeline.Verdict{Fate: fate}, nil
}

func serverTime(ctx context.Context, conn rueidis.DedicatedClient) (time.Time, error) {
	parts, err := conn.Do(ctx, conn.B().Time().Build()).AsStrSlice()
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(number(parts[0]), number(parts[1])*1000).Truncate(time.Millisecond), nil
}

// number is a count that a script wrote; missing = 0.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
