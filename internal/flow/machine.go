package flow

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Case is one order with all that a decision about it may need or change.
type Case struct {
	Order    Order
	Payments []Payment // oldest first
	Refunds  []Refund  // oldest first
	Tasks    []Task
	Payout   *Payout // the case is a payout's, and has a task at most besides
}

// On is what happened.
type On string

// What people and time do to an order.
const (
	Pay    On = "pay"
	Cancel On = "cancel"
	Fulfil On = "fulfil"
	Repaid On = "refund"  // somebody asks for a refund
	Due    On = "due"     // the deadline of the hold has passed
	GiveUp On = "give_up" // the cap has passed and the gateway still can't say
)

// What a gateway says of a payment. They are facts: in a state that has no row
// for one, it changes nothing.
const (
	Opened      On = "opened"
	Refused     On = "refused"
	MoneyCame   On = "paid"
	ClosedThere On = "closed"
)

// What a gateway says of a refund.
const (
	RefundTaken  On = "refund_accepted"
	RefundMade   On = "refund_done"
	RefundDenied On = "refund_refused"
	RefundBroke  On = "refund_failed"
)

// What one machine tells another. They never come from outside.
const (
	start      On = "start"          // order to payment: it need not wait any more
	close_     On = "close"          // order to payment
	money      On = "money"          // payment to order: its price has come
	noMoney    On = "no_money"       // payment to order: none will come through this attempt
	moneyBack  On = "money_back"     // refund to order: the buyer has it
	moneyStays On = "money_stays"    // refund to order: it was not taken on
	moneyAgain On = "money_returned" // refund to order: it came back after all
)

// Event is what happened, with what it brought. Only the fields of its kind are read.
type Event struct {
	On On
	ID string // the payment or refund that a fact is about

	// Pay.
	Gateway, Method, Description, ReturnURL, Payer string
	PayFor                                         time.Duration

	// Repaid. Amount 0 = all that is left.
	Reason  string
	Restock []Restock

	By  string // Approve: who does
	Why string // NoAnswer: for people

	Recall  bool   // Cancel: the gateway is one that can take a payout back
	Confirm string // PayoutTaken: what the receiver's app needs

	// Facts.
	Ref, URL, Secret, Code string
	Amount                 int64
	Currency               string

	// Poll is when to ask again about what is open now.
	Poll time.Duration

	// Short counts, by asset, how often the ledger has refused the goods of late
	// money (MoneyCame only): for want of pieces, which calls for the next late
	// policy, or because the customer has used up the limit meanwhile. For a payout
	// that came back it counts for want of room.
	Short map[ledger.Asset]int

	// Has is, of wallets in which the ledger has found less than a refund was to
	// take, what it found; and of rooms the same, which says that they are full.
	Has map[ledger.Account]int64
}

// Change is what an event does. Empty: nothing.
type Change struct {
	Case   Case
	Ops    []ledger.Op
	Events []ledger.Event
	dirty  map[string]bool // ids of the changed documents; tasks as "task/ID"
}

// Empty says that the event changed nothing.
func (c Change) Empty() bool { return len(c.dirty) == 0 }

// Refusal says why a command has no effect. Code is stable.
type Refusal struct{ Code, Detail string }

// Codes of refusals.
const (
	InvalidState   = "invalid_state"
	ExceedsCapture = "refund_exceeds_capture"
	ExceedsSold    = "restock_exceeds_sold"
)

// row is one line of a machine: in state From, On leads to To by doing do.
// if_ (nil = always) chooses between rows of one state and event, first match wins.
type row struct {
	from State
	on   On
	to   State
	if_  *guard
	do   action
}

type guard struct {
	says string
	test func(w *work) bool
}

type action struct {
	says string
	do   func(w *work) *Refusal
}

// machines are the three tables. Actions reach them through work.
type machines struct{ order, payment, refund []row }

// work is a Case while a step works on it.
type work struct {
	Change
	machines
	ev      Event
	now     Time
	payment *Payment // that the step is about
	refund  *Refund
}

// Step decides what ev does to c at time now. It changes nothing but its own
// copy of c, and is total: every state answers every event.
func Step(c Case, ev Event, now Time) (Change, *Refusal) {
	w := &work{ev: ev, now: now, Change: Change{Case: c.clone(), dirty: map[string]bool{}},
		machines: machines{orderRows, paymentRows, refundRows}}
	var refusal *Refusal
	switch ev.On {
	case Opened, Refused, MoneyCame, ClosedThere:
		if w.payment = w.findPayment(ev.ID); w.payment == nil {
			return Change{Case: c}, nil
		}
		refusal = w.stepPayment(ev.On)
	case RefundTaken, RefundMade, RefundDenied, RefundBroke:
		if w.refund = w.findRefund(ev.ID); w.refund == nil {
			return Change{Case: c}, nil
		}
		w.payment = w.findPayment(w.refund.Payment)
		refusal = w.stepRefund(ev.On)
	default:
		refusal = w.stepOrder(ev.On)
	}
	if refusal != nil {
		return Change{Case: c}, refusal
	}
	if !w.Empty() {
		w.touchOrder() // one version for the whole Case: see holdfast.load
	}
	return w.Change, nil
}

