package ledger_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/ledger"
)

// naive is the ledger as one would explain it at a table: plain maps, every
// entry tried on a copy of everything, and the copy kept if nobody owes
// anything afterwards. It shares no code with State, and is slow.
type naive struct {
	posted  map[ledger.Key]int64
	holds   map[string]ledger.Hold
	records map[ledger.RecordKey]int64
	told    map[string]told
}

// told is what the author of an entry was told. Entries of this model carry
// their request in Reply, which is therefore their fingerprint.
type told struct {
	request string
	code    ledger.Code
}

func newNaive() *naive {
	return &naive{map[ledger.Key]int64{}, map[string]ledger.Hold{}, map[ledger.RecordKey]int64{}, map[string]told{}}
}

func (n *naive) apply(e ledger.Entry, now int64) ledger.Code {
	request := fmt.Sprintf("%+v", e)
	if old, ok := n.told[e.ID]; ok {
		if old.request != request {
			return ledger.IDReused
		}
		return old.code
	}
	try := &naive{maps.Clone(n.posted), maps.Clone(n.holds), maps.Clone(n.records), n.told}
	code := try.all(e, now)
	if code == ledger.OK {
		*n = *try
	}
	if code == ledger.OK || e.Remember {
		n.told[e.ID] = told{request, code}
	}
	return code
}

func (n *naive) all(e ledger.Entry, now int64) ledger.Code {
	for _, r := range e.Records {
		if n.records[r.Key()] != r.Version-1 {
			return ledger.Stale
		}
	}
	for _, r := range e.Records {
		n.records[r.Key()] = r.Version
	}
	for _, op := range e.Ops {
		if code := n.one(op, now); code != ledger.OK {
			return code
		}
	}
	for k := range n.touched() {
		if !k.Account.External() && n.posted[k]-n.held(k) < 0 {
			return ledger.Insufficient
		}
	}
	return ledger.OK
}

func (n *naive) touched() map[ledger.Key]bool {
	keys := map[ledger.Key]bool{}
	for k := range n.posted {
		keys[k] = true
	}
	for _, h := range n.holds {
		keys[ledger.Key{Account: h.From, Asset: h.Asset}] = true
	}
	return keys
}

func (n *naive) held(k ledger.Key) (sum int64) {
	for _, h := range n.holds {
		if h.State == ledger.Held && h.From == k.Account && h.Asset == k.Asset {
			sum += h.Amount - h.Committed - h.Released
		}
	}
	return sum
}

func (n *naive) move(from, to ledger.Account, asset ledger.Asset, amount int64) {
	n.posted[ledger.Key{Account: from, Asset: asset}] -= amount
	n.posted[ledger.Key{Account: to, Asset: asset}] += amount
}

func (n *naive) one(op ledger.Op, now int64) ledger.Code {
	if op.Kind == ledger.KindMove {
		n.move(op.From, op.To, op.Asset, op.Amount)
		return ledger.OK
	}
	h, ok := n.holds[op.Hold]
	switch {
	case op.Kind == ledger.KindReserve && ok:
		return ledger.HoldExists
	case op.Kind == ledger.KindReserve && op.Cap > 0 && op.Until > op.Cap:
		return ledger.BeyondCap
	case op.Kind == ledger.KindReserve:
		n.holds[op.Hold] = ledger.Hold{ID: op.Hold, From: op.From, To: op.To, Asset: op.Asset, Amount: op.Amount,
			State: ledger.Held, Until: op.Until, Cap: op.Cap}
		return ledger.OK
	case !ok:
		return ledger.HoldUnknown
	case h.State != ledger.Held:
		return ledger.HoldFinal
	}
	left := h.Amount - h.Committed - h.Released
	switch op.Kind {
	case ledger.KindCommit:
		amount := op.Amount
		if amount == 0 {
			amount = left
		}
		if amount > left {
			return ledger.ExceedsHold
		}
		n.move(h.From, h.To, h.Asset, amount)
		h.Committed += amount
		if amount == left || !op.Keep {
			h.Released = h.Amount - h.Committed
			h.State = ledger.Committed
		}
	case ledger.KindExpire:
		if h.Until == 0 || h.Until > now {
			return ledger.NotDue
		}
		h.Released, h.State = h.Amount-h.Committed, ledger.Expired
	case ledger.KindVoid:
		h.Released, h.State = h.Amount-h.Committed, ledger.Voided
	case ledger.KindExtend:
		if h.Cap > 0 && op.Until > h.Cap {
			return ledger.BeyondCap
		}
		if h.Until > 0 && op.Until > h.Until {
			h.Until = op.Until
		}
	}
	n.holds[op.Hold] = h
	return ledger.OK
}

