package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Defaults and limits of a Queue.
const (
	DefaultMargin = 1000 // units

	claimDeadline  = 45 * time.Second // of the inner calls for one claim; less than any lease
	settleDeadline = 5 * time.Second
	maxUnits       = 1 << 40 // that one entry counts for, so that sums stay within int64
	maxFailures    = 12      // claims of one entry that end without an outcome
	takeBackoff    = 100 * time.Millisecond
	lastBackoff    = 2 * time.Second
)

// QueueOptions are the choices of a Queue.
type QueueOptions struct {
	// Partition names the partition of an entry that is given to Apply; "" = it
	// does not wait at all. nil = the account and asset of its first reserve out
	// of an account that is not external; entries without one do not wait.
	Partition func(ledger.Entry) string
	// Left says how many units can still be won in a partition, if it knows. nil =
	// it never does. It is asked for every entry, so it should be quick.
	Left func(partition string) (units int64, known bool)
	// Margin is how many units may wait beyond what is left, for those in front
	// who are refused after all; 0 = 1000.
	Margin int64
	// MaxBatch is how many entries a worker takes at once; 0 = 512.
	MaxBatch int
	// Shared says that the Log outlives this Queue: Close leaves what waits in it
	// to other Queues, or to the next one.
	Shared bool
	Scale  ScaleOptions
}

// Queue is admission and a line in front of an Applier, for an hour in which far
// more is asked for than the store can decide, and most of it in vain.
//
// What is always true:
//   - First come, first served: the entries of one partition are applied in the
//     order in which they were accepted, one call after the other. Partitions
//     take turns, and none waits for another.
//   - What was accepted is applied, though everybody who asked for it has gone,
//     and though the process dies, if the Log outlives it. It is acknowledged to
//     the Log after it was applied, so it may be applied twice, which entry ids
//     make a replay. The place in the line is the Log's too.
//   - An entry id is in the line once; a repeat gets the ticket of the first.
//   - What is turned away, ErrFull and ErrSoldOut, has no effect. ErrSoldOut is a
//     guess that spares a hopeless buyer the wait; the ledger alone decides.
//
// Only what asks for something new waits. A commit or a release goes straight to
// the inner Applier: it ends what somebody already has, gives stock back, and may
// have a payment behind it. Entries that are given to Apply together go straight
// too, as their order is the caller's.
//
// The obvious way, one channel and n workers that each take an entry, decides one
// SKU in whatever order the workers are scheduled, and pays a commit for each.
// Here, a worker takes a partition with all that waits in it (up to MaxBatch),
// and gives it back with the outcomes. One hot SKU is therefore served by one
// worker in large batches, which is as fast as its row can go; many SKUs are
// served by many workers, as many as a Scaler says.
//
// When the inner Applier fails, the entries stay in front and are tried one by
// one, so that those before the bad one pass. An entry that fails 12 times is
// given up: its outcome is unknown, and whoever asks again with its id starts
// anew. With a store that is down, that is one entry of each partition in about
// ten seconds; the rest waits.
//
// A worker that dies between applying and settling is followed by another, which
// applies the same entries again. If the first was refused and not remembered,
// the second may be accepted; nobody was told otherwise, as answers come from the
// Log.
//
// When the Log is away, or has forgotten an entry, Apply goes straight to the inner
// Applier, whose answer is as good: then nobody keeps a line, and those who come
// at once are served as they come. What it refuses may be in the line all the same;
// if it is accepted there later, its caller learns that when he asks again, and
// else it expires.
//
// A Queue has a goroutine for its scaler and one for each worker, until Close.
// Safe for concurrent use.
type Queue struct {
	inner   ledger.Applier
	log     Log
	options QueueOptions

	door sync.RWMutex // held for reading while something is appended

	// The three steps of Close: no more entries, no more claims, no worker left.
	closing, abandoned, done context.Context
	close, abandon, end      context.CancelFunc

	team  team // of the run goroutine
	gauge gauge
}

