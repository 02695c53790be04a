package pipeline_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
)

// paperShop is a queue, its workers and a store on paper, in steps of a millisecond.
// Arrivals and commits vary by a fifth either way.
type paperShop struct {
	scaler *pipeline.Scaler
	dice   *rand.Rand
	n      int // workers

	rate  float64 // arrivals a second
	fixed float64 // seconds of a commit
	each  float64 // seconds more for each entry of it
	room  int     // commits that the store runs side by side without slowing down
	slow  float64 // times that everything takes

	now     float64
	partial float64   // of an arrival
	line    []float64 // arrival times of those that nobody took
	claims  []claim   // by worker
	claimed int64
}

type claim struct {
	oldest, began, ends float64
	entries             int64
}

const paperBatch = 64 // entries that a worker takes at most

func newPaperShop(seed uint64, o pipeline.ScaleOptions) *paperShop {
	s := &paperShop{scaler: pipeline.NewScaler(o), dice: rand.New(rand.NewPCG(seed, 1)),
		fixed: 0.020, each: 0.0002, room: 1000, slow: 1, claims: make([]claim, 100)}
	s.n = s.scaler.Workers()
	return s
}

func (s *paperShop) about(x float64) float64 { return x * (0.8 + 0.4*s.dice.Float64()) }

// tick lets a tenth of a second pass and asks the scaler.
func (s *paperShop) tick() pipeline.Load {
	var l pipeline.Load
	var took float64
	for range 100 {
		s.now += 0.001
		s.partial += s.about(s.rate / 1000)
		for ; s.partial >= 1; s.partial-- {
			s.line = append(s.line, s.now)
		}
		for i := range s.claims {
			c := &s.claims[i]
			if c.entries > 0 && c.ends <= s.now {
				l.Served += c.entries
				l.Commits++
				took += s.now - c.began
				s.claimed -= c.entries
				*c = claim{}
			}
			if c.entries == 0 && i < s.n && len(s.line) > 0 {
				s.take(c)
			}
		}
	}
	l.Waiting = int64(len(s.line)) + s.claimed
	oldest, longest := s.now, 0.0
	if len(s.line) > 0 {
		oldest = s.line[0]
	}
	for _, c := range s.claims {
		if c.entries > 0 {
			oldest, longest = min(oldest, c.oldest), max(longest, s.now-c.began)
		}
	}
	l.Oldest, l.Commit = seconds(s.now-oldest), seconds(longest)
	if l.Commits > 0 {
		l.Commit = seconds(took / float64(l.Commits))
	}
	s.n = s.scaler.Step(l)
	return l
}

func (s *paperShop) take(c *claim) {
	running := 1
	for _, other := range s.claims {
		if other.entries > 0 {
			running++
		}
	}
	n := min(len(s.line), paperBatch)
	crowd := max(1, float64(running)/float64(s.room))
	*c = claim{oldest: s.line[0], began: s.now, entries: int64(n),
		ends: s.now + s.about((s.fixed+s.each*float64(n))*s.slow*crowd)}
	s.line = s.line[n:]
	s.claimed += int64(n)
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// run lets d pass and returns the lowest and highest number of workers in it.
func (s *paperShop) run(d time.Duration) (low, high int) {
	low, high = s.n, s.n
	for range d / (100 * time.Millisecond) {
		s.tick()
		low, high = min(low, s.n), max(high, s.n)
	}
	return low, high
}

var scaleSeeds = flag.Uint64("scale.seeds", 1, "with how many dice each load is simulated")

// eachSeed runs the same figures with other dice.
func eachSeed(t *testing.T, f func(t *testing.T, seed uint64)) {
	for seed := range *scaleSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, seed) })
	}
}

