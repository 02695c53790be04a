package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Ring is a Log in memory: for one process, whose end forgets it. What it has
// decided is in a ring of the last Keep. It reads the process's clock, which ages
// and leases are measured with.
type Ring struct {
	options LogOptions

	mu      sync.Mutex
	offered chan struct{}    // closed when the next lane is free
	lanes   map[string]*lane // partitions in which somebody waits
	free    []*lane          // that nobody has, in turn
	claimed []*lane          // in the order in which their claims lapse
	known   map[string]*seat // by entry id
	arrived []*seat          // in order; those in front wait
	kept    []*seat          // decided
	oldest  int              // index in kept, once it is full
	waiting int
	fence   int64
}

// lane is one partition. Its claimed seats are the first ones.
type lane struct {
	name     string
	seats    []*seat
	last     int64 // number given last
	served   int64
	units    int64
	failures int   // of the first seat
	fence    int64 // of its claim; 0 = free
	lapses   time.Time
}

type seat struct {
	request Request // without its entry, once decided
	id      string
	lane    *lane
	number  int64
	at      time.Time
	done    chan struct{} // closed when it does not wait any more
	state   PlaceState
	result  ledger.Result
}

// NewRing makes an empty Ring.
func NewRing(o LogOptions) *Ring {
	return &Ring{options: o.WithDefaults(), offered: make(chan struct{}),
		lanes: map[string]*lane{}, known: map[string]*seat{}}
}

// Append implements Log.
func (r *Ring) Append(_ context.Context, q Request) (Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.Entry.ID
	if s := r.known[id]; s != nil && !s.forgotten() {
		if s.request.Print != q.Print {
			return Place{}, ErrReused
		}
		place := r.place(s)
		place.Repeat = true
		return place, nil
	}
	l := r.lanes[q.Partition]
	if l == nil {
		l = &lane{name: q.Partition}
	}
	if r.waiting >= r.options.MaxWaiting {
		return Place{}, ErrFull
	}
	if q.Units > 0 && q.Units > q.Most-l.units {
		return Place{}, ErrSoldOut
	}
	if len(l.seats) == 0 {
		r.lanes[l.name] = l
		r.offer(l)
	}
	l.last++
	s := &seat{request: q, id: id, lane: l, number: l.last, at: time.Now(), done: make(chan struct{}), state: PlaceWaiting}
	l.seats = append(l.seats, s)
	l.units += q.Units
	r.known[id] = s
	r.arrived = append(r.arrived, s)
	r.waiting++
	return r.place(s), nil
}

// forgotten says whether the same id may be tried anew: the ledger has no line
// of a refusal that it was not asked to remember.
func (s *seat) forgotten() bool {
	return s.state == PlaceDecided && s.result.Refused() && s.result.Seq == 0
}

// Find implements Log.
func (r *Ring) Find(_ context.Context, id string) (Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place(r.known[id]), nil
}

// Wait implements Log.
func (r *Ring) Wait(ctx context.Context, id string) (Place, error) {
	r.mu.Lock()
	s := r.known[id]
	r.mu.Unlock()
	if s == nil {
		return Place{}, nil
	}
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.state == PlaceWaiting {
		return Place{}, ctx.Err()
	}
	return r.place(s), nil
}

func (r *Ring) place(s *seat) Place {
	if s == nil || s.state == PlaceUnknown {
		return Place{}
	}
	return Place{State: s.state, Partition: s.request.Partition, Number: s.number, Served: s.lane.served,
		Partitions: int64(len(r.lanes)), Result: s.result}
}

// Take implements Log.
func (r *Ring) Take(ctx context.Context, most int) (Claim, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Claim{}, err
		}
		c, offered, lapse := r.claim(most)
		if len(c.Entries) > 0 {
			return c, nil
		}
		select {
		case <-offered:
		case <-time.After(lapse):
		case <-ctx.Done():
		}
	}
}

