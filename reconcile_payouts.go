package holdfast

import (
	"context"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// matchPayout finds the payout of a line. A gateway writes it down when it takes a
// payout on, and another line when that fails; here only a payout that was paid is
// posted. So a line of one that is under way is right, and those of one that
// failed are right together.
func (r *reconciling) matchPayout(ctx context.Context, l gateway.StatementLine) (*Payout, *Difference, error) {
	p, err := found[Payout](ctx, r.h, flow.KindPayout, gateway.StatementLine{Number: l.Number})
	if err != nil || p == nil || p.Gateway != r.gateway {
		return nil, unknownLine(l, "the gateway paid out something that was not asked for here"), err
	}
	amount, right := -p.Amount, false
	switch p.State {
	case flow.PayoutSubmitted, flow.PayoutUnknown, flow.PayoutPaid:
		right = l.Kind == gateway.PayoutLine
	case flow.PayoutReturned:
		right = true
	case flow.PayoutFailed, flow.PayoutCancelled:
		if right = l.Kind == gateway.PayoutBackLine || r.back[p.ID]; !right {
			right, err = r.isBooked(ctx, gateway.PayoutBackLine, p.ID)
		}
	}
	if l.Kind == gateway.PayoutBackLine {
		amount = p.Amount
	}
	return p, differs(l, p.ID, amount, p.Currency, right, "the payout is "+string(p.State)+" here",
		"look at the payout at the gateway, and read the statements of the days after; if it stays so, book it by a transfer"), err
}

// isBooked says whether a line about number is in the books.
func (r *reconciling) isBooked(ctx context.Context, kind gateway.StatementKind, number string) (bool, error) {
	rs, err := r.h.store.Records(ctx, ledger.RecordQuery{Kind: flow.KindBooked, ID: flow.BookedID(r.gateway, string(kind), number, ""), Limit: 1})
	return len(rs) > 0, err
}
