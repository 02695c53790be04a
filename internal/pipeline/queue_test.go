package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/ledger"
)

// line is a Queue in front of a double, with the stock of a test.
type line struct {
	*pipeline.Queue
	t     *testing.T
	store *double
	log   *pipeline.Ring
}

func newLine(t *testing.T, ring pipeline.LogOptions, o pipeline.QueueOptions) *line {
	l := &line{t: t, store: newDouble(), log: pipeline.NewRing(ring)}
	l.stock("tee", 1000)
	l.Queue = pipeline.NewQueue(l.store, l.log, o)
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func (l *line) stock(sku string, units int64) {
	l.t.Helper()
	if _, err := l.store.store.Apply(l.t.Context(), ledger.Entry{ID: "restock-" + sku, Ops: []ledger.Op{
		ledger.Move(ledger.Posting{From: "@supplier", To: "stock", Asset: ledger.Asset("sku:" + sku), Amount: units})}}); err != nil {
		l.t.Fatal(err)
	}
}

// want is an order for one unit.
func want(id, sku string) ledger.Entry {
	return ledger.Entry{ID: id, Reply: []byte(`"` + id + `"`), Ops: []ledger.Op{
		ledger.Reserve(id, ledger.Posting{From: "stock", To: "sold", Asset: ledger.Asset("sku:" + sku), Amount: 1}, 0, 0)}}
}

func (l *line) submit(partition, id string) pipeline.Ticket {
	l.t.Helper()
	ticket, err := l.Submit(l.t.Context(), partition, want(id, partition))
	if err != nil {
		l.t.Errorf("submit %s: %v", id, err)
	}
	return ticket
}

func (l *line) position(id string) int64 {
	l.t.Helper()
	ticket, err := l.Look(l.t.Context(), id)
	if err != nil {
		l.t.Errorf("look for %s: %v", id, err)
	}
	return ticket.Position
}

func (l *line) has(ticket pipeline.Ticket, code ledger.Code) ledger.Result {
	l.t.Helper()
	res, err := l.Wait(l.t.Context(), ticket)
	if err != nil || res.Code != code {
		l.t.Errorf("%s: got %+v, %v, want code %q", ticket.ID, res, err, code)
	}
	return res
}

// order is the ids that start so, as the journal has them.
func (l *line) order(prefix string) (ids []string) {
	l.t.Helper()
	lines, err := l.store.store.Lines(l.t.Context(), ledger.LineQuery{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, entry := range lines {
		if strings.HasPrefix(entry.ID, prefix) {
			ids = append(ids, entry.ID)
		}
	}
	return ids
}

func TestFirstComeFirstServedInEachPartitionWithManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 3, Scale: pipeline.ScaleOptions{Min: 8}})
		calls := 0
		l.store.before = func(context.Context, []string) error {
			l.store.mu.Lock()
			calls++
			d := time.Duration(calls*7%5) * time.Millisecond // later calls may be faster
			l.store.mu.Unlock()
			time.Sleep(d)
			return nil
		}
		const each = 50
		var last []pipeline.Ticket
		want := map[string][]string{}
		for i := range each {
			for _, p := range []string{"tee", "mug", "cap"} {
				id := fmt.Sprintf("%s-%02d", p, i)
				want[p] = append(want[p], id)
				last = append(last, l.submit(p, id))
			}
		}
		l.stock("mug", each)
		l.stock("cap", each)
		for _, ticket := range last {
			l.has(ticket, ledger.OK)
		}
		for p, ids := range want {
			if got := l.order(p); !slices.Equal(got, ids) {
				t.Errorf("%s: got %q, want the order in which they came", p, got)
			}
		}
	})
}

func TestARepeatGetsTheTicketOfTheFirstAndHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{MaxWaiting: 2}, pipeline.QueueOptions{
			Left: func(string) (int64, bool) { return 1, true }, Margin: 1})
		release := l.store.held()
		first, second := l.submit("tee", "a"), l.submit("tee", "b")
		again := l.submit("tee", "b") // though the line is full, and sold out
		if second.Position != 2 || second.Repeat || again.Position != 2 || !again.Repeat {
			t.Errorf("got %+v, then %+v, want the second place twice", second, again)
		}
		release()
		res, same := l.has(second, ledger.OK), l.has(again, ledger.OK)
		if res.Replayed || !same.Replayed || res.Seq != same.Seq {
			t.Errorf("got %+v and %+v, want an answer and its replay", res, same)
		}
		l.has(first, ledger.OK)
		later := l.submit("tee", "a")
		if later.State != pipeline.PlaceDecided || !later.Result.Replayed || string(later.Result.Reply) != `"a"` {
			t.Errorf("after its decision: got %+v, want the stored answer", later)
		}
		if n := l.store.happened(t); n["a"] != 1 || n["b"] != 1 {
			t.Errorf("got %v in the journal", n)
		}
	})
}

func TestAnIDThatAnotherEntryHasIsRefusedAndTheFirstWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{})
		release := l.store.held()
		first := l.submit("tee", "a")
		other := want("a", "tee")
		other.Ops[0].Amount = 2
		if ticket, err := l.Submit(t.Context(), "tee", other); err != nil || ticket.Result.Code != ledger.IDReused {
			t.Errorf("got %+v, %v, want %s", ticket, err, ledger.IDReused)
		}
		release()
		l.has(first, ledger.OK)
		if ticket, err := l.Submit(t.Context(), "tee", other); err != nil || ticket.Result.Code != ledger.IDReused {
			t.Errorf("after the decision: got %+v, %v, want %s", ticket, err, ledger.IDReused)
		}
		if ticket, err := l.Submit(t.Context(), "tee", ledger.Entry{}); err != nil || ticket.Result.Code != ledger.Invalid {
			t.Errorf("an empty entry: got %+v, %v, want %s", ticket, err, ledger.Invalid)
		}
	})
}

func TestAFullQueueTurnsAwayWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{MaxWaiting: 3}, pipeline.QueueOptions{})
		release := l.store.held()
		tickets := []pipeline.Ticket{l.submit("tee", "a"), l.submit("tee", "b"), l.submit("mug", "c")}
		if _, err := l.Submit(t.Context(), "tee", want("over", "tee")); !errors.Is(err, pipeline.ErrFull) {
			t.Errorf("got %v, want %v", err, pipeline.ErrFull)
		}
		release()
		for _, ticket := range tickets[:2] {
			l.has(ticket, ledger.OK)
		}
		l.has(tickets[2], ledger.Insufficient)
		l.has(l.submit("tee", "later"), ledger.OK)
		if n := l.store.happened(t); n["over"] != 0 || l.Stats().Full != 1 {
			t.Errorf("got %v in the journal, %+v", n, l.Stats())
		}
	})
}

func TestNobodyWaitsForWhatCanNotBeWonAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := int64(3)
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{Margin: 2,
			Left: func(p string) (int64, bool) {
				if p == "mug" {
					return -100, false
				}
				return left, true
			}})
		release := l.store.held()
		for i := range 5 {
			l.submit("tee", fmt.Sprint("in-", i))
		}
		if _, err := l.Submit(t.Context(), "tee", want("out", "tee")); !errors.Is(err, pipeline.ErrSoldOut) {
			t.Errorf("got %v, want %v", err, pipeline.ErrSoldOut)
		}
		l.submit("mug", "other") // nothing is known of mugs
		payout := want("remembered", "tee")
		payout.Remember = true
		if _, err := l.Submit(t.Context(), "tee", payout); err != nil {
			t.Errorf("a refusal that must be in the journal: got %v", err)
		}
		release()
		pass(time.Second)
		l.has(l.submit("tee", "out"), ledger.OK)
		left = -3
		res, err := l.Apply(t.Context(), want("late", "tee"))
		if err != nil || res[0].Code != ledger.Insufficient || res[0].Key != (ledger.Key{Account: "stock", Asset: "sku:tee"}) {
			t.Errorf("apply: got %+v, %v, want %s", res, err, ledger.Insufficient)
		}
		if s := l.Stats(); s.SoldOut != 2 || l.store.happened(t)["late"] != 0 {
			t.Errorf("got %+v and %v", s, l.store.happened(t))
		}
	})
}

func TestCommitsAndReleasesDoNotWaitBehindHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{MaxBatch: 10})
		l.has(l.submit("tee", "mine"), ledger.OK)
		l.store.before = func(_ context.Context, ids []string) error {
			if !strings.HasPrefix(ids[0], "pay") {
				time.Sleep(time.Second)
			}
			return nil
		}
		for i := range 100 {
			l.submit("tee", fmt.Sprint("hold-", i))
		}
		began := time.Now()
		late := want("pay-late", "tee")
		late.Ops[0].From = "@supplier" // of which there is no end
		for _, e := range []ledger.Entry{{ID: "pay", Ops: []ledger.Op{ledger.Commit("mine")}}, late} {
			res, err := l.Apply(t.Context(), e)
			if err != nil || res[0].Refused() || time.Since(began) != 0 {
				t.Errorf("%s: got %+v, %v after %v, want at once", e.ID, res, err, time.Since(began))
			}
		}
		if s := l.Stats(); s.Straight != 2 {
			t.Errorf("got %+v, want 2 handed on straight", s)
		}
	})
}

func TestACallerWhoLeavesKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{Keep: 2}, pipeline.QueueOptions{})
		release := l.store.held()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Apply(ctx, want("a", "tee")); !errors.Is(err, pipeline.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v by %v", err, pipeline.ErrUnknown, context.DeadlineExceeded)
		}
		if _, err := l.Submit(ctx, "tee", want("never", "tee")); !errors.Is(err, pipeline.ErrWithdrawn) {
			t.Errorf("with an ended context: got %v, want %v", err, pipeline.ErrWithdrawn)
		}
		if n := l.position("a"); n != 1 {
			t.Errorf("got position %d, want 1", n)
		}
		release()
		synctest.Wait()
		ticket, err := l.Look(t.Context(), "a")
		if err != nil || ticket.State != pipeline.PlaceDecided || ticket.Result.Seq == 0 || ticket.Position != 0 {
			t.Errorf("got %+v, %v, want its outcome", ticket, err)
		}
		for _, id := range []string{"b", "c"} {
			l.has(l.submit("tee", id), ledger.OK)
		}
		if ticket, err := l.Look(t.Context(), "a"); err != nil || ticket.State != pipeline.PlaceUnknown {
			t.Errorf("with 2 kept: got %+v, %v, want it forgotten", ticket, err)
		}
		if n := l.store.happened(t); n["never"] != 0 || n["a"] != 1 {
			t.Errorf("got %v in the journal", n)
		}
	})
}

func TestWhoWasRefusedMayComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, pipeline.LogOptions{}, pipeline.QueueOptions{})
		l.has(l.submit("mug", "a"), ledger.Insufficient)
		l.stock("mug", 1)
		l.has(l.submit("mug", "a"), ledger.OK)
	})
}
