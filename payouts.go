package holdfast

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

const (
	// duplicateWindow is how long ago another payout to the same destination may
	// lie to be named in Payout.DuplicateOf, and duplicateLook how many are looked at.
	duplicateWindow = 24 * time.Hour
	duplicateLook   = 5
	maxDestination  = 255 // bytes
)

// PayoutInput sends money of an account to somebody outside.
type PayoutInput struct {
	Account     string
	Currency    string // ISO 4217, upper case
	Amount      int64  // that is sent; minor units, 1..ledger.MaxAmount
	Fee         int64  // that the account pays on top; minor units, 0 = none
	Gateway     string // "" = the only one; it must be a gateway.Payer
	Destination string // the receiver in the gateway's own terms; 1..255 bytes
	Description string // at most MaxText characters
	By          string // who asks, such as an API key's id; needed where a second person has to approve
}

func (in PayoutInput) check() error {
	if !idForm.MatchString(in.Account) {
		return reject(CodeInvalidID, "account: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.Destination == "" || len(in.Destination) > maxDestination || !utf8.ValidString(in.Destination) {
		return reject(CodeInvalidField, "destination: 1 to %d bytes", maxDestination)
	}
	if !text(in.Description) || !text(in.By) {
		return reject(CodeInvalidField, "description: at most %d characters", MaxText)
	}
	if in.Fee < 0 || in.Fee > ledger.MaxAmount {
		return reject(CodeAmountRange, "fee: 0 to %d minor units", int64(ledger.MaxAmount))
	}
	if err := checkCurrency(in.Currency); err != nil {
		return err
	}
	return checkAmount(in.Amount)
}

// payer finds a gateway that can pay out; "" is the only one.
func (h *Holdfast) payer(name string) (string, gateway.Payer, error) {
	name, gw, err := h.gateway(name)
	if err != nil {
		return name, nil, err
	}
	p, ok := gw.(gateway.Payer)
	if !ok {
		return name, nil, reject(CodeGatewayUnknown, "gateway %s can't pay out", name)
	}
	return name, p, nil
}

// routed is in with its gateway's name, if the gateway would not surely refuse it.
func (h *Holdfast) routed(in PayoutInput) (PayoutInput, error) {
	name, pays, err := h.payer(in.Gateway)
	if err != nil {
		return in, err
	}
	in.Gateway = name
	wire := gateway.Payout{Destination: in.Destination, Amount: in.Amount, Currency: in.Currency, Description: in.Description}
	if unfit := pays.CheckPayout(wire); unfit != nil {
		return in, reject(CodePayoutUnfit, "%s: %s", unfit.Field, unfit.Detail)
	}
	return in, nil
}

// RequestPayout holds the money, and then sends it by itself, or waits for a
// second person (state pending_approval). A refusal is final for its key.
func (h *Holdfast) RequestPayout(ctx context.Context, key Key, in PayoutInput) (Answer[Payout], error) {
	if err := in.check(); err != nil {
		return Answer[Payout]{}, err
	}
	in, err := h.routed(in)
	if err != nil {
		return Answer[Payout]{}, err
	}
	a, err := money[Payout](ctx, h, key, func() (ledger.Entry, error) { return h.newPayout(ctx, in) })
	if err == nil && a.Value.State == flow.PayoutHeld {
		h.work.ring()
	}
	return a, err
}

// newPayout is the entry of a payout. What it looks up are rules that are for
// people to change; that the money and the day's limit suffice, only the ledger
// can say.
func (h *Holdfast) newPayout(ctx context.Context, in PayoutInput) (e ledger.Entry, err error) {
	terms, err := h.payoutTerms(ctx, in)
	if err != nil {
		return e, err
	}
	now, err := h.now(ctx)
	if err != nil {
		return e, err
	}
	p := Payout{State: flow.PayoutRequested, Account: in.Account, Gateway: in.Gateway, Destination: in.Destination,
		Amount: in.Amount, Fee: in.Fee, Currency: in.Currency, Description: in.Description, RequestedBy: in.By,
		SecondPerson: terms.ApproveAbove > 0 && in.Amount > terms.ApproveAbove, Capped: terms.Ceiling > 0, CreatedAt: now}
	if p.ID, err = newID(); err != nil {
		return e, err
	}
	if terms.PerDay > 0 {
		p.Day = now.Std().Format(time.DateOnly)
		if err := h.grantDay(ctx, p.Account, terms, p.Day); err != nil {
			return e, err
		}
	}
	if p.DuplicateOf, err = h.duplicate(ctx, p); err != nil {
		return e, err
	}
	ch, refusal := flow.StepPayout(p, Task{}, flow.Event{On: flow.Request}, now)
	return ledger.Entry{Ops: ch.Ops, Records: ch.Records(), Events: ch.Events}, refused(refusal)
}

// payoutTerms are the limits that a payout has to keep, if it keeps those that
// can be told without the ledger.
func (h *Holdfast) payoutTerms(ctx context.Context, in PayoutInput) (Terms, error) {
	a, err := h.payingAccount(ctx, in.Account)
	if err != nil {
		return Terms{}, err
	}
	t := a.In(in.Currency)
	if t.PerPayout > 0 && in.Amount > t.PerPayout {
		return t, &Rejection{Code: CodePayoutLimit, Available: t.PerPayout,
			Detail: fmt.Sprintf("account %s can pay out %d %s at a time", a.ID, t.PerPayout, t.Currency)}
	}
	if t.ApproveAbove > 0 && in.Amount > t.ApproveAbove && in.By == "" {
		return t, reject(CodeInvalidField, "by: a second person has to approve it, so say who asks")
	}
	return t, nil
}

// grantDay gives an account its limit of a day, unless it has it.
func (h *Holdfast) grantDay(ctx context.Context, account string, t Terms, day string) error {
	rows, err := h.store.Balances(ctx, ledger.BalanceQuery{Account: flow.Daily(account), Asset: flow.Day(t.Currency, day), Limit: 1})
	if err != nil {
		return fmt.Errorf("holdfast: limit of %s on %s: %w", account, day, err)
	}
	if len(rows) > 0 {
		return nil
	}
	// Refused = another request, or another limit, was faster.
	_, err = h.applyAll(ctx, []ledger.Entry{flow.DailyGrant(account, t, day)})
	return err
}

// duplicate is a payout like p of not long ago; "" = none. It is a warning, not
// a rule: two at the same moment don't see each other.
func (h *Holdfast) duplicate(ctx context.Context, p Payout) (string, error) {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindPayout, Ref: p.DestinationRef(), Desc: true, Limit: duplicateLook})
	if err != nil {
		return "", fmt.Errorf("holdfast: earlier payouts of %s: %w", p.Account, err)
	}
	earlier, err := documents[Payout](rs)
	for _, o := range earlier {
		if o.State != flow.PayoutFailed && o.State != flow.PayoutCancelled && o.State != flow.PayoutReturned && p.CreatedAt < o.CreatedAt.Add(duplicateWindow) {
			return o.ID, err
		}
	}
	return "", err
}

