package holdfast

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/sqlstore"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Holdfast is an open store with its background work. Safe for concurrent use.
type Holdfast struct {
	o       Options
	log     *slog.Logger
	store   *sqlstore.Store
	applier ledger.Applier
	stages  []stage         // around the store, from the inside out
	batch   *pipeline.Batch // the one of them that commits; nil = none
	queue   *pipeline.Queue // the one in which orders wait; nil = none
	gate    *pipeline.Gate  // the one that knows what is sold out; nil = none
	shared  *shared         // what the stages keep in Redis; nil = nothing
	tickets tickets
	told    refusals

	outcomes outcomes
	items    cache[Item]
	sales    cache[flow.Calendar] // by SKU
	auth     cache[APIKey]
	paying   joint[debtor] // by account
	hashing  chan struct{} // one for each password that is hashed
	bell     *bell
	tail     tail
	states   states
	hooks    hooks
	work     *background
}

// Open opens the store at url, e.g. "sqlite:shop.db", brings its schema up to
// date, and starts the background work. It refuses a store that may lose what
// it acknowledged (see Options.AllowUnsafeDurability).
func Open(ctx context.Context, url string, o Options) (*Holdfast, error) {
	clock := o.Clock // nil = the database's own, where it has one
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, url, sqlstore.Options{
		Strategy: presets[o.Preset].strategy, Clock: clock, AllowUnsafeDurability: o.AllowUnsafeDurability,
	})
	if err != nil {
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	h := &Holdfast{o: o, log: o.Logger, store: store, applier: store, bell: newBell(),
		tail:    tail{grown: make(chan struct{}, 1), written: make(chan struct{}, 1)},
		hooks:   newHooks(hookClient(o.PrivateEndpoints, nil)),
		states:  states{grown: make(chan struct{}, 1), of: map[string]*state{}},
		items:   cache[Item]{maxAge: itemMaxAge, maxCount: itemMaxCount},
		sales:   cache[flow.Calendar]{maxAge: itemMaxAge, maxCount: itemMaxCount},
		hashing: make(chan struct{}, hashers),
		auth:    cache[APIKey]{maxAge: authMaxAge, maxCount: authMaxCount},
	}
	if h.shared, err = share(ctx, o.Redis, store.ID()); err != nil {
		return nil, errors.Join(fmt.Errorf("holdfast: open: %w", err), store.Close())
	}
	h.compose(presets[o.Preset])
	h.work = newBackground(h)
	h.work.start()
	return h, nil
}

// stage is an Applier around an Applier, with work of its own to finish.
type stage interface {
	ledger.Applier
	Close(ctx context.Context) error
}

// compose puts the stages of a preset around the store.
func (h *Holdfast) compose(p preset) {
	put := func(s stage) { h.applier, h.stages = s, append(h.stages, s) }
	if p.batch {
		h.batch = pipeline.NewBatch(h.applier, pipeline.BatchOptions{})
		put(h.batch)
	}
	if p.queue {
		h.queue = pipeline.NewQueue(h.applier, h.shared.log(), pipeline.QueueOptions{Shared: h.shared != nil})
		put(h.queue)
	}
	if p.gate {
		// The gate may refuse before it remembers long enough to know every repeat:
		// placeDraft looks those up that it might not know.
		counter := h.shared.counter(pipeline.CounterOptions{Recall: time.Millisecond})
		h.gate = pipeline.NewGate(h.applier, h.store, counter, pipeline.GateOptions{Accounts: []ledger.Account{flow.Stock}})
		put(h.gate)
	}
}

// Close ends the background work, finishes what was accepted and closes the
// store, in this order: nothing new is started, gateway calls under way may
// answer, waiting entries are committed (what waits in Redis is left to other
// processes, or to the next), and only then Redis and the store go away.
// ctx bounds the wait, not the safety: tasks are stored, so any moment is a good
// one to stop.
func (h *Holdfast) Close(ctx context.Context) error {
	err := h.work.stop(ctx)
	for _, s := range slices.Backward(h.stages) {
		err = errors.Join(err, s.Close(ctx))
	}
	h.shared.close()
	return errors.Join(err, h.store.Close())
}

// Ledger is the read side of the store.
func (h *Holdfast) Ledger() ledger.Reader { return h.store }