// claim takes what is next, or says when to look again: when something is
// offered, or when a claim may have lapsed.
func (r *Ring) claim(most int) (c Claim, offered <-chan struct{}, lapse time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for len(r.claimed) > 0 && !now.Before(r.claimed[0].lapses) {
		r.claimed[0].failures++ // its first entry may be what killed the worker
		r.release(r.claimed[0])
	}
	if len(r.free) == 0 {
		lapse = r.options.Lease
		if len(r.claimed) > 0 {
			lapse = r.claimed[0].lapses.Sub(now)
		}
		return Claim{}, r.offered, lapse
	}
	l := r.free[0]
	r.free[0] = nil
	r.free = r.free[1:]
	r.fence++
	l.fence, l.lapses = r.fence, now.Add(r.options.Lease)
	r.claimed = append(r.claimed, l)
	if l.failures > 0 {
		most = 1
	}
	c = Claim{Partition: l.name, Fence: l.fence, Failures: l.failures}
	for _, s := range l.seats[:min(max(most, 1), len(l.seats))] {
		c.Entries = append(c.Entries, s.request.Entry)
	}
	return c, nil, 0
}

// Settle implements Log.
func (r *Ring) Settle(_ context.Context, c Claim, endings []Ending) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[c.Partition]
	if l == nil || l.fence != c.Fence {
		return fmt.Errorf("pipeline: settle partition %q, claim %d: %w", c.Partition, c.Fence, ErrClaimLost)
	}
	if len(endings) > len(c.Entries) {
		return fmt.Errorf("pipeline: settle partition %q: %d endings for %d entries", c.Partition, len(endings), len(c.Entries))
	}
	for i, e := range endings {
		r.settle(l.seats[i], e)
		l.seats[i] = nil
		l.failures = 0
	}
	l.seats = l.seats[len(endings):]
	if len(endings) < len(c.Entries) {
		l.failures++
	}
	r.release(l)
	for len(r.arrived) > 0 && r.arrived[0].state != PlaceWaiting {
		r.arrived[0] = nil
		r.arrived = r.arrived[1:]
	}
	return nil
}

// settle ends the waiting of s.
func (r *Ring) settle(s *seat, e Ending) {
	r.waiting--
	s.lane.units -= s.request.Units
	s.lane.served = s.number
	s.request.Entry = ledger.Entry{}
	if e.GaveUp {
		s.state = PlaceUnknown
		delete(r.known, s.id)
	} else {
		s.state, s.result = PlaceDecided, e.Result
		r.keep(s)
	}
	close(s.done)
}

// keep remembers s in place of the one that was decided longest ago.
func (r *Ring) keep(s *seat) {
	if len(r.kept) < r.options.Keep {
		r.kept = append(r.kept, s)
		return
	}
	if old := r.kept[r.oldest]; r.known[old.id] == old {
		delete(r.known, old.id)
	}
	r.kept[r.oldest] = s
	r.oldest = (r.oldest + 1) % len(r.kept)
}

// release ends the claim on l.
func (r *Ring) release(l *lane) {
	l.fence = 0
	i := slices.Index(r.claimed, l)
	r.claimed = slices.Delete(r.claimed, i, i+1)
	if len(l.seats) == 0 {
		delete(r.lanes, l.name)
		return
	}
	r.offer(l)
}

// offer lets l be taken. It wakes every idle taker: they are few, and to wake one
// that is about to leave would leave the others asleep.
func (r *Ring) offer(l *lane) {
	r.free = append(r.free, l)
	close(r.offered)
	r.offered = make(chan struct{})
}

// Backlog implements Log.
func (r *Ring) Backlog(context.Context) (Backlog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := Backlog{Waiting: int64(r.waiting), Partitions: int64(len(r.lanes))}
	if len(r.arrived) > 0 {
		b.Oldest = time.Since(r.arrived[0].at)
	}
	return b, nil
}
