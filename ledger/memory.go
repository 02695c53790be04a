package ledger

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a complete Store in memory: the model that the others are compared
// with, and a store for tests. It forgets everything when it goes.
type Memory struct {
	mu    sync.Mutex
	clock func() time.Time
	state *State
	books
}

// books is what has been written; Memory under its lock, or a copy for Snapshot.
type books struct {
	head     Head
	at       int64
	lines    []Line
	events   []Event
	postings []Posted
	balances map[Key]Balance
	holds    map[string]Hold
	records  map[RecordKey]Record
	byID     map[string]int // entry id -> index in lines
}

// NewMemory makes an empty store that takes its time from clock.
func NewMemory(clock func() time.Time) *Memory {
	return &Memory{
		clock: clock,
		state: NewState(Head{}),
		books: books{
			balances: map[Key]Balance{},
			holds:    map[string]Hold{},
			records:  map[RecordKey]Record{},
			byID:     map[string]int{},
		},
	}
}

// Apply implements Applier. It never fails.
func (m *Memory) Apply(_ context.Context, entries ...Entry) ([]Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	results := make([]Result, len(entries))
	for i, e := range entries {
		results[i] = m.state.Decide(e, now)
	}
	m.write(m.state.Changes())
	return results, nil
}

func (m *Memory) now() int64 {
	m.at = max(m.at, m.clock().UnixMilli())
	return m.at
}

func (b *books) write(ch Changes) {
	b.head = ch.Head
	for _, l := range ch.Lines {
		b.byID[l.ID] = len(b.lines)
		b.lines = append(b.lines, l)
	}
	b.events = append(b.events, ch.Events...)
	b.postings = append(b.postings, ch.Postings...)
	for _, c := range ch.Balances {
		b.balances[c.After.Key] = c.After
	}
	for _, c := range ch.Holds {
		b.holds[c.After.ID] = c.After
	}
	for _, c := range ch.Records {
		b.records[c.After.Key()] = c.After
	}
}

// Now implements Reader.
func (m *Memory) Now(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now(), nil
}

// Snapshot implements Reader; writers wait until f returns.
func (m *Memory) Snapshot(_ context.Context, f func(Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now()
	return f(memoryView{&m.books})
}

// Head implements Reader.
func (m *Memory) Head(ctx context.Context) (h Head, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { h, err = r.Head(ctx); return err })
	return h, err
}

// Lines implements Reader.
func (m *Memory) Lines(ctx context.Context, q LineQuery) (out []Line, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Lines(ctx, q); return err })
	return out, err
}

// Events implements Reader.
func (m *Memory) Events(ctx context.Context, q EventQuery) (out []Event, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Events(ctx, q); return err })
	return out, err
}

// Postings implements Reader.
func (m *Memory) Postings(ctx context.Context, q PostingQuery) (out []Posted, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Postings(ctx, q); return err })
	return out, err
}

// Balances implements Reader.
func (m *Memory) Balances(ctx context.Context, q BalanceQuery) (out []Balance, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Balances(ctx, q); return err })
	return out, err
}

// Holds implements Reader.
func (m *Memory) Holds(ctx context.Context, q HoldQuery) (out []Hold, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Holds(ctx, q); return err })
	return out, err
}

// Records implements Reader.
func (m *Memory) Records(ctx context.Context, q RecordQuery) (out []Record, err error) {
	err = m.Snapshot(ctx, func(r Reader) error { out, err = r.Records(ctx, q); return err })
	return out, err
}

// memoryView reads books that nobody writes meanwhile.
type memoryView struct{ *books }

func (v memoryView) Now(context.Context) (int64, error) { return v.at, nil }
func (v memoryView) Head(context.Context) (Head, error) { return v.head, nil }

func (v memoryView) Snapshot(_ context.Context, f func(Reader) error) error { return f(v) }

func (v memoryView) Lines(_ context.Context, q LineQuery) ([]Line, error) {
	if q.ID != "" {
		if n, ok := v.byID[q.ID]; ok && v.lines[n].Seq > q.After {
			return []Line{v.lines[n]}, nil
		}
		return nil, nil
	}
	return rows(v.lines, Page(q.Limit), func(l Line) bool { return l.Seq > q.After }), nil
}

func (v memoryView) Events(_ context.Context, q EventQuery) ([]Event, error) {
	return rows(v.events, Page(q.Limit), func(e Event) bool {
		return e.Seq > q.After && (q.Subject == "" || e.Subject == q.Subject)
	}), nil
}

func (v memoryView) Postings(_ context.Context, q PostingQuery) ([]Posted, error) {
	match := func(p Posted) bool {
		behind := p.Seq > q.After
		if q.Desc {
			behind = q.After == 0 || p.Seq < q.After
		}
		return behind && (q.Asset == "" || p.Asset == q.Asset) &&
			(q.Account == "" || p.From == q.Account || p.To == q.Account)
	}
	out := rows(v.postings, 0, match)
	if q.Desc {
		slices.Reverse(out)
	}
	limit := Page(q.Limit)
	if len(out) <= limit {
		return out, nil
	}
	for limit < len(out) && out[limit].Seq == out[limit-1].Seq {
		limit++
	}
	return out[:limit], nil
}

func (v memoryView) Balances(_ context.Context, q BalanceQuery) ([]Balance, error) {
	all := values(v.balances, func(a, b Balance) int { return a.Key.Compare(b.Key) })
	return rows(all, Page(q.Limit), func(b Balance) bool {
		return (q.After == Key{} || b.Key.Compare(q.After) > 0) && (q.Account == "" || b.Account == q.Account) &&
			(q.Asset == "" || b.Asset == q.Asset) && strings.HasPrefix(string(b.Account), string(q.Prefix))
	}), nil
}

func (v memoryView) Holds(_ context.Context, q HoldQuery) ([]Hold, error) {
	all := values(v.holds, func(a, b Hold) int { return cmp.Compare(a.ID, b.ID) })
	return rows(all, Page(q.Limit), func(h Hold) bool {
		return h.ID > q.After && (q.ID == "" || h.ID == q.ID) && (q.From == "" || h.From == q.From) &&
			(q.Asset == "" || h.Asset == q.Asset) && (q.State == "" || h.State == q.State)
	}), nil
}

func (v memoryView) Records(_ context.Context, q RecordQuery) ([]Record, error) {
	all := values(v.records, func(a, b Record) int { return q.compare(a, b) })
	return rows(all, Page(q.Limit), func(r Record) bool {
		return q.matches(r) && (q.After == RecordKey{} || q.compare(r, Record{Kind: q.After.Kind, ID: q.After.ID}) > 0)
	}), nil
}

func (q RecordQuery) matches(r Record) bool {
	return (q.Kind == "" || r.Kind == q.Kind) && (q.ID == "" || r.ID == q.ID) &&
		(q.State == "" || r.State == q.State) && (q.Owner == "" || r.Owner == q.Owner) &&
		(q.Ref == "" || r.Ref == q.Ref) && (q.DueBy == 0 || (r.Due > 0 && r.Due <= q.DueBy))
}

func (q RecordQuery) compare(a, b Record) int {
	if q.DueBy > 0 {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
	}
	c := compareRecordKeys(a.Key(), b.Key())
	if q.Desc {
		return -c
	}
	return c
}

// rows is the first limit rows that match; 0 = all.
func rows[T any](all []T, limit int, match func(T) bool) []T {
	var out []T
	for _, r := range all {
		if !match(r) {
			continue
		}
		if limit > 0 && len(out) == limit {
			break
		}
		out = append(out, r)
	}
	return out
}

func values[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, compare)
	return out
}
