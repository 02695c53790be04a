package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// TransferInput moves money from one account to another.
type TransferInput struct {
	From, To string // accounts
	Currency string // ISO 4217, upper case
	Amount   int64  // minor units, 1..ledger.MaxAmount
	Reason   string // for people; at most MaxText characters
}

func (in TransferInput) check() error {
	if !idForm.MatchString(in.From) || !idForm.MatchString(in.To) {
		return reject(CodeInvalidID, "from, to: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.From == in.To {
		return reject(CodeInvalidField, "from and to are the same account")
	}
	if !text(in.Reason) {
		return reject(CodeInvalidField, "reason: at most %d characters", MaxText)
	}
	if err := checkCurrency(in.Currency); err != nil {
		return err
	}
	return checkAmount(in.Amount)
}

// Transfer moves money at once. A refusal is final for its key.
func (h *Holdfast) Transfer(ctx context.Context, key Key, in TransferInput) (Answer[Transfer], error) {
	if err := in.check(); err != nil {
		return Answer[Transfer]{}, err
	}
	return money[Transfer](ctx, h, key, func() (ledger.Entry, error) { return h.transferEntry(ctx, in) })
}

func (h *Holdfast) transferEntry(ctx context.Context, in TransferInput) (e ledger.Entry, err error) {
	from, err := h.payingAccount(ctx, in.From)
	if err != nil {
		return e, err
	}
	to, err := h.knownAccount(ctx, in.To)
	if err != nil {
		return e, err
	}
	t := Transfer{From: in.From, To: in.To, Currency: in.Currency, Amount: in.Amount, Reason: in.Reason}
	return h.moved(ctx, t, from.In(in.Currency).Ceiling > 0, to.In(in.Currency).Ceiling > 0)
}

// moved is the entry of a transfer.
func (h *Holdfast) moved(ctx context.Context, t Transfer, fromCapped, toCapped bool) (e ledger.Entry, err error) {
	if t.CreatedAt, err = h.now(ctx); err != nil {
		return e, err
	}
	if t.ID, err = newID(); err != nil {
		return e, err
	}
	return ledger.Entry{Ops: t.Ops(fromCapped, toCapped), Records: []ledger.Record{t.Record()}, Events: []ledger.Event{t.Event()}}, nil
}

// Deposit books money that came to an account from outside, or (amount below
// zero) that left it by hand. It says what is true, so a frozen account takes it
// too. Amount is in minor units of currency.
func (h *Holdfast) Deposit(ctx context.Context, key Key, account, currency string, amount int64, reason string) (Answer[Transfer], error) {
	t := Transfer{From: string(flow.Bank), To: account, Currency: currency, Amount: amount, Reason: reason}
	if amount < 0 {
		t.From, t.To, t.Amount = t.To, t.From, -amount
	}
	if reason == "" || !text(reason) {
		return Answer[Transfer]{}, reject(CodeInvalidField, "reason: 1 to %d characters", MaxText)
	}
	if err := checkCurrency(currency); err != nil {
		return Answer[Transfer]{}, err
	}
	if err := checkAmount(t.Amount); err != nil {
		return Answer[Transfer]{}, err
	}
	ctx = because(ctx, reason)
	return money[Transfer](ctx, h, key, func() (ledger.Entry, error) {
		a, err := document[Account](ctx, h, flow.KindAccount, account)
		if err != nil {
			return ledger.Entry{}, err
		}
		capped := a.In(currency).Ceiling > 0
		return h.moved(ctx, t, capped && amount < 0, capped && amount > 0)
	})
}

// TransferByID finds one transfer.
func (h *Holdfast) TransferByID(ctx context.Context, id string) (Transfer, error) {
	return document[Transfer](ctx, h, flow.KindTransfer, id)
}

// BulkTransfer is what became of one transfer of many: a transfer, or why not.
type BulkTransfer struct {
	Transfer  *Transfer `json:"transfer,omitempty"`
	Code      string    `json:"code,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Available int64     `json:"available,omitempty"` // with CodeInsufficientFunds and CodeCeiling
}

// TransferMany makes many transfers in one transaction: each on its own, or
// (together) all or none; then an account may pay out of what it gets. The
// answers are in the order of in. An error that is a Rejection says that none
// was made.
func (h *Holdfast) TransferMany(ctx context.Context, key Key, in []TransferInput, together bool) (Answer[[]BulkTransfer], error) {
	if len(in) == 0 || len(in) > MaxBulk {
		return Answer[[]BulkTransfer]{}, reject(CodeTooManyItems, "transfers: 1 to %d", MaxBulk)
	}
	for i, t := range in {
		if err := inRow(i, t.check()); err != nil {
			return Answer[[]BulkTransfer]{}, err
		}
	}
	if together {
		return money[[]BulkTransfer](ctx, h, key, func() (ledger.Entry, error) { return h.transferTogether(ctx, in) })
	}
	return h.transferEach(ctx, key, in)
}

// inRow says which row of many is at fault.
func inRow(i int, err error) error {
	var r *Rejection
	if errors.As(err, &r) {
		r.Detail = fmt.Sprintf("row %d: %s", i, r.Detail)
	}
	return err
}

func (h *Holdfast) transferTogether(ctx context.Context, in []TransferInput) (all ledger.Entry, err error) {
	out := make([]BulkTransfer, len(in))
	for i, t := range in {
		e, err := h.transferEntry(ctx, t)
		if err != nil {
			return e, inRow(i, err)
		}
		if err := json.Unmarshal(e.Records[0].Body, &out[i].Transfer); err != nil {
			return e, fmt.Errorf("holdfast: transfer many: %w", err)
		}
		all.Ops, all.Records, all.Events = append(all.Ops, e.Ops...), append(all.Records, e.Records...), append(all.Events, e.Events...)
	}
	all.Reply, err = json.Marshal(out)
	return all, err
}

func (h *Holdfast) transferEach(ctx context.Context, key Key, in []TransferInput) (Answer[[]BulkTransfer], error) {
	var a Answer[[]BulkTransfer]
	if err := h.claim(ctx, &key); err != nil {
		return a, err
	}
	entries := make([]ledger.Entry, len(in))
	for i, t := range in {
		e, err := h.transferEntry(ctx, t)
		part := key.part(i)
		if err = keep(part, &e, err); err != nil {
			return a, err
		}
		e.Remember, e.ID, e.Fingerprint = true, part.entry(), part.Print
		entries[i] = e
	}
	results, err := h.applyAll(ctx, entries)
	if err != nil {
		return a, err
	}
	a.Value, a.Replayed = make([]BulkTransfer, len(in)), true
	for i, res := range results {
		one, err := moneyAnswer[Transfer](res)
		var r *Rejection
		switch {
		case errors.As(err, &r):
			a.Value[i] = BulkTransfer{Code: r.Code, Detail: r.Detail, Available: r.Available}
		case err != nil:
			return a, err
		default:
			a.Value[i].Transfer = &one.Value
		}
		a.Replayed = a.Replayed && res.Replayed
	}
	return a, nil
}

// claim uses key up for a request whose parts have keys made of it. A zero key
// becomes one that nobody else has.
func (h *Holdfast) claim(ctx context.Context, key *Key) error {
	if key.Value == "" {
		id, err := newID()
		*key = Key{Scope: "once", Value: id}
		return err
	}
	_, err := h.apply(ctx, ledger.Entry{ID: key.entry(), Fingerprint: key.Print})
	return err
}
