package flow

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/ledger"
)

// verifyMoney holds the accounts that the order pays against its splits and
// refunds: what it brought is there to the last minor unit, and what somebody has
// not got any more is owed.
func (s *shop) verifyMoney() {
	s.t.Helper()
	var theirs, advanced int64
	for _, p := range s.c.Order.Splits {
		if p.Refunded < 0 || p.Refunded > p.Amount {
			s.t.Errorf("%s got %d and gave back %d", p.Account, p.Amount, p.Refunded)
		}
		var back, owed int64
		for _, r := range s.c.Refunds {
			for _, part := range r.Splits {
				if part.Account != p.Account {
					continue
				}
				owed += part.Receivable
				if r.State != RefundRefused && r.State != RefundFailed {
					back += part.Amount
				}
			}
		}
		if back != p.Refunded {
			s.t.Errorf("%s gave back %d, its refunds say %d", p.Account, p.Refunded, back)
		}
		has := int64(0)
		if s.c.Order.PaidAt != 0 {
			has = p.Amount - p.Refunded
		}
		theirs += has
		owed -= s.collected[p.Account]
		advanced += owed
		s.has(Receivable(p.Account), "CNY", owed)
		s.has(Wallet(p.Account), "CNY", has+owed-s.spent[p.Account])
		if p.Capped && !p.Over {
			s.has(Room(p.Account), "CNY", splitCeiling-s.balance(Wallet(p.Account), "CNY"))
		}
	}
	s.has(Advanced, "CNY", -advanced)
	s.has(Owing, "CNY", -advanced)
	s.has(Revenue, "CNY", s.c.Order.Paid-s.c.Order.Refunded-s.c.Order.Refunding-theirs)
}

// splitCeiling is the ceiling of capped accounts.
const splitCeiling = 60

// room makes the room of an account with a ceiling.
func (s *shop) room(account string, n int64) {
	s.write("room", []ledger.Op{ledger.Move(ledger.Posting{From: Filled(account), To: Room(account), Asset: "CNY", Amount: n})}, nil)
}

// spend takes money out of an account, if it is there.
func (s *shop) spend(account string, n int64) {
	ops := []ledger.Op{ledger.Move(ledger.Posting{From: Wallet(account), To: Bank, Asset: "CNY", Amount: n})}
	for _, p := range s.c.Order.Splits {
		if p.Account == account && p.Capped {
			ops = append(ops, ledger.Move(ledger.Posting{From: Filled(account), To: Room(account), Asset: "CNY", Amount: n}))
		}
	}
	if res := s.write("spend", ops, nil); !res.Refused() {
		s.spent[account] += n
	}
}

// collect takes n of what an account owes, if it owes and has so much.
func (s *shop) collect(account string, n int64) {
	capped := slices.ContainsFunc(s.c.Order.Splits, func(p Split) bool { return p.Account == account && p.Capped })
	t := Transfer{From: account, To: string(Advanced), Currency: "CNY", Amount: n}
	if res := s.write("collect", t.Ops(capped, false), nil); !res.Refused() {
		s.collected[account] += n
	}
}

func paidSplit(t *testing.T, splits ...Split) *shop {
	s := newSplitShop(t, 1, 0, splits, Retake)
	s.on(Event{On: Pay})
	s.paid("op01")
	s.is(Paid)
	return s
}

func TestAPaidOrderPaysItsSplitsAndTheRestIsOurs(t *testing.T) {
	s := paidSplit(t, Split{Account: "ann", Amount: 70}, Split{Account: "fee", Amount: 10})
	s.has(Wallet("ann"), "CNY", 70)
	s.has(Wallet("fee"), "CNY", 10)
	s.has(Revenue, "CNY", 20)
	s.has("@stripe", "CNY", -100)
}

func TestSplitsOfTheWholeLeaveNothingForUs(t *testing.T) {
	s := paidSplit(t, Split{Account: "ann", Amount: 100})
	s.has(Revenue, "CNY", 0)
	s.on(Event{On: Repaid})
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.has(Wallet("ann"), "CNY", 0)
}

