package flow

import (
	"cmp"
	"context"
	"slices"
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

func TestGoodsAndMoneyMoveTogether(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.is(Paying)
	s.on(Event{On: Opened, ID: "op01", Ref: "cs_1", URL: "https://pay"})
	s.paid("op01")
	s.is(Paid)
	s.has(Stock, "sku:tee", 0)
	s.has("@stripe", "CNY", -100)
	s.on(Event{On: Fulfil})
	s.is(Fulfilled)
	if code := s.on(Event{On: Fulfil}); code != InvalidState {
		t.Errorf("fulfilling twice: %q, want %q", code, InvalidState)
	}
}

func TestADoubledPaymentMessageChangesNothing(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	for range 3 {
		s.paid("op01")
	}
	s.is(Paid)
	s.has(Revenue, "CNY", 100)
	s.has("@stripe", "CNY", -100)
}

func TestALateRefusalOrClosingNeverUndoesAPayment(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.paid("op01")
	for _, on := range []On{Opened, Refused, ClosedThere} {
		s.on(Event{On: on, ID: "op01"})
	}
	s.is(Paid)
}

func TestAnotherAmountIsNeitherThePriceNorNothing(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.on(Event{On: MoneyCame, ID: "op01", Amount: 1, Currency: "CNY"})
	s.on(Event{On: MoneyCame, ID: "op01", Amount: 100, Currency: "USD"})
	s.is(Paying)
	if s.c.Payments[0].Code != Mismatch {
		t.Errorf("the payment's code is %q, want %q", s.c.Payments[0].Code, Mismatch)
	}
	s.has(Revenue, "CNY", 0)
}

func TestStockIsReleasedOnlyAfterTheGatewayHasClosed(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.now += 5000
	s.on(Event{On: Due})
	s.is(Closing)
	if s.todo("op01") != DoClose {
		t.Errorf("the task is %s, want %s", s.todo("op01"), DoClose)
	}
	holds, _ := s.store.Holds(context.Background(), ledger.HoldQuery{From: Stock, State: ledger.Held})
	if len(holds) != 1 {
		t.Fatalf("%d holds while closing, want 1", len(holds))
	}
	s.on(Event{On: ClosedThere, ID: "op01"})
	s.is(Expired)
}

func TestAPaymentFasterThanTheCloseGetsTheGoods(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.now += 5000
	s.on(Event{On: Due})
	s.paid("op01")
	s.is(Paid)
}

func TestACancelledOrderEndsCancelledAndRepaysLateMoney(t *testing.T) {
	s := newShop(t, 5, 0, Retake)
	s.on(Event{On: Pay})
	s.on(Event{On: Cancel})
	s.is(Closing)
	s.on(Event{On: ClosedThere, ID: "op01"})
	s.is(Cancelled)
	s.paid("op01")
	s.is(Refunding)
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.has("@stripe", "CNY", 0)
}

func TestLateMoneyTakesTheStockAgain(t *testing.T) {
	s := expiredWithOpenAttempt(t, 1, 0, Retake, Repay)
	s.paid("op01")
	s.is(Paid)
}

func TestLateMoneyTakesBackorderBudgetWhenTheStockIsGone(t *testing.T) {
	s := expiredWithOpenAttempt(t, 1, 1, Retake, Backorder)
	s.write("gone", []ledger.Op{ledger.Move(ledger.Posting{From: Stock, To: Shrinkage, Asset: "sku:tee", Amount: 1})}, nil)
	s.paid("op01")
	s.is(Paid)
	s.has(Reserve, "sku:tee", 0)
	s.on(Event{On: Repaid, Restock: []Restock{{"tee", 1}}})
	s.on(Event{On: RefundMade, ID: "or01"})
	s.has(Stock, "sku:tee", 0)
	s.has(Reserve, "sku:tee", 1)
}

func TestLateMoneyWithoutStockGoesBack(t *testing.T) {
	s := expiredWithOpenAttempt(t, 1, 0, Retake, Backorder, Repay)
	s.write("gone", []ledger.Op{ledger.Move(ledger.Posting{From: Stock, To: Shrinkage, Asset: "sku:tee", Amount: 1})}, nil)
	s.paid("op01")
	s.is(Refunding)
	s.has(RefundsDue("o"), "CNY", 100)
	s.on(Event{On: RefundTaken, ID: "or01"})
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.has(RefundsDue("o"), "CNY", 0)
	s.has("@stripe", "CNY", 0)
}

// expiredWithOpenAttempt is an order whose cap passed while the gateway could
// not be reached.
func expiredWithOpenAttempt(t *testing.T, stock, backorder int64, late ...Late) *shop {
	s := newShop(t, stock, backorder, late...)
	s.on(Event{On: Pay})
	s.on(Event{On: Opened, ID: "op01"})
	s.now += 60_000
	s.on(Event{On: Due})
	s.on(Event{On: GiveUp})
	s.is(Expired)
	if s.todo("op01") != DoClose {
		t.Fatalf("the attempt is not being closed any more")
	}
	return s
}

func TestARefundThatTheGatewayWillNotMakeStaysVisibleAndCanBeAskedForAgain(t *testing.T) {
	s := expiredWithOpenAttempt(t, 1, 0, Repay)
	s.paid("op01")
	s.on(Event{On: RefundDenied, ID: "or01"})
	s.is(Refunding)
	s.has(RefundsDue("o"), "CNY", 100)
	if code := s.on(Event{On: Repaid}); code != "" {
		t.Fatalf("asking again: %s", code)
	}
	if code := s.on(Event{On: Repaid}); code != InvalidState {
		t.Errorf("asking while one is under way: %q, want %q", code, InvalidState)
	}
	s.on(Event{On: RefundMade, ID: "or02"})
	s.is(Refunded)
}

func TestMoneyThroughASecondAttemptGoesBackByItself(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.on(Event{On: Refused, ID: "op01"})
	s.is(Held)
	s.on(Event{On: Pay})
	s.paid("op02")
	s.paid("op01")
	s.is(Paid)
	if !s.c.Payments[0].Surplus {
		t.Errorf("the first attempt's money is not marked as surplus")
	}
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Paid)
	s.has("@stripe", "CNY", -100)
}

