package flow

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever happens in whatever order, however often: the ledger accepts every
// step, goods are sold if and only if the order is paid, and what is due to the
// buyer is what its refunds say (shop.verify).
func TestNoSequenceOfEventsBreaksAnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		late := rapid.SliceOfN(rapid.SampledFrom([]Late{Retake, Backorder, Repay}), 0, 3).Draw(rt, "late")
		splits := rapid.SampledFrom([][]Split{nil, {{Account: "ann", Amount: 60}, {Account: "fee", Amount: 7}}}).Draw(rt, "splits")
		s := newSplitShop(t, rapid.Int64Range(1, 2).Draw(rt, "stock"), rapid.Int64Range(0, 1).Draw(rt, "backorder"), splits, late...)
		kinds := []On{Pay, Pay, Cancel, Fulfil, Repaid, Due, GiveUp, Opened, Refused, MoneyCame, MoneyCame, ClosedThere,
			RefundTaken, RefundMade, RefundMade, RefundDenied, RefundBroke}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.now += Time(rapid.SampledFrom([]int64{0, 10, 2000, 60_000}).Draw(rt, "wait"))
			ev := Event{On: rapid.SampledFrom(kinds).Draw(rt, "on"), Amount: 100, Currency: "CNY"}
			switch ev.On {
			case Pay:
				ev.Method = rapid.SampledFrom([]string{"checkout", "card", "qr"}).Draw(rt, "method")
			case Opened, Refused, MoneyCame, ClosedThere:
				ev.ID = PaymentID("o", rapid.IntRange(1, 4).Draw(rt, "payment"))
				if rapid.IntRange(0, 9).Draw(rt, "mismatch") == 0 {
					ev.Amount = 99
				}
			case RefundTaken, RefundMade, RefundDenied, RefundBroke:
				ev.ID = RefundID("o", rapid.IntRange(1, 3).Draw(rt, "refund"))
			case Repaid:
				ev.Amount = rapid.SampledFrom([]int64{0, 30, 100}).Draw(rt, "amount")
				if rapid.Bool().Draw(rt, "restock") {
					ev.Restock = []Restock{{"tee", 1}}
				}
			}
			s.on(ev)
			s.verify()
			if t.Failed() {
				rt.Fatalf("after %s: %+v", ev.On, s.c)
			}
		}
	})
}
