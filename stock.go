package holdfast

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// StockLevel is the stock of a SKU, in pieces.
type StockLevel struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"` // on_hand - held: what can be ordered
	OnHand    int64  `json:"on_hand"`   // received and found again - sold - lost
	Held      int64  `json:"held"`      // by orders that are not paid yet
	Sold      int64  `json:"sold"`      // paid, not handed over
	Delivered int64  `json:"delivered"`
	Backorder int64  `json:"backorder"` // pieces that late money may still buy before they are there
	Received  int64  `json:"received"`
	Lost      int64  `json:"lost"`
}

// add counts a posting of so many pieces to (below zero: from) an account.
func (s *StockLevel) add(account ledger.Account, pieces int64) {
	switch account {
	case flow.Stock:
		s.OnHand += pieces
	case flow.Sold:
		s.Sold += pieces
	case flow.Delivered:
		s.Delivered += pieces
	case flow.Reserve:
		s.Backorder += pieces
	case flow.Supplier:
		s.Received -= pieces
	case flow.Shrinkage:
		s.Lost += pieces
	}
}

// Stock reads the stock of a SKU; one that was never received has none.
func (h *Holdfast) Stock(ctx context.Context, sku string) (StockLevel, error) {
	if _, err := h.item(ctx, sku); err != nil {
		return StockLevel{SKU: sku}, err
	}
	return stockOf(ctx, h.store, sku)
}

func stockOf(ctx context.Context, r ledger.Reader, sku string) (StockLevel, error) {
	s := StockLevel{SKU: sku}
	rows, err := r.Balances(ctx, ledger.BalanceQuery{Asset: flow.Pieces(sku)})
	if err != nil {
		return s, fmt.Errorf("holdfast: stock of %s: %w", sku, err)
	}
	for _, b := range rows {
		s.add(b.Account, b.Posted)
		if b.Account == flow.Stock {
			s.Held = b.Held
		}
	}
	s.Available = s.OnHand - s.Held
	return s, nil
}

// Adjustment changes a SKU's stock, or its backorder budget.
type Adjustment struct {
	SKU       string
	Quantity  int64  // pieces; below zero takes away
	Reason    string // for people; 1..MaxText characters
	Backorder bool   // the budget instead of the stock
}

func (a Adjustment) check() error {
	if a.Quantity == 0 || a.Quantity < -ledger.MaxAmount || a.Quantity > ledger.MaxAmount {
		return reject(CodeAmountRange, "quantity: not 0, at most %d either way", int64(ledger.MaxAmount))
	}
	if a.Reason == "" || !text(a.Reason) {
		return reject(CodeInvalidField, "reason: 1 to %d characters", MaxText)
	}
	return nil
}

// posting is where the pieces come from and go to.
func (a Adjustment) posting() ledger.Posting {
	p := ledger.Posting{From: flow.Supplier, To: flow.Stock, Asset: flow.Pieces(a.SKU), Amount: a.Quantity}
	if a.Backorder {
		p.From, p.To = flow.Promised, flow.Reserve
	}
	if a.Quantity > 0 {
		return p
	}
	p.From, p.To, p.Amount = p.To, flow.Shrinkage, -a.Quantity
	if a.Backorder {
		p.To = flow.Promised
	}
	return p
}

// Adjust receives or writes off stock. It never takes what an order holds.
func (h *Holdfast) Adjust(ctx context.Context, key Key, a Adjustment) (Answer[StockLevel], error) {
	if ans, ok, err := replayed[StockLevel](ctx, h, key.settled()); ok || err != nil {
		return ans, err
	}
	if err := a.check(); err != nil {
		return Answer[StockLevel]{}, err
	}
	ctx = because(ctx, a.Reason)
	if _, err := h.item(ctx, a.SKU); err != nil {
		return Answer[StockLevel]{}, err
	}
	body, err := json.Marshal(map[string]any{"sku": a.SKU, "quantity": a.Quantity, "reason": a.Reason, "backorder": a.Backorder})
	if err != nil {
		return Answer[StockLevel]{}, fmt.Errorf("holdfast: adjust %s: %w", a.SKU, err)
	}
	e := ledger.Entry{ID: key.entry(), Fingerprint: key.Print, Ops: []ledger.Op{ledger.Move(a.posting())},
		Events: []ledger.Event{{Type: "stock.adjusted", Subject: a.SKU, Body: body}}}
	if e.ID == "" {
		if e.ID, err = newID(); err != nil {
			return Answer[StockLevel]{}, err
		}
	}
	res, err := h.apply(ctx, e)
	if err != nil {
		return Answer[StockLevel]{}, err
	}
	switch res.Code {
	case ledger.OK:
	case ledger.Insufficient:
		return Answer[StockLevel]{}, &Rejection{Code: CodeStockInsufficient, SKU: a.SKU, Available: res.Available,
			Detail: fmt.Sprintf("%d pieces of %s are not held by orders", res.Available, a.SKU)}
	default:
		return Answer[StockLevel]{}, fmt.Errorf("holdfast: adjust %s: the ledger refused: %s %s", a.SKU, res.Code, res.Detail)
	}
	level, err := h.Stock(ctx, a.SKU)
	if err != nil {
		return Answer[StockLevel]{}, err
	}
	return settle(ctx, h, key, level)
}