func TestMoneyThroughAnEndedAttemptClosesTheOpenOne(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.on(Event{On: Refused, ID: "op01"})
	s.on(Event{On: Pay})
	s.on(Event{On: Opened, ID: "op02"})
	s.paid("op01")
	s.is(Paid)
	if s.todo("op02") != DoClose {
		t.Errorf("the second attempt's task is %s, want %s", s.todo("op02"), DoClose)
	}
}

func TestRefundsNeverExceedWhatCameNorPiecesWhatWasSold(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.paid("op01")
	s.on(Event{On: Repaid, Amount: 60, Restock: []Restock{{"tee", 1}}})
	if code := s.on(Event{On: Repaid, Amount: 41}); code != ExceedsCapture {
		t.Errorf("41 of 40 left: %q, want %q", code, ExceedsCapture)
	}
	if code := s.on(Event{On: Repaid, Amount: 1, Restock: []Restock{{"tee", 1}}}); code != ExceedsSold {
		t.Errorf("the same piece again: %q, want %q", code, ExceedsSold)
	}
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(PartlyRefunded)
	s.on(Event{On: Repaid})
	s.on(Event{On: RefundMade, ID: "or02"})
	s.is(Refunded)
	s.has(Stock, "sku:tee", 1)
	s.has("@stripe", "CNY", 0)
}

func TestARefundThatFailsLaterIsReversed(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	s.paid("op01")
	s.on(Event{On: Repaid})
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.on(Event{On: RefundBroke, ID: "or01"})
	s.is(Paid)
	s.has(Revenue, "CNY", 100)
	s.has("@stripe", "CNY", -100)
}

func TestASecondClickOnPayIsTheSameAttempt(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	s.on(Event{On: Pay})
	if code := s.on(Event{On: Pay}); code != "" || len(s.c.Payments) != 1 {
		t.Errorf("second click: %q, %d attempts, want 1", code, len(s.c.Payments))
	}
}

func TestAnAttemptNeverPinsStockBeyondTheCap(t *testing.T) {
	s := newShop(t, 1, 0, Retake)
	for range MaxAttempts {
		s.now += 10
		s.on(Event{On: Pay})
		s.on(Event{On: Refused, ID: s.c.Order.Payment})
		if s.c.Order.ExpiresAt > s.c.Order.CapAt {
			t.Fatalf("held until %d, cap %d", s.c.Order.ExpiresAt, s.c.Order.CapAt)
		}
	}
	if code := s.on(Event{On: Pay}); code != InvalidState {
		t.Errorf("attempt %d: %q, want %q", MaxAttempts+1, code, InvalidState)
	}
}

// The end is the same for every order in which the same messages arrive.
func TestMessagesMayArriveInAnyOrder(t *testing.T) {
	messages := []Event{
		{On: Opened, ID: "op01", Ref: "cs"},
		{On: MoneyCame, ID: "op01", Amount: 100, Currency: "CNY"},
		{On: MoneyCame, ID: "op01", Amount: 100, Currency: "CNY"},
		{On: Opened, ID: "op01", Ref: "cs"},
	}
	permute(messages, func(order []Event) {
		s := newShop(t, 1, 0, Retake)
		s.on(Event{On: Pay})
		for _, ev := range order {
			s.on(ev)
		}
		s.is(Paid)
		s.has("@stripe", "CNY", -100)
	})
	refund := []Event{
		{On: RefundTaken, ID: "or01"}, {On: RefundMade, ID: "or01"}, {On: RefundBroke, ID: "or01"}, {On: RefundMade, ID: "or01"},
	}
	permute(refund, func(order []Event) {
		s := newShop(t, 1, 0, Retake)
		s.on(Event{On: Pay})
		s.paid("op01")
		s.on(Event{On: Repaid})
		for _, ev := range order {
			s.on(ev)
		}
		s.is(Paid)
		if s.c.Refunds[0].State != RefundFailed {
			t.Errorf("the refund is %s, want %s", s.c.Refunds[0].State, RefundFailed)
		}
		s.has("@stripe", "CNY", -100)
	})
}

func permute(evs []Event, visit func([]Event)) {
	var rec func(int)
	evs = slices.Clone(evs)
	rec = func(k int) {
		if k == len(evs) {
			visit(evs)
			return
		}
		for i := k; i < len(evs); i++ {
			evs[k], evs[i] = evs[i], evs[k]
			rec(k + 1)
			evs[k], evs[i] = evs[i], evs[k]
		}
	}
	rec(0)
}
