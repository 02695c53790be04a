// Package ledgertest is the suite that every ledger.Store passes, whatever its
// database, its locking strategy and the pipeline of Appliers in front of it.
//
// A store's own test is one call:
//
//	ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store { ... })
//
// Each case gets a fresh store and a clock that stands still until the case
// moves it, and ends with ledger.Verify: a case that passes over a broken store
// is not possible. The rules are also told as transcripts (testdata/*.txt),
// which can be read without knowing Go.
package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of one case.
const (
	caseDeadline  = 2 * time.Minute // of everything that one case does
	askAgainLimit = 10              // times that an entry of unknown outcome is applied
)

// Run holds the stores that open makes against every rule of the ledger. open
// makes an empty store that takes its time from clock and closes it with
// t.Cleanup. Cases run one after another.
func Run(t *testing.T, open func(t *testing.T, clock func() time.Time) ledger.Store) {
	RunStorms(t, open)
	for _, g := range []group{{"Histories", histories}, {"Replays", replays}, {"Holds", holds}, {"Entries", entries}, {"Records", records}, {"Reading", reading}} {
		g.run(t, open)
	}
	t.Run("Transcripts", func(t *testing.T) { Transcripts(t, open) })
}

// RunStorms is the part of Run that depends on how a store is locked: many
// callers at once.
func RunStorms(t *testing.T, open func(t *testing.T, clock func() time.Time) ledger.Store) {
	group{"Storms", storms}.run(t, open)
}

type group struct {
	name  string
	cases []claim
}

func (g group) run(t *testing.T, open func(t *testing.T, clock func() time.Time) ledger.Store) {
	t.Run(g.name, func(t *testing.T) {
		for _, c := range g.cases {
			t.Run(c.name, func(t *testing.T) { c.check(newWorld(t, open)) })
		}
	})
}

// claim is one case: what is always true, and the check of it.
type claim struct {
	name  string
	check func(w *world)
}

// world is what a case works with: a fresh store and the time.
type world struct {
	*testing.T
	ctx   context.Context
	store ledger.Store
	clock *clock
}

func newWorld(t *testing.T, open func(t *testing.T, clock func() time.Time) ledger.Store) *world {
	c := &clock{now: morning}
	w := &world{T: t, clock: c, store: open(t, c.Now)}
	ctx, cancel := context.WithTimeout(context.Background(), caseDeadline)
	w.ctx = ctx
	t.Cleanup(func() {
		defer cancel()
		verify(t, ctx, w.store)
	})
	return w
}

func verify(t *testing.T, ctx context.Context, store ledger.Reader) {
	t.Helper()
	rep, err := ledger.Verify(ctx, store, nil)
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	for _, p := range rep.Problems {
		t.Errorf("verify: line %d: %s: %s", p.Seq, p.What, p.Detail)
	}
}

// morning is when every case begins.
var morning = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

// at is a time of day of the first morning, in Unix ms.
func at(hour, minute int) int64 {
	return time.Date(2026, 1, 2, hour, minute, 0, 0, time.UTC).UnixMilli()
}

// clock stands still until it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = time.UnixMilli(ms)
}

// apply applies entries in one call. An error means that the outcome is
// unknown, so it asks again, as every caller of an Applier has to.
func (w *world) apply(entries ...ledger.Entry) []ledger.Result {
	w.Helper()
	var err error
	for range askAgainLimit {
		var results []ledger.Result
		if results, err = w.store.Apply(w.ctx, entries...); err == nil {
			if len(results) != len(entries) {
				w.Errorf("got %d results for %d entries", len(results), len(entries))
				break
			}
			return results
		}
	}
	w.Errorf("apply %q: %v", entries[0].ID, err)
	failed := make([]ledger.Result, len(entries))
	for i := range failed {
		failed[i].Code = "no answer"
	}
	return failed
}

// ok applies one entry of ops, which must be accepted.
func (w *world) ok(id string, ops ...ledger.Op) ledger.Result {
	w.Helper()
	return w.okEntry(ledger.Entry{ID: id, Ops: ops})
}

func (w *world) okEntry(e ledger.Entry) ledger.Result {
	w.Helper()
	res := w.apply(e)[0]
	if res.Refused() {
		w.Errorf("entry %q: got %+v, want accepted", e.ID, res)
	}
	return res
}

// refused applies one entry of ops, which must be refused with code.
func (w *world) refused(code ledger.Code, id string, ops ...ledger.Op) ledger.Result {
	w.Helper()
	return w.refusedEntry(code, ledger.Entry{ID: id, Ops: ops})
}

func (w *world) refusedEntry(code ledger.Code, e ledger.Entry) ledger.Result {
	w.Helper()
	res := w.apply(e)[0]
	if res.Code != code {
		w.Errorf("entry %q: got %q (%+v), want %q", e.ID, res.Code, res, code)
	}
	return res
}

const (
	tee = ledger.Asset("sku:tee-m")
	mug = ledger.Asset("sku:mug")
	cny = ledger.Asset("CNY")
)

// give brings amount of asset in from outside.
func (w *world) give(to ledger.Account, asset ledger.Asset, amount int64) {
	w.Helper()
	w.ok(fmt.Sprintf("give-%s-%s", to, asset), ledger.Move(post("@supplier", to, asset, amount)))
}

func post(from, to ledger.Account, asset ledger.Asset, amount int64) ledger.Posting {
	return ledger.Posting{From: from, To: to, Asset: asset, Amount: amount}
}

// take reserves amount of asset out of the stock until 09:15.
func take(hold string, asset ledger.Asset, amount int64) ledger.Op {
	return ledger.Reserve(hold, post("stock", "sold", asset, amount), at(9, 15), 0)
}

func (w *world) balance(a ledger.Account, asset ledger.Asset) ledger.Balance {
	w.Helper()
	rows, err := w.store.Balances(w.ctx, ledger.BalanceQuery{Account: a, Asset: asset})
	if err != nil {
		w.Errorf("balance of %s %s: %v", a, asset, err)
	}
	if len(rows) == 0 {
		return ledger.Balance{}
	}
	return rows[0]
}

// has asserts a balance.
func (w *world) has(a ledger.Account, asset ledger.Asset, posted, held int64) {
	w.Helper()
	if b := w.balance(a, asset); b.Posted != posted || b.Held != held {
		w.Errorf("%s %s: got posted %d held %d, want posted %d held %d", a, asset, b.Posted, b.Held, posted, held)
	}
}

// holdIs asserts a hold.
func (w *world) holdIs(id string, state ledger.HoldState, committed, released int64) {
	w.Helper()
	rows, err := w.store.Holds(w.ctx, ledger.HoldQuery{ID: id})
	if err != nil || len(rows) != 1 {
		w.Errorf("hold %s: got %d rows, error %v, want one", id, len(rows), err)
		return
	}
	h := rows[0]
	if h.State != state || h.Committed != committed || h.Released != released {
		w.Errorf("hold %s: got %s, committed %d, released %d; want %s, %d, %d", id, h.State, h.Committed, h.Released, state, committed, released)
	}
}

// head is the end of the journal.
func (w *world) head() ledger.Head {
	w.Helper()
	h, err := w.store.Head(w.ctx)
	if err != nil {
		w.Errorf("head: %v", err)
	}
	return h
}

// together calls f(0) .. f(n-1), all at once, and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
