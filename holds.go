package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// maxHoldLife is how long money can be held in all, however often it is extended.
const maxHoldLife = 30 * 24 * time.Hour

// HoldInput reserves money of one account for another.
type HoldInput struct {
	TransferInput
	HoldFor time.Duration // MinHold..MaxHold, whole seconds; 0 = 15 minutes
}

const defaultHold = 15 * time.Minute

func (in HoldInput) check() error {
	if !holdInRange(in.HoldFor) {
		return reject(CodeHoldRange, "hold_for: %v to %v, whole seconds", MinHold, MaxHold)
	}
	return in.TransferInput.check()
}

// Hold reserves money, and the room for it where it is to go. It ends when it is
// committed or voided, or its time is over.
func (h *Holdfast) Hold(ctx context.Context, key Key, in HoldInput) (Answer[WalletHold], error) {
	if in.HoldFor == 0 {
		in.HoldFor = defaultHold
	}
	if err := in.check(); err != nil {
		return Answer[WalletHold]{}, err
	}
	return money[WalletHold](ctx, h, key, func() (e ledger.Entry, err error) {
		from, err := h.payingAccount(ctx, in.From)
		if err != nil {
			return e, err
		}
		to, err := h.knownAccount(ctx, in.To)
		if err != nil {
			return e, err
		}
		now, err := h.now(ctx)
		if err != nil {
			return e, err
		}
		id, err := newID()
		if err != nil {
			return e, err
		}
		w, ops := WalletHold{ID: id, From: in.From, To: in.To, Currency: in.Currency, Amount: in.Amount, Reason: in.Reason,
			CreatedAt: now, ExpiresAt: now.Add(in.HoldFor), CapAt: now.Add(maxHoldLife),
			FromCapped: from.In(in.Currency).Ceiling > 0, ToCapped: to.In(in.Currency).Ceiling > 0}.Place()
		return holdEntry(w, ops), nil
	})
}

func holdEntry(w WalletHold, ops []ledger.Op) ledger.Entry {
	return ledger.Entry{Ops: ops, Records: []ledger.Record{w.Record()}, Events: []ledger.Event{w.Event()}}
}

// HoldByID finds one hold of money.
func (h *Holdfast) HoldByID(ctx context.Context, id string) (WalletHold, error) {
	return document[WalletHold](ctx, h, flow.KindHold, id)
}

// CommitHold moves amount minor units (0 = all that is left) of a hold. The rest
// stays held (keep), or is released. A frozen account's holds are not committed.
func (h *Holdfast) CommitHold(ctx context.Context, key Key, id string, amount int64, keep bool) (Answer[WalletHold], error) {
	if amount != 0 {
		if err := checkAmount(amount); err != nil {
			return Answer[WalletHold]{}, err
		}
	}
	return h.changeHold(ctx, key, id, func(w WalletHold) (WalletHold, []ledger.Op, *flow.Refusal, error) {
		if _, err := h.payingAccount(ctx, w.From); err != nil {
			return w, nil, nil, err
		}
		w, ops, refusal := w.Commit(amount, keep)
		return w, ops, refusal, nil
	})
}

// VoidHold releases what is left of a hold.
func (h *Holdfast) VoidHold(ctx context.Context, key Key, id string) (Answer[WalletHold], error) {
	return h.changeHold(ctx, key, id, func(w WalletHold) (WalletHold, []ledger.Op, *flow.Refusal, error) {
		w, ops, refusal := w.Void()
		return w, ops, refusal, nil
	})
}

// ExtendHold moves a hold's end to now + holdFor, never to an earlier time, and
// not beyond its cap.
func (h *Holdfast) ExtendHold(ctx context.Context, key Key, id string, holdFor time.Duration) (Answer[WalletHold], error) {
	if !holdInRange(holdFor) {
		return Answer[WalletHold]{}, reject(CodeHoldRange, "hold_for: %v to %v, whole seconds", MinHold, MaxHold)
	}
	return h.changeHold(ctx, key, id, func(w WalletHold) (WalletHold, []ledger.Op, *flow.Refusal, error) {
		now, err := h.now(ctx)
		if err != nil {
			return w, nil, nil, err
		}
		w, ops, refusal := w.Extend(now.Add(holdFor))
		return w, ops, refusal, nil
	})
}

func (h *Holdfast) changeHold(ctx context.Context, key Key, id string, do func(WalletHold) (WalletHold, []ledger.Op, *flow.Refusal, error)) (Answer[WalletHold], error) {
	return change[WalletHold](ctx, h, key, func() (e ledger.Entry, err error) {
		w, err := h.HoldByID(ctx, id)
		if err != nil {
			return e, err
		}
		w, ops, refusal, err := do(w)
		if err == nil {
			err = refused(refusal)
		}
		return holdEntry(w, ops), err
	})
}

// sweepHolds releases the holds whose time is over.
func (b *background) sweepHolds(ctx context.Context) error {
	due, err := b.due(ctx, flow.KindHold, sweepBatch)
	if err != nil {
		return err
	}
	inParallel(due, func(r ledger.Record) {
		_, err := b.h.changeHold(ctx, Key{}, r.ID, func(w WalletHold) (WalletHold, []ledger.Op, *flow.Refusal, error) {
			w, ops, refusal := w.Expire()
			return w, ops, refusal, nil
		})
		var faster *Rejection // somebody else was
		if err != nil && !errors.As(err, &faster) {
			b.h.log.Error("expire hold", "hold", r.ID, "error", err)
		}
	})
	return nil
}
