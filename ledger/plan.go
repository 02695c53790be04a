package ledger

import "slices"

// plan is what an entry would do. Nothing in State has changed yet.
type plan struct {
	deltas   []delta // netted per key, in the order of first use
	holds    []Hold  // in their new form
	postings []Posted
}

type delta struct {
	Key
	posted, held int64
	op           int // the first op that takes from the key; -1 = none does
}

// plan turns e into deltas, or says why it is refused.
func (s *State) plan(e Entry, now int64) (*plan, Result) {
	for i, r := range e.Records {
		if s.versions[r.Key()] != r.Version-1 {
			return nil, Result{Code: Stale, Record: r.Key()}
		}
		if i > 0 && slices.ContainsFunc(e.Records[:i], func(o Record) bool { return o.Key() == r.Key() }) {
			return nil, Result{Code: Invalid, Detail: "record written twice in one entry"}
		}
	}
	p := &plan{}
	for i, op := range e.Ops {
		if refusal := s.step(p, i, op, now); refusal.Refused() {
			refusal.Op = i
			return nil, refusal
		}
	}
	for _, d := range p.deltas {
		if refusal := s.compare(d); refusal.Refused() {
			return nil, refusal
		}
	}
	return p, Result{}
}

// compare holds one netted delta against its balance: the guard against
// overselling and against overdrawing, once, for everything.
func (s *State) compare(d delta) Result {
	var now Balance
	if c, ok := s.balances[d.Key]; ok {
		now = c.now
	}
	posted, ok1 := add(now.Posted, d.posted)
	held, ok2 := add(now.Held, d.held)
	available, ok3 := add(posted, -held)
	if !ok1 || !ok2 || !ok3 {
		return Result{Code: Overflow, Op: max(d.op, 0), Key: d.Key, Available: now.Available()}
	}
	if available < 0 && !d.Account.External() {
		return Result{Code: Insufficient, Op: max(d.op, 0), Key: d.Key, Available: now.Available()}
	}
	return Result{}
}

// step plans one op.
func (s *State) step(p *plan, i int, op Op, now int64) Result {
	if op.Kind == KindMove {
		return p.move(i, Posting{op.From, op.To, op.Asset, op.Amount}, "")
	}
	h, exists := s.hold(p, op.Hold)
	if op.Kind == KindReserve {
		if exists {
			return Result{Code: HoldExists}
		}
		if op.Cap > 0 && op.Until > op.Cap {
			return Result{Code: BeyondCap}
		}
		p.put(Hold{ID: op.Hold, From: op.From, To: op.To, Asset: op.Asset, Amount: op.Amount,
			State: Held, Until: op.Until, Cap: op.Cap})
		return p.hold(i, Key{op.From, op.Asset}, op.Amount)
	}
	if !exists {
		return Result{Code: HoldUnknown}
	}
	if h.State != Held {
		return Result{Code: HoldFinal, Hold: h.State}
	}
	switch op.Kind {
	case KindCommit:
		return p.commit(i, h, op)
	case KindVoid:
		return p.release(i, h, Voided)
	case KindExpire:
		if h.Until == 0 || now < h.Until {
			return Result{Code: NotDue}
		}
		return p.release(i, h, Expired)
	default: // KindExtend; Check knows no other
		return p.extend(h, op.Until)
	}
}

func (p *plan) commit(i int, h Hold, op Op) Result {
	amount := op.Amount
	if amount == 0 {
		amount = h.Left()
	}
	if amount > h.Left() {
		return Result{Code: ExceedsHold, Available: h.Left()}
	}
	freed := amount
	h.Committed += amount
	if rest := h.Left(); rest > 0 && !op.Keep {
		h.Released += rest
		freed += rest
	}
	if h.Left() == 0 {
		h.State = Committed
	}
	p.put(h)
	if refusal := p.hold(i, Key{h.From, h.Asset}, -freed); refusal.Refused() {
		return refusal
	}
	return p.move(i, Posting{h.From, h.To, h.Asset, amount}, h.ID)
}

func (p *plan) release(i int, h Hold, as HoldState) Result {
	left := h.Left()
	h.Released += left
	h.State = as
	p.put(h)
	return p.hold(i, Key{h.From, h.Asset}, -left)
}

func (p *plan) extend(h Hold, until int64) Result {
	if h.Cap > 0 && until > h.Cap {
		return Result{Code: BeyondCap}
	}
	if h.Until != 0 {
		h.Until = max(h.Until, until)
	}
	p.put(h)
	return Result{}
}

func (p *plan) move(i int, m Posting, hold string) Result {
	p.postings = append(p.postings, Posted{N: i, Posting: m, Hold: hold})
	if !p.delta(i, Key{m.From, m.Asset}, -m.Amount, 0) || !p.delta(i, Key{m.To, m.Asset}, m.Amount, 0) {
		return Result{Code: Overflow, Key: Key{m.From, m.Asset}}
	}
	return Result{}
}

func (p *plan) hold(i int, k Key, amount int64) Result {
	if !p.delta(i, k, 0, amount) {
		return Result{Code: Overflow, Key: k}
	}
	return Result{}
}

// delta nets a change into the key's delta; false = overflow.
func (p *plan) delta(i int, k Key, posted, held int64) bool {
	n := slices.IndexFunc(p.deltas, func(d delta) bool { return d.Key == k })
	if n < 0 {
		n = len(p.deltas)
		p.deltas = append(p.deltas, delta{Key: k, op: -1})
	}
	d := &p.deltas[n]
	var ok1, ok2 bool
	d.posted, ok1 = add(d.posted, posted)
	d.held, ok2 = add(d.held, held)
	if d.op < 0 && (posted < 0 || held > 0) {
		d.op = i
	}
	return ok1 && ok2
}

// put sets the new form of a hold.
func (p *plan) put(h Hold) {
	if n := slices.IndexFunc(p.holds, func(o Hold) bool { return o.ID == h.ID }); n >= 0 {
		p.holds[n] = h
		return
	}
	p.holds = append(p.holds, h)
}

// hold finds a hold as the entry has left it so far.
func (s *State) hold(p *plan, id string) (Hold, bool) {
	if n := slices.IndexFunc(p.holds, func(o Hold) bool { return o.ID == id }); n >= 0 {
		return p.holds[n], true
	}
	if o, ok := s.holds[id]; ok {
		return o.now, true
	}
	return Hold{}, false
}
