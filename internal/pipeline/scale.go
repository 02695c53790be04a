package pipeline

import (
	"math/bits"
	"time"
)

// Bounds and measures of a Scaler. A tick is one call of Step.
const (
	DefaultMinWorkers = 1
	DefaultMaxWorkers = 32
	DefaultTarget     = time.Second // drain time and age that are good enough

	scaleTick   = 100 * time.Millisecond
	trialTicks  = 4   // until a worker that was added is judged
	restTicks   = 20  // without change after one that did not help
	calmTicks   = 20  // of nearly nothing waiting, before one goes,
	calmShare   = 2   // and so many more for each worker: the share of one of many shows late
	slowTicks   = 2   // of slow commits in a row, before half of them go
	halvedTicks = 10  // until half of them may go again
	slowFactor  = 3   // times the usual commit time
	calmPart    = 4   // a calm queue is below this part of the target
	gain        = 0.5 // part of one worker's share by which one more must raise the rate
	rateWeight  = 1.0 / 3
	speedWeight = 1.0 / 4
	usualFaster = 1.0 / 4 // how soon quicker commits become usual,
	usualSlower = 1.0 / 128
	sizeClasses = 12 // powers of two: up to 4095 entries a commit
	soonTicks   = 30 // a queue that will have caught up by then needs no more workers
	trendWeight = 1.0 / 4
	maxDrain    = time.Hour
)

// Load is what a Scaler sees of one tick.
type Load struct {
	Waiting int64         // entries that are not decided yet
	Oldest  time.Duration // age of the oldest of them
	Served  int64         // entries decided in this tick
	Commits int64         // inner calls that ended in this tick
	Commit  time.Duration // their mean time; if none ended, how long the longest has been running
}

// ScaleOptions are the bounds of a Scaler.
type ScaleOptions struct {
	Min    int           // workers; 0 = 1
	Max    int           // workers; 0 = 32
	Target time.Duration // drain time and age of the oldest to stay below; 0 = 1 s
}

// Scaler says how many workers should serve a queue. It knows no clock and
// starts nothing: the same loads give the same answers.
//
// It adds a worker while the queue is behind, which is: what waits will take
// longer than Target to drain at the speed of the last commits, or the oldest has
// waited longer. How much waits says nothing by itself: ten thousand entries are
// half a second of work or a day's. The rate says nothing in a quiet hour, when it
// is what is asked and not what can be done. The processor says nothing either:
// workers wait for commits.
//
// More is not better, so each one that was added is on trial: if it did not
// raise the rate by a part of what one worker's share would be, it goes again,
// and nothing is tried for a while. That ends the climb where a lock or a disk
// ends it, without being told.
//
// When commits take several times longer than is usual for as many entries, half
// of the workers go at once, and half again each second that it stays so: a
// store in trouble recovers by being asked less. The comparison is by size,
// because a burst makes commits larger and thereby longer, and to take that for
// trouble would take away workers when they are needed most. What is usual is
// learned: at once when commits get faster, slowly when they get slower, so that
// a lasting change becomes usual.
//
// One worker goes when hardly anything has waited for a while. In a steady state
// the number therefore moves by one at most.
//
// Not safe for concurrent use.
type Scaler struct {
	options ScaleOptions
	workers int

	rate   float64              // entries a second, smoothed
	speed  float64              // entries a second of one worker while it commits, smoothed; 0 = not known
	drain  time.Duration        // as of the last tick
	delay  time.Duration        // drain time or age of the oldest, whichever is longer
	oldest time.Duration        // as of the last tick
	trend  float64              // its change by tick, smoothed
	size   int                  // class of the last commits
	usual  [sizeClasses]float64 // seconds of a commit by class of its size; 0 = not seen yet

	slow   int     // ticks in a row; below 0 after a halving
	calm   int     // ticks in a row
	rest   int     // ticks without change
	trial  int     // ticks until the last one added is judged
	before float64 // rate before it was added
}

// NewScaler starts at the lower bound.
func NewScaler(o ScaleOptions) *Scaler {
	if o.Min <= 0 {
		o.Min = DefaultMinWorkers
	}
	if o.Max <= 0 {
		o.Max = DefaultMaxWorkers
	}
	o.Max = max(o.Min, o.Max)
	if o.Target <= 0 {
		o.Target = DefaultTarget
	}
	return &Scaler{options: o, workers: o.Min}
}

