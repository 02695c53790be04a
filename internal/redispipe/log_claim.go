package redispipe

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

const settleTries = 3 // of one claim: a connection may have broken since its last use

// Take implements pipeline.Log. It is told when a partition is free, and looks
// every 2 seconds in case nobody told it.
func (l *Log) Take(ctx context.Context, most int) (pipeline.Claim, error) {
	for {
		if err := ctx.Err(); err != nil {
			return pipeline.Claim{}, err
		}
		l.bell.listen()
		offered := l.bell.offered()
		c, lapse, err := l.next(ctx, most)
		if err != nil || len(c.Entries) > 0 {
			return c, err
		}
		select {
		case <-offered:
		case <-time.After(min(lapse, lookAgain)):
		case <-ctx.Done():
		}
	}
}

// next claims a partition and reads its first entries. Without one it says how
// long it is until a claim lapses.
func (l *Log) next(ctx context.Context, most int) (pipeline.Claim, time.Duration, error) {
	c, served, lapse, err := l.claimOne(ctx)
	if err != nil || c.Fence == 0 {
		return pipeline.Claim{}, lapse, err
	}
	if c.Failures > 0 {
		most = 1
	}
	if c.Entries, err = l.read(ctx, c.Partition, served, most); err != nil || len(c.Entries) == 0 {
		l.drop(c.Fence)
	}
	return c, lapse, err
}

// claimOne runs claim.lua. Claims of one process are made one after another, so
// that each says what those before it have got.
func (l *Log) claimOne(ctx context.Context) (c pipeline.Claim, served int64, lapse time.Duration, err error) {
	select {
	case <-l.turns:
	case <-ctx.Done():
		return c, 0, 0, ctx.Err()
	}
	defer func() { l.turns <- struct{}{} }()
	l.turn++
	args := []string{l.process, decimal(l.turn), ms(l.options.Lease)}
	l.mu.Lock()
	for fence := range l.mine {
		args = append(args, decimal(fence))
	}
	l.mu.Unlock()
	out, err := l.run(ctx, l.claim, l.keys("state", "free", "claims", "lanes", "turn:"+l.process), args...)
	if err != nil {
		return c, 0, 0, fmt.Errorf("redispipe: claim: %w", err)
	}
	if len(out) < 4 {
		return c, 0, untilLapse(out), nil
	}
	if c, served, err = claimOf(out); err != nil {
		return pipeline.Claim{}, 0, 0, fmt.Errorf("redispipe: claim: %w", err)
	}
	l.mu.Lock()
	l.mine[c.Fence] = true
	l.mu.Unlock()
	return c, served, 0, nil
}

func untilLapse(out []rueidis.RedisMessage) time.Duration {
	if len(out) == 1 {
		if n, err := out[0].AsInt64(); err == nil && n >= 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	return math.MaxInt64
}

// claimOf reads partition, fence, failures and the number served last.
func claimOf(out []rueidis.RedisMessage) (c pipeline.Claim, served int64, err error) {
	if c.Partition, err = out[0].ToString(); err != nil {
		return c, 0, err
	}
	var failures int64
	for i, n := range []*int64{&c.Fence, &failures, &served} {
		if *n, err = out[i+1].AsInt64(); err != nil {
			return c, 0, err
		}
	}
	c.Failures = int(failures)
	return c, served, nil
}

// drop says that a claim is not worked on any more. If it is not settled, the next
// claim frees it.
func (l *Log) drop(fence int64) {
	l.mu.Lock()
	delete(l.mine, fence)
	l.mu.Unlock()
}

// read reads the entries behind the one served last.
func (l *Log) read(ctx context.Context, partition string, served int64, most int) ([]ledger.Entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callDeadline)
	defer cancel()
	c := l.redis.client
	rows, err := c.Do(ctx, c.B().Xrange().Key(l.tag+streamPart(partition)).Start(decimal(served+1)).End("+").
		Count(int64(max(most, 1))).Build()).AsXRange()
	if err != nil {
		return nil, fmt.Errorf("redispipe: read partition %q: %w", partition, err)
	}
	entries := make([]ledger.Entry, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row.FieldValues["entry"]), &entries[i]); err != nil {
			return nil, fmt.Errorf("redispipe: read partition %q, number %s: %w", partition, row.ID, err)
		}
	}
	return entries, nil
}

// Settle implements pipeline.Log. After an error the claim is this process's no
// more: the next Take frees it, if it has not been settled.
func (l *Log) Settle(ctx context.Context, c pipeline.Claim, endings []pipeline.Ending) error {
	if len(endings) > len(c.Entries) {
		return fmt.Errorf("redispipe: settle partition %q: %d endings for %d entries", c.Partition, len(endings), len(c.Entries))
	}
	defer l.drop(c.Fence)
	args := []string{c.Partition, decimal(c.Fence), strconv.Itoa(l.options.Keep), l.bell.channel, flag(len(endings) < len(c.Entries))}
	for i, e := range endings {
		text, err := ending(e)
		if err != nil {
			return fmt.Errorf("redispipe: settle %q: %w", c.Entries[i].ID, err)
		}
		args = append(args, c.Entries[i].ID, text)
	}
	var settled int64
	var err error
	for range settleTries { // the fence makes a second one harmless
		if settled, err = l.settleOnce(ctx, c.Partition, args); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("redispipe: settle partition %q, claim %d: %w", c.Partition, c.Fence, err)
	}
	if settled != 1 {
		return fmt.Errorf("redispipe: settle partition %q, claim %d: %w", c.Partition, c.Fence, pipeline.ErrClaimLost)
	}
	return nil
}

func (l *Log) settleOnce(ctx context.Context, partition string, args []string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	return l.settle.Exec(ctx, l.redis.client, l.keys("state", "free", "claims", "fronts", "lanes", "known", "results", "kept",
		streamPart(partition)), args).AsInt64()
}

// ending is what settle_claim.lua is told of an entry.
func ending(e pipeline.Ending) (string, error) {
	if e.GaveUp {
		return "", nil
	}
	text, err := encodeResult(e.Result)
	if e.Result.Refused() && e.Result.Seq == 0 {
		return "f" + text, err // the ledger has no line of it
	}
	return "d" + text, err
}

// Backlog implements pipeline.Log.
func (l *Log) Backlog(ctx context.Context) (pipeline.Backlog, error) {
	out, err := l.run(ctx, l.backlog, l.keys("state", "fronts"))
	if err != nil {
		return pipeline.Backlog{}, fmt.Errorf("redispipe: backlog: %w", err)
	}
	var b pipeline.Backlog
	var oldest int64
	for i, n := range []*int64{&b.Waiting, &b.Partitions, &oldest} {
		if *n, err = out[i].AsInt64(); err != nil {
			return pipeline.Backlog{}, fmt.Errorf("redispipe: backlog: %w", err)
		}
	}
	b.Oldest = time.Duration(oldest) * time.Millisecond
	return b, nil
}