// Health says how the store is.
type Health struct {
	Store        string `json:"store"`         // the kind of store
	Durability   string `json:"durability"`    // "full", or what is weaker
	Entries      int64  `json:"entries"`       // in the journal
	TasksOverdue int    `json:"tasks_overdue"` // that should have run by now; at most one page
	TasksStuck   int    `json:"tasks_stuck"`   // given up, for a person to look at; at most one page
}

// overdueAfter is how late a task may be before Health counts it.
const overdueAfter = 30 * time.Second

// Health asks the store; an error means that it does not answer.
func (h *Holdfast) Health(ctx context.Context) (Health, error) {
	head, err := h.store.Head(ctx)
	if err != nil {
		return Health{}, fmt.Errorf("holdfast: health: %w", err)
	}
	now, err := h.store.Now(ctx)
	if err != nil {
		return Health{}, fmt.Errorf("holdfast: health: %w", err)
	}
	late, err := h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindTask, DueBy: now - overdueAfter.Milliseconds()})
	if err != nil {
		return Health{}, fmt.Errorf("holdfast: health: %w", err)
	}
	stuck, err := h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindTask, State: flow.TaskStuck})
	if err != nil {
		return Health{}, fmt.Errorf("holdfast: health: %w", err)
	}
	return Health{Store: h.store.Kind(), Durability: h.store.Durability(), Entries: head.Seq, TasksOverdue: len(late), TasksStuck: len(stuck)}, nil
}

// GatewayNames are the gateways of the options, in order.
func (h *Holdfast) GatewayNames() []string { return slices.Sorted(maps.Keys(h.o.Gateways)) }

// Stats counts since Open.
type Stats struct {
	Batches int64   // of group commit; 0 when the preset has none
	Entries int64   // in those batches
	Sizes   []int64 // of those batches: index i counts those of 2^(i-1) to 2^i - 1 entries; nil = the preset has none

	Decisions    int64 // that the store was asked for: of a batch, or of one entry
	Transactions int64 // that the store has begun for them: more when it had to decide anew
	Queries      int64 // that the store was asked besides

	// Took counts Place by how long it took: index i is 50 µs * 2^(i/2) or less, and
	// more than index i-1 is; the last one is everything longer.
	Took   []int64
	Orders map[string]int64     // by what became of them: "held", "replayed", "unknown", or the code of a Rejection
	Queue  *pipeline.QueueStats // nil = the preset has none
	Gate   *pipeline.GateStats  // nil = the preset has none
}

// Stats reads the counters.
func (h *Holdfast) Stats() Stats {
	stored := h.store.Stats()
	orders, took := h.outcomes.counts()
	s := Stats{Decisions: stored.Batches, Transactions: stored.Transactions, Queries: stored.Queries, Orders: orders, Took: took}
	if h.queue != nil {
		queue := h.queue.Stats()
		s.Queue = &queue
	}
	if h.gate != nil {
		gate := h.gate.Stats()
		s.Gate = &gate
	}
	if h.batch != nil {
		s.Batches, s.Entries = h.batch.Stats()
		s.Sizes = h.batch.Sizes()
	}
	return s
}

// MAC is a keyed digest of data under the store's own secret. Digests of
// different purposes have nothing in common.
func (h *Holdfast) MAC(purpose, data string) []byte {
	m := hmac.New(sha256.New, h.store.Secret())
	m.Write([]byte(purpose))
	m.Write([]byte{0})
	m.Write([]byte(data))
	return m.Sum(nil)
}

// ClientSecret lets a buyer's page see, pay and cancel this one order. It is
// computed, never stored.
func (h *Holdfast) ClientSecret(order string) string {
	return "hfs_" + letters(h.MAC("client secret", order))
}

// CheckClientSecret compares in constant time.
func (h *Holdfast) CheckClientSecret(order, secret string) bool {
	return hmac.Equal([]byte(h.ClientSecret(order)), []byte(secret))
}

// letters writes bytes in 0-9a-v: sorts as the bytes do, and every gateway,
// URL and database takes it.
func letters(b []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// newID is unique and grows with time: random keys would scatter over a B-tree.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("holdfast: new id: %w", err)
	}
	return letters(id[:]), nil
}

// now is the store's time.
func (h *Holdfast) now(ctx context.Context) (Time, error) {
	now, err := h.store.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("holdfast: store time: %w", err)
	}
	return Time(now), nil
}