// Step takes the load of one tick and returns the number of workers for the next.
func (s *Scaler) Step(l Load) int {
	s.measure(l)
	switch {
	case s.slow >= slowTicks:
		s.change(s.workers/2, halvedTicks)
		s.slow = slowTicks - halvedTicks
	case s.trial > 1:
		s.trial--
	case s.trial == 1:
		s.judge()
	case s.rest > 0:
		s.rest--
	case s.behind() && s.slow <= 0 && s.workers < s.options.Max:
		s.before = s.rate
		s.change(s.workers+1, 0)
		s.trial = trialTicks
	case s.calm >= calmTicks+calmShare*s.workers:
		s.change(s.workers-1, 0)
	}
	return s.workers
}

// Workers is the last answer of Step.
func (s *Scaler) Workers() int { return s.workers }

// Drain is how long what waited at the last tick takes, if all workers commit as
// fast as of late; at most an hour. 0 = nothing waits, or nothing was committed yet.
func (s *Scaler) Drain() time.Duration { return s.drain }

// Rate is the number of entries decided a second, smoothed.
func (s *Scaler) Rate() float64 { return s.rate }

// Speed is the number of entries that one worker decides a second while it
// commits, smoothed; 0 = not known yet.
func (s *Scaler) Speed() float64 { return s.speed }

func (s *Scaler) measure(l Load) {
	s.rate += (float64(l.Served)/scaleTick.Seconds() - s.rate) * rateWeight
	if took := l.Commit.Seconds() * float64(l.Commits); took > 0 {
		speed := float64(l.Served) / took
		if s.speed == 0 {
			s.speed = speed
		}
		s.speed += (speed - s.speed) * speedWeight
	}
	s.drain = 0
	if able := max(s.rate, s.speed*float64(s.workers)); able > 0 {
		seconds := min(float64(l.Waiting)/able, maxDrain.Seconds())
		s.drain = time.Duration(seconds * float64(time.Second))
	}
	s.delay = max(s.drain, l.Oldest)
	s.trend += (float64(l.Oldest-s.oldest) - s.trend) * trendWeight
	s.oldest = l.Oldest
	s.calm++
	if s.delay > s.options.Target/calmPart {
		s.calm = 0
	}
	if l.Commit <= 0 {
		return
	}
	if l.Commits > 0 {
		s.size = min(bits.Len64(uint64(l.Served/l.Commits)), sizeClasses-1)
	}
	took := l.Commit.Seconds()
	expected := s.expected()
	switch {
	case expected == 0 || took <= slowFactor*expected:
		s.slow = 0
	default:
		s.slow++
	}
	if l.Commits > 0 {
		s.learn(took, expected)
	}
}

// expected is the usual time of a commit of the present size. A size that was
// never seen takes, at worst, as many times longer as it is larger.
func (s *Scaler) expected() float64 {
	for class := s.size; class >= 0; class-- {
		if s.usual[class] > 0 {
			return s.usual[class] * float64(int(1)<<(s.size-class))
		}
	}
	for class := s.size + 1; class < sizeClasses; class++ {
		if s.usual[class] > 0 {
			return s.usual[class]
		}
	}
	return 0
}

func (s *Scaler) learn(took, expected float64) {
	usual := &s.usual[s.size]
	if *usual == 0 {
		*usual = took
		if expected > 0 {
			*usual = min(took, expected)
		}
		return
	}
	weight := usualSlower
	if took < *usual {
		weight = usualFaster
	}
	*usual += (took - *usual) * weight
}

// judge keeps the worker that was added last, if it helped.
func (s *Scaler) judge() {
	s.trial = 0
	if s.rate <= s.before*(1+gain/float64(s.workers-1)) {
		s.change(s.workers-1, restTicks)
	}
}

// behind says whether the present workers leave people waiting for too long, now
// and soon.
func (s *Scaler) behind() bool {
	soon := s.delay + time.Duration(s.trend*soonTicks)
	return min(s.delay, soon) > s.options.Target
}

// change sets the number and forgets what was counted for another one.
func (s *Scaler) change(workers, rest int) {
	s.workers = min(max(workers, s.options.Min), s.options.Max)
	s.rest, s.trial, s.calm = rest, 0, 0
}
