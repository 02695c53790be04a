package flow

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/ledger"
)

// purser is one payout of 60, with a fee of 2, from an account of 100, on a
// ledger of its own.
type purser struct {
	t     *testing.T
	store *ledger.Memory
	p     Payout
	task  Task
	now   Time
	n     int
	sent  int // times that a worker was let to call
}

func newPurser(t *testing.T, change func(*Payout)) *purser {
	u := &purser{t: t, now: 1000, p: Payout{ID: "p1", State: PayoutRequested, Account: "ann", Gateway: "till", Destination: "bob",
		Amount: 60, Fee: 2, Currency: "CNY", Day: "2026-03-01", RequestedBy: "ann", Capped: true}}
	change(&u.p)
	u.store = ledger.NewMemory(func() time.Time { return u.now.Std() })
	a := Account{ID: "ann", Version: 1, Terms: []Terms{{Currency: "CNY", Ceiling: 100, PerDay: 90}}}
	ops, _ := a.Retune(Account{}, nil)
	u.apply(ops, nil)
	u.apply(Transfer{ID: "t", From: string(Bank), To: "ann", Currency: "CNY", Amount: 100}.Ops(false, true), nil)
	u.apply(DailyGrant("ann", a.In("CNY"), u.p.Day).Ops, nil)
	return u
}

// apply writes an entry; false = for want of room.
func (u *purser) apply(ops []ledger.Op, records []ledger.Record) bool {
	u.n++
	res, err := u.store.Apply(context.Background(), ledger.Entry{ID: fmt.Sprint("e", u.n), Ops: ops, Records: records})
	if err == nil && res[0].Code == ledger.Insufficient && res[0].Key.Account == Room("ann") {
		return false
	}
	if err != nil || res[0].Refused() {
		u.t.Errorf("the ledger refused %v: %+v %v", ops, res[0], err)
	}
	return true
}

func (u *purser) on(ev Event) *Refusal {
	ev.Poll = time.Minute
	for range 2 {
		ch, refusal := StepPayout(u.p, u.task, ev, u.now)
		if refusal != nil || ch.Empty() {
			return refusal
		}
		if !u.apply(ch.Ops, ch.Records()) {
			ev.Short = map[ledger.Asset]int{"CNY": 1}
			continue
		}
		before := u.p.State
		u.p = *ch.Case.Payout
		for _, t := range ch.Case.Tasks {
			u.task = t
		}
		if ev.On == Send && u.task.Do == DoPayout && (before == PayoutHeld || before == PayoutUnknown) {
			u.sent++
		}
		return nil
	}
	u.t.Fatalf("%s: never room", ev.On)
	return nil
}

func (u *purser) posted(a ledger.Account, asset ledger.Asset) (posted, held int64) {
	rows, err := u.store.Balances(context.Background(), ledger.BalanceQuery{Account: a, Asset: asset})
	if err != nil {
		u.t.Fatal(err)
	}
	if len(rows) == 0 {
		return 0, 0
	}
	return rows[0].Posted, rows[0].Held
}

// verify holds the balances against the payout's state.
func (u *purser) verify() {
	u.t.Helper()
	var out, fee, held int64
	switch u.p.State {
	case PayoutPending, PayoutHeld, PayoutSubmitted, PayoutUnknown:
		held = 62
	case PayoutPaid:
		out, fee = 60, 2
	case PayoutReturned:
		fee = 2
	}
	if got, h := u.posted(Wallet("ann"), "CNY"); got != 100-out-fee || h != held {
		u.t.Errorf("%s: ann has %d, %d held, want %d and %d", u.p.State, got, h, 100-out-fee, held)
	}
	if got, _ := u.posted(Clearing("till"), "CNY"); got != out {
		u.t.Errorf("%s: %d have left, want %d", u.p.State, got, out)
	}
	if got, _ := u.posted(PayoutFees, "CNY"); got != fee {
		u.t.Errorf("%s: %d of fees, want %d", u.p.State, got, fee)
	}
	if got, _ := u.posted(Room("ann"), "CNY"); got != out+fee {
		u.t.Errorf("%s: room for %d, want %d", u.p.State, got, out+fee)
	}
	waits := []State{PayoutHeld, PayoutSubmitted, PayoutUnknown}
	if slices.Contains(waits, u.p.State) && (u.task.Due == 0 || u.task.Do == DoNone) {
		u.t.Errorf("%s: nobody is to do anything about it: %+v", u.p.State, u.task)
	}
	if u.sent > 0 && u.p.State == PayoutCancelled && u.p.Recall == "" {
		u.t.Error("it was cancelled after its number was let out, and nobody asked the gateway")
	}
	if u.p.Confirm != "" && u.p.State != PayoutSubmitted && u.p.State != PayoutUnknown {
		u.t.Errorf("%s: its receiver is still to confirm it", u.p.State)
	}
}

