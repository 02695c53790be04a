package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-pay/holdfast/ledger"
)

// PayoutFees is what accounts have paid us for their payouts.
const PayoutFees ledger.Account = "payout-fees"

// Daily is what an account may still pay out on a day, and Spent what it has.
// Both come from Days, in the asset Day.
const Days ledger.Account = "@daily"

func Daily(account string) ledger.Account { return ledger.Account("daily/" + account) }
func Spent(account string) ledger.Account { return ledger.Account("spent/" + account) }

// Day is the asset of a day's limit: minor units of currency.
func Day(currency, day string) ledger.Asset { return ledger.Asset("daily:" + currency + ":" + day) }

// DailyGrant gives an account its limit of a day. The entry's ID makes it happen
// once.
func DailyGrant(account string, t Terms, day string) ledger.Entry {
	asset := Day(t.Currency, day)
	return ledger.Entry{ID: "daily/" + account + "/" + string(asset),
		Ops: []ledger.Op{ledger.Move(ledger.Posting{From: Days, To: Daily(account), Asset: asset, Amount: t.PerDay})}}
}

// FeeID and DayID name the holds of a payout besides the one that has its ID.
func FeeID(payout string) string { return payout + "-f" }
func DayID(payout string) string { return payout + "-d" }

// DestinationRef is how an account's payouts to one destination are found.
func (p Payout) DestinationRef() string {
	d := sha256.Sum256(marshal([]string{p.Account, p.Gateway, p.Destination}))
	return "to/" + hex.EncodeToString(d[:])
}

// SelfApproval is the code of an approval by whoever asked for the payout.
const SelfApproval = "self_approval"

func (p Payout) record() ledger.Record {
	return ledger.Record{Kind: KindPayout, ID: p.ID, Version: p.Version, State: string(p.State),
		Owner: PayoutsOf(p.Account), Ref: p.DestinationRef(), Body: marshal(p)}
}

// PayoutsOf is the owner of an account's payouts.
func PayoutsOf(account string) string { return "payouts/" + account }

var needsApproval = &guard{"a second person has to approve it", func(w *work) bool { return w.Case.Payout.SecondPerson }}

var mayBeSent = &guard{"nobody wants it back, and the gateway can't have forgotten the number", func(w *work) bool {
	return w.Case.Payout.Recall == "" && w.now < w.Case.Payout.SentAt.Add(SendFor)
}}

var neverArrived = &guard{"no call with the number can be under way", func(w *work) bool {
	return w.now >= w.Case.Payout.SentAt.Add(ArriveFor)
}}

var recalling = &guard{"the gateway is just being asked", func(w *work) bool { return w.Case.Payout.Recall == RecallWanted }}

var recallable = &guard{"the gateway can take it back", func(w *work) bool { return w.ev.Recall }}

var wantedBack = &guard{"somebody wanted it back", func(w *work) bool { return w.Case.Payout.Recall != "" }}

var neverSentBack = &guard{wantedBack.says + ", and " + neverArrived.says, func(w *work) bool {
	return wantedBack.test(w) && neverArrived.test(w)
}}

var watched = &guard{"it was paid not long ago", func(w *work) bool {
	return w.now < w.Case.Payout.PaidAt.Add(WatchFor)
}}

var roomIsShort = &guard{"the account is at its ceiling", func(w *work) bool {
	return w.ev.Short[ledger.Asset(w.Case.Payout.Currency)] > 0
}}

// eachPart is an op for every hold of the payout.
func (w *work) eachPart(op func(hold string) ledger.Op) {
	p := w.Case.Payout
	w.op(op(p.ID))
	if p.Fee > 0 {
		w.op(op(FeeID(p.ID)))
	}
	if p.Day != "" {
		w.op(op(DayID(p.ID)))
	}
}

var holdMoney = action{"hold the money, the fee, and the day's limit", func(w *work) *Refusal {
	p := w.Case.Payout
	money := ledger.Asset(p.Currency)
	part := map[string]ledger.Posting{
		p.ID:        {From: Wallet(p.Account), To: Clearing(p.Gateway), Asset: money, Amount: p.Amount},
		FeeID(p.ID): {From: Wallet(p.Account), To: PayoutFees, Asset: money, Amount: p.Fee},
		DayID(p.ID): {From: Daily(p.Account), To: Spent(p.Account), Asset: Day(p.Currency, p.Day), Amount: p.Amount},
	}
	w.eachPart(func(hold string) ledger.Op { return ledger.Reserve(hold, part[hold], 0, 0) })
	w.touchPayout()
	return nil
}}

var holdAndSend = action{"hold the money, the fee, and the day's limit; tell the gateway", func(w *work) *Refusal {
	w.next(DoPayout, w.now)
	return holdMoney.do(w)
}}

var approve = action{"tell the gateway", func(w *work) *Refusal {
	p := w.Case.Payout
	if w.ev.By == "" || w.ev.By == p.RequestedBy {
		return &Refusal{SelfApproval, "somebody else than who asked for it has to approve it"}
	}
	p.ApprovedBy = w.ev.By
	w.next(DoPayout, w.now)
	return nil
}}

