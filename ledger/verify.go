package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// MaxProblems is how many problems Verify lists; it counts them all.
const MaxProblems = 100

// Report is what Verify found.
type Report struct {
	Entries  int64     `json:"entries"`
	Events   int64     `json:"events"`
	Postings int64     `json:"postings"`
	Balances int64     `json:"balances"`
	Holds    int64     `json:"holds"`
	Records  int64     `json:"records"`
	Count    int64     `json:"problem_count"`
	Problems []Problem `json:"problems"` // the first MaxProblems, by where they were found
}

// OK says that every promise held.
func (r Report) OK() bool { return r.Count == 0 }

// Problem is one broken promise. Seq is the journal line at which it shows;
// 0 = in the rows as they stand.
type Problem struct {
	Seq    int64  `json:"seq,omitempty"`
	What   string `json:"what"`
	Detail string `json:"detail"`
}

// Found adds a problem.
func (r *Report) Found(seq int64, what, format string, args ...any) {
	r.Count++
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, Problem{seq, what, fmt.Sprintf(format, args...)})
	}
}

// Verify recomputes everything from the journal alone and compares it with what
// the store says: the chain of hashes, every decision, every posting and event,
// every balance, hold and record; and that per asset all balances sum to zero.
// progress (may be nil) is called now and then with the lines done so far.
// It reads one moment of the store; an error means that it could not finish.
func Verify(ctx context.Context, store Reader, progress func(done, total int64)) (Report, error) {
	rep := Report{Problems: []Problem{}}
	err := store.Snapshot(ctx, func(r Reader) error {
		v := verifier{Report: &rep, r: r, state: NewState(Head{}), bodies: map[RecordKey]Record{}}
		if err := v.replay(ctx, progress); err != nil {
			return err
		}
		if err := v.compareBalances(ctx); err != nil {
			return err
		}
		if err := v.compareHolds(ctx); err != nil {
			return err
		}
		return v.compareRecords(ctx)
	})
	if err != nil {
		return rep, fmt.Errorf("ledger: verify: %w", err)
	}
	return rep, nil
}

type verifier struct {
	*Report
	r      Reader
	state  *State
	bodies map[RecordKey]Record
}

// replay decides every line anew and compares the two rows of history that the
// decision makes, postings and events, as it goes.
func (v *verifier) replay(ctx context.Context, progress func(done, total int64)) error {
	head, err := v.r.Head(ctx)
	if err != nil {
		return err
	}
	events := feed[Event]{next: func(after int64) ([]Event, error) {
		return v.r.Events(ctx, EventQuery{After: after})
	}, seq: func(e Event) int64 { return e.Seq }}
	postings := feed[Posted]{next: func(after int64) ([]Posted, error) {
		return v.r.Postings(ctx, PostingQuery{After: after})
	}, seq: func(p Posted) int64 { return p.Seq }}
	for {
		lines, err := v.r.Lines(ctx, LineQuery{After: v.Entries})
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			break
		}
		for _, l := range lines {
			ch := v.line(l)
			if err := compareFeed(v, &events, ch.Events, sameEvent, "event"); err != nil {
				return err
			}
			if err := compareFeed(v, &postings, ch.Postings, func(a, b Posted) bool { return a == b }, "posting"); err != nil {
				return err
			}
			v.Events += int64(len(ch.Events))
			v.Postings += int64(len(ch.Postings))
		}
		if progress != nil {
			progress(v.Entries, head.Seq)
		}
	}
	if v.state.head != head {
		v.Found(v.Entries, "journal", "ends at %d with %d events, the store says %d with %d", v.state.head.Seq, v.state.head.Events, head.Seq, head.Events)
	}
	if e, ok, err := events.peek(); err != nil || ok {
		v.Found(0, "event", "event %d is in no journal line", e.Seq)
		return err
	}
	if p, ok, err := postings.peek(); err != nil || ok {
		v.Found(p.Seq, "posting", "posting %d/%d is in no journal line", p.Seq, p.N)
		return err
	}
	return nil
}

// line decides one line anew.
func (v *verifier) line(l Line) Changes {
	if l.Seq != v.Entries+1 {
		v.Found(l.Seq, "journal", "line %d follows line %d", l.Seq, v.Entries)
	}
	v.Entries = l.Seq
	prev := v.state.head
	e, res, err := l.Open()
	if err != nil {
		v.Found(l.Seq, "journal", "%v", err)
		return Changes{}
	}
	if l.Chain(prev.Hash) != l.Hash {
		v.Found(l.Seq, "hash", "line %d does not continue the chain", l.Seq)
	}
	if l.At < prev.At {
		v.Found(l.Seq, "time", "line %d is earlier than the line before", l.Seq)
	}
	v.state.head.Seq = l.Seq - 1
	got := v.state.Decide(e, l.At)
	if got.Seq != l.Seq || got.Code != l.Code || got.Code != res.Code || e.ID != l.ID {
		v.Found(l.Seq, "decision", "entry %q was decided %q, the rules say %q", l.ID, l.Code, got.Code)
	}
	ch := v.state.Changes()
	if len(ch.Lines) == 1 && (!bytes.Equal(ch.Lines[0].Body, l.Body) || ch.Lines[0].Fingerprint != l.Fingerprint) {
		v.Found(l.Seq, "journal", "line %d is not in canonical form", l.Seq)
	}
	v.state.head.Hash, v.state.head.Seq, v.state.head.At = l.Hash, l.Seq, l.At
	for _, c := range ch.Records {
		v.bodies[c.After.Key()] = c.After
	}
	return ch
}