func drawOp(t *rapid.T) ledger.Op {
	accounts := rapid.Permutation([]ledger.Account{"@out", "@in", "a", "b"}).Draw(t, "accounts")
	p := ledger.Posting{From: accounts[0], To: accounts[1], Asset: rapid.SampledFrom([]ledger.Asset{"x", "y"}).Draw(t, "asset"),
		Amount: rapid.Int64Range(1, 9).Draw(t, "amount")}
	hold := rapid.SampledFrom([]string{"h1", "h2", "h3", "h4", "h5"}).Draw(t, "hold")
	time := rapid.Int64Range(0, 20)
	switch rapid.SampledFrom([]ledger.Kind{ledger.KindMove, ledger.KindReserve, ledger.KindReserve, ledger.KindCommit,
		ledger.KindVoid, ledger.KindExpire, ledger.KindExtend}).Draw(t, "kind") {
	case ledger.KindMove:
		return ledger.Move(p)
	case ledger.KindReserve:
		return ledger.Reserve(hold, p, time.Draw(t, "until"), time.Draw(t, "cap"))
	case ledger.KindCommit:
		return ledger.CommitPart(hold, rapid.Int64Range(0, 9).Draw(t, "part"), rapid.Bool().Draw(t, "keep"))
	case ledger.KindVoid:
		return ledger.Void(hold)
	case ledger.KindExpire:
		return ledger.Expire(hold)
	default:
		return ledger.Extend(hold, time.Draw(t, "until"))
	}
}

// drawEntry draws ids from few, so that entries are replayed and ids reused.
func drawEntry(t *rapid.T) ledger.Entry {
	e := ledger.Entry{
		ID:       fmt.Sprint("e", rapid.IntRange(0, 60).Draw(t, "id")),
		Remember: rapid.Bool().Draw(t, "remember"),
		Ops:      rapid.SliceOfN(rapid.Custom(drawOp), 1, 4).Draw(t, "ops"),
	}
	if rapid.Bool().Draw(t, "has record") {
		e.Records = []ledger.Record{{Kind: "order", ID: rapid.SampledFrom([]string{"o1", "o2"}).Draw(t, "order"),
			Version: rapid.Int64Range(1, 4).Draw(t, "version")}}
	}
	if rapid.Bool().Draw(t, "has event") {
		e.Events = []ledger.Event{{Type: "t", Subject: "s"}}
	}
	return e
}

func TestDecideAgreesWithANaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, state := newNaive(), ledger.NewState(ledger.Head{})
		balances, holds := map[ledger.Key]ledger.Balance{}, map[string]ledger.Hold{}
		var past []ledger.Entry
		for now := range int64(25) {
			e := rapid.Custom(drawEntry).Draw(t, "entry")
			if len(past) > 0 && rapid.IntRange(0, 5).Draw(t, "replay") == 0 {
				e = rapid.SampledFrom(past).Draw(t, "past")
			}
			past = append(past, e)
			want := model.apply(e, now)
			if got := state.Decide(e, now); got.Code != want {
				t.Fatalf("at %d, %+v: got %+v, want %q", now, e, got, want)
			}
			ch := state.Changes()
			for _, c := range ch.Balances {
				balances[c.After.Key] = c.After
			}
			for _, c := range ch.Holds {
				holds[c.After.ID] = c.After
			}
			if !maps.Equal(holds, model.holds) {
				t.Fatalf("at %d, %+v: holds: got %+v, want %+v", now, e, holds, model.holds)
			}
			for k := range model.touched() {
				if b := balances[k]; b.Posted != model.posted[k] || b.Held != model.held(k) {
					t.Fatalf("at %d, %+v: %v: got %+v, want posted %d, held %d", now, e, k, b, model.posted[k], model.held(k))
				}
			}
		}
	})
}