// Ticket is a place in the line.
type Ticket struct {
	ID        string // of the entry
	Partition string
	State     PlaceState
	Position  int64         // while waiting: 1 = next
	ETA       time.Duration // while waiting: an estimate; 0 = not known yet
	Repeat    bool          // the entry was here before
	Result    ledger.Result // once decided
}

// NewQueue puts a Queue around inner and begins to serve what is in log. Close it
// before both.
func NewQueue(inner ledger.Applier, log Log, o QueueOptions) *Queue {
	if o.Partition == nil {
		o.Partition = func(e ledger.Entry) string {
			key, _, _ := demand(e)
			if key.Asset == "" {
				return ""
			}
			return string(key.Account) + " " + string(key.Asset)
		}
	}
	if o.Margin <= 0 {
		o.Margin = DefaultMargin
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = DefaultMaxEntries
	}
	q := &Queue{inner: inner, log: log, options: o, team: team{scaler: NewScaler(o.Scale)}}
	q.closing, q.close = context.WithCancel(context.Background())
	q.abandoned, q.abandon = context.WithCancel(context.Background())
	q.done, q.end = context.WithCancel(context.Background())
	go q.run()
	return q
}

// Submit puts e at the end of the partition. A ticket may be decided at once: of
// a malformed entry, of an id that another entry has, and of a repeat. Errors
// that are ErrFull, ErrSoldOut, ErrClosed or ErrWithdrawn mean no effect; every
// other one is ErrUnknown, and submitting again finds out. e must not be changed
// afterwards.
func (q *Queue) Submit(ctx context.Context, partition string, e ledger.Entry) (Ticket, error) {
	if err := ctx.Err(); err != nil {
		return Ticket{}, fmt.Errorf("pipeline: submit %q: %w: %w", e.ID, ErrWithdrawn, err)
	}
	e = e.Prepare()
	refused := Ticket{ID: e.ID, Partition: partition, State: PlaceDecided}
	if why := e.Check(); why != "" {
		refused.Result = ledger.Result{Code: ledger.Invalid, Detail: why}
		return refused, nil
	}
	place, err := q.append(ctx, partition, e)
	q.gauge.submitted(place, err)
	switch {
	case err == nil:
		return q.ticket(e.ID, place), nil
	case errors.Is(err, ErrReused):
		refused.Result = ledger.Result{Code: ledger.IDReused}
		return refused, nil
	case errors.Is(err, ErrFull), errors.Is(err, ErrSoldOut), errors.Is(err, ErrClosed):
		return Ticket{}, fmt.Errorf("pipeline: submit %q: %w", e.ID, err)
	default:
		return Ticket{}, fmt.Errorf("pipeline: submit %q: %w: %w", e.ID, ErrUnknown, err)
	}
}

func (q *Queue) append(ctx context.Context, partition string, e ledger.Entry) (Place, error) {
	digest, err := fingerprint(e)
	if err != nil {
		return Place{}, err
	}
	r := Request{Partition: partition, Entry: e, Print: digest, Most: math.MaxInt64}
	_, _, r.Units = demand(e)
	// A remembered refusal belongs into the journal, so the ledger must decide it.
	if q.options.Left != nil && !e.Remember {
		if left, known := q.options.Left(partition); known {
			r.Most = min(left, ledger.MaxAmount) + q.options.Margin
		}
	}
	q.door.RLock()
	defer q.door.RUnlock()
	if q.closing.Err() != nil {
		return Place{}, ErrClosed
	}
	return q.log.Append(ctx, r)
}

// Wait returns the outcome once there is one. Its errors are ErrUnknown: the
// entry waits still, was given up, or was forgotten after its decision; applying
// it again finds out.
func (q *Queue) Wait(ctx context.Context, t Ticket) (ledger.Result, error) {
	if t.State == PlaceDecided {
		return t.Result, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(q.done, func() { cancel(ErrClosed) })()
	place, err := q.log.Wait(ctx, t.ID)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return ledger.Result{}, fmt.Errorf("pipeline: wait for %q: %w: %w", t.ID, ErrUnknown, err)
	}
	if place.State != PlaceDecided {
		return ledger.Result{}, fmt.Errorf("pipeline: wait for %q: %w", t.ID, ErrUnknown)
	}
	place.Repeat = t.Repeat
	return q.ticket(t.ID, place).Result, nil
}