func TestSplitsAreNoMoreThanTheTotal(t *testing.T) {
	o := Order{ID: "o", Currency: "CNY", Lines: []Line{{SKU: "tee", Quantity: 1, Price: 100}},
		Splits: []Split{{Account: "ann", Amount: 60}, {Account: "bob", Amount: 41}}}
	if _, refusal := Place(o); refusal == nil || refusal.Code != SplitsExceed {
		t.Errorf("got %v, want %s", refusal, SplitsExceed)
	}
}

func TestLateMoneyThatIsRepaidNeverReachesASeller(t *testing.T) {
	s := newSplitShop(t, 1, 0, []Split{{Account: "ann", Amount: 70}}, Repay)
	s.on(Event{On: Pay})
	s.now += 60_000
	s.on(Event{On: Due})
	s.on(Event{On: GiveUp})
	s.paid("op01")
	s.is(Refunding)
	s.on(Event{On: RefundMade, ID: "or01"})
	s.is(Refunded)
	s.has(Wallet("ann"), "CNY", 0)
	if len(s.c.Refunds[0].Splits) != 0 {
		t.Errorf("the refund took %+v", s.c.Refunds[0].Splits)
	}
}

func TestARefundNeverWaitsForTheSeller(t *testing.T) {
	s := paidSplit(t, Split{Account: "ann", Amount: 80})
	s.spend("ann", 50)
	s.on(Event{On: Repaid})
	s.has(Wallet("ann"), "CNY", 0)
	s.has(Receivable("ann"), "CNY", 50)
	if got, want := s.c.Refunds[0].Splits, []Part{{"ann", 80, 50}}; !slices.Equal(got, want) {
		t.Errorf("the refund took %+v, want %+v", got, want)
	}
	s.on(Event{On: RefundMade, ID: "or01"})
	s.has("@stripe", "CNY", 0)
	s.collect("ann", 1)
	s.has(Receivable("ann"), "CNY", 50) // there is nothing to take
}

func TestARefundThatWasNotMadeGivesEachItsPartAgain(t *testing.T) {
	for _, broken := range [][]Event{{{On: RefundDenied}}, {{On: RefundTaken}, {On: RefundBroke}}, {{On: RefundMade}, {On: RefundBroke}}} {
		s := paidSplit(t, Split{Account: "ann", Amount: 80})
		s.spend("ann", 50)
		s.on(Event{On: Repaid})
		for _, ev := range broken {
			ev.ID = "or01"
			s.on(ev)
		}
		s.is(Paid)
		s.has(Revenue, "CNY", 20)
		s.has(Receivable("ann"), "CNY", 50)
		s.has(Wallet("ann"), "CNY", 80)
		s.collect("ann", 50)
		s.collect("ann", 30) // more than is owed: refused
		s.has(Wallet("ann"), "CNY", 30)
		s.has(Receivable("ann"), "CNY", 0)
	}
}

func TestNoCeilingKeepsAnOrderFromBeingPaid(t *testing.T) {
	s := newSplitShop(t, 1, 0, []Split{{Account: "ann", Amount: 70, Capped: true}, {Account: "bob", Amount: 20, Capped: true}}, Retake)
	s.room("ann", splitCeiling)
	s.room("bob", splitCeiling)
	s.on(Event{On: Pay})
	s.paid("op01")
	s.is(Paid)
	if o := s.c.Order; !o.Splits[0].Over || o.Splits[1].Over {
		t.Errorf("got %+v, want the first over its ceiling, and not the second", o.Splits)
	}
	s.has(Room("bob"), "CNY", 40)
	s.on(Event{On: Repaid, Amount: 50})
	s.has(Room("bob"), "CNY", 50)
}

