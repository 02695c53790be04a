package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bojanz/currency"
	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// The documents of accounts.
type (
	Account    = flow.Account
	Terms      = flow.Terms
	Transfer   = flow.Transfer
	WalletHold = flow.WalletHold
	Payout     = flow.Payout
)

// MaxTerms is in how many currencies an account can have limits.
const MaxTerms = 20

// AccountInput is what a caller says of a new account.
type AccountInput struct {
	ID    string  // [A-Za-z0-9_-]{1,64}; "" = a new one
	Name  string  // at most MaxText characters
	Terms []Terms // its limits; a currency without any has none
}

func (in AccountInput) check() error {
	if in.ID != "" && !idForm.MatchString(in.ID) {
		return reject(CodeInvalidID, "id: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if !text(in.Name) {
		return reject(CodeInvalidField, "name: at most %d characters", MaxText)
	}
	return checkTerms(in.Terms)
}

func checkTerms(terms []Terms) error {
	if len(terms) > MaxTerms {
		return reject(CodeTooManyItems, "limits: at most %d", MaxTerms)
	}
	for i, t := range terms {
		if err := checkCurrency(t.Currency); err != nil {
			return err
		}
		if slices.ContainsFunc(terms[:i], func(o Terms) bool { return o.Currency == t.Currency }) {
			return reject(CodeInvalidField, "limits: %s is there twice", t.Currency)
		}
		if t.Floor < -ledger.MaxAmount || t.Floor > ledger.MaxAmount {
			return reject(CodeAmountRange, "floor: at most %d minor units either way", int64(ledger.MaxAmount))
		}
		if t.Ceiling != 0 && t.Ceiling < t.Floor {
			return reject(CodeInvalidField, "limits: the ceiling is below the floor")
		}
		for _, n := range []int64{t.Ceiling, t.PerPayout, t.PerDay, t.ApproveAbove} {
			if n < 0 || n > ledger.MaxAmount {
				return reject(CodeAmountRange, "limits: 0 to %d minor units", int64(ledger.MaxAmount))
			}
		}
	}
	return nil
}

func checkCurrency(code string) error {
	if code == "" || !currency.IsValid(code) || code == "XXX" {
		return reject(CodeCurrencyInvalid, "currency: an ISO 4217 code in upper case")
	}
	return nil
}

func checkAmount(n int64) error {
	if n < 1 || n > ledger.MaxAmount {
		return reject(CodeAmountRange, "amount: 1 to %d minor units", int64(ledger.MaxAmount))
	}
	return nil
}

// OpenAccount makes a new account, without money: a floor above zero can only be
// set (SetTerms) when there is so much.
func (h *Holdfast) OpenAccount(ctx context.Context, key Key, in AccountInput) (Answer[Account], error) {
	if err := in.check(); err != nil {
		return Answer[Account]{}, err
	}
	return money[Account](ctx, h, key, func() (e ledger.Entry, err error) {
		a := Account{ID: in.ID, Version: 1, Name: norm.NFC.String(in.Name), Terms: in.Terms}
		if a.CreatedAt, err = h.now(ctx); err != nil {
			return e, err
		}
		if a.ID == "" {
			if a.ID, err = newID(); err != nil {
				return e, err
			}
		}
		ops, refusal := a.Retune(Account{}, nil)
		return accountEntry(a, ops, "account.opened"), refused(refusal)
	})
}

// SetTerms replaces the limits of an account. What would bring it below its
// floor or above its ceiling at once is refused. A new daily limit counts from
// the first payout of the next day in UTC, if today has had one. ifMatch is the
// version that is replaced; 0 = whichever.
func (h *Holdfast) SetTerms(ctx context.Context, key Key, id string, terms []Terms, ifMatch int64) (Answer[Account], error) {
	if err := checkTerms(terms); err != nil {
		return Answer[Account]{}, err
	}
	return change[Account](ctx, h, key, func() (ledger.Entry, error) {
		old, seen, err := h.tuned(ctx, id)
		if err != nil {
			return ledger.Entry{}, err
		}
		if ifMatch != 0 && ifMatch != old.Version {
			return ledger.Entry{}, reject(CodeStale, "account %s is at version %d", id, old.Version)
		}
		a := old
		a.Terms = terms
		a.Version++
		ops, refusal := a.Retune(old, seen)
		return accountEntry(a, ops, "account.limited"), refused(refusal)
	})
}

// Freeze keeps an account's money where it is, until it is thawed (frozen
// false): requests that come later are refused, and payouts whose number is not
// at the gateway yet wait. It may still get money, and refunds of what it got for
// orders (SplitInput) go on. reason is for people.
func (h *Holdfast) Freeze(ctx context.Context, key Key, id string, frozen bool, reason string) (Answer[Account], error) {
	if !text(reason) {
		return Answer[Account]{}, reject(CodeInvalidField, "reason: at most %d characters", MaxText)
	}
	ctx = because(ctx, reason)
	return change[Account](ctx, h, key, func() (ledger.Entry, error) {
		a, err := document[Account](ctx, h, flow.KindAccount, id)
		if err != nil {
			return ledger.Entry{}, err
		}
		kind := "account.frozen"
		if a.Frozen, a.Reason = frozen, reason; !frozen {
			kind = "account.thawed"
		}
		a.Version++
		return accountEntry(a, nil, kind), nil
	})
}

func accountEntry(a Account, ops []ledger.Op, kind string) ledger.Entry {
	r := a.Record()
	return ledger.Entry{Ops: ops, Records: []ledger.Record{r}, Events: []ledger.Event{{Type: kind, Subject: a.ID, Body: r.Body}}}
}

func refused(r *flow.Refusal) error {
	if r == nil {
		return nil
	}
	return &Rejection{Code: r.Code, Detail: r.Detail}
}

// knownAccount finds an account that a request names in passing.
func (h *Holdfast) knownAccount(ctx context.Context, id string) (Account, error) {
	a, err := document[Account](ctx, h, flow.KindAccount, id)
	var r *Rejection
	if errors.As(err, &r) {
		return a, reject(CodeAccountUnknown, "there is no account %s", id)
	}
	return a, err
}

// payingAccount is knownAccount for one that money is to leave. It is read anew
// for every request, so that what is asked for after a freeze was answered is
// refused, on every node. What the account owes is taken first.
func (h *Holdfast) payingAccount(ctx context.Context, id string) (Account, error) {
	a, err := h.paying.get(ctx, id, func(ctx context.Context) (debtor, error) {
		a, err := h.knownAccount(ctx, id)
		if err != nil {
			return debtor{}, err
		}
		owed, err := h.available(ctx, flow.Receivable(id))
		return debtor{a, len(owed) > 0}, err
	})
	switch {
	case err != nil:
		return Account{}, err
	case a.Frozen:
		return a.Account, reject(CodeAccountFrozen, "account %s is frozen", id)
	case a.owes:
		return a.Account, h.collect(ctx, a.Account)
	}
	return a.Account, nil
}

// debtor is an account, and whether it owes something.
type debtor struct {
	Account
	owes bool
}

// money writes the entry that decide makes, once for key. A refusal is kept like
// an answer, so that a delayed repeat of the request can't succeed later.
func money[T any](ctx context.Context, h *Holdfast, key Key, decide func() (ledger.Entry, error)) (Answer[T], error) {
	e, err := decide()
	if err = keep(key, &e, err); err != nil {
		return Answer[T]{}, err
	}
	e.Remember = true
	e.ID, e.Fingerprint = key.entry(), key.Print
	if e.ID == "" {
		if e.ID, err = newID(); err != nil {
			return Answer[T]{}, err
		}
	}
	res, err := h.apply(ctx, e)
	if err != nil {
		return Answer[T]{}, err
	}
	return moneyAnswer[T](res)
}

// kept is the reply of an entry that does nothing but remember a refusal.
type kept struct {
	Refused *Rejection `json:"refused"`
}

// keep makes e remember err, if that is a refusal of what key asks for.
func keep(key Key, e *ledger.Entry, err error) error {
	var r *Rejection
	if key.Value == "" || !errors.As(err, &r) || r.Code == CodeOverloaded {
		return err
	}
	reply, err := json.Marshal(kept{r})
	*e = ledger.Entry{Reply: reply}
	return err
}

// change is money for documents that there are already: it decides anew when
// somebody else was faster, and a refusal is not kept.
func change[T any](ctx context.Context, h *Holdfast, key Key, decide func() (ledger.Entry, error)) (Answer[T], error) {
	if a, ok, err := replayed[T](ctx, h, key); ok || err != nil {
		return a, err
	}
	for range maxConflict {
		e, err := decide()
		if err != nil {
			return Answer[T]{}, err
		}
		e.ID, e.Fingerprint = key.entry(), key.Print
		if e.ID == "" {
			if e.ID, err = newID(); err != nil {
				return Answer[T]{}, err
			}
		}
		res, err := h.apply(ctx, e)
		if err != nil {
			return Answer[T]{}, err
		}
		if res.Code != ledger.Stale {
			return moneyAnswer[T](res)
		}
	}
	return Answer[T]{}, fmt.Errorf("holdfast: change: %d conflicts", maxConflict)
}

// moneyAnswer is what an entry's result says to whoever asked for it.
func moneyAnswer[T any](res ledger.Result) (Answer[T], error) {
	if err := moneyRefused(res); err != nil {
		return Answer[T]{}, err
	}
	var k kept
	if err := json.Unmarshal(res.Reply, &k); err == nil && k.Refused != nil {
		return Answer[T]{}, k.Refused
	}
	return answer[T](res.Reply, res.Replayed)
}

// moneyRefused says what a refusal of the ledger means for accounts.
func moneyRefused(res ledger.Result) error {
	kind, account, _ := strings.Cut(string(res.Key.Account), "/")
	switch {
	case res.Code == ledger.OK:
		return nil
	case res.Code == ledger.Insufficient && kind == "wallet":
		return &Rejection{Code: CodeInsufficientFunds, Available: res.Available,
			Detail: fmt.Sprintf("account %s has %d %s available", account, res.Available, res.Key.Asset)}
	case res.Code == ledger.Insufficient && kind == "room":
		return &Rejection{Code: CodeCeiling, Available: res.Available,
			Detail: fmt.Sprintf("account %s has room for %d %s more", account, res.Available, res.Key.Asset)}
	case res.Code == ledger.Insufficient && kind == "daily":
		return &Rejection{Code: CodeDailyLimit, Available: res.Available,
			Detail: fmt.Sprintf("account %s can pay out %d more today", account, res.Available)}
	case res.Code == ledger.Stale && res.Record.Kind == flow.KindAccount:
		return reject(CodeAccountExists, "there is an account %s", res.Record.ID)
	case res.Code == ledger.HoldFinal:
		return reject(CodeHoldFinal, "the hold is %s", res.Hold)
	}
	return fmt.Errorf("holdfast: the ledger refused: %s %s %s", res.Code, res.Key.Account, res.Detail)
}
