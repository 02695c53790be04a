package holdfast

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// WalletBalance is what an account has in one currency, in minor units.
type WalletBalance struct {
	Currency   string `json:"currency"`
	Posted     int64  `json:"posted"`
	Held       int64  `json:"held"`       // by holds and payouts that are not over
	Receivable int64  `json:"receivable"` // that it owes for refunds of its splits, as it had less than its part
	Available  int64  `json:"available"`  // posted - held - floor - receivable, or 0 if that is less
}

// AccountDetail is an account with its money.
type AccountDetail struct {
	Account
	Balances []WalletBalance `json:"balances"`
}

// Account reads an account with its money, as of one moment.
func (h *Holdfast) Account(ctx context.Context, id string) (AccountDetail, error) {
	d, _, err := h.accountWith(ctx, id)
	return d, err
}

// tuned reads an account and, by currency, its balance and its room together.
func (h *Holdfast) tuned(ctx context.Context, id string) (Account, map[string]int64, error) {
	d, room, err := h.accountWith(ctx, id)
	for _, b := range d.Balances {
		room[b.Currency] += b.Posted
	}
	return d.Account, room, err
}

func (h *Holdfast) accountWith(ctx context.Context, id string) (d AccountDetail, room map[string]int64, err error) {
	room = map[string]int64{}
	err = h.store.Snapshot(ctx, func(r ledger.Reader) error {
		rs, err := r.Records(ctx, ledger.RecordQuery{Kind: flow.KindAccount, ID: id, Limit: 1})
		if err != nil {
			return fmt.Errorf("holdfast: account %s: %w", id, err)
		}
		if len(rs) == 0 || id == "" {
			return reject(CodeNotFound, "no account %s", id)
		}
		if err := flow.Decode(rs[0], &d.Account); err != nil {
			return err
		}
		of := map[ledger.Account]map[ledger.Asset]ledger.Balance{}
		for _, a := range []ledger.Account{flow.Wallet(id), flow.Floor(id), flow.Room(id), flow.Receivable(id)} {
			rows, err := r.Balances(ctx, ledger.BalanceQuery{Account: a})
			if err != nil {
				return fmt.Errorf("holdfast: account %s: %w", id, err)
			}
			of[a] = map[ledger.Asset]ledger.Balance{}
			for _, b := range rows {
				of[a][b.Asset] = b
			}
		}
		for asset, b := range of[flow.Wallet(id)] {
			owed := of[flow.Receivable(id)][asset].Posted
			d.Balances = append(d.Balances, WalletBalance{Currency: string(asset), Held: b.Held, Receivable: owed,
				Available: max(0, b.Available()-owed), Posted: b.Posted + of[flow.Floor(id)][asset].Posted})
		}
		for asset, b := range of[flow.Room(id)] {
			room[string(asset)] = b.Posted
		}
		return nil
	})
	sort.Slice(d.Balances, func(i, j int) bool { return d.Balances[i].Currency < d.Balances[j].Currency })
	return d, room, err
}

// AccountAt is what an account had at a past moment, by currency: what was
// posted to it until then, out of the journal.
func (h *Holdfast) AccountAt(ctx context.Context, id string, at time.Time) ([]WalletBalance, error) {
	if _, err := document[Account](ctx, h, flow.KindAccount, id); err != nil {
		return nil, err
	}
	last, err := h.lineAt(ctx, at.UnixMilli())
	if err != nil {
		return nil, err
	}
	sums := map[string]int64{}
	wallet := flow.Wallet(id)
	for after := int64(0); ; {
		rows, err := h.store.Postings(ctx, ledger.PostingQuery{Account: wallet, After: after})
		if err != nil {
			return nil, fmt.Errorf("holdfast: account %s at %v: %w", id, at, err)
		}
		for _, p := range rows {
			if n, ok := changes(p, id); ok && p.Seq <= last {
				sums[string(p.Asset)] += n
			}
		}
		if len(rows) == 0 || rows[len(rows)-1].Seq > last {
			break
		}
		after = rows[len(rows)-1].Seq
	}
	out := []WalletBalance{}
	for currency, n := range sums {
		out = append(out, WalletBalance{Currency: currency, Posted: n})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Currency < out[j].Currency })
	return out, nil
}

// changes is by how much a posting changes an account's balance; false = it only
// moves its floor.
func changes(p ledger.Posted, account string) (int64, bool) {
	if p.From == flow.Floor(account) || p.To == flow.Floor(account) {
		return 0, false
	}
	if p.From == flow.Wallet(account) {
		return -p.Amount, true
	}
	return p.Amount, true
}