// Whatever happens in whatever order, however often: the ledger accepts every
// step, and the money is where the state says.
func TestNoSequenceOfEventsBreaksAPayout(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := newPurser(t, func(p *Payout) { p.SecondPerson = rapid.Bool().Draw(rt, "second person") })
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			u.now += Time(rapid.SampledFrom([]int64{0, 1000, 3_600_000, 86_400_000}).Draw(rt, "wait"))
			ev := Event{On: rapid.SampledFrom(append(payoutEvents, Request, Send, Send, PayoutMade)).Draw(rt, "on"),
				By:      rapid.SampledFrom([]string{"", "ann", "eve"}).Draw(rt, "by"),
				Recall:  rapid.Bool().Draw(rt, "recall"),
				Confirm: rapid.SampledFrom([]string{"", "package"}).Draw(rt, "confirm"),
				Amount:  rapid.SampledFrom([]int64{0, 60, 61}).Draw(rt, "amount"), Currency: "CNY"}
			was := u.p.State
			if u.p.State == PayoutRequested {
				ev.On = Request // nothing else is there to happen to
			}
			refusal := u.on(ev)
			if refusal != nil && !commands[ev.On] {
				t.Errorf("%s: the fact %s was refused: %v", was, ev.On, refusal)
			}
			if u.verify(); t.Failed() {
				rt.Fatalf("%s: after %s: %+v", was, ev.On, u.p)
			}
		}
	})
}

func TestOnlyTheFirstWorkerIsLetToCallBeforeTheGatewayWasAsked(t *testing.T) {
	u := newPurser(t, func(*Payout) {})
	for range 2 {
		u.on(Event{On: Request})
	}
	u.on(Event{On: Send})
	u.on(Event{On: Send})
	if u.sent != 1 || u.p.State != PayoutUnknown || u.task.Do != DoTrace {
		t.Errorf("%d workers may call, the payout is %s and its task %s, want 1, unknown and trace", u.sent, u.p.State, u.task.Do)
	}
	u.on(Event{On: NotThere})
	if u.on(Event{On: Send}); u.sent != 2 {
		t.Errorf("what is not there is not sent again: %+v", u.task)
	}
	u.now = u.now.Add(SendFor)
	u.on(Event{On: NotThere})
	if u.on(Event{On: Send}); u.sent != 2 || u.task.Do != DoTrace {
		t.Errorf("the number was sent again when it may be forgotten: %+v", u.task)
	}
	u.verify()
}

func TestAGatewayThatContradictsItselfMovesNothing(t *testing.T) {
	u := newPurser(t, func(*Payout) {})
	for _, on := range []On{Request, Send, PayoutBroke, PayoutMade, PayoutMade} {
		u.on(Event{On: on})
	}
	if u.p.State != PayoutFailed || u.p.Code != Contradiction {
		t.Errorf("got %+v, want it failed, and the contradiction told", u.p)
	}
	u.verify()
}

// A payout that somebody wants back is never sent again, whatever is not known of
// it, and is cancelled only when the gateway says that it did not happen.
func TestWhatIsWantedBackIsNotSentAgain(t *testing.T) {
	u := newPurser(t, func(*Payout) {})
	for _, on := range []On{Request, Send, NoAnswer} {
		u.on(Event{On: on})
	}
	if refusal := u.on(Event{On: Cancel}); refusal == nil || u.p.Recall != "" {
		t.Errorf("got %v and %q from a gateway that can't take it back, want a refusal", refusal, u.p.Recall)
	}
	if refusal := u.on(Event{On: Cancel, Recall: true}); refusal != nil || u.task.Do != DoRecall || u.p.State != PayoutUnknown {
		t.Fatalf("got %v, %s, %s, want it unknown and the gateway asked", refusal, u.task.Do, u.p.State)
	}
	u.on(Event{On: NoAnswer})
	if u.task.Do != DoTrace {
		t.Errorf("after a wish without answer: %s, want trace", u.task.Do)
	}
	u.on(Event{On: NotThere})
	if u.task.Do != DoRecall {
		t.Errorf("the wish was not repeated: %s", u.task.Do)
	}
	u.on(Event{On: Recalled})
	u.on(Event{On: NotThere})
	if u.on(Event{On: Send}); u.sent != 1 || u.task.Do != DoTrace {
		t.Errorf("sent %d times, next is %s, want once and trace", u.sent, u.task.Do)
	}
	u.now = u.now.Add(ArriveFor)
	u.on(Event{On: NotThere})
	if u.p.State != PayoutCancelled {
		t.Errorf("it is %s, want cancelled", u.p.State)
	}
	u.verify()
}

// What bears our number, and is of another amount or another payout there, moves
// nothing here, and people are told.
func TestAFactAboutAnotherAmountMovesNothing(t *testing.T) {
	for name, ev := range map[string]Event{
		"amount":   {On: PayoutMade, Amount: 61, Currency: "CNY", Ref: "ref"},
		"currency": {On: PayoutMade, Amount: 60, Currency: "USD", Ref: "ref"},
		"payout":   {On: PayoutMade, Amount: 60, Currency: "CNY", Ref: "other"},
		"part":     {On: PayoutBack, Amount: 59, Currency: "CNY", Ref: "ref"},
	} {
		for _, before := range [][]On{{Request, Send, PayoutTaken}, {Request, Send, PayoutTaken, NoAnswer}, {Request, Send, PayoutTaken, PayoutMade}} {
			u := newPurser(t, func(*Payout) {})
			for _, on := range before {
				u.on(Event{On: on, Ref: "ref"})
			}
			was := u.p.State
			if u.on(ev); u.p.State != was || u.p.Code != Contradiction || u.p.Ref != "ref" {
				t.Errorf("%s: it went from %s to %s, %q of %s", name, was, u.p.State, u.p.Code, u.p.Ref)
			}
			u.verify()
		}
	}
}
