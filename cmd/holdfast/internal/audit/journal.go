package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// stock is what the postings say of a SKU, in pieces.
type stock struct {
	received, promised, lost int64
	sold                     int64 // from stock or backorder budget, less what went back
	soldFromStock            int64
	posted, held             int64 // of the account stock, as it stands
}

// purse is a gateway's money in one currency.
type purse struct{ gateway, currency string }

// journal is the ledger as an auditor reads it.
type journal struct {
	stock    map[string]*stock
	moved    map[int64]map[string]int64 // pieces that left for sold, by journal line and SKU
	paidAt   map[string]int64           // the journal line that wrote the order's payment
	orders   []flow.Order
	clearing map[purse]int64  // posted
	due      []ledger.Balance // owed to buyers
	waiting  []string
	held     []ledger.Hold

	gateways map[ledger.Account]string // by their clearing account
}

func readBooks(ctx context.Context, r ledger.Reader, books Books) (*journal, error) {
	j := &journal{
		stock: map[string]*stock{}, moved: map[int64]map[string]int64{},
		paidAt: map[string]int64{}, clearing: map[purse]int64{},
		gateways: map[ledger.Account]string{},
	}
	for gateway := range books {
		j.gateways[flow.Clearing(gateway)] = gateway
	}
	for _, step := range []func(context.Context, ledger.Reader) error{
		j.readPostings, j.readBalances, j.readPaid, j.readOrders, j.readWaiting, j.readHolds,
	} {
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// all reads a list to its end. next reads the page after what it read last.
func all[T any](next func() ([]T, error), each func(T) error) error {
	for {
		page, err := next()
		if err != nil || len(page) == 0 {
			return err
		}
		for _, row := range page {
			if err := each(row); err != nil {
				return err
			}
		}
	}
}

func (j *journal) sku(a ledger.Asset) (string, *stock, bool) {
	sku, ok := strings.CutPrefix(string(a), "sku:")
	if !ok {
		return "", nil, false
	}
	if j.stock[sku] == nil {
		j.stock[sku] = &stock{}
	}
	return sku, j.stock[sku], true
}

func (j *journal) readPostings(ctx context.Context, r ledger.Reader) error {
	var after int64
	return all(func() ([]ledger.Posted, error) {
		return r.Postings(ctx, ledger.PostingQuery{After: after})
	}, func(p ledger.Posted) error {
		after = p.Seq
		sku, s, ok := j.sku(p.Asset)
		if !ok {
			return nil
		}
		gone := func(a ledger.Account) bool { return a == flow.Sold || a == flow.Delivered }
		switch {
		case p.From == flow.Supplier:
			s.received += p.Amount
		case p.From == flow.Promised:
			s.promised += p.Amount
		case p.To == flow.Promised:
			s.promised -= p.Amount
		case p.From == flow.Stock && !gone(p.To):
			s.lost += p.Amount
		case gone(p.To) && !gone(p.From):
			s.sold += p.Amount
			if j.moved[p.Seq] == nil {
				j.moved[p.Seq] = map[string]int64{}
			}
			j.moved[p.Seq][sku] += p.Amount
			if p.From == flow.Stock {
				s.soldFromStock += p.Amount
			}
		case gone(p.From) && !gone(p.To):
			s.sold -= p.Amount
			if p.To != flow.Reserve { // there never was a piece
				s.soldFromStock -= p.Amount
			}
		}
		return nil
	})
}

func (j *journal) readBalances(ctx context.Context, r ledger.Reader) error {
	var after ledger.Key
	return all(func() ([]ledger.Balance, error) {
		return r.Balances(ctx, ledger.BalanceQuery{After: after})
	}, func(b ledger.Balance) error {
		after = b.Key
		switch {
		case j.gateways[b.Account] != "":
			j.clearing[purse{j.gateways[b.Account], string(b.Asset)}] = b.Posted
		case b.Account == flow.Stock:
			if _, s, ok := j.sku(b.Asset); ok {
				s.posted, s.held = b.Posted, b.Held
			}
		case strings.HasPrefix(string(b.Account), string(flow.RefundsDue(""))) && b.Posted != 0:
			j.due = append(j.due, b)
		}
		return nil
	})
}

// readPaid finds the line that first says that an order is paid.
func (j *journal) readPaid(ctx context.Context, r ledger.Reader) error {
	var after int64
	return all(func() ([]ledger.Line, error) {
		return r.Lines(ctx, ledger.LineQuery{After: after})
	}, func(l ledger.Line) error {
		after = l.Seq
		e, res, err := l.Open()
		if err != nil {
			return err
		}
		for _, rec := range e.Records {
			if rec.Kind == flow.KindOrder && rec.State == string(flow.Paid) && !res.Refused() && j.paidAt[rec.ID] == 0 {
				j.paidAt[rec.ID] = l.Seq
			}
		}
		return nil
	})
}

// delivered says that the pieces of the order moved in the very entry that
// says that it is paid.
func (j *journal) delivered(o flow.Order) bool {
	want := map[string]int64{}
	for _, l := range o.Lines {
		want[l.SKU] += l.Quantity
	}
	return maps.Equal(want, j.moved[j.paidAt[o.ID]])
}

func (j *journal) records(ctx context.Context, r ledger.Reader, q ledger.RecordQuery, each func(ledger.Record) error) error {
	return all(func() ([]ledger.Record, error) { return r.Records(ctx, q) }, func(rec ledger.Record) error {
		q.After = rec.Key()
		return each(rec)
	})
}

func (j *journal) readOrders(ctx context.Context, r ledger.Reader) error {
	return j.records(ctx, r, ledger.RecordQuery{Kind: flow.KindOrder}, func(rec ledger.Record) error {
		var o flow.Order
		if err := flow.Decode(rec, &o); err != nil {
			return err
		}
		j.orders = append(j.orders, o)
		return nil
	})
}

// unfinished are the states that wait for something, by kind of record.
var unfinished = []struct {
	kind   string
	states []flow.State
}{
	{flow.KindOrder, []flow.State{flow.Held, flow.Paying, flow.Closing, flow.Refunding}},
	{flow.KindPayment, []flow.State{flow.Waiting, flow.Requested, flow.Open}},
	{flow.KindRefund, []flow.State{flow.RefundRequested, flow.RefundAccepted}},
	{flow.KindTask, []flow.State{flow.TaskReady, flow.TaskStuck}},
}

func (j *journal) readWaiting(ctx context.Context, r ledger.Reader) error {
	for _, u := range unfinished {
		for _, state := range u.states {
			q := ledger.RecordQuery{Kind: u.kind, State: string(state)}
			err := j.records(ctx, r, q, func(rec ledger.Record) error {
				j.waiting = append(j.waiting, fmt.Sprintf("%s %s is %s: %s", rec.Kind, rec.ID, rec.State, rec.Body))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *journal) readHolds(ctx context.Context, r ledger.Reader) error {
	q := ledger.HoldQuery{State: ledger.Held}
	return all(func() ([]ledger.Hold, error) { return r.Holds(ctx, q) }, func(h ledger.Hold) error {
		q.After = h.ID
		j.held = append(j.held, h)
		return nil
	})
}

// AtRest says that nothing waits for anything: no order, payment, refund or
// task is unfinished.
func AtRest(ctx context.Context, r ledger.Reader) (bool, error) {
	due, err := r.Records(ctx, ledger.RecordQuery{DueBy: math.MaxInt64, Limit: 1})
	if err != nil || len(due) > 0 {
		return false, err
	}
	for _, u := range unfinished {
		for _, state := range u.states {
			some, err := r.Records(ctx, ledger.RecordQuery{Kind: u.kind, State: string(state), Limit: 1})
			if err != nil || len(some) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}
