package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// MaxImport is how many payouts one file can ask for.
const MaxImport = 100_000

// PayoutRow is a payout of a file.
type PayoutRow struct {
	ID string // of the row, within its batch: [A-Za-z0-9_-]{1,64}
	PayoutInput
}

// PayoutResult is what became of a row: a payout, or why not.
type PayoutResult struct {
	Row    string  `json:"row"`
	Payout *Payout `json:"payout,omitempty"`
	Again  bool    `json:"again,omitempty"` // an earlier import had asked for it
	Code   string  `json:"code,omitempty"`
	Detail string  `json:"detail,omitempty"`
}

// batchKey is the key of a row: importing it again is the same request.
func batchKey(batch string, row PayoutRow) (Key, error) {
	print, err := json.Marshal(row)
	if err != nil {
		return Key{}, fmt.Errorf("holdfast: row %s: %w", row.ID, err)
	}
	return Key{Scope: "import", Value: batch + "/" + row.ID, Print: print}, nil
}

// CheckPayouts says what is wrong with the rows of a batch, before any of them is
// asked for: with a row by itself, and with all that were not asked for before
// together, if an account has less than they take. nil = nothing is.
func (h *Holdfast) CheckPayouts(ctx context.Context, batch string, rows []PayoutRow) (bad []PayoutResult, err error) {
	if !idForm.MatchString(batch) {
		return nil, reject(CodeInvalidID, "batch: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if len(rows) == 0 || len(rows) > MaxImport {
		return nil, reject(CodeTooManyItems, "rows: 1 to %d", MaxImport)
	}
	seen := map[string]bool{}
	left := map[ledger.Key]int64{}
	for _, row := range rows {
		err := h.checkRow(ctx, batch, row, left)
		if err == nil && seen[row.ID] {
			err = reject(CodeInvalidID, "the row is there twice")
		}
		seen[row.ID] = true
		var r *Rejection
		if errors.As(err, &r) {
			bad = append(bad, PayoutResult{Row: row.ID, Code: r.Code, Detail: r.Detail})
		} else if err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// checkRow takes the row's money off left, which is read on first use.
func (h *Holdfast) checkRow(ctx context.Context, batch string, row PayoutRow, left map[ledger.Key]int64) error {
	if !idForm.MatchString(row.ID) {
		return reject(CodeInvalidID, "row: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if err := row.check(); err != nil {
		return err
	}
	if _, err := h.routed(row.PayoutInput); err != nil {
		return err
	}
	key, err := batchKey(batch, row)
	if err != nil {
		return err
	}
	if _, before, err := h.decided(ctx, key.entry(), key.Print); before || err != nil {
		return err
	}
	if _, err := h.payoutTerms(ctx, row.PayoutInput); err != nil {
		return err
	}
	k := ledger.Key{Account: flow.Wallet(row.Account), Asset: ledger.Asset(row.Currency)}
	if _, ok := left[k]; !ok {
		bs, err := h.store.Balances(ctx, ledger.BalanceQuery{Account: k.Account, Asset: k.Asset, Limit: 1})
		if err != nil {
			return fmt.Errorf("holdfast: balance of %s: %w", row.Account, err)
		}
		left[k] = 0
		for _, b := range bs {
			left[k] = b.Available()
		}
	}
	if left[k] < row.Amount+row.Fee {
		return reject(CodeInsufficientFunds, "account %s has %d %s left at this row", row.Account, left[k], row.Currency)
	}
	left[k] -= row.Amount + row.Fee
	return nil
}

// RequestPayouts asks for the rows of a batch, each on its own, many at once, and
// calls done after each one. Asking again for the same rows of the same batch
// goes on where it broke off, and changes nothing else. An error says that the
// outcome of some rows is unknown: ask again.
func (h *Holdfast) RequestPayouts(ctx context.Context, batch string, rows []PayoutRow, done func()) ([]PayoutResult, error) {
	out := make([]PayoutResult, len(rows))
	numbers := make([]int, len(rows))
	for i := range numbers {
		numbers[i] = i
	}
	var first atomic.Pointer[error]
	inParallel(numbers, func(i int) {
		if first.Load() != nil {
			return
		}
		var err error
		if out[i], err = h.requestRow(ctx, batch, rows[i]); err != nil {
			first.CompareAndSwap(nil, &err)
			return
		}
		done()
	})
	if err := first.Load(); err != nil {
		return nil, *err
	}
	return out, nil
}

func (h *Holdfast) requestRow(ctx context.Context, batch string, row PayoutRow) (PayoutResult, error) {
	res := PayoutResult{Row: row.ID}
	key, err := batchKey(batch, row)
	if err != nil {
		return res, err
	}
	a, err := h.RequestPayout(ctx, key, row.PayoutInput)
	var r *Rejection
	switch {
	case errors.As(err, &r) && r.Code != CodeOverloaded:
		res.Code, res.Detail = r.Code, r.Detail
	case err != nil:
		return res, fmt.Errorf("holdfast: row %s: %w", row.ID, err)
	default:
		res.Payout, res.Again = &a.Value, a.Replayed
	}
	return res, nil
}
