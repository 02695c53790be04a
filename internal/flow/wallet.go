package flow

import (
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Account is what somebody has with us: a user, a seller. Its money is on the
// ledger account Wallet(ID) and its like, which nothing else can be named.
type Account struct {
	ID        string  `json:"id"`
	Version   int64   `json:"version"`
	Name      string  `json:"name,omitempty"`
	Frozen    bool    `json:"frozen"` // no money leaves it by a new transfer, hold, commit or payout
	Reason    string  `json:"frozen_reason,omitempty"`
	Terms     []Terms `json:"limits,omitempty"` // one for each currency that has any
	CreatedAt Time    `json:"created_at"`
}

// Terms are the limits of an account in one currency, in minor units. Floor and
// Ceiling bound the balance, and are in the ledger: see Retune.
type Terms struct {
	Currency     string `json:"currency"`
	Floor        int64  `json:"floor,omitempty"`         // below zero: a credit line; above: what always stays
	Ceiling      int64  `json:"ceiling,omitempty"`       // 0 = none; an account keeps having one, or none
	PerPayout    int64  `json:"per_payout,omitempty"`    // 0 = no limit
	PerDay       int64  `json:"per_day,omitempty"`       // of payouts in a day in UTC; 0 = no limit
	ApproveAbove int64  `json:"approve_above,omitempty"` // larger payouts need a second person; 0 = none does
}

// In are the terms in a currency.
func (a Account) In(currency string) Terms {
	for _, t := range a.Terms {
		if t.Currency == currency {
			return t
		}
	}
	return Terms{Currency: currency}
}

// Kinds of records about accounts.
const (
	KindAccount  = "account"
	KindTransfer = "transfer"
	KindHold     = "wallet_hold"
	KindPayout   = "payout"
)

// Wallet is where an account's money is.
func Wallet(account string) ledger.Account { return ledger.Account("wallet/" + account) }

// Floor has what an account's floor takes out of its wallet, or the credit that
// it has put in: the balance that people see is that of both together.
func Floor(account string) ledger.Account { return ledger.Account("@floor/" + account) }

// Room is what an account may still get before it is at its ceiling, and Filled
// the other side of it.
func Room(account string) ledger.Account   { return ledger.Account("room/" + account) }
func Filled(account string) ledger.Account { return ledger.Account("@room/" + account) }

// Record is the account as it is stored.
func (a Account) Record() ledger.Record {
	state := "open"
	if a.Frozen {
		state = "frozen"
	}
	return ledger.Record{Kind: KindAccount, ID: a.ID, Version: a.Version, State: state, Body: marshal(a)}
}

// Retune turns the ledger to the terms of a, which had those of old. seen is, by
// currency, the balance and the room together: transfers do not change it.
//
// A floor that is not zero is money set aside, or lent; a ceiling is room that
// incoming money takes. So both are the ledger's one rule, that nothing runs
// below zero, and no limit is checked before the write, where two requests at
// once would both pass.
func (a Account) Retune(old Account, seen map[string]int64) ([]ledger.Op, *Refusal) {
	w := &work{}
	for _, currency := range currencies(a, old) {
		now, before := a.In(currency), old.In(currency)
		if old.Version > 0 && (now.Ceiling > 0) != (before.Ceiling > 0) {
			return nil, &Refusal{InvalidTerms, fmt.Sprintf("%s: a ceiling can be changed, not given or taken away", currency)}
		}
		w.balance(Wallet(a.ID), Floor(a.ID), ledger.Asset(currency), now.Floor-before.Floor)
		if now.Ceiling > 0 {
			w.balance(Filled(a.ID), Room(a.ID), ledger.Asset(currency), now.Ceiling-seen[currency])
		}
	}
	return w.Ops, nil
}

// balance moves n, or -n the other way.
func (w *work) balance(from, to ledger.Account, asset ledger.Asset, n int64) {
	if n < 0 {
		from, to, n = to, from, -n
	}
	if n != 0 {
		w.move(from, to, asset, n)
	}
}

func currencies(accounts ...Account) (out []string) {
	has := map[string]bool{}
	for _, a := range accounts {
		for _, t := range a.Terms {
			if !has[t.Currency] {
				has[t.Currency] = true
				out = append(out, t.Currency)
			}
		}
	}
	return out
}

// InvalidTerms is the code of limits that an account can't have.
const InvalidTerms = "limits_not_possible"

// Transfer is money that moved from one account to another, to or from Bank, or
// to Advanced.
type Transfer struct {
	ID        string `json:"id"`
	From      string `json:"from"`
	To        string `json:"to"`
	Currency  string `json:"currency"`
	Amount    int64  `json:"amount"`
	Reason    string `json:"reason,omitempty"`
	CreatedAt Time   `json:"created_at"`
}

// Record is the transfer as it is stored.
func (t Transfer) Record() ledger.Record {
	return ledger.Record{Kind: KindTransfer, ID: t.ID, Version: 1, Body: marshal(t)}
}

// Ops move the money. fromCapped and toCapped say which side has a ceiling. What
// goes to Advanced pays what From owes, and is never more than that.
func (t Transfer) Ops(fromCapped, toCapped bool) []ledger.Op {
	w := &work{}
	w.move(purse(t.From), purse(t.To), ledger.Asset(t.Currency), t.Amount)
	if t.To == string(Advanced) {
		w.move(Receivable(t.From), Owing, ledger.Asset(t.Currency), t.Amount)
	}
	if fromCapped {
		w.move(Filled(t.From), Room(t.From), ledger.Asset(t.Currency), t.Amount)
	}
	if toCapped {
		w.move(Room(t.To), Filled(t.To), ledger.Asset(t.Currency), t.Amount)
	}
	return w.Ops
}

// purse is the ledger account of one end of a transfer.
func purse(account string) ledger.Account {
	if account == string(Bank) || account == string(Advanced) {
		return ledger.Account(account)
	}
	return Wallet(account)
}

// Event tells that the transfer was made.
func (t Transfer) Event() ledger.Event {
	return ledger.Event{Type: "transfer.made", Subject: t.ID, Body: marshal(t)}
}