// Look says where the entry with this id is. PlaceUnknown is no refusal: the
// ledger may know it.
func (q *Queue) Look(ctx context.Context, id string) (Ticket, error) {
	place, err := q.log.Find(ctx, id)
	if err != nil {
		return Ticket{}, fmt.Errorf("pipeline: look for %q: %w", id, err)
	}
	return q.ticket(id, place), nil
}

// Apply implements ledger.Applier: one entry is submitted and waited for, unless
// it does not wait or is one of several. ErrSoldOut is an insufficient result. An
// entry whose caller stops waiting is applied all the same. Errors are those of
// Submit, of Wait and of the inner Applier; while the Queue is open and ctx has
// not ended, none is that of the Log.
func (q *Queue) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	partition := ""
	if len(entries) == 1 {
		partition = q.options.Partition(entries[0])
	}
	if partition == "" {
		return q.straight(ctx, entries)
	}
	t, err := q.Submit(ctx, partition, entries[0])
	if errors.Is(err, ErrSoldOut) {
		key, op, _ := demand(entries[0])
		return []ledger.Result{{Code: ledger.Insufficient, Op: op, Key: key}}, nil
	}
	var res ledger.Result
	if err == nil {
		res, err = q.Wait(ctx, t)
	}
	if errors.Is(err, ErrUnknown) && ctx.Err() == nil && q.closing.Err() == nil {
		return q.straight(ctx, entries)
	}
	if err != nil {
		return nil, err
	}
	return []ledger.Result{res}, nil
}

func (q *Queue) straight(ctx context.Context, entries []ledger.Entry) ([]ledger.Result, error) {
	if q.closing.Err() != nil {
		return nil, fmt.Errorf("pipeline: apply %q: %w", entries[0].ID, ErrClosed)
	}
	q.gauge.straight(len(entries))
	return q.inner.Apply(ctx, entries...)
}

// Close turns new entries away and returns when everything in the Log is settled
// and no goroutine is left. If the Log is Shared, it is enough that what this
// Queue has claimed is settled; whoever waits here for the rest is told ErrUnknown.
// When ctx ends before, workers finish what they have in their hands, and the rest
// stays in the Log; Close does not wait for them then, but a second Close does.
// Closing twice is fine.
func (q *Queue) Close(ctx context.Context) error {
	q.door.Lock()
	q.close()
	q.door.Unlock()
	select {
	case <-q.done.Done():
		return nil
	case <-ctx.Done():
		q.abandon()
		return fmt.Errorf("pipeline: close queue: %w", ctx.Err())
	}
}

// Stats are the figures of now.
func (q *Queue) Stats() QueueStats { return q.gauge.stats() }

func (q *Queue) ticket(id string, p Place) Ticket {
	t := Ticket{ID: id, Partition: p.Partition, State: p.State, Repeat: p.Repeat, Result: p.Result}
	t.Result.Replayed = t.Result.Replayed || p.Repeat && p.Result.Seq > 0
	if p.State == PlaceWaiting {
		t.Position = p.Number - p.Served
		t.ETA = q.gauge.eta(t.Position, p.Partitions)
	}
	return t
}

// demand is what an entry asks for first: the key of its first reserve out of a
// guarded account, the index of that op, and what all its reserves want of it.
func demand(e ledger.Entry) (key ledger.Key, op int, units int64) {
	for i, o := range e.Ops {
		if o.Kind != ledger.KindReserve || o.From.External() {
			continue
		}
		if key.Asset == "" {
			key, op = ledger.Key{Account: o.From, Asset: o.Asset}, i
		}
		if key.Account == o.From && key.Asset == o.Asset {
			units = min(units+o.Amount, maxUnits)
		}
	}
	return key, op, units
}

// fingerprint says what counts as the same entry, like the ledger does.
func fingerprint(e ledger.Entry) (ledger.Hash, error) {
	if len(e.Fingerprint) > 0 {
		return sha256.Sum256(e.Fingerprint), nil
	}
	body, err := json.Marshal(e)
	return sha256.Sum256(body), err
}