// Whatever is refunded, fails, is spent and collected in between: the ledger takes
// every step, and everybody has what verifyMoney says.
func TestNoSequenceOfRefundsLosesAMinorUnit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		left, splits := int64(100), []Split{}
		for _, account := range []string{"ann", "bob", "cid"} {
			if n := rapid.Int64Range(0, left).Draw(rt, account); n > 0 {
				splits = append(splits, Split{Account: account, Amount: n, Capped: rapid.Bool().Draw(rt, "capped")})
				left -= n
			}
		}
		s := newSplitShop(t, 1, 0, splits, Retake)
		for _, p := range splits {
			s.room(p.Account, splitCeiling)
		}
		s.on(Event{On: Pay})
		s.paid("op01")
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			account, n := rapid.SampledFrom([]string{"ann", "bob", "cid"}).Draw(rt, "account"), rapid.Int64Range(1, 40).Draw(rt, "n")
			switch on := rapid.SampledFrom([]On{"spend", "collect", Repaid, RefundTaken, RefundMade, RefundDenied, RefundBroke}).Draw(rt, "on"); on {
			case "spend":
				s.spend(account, n)
			case "collect":
				s.collect(account, n)
			case Repaid:
				s.on(Event{On: on, Amount: n})
			default:
				s.on(Event{On: on, ID: RefundID("o", rapid.IntRange(1, 4).Draw(rt, "refund"))})
			}
			s.verifyMoney()
			if t.Failed() {
				rt.Fatalf("%+v", s.c)
			}
		}
		if s.on(Event{On: Repaid}); s.c.Order.Refunding+s.c.Order.Refunded == 100 {
			for _, p := range s.c.Order.Splits {
				if p.Refunded != p.Amount {
					rt.Fatalf("all is refunded, and of %s's %d only %d", p.Account, p.Amount, p.Refunded)
				}
			}
		}
	})
}

// naiveDivide gives each unit of amount to whoever is furthest behind.
func naiveDivide(amount int64, got, back []int64) []int64 {
	total, after := int64(0), amount
	for i := range got {
		total, after = total+got[i], after+back[i]
	}
	parts := make([]int64, len(got))
	for range amount {
		most, lag := 0, (*big.Rat)(nil)
		for i := range got {
			l := big.NewRat(got[i]*after, total)
			l.Sub(l, big.NewRat(back[i]+parts[i], 1))
			if lag == nil || l.Cmp(lag) > 0 {
				most, lag = i, l
			}
		}
		parts[most]++
	}
	return parts
}

func TestARefundIsDividedAsUnitByUnitToWhoIsFurthestBehind(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		got := rapid.SliceOfN(rapid.Int64Range(0, 12), 1, 8).Draw(rt, "got")
		got[0]++
		back, left := make([]int64, len(got)), int64(0)
		for _, n := range got {
			left += n
		}
		var made [][]int64
		for left > 0 {
			if len(made) > 0 && rapid.IntRange(0, 3).Draw(rt, "breaks") == 0 {
				i := rapid.IntRange(0, len(made)-1).Draw(rt, "which")
				for j, n := range made[i] {
					back[j] -= n
					left += n
				}
				made = slices.Delete(made, i, i+1)
				continue
			}
			n := rapid.Int64Range(1, min(left, 4)).Draw(rt, "amount")
			parts := divide(n, got, back)
			if want := naiveDivide(n, got, back); !slices.Equal(parts, want) {
				rt.Fatalf("%d of %v, %v back: got %v, want %v", n, got, back, parts, want)
			}
			var sum int64
			for i, p := range parts {
				back[i] += p
				sum += p
				if p < 0 || back[i] > got[i] {
					rt.Fatalf("%d of %v: got %v, now %v back", n, got, parts, back)
				}
			}
			if sum != n {
				rt.Fatalf("%d of %v: got %v", n, got, parts)
			}
			left -= n
			made = append(made, parts)
		}
		if !slices.Equal(back, got) {
			rt.Fatalf("all is refunded: %v of %v", back, got)
		}
	})
}

func TestManySmallRefundsAreNotAllOneAccounts(t *testing.T) {
	got, back := []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 90}, make([]int64, 11)
	for range 50 {
		for i, p := range divide(1, got, back) {
			back[i] += p
		}
	}
	if small := 50 - back[10]; small < 4 || small > 6 {
		t.Errorf("of 50, ten who got a tenth gave %d, want about 5: %v", small, back)
	}
	if parts := divide(ledger.MaxAmount, []int64{ledger.MaxAmount - 1, 1}, []int64{0, 0}); !slices.Equal(parts, []int64{ledger.MaxAmount - 1, 1}) {
		t.Errorf("the largest amount: got %v", parts)
	}
}
