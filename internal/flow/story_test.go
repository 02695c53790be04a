package flow

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

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

// A refund that its gateway holds back is under way until it is done, and says why.
func TestARefundThatIsHeldBackSaysSoAndIsDoneInTheEnd(t *testing.T) {
	s := expiredWithOpenAttempt(t, 1, 0, Repay)
	s.paid("op01")
	s.on(Event{On: RefundTaken, ID: "or01"})
	s.on(Event{On: RefundTaken, ID: "or01", Code: "ABNORMAL"})
	s.is(Refunding)
	if r := s.c.Refunds[0]; r.State != RefundAccepted || r.Code != "ABNORMAL" || s.todo("or01") != DoLook {
		t.Errorf("got %+v, and then %s", r, s.todo("or01"))
	}
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.has(RefundsDue("o"), "CNY", 0)
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