// take runs the first row that fits; false = none does.
func (w *work) take(rows []row, from State, on On, enter func(State)) (bool, *Refusal) {
	for _, r := range rows {
		if r.from != from || r.on != on || (r.if_ != nil && !r.if_.test(w)) {
			continue
		}
		if refusal := r.do.do(w); refusal != nil {
			return true, refusal
		}
		if r.to != from {
			enter(r.to)
		}
		return true, nil
	}
	return false, nil
}

func (w *work) stepOrder(on On) *Refusal {
	ok, refusal := w.take(w.machines.order, w.Case.Order.State, on, func(to State) {
		w.Case.Order.State = to
		w.touchOrder()
		w.publish("order."+string(to), nil)
	})
	if !ok && commands[on] {
		return &Refusal{InvalidState, fmt.Sprintf("%s is not possible: the order is %s", on, w.Case.Order.State)}
	}
	return refusal
}

func (w *work) stepPayment(on On) *Refusal {
	_, refusal := w.take(w.machines.payment, w.payment.State, on, func(to State) {
		w.payment.State = to
		w.touchPayment()
		w.publish("payment."+string(to), map[string]any{"payment": w.payment.ID})
	})
	return refusal
}

func (w *work) stepRefund(on On) *Refusal {
	_, refusal := w.take(w.machines.refund, w.refund.State, on, func(to State) {
		w.refund.State = to
		w.touchRefund()
		w.publish("refund."+string(to), map[string]any{"refund": w.refund.ID, "amount": w.refund.Amount})
	})
	return refusal
}

// commands are refused where there is no row; everything else is a fact.
var commands = map[On]bool{Pay: true, Cancel: true, Fulfil: true, Repaid: true, Request: true, Approve: true}

func (c Case) clone() Case {
	c.Order.Lines = slices.Clone(c.Order.Lines)
	c.Order.Splits = slices.Clone(c.Order.Splits)
	c.Payments = slices.Clone(c.Payments)
	c.Refunds = slices.Clone(c.Refunds)
	c.Tasks = slices.Clone(c.Tasks)
	return c
}

func (w *work) findPayment(id string) *Payment {
	for i := range w.Case.Payments {
		if w.Case.Payments[i].ID == id {
			return &w.Case.Payments[i]
		}
	}
	return nil
}

func (w *work) findRefund(id string) *Refund {
	for i := range w.Case.Refunds {
		if w.Case.Refunds[i].ID == id {
			return &w.Case.Refunds[i]
		}
	}
	return nil
}

// touch counts a document's version up, once a step.
func (w *work) touch(id string, version *int64) {
	if !w.dirty[id] {
		w.dirty[id] = true
		*version++
	}
}

func (w *work) touchOrder()   { w.touch(w.Case.Order.ID, &w.Case.Order.Version) }
func (w *work) touchPayment() { w.touch(w.payment.ID, &w.payment.Version) }
func (w *work) touchRefund()  { w.touch(w.refund.ID, &w.refund.Version) }

// task sets what is to be done for a payment or refund; DoNone = nothing more.
func (w *work) task(id, gateway string, do Do, due Time) {
	i := slices.IndexFunc(w.Case.Tasks, func(t Task) bool { return t.ID == id })
	if i < 0 {
		i = len(w.Case.Tasks)
		w.Case.Tasks = append(w.Case.Tasks, Task{ID: id, Order: w.Case.Order.ID, Gateway: gateway})
	}
	t := &w.Case.Tasks[i]
	w.touch("task/"+id, &t.Version)
	t.Do, t.Due, t.Tries, t.Error = do, due, 0, ""
	if do == DoNone {
		t.Due = 0
	}
}

func (w *work) op(op ...ledger.Op) { w.Ops = append(w.Ops, op...) }

func (w *work) move(from, to ledger.Account, asset ledger.Asset, amount int64) {
	w.op(ledger.Move(ledger.Posting{From: from, To: to, Asset: asset, Amount: amount}))
}

// publish puts an event into the feed, under the order.
func (w *work) publish(kind string, more map[string]any) {
	body := map[string]any{"order": w.Case.Order.ID, "state": w.Case.Order.State}
	maps.Copy(body, more)
	w.Events = append(w.Events, ledger.Event{Type: kind, Subject: w.Case.Order.ID, Body: marshal(body)})
}
