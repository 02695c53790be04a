package flow

import (
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// The states of a payout.
const (
	PayoutRequested State = "requested"        // asked for; nothing is stored yet
	PayoutPending   State = "pending_approval" // its money is held; a second person has to agree
	PayoutHeld      State = "held"             // its money is held; its number has never left this house
	PayoutSubmitted State = "submitted"        // its number is, or is just going to be, at the gateway
	PayoutUnknown   State = "unknown"          // the gateway did not tell: the money stays held
	PayoutPaid      State = "paid"
	PayoutFailed    State = "failed"
	PayoutReturned  State = "returned" // it was paid, and the money came back
	PayoutCancelled State = "cancelled"
)

// What people and the runner do to a payout.
const (
	Request On = "request"
	Approve On = "approve"
	Send    On = "send" // somebody is about to tell the gateway
)

// What a gateway says of a payout: facts, like those about payments.
const (
	PayoutTaken On = "payout_accepted"
	PayoutMade  On = "payout_paid"
	PayoutBroke On = "payout_failed"
	PayoutBack  On = "payout_returned"
	NotThere    On = "payout_not_there" // it knows no such number
	Recalled    On = "payout_recalled"  // it has heard that the payout is to be taken back
	OtherPayout On = "payout_mismatch"  // its number is on something of another amount, or that happened besides
	NoAnswer    On = "no_answer"
)

// Times of a payout, from the first call on.
const (
	// SendFor is how long its number may be sent: gateways forget numbers after a
	// day, and a forgotten one pays again.
	SendFor = 23 * time.Hour
	// ArriveFor is when a number that the gateway does not know never arrived. No
	// call is under way any more then.
	ArriveFor = 25 * time.Hour
	// WatchFor is how long the gateway is asked whether a paid one came back,
	// every WatchEvery.
	WatchFor   = 10 * 24 * time.Hour
	WatchEvery = 24 * time.Hour
)

// Payout is one sending of money from an account to somebody outside. Amounts
// are minor units of Currency. Its ID is the number at the gateway: it is stored
// before the first call, and never replaced.
type Payout struct {
	ID          string `json:"id"`
	Version     int64  `json:"version"`
	State       State  `json:"state"`
	Account     string `json:"account"`
	Gateway     string `json:"gateway"`
	Destination string `json:"destination"`
	Amount      int64  `json:"amount"`
	Fee         int64  `json:"fee,omitempty"` // that the account pays us for it, on top
	Currency    string `json:"currency"`
	Description string `json:"description,omitempty"`
	RequestedBy string `json:"requested_by,omitempty"`
	ApprovedBy  string `json:"approved_by,omitempty"`
	// SecondPerson: somebody else than RequestedBy has to approve it.
	SecondPerson bool   `json:"approval_required,omitempty"`
	DuplicateOf  string `json:"duplicate_of,omitempty"` // an earlier one to the same destination, not long ago
	Ref          string `json:"ref,omitempty"`          // the gateway's own id
	Code         string `json:"code,omitempty"`         // the gateway's last word, for people
	Confirm      string `json:"confirm,omitempty"`      // what the receiver's app needs to agree to it, while it waits for that
	Recall       string `json:"recall,omitempty"`       // somebody wants it back: RecallWanted or RecallAsked
	Day          string `json:"day,omitempty"`          // YYYY-MM-DD in UTC, whose limit it counts against; "" = there is none
	Capped       bool   `json:"capped,omitempty"`       // the account has a ceiling
	Over         bool   `json:"over_ceiling,omitempty"` // it came back to an account that was full
	CreatedAt    Time   `json:"created_at"`
	SentAt       Time   `json:"sent_at,omitzero"` // of the first call
	PaidAt       Time   `json:"paid_at,omitzero"`
	NextTryAt    Time   `json:"next_try_at,omitzero"` // when the gateway is asked next
}

// How far the wish has come to take a payout back.
const (
	RecallWanted = "wanted" // the gateway has not answered it yet
	RecallAsked  = "asked"  // it has; what becomes of the payout, only its state says
)

// payoutRows is the machine of a payout. Its money is held before anybody
// outside hears of it, and until the gateway has said what became of it. That a
// call failed is no such word: the number stays the same, so that asking and
// sending again pay at most once.
var payoutRows = []row{
	{PayoutRequested, Request, PayoutPending, needsApproval, holdMoney},
	{PayoutRequested, Request, PayoutHeld, nil, holdAndSend},

	{PayoutPending, Approve, PayoutHeld, nil, approve},
	{PayoutPending, Cancel, PayoutCancelled, nil, releaseMoney},

	{PayoutHeld, Cancel, PayoutCancelled, nil, releaseMoney},
	{PayoutHeld, Send, PayoutSubmitted, nil, firstCall},
	{PayoutHeld, NoAnswer, PayoutHeld, nil, tryLater},
	{PayoutHeld, PayoutMade, PayoutPaid, nil, commitMoney},

	{PayoutSubmitted, Send, PayoutUnknown, nil, askFirst},
	{PayoutSubmitted, Cancel, PayoutSubmitted, recalling, nothing},
	{PayoutSubmitted, Cancel, PayoutSubmitted, recallable, recall},
	{PayoutSubmitted, Recalled, PayoutSubmitted, nil, recalled},
	{PayoutSubmitted, OtherPayout, PayoutSubmitted, nil, contradicted},
	{PayoutSubmitted, PayoutTaken, PayoutSubmitted, nil, askLater},
	{PayoutSubmitted, PayoutMade, PayoutPaid, nil, commitMoney},
	{PayoutSubmitted, PayoutBroke, PayoutCancelled, wantedBack, releaseMoney},
	{PayoutSubmitted, PayoutBroke, PayoutFailed, nil, releaseMoney},
	{PayoutSubmitted, PayoutBack, PayoutCancelled, wantedBack, releaseMoney},
	{PayoutSubmitted, PayoutBack, PayoutFailed, nil, releaseMoney},
	{PayoutSubmitted, NoAnswer, PayoutUnknown, nil, askLater},
	{PayoutSubmitted, NotThere, PayoutUnknown, nil, askLater},

	{PayoutUnknown, Send, PayoutUnknown, mayBeSent, sameNumber},
	{PayoutUnknown, Send, PayoutUnknown, nil, askFirst},
	{PayoutUnknown, Cancel, PayoutUnknown, recalling, nothing},
	{PayoutUnknown, Cancel, PayoutUnknown, recallable, recall},
	{PayoutUnknown, Recalled, PayoutUnknown, nil, recalled},
	{PayoutUnknown, OtherPayout, PayoutUnknown, nil, contradicted},
	{PayoutUnknown, PayoutTaken, PayoutSubmitted, nil, askLater},
	{PayoutUnknown, PayoutMade, PayoutPaid, nil, commitMoney},
	{PayoutUnknown, PayoutBroke, PayoutCancelled, wantedBack, releaseMoney},
	{PayoutUnknown, PayoutBroke, PayoutFailed, nil, releaseMoney},
	{PayoutUnknown, PayoutBack, PayoutCancelled, wantedBack, releaseMoney},
	{PayoutUnknown, PayoutBack, PayoutFailed, nil, releaseMoney},
	{PayoutUnknown, NoAnswer, PayoutUnknown, nil, askLater},
	{PayoutUnknown, NotThere, PayoutUnknown, mayBeSent, sendAgain},
	{PayoutUnknown, NotThere, PayoutCancelled, neverSentBack, releaseMoney},
	{PayoutUnknown, NotThere, PayoutFailed, neverArrived, releaseMoney},
	{PayoutUnknown, NotThere, PayoutUnknown, nil, askLater},

	{PayoutPaid, OtherPayout, PayoutPaid, nil, contradicted},
	{PayoutPaid, PayoutMade, PayoutPaid, watched, watch},
	{PayoutPaid, PayoutMade, PayoutPaid, nil, stopWatching},
	{PayoutPaid, PayoutTaken, PayoutPaid, watched, watch},
	{PayoutPaid, NoAnswer, PayoutPaid, watched, watch},
	{PayoutPaid, NotThere, PayoutPaid, watched, watch},
	{PayoutPaid, PayoutTaken, PayoutPaid, nil, stopWatching},
	{PayoutPaid, NoAnswer, PayoutPaid, nil, stopWatching},
	{PayoutPaid, NotThere, PayoutPaid, nil, stopWatching},
	{PayoutPaid, PayoutBroke, PayoutReturned, roomIsShort, moneyBackOver},
	{PayoutPaid, PayoutBroke, PayoutReturned, nil, moneyBackIn},
	{PayoutPaid, PayoutBack, PayoutReturned, roomIsShort, moneyBackOver},
	{PayoutPaid, PayoutBack, PayoutReturned, nil, moneyBackIn},

	{PayoutFailed, PayoutMade, PayoutFailed, nil, contradicted},
	{PayoutCancelled, Cancel, PayoutCancelled, nil, nothing},
	{PayoutCancelled, PayoutMade, PayoutCancelled, nil, contradicted},
}

// StepPayout is Step for a payout and its task; the task's zero value is none. A
// fact that says what it is about has an Amount, and is about p only if all of
// that is p's.
func StepPayout(p Payout, t Task, ev Event, now Time) (Change, *Refusal) {
	other := ev.Amount != p.Amount || ev.Currency != p.Currency || (ev.Ref != "" && p.Ref != "" && ev.Ref != p.Ref)
	if ev.Amount != 0 && other {
		ev = Event{On: OtherPayout}
	}
	w := &work{ev: ev, now: now, Change: Change{Case: Case{Payout: &p}, dirty: map[string]bool{}}}
	if t.ID != "" {
		w.Case.Tasks = []Task{t}
	}
	ok, refusal := w.take(payoutRows, p.State, ev.On, func(to State) {
		p.State = to
		w.touchPayout()
		w.announce("payout." + string(to))
	})
	if !ok && commands[ev.On] {
		refusal = &Refusal{InvalidState, fmt.Sprintf("%s is not possible: the payout is %s", ev.On, p.State)}
	}
	if refusal != nil {
		return Change{}, refusal
	}
	return w.Change, nil
}

func (w *work) touchPayout() { w.touch(w.Case.Payout.ID, &w.Case.Payout.Version) }

// announce publishes an event about the payout, as it is now.
func (w *work) announce(kind string) {
	w.Events = append(w.Events, ledger.Event{Type: kind, Subject: w.Case.Payout.ID, Body: marshal(w.Case.Payout)})
}