var firstCall = action{"from here on its number may be at the gateway", func(w *work) *Refusal {
	w.Case.Payout.SentAt = w.now
	w.touchPayout()
	return nil
}}

var sameNumber = action{"send it again, under the same number", func(w *work) *Refusal {
	w.touchPayout()
	return nil
}}

// askFirst is for who finds that another one began the call and never ended it.
var askFirst = action{"ask the gateway before anything is sent again", func(w *work) *Refusal {
	w.next(DoTrace, w.now)
	return nil
}}

// askLater turns back to a wish that was not heard. After silence it asks for the
// state first: the wish may never be answered.
var askLater = action{"keep the money held; ask later", func(w *work) *Refusal {
	do := DoTrace
	if w.Case.Payout.Recall == RecallWanted && w.ev.On != NoAnswer {
		do = DoRecall
	}
	w.next(do, w.now.Add(w.ev.Poll))
	if w.ev.On == PayoutTaken {
		w.Case.Payout.Confirm = w.ev.Confirm
	}
	return nil
}}

var recall = action{"keep the money held; ask the gateway to take it back", func(w *work) *Refusal {
	w.Case.Payout.Recall = RecallWanted
	w.next(DoRecall, w.now)
	w.announce("payout.recall")
	return nil
}}

var recalled = action{"keep the money held; ask what becomes of it", func(w *work) *Refusal {
	w.Case.Payout.Recall = RecallAsked
	w.next(DoTrace, w.now.Add(w.ev.Poll))
	return nil
}}

var sendAgain = action{"keep the money held; send it again, under the same number", func(w *work) *Refusal {
	w.next(DoPayout, w.now.Add(w.ev.Poll))
	return nil
}}

var tryLater = action{"nothing was sent; try later", sendAgain.do}

var commitMoney = action{"the money has left; ask now and then whether it came back", func(w *work) *Refusal {
	p := w.Case.Payout
	p.PaidAt = w.now
	w.eachPart(ledger.Commit)
	if p.Capped {
		w.move(Filled(p.Account), Room(p.Account), ledger.Asset(p.Currency), p.Amount+p.Fee)
	}
	w.next(DoTrace, w.now.Add(WatchEvery))
	return nil
}}

var releaseMoney = action{"release the money, the fee, and the day's limit", func(w *work) *Refusal {
	w.eachPart(ledger.Void)
	w.next(DoNone, 0)
	return nil
}}

var watch = action{"ask again tomorrow whether it came back", func(w *work) *Refusal {
	w.next(DoTrace, w.now.Add(WatchEvery))
	return nil
}}

var stopWatching = action{"it is final", func(w *work) *Refusal {
	w.next(DoNone, 0)
	return nil
}}

var moneyBackIn = action{"move the money back to the account; the fee stays", func(w *work) *Refusal {
	p := w.Case.Payout
	w.move(Clearing(p.Gateway), Wallet(p.Account), ledger.Asset(p.Currency), p.Amount)
	if p.Capped && !p.Over {
		w.move(Room(p.Account), Filled(p.Account), ledger.Asset(p.Currency), p.Amount)
	}
	w.next(DoNone, 0)
	return nil
}}

var moneyBackOver = action{"move the money back to the account, over its ceiling", func(w *work) *Refusal {
	w.Case.Payout.Over = true
	return moneyBackIn.do(w)
}}

// contradicted is for a gateway that says of a payout that did not happen, or
// must not, that it is paid, or that has another payout under its number. Nothing
// here can be right: a person has to look.
var contradicted = action{"leave all as it is; tell people", func(w *work) *Refusal {
	p := w.Case.Payout
	if p.Code == Contradiction {
		return nil
	}
	p.Code = Contradiction
	w.touchPayout()
	w.announce("payout.contradiction")
	return nil
}}

// Contradiction is the code of a payout that its gateway says something about
// that can't be true of it.
const Contradiction = "contradiction"

// next keeps what the gateway said, and sets what is to be done at due.
func (w *work) next(do Do, due Time) {
	p := w.Case.Payout
	p.Ref = cmp.Or(w.ev.Ref, p.Ref)
	p.Code = cmp.Or(w.ev.Code, p.Code)
	p.NextTryAt = due
	if w.ev.On != NoAnswer {
		p.Confirm = ""
	}
	w.touchPayout()
	if do == DoNone && len(w.Case.Tasks) == 0 {
		return
	}
	tries := 0
	if len(w.Case.Tasks) > 0 && (w.ev.On == NoAnswer || w.ev.On == NotThere) {
		tries = w.Case.Tasks[0].Tries + 1
	}
	w.task(p.ID, p.Gateway, do, due)
	w.Case.Tasks[0].Tries, w.Case.Tasks[0].Error = tries, w.ev.Why
}
