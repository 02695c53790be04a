package redispipe

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

const (
	callDeadline = time.Second     // of one script
	lookAgain    = 2 * time.Second // whoever waits and was not woken
)

//go:embed scripts/append.lua
var appendText string

//go:embed scripts/claim.lua
var claimText string

//go:embed scripts/settle_claim.lua
var settleClaimText string

//go:embed scripts/find.lua
var findText string

//go:embed scripts/backlog.lua
var backlogText string

// Log is a pipeline.Log in Redis, for the queues of many processes: a stream for
// each partition, from which entries are deleted when they are settled and not
// before. Its times are those of the server's clock.
//
// All of it is in one slot: an id is in the line once, however many partitions
// there are, partitions take turns, and MaxWaiting is exact, in a cluster too. A
// line is drained no faster than the ledger commits, which one server outruns.
//
// With an append-only file (AOF), what waits survives the server. What is lost
// nevertheless is unknown to Find and Wait, and those who ask again start anew.
// What comes back, as the server was set back to an older state, is handed out
// again, and is a replay in the ledger, save for what was refused: that is decided
// anew, and if it is accepted now, nobody knows of it until it expires.
//
// A claim whose answer was lost is not left to lapse: with every claim, a Log
// says which ones it has, and the server frees those of its others.
type Log struct {
	redis   *Redis
	options pipeline.LogOptions
	tag     string
	bell    *bell

	append, claim, settle, find, backlog *rueidis.Lua

	process string         // the name under which the server knows this Log
	turns   chan struct{}  // holds one; who claims has it
	turn    int64          // of the last claim
	mu      sync.Mutex     // for mine
	mine    map[int64]bool // fences of the claims that are worked on
}

// Log makes a Log whose keys begin with space. Close it before the Redis.
func (r *Redis) Log(space string, o pipeline.LogOptions) *Log {
	tag := "{" + braces.Replace(space) + "queue}"
	l := &Log{redis: r, options: o.WithDefaults(), tag: tag, bell: newBell(r.client, tag+"bell"),
		append: rueidis.NewLuaScript(appendText), claim: rueidis.NewLuaScript(claimText), settle: rueidis.NewLuaScript(settleClaimText),
		find: rueidis.NewLuaScript(findText), backlog: rueidis.NewLuaScript(backlogText),
		process: rand.Text(), turns: make(chan struct{}, 1), mine: map[int64]bool{}}
	l.turns <- struct{}{}
	return l
}

// Close ends the subscription. What waits stays.
func (l *Log) Close() { l.bell.close() }

// keys are the names of parts, all in one slot.
func (l *Log) keys(parts ...string) []string {
	for i, part := range parts {
		parts[i] = l.tag + part
	}
	return parts
}

// streamPart is the line of a partition.
func streamPart(partition string) string { return "stream:" + partition }

// run runs a script. Whoever gives up while it is under way would not know what
// became of it, so only callDeadline ends it.
func (l *Log) run(ctx context.Context, script *rueidis.Lua, keys []string, args ...string) ([]rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callDeadline)
	defer cancel()
	return script.Exec(ctx, l.redis.client, keys, args).ToArray()
}

// Verdicts of append.lua.
const (
	appended = iota
	repeated
	reused
	full
	soldOut
)