func TestInASteadyStateWorkersMoveByOneAtMost(t *testing.T) {
	for _, rate := range []float64{20, 500, 3000, 15000, 25000} {
		eachSeed(t, func(t *testing.T, seed uint64) {
			s := newPaperShop(seed, pipeline.ScaleOptions{})
			s.rate = rate
			s.run(time.Minute)
			low, high := s.run(2 * time.Minute)
			if high-low > 2 {
				t.Errorf("at %v/s: between %d and %d workers, want one more or less at most", rate, low, high)
			}
			if l := s.tick(); l.Oldest > 3*pipeline.DefaultTarget {
				t.Errorf("at %v/s with %d workers the oldest of %d waits for %v", rate, s.n, l.Waiting, l.Oldest)
			}
		})
	}
}

func TestATenfoldBurstIsServedWithinFiveSeconds(t *testing.T) {
	for _, rate := range []float64{50, 300, 1000, 1500} {
		eachSeed(t, func(t *testing.T, seed uint64) {
			s := newPaperShop(seed, pipeline.ScaleOptions{})
			s.rate = rate
			s.run(time.Minute)
			s.rate *= 10
			for range 5 * 10 {
				s.tick()
			}
			for range 10 * 10 { // and it stays so
				if l := s.tick(); max(l.Oldest, s.scaler.Drain()) > pipeline.DefaultTarget*3/2 {
					t.Fatalf("at %v/s with %d workers the oldest of %d waits for %v", s.rate, s.n, l.Waiting, l.Oldest)
				}
			}
		})
	}
}

func TestABurstOutOfNothingIsServedWithinFiveSeconds(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newPaperShop(seed, pipeline.ScaleOptions{})
		s.run(time.Minute)
		s.rate = 10_000
		s.run(5 * time.Second)
		if l := s.tick(); l.Oldest > pipeline.DefaultTarget {
			t.Errorf("with %d workers the oldest of %d waits for %v", s.n, l.Waiting, l.Oldest)
		}
	})
}

func TestASlowStoreIsAskedByHalfWithinASecond(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newPaperShop(seed, pipeline.ScaleOptions{})
		s.rate = 15000
		s.run(time.Minute)
		before := s.n
		s.slow = 10
		if low, _ := s.run(time.Second); before < 4 || low > (before+1)/2 {
			t.Errorf("of %d workers there are %d, want half", before, low)
		}
		s.slow = 1
		s.line = nil
		s.run(10 * time.Second)
		if l := s.tick(); l.Oldest > pipeline.DefaultTarget*2 {
			t.Errorf("afterwards: with %d workers the oldest of %d waits for %v", s.n, l.Waiting, l.Oldest)
		}
	})
}

func TestAStoreThatHangsIsAskedByFewerAndFewer(t *testing.T) {
	s := newPaperShop(1, pipeline.ScaleOptions{})
	s.rate = 15000
	s.run(time.Minute)
	before := s.n
	s.slow = 1e6
	if low, _ := s.run(1500 * time.Millisecond); low > before/2 {
		t.Errorf("after 1.5 s of %d workers there are %d, want half", before, low)
	}
	if s.run(10 * time.Second); s.n != pipeline.DefaultMinWorkers {
		t.Errorf("after 10 s there are %d workers, want %d", s.n, pipeline.DefaultMinWorkers)
	}
}

func TestAStoreThatNeverAnsweredGetsNoMoreWorkers(t *testing.T) {
	s := newPaperShop(1, pipeline.ScaleOptions{})
	s.rate, s.slow = 1000, 1e6
	if _, high := s.run(20 * time.Second); high > pipeline.DefaultMinWorkers+1 {
		t.Errorf("up to %d workers, want one on trial at most", high)
	}
}

// A store with one lock serves two no faster than one.
func TestWorkersThatDoNotHelpGoAgain(t *testing.T) {
	for _, room := range []int{1, 4} {
		eachSeed(t, func(t *testing.T, seed uint64) {
			s := newPaperShop(seed, pipeline.ScaleOptions{})
			s.room, s.rate = room, 2000*float64(room)*1.2 // more than it can
			s.run(20 * time.Second)
			if low, high := s.run(time.Minute); low < room-1 || high > room+2 {
				t.Errorf("between %d and %d workers for a store that serves %d", low, high, room)
			}
		})
	}
}

