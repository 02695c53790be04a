package flow

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/holdfast-pay/holdfast/ledger"
)

// SplitsExceed is the code of an order that gives away more than its price.
const SplitsExceed = "splits_exceed_total"

// Split is the part of an order's money that is an account's: a seller's, or
// ours for a fee. Amounts are minor units of the order's currency. What no split
// names is Revenue.
//
// When the order is paid, each account gets its part in the entry that commits
// the goods, over its ceiling if it must be. A refund takes back from each, and
// from Revenue, in proportion to what it got. What an account has not got any
// more is paid to the buyer all the same, and is its Receivable from then on.
type Split struct {
	Account  string `json:"account"`
	Amount   int64  `json:"amount"`
	Refunded int64  `json:"refunded"`               // taken back by refunds, done and under way
	Capped   bool   `json:"capped,omitempty"`       // the account has a ceiling
	Over     bool   `json:"over_ceiling,omitempty"` // it came to an account that was full
}

// Part is what a refund has taken back from an account.
type Part struct {
	Account    string `json:"account"`
	Amount     int64  `json:"amount"`
	Receivable int64  `json:"receivable,omitempty"` // of that: it had not got it, and owes it
}

// Accounts of what the receivers of splits owe. It is paid by a Transfer to
// Advanced, which the ledger never lets be more than is owed.
const (
	Advanced ledger.Account = "@advanced"   // what we have paid to buyers in their stead
	Owing    ledger.Account = "@receivable" // the other side of Receivable
)

// Receivable is what an account owes us.
func Receivable(account string) ledger.Account { return ledger.Account("receivable/" + account) }

// OfSplit says whether an order has to do with the account of the ledger for a split
// only: that it has too little is for Event.Has.
func OfSplit(a ledger.Account) bool {
	return strings.HasPrefix(string(a), string(Wallet(""))) || strings.HasPrefix(string(a), string(Room("")))
}

// checkSplits holds the splits against the total, once that is known.
func (o Order) checkSplits() *Refusal {
	left := o.Total
	for _, s := range o.Splits {
		if left -= s.Amount; left < 0 {
			return &Refusal{SplitsExceed, "the splits are more than the order's total"}
		}
	}
	return nil
}

// bookSplits pays an order's money to whom it belongs.
func (w *work) bookSplits() {
	o := &w.Case.Order
	from, rest := Clearing(w.payment.Gateway), o.Total
	for i := range o.Splits {
		w.credit(from, &o.Splits[i], o.Splits[i].Amount)
		rest -= o.Splits[i].Amount
	}
	w.balance(from, Revenue, ledger.Asset(o.Currency), rest)
}

// credit gives an account money that is its own, whether there is room or not:
// nobody's ceiling keeps an order from being paid, or a refund from failing.
func (w *work) credit(from ledger.Account, s *Split, amount int64) {
	asset := ledger.Asset(w.Case.Order.Currency)
	w.move(from, Wallet(s.Account), asset, amount)
	if _, full := w.ev.Has[Room(s.Account)]; full {
		s.Over = true
	}
	if s.Capped && !s.Over {
		w.move(Room(s.Account), Filled(s.Account), asset, amount)
	}
}

// takeBack sets amount aside for the buyer, each account's part of it and ours.
// No account keeps the buyer waiting: what it has not got, we pay, and it owes us.
func (w *work) takeBack(amount int64) (parts []Part) {
	o := &w.Case.Order
	asset, due := ledger.Asset(o.Currency), RefundsDue(o.ID)
	for i, n := range o.shares(amount) {
		if i == len(o.Splits) {
			w.balance(Revenue, due, asset, n)
			break
		}
		if n == 0 {
			continue
		}
		s, there := &o.Splits[i], n
		if has, short := w.ev.Has[Wallet(s.Account)]; short {
			there = min(n, has)
		}
		w.balance(Wallet(s.Account), due, asset, there)
		if s.Capped && !s.Over {
			w.balance(Filled(s.Account), Room(s.Account), asset, there)
		}
		if n > there {
			w.owe(s.Account, n-there)
		}
		s.Refunded += n
		parts = append(parts, Part{s.Account, n, n - there})
	}
	return parts
}

// owe pays the buyer in the stead of an account.
func (w *work) owe(account string, amount int64) {
	asset := ledger.Asset(w.Case.Order.Currency)
	w.move(Advanced, RefundsDue(w.Case.Order.ID), asset, amount)
	w.move(Owing, Receivable(account), asset, amount)
	w.Events = append(w.Events, ledger.Event{Type: "account.receivable", Subject: account, Body: marshal(map[string]any{
		"account": account, "amount": amount, "currency": asset, "order": w.Case.Order.ID, "refund": w.refund.ID})})
}

// giveBack is for a refund that was not made: each gets its part again. What an
// account owes for it stays owed, and is now there to be taken.
func (w *work) giveBack() {
	o := &w.Case.Order
	due, rest := RefundsDue(o.ID), w.refund.Amount
	for _, p := range w.refund.Splits {
		for i := range o.Splits {
			if s := &o.Splits[i]; s.Account == p.Account {
				w.credit(due, s, p.Amount)
				s.Refunded -= p.Amount
			}
		}
		rest -= p.Amount
	}
	w.balance(due, Revenue, ledger.Asset(o.Currency), rest)
}

// shares divides the next amount that is refunded: a part for each split, and the
// last for Revenue.
func (o Order) shares(amount int64) []int64 {
	got, back := make([]int64, 0, len(o.Splits)+1), make([]int64, 0, len(o.Splits)+1)
	ours, ourBack := o.Paid, o.Refunded+o.Refunding
	for _, s := range o.Splits {
		got, back = append(got, s.Amount), append(back, s.Refunded)
		ours -= s.Amount
		ourBack -= s.Refunded
	}
	return divide(amount, append(got, ours), append(back, ourBack))
}

// divide takes amount from those who got, and of it have given back: so much of
// each that all that is back then is in proportion to what each got. Whole units
// first; the rest goes by the largest remainder, the first of equals first. The
// parts add up to amount, which is at most what is not back yet, and nobody gives
// more than it got.
//
// To divide each refund by itself would be simpler, and would take a hundred
// refunds of one cent all from the same. Nor is it enough to subtract what is back
// from a new division of the sum: there a larger sum can mean a smaller part.
func divide(amount int64, got, back []int64) []int64 {
	total, after := int64(0), amount
	for i := range got {
		total += got[i]
		after += back[i]
	}
	parts, behind := make([]int64, len(got)), make([]lag, len(got))
	for i := range got {
		hi, lo := bits.Mul64(uint64(got[i]), uint64(after))
		whole, rest := bits.Div64(hi, lo, uint64(total))
		owed := int64(whole) - back[i]
		parts[i] = max(owed, 0)
		behind[i] = lag{owed - parts[i], rest}
		amount -= parts[i]
	}
	for ; amount > 0; amount-- {
		most := 0
		for i := range behind {
			if behind[i].compare(behind[most]) > 0 {
				most = i
			}
		}
		parts[most]++
		behind[most].units--
	}
	for ; amount < 0; amount++ {
		least := -1
		for i := range behind {
			if parts[i] > 0 && (least < 0 || behind[i].compare(behind[least]) <= 0) {
				least = i
			}
		}
		parts[least]--
		behind[least].units++
	}
	return parts
}

// lag is by how much somebody has given too little: units, and rest of total more.
type lag struct {
	units int64
	rest  uint64
}

func (l lag) compare(o lag) int {
	return cmp.Or(cmp.Compare(l.units, o.units), cmp.Compare(l.rest, o.rest))
}