// ApprovePayout lets a payout be sent that needs a second person: by, who is not
// the one who asked for it.
func (h *Holdfast) ApprovePayout(ctx context.Context, key Key, id, by string) (Answer[Payout], error) {
	a, err := h.changePayout(ctx, key, id, flow.Event{On: flow.Approve, By: by})
	if err == nil {
		h.work.ring()
	}
	return a, err
}

// CancelPayout gives the money of a payout back whose number has not been sent.
// Where it has been, a gateway.Recaller is asked to take it back: the money stays
// held, and only the payout's state tells whether that was in time.
func (h *Holdfast) CancelPayout(ctx context.Context, key Key, id string) (Answer[Payout], error) {
	a, err := h.changePayout(ctx, key, id, flow.Event{On: flow.Cancel})
	if err == nil {
		h.work.ring()
	}
	return a, err
}

func (h *Holdfast) changePayout(ctx context.Context, key Key, id string, ev flow.Event) (Answer[Payout], error) {
	return change[Payout](ctx, h, key, func() (ledger.Entry, error) {
		e, _, _, err := h.payoutStep(ctx, id, ev)
		return e, err
	})
}

// payoutStep decides what ev does to a payout: the entry, and payout and task
// after it.
func (h *Holdfast) payoutStep(ctx context.Context, id string, ev flow.Event) (e ledger.Entry, p Payout, t Task, err error) {
	r, err := h.record(ctx, flow.KindPayout, id)
	if err != nil {
		return e, p, t, err
	}
	if err := flow.Decode(r, &p); err != nil {
		return e, p, t, err
	}
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindTask, ID: id, Limit: 1})
	if err != nil {
		return e, p, t, fmt.Errorf("holdfast: task of payout %s: %w", id, err)
	}
	if len(rs) > 0 {
		if err := flow.Decode(rs[0], &t); err != nil {
			return e, p, t, err
		}
	}
	now, err := h.now(ctx)
	if err != nil {
		return e, p, t, err
	}
	_, ev.Recall = h.o.Gateways[p.Gateway].(gateway.Recaller)
	ch, refusal := flow.StepPayout(p, t, ev, now)
	if refusal != nil {
		return e, p, t, refused(refusal)
	}
	if ch.Empty() {
		return ledger.Entry{Reply: r.Body}, p, t, nil
	}
	p = *ch.Case.Payout
	for _, u := range ch.Case.Tasks {
		t = u
	}
	return ledger.Entry{Ops: ch.Ops, Records: ch.Records(), Events: ch.Events}, p, t, nil
}

// Payout finds one payout.
func (h *Holdfast) Payout(ctx context.Context, id string) (Payout, error) {
	return document[Payout](ctx, h, flow.KindPayout, id)
}

// PayoutFilter chooses payouts; zero values choose all.
type PayoutFilter struct {
	Account string
	State   State
	After   string // id of the last one seen; newest first
	Limit   int    // at most ledger.MaxPage
}

// Payouts lists payouts, newest first.
func (h *Holdfast) Payouts(ctx context.Context, f PayoutFilter) ([]Payout, error) {
	q := ledger.RecordQuery{Kind: flow.KindPayout, State: string(f.State), Desc: true, Limit: f.Limit}
	if f.Account != "" {
		q.Owner = flow.PayoutsOf(f.Account)
	}
	if f.After != "" {
		q.After = ledger.RecordKey{Kind: flow.KindPayout, ID: f.After}
	}
	rs, err := h.store.Records(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("holdfast: list payouts: %w", err)
	}
	return documents[Payout](rs)
}
