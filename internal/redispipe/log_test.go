package redispipe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/pipeline/pipelinetest"
	"github.com/holdfast-pay/holdfast/internal/redispipe"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
	"github.com/holdfast-pay/holdfast/ledger"
	"github.com/holdfast-pay/holdfast/ledger/ledgertest"
)

const shortLease = 200 * time.Millisecond

func newLog(t *testing.T, r *redispipe.Redis, space string, o pipeline.LogOptions) *redispipe.Log {
	l := r.Log(space, o)
	t.Cleanup(l.Close)
	return l
}

func TestALogInRedisKeepsWhatALogPromises(t *testing.T) {
	t.Parallel()
	r := shared(t)
	pipelinetest.Log(t, func(t *testing.T, o pipeline.LogOptions) pipeline.Log { return newLog(t, r, space(), o) })
}

func TestALogInAClusterKeepsWhatALogPromises(t *testing.T) {
	t.Parallel()
	r := open(t, newCluster(t)[0].URL())
	pipelinetest.Log(t, func(t *testing.T, o pipeline.LogOptions) pipeline.Log { return newLog(t, r, space(), o) })
}

func TestAQueueInRedisChangesNoRule(t *testing.T) {
	t.Parallel()
	r := shared(t)
	ledgertest.Run(t, func(t *testing.T, clock func() time.Time) ledger.Store {
		store := ledger.NewMemory(clock)
		q := pipeline.NewQueue(store, newLog(t, r, space(), pipeline.LogOptions{}), pipeline.QueueOptions{
			Partition: func(ledger.Entry) string { return "all" }})
		t.Cleanup(func() {
			if err := q.Close(context.Background()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return struct {
			ledger.Applier
			ledger.Reader
		}{q, store}
	})
}

// line is a Log in a test.
type line struct {
	*testing.T
	*redispipe.Log
}

func newLine(t *testing.T, url, space string, o pipeline.LogOptions) line {
	return line{t, newLog(t, open(t, url), space, o)}
}

func (l line) put(ids ...string) {
	l.Helper()
	for _, id := range ids {
		if _, err := l.Append(l.Context(), pipeline.Request{Partition: "tee", Entry: ledger.Entry{ID: id}}); err != nil {
			l.Errorf("append %s: %v", id, err)
		}
	}
}

// take takes within restored, which is less than a lease, and asserts the ids.
func (l line) take(want ...string) pipeline.Claim {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), restored)
	defer cancel()
	for {
		c, err := l.Take(ctx, len(want))
		if err != nil && ctx.Err() == nil { // a connection that broke is an error once
			time.Sleep(10 * time.Millisecond)
			continue
		}
		var got []string
		for _, e := range c.Entries {
			got = append(got, e.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			l.Errorf("took %q, %v, want %q", got, err, want)
		}
		return c
	}
}

func (l line) settle(c pipeline.Claim, seqs ...int64) {
	l.Helper()
	var endings []pipeline.Ending
	for _, seq := range seqs {
		endings = append(endings, pipeline.Ending{Result: ledger.Result{Seq: seq}})
	}
	if err := l.Settle(l.Context(), c, endings); err != nil {
		l.Errorf("settle: %v", err)
	}
}

func (l line) is(id string, want pipeline.PlaceState) pipeline.Place {
	l.Helper()
	p, err := l.Find(l.Context(), id)
	if err != nil || p.State != want {
		l.Errorf("find %s: got %+v, %v, want state %d", id, p, err, want)
	}
	return p
}

func TestTwoProcessesShareALine(t *testing.T) {
	t.Parallel()
	url, name := redispipetest.New(t).URL(), space()
	one, two := newLine(t, url, name, pipeline.LogOptions{}), newLine(t, url, name, pipeline.LogOptions{})
	one.put("a")
	two.put("b", "a")
	told := make(chan pipeline.Place)
	go func() {
		place, err := one.Wait(t.Context(), "b")
		if err != nil {
			t.Error(err)
		}
		told <- place
	}()
	c := two.take("a", "b")
	if err := one.Settle(t.Context(), pipeline.Claim{Partition: c.Partition, Fence: c.Fence - 1}, nil); !errors.Is(err, pipeline.ErrClaimLost) {
		t.Errorf("got %v, want %v", err, pipeline.ErrClaimLost)
	}
	two.settle(c, 1, 2)
	if place := <-told; place.Result.Seq != 2 || place.Number != 2 {
		t.Errorf("got %+v, want the outcome of b", place)
	}
	stranger := newLine(t, url, space(), pipeline.LogOptions{})
	stranger.is("a", pipeline.PlaceUnknown)
}

func TestTheClaimOfADeadProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	url, name := redispipetest.New(t).URL(), space()
	dead, next := newLine(t, url, name, pipeline.LogOptions{Lease: shortLease}), newLine(t, url, name, pipeline.LogOptions{Lease: shortLease})
	dead.put("a", "b")
	lost := dead.take("a", "b")
	dead.Close()
	c := next.take("a")
	if c.Failures != 1 || c.Fence <= lost.Fence {
		t.Errorf("got %+v after %+v", c, lost)
	}
	next.settle(c, 1)
	next.settle(next.take("b"), 2)
}

func TestALineSurvivesItsServer(t *testing.T) {
	t.Parallel()
	s := redispipetest.New(t, "--appendonly", "yes", "--appendfsync", "always")
	name := space()
	l := newLine(t, s.URL(), name, pipeline.LogOptions{})
	l.put("a", "b", "c", "d")
	l.settle(l.take("a"), 1)
	c := l.take("b")
	s.Kill()
	s.Start()
	next := newLine(t, s.URL(), name, pipeline.LogOptions{})
	if place := next.is("d", pipeline.PlaceWaiting); place.Number != 4 || place.Served != 1 {
		t.Errorf("got %+v, want the fourth place, and one served", place)
	}
	if place := next.is("a", pipeline.PlaceDecided); place.Result.Seq != 1 {
		t.Errorf("got %+v, want the outcome", place)
	}
	next.put("d", "e")
	l.settle(c, 2)
	next.settle(next.take("c", "d", "e"), 3, 4, 5)
}

func TestALineThatIsLostIsUnknownAndStartsAnew(t *testing.T) {
	t.Parallel()
	s := redispipetest.New(t)
	l := newLine(t, s.URL(), space(), pipeline.LogOptions{})
	l.put("a", "b")
	told := make(chan pipeline.Place)
	go func() {
		place, err := l.Wait(t.Context(), "b")
		if err != nil {
			t.Error(err)
		}
		told <- place
	}()
	old := l.take("a", "b")
	s.Do("FLUSHALL")
	if place := <-told; place.State != pipeline.PlaceUnknown {
		t.Errorf("got %+v, want unknown", place)
	}
	l.put("b", "a")
	c := l.take("b", "a")
	if err := l.Settle(t.Context(), old, []pipeline.Ending{{}}); !errors.Is(err, pipeline.ErrClaimLost) {
		t.Errorf("a claim from before: got %v, want %v", err, pipeline.ErrClaimLost)
	}
	l.settle(c, 1, 2)
}

// What is set back is handed out again: the process knows that it has no such
// claim, and nobody has to wait for it to lapse.
func TestALineThatIsSetBackIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	s := redispipetest.New(t)
	l := newLine(t, s.URL(), space(), pipeline.LogOptions{})
	l.put("a", "b")
	first := l.take("a", "b")
	s.Do("SAVE")
	l.settle(first, 1, 2)
	l.put("c")
	last := l.take("c")
	s.Kill()
	s.Start()
	again := l.take("a", "b")
	if again.Fence <= last.Fence || again.Failures != 0 {
		t.Errorf("got %+v after %+v", again, last)
	}
	if err := l.Settle(t.Context(), last, []pipeline.Ending{{}}); !errors.Is(err, pipeline.ErrClaimLost) {
		t.Errorf("a claim from the future: got %v, want %v", err, pipeline.ErrClaimLost)
	}
	l.settle(again, 1, 2)
	l.is("c", pipeline.PlaceUnknown)
}

