package ledger

import (
	"cmp"
	"math"
	"slices"
)

// State decides entries against a set of rows. A store loads the rows that a
// batch may touch (Needs names them), calls Decide, and writes back what
// Changes lists; Memory keeps all its rows in one State for ever.
//
// Always true between two calls: every guarded balance has available >= 0,
// every balance has held >= 0 equal to what its open holds have left, and a
// refused entry has left no trace. The obvious way, to check and change op by
// op, breaks the last one as soon as the third op of an entry is refused, and
// is wrong about entries that take from one account twice. So an entry is
// first planned without touching anything: demand is netted per balance,
// compared once, and only then applied by a part that cannot fail.
//
// A row that was not loaded counts as not existing. Not safe for concurrent use.
type State struct {
	head     Head
	balances map[Key]*cell
	holds    map[string]*slot
	versions map[RecordKey]int64
	seen     map[string]seen

	changes       Changes
	dirtyBalances []*cell // what changed since Changes, so that a State of
	dirtyHolds    []*slot // millions of rows need not look at all of them
}

type cell struct {
	before, now Balance
	dirty       bool
}

type slot struct {
	before Hold // no ID = a new row
	now    Hold
	dirty  bool
}

type seen struct {
	fingerprint Hash
	result      Result
}

// Changes is what Decide did, ready to be written in one transaction. Rows
// that exist twice (balances, holds, records) appear once, in their last form.
type Changes struct {
	Head     Head // the end of the journal afterwards
	Lines    []Line
	Events   []Event
	Postings []Posted
	Balances []BalanceChange // ordered by Key
	Holds    []HoldChange    // ordered by ID
	Records  []RecordChange  // ordered by Key
}

// BalanceChange is a balance before and after; Before.Version 0 = a new row.
type BalanceChange struct{ Before, After Balance }

// HoldChange is a hold before and after; Before without ID = a new row.
type HoldChange struct{ Before, After Hold }

// RecordChange is a record that changed; Before 0 = a new row.
type RecordChange struct {
	Before int64
	After  Record
}

// NewState starts from the end of the journal.
func NewState(head Head) *State {
	return &State{
		head:     head,
		balances: map[Key]*cell{},
		holds:    map[string]*slot{},
		versions: map[RecordKey]int64{},
		seen:     map[string]seen{},
	}
}

// Needs names the rows that entries may touch, sorted and without doubles.
// The balances of the holds it names must be loaded too.
type Needs struct {
	IDs     []string
	Holds   []string
	Records []RecordKey
	Keys    []Key
}

// NeedsOf collects the Needs of entries.
func NeedsOf(entries []Entry) Needs {
	var n Needs
	for _, e := range entries {
		n.IDs = append(n.IDs, e.ID)
		for _, op := range e.Ops {
			if op.Hold != "" {
				n.Holds = append(n.Holds, op.Hold)
			}
			if op.From != "" {
				n.Keys = append(n.Keys, Key{op.From, op.Asset}, Key{op.To, op.Asset})
			}
		}
		for _, r := range e.Records {
			n.Records = append(n.Records, r.Key())
		}
	}
	n.IDs = sorted(n.IDs, cmp.Compare[string])
	n.Holds = sorted(n.Holds, cmp.Compare[string])
	n.Keys = sorted(n.Keys, Key.Compare)
	n.Records = sorted(n.Records, compareRecordKeys)
	return n
}

// AddHold adds the balances of loaded holds to the keys, and returns those that
// are new.
func (n *Needs) AddHold(holds ...Hold) []Key {
	var added []Key
	for _, h := range holds {
		for _, k := range []Key{{h.From, h.Asset}, {h.To, h.Asset}} {
			if _, there := slices.BinarySearchFunc(n.Keys, k, Key.Compare); !there {
				added = append(added, k)
			}
		}
	}
	added = sorted(added, Key.Compare)
	n.Keys = sorted(append(n.Keys, added...), Key.Compare)
	return added
}

func sorted[T comparable](s []T, compare func(a, b T) int) []T {
	slices.SortFunc(s, compare)
	return slices.Compact(s)
}

