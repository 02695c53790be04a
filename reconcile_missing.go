package holdfast

import (
	"context"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// missingThere finds what was booked on the clearing account on that day, and
// is on no statement.
func (r *reconciling) missingThere(ctx context.Context) error {
	before, err := r.h.lineAt(ctx, int64(r.begin.Add(-statementSlack))-1)
	if err != nil {
		return err
	}
	last, err := r.h.lineAt(ctx, int64(r.begin.Add(day-statementSlack))-1)
	if err != nil {
		return err
	}
	q := ledger.PostingQuery{Account: flow.Clearing(r.gateway), After: before}
	for {
		page, err := r.h.store.Postings(ctx, q)
		if err != nil {
			return err
		}
		for _, p := range page {
			if p.Seq > last {
				return nil
			}
			if err := r.onAStatement(ctx, p); err != nil {
				return err
			}
			q.After = p.Seq
		}
		if len(page) == 0 {
			return nil
		}
	}
}

// onAStatement looks for the line that p, a posting of the clearing account, is on.
func (r *reconciling) onAStatement(ctx context.Context, p ledger.Posted) error {
	line, err := r.h.line(ctx, p.Seq)
	if err != nil {
		return err
	}
	e, _, err := line.Open()
	if err != nil {
		return err
	}
	amount, kind, number := -p.Amount, gateway.RefundLine, ""
	for _, rec := range e.Records {
		switch {
		case p.From == flow.Clearing(r.gateway) && rec.Kind == flow.KindPayment && rec.State == string(flow.AttemptPaid):
			amount, kind, number = p.Amount, gateway.PaymentLine, rec.ID
		case p.From == flow.Clearing(r.gateway) && rec.Kind == flow.KindRefund && rec.State == string(flow.RefundFailed):
			amount, kind, number = p.Amount, gateway.RefundBackLine, rec.ID
		case p.To == flow.Clearing(r.gateway) && rec.Kind == flow.KindRefund && rec.State == string(flow.RefundDone):
			number = rec.ID
		case p.To == flow.Clearing(r.gateway) && rec.Kind == flow.KindPayout && rec.State == string(flow.PayoutPaid):
			kind, number = gateway.PayoutLine, rec.ID
		case p.From == flow.Clearing(r.gateway) && rec.Kind == flow.KindPayout && rec.State == string(flow.PayoutReturned):
			amount, kind, number = p.Amount, gateway.PayoutBackLine, rec.ID
		}
	}
	if number == "" {
		return nil // a fee, a settlement, a transfer by hand
	}
	if booked, err := r.isBooked(ctx, kind, number); err != nil || booked {
		return err
	}
	if r.amiss[string(kind)+"/"+number] {
		return nil // it is on this one, with something else amiss
	}
	l := gateway.StatementLine{Kind: kind, Number: number, Currency: string(p.Asset)}
	r.differ(l, Difference{Kind: MissingThere, Here: amount,
		Detail: "booked here on that day, and on no statement that was read", Todo: "read the statement of the next day too, and for a payout of the days before; if it is not there either, ask the gateway"})
	return nil
}
