package holdfast

import (
	"context"
	"fmt"
	"sort"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// missingThere finds what was booked on the clearing account on that day, and
// is on no statement.
func (r *reconciling) missingThere(ctx context.Context) error {
	from, err := r.seqAt(ctx, r.begin.Add(-statementSlack))
	if err != nil {
		return err
	}
	to, err := r.seqAt(ctx, r.begin.Add(day-statementSlack))
	if err != nil {
		return err
	}
	q := ledger.PostingQuery{Account: flow.Clearing(r.gateway), After: from - 1}
	for {
		page, err := r.h.store.Postings(ctx, q)
		if err != nil {
			return err
		}
		for _, p := range page {
			if p.Seq >= to {
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

// seqAt is the first line of the journal that is not before t. Later lines are
// never earlier.
func (r *reconciling) seqAt(ctx context.Context, t Time) (int64, error) {
	head, err := r.h.store.Head(ctx)
	if err != nil {
		return 0, err
	}
	n := sort.Search(int(head.Seq), func(i int) bool {
		if err != nil {
			return true
		}
		var l ledger.Line
		l, err = r.line(ctx, int64(i)+1)
		return l.At >= int64(t)
	})
	return int64(n) + 1, err
}

func (r *reconciling) line(ctx context.Context, seq int64) (ledger.Line, error) {
	lines, err := r.h.store.Lines(ctx, ledger.LineQuery{After: seq - 1, Limit: 1})
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("the journal has no line %d", seq)
	}
	if err != nil {
		return ledger.Line{}, err
	}
	return lines[0], nil
}

// onAStatement looks for the line that p, a posting of the clearing account, is on.
func (r *reconciling) onAStatement(ctx context.Context, p ledger.Posted) error {
	line, err := r.line(ctx, p.Seq)
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
		}
	}
	if number == "" {
		return nil // a fee, a settlement, a transfer by hand
	}
	booked, err := r.h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindBooked, ID: flow.BookedID(r.gateway, string(kind), number, ""), Limit: 1})
	if err != nil || len(booked) > 0 {
		return err
	}
	if r.amiss[string(kind)+"/"+number] {
		return nil // it is on this one, with something else amiss
	}
	l := gateway.StatementLine{Kind: kind, Number: number, Currency: string(p.Asset)}
	r.differ(l, Difference{Kind: MissingThere, Here: amount,
		Detail: "booked here on that day, and on no statement that was read", Todo: "read the statement of the next day too; if it is not there either, ask the gateway"})
	return nil
}