// lineAt is the last line of the journal that is not later than at, in Unix ms;
// 0 = none. Lines are in the order of their times.
func (h *Holdfast) lineAt(ctx context.Context, at int64) (int64, error) {
	head, err := h.store.Head(ctx)
	if err != nil {
		return 0, fmt.Errorf("holdfast: journal at %d: %w", at, err)
	}
	low, high := int64(0), head.Seq // line low is not later, line high+1 is
	for low < high {
		mid := low + (high-low+1)/2
		l, err := h.line(ctx, mid)
		if err != nil {
			return 0, err
		}
		if l.At <= at {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}

// line reads a line of the journal that is there.
func (h *Holdfast) line(ctx context.Context, seq int64) (ledger.Line, error) {
	lines, err := h.store.Lines(ctx, ledger.LineQuery{After: seq - 1, Limit: 1})
	if err == nil && len(lines) == 0 {
		err = errors.New("it is not there")
	}
	if err != nil {
		return ledger.Line{}, fmt.Errorf("holdfast: line %d of the journal: %w", seq, err)
	}
	return lines[0], nil
}

// StatementLine is one change of an account's balance. Amounts are minor units.
type StatementLine struct {
	Seq     int64  `json:"seq"` // of its entry in the journal
	At      Time   `json:"at"`
	Amount  int64  `json:"amount"`        // below zero: it left
	Balance int64  `json:"balance"`       // afterwards
	About   string `json:"about"`         // transfer, wallet_hold, payout or order; or a fee's payout
	ID      string `json:"id"`            // of that
	Fee     bool   `json:"fee,omitempty"` // of that payout
}

// StatementFrom is where a page of a statement begins: behind a line.
type StatementFrom struct {
	Seq     int64 // of that line; 0 = from the first
	Balance int64 // after it
}

// Statement lists what changed an account's balance in one currency, oldest
// first: the lines of at most limit entries, and whether there are more. The last
// line says where the next page begins.
func (h *Holdfast) Statement(ctx context.Context, id, currency string, from StatementFrom, limit int) (out []StatementLine, more bool, err error) {
	if err := checkCurrency(currency); err != nil {
		return nil, false, err
	}
	if _, err := document[Account](ctx, h, flow.KindAccount, id); err != nil {
		return nil, false, err
	}
	after, balance, entries := from.Seq, from.Balance, 0
	for {
		rows, err := h.store.Postings(ctx, ledger.PostingQuery{Account: flow.Wallet(id), Asset: ledger.Asset(currency), After: after, Limit: limit})
		if err != nil {
			return nil, false, fmt.Errorf("holdfast: statement of %s: %w", id, err)
		}
		if len(rows) == 0 {
			return out, false, nil
		}
		for _, p := range rows {
			n, ok := changes(p, id)
			if !ok {
				continue
			}
			if p.Seq != after {
				if entries++; entries > limit {
					return out, true, nil
				}
			}
			after = p.Seq
			balance += n
			line := StatementLine{Seq: p.Seq, Amount: n, Balance: balance, Fee: p.To == flow.PayoutFees}
			if err := h.explainLine(ctx, &line, p); err != nil {
				return nil, false, err
			}
			out = append(out, line)
		}
		after = rows[len(rows)-1].Seq
	}
}

// explainLine says when the line's entry was written, and what moved the money:
// the first of the entry's documents, or of many transfers the one of p.
func (h *Holdfast) explainLine(ctx context.Context, l *StatementLine, p ledger.Posted) error {
	line, err := h.line(ctx, l.Seq)
	if err != nil {
		return err
	}
	e, _, err := line.Open()
	if err != nil {
		return fmt.Errorf("holdfast: line %d of a statement: %w", l.Seq, err)
	}
	l.At = Time(line.At)
	for i, r := range e.Records {
		if r.Kind == flow.KindTransfer {
			var t Transfer
			if err := flow.Decode(r, &t); err != nil {
				return err
			}
			if first := t.Ops(false, false)[0]; (ledger.Posting{From: first.From, To: first.To, Asset: first.Asset, Amount: first.Amount}) != p.Posting {
				continue
			}
		}
		if i == 0 || r.Kind == flow.KindTransfer {
			l.About, l.ID = r.Kind, r.ID
			return nil
		}
	}
	return nil
}
