package alipay

import (
	"context"
	"fmt"

	"github.com/holdfast-pay/holdfast/gateway"
)

const maxReason = 128 // characters

type refund struct {
	OutTradeNo   string `json:"out_trade_no"`
	RefundAmount string `json:"refund_amount"`
	OutRequestNo string `json:"out_request_no"`
	RefundReason string `json:"refund_reason,omitempty"`
}

type refundQuery struct {
	OutTradeNo   string `json:"out_trade_no"`
	OutRequestNo string `json:"out_request_no"`
}

// Refund implements gateway.Gateway. Alipay has no number of its own for a
// refund, so Ref is ours.
func (g *Gateway) Refund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	if r.Amount < 1 || r.Amount > maxAmount || r.Payment.Currency != currency {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: "amount" + codeUnfit}
	}
	a, err := g.call(ctx, "alipay.trade.refund", r.Payment.ID, refund{
		r.Payment.ID, toYuan(r.Amount), r.ID, clip(r.Reason, maxReason),
	}, nil)
	if err == nil && a.FundChange == "Y" {
		return done(r)
	}
	if err != nil && !isAnswer(err) {
		return unknownRefund(r, "create", err)
	}
	// A success that moved nothing is a repeated number, and what is refused may
	// have been done before: the refund itself can tell.
	found := g.QueryRefund(ctx, r)
	switch {
	case found.Outcome != gateway.Refused:
		return found
	case err == nil:
		return unknownRefund(r, "create", errNoRefund)
	case isFinal(err, finalOfRefund):
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownRefund(r, "create", err)
}

// QueryRefund implements gateway.Gateway. A success without a refund's status
// is Alipay's way to say that it has none under that number.
func (g *Gateway) QueryRefund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	a, err := g.call(ctx, "alipay.trade.fastpay.refund.query", r.Payment.ID, refundQuery{r.Payment.ID, r.ID}, nil)
	if isAbsent(err) || err == nil && a.RefundStatus == "" && a.RefundAmount == "" {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknownRefund(r, "query", err)
	}
	amount, ok := fromYuan(string(a.RefundAmount))
	switch {
	case a.OutTradeNo != r.Payment.ID || a.OutRequestNo != r.ID:
		return unknownRefund(r, "query", fmt.Errorf("%w: it is of refund %q of trade %q", errUnreadable, a.OutRequestNo, a.OutTradeNo))
	case !ok || amount != r.Amount:
		return unknownRefund(r, "query", fmt.Errorf("%w: refund %s is of %q yuan, not of %s", errUnreadable, r.ID, a.RefundAmount, toYuan(r.Amount)))
	case a.RefundStatus == "REFUND_SUCCESS":
		return done(r)
	case a.RefundStatus == "REFUND_PROCESSING":
		return gateway.RefundAnswer{Outcome: gateway.Done, Status: gateway.RefundPending, Ref: r.ID, Amount: amount}
	case a.RefundStatus == "REFUND_FAIL":
		return gateway.RefundAnswer{Outcome: gateway.Done, Status: gateway.RefundFailed, Ref: r.ID, Amount: amount}
	}
	return unknownRefund(r, "query", fmt.Errorf("%w: refund status %q", errUnreadable, a.RefundStatus))
}

func done(r gateway.Refund) gateway.RefundAnswer {
	return gateway.RefundAnswer{Outcome: gateway.Done, Status: gateway.RefundDone, Ref: r.ID, Amount: r.Amount}
}