func TestAnIdleQueueHasTheFewestWorkersAndNeverLeavesItsBounds(t *testing.T) {
	s := newPaperShop(1, pipeline.ScaleOptions{Min: 2, Max: 5})
	s.rate = 50000
	if low, high := s.run(20 * time.Second); low != 2 || high != 5 {
		t.Errorf("in a burst: between %d and %d workers, want 2 and 5", low, high)
	}
	s.rate, s.line = 0, nil
	if s.run(20 * time.Second); s.n != 2 {
		t.Errorf("idle: %d workers, want 2", s.n)
	}
	if s.scaler.Drain() != 0 || s.scaler.Rate() > 1 {
		t.Errorf("idle: drain %v, rate %v", s.scaler.Drain(), s.scaler.Rate())
	}
}

// level is a Scaler with workers, to which commits of one entry that take a
// millisecond are usual.
func level(workers int) *pipeline.Scaler {
	s := pipeline.NewScaler(pipeline.ScaleOptions{})
	for served := int64(10); s.Workers() < workers; served += 10 {
		s.Step(pipeline.Load{Waiting: 100_000, Oldest: 10 * time.Second, Served: served, Commits: served, Commit: time.Millisecond})
	}
	return s
}

func TestLargerCommitsMayTakeLonger(t *testing.T) {
	for name, c := range map[string]struct {
		entries int64
		want    func(workers int) bool
	}{
		"ten times as long for one entry": {1, func(n int) bool { return n <= 4 }},
		"ten times as long for 64":        {64, func(n int) bool { return n >= 8 }},
	} {
		s := level(8)
		for range 5 {
			s.Step(pipeline.Load{Waiting: 100_000, Oldest: 10 * time.Second, Served: 10_000, Commits: 10_000 / c.entries, Commit: 10 * time.Millisecond})
		}
		if !c.want(s.Workers()) {
			t.Errorf("%s: 8 workers became %d", name, s.Workers())
		}
	}
}

func TestOneWhoIsLeftToWaitIsReasonEnough(t *testing.T) {
	s := pipeline.NewScaler(pipeline.ScaleOptions{})
	for range 3 {
		s.Step(pipeline.Load{Waiting: 10, Oldest: 2 * time.Second, Served: 1000, Commits: 10, Commit: 10 * time.Millisecond})
	}
	if s.Workers() != 2 {
		t.Errorf("got %d workers, want one more", s.Workers())
	}
}

func TestAQueueThatWillSoonHaveCaughtUpGetsNoMoreWorkers(t *testing.T) {
	s := level(8)
	for oldest := 20 * time.Second; oldest > 2*time.Second; oldest -= 300 * time.Millisecond {
		s.Step(pipeline.Load{Waiting: 1000, Oldest: oldest, Served: 1000, Commits: 1000, Commit: time.Millisecond})
		if oldest < 9*time.Second && s.Workers() > 9 { // one may be on trial
			t.Fatalf("got %d workers while the oldest of %v gets younger by 3 s a second", s.Workers(), oldest)
		}
	}
}

func TestAQuietHourNeedsOneWorker(t *testing.T) {
	s := pipeline.NewScaler(pipeline.ScaleOptions{})
	for tick := range 600 { // one entry a second, which takes 50 ms, and is there when we look
		l := pipeline.Load{}
		switch tick % 10 {
		case 0:
			l = pipeline.Load{Waiting: 1, Oldest: 10 * time.Millisecond, Commit: 10 * time.Millisecond}
		case 1:
			l = pipeline.Load{Served: 1, Commits: 1, Commit: 50 * time.Millisecond}
		}
		if n := s.Step(l); n != 1 {
			t.Fatalf("tick %d: got %d workers, want 1", tick, n)
		}
	}
}
