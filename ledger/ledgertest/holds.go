package ledgertest

import (
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

var holds = []claim{
	{"ExpireBeforeTheDeadlineIsRefused", expireTooEarly},
	{"ACommitAfterTheDeadlineWinsUntilItIsExpired", lateCommitWins},
	{"LatePaymentMovesNothing", latePayment},
	{"ExtendMovesTheDeadlineUpToTheCap", extendToCap},
	{"AHoldThatIsNeverDueIsNotExpired", neverDue},
	{"PartsAreCommittedAndTheRestIsKeptOrReleased", parts},
	{"WhatWasCommittedIsNotReleasedAgain", voidAfterPart},
	{"AFinalHoldSaysHowItEnded", finalHolds},
	{"AHoldIDIsUsedOnce", holdIDOnce},
	{"NoStepOnAHoldThatIsNotThere", unknownHold},
	{"ACommitNeverLacksFunds", commitNeverLacksFunds},
	{"AHoldLivesAndDiesInOneEntry", holdInOneEntry},
}

func expireTooEarly(w *world) {
	w.give("stock", tee, 1)
	w.ok("hold", take("h1", tee, 1))
	w.clock.set(at(9, 15) - 1)
	w.refused(ledger.NotDue, "early", ledger.Expire("h1"))
	w.has("stock", tee, 1, 1)
	w.clock.set(at(9, 15))
	w.ok("due", ledger.Expire("h1"))
	w.has("stock", tee, 1, 0)
	w.holdIs("h1", ledger.Expired, 0, 1)
}

func lateCommitWins(w *world) {
	w.give("stock", tee, 1)
	w.ok("hold", take("h1", tee, 1))
	w.clock.set(at(23, 0))
	w.refused(ledger.Insufficient, "time alone frees nothing", take("h2", tee, 1))
	w.ok("late", ledger.Commit("h1"))
	w.has("stock", tee, 0, 0)
	w.has("sold", tee, 1, 0)
	w.refused(ledger.HoldFinal, "sweep", ledger.Expire("h1"))
}

func latePayment(w *world) {
	w.give("stock", tee, 1)
	w.ok("hold", take("h1", tee, 1))
	w.clock.set(at(9, 16))
	w.ok("sweep", ledger.Expire("h1"))
	before := w.head()
	res := w.refusedEntry(ledger.HoldFinal, ledger.Entry{ID: "paid",
		Ops:     []ledger.Op{ledger.Move(post("@stripe", "revenue", cny, 4900)), ledger.Commit("h1")},
		Records: []ledger.Record{{Kind: "order", ID: "o1", Version: 1, State: "paid"}},
		Events:  []ledger.Event{{Type: "order.paid", Subject: "o1"}}})
	if res.Hold != ledger.Expired || res.Op != 1 {
		w.Errorf("got %+v, want op 1 refused because the hold is %s", res, ledger.Expired)
	}
	if after := w.head(); after != before {
		w.Errorf("the journal went from %+v to %+v", before, after)
	}
	w.has("stock", tee, 1, 0)
	w.has("revenue", cny, 0, 0)
	w.has("@stripe", cny, 0, 0)
}

func extendToCap(w *world) {
	w.give("stock", tee, 2)
	w.refused(ledger.BeyondCap, "born too long", ledger.Reserve("h0", post("stock", "sold", tee, 1), at(9, 31), at(9, 30)))
	w.ok("hold", ledger.Reserve("h1", post("stock", "sold", tee, 1), at(9, 15), at(9, 30)))
	w.ok("longer", ledger.Extend("h1", at(9, 20)))
	w.ok("shorter changes nothing", ledger.Extend("h1", at(9, 10)))
	w.clock.set(at(9, 15))
	w.refused(ledger.NotDue, "extended", ledger.Expire("h1"))
	w.refused(ledger.BeyondCap, "too long", ledger.Extend("h1", at(9, 30)+1))
	w.ok("after its deadline", ledger.Extend("h1", at(9, 30)))
	w.clock.set(at(9, 30))
	w.ok("due", ledger.Expire("h1"))
	w.refused(ledger.HoldFinal, "too late", ledger.Extend("h1", at(9, 30)))
	w.has("stock", tee, 2, 0)
	w.ok("no cap", take("h2", tee, 1))
	w.ok("next year", ledger.Extend("h2", at(9, 0)+365*24*3600*1000))
}

func neverDue(w *world) {
	w.give("seller", cny, 5)
	w.ok("payout", ledger.Reserve("p1", post("seller", "@bank", cny, 5), 0, 0))
	w.ok("extend", ledger.Extend("p1", at(9, 1)))
	w.clock.set(at(23, 0))
	w.refused(ledger.NotDue, "sweep", ledger.Expire("p1"))
	w.has("seller", cny, 5, 5)
}

func parts(w *world) {
	w.give("stock", tee, 20)
	w.ok("hold", take("h1", tee, 10))
	w.ok("first parcel", ledger.CommitPart("h1", 4, true))
	w.has("stock", tee, 16, 6)
	w.holdIs("h1", ledger.Held, 4, 0)
	if res := w.refused(ledger.ExceedsHold, "too much", ledger.CommitPart("h1", 7, true)); res.Available != 6 {
		w.Errorf("got %d left, want 6", res.Available)
	}
	w.ok("last parcel", ledger.CommitPart("h1", 5, false))
	w.has("stock", tee, 11, 0)
	w.has("sold", tee, 9, 0)
	w.holdIs("h1", ledger.Committed, 9, 1)

	w.ok("hold 2", take("h2", tee, 3))
	w.ok("part 1", ledger.CommitPart("h2", 1, true))
	w.ok("part 2", ledger.CommitPart("h2", 2, true))
	w.holdIs("h2", ledger.Committed, 3, 0)

	w.ok("hold 3", take("h3", tee, 3))
	w.ok("part 3", ledger.CommitPart("h3", 1, true))
	w.ok("the rest", ledger.Commit("h3"))
	w.holdIs("h3", ledger.Committed, 3, 0)
	w.has("stock", tee, 5, 0)
}

func voidAfterPart(w *world) {
	w.give("stock", tee, 10)
	w.ok("hold", take("h1", tee, 10))
	w.ok("invoice", ledger.CommitPart("h1", 7, true))
	w.ok("cancel", ledger.Void("h1"))
	w.has("stock", tee, 3, 0)
	w.has("sold", tee, 7, 0)
	w.holdIs("h1", ledger.Voided, 7, 3)
	w.refused(ledger.HoldFinal, "cancel again", ledger.Void("h1"))
	w.has("stock", tee, 3, 0)
}

func finalHolds(w *world) {
	w.give("stock", tee, 3)
	ends := []struct {
		state ledger.HoldState
		op    func(string) ledger.Op
	}{{ledger.Committed, ledger.Commit}, {ledger.Voided, ledger.Void}, {ledger.Expired, ledger.Expire}}
	for _, end := range ends {
		hold := string(end.state)
		w.ok("hold-"+hold, take(hold, tee, 1))
		w.clock.set(at(9, 15))
		w.ok("end-"+hold, end.op(hold))
		before := w.head()
		for i, op := range []ledger.Op{ledger.Commit(hold), ledger.CommitPart(hold, 1, true), ledger.Void(hold),
			ledger.Expire(hold), ledger.Extend(hold, at(10, 0))} {
			if res := w.refused(ledger.HoldFinal, fmt.Sprintf("again-%s-%d", hold, i), op); res.Hold != end.state {
				w.Errorf("%s of a hold that is %s: told %q", op.Kind, end.state, res.Hold)
			}
		}
		if after := w.head(); after != before {
			w.Errorf("steps on a hold that is %s wrote to the journal", end.state)
		}
	}
	w.has("stock", tee, 2, 0)
	w.has("sold", tee, 1, 0)
}

func holdIDOnce(w *world) {
	w.give("stock", tee, 5)
	w.ok("o1", take("h1", tee, 1))
	w.refused(ledger.HoldExists, "o2", take("h1", tee, 1))
	w.ok("void", ledger.Void("h1"))
	w.refused(ledger.HoldExists, "o3", take("h1", tee, 1))
	w.refused(ledger.HoldExists, "o4", take("h2", tee, 1), take("h2", tee, 1))
	w.has("stock", tee, 5, 0)
}

func unknownHold(w *world) {
	w.give("stock", tee, 5)
	for i, op := range []ledger.Op{ledger.Commit("no"), ledger.Void("no"), ledger.Expire("no"), ledger.Extend("no", at(10, 0))} {
		w.refused(ledger.HoldUnknown, fmt.Sprintf("step-%d", i), op)
	}
	w.has("stock", tee, 5, 0)
}

// commitNeverLacksFunds has the whole balance reserved: what a hold took when
// it was made is there when it is committed.
func commitNeverLacksFunds(w *world) {
	w.give("stock", tee, 3)
	w.ok("o1", take("h1", tee, 1))
	w.ok("o2", take("h2", tee, 2))
	w.refused(ledger.Insufficient, "sneak", ledger.Move(post("stock", "@lost", tee, 1)))
	w.ok("paid 2", ledger.Commit("h2"))
	w.ok("paid 1", ledger.Commit("h1"))
	w.has("stock", tee, 0, 0)
	w.has("sold", tee, 3, 0)
}

func holdInOneEntry(w *world) {
	w.give("stock", tee, 5)
	w.ok("counter sale", take("h1", tee, 3), ledger.CommitPart("h1", 1, true), ledger.CommitPart("h1", 1, false),
		take("h2", tee, 4), ledger.Void("h2"))
	w.holdIs("h1", ledger.Committed, 2, 1)
	w.holdIs("h2", ledger.Voided, 0, 4)
	w.has("stock", tee, 3, 0)
	w.refused(ledger.HoldFinal, "twice", take("h3", tee, 1), ledger.Commit("h3"), ledger.Void("h3"))
	w.has("stock", tee, 3, 0)
}