func compareRecordKeys(a, b RecordKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// PutBalance loads a row.
func (s *State) PutBalance(b Balance) { s.balances[b.Key] = &cell{before: b, now: b} }

// PutHold loads a row.
func (s *State) PutHold(h Hold) { s.holds[h.ID] = &slot{before: h, now: h} }

// PutRecord loads the version of a record.
func (s *State) PutRecord(k RecordKey, version int64) { s.versions[k] = version }

// PutLine loads an entry that was decided before.
func (s *State) PutLine(l Line) error {
	_, res, err := l.Open()
	if err != nil {
		return err
	}
	s.seen[l.ID] = seen{l.Fingerprint, res}
	return nil
}

// Decide decides one entry at time now (Unix ms; never before the last line).
func (s *State) Decide(e Entry, now int64) Result {
	now = max(now, s.head.At)
	f := e.prepared()
	if f.why != "" {
		return Result{At: now, Code: Invalid, Detail: f.why}
	}
	if old, ok := s.seen[e.ID]; ok {
		if old.fingerprint != f.print {
			return Result{At: now, Code: IDReused}
		}
		res := old.result
		res.Replayed = true
		return res
	}
	p, refusal := s.plan(e, now)
	refusal.At = now
	if !refusal.Refused() {
		return s.write(e, f, p, Result{At: now})
	}
	if !e.Remember {
		return refusal
	}
	body, err := encode(e, &refusal)
	if err != nil {
		return Result{At: now, Code: Invalid, Detail: err.Error()}
	}
	return s.write(e, &form{body: body, print: f.print, reply: e.reply(refusal.Code)}, nil, refusal)
}

// write appends the line and applies the plan (nil = a remembered refusal).
// It cannot fail.
func (s *State) write(e Entry, f *form, p *plan, res Result) Result {
	line := Line{Seq: s.head.Seq + 1, At: res.At, ID: e.ID, Fingerprint: f.print, Code: res.Code, Body: f.body}
	line.Hash = line.Chain(s.head.Hash)
	s.head.Seq, s.head.At, s.head.Hash = line.Seq, line.At, line.Hash
	s.changes.Lines = append(s.changes.Lines, line)
	res.Seq, res.Reply = line.Seq, f.reply
	s.seen[e.ID] = seen{f.print, res}
	if p == nil {
		return res
	}
	for _, d := range p.deltas {
		c := s.cell(d.Key)
		c.now.Posted += d.posted
		c.now.Held += d.held
		c.now.Version++
		if !c.dirty {
			c.dirty = true
			s.dirtyBalances = append(s.dirtyBalances, c)
		}
	}
	for _, h := range p.holds {
		o, ok := s.holds[h.ID]
		if !ok {
			o = &slot{}
			s.holds[h.ID] = o
		}
		o.now = h
		if !o.dirty {
			o.dirty = true
			s.dirtyHolds = append(s.dirtyHolds, o)
		}
	}
	for _, r := range e.Records {
		s.changes.Records = append(s.changes.Records, RecordChange{Before: s.versions[r.Key()], After: r})
		s.versions[r.Key()] = r.Version
	}
	for _, ev := range e.Events {
		s.head.Events++
		ev.Seq, ev.Entry, ev.At = s.head.Events, line.Seq, line.At
		s.changes.Events = append(s.changes.Events, ev)
	}
	for _, m := range p.postings {
		m.Seq = line.Seq
		s.changes.Postings = append(s.changes.Postings, m)
	}
	return res
}

func (s *State) cell(k Key) *cell {
	c, ok := s.balances[k]
	if !ok {
		c = &cell{before: Balance{Key: k}, now: Balance{Key: k}}
		s.balances[k] = c
	}
	return c
}

// Changes returns what was decided since the last call.
func (s *State) Changes() Changes {
	ch := s.changes
	ch.Head = s.head
	for _, c := range s.dirtyBalances {
		ch.Balances = append(ch.Balances, BalanceChange{c.before, c.now})
		c.before, c.dirty = c.now, false
	}
	for _, o := range s.dirtyHolds {
		ch.Holds = append(ch.Holds, HoldChange{o.before, o.now})
		o.before, o.dirty = o.now, false
	}
	slices.SortFunc(ch.Balances, func(a, b BalanceChange) int { return a.After.Key.Compare(b.After.Key) })
	slices.SortFunc(ch.Holds, func(a, b HoldChange) int { return cmp.Compare(a.After.ID, b.After.ID) })
	ch.Records = lastOf(ch.Records)
	s.changes, s.dirtyBalances, s.dirtyHolds = Changes{}, s.dirtyBalances[:0], s.dirtyHolds[:0]
	return ch
}

// lastOf keeps the last form of each record, with the version before the first.
func lastOf(rs []RecordChange) []RecordChange {
	slices.SortStableFunc(rs, func(a, b RecordChange) int { return compareRecordKeys(a.After.Key(), b.After.Key()) })
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && out[n-1].After.Key() == r.After.Key() {
			out[n-1].After = r.After
			continue
		}
		out = append(out, r)
	}
	return out
}

// add is a + b, or false when that is no int64.
func add(a, b int64) (int64, bool) {
	if (b > 0 && a > math.MaxInt64-b) || (b < 0 && a < math.MinInt64-b) {
		return 0, false
	}
	return a + b, true
}