// Append implements pipeline.Log.
func (l *Log) Append(ctx context.Context, r pipeline.Request) (pipeline.Place, error) {
	var entry bytes.Buffer
	enc := json.NewEncoder(&entry)
	enc.SetEscapeHTML(false) // a body must stay as it is
	if err := enc.Encode(r.Entry); err != nil {
		return pipeline.Place{}, fmt.Errorf("redispipe: append %q: %w", r.Entry.ID, err)
	}
	out, err := l.run(ctx, l.append,
		l.keys("state", "free", "fronts", "lanes", "known", "results", "kept", streamPart(r.Partition)),
		r.Entry.ID, hex.EncodeToString(r.Print[:]), r.Partition, decimal(r.Units), decimal(r.Most),
		strconv.Itoa(l.options.MaxWaiting), entry.String(), l.bell.channel)
	if err != nil {
		return pipeline.Place{}, fmt.Errorf("redispipe: append %q: %w", r.Entry.ID, err)
	}
	verdict, err := out[0].AsInt64()
	switch {
	case err != nil:
		return pipeline.Place{}, fmt.Errorf("redispipe: append %q: %w", r.Entry.ID, err)
	case verdict == reused:
		return pipeline.Place{}, pipeline.ErrReused
	case verdict == full:
		return pipeline.Place{}, pipeline.ErrFull
	case verdict == soldOut:
		return pipeline.Place{}, pipeline.ErrSoldOut
	}
	place, err := placeOf(out[1:])
	if err != nil {
		return pipeline.Place{}, fmt.Errorf("redispipe: append %q: %w", r.Entry.ID, err)
	}
	place.Repeat = verdict == repeated
	return place, nil
}

// Find implements pipeline.Log.
func (l *Log) Find(ctx context.Context, id string) (pipeline.Place, error) {
	out, err := l.run(ctx, l.find, l.keys("fronts", "lanes", "known", "results"), id)
	if err == nil && len(out) == 0 {
		return pipeline.Place{}, nil
	}
	var place pipeline.Place
	if err == nil {
		place, err = placeOf(out)
	}
	if err != nil {
		return pipeline.Place{}, fmt.Errorf("redispipe: find %q: %w", id, err)
	}
	return place, nil
}

// Wait implements pipeline.Log. It is told when the entry is decided, and looks
// every 2 seconds in case nobody told it.
func (l *Log) Wait(ctx context.Context, id string) (pipeline.Place, error) {
	for {
		l.bell.listen()
		rung, leave := l.bell.await(id) // before the look, so that nothing comes between
		place, err := l.Find(ctx, id)
		if err != nil || place.State != pipeline.PlaceWaiting {
			leave()
			return place, err
		}
		select {
		case <-rung:
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
		leave()
		if err := ctx.Err(); err != nil {
			return pipeline.Place{}, err
		}
	}
}

// placeOf reads number, served, partitions, result and partition.
func placeOf(out []rueidis.RedisMessage) (pipeline.Place, error) {
	if len(out) != 5 {
		return pipeline.Place{}, fmt.Errorf("%d values for a place", len(out))
	}
	p := pipeline.Place{State: pipeline.PlaceWaiting}
	for i, n := range []*int64{&p.Number, &p.Served, &p.Partitions} {
		var err error
		if *n, err = out[i].AsInt64(); err != nil {
			return pipeline.Place{}, err
		}
	}
	result, err := out[3].ToString()
	if err != nil {
		return pipeline.Place{}, err
	}
	if p.Partition, err = out[4].ToString(); err != nil || result == "" {
		return p, err
	}
	p.State = pipeline.PlaceDecided
	p.Result, err = decodeResult(result)
	return p, err
}

// written is a ledger.Result with all its fields.
type written struct {
	Seq      int64         `json:"seq,omitempty"`
	At       int64         `json:"at,omitempty"`
	Replayed bool          `json:"replayed,omitempty"`
	Reply    []byte        `json:"reply,omitempty"` // byte for byte
	Rest     ledger.Result `json:"rest"`
}

func encodeResult(r ledger.Result) (string, error) {
	text, err := json.Marshal(written{Seq: r.Seq, At: r.At, Replayed: r.Replayed, Reply: r.Reply, Rest: r})
	return string(text), err
}

func decodeResult(text string) (ledger.Result, error) {
	var w written
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return ledger.Result{}, err
	}
	r := w.Rest
	r.Seq, r.At, r.Replayed, r.Reply = w.Seq, w.At, w.Replayed, w.Reply
	return r, nil
}
