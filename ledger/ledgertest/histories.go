package ledgertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/holdfast-pay/holdfast/ledger"
)

var histories = []claim{
	{"RandomHistoriesAgreeWithMemory", func(w *world) { agreeWithMemory(w, 1) }},
	{"OtherRandomHistoriesAgreeWithMemory", func(w *world) { agreeWithMemory(w, 2) }},
}

// author writes random entries over few names, so that they collide: most are
// possible, many compete, some are replays, reuse an id or make no sense.
type author struct {
	*rand.Rand
	prefix   string // of entry ids, which are not shared with other authors
	n        int
	past     []ledger.Entry
	versions map[ledger.RecordKey]int64 // as far as the author was told
	holds    []string                   // likewise
}

func newAuthor(seed uint64, prefix string) *author {
	return &author{Rand: rand.New(rand.NewPCG(seed, 7)), prefix: prefix, versions: map[ledger.RecordKey]int64{}}
}

// call writes the entries of one call.
func (a *author) call(n int) []ledger.Entry {
	all := make([]ledger.Entry, n)
	for i := range all {
		all[i] = a.entry()
	}
	return all
}

// learn tells the author what became of a call.
func (a *author) learn(call []ledger.Entry, results []ledger.Result) {
	for i, e := range call {
		if results[i].Refused() || results[i].Replayed {
			continue
		}
		for _, r := range e.Records {
			a.versions[r.Key()] = r.Version
		}
		for _, op := range e.Ops {
			if op.Kind == ledger.KindReserve {
				a.holds = append(a.holds, op.Hold)
			}
		}
	}
}

func (a *author) name(prefix string, n int) string { return fmt.Sprint(prefix, a.IntN(n)) }

func (a *author) posting() ledger.Posting {
	names := []ledger.Account{"@out0", "@out1", "acc0", "acc1", "acc2", "acc3"}
	from := max(0, a.IntN(len(names)+3)-3) // money comes from outside first of all
	to := (from + a.IntN(len(names)-1) + 1) % len(names)
	return post(names[from], names[to], ledger.Asset(a.name("sku:", 2)), a.Int64N(9)+1)
}

func (a *author) op() ledger.Op {
	until := at(9, a.IntN(50))
	hold := a.name("h", 200)
	if recent := a.holds[max(0, len(a.holds)-8):]; len(recent) > 0 && a.IntN(10) > 0 {
		hold = recent[a.IntN(len(recent))]
	}
	switch a.IntN(10) {
	case 0, 1, 2:
		return ledger.Move(a.posting())
	case 3, 4, 5:
		return ledger.Reserve(a.name("h", 200), a.posting(), until*a.Int64N(2), at(9, 45)*a.Int64N(2))
	case 6:
		return ledger.CommitPart(hold, a.Int64N(5), a.IntN(2) == 0)
	case 7:
		return ledger.Void(hold)
	case 8:
		return ledger.Expire(hold)
	default:
		return ledger.Extend(hold, until)
	}
}

func (a *author) record() ledger.Record {
	r := ledger.Record{Kind: a.name("kind", 2), ID: a.name("r", 6),
		State: a.name("s", 3), Owner: a.name("o", 3), Ref: a.name("ref", 5), Due: at(9, a.IntN(3)*20) * a.Int64N(2),
		Body: json.RawMessage(fmt.Sprintf(`{"v":%d}`, a.n))}
	r.Version = a.versions[r.Key()] + 1
	if a.IntN(8) == 0 {
		r.Version += a.Int64N(3)
	}
	return r
}

func (a *author) entry() ledger.Entry {
	if len(a.past) > 0 && a.IntN(8) == 0 { // a replay, or another body under an old id
		e := a.past[a.IntN(len(a.past))]
		if a.IntN(3) == 0 {
			e.Reply = json.RawMessage(`"another"`)
		}
		return e
	}
	a.n++
	e := ledger.Entry{ID: fmt.Sprint(a.prefix, a.n), Remember: a.IntN(4) == 0}
	if a.IntN(6) == 0 {
		e.Fingerprint = []byte(a.name("print", 3))
	}
	if a.IntN(3) == 0 {
		e.Reply = json.RawMessage(fmt.Sprintf(`{"n":%d}`, a.n))
	}
	for range max(1, a.IntN(5)-1) {
		e.Ops = append(e.Ops, a.op())
	}
	if a.IntN(3) == 0 {
		e.Records = append(e.Records, a.record())
	}
	for range a.IntN(3) {
		e.Events = append(e.Events, ledger.Event{Type: a.name("t", 3), Subject: a.name("s", 4)})
	}
	a.past = append(a.past, e)
	return e
}

func agreeWithMemory(w *world, seed uint64) {
	model := history(w, seed, 70)
	compareRows(w, w.rows(), (&world{T: w.T, ctx: w.ctx, store: model}).rows())
}

// history applies the same random entries in the same order to the store and to
// a model, which it returns. Every answer is the same.
func history(w *world, seed uint64, calls int) ledger.Store {
	w.Helper()
	model := ledger.NewMemory(w.clock.Now)
	a := newAuthor(seed, "e")
	for n := range calls {
		call := a.call(1 + a.IntN(5))
		got := w.apply(call...)
		want, _ := model.Apply(w.ctx, call...) // a Memory never fails
		for i := range call {
			if !reflect.DeepEqual(plain(got[i]), plain(want[i])) {
				w.Fatalf("seed %d, call %d, entry %+v:\n got %+v\nwant %+v", seed, n, call[i], got[i], want[i])
			}
		}
		a.learn(call, want)
		w.clock.set(at(9, n*60/calls))
	}
	return model
}

// plain makes an absent reply comparable.
func plain(r ledger.Result) ledger.Result {
	if len(r.Reply) == 0 {
		r.Reply = nil
	}
	return r
}

func concurrentHistories(w *world) {
	const authors, calls = 6, 8
	var mu sync.Mutex
	said := map[string]ledger.Result{}
	together(authors, func(i int) {
		a := newAuthor(uint64(100+i), fmt.Sprint("a", i, "-"))
		for range calls {
			call := a.call(2)
			results := w.apply(call...)
			a.learn(call, results)
			for k, r := range results {
				if r.Seq > 0 {
					mu.Lock()
					said[call[k].ID] = r
					mu.Unlock()
				}
			}
		}
	})
	rows := w.rows()
	for i, l := range rows.lines {
		if l.Seq != int64(i)+1 {
			w.Errorf("line %d has number %d", i+1, l.Seq)
		}
		if r := said[l.ID]; r.Seq != l.Seq || r.Code != l.Code {
			w.Errorf("entry %q is line %d %q, its author was told line %d %q", l.ID, l.Seq, l.Code, r.Seq, r.Code)
		}
		delete(said, l.ID)
	}
	for id, r := range said {
		w.Errorf("entry %q was told line %d and is not in the journal", id, r.Seq)
	}
}
