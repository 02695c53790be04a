package flow

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// shop plays one order against a ledger, as holdfast.advance does.
type shop struct {
	t     *testing.T
	now   Time
	store *ledger.Memory
	c     Case
	n     int

	spent, collected map[string]int64 // by account, of what the order's splits gave it
}

func newShop(t *testing.T, stock, backorder int64, late ...Late) *shop {
	return newSplitShop(t, stock, backorder, nil, late...)
}

func newSplitShop(t *testing.T, stock, backorder int64, splits []Split, late ...Late) *shop {
	s := &shop{t: t, now: 1_000_000, spent: map[string]int64{}, collected: map[string]int64{}}
	s.store = ledger.NewMemory(func() time.Time { return s.now.Std() })
	t.Cleanup(func() { s.verify() })
	s.write("receive", []ledger.Op{ledger.Move(ledger.Posting{From: Supplier, To: Stock, Asset: "sku:tee", Amount: stock})}, nil)
	if backorder > 0 {
		s.write("promise", []ledger.Op{ledger.Move(ledger.Posting{From: Promised, To: Reserve, Asset: "sku:tee", Amount: backorder})}, nil)
	}
	ch, refusal := Place(Order{ID: "o", Customer: "c", Currency: "CNY", Splits: splits,
		Lines:     []Line{{SKU: "tee", Quantity: 1, Price: 100, Late: late, Sale: "s", PerCustomer: 1}},
		CreatedAt: s.now, ExpiresAt: s.now + 1000, CapAt: s.now + 50_000})
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, g := range ch.Case.Order.Grants() {
		s.write("grant", []ledger.Op{g.Op}, []ledger.Record{g.Record})
	}
	s.write("place", ch.Ops, ch.Records())
	s.c = ch.Case
	return s
}

func (s *shop) write(id string, ops []ledger.Op, records []ledger.Record) ledger.Result {
	s.n++
	res, _ := s.store.Apply(context.Background(), ledger.Entry{ID: id + "-" + string(rune('A'+s.n%26)) + time.Duration(s.n).String(), Ops: ops, Records: records})
	return res[0]
}

// on lets ev happen; the answer is the refusal's code.
func (s *shop) on(ev Event) string {
	s.t.Helper()
	ev.Short, ev.Has = map[ledger.Asset]int{}, map[ledger.Account]int64{}
	ev.PayFor, ev.Poll = 1000*time.Millisecond, time.Second
	ev.Gateway, ev.Method = cmp.Or(ev.Gateway, "stripe"), cmp.Or(ev.Method, "checkout")
	for range 20 {
		ch, refusal := Step(s.c, ev, s.now)
		if refusal != nil {
			return refusal.Code
		}
		if ch.Empty() {
			return ""
		}
		res := s.write(string(ev.On), ch.Ops, ch.Records())
		switch {
		case res.Code == ledger.OK:
			s.c = ch.Case
			return ""
		case res.Code == ledger.Insufficient && OfSplit(res.Key.Account):
			ev.Has[res.Key.Account] = res.Available
		case res.Code == ledger.Insufficient && ev.On == MoneyCame:
			ev.Short[res.Key.Asset]++
		default:
			s.t.Fatalf("%s in %s: the ledger refused: %+v", ev.On, s.c.Order.State, res)
		}
	}
	s.t.Fatalf("%s in %s: never decided", ev.On, s.c.Order.State)
	return ""
}

func (s *shop) paid(payment string) {
	s.t.Helper()
	s.on(Event{On: MoneyCame, ID: payment, Amount: 100, Currency: "CNY"})
}

func (s *shop) balance(a ledger.Account, asset ledger.Asset) int64 {
	bs, _ := s.store.Balances(context.Background(), ledger.BalanceQuery{Account: a, Asset: asset})
	if len(bs) == 0 {
		return 0
	}
	return bs[0].Posted
}

func (s *shop) is(state State) {
	s.t.Helper()
	if s.c.Order.State != state {
		s.t.Fatalf("the order is %s, want %s", s.c.Order.State, state)
	}
}

func (s *shop) has(a ledger.Account, asset ledger.Asset, want int64) {
	s.t.Helper()
	if got := s.balance(a, asset); got != want {
		s.t.Errorf("%s has %d %s, want %d", a, got, asset, want)
	}
}

func (s *shop) todo(id string) Do {
	for _, t := range s.c.Tasks {
		if t.ID == id {
			return t.Do
		}
	}
	return DoNone
}

// oneAttempt checks that only one attempt can bring money, and that one waits if
// and only if the order says so.
func (s *shop) oneAttempt() {
	able, waiting := 0, ""
	for _, p := range s.c.Payments {
		switch p.State {
		case Requested, Open:
			able++
		case Waiting:
			waiting += p.ID
		}
	}
	if s.c.Order.PaidAt == 0 && able > 1 {
		s.t.Errorf("%d attempts can bring money", able)
	}
	if waiting != s.c.Order.NextPayment {
		s.t.Errorf("%q waits, and the order says %q", waiting, s.c.Order.NextPayment)
	}
}

// verify recomputes the ledger and holds the order against it: what is due to
// the buyer is what its refunds say, and goods are sold, and the customer's
// allowance is used, if and only if it is paid.
func (s *shop) verify() {
	rep, err := ledger.Verify(context.Background(), s.store, nil)
	if err != nil || !rep.OK() {
		s.t.Errorf("verify: %v %+v", err, rep.Problems)
	}
	s.oneAttempt()
	var due int64
	last := map[string]Refund{}
	for _, r := range s.c.Refunds {
		if r.State == RefundRequested || r.State == RefundAccepted {
			due += r.Amount
		}
		if r.Late {
			last[r.Payment] = r
		}
	}
	for _, r := range last {
		if r.State == RefundRefused || r.State == RefundFailed {
			due += r.Amount
		}
	}
	s.has(RefundsDue("o"), "CNY", due)
	sold := s.balance(Sold, "sku:tee") + s.balance(Delivered, "sku:tee")
	var back int64
	for _, l := range s.c.Order.Lines {
		back += l.Restocked
	}
	if want := min(s.c.Order.Paid, 1) - back; sold != want {
		s.t.Errorf("%d pieces are sold, want %d: the order is %s", sold, want, s.c.Order.State)
	}
	s.has(Used("c"), Limit("s"), sold)
	s.verifyMoney()
}