func sameEvent(a, b Event) bool {
	return a.Seq == b.Seq && a.Entry == b.Entry && a.At == b.At && a.Type == b.Type &&
		a.Subject == b.Subject && sameJSON(a.Body, b.Body)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func (v *verifier) compareBalances(ctx context.Context) error {
	sums := map[Asset]int64{}
	left := map[Key]int64{}
	for _, o := range v.state.holds {
		if o.now.State == Held {
			left[Key{o.now.From, o.now.Asset}] += o.now.Left()
		}
	}
	err := pages(func(last Balance) ([]Balance, error) {
		return v.r.Balances(ctx, BalanceQuery{After: last.Key})
	}, func(b Balance) {
		v.Balances++
		sums[b.Asset] += b.Posted
		if b.Available() < 0 && !b.Account.External() {
			v.Found(0, "overdrawn", "%s %s: posted %d, held %d", b.Account, b.Asset, b.Posted, b.Held)
		}
		if b.Held != left[b.Key] {
			v.Found(0, "held", "%s %s: held %d, open holds have %d", b.Account, b.Asset, b.Held, left[b.Key])
		}
		if c, ok := v.state.balances[b.Key]; !ok || c.now.Posted != b.Posted || c.now.Held != b.Held {
			want := v.state.cell(b.Key).now
			v.Found(0, "balance", "%s %s: posted %d, held %d; the journal says posted %d, held %d", b.Account, b.Asset, b.Posted, b.Held, want.Posted, want.Held)
		}
		delete(v.state.balances, b.Key)
	})
	for k := range v.state.balances {
		v.Found(0, "balance", "%s %s is in the journal and not in the store", k.Account, k.Asset)
	}
	for a, sum := range sums {
		if sum != 0 {
			v.Found(0, "conservation", "all balances of %s sum to %d", a, sum)
		}
	}
	return err
}

func (v *verifier) compareHolds(ctx context.Context) error {
	err := pages(func(last Hold) ([]Hold, error) {
		return v.r.Holds(ctx, HoldQuery{After: last.ID})
	}, func(h Hold) {
		v.Holds++
		if o, ok := v.state.holds[h.ID]; !ok || o.now != h {
			v.Found(0, "hold", "%s is %+v, not as in the journal", h.ID, h)
		}
		delete(v.state.holds, h.ID)
	})
	for id := range v.state.holds {
		v.Found(0, "hold", "%s is in the journal and not in the store", id)
	}
	return err
}

func (v *verifier) compareRecords(ctx context.Context) error {
	err := pages(func(last Record) ([]Record, error) {
		return v.r.Records(ctx, RecordQuery{After: last.Key()})
	}, func(r Record) {
		v.Records++
		want, ok := v.bodies[r.Key()]
		if !ok || want.Version != r.Version || want.State != r.State || want.Owner != r.Owner ||
			want.Ref != r.Ref || want.Due != r.Due || !sameJSON(want.Body, r.Body) {
			v.Found(0, "record", "%s %s version %d is not as in the journal", r.Kind, r.ID, r.Version)
		}
		delete(v.bodies, r.Key())
	})
	for k := range v.bodies {
		v.Found(0, "record", "%s %s is in the journal and not in the store", k.Kind, k.ID)
	}
	return err
}

// pages visits every row of a list that is read page by page.
func pages[T any](next func(last T) ([]T, error), visit func(T)) error {
	var last T
	for {
		rows, err := next(last)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		for _, r := range rows {
			visit(r)
		}
		last = rows[len(rows)-1]
	}
}

// feed reads a list of history row by row.
type feed[T any] struct {
	next func(after int64) ([]T, error)
	seq  func(T) int64
	rows []T
	last int64
}

func (f *feed[T]) peek() (row T, ok bool, err error) {
	if len(f.rows) == 0 {
		if f.rows, err = f.next(f.last); err != nil || len(f.rows) == 0 {
			return row, false, err
		}
		f.last = f.seq(f.rows[len(f.rows)-1])
	}
	return f.rows[0], true, nil
}

// compareFeed takes as many rows off the feed as there are in want.
func compareFeed[T any](v *verifier, f *feed[T], want []T, same func(a, b T) bool, what string) error {
	for _, w := range want {
		got, ok, err := f.peek()
		if err != nil {
			return err
		}
		if !ok || f.seq(got) > f.seq(w) {
			v.Found(v.Entries, what, "%s of line %d is missing", what, v.Entries)
			continue
		}
		f.rows = f.rows[1:]
		if !same(got, w) {
			v.Found(v.Entries, what, "%s of line %d is not as in the journal", what, v.Entries)
		}
	}
	return nil
}