// The server carries out what it was asked before it hung, when nobody listens to
// the answer any more.
func TestAClaimWhoseAnswerWasLostIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	s := redispipetest.New(t)
	l := newLine(t, s.URL(), space(), pipeline.LogOptions{})
	l.put("a", "b")
	resume := s.Hang()
	if c, err := l.Take(t.Context(), 9); err == nil {
		t.Errorf("from a server that hangs: got %+v", c)
	}
	resume()
	c := l.take("a", "b")
	resume = s.Hang()
	if err := l.Settle(t.Context(), c, []pipeline.Ending{{}}); err == nil {
		t.Error("settled on a server that hangs")
	}
	resume()
	c = l.take("a", "b")
	if c.Failures != 0 {
		t.Errorf("got %+v, want no failure of its entries", c)
	}
	l.settle(c, 1, 2)
}

func TestAServerWithoutMemoryStillServesTheLine(t *testing.T) {
	t.Parallel()
	s := redispipetest.New(t)
	l := newLine(t, s.URL(), space(), pipeline.LogOptions{})
	l.put("a", "b", "c")
	s.Do("CONFIG", "SET", "maxmemory", "1")
	if place, err := l.Append(t.Context(), pipeline.Request{Partition: "tee", Entry: ledger.Entry{ID: "d"}}); err == nil {
		t.Errorf("got %+v, want an error", place)
	}
	l.settle(l.take("a", "b"), 1, 2)
	l.is("b", pipeline.PlaceDecided)
	l.settle(l.take("c"), 3)
}
