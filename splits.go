package holdfast

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// The parts of an order's money, and of a refund, that are an account's.
type (
	Split     = flow.Split
	SplitPart = flow.Part
)

// SplitInput gives a part of an order's money to an account, which gets it when
// the order is paid: at once, frozen or not, and over its ceiling if need be. What
// no split names is the shop's own; its fee may be a split to an account of its
// own as well.
//
// A refund takes back from each in proportion, over all refunds of the order, to
// the last minor unit. It takes what is available, of a frozen account too, and
// never waits: what an account has not got, the shop pays, and the account's
// balance shows as Receivable. That is paid before anything else can leave the
// account, and in any case within a minute of there being money.
type SplitInput struct {
	Account string // that there is
	Amount  int64  // minor units of the order's currency, 1..ledger.MaxAmount; together at most the total
}

func checkSplits(in []SplitInput) error {
	if len(in) > MaxSplits {
		return reject(CodeTooManyItems, "splits: at most %d", MaxSplits)
	}
	seen := map[string]bool{}
	for _, s := range in {
		if !idForm.MatchString(s.Account) {
			return reject(CodeInvalidID, "splits: account: 1 to 64 of A-Z a-z 0-9 _ -")
		}
		if seen[s.Account] {
			return reject(CodeInvalidField, "splits: %s is there twice", s.Account)
		}
		seen[s.Account] = true
		if err := checkAmount(s.Amount); err != nil {
			return err
		}
	}
	return nil
}

// splits are those of a new order. That an account has a ceiling, or none, never
// changes.
func (h *Holdfast) splits(ctx context.Context, in []SplitInput, currency string) (out []Split, err error) {
	for _, s := range in {
		a, err := h.knownAccount(ctx, s.Account)
		if err != nil {
			return nil, err
		}
		out = append(out, Split{Account: a.ID, Amount: s.Amount, Capped: a.In(currency).Ceiling > 0})
	}
	return out, nil
}

// collect takes what an account owes, as far as it has it.
func (h *Holdfast) collect(ctx context.Context, a Account) error {
	for range maxConflict {
		due, err := h.collectable(ctx, a)
		if err != nil || len(due) == 0 {
			return err
		}
		// Refused = somebody else has collected, or taken the money: look again.
		if _, err := h.applyAll(ctx, due); err != nil {
			return err
		}
	}
	return fmt.Errorf("holdfast: collect from %s: %d conflicts", a.ID, maxConflict)
}

// collectable are the entries that take what an account owes and has.
func (h *Holdfast) collectable(ctx context.Context, a Account) (due []ledger.Entry, err error) {
	owed, err := h.available(ctx, flow.Receivable(a.ID))
	if err != nil || len(owed) == 0 {
		return nil, err
	}
	has, err := h.available(ctx, flow.Wallet(a.ID))
	if err != nil {
		return nil, err
	}
	for asset, n := range owed {
		if n = min(n, has[asset]); n == 0 {
			continue
		}
		t := Transfer{From: a.ID, To: string(flow.Advanced), Currency: string(asset), Amount: n, Reason: "it is owed for refunds"}
		e, err := h.moved(ctx, t, a.In(t.Currency).Ceiling > 0, false)
		if err != nil {
			return nil, err
		}
		if e.ID, err = newID(); err != nil {
			return nil, err
		}
		due = append(due, e)
	}
	return due, nil
}

// available is what an account of the ledger has of each asset, if it has any.
func (h *Holdfast) available(ctx context.Context, account ledger.Account) (map[ledger.Asset]int64, error) {
	rows, err := h.store.Balances(ctx, ledger.BalanceQuery{Account: account})
	if err != nil {
		return nil, fmt.Errorf("holdfast: balance of %s: %w", account, err)
	}
	out := map[ledger.Asset]int64{}
	for _, b := range rows {
		if n := b.Available(); n > 0 {
			out[b.Asset] = n
		}
	}
	return out, nil
}

// collectEvery is how often it is looked for what is owed.
const collectEvery = time.Minute

// sweepReceivables takes what is owed of whoever has come to money since. Each is
// on its own: one that fails is told and left for the next sweep.
func (b *background) sweepReceivables(ctx context.Context) error {
	now := b.h.o.Clock()
	if age := now.Sub(b.looked); age >= 0 && age < collectEvery {
		return nil
	}
	b.looked = now
	for q := (ledger.BalanceQuery{Prefix: flow.Receivable("")}); ; {
		page, err := b.h.store.Balances(ctx, q)
		if err != nil {
			return fmt.Errorf("holdfast: list receivables: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		inParallel(page, func(r ledger.Balance) {
			if r.Posted == 0 {
				return
			}
			id := strings.TrimPrefix(string(r.Account), string(flow.Receivable("")))
			a, err := document[Account](ctx, b.h, flow.KindAccount, id)
			if err == nil {
				err = b.h.collect(ctx, a)
			}
			if err != nil {
				b.h.log.Error("collect what is owed", "account", id, "error", err)
			}
		})
		q.After = page[len(page)-1].Key
	}
}
