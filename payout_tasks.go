package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// runPayout does a claimed task about a payout. Before its number is sent, an
// entry says so: from then on it can't be cancelled, and whoever comes after a
// worker that died asks the gateway first.
func (b *background) runPayout(ctx context.Context, t Task) error {
	// The time for the call runs from here, well within the lease: a worker that was
	// stopped on its way finds it over, and sends nothing.
	call, cancel := context.WithTimeout(ctx, b.h.o.CallFor)
	defer cancel()
	p, err := b.h.Payout(ctx, t.ID)
	if err != nil {
		return err
	}
	wait := backoff(t.Tries + 1)
	pays, why, err := b.mayCall(ctx, p)
	if err != nil {
		return err
	}
	if why != nil {
		_, _, err := b.h.advancePayout(ctx, p.ID, flow.Event{On: flow.NoAnswer, Why: why.Error(), Poll: b.h.o.Poll})
		return err
	}
	do := t.Do
	if do == flow.DoPayout {
		if p, t, err = b.h.advancePayout(ctx, p.ID, flow.Event{On: flow.Send}); err != nil {
			return err
		}
		if t.Do != do || (p.State != flow.PayoutSubmitted && p.State != flow.PayoutUnknown) {
			return nil // it was cancelled, or another worker began the call
		}
	}
	ev := b.callPayout(call, pays, do, p)
	ev.Poll = wait
	if ev.On == flow.PayoutTaken || ev.On == flow.Recalled {
		ev.Poll = b.patience(p)
	}
	if ev.On == flow.NoAnswer {
		b.h.log.Warn("gateway gave no definite answer", "payout", p.ID, "do", do, "tries", t.Tries+1, "error", ev.Why)
	}
	_, _, err = b.h.advancePayout(ctx, p.ID, ev)
	return err
}

// longestPoll is how rarely a payout is asked about that is under way: what takes
// days is not asked about every Poll.
const longestPoll = time.Hour

// patience is how long to wait before p is asked about again: a tenth of the time
// that it has been under way.
func (b *background) patience(p Payout) time.Duration {
	age := b.h.o.Clock().Sub(p.SentAt.Std())
	return max(b.h.o.Poll, min(age/10, longestPoll))
}

var errFrozen = errors.New("the account is frozen")

// mayCall finds the gateway of a payout. why says what keeps it from being asked.
func (b *background) mayCall(ctx context.Context, p Payout) (pays gateway.Payer, why, err error) {
	_, pays, err = b.h.payer(p.Gateway)
	var gone *Rejection // taken out of the options: ask again when it is back
	if errors.As(err, &gone) {
		return nil, err, nil
	}
	if err != nil || p.State != flow.PayoutHeld {
		return pays, nil, err
	}
	a, err := document[Account](ctx, b.h, flow.KindAccount, p.Account)
	if err == nil && a.Frozen {
		why = errFrozen
	}
	return pays, why, err
}

// callPayout asks the gateway, outside of any transaction.
func (b *background) callPayout(ctx context.Context, pays gateway.Payer, do flow.Do, p Payout) flow.Event {
	if err := ctx.Err(); err != nil {
		return flow.Event{On: flow.NoAnswer, Why: err.Error()}
	}
	wire := gateway.Payout{ID: p.ID, Destination: p.Destination, Amount: p.Amount, Currency: p.Currency,
		Description: p.Description, CreatedAt: p.SentAt.Std(), Ref: p.Ref}
	var a gateway.PayoutAnswer
	switch do {
	case flow.DoPayout:
		a = pays.Payout(ctx, wire)
	case flow.DoRecall:
		a = recall(ctx, pays, wire)
	default:
		a = pays.QueryPayout(ctx, wire)
	}
	ev := flow.Event{On: payoutFact(do, p.State, a), Ref: a.Ref, Code: a.Code, Confirm: a.Confirm}
	if ev.On == flow.NoAnswer {
		ev.Why = unknown(a.Err, a.Code).Error()
	}
	return ev
}

// recall asks to take a payout back; a gateway that could, and now can't, has
// answered, too.
func recall(ctx context.Context, pays gateway.Payer, p gateway.Payout) gateway.PayoutAnswer {
	r, ok := pays.(gateway.Recaller)
	if !ok {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "no_recall"}
	}
	return r.RecallPayout(ctx, p)
}

// payoutFact is what an answer says of a payout that was in a state when it was
// asked about. That it is refused only counts for the first call: an earlier one
// whose answer was lost may have been taken.
func payoutFact(do flow.Do, was State, a gateway.PayoutAnswer) flow.On {
	switch {
	case do == flow.DoRecall && a.Outcome != gateway.Unknown:
		return flow.Recalled
	case a.Outcome == gateway.Refused && do == flow.DoTrace:
		return flow.NotThere
	case a.Outcome == gateway.Refused && was == flow.PayoutSubmitted:
		return flow.PayoutBroke
	case a.Outcome == gateway.Accepted:
		return flow.PayoutTaken
	case a.Outcome != gateway.Done:
		return flow.NoAnswer
	}
	return cmp.Or(payoutStatus(a.Status), flow.NoAnswer)
}

func payoutStatus(s gateway.PayoutStatus) flow.On {
	return map[gateway.PayoutStatus]flow.On{
		gateway.PayoutPending:  flow.PayoutTaken,
		gateway.PayoutPaid:     flow.PayoutMade,
		gateway.PayoutFailed:   flow.PayoutBroke,
		gateway.PayoutReturned: flow.PayoutBack,
	}[s]
}

// advancePayout lets ev happen to a payout and writes all that follows, or
// nothing. It decides anew when somebody else was faster.
func (h *Holdfast) advancePayout(ctx context.Context, id string, ev flow.Event) (Payout, Task, error) {
	ev.Short = map[ledger.Asset]int{}
	for range maxConflict {
		e, p, t, err := h.payoutStep(ctx, id, ev)
		if err != nil || len(e.Records) == 0 {
			return p, t, err
		}
		if e.ID, err = newID(); err != nil {
			return p, t, err
		}
		res, err := h.apply(ctx, e)
		if err != nil {
			return p, t, err
		}
		switch {
		case res.Code == ledger.OK:
			return p, t, nil
		case res.Code == ledger.Insufficient && res.Key.Account == flow.Room(p.Account):
			ev.Short[res.Key.Asset]++
		case res.Code != ledger.Stale:
			return p, t, fmt.Errorf("holdfast: payout %s %s: the ledger refused: %s %s", id, ev.On, res.Code, res.Key.Account)
		}
	}
	return Payout{}, Task{}, fmt.Errorf("holdfast: payout %s %s: %d conflicts", id, ev.On, maxConflict)
}
