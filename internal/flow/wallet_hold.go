package flow

import (
	"fmt"

	"github.com/holdfast-pay/holdfast/ledger"
)

// WalletHold is money of one account that is reserved for another.
type WalletHold struct {
	ID        string           `json:"id"`
	Version   int64            `json:"version"`
	State     ledger.HoldState `json:"state"`
	From      string           `json:"from"`
	To        string           `json:"to"`
	Currency  string           `json:"currency"`
	Amount    int64            `json:"amount"`
	Committed int64            `json:"committed"` // moved so far
	Reason    string           `json:"reason,omitempty"`
	CreatedAt Time             `json:"created_at"`
	ExpiresAt Time             `json:"expires_at"`
	CapAt     Time             `json:"cap_at"` // it is never extended beyond
	// FromCapped and ToCapped say which side has a ceiling; that never changes.
	FromCapped bool `json:"from_capped,omitempty"`
	ToCapped   bool `json:"to_capped,omitempty"`
}

// Codes of refusals about holds.
const (
	HoldOver    = "hold_final"
	ExceedsHold = "exceeds_hold"
)

// RoomID names the hold on the room that a hold's money will take.
func RoomID(hold string) string { return hold + "-r" }

// Record is the hold as it is stored.
func (h WalletHold) Record() ledger.Record {
	due := Time(0)
	if h.State == ledger.Held {
		due = h.ExpiresAt
	}
	return ledger.Record{Kind: KindHold, ID: h.ID, Version: h.Version, State: string(h.State), Owner: "account/" + h.From, Due: int64(due), Body: marshal(h)}
}

// Event tells what the hold has become.
func (h WalletHold) Event() ledger.Event {
	return ledger.Event{Type: "hold." + string(h.State), Subject: h.ID, Body: marshal(h)}
}

// each is an op for the hold and for its room.
func (h WalletHold) each(op func(id string) ledger.Op) []ledger.Op {
	ops := []ledger.Op{op(h.ID)}
	if h.ToCapped {
		ops = append(ops, op(RoomID(h.ID)))
	}
	return ops
}

// Place reserves the money of a new hold, and the room for it.
func (h WalletHold) Place() (WalletHold, []ledger.Op) {
	h.Version, h.State = 1, ledger.Held
	return h, h.each(func(id string) ledger.Op {
		p := ledger.Posting{From: Wallet(h.From), To: Wallet(h.To), Asset: ledger.Asset(h.Currency), Amount: h.Amount}
		if id != h.ID {
			p.From, p.To = Room(h.To), Filled(h.To)
		}
		return ledger.Reserve(id, p, int64(h.ExpiresAt), int64(h.CapAt))
	})
}

// Commit moves amount (0 = all that is left). The rest stays held (keep), or is
// released.
func (h WalletHold) Commit(amount int64, keep bool) (WalletHold, []ledger.Op, *Refusal) {
	if refusal := h.open(); refusal != nil {
		return h, nil, refusal
	}
	left := h.Amount - h.Committed
	if amount == 0 {
		amount = left
	}
	if amount > left {
		return h, nil, &Refusal{ExceedsHold, fmt.Sprintf("%d of %d are left", left, h.Amount)}
	}
	h.Committed += amount
	if !keep || h.Committed == h.Amount {
		h.State = ledger.Committed
	}
	h.Version++
	ops := h.each(func(id string) ledger.Op { return ledger.CommitPart(id, amount, keep) })
	if h.FromCapped {
		ops = append(ops, ledger.Move(ledger.Posting{From: Filled(h.From), To: Room(h.From), Asset: ledger.Asset(h.Currency), Amount: amount}))
	}
	return h, ops, nil
}

// Void releases what is left.
func (h WalletHold) Void() (WalletHold, []ledger.Op, *Refusal) {
	return h.end(ledger.Voided, ledger.Void)
}

// Expire is Void for a hold whose time is over.
func (h WalletHold) Expire() (WalletHold, []ledger.Op, *Refusal) {
	return h.end(ledger.Expired, ledger.Expire)
}

func (h WalletHold) end(as ledger.HoldState, op func(id string) ledger.Op) (WalletHold, []ledger.Op, *Refusal) {
	if refusal := h.open(); refusal != nil {
		return h, nil, refusal
	}
	h.State = as
	h.Version++
	return h, h.each(op), nil
}

// Extend moves the deadline to until, never to an earlier time.
func (h WalletHold) Extend(until Time) (WalletHold, []ledger.Op, *Refusal) {
	if refusal := h.open(); refusal != nil {
		return h, nil, refusal
	}
	h.ExpiresAt = min(max(until, h.ExpiresAt), h.CapAt)
	h.Version++
	return h, h.each(func(id string) ledger.Op { return ledger.Extend(id, int64(h.ExpiresAt)) }), nil
}

func (h WalletHold) open() *Refusal {
	if h.State != ledger.Held {
		return &Refusal{HoldOver, "the hold is " + string(h.State)}
	}
	return nil
}
