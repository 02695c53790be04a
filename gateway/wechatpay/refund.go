package wechatpay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-pay/holdfast/gateway"
)

const refundsPath = "/v3/refund/domestic/refunds"

const stateAbnormal = "ABNORMAL"

type refundOrder struct {
	OutTradeNo  string       `json:"out_trade_no"`
	OutRefundNo string       `json:"out_refund_no"`
	Reason      string       `json:"reason,omitempty"`
	NotifyURL   string       `json:"notify_url"`
	Amount      refundAmount `json:"amount"`
}

type refundAmount struct {
	Refund   int64  `json:"refund"` // fen
	Total    int64  `json:"total"`  // fen; of the order
	Currency string `json:"currency"`
}

// refundState is a refund as WeChat Pay tells it. Answers have status,
// notifications refund_status.
type refundState struct {
	MchID        string       `json:"mchid"` // in notifications only
	OutTradeNo   string       `json:"out_trade_no"`
	OutRefundNo  string       `json:"out_refund_no"`
	RefundID     string       `json:"refund_id"`
	Status       string       `json:"status"`
	RefundStatus string       `json:"refund_status"`
	Amount       refundAmount `json:"amount"`
}

// Refund implements gateway.Gateway.
func (g *Gateway) Refund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	if r.Payment.Currency != currency || r.Amount < 1 || r.Amount > maxAmount {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: "amount_unsupported"}
	}
	var made refundState
	err := g.client.call(ctx, http.MethodPost, refundsPath, refundOrder{
		OutTradeNo: r.Payment.ID, OutRefundNo: r.ID, Reason: clip(r.Reason, maxReason), NotifyURL: g.notifyURL,
		Amount: refundAmount{r.Amount, r.Payment.Amount, r.Payment.Currency},
	}, &made)
	if err == nil {
		return refundAnswer(r, made)
	}
	if !isFinal(err) && !speaksOfState(err) {
		return unknownRefund(r, "create", err)
	}
	// A refused call is no proof that an earlier one under this number was not
	// taken on.
	a := g.QueryRefund(ctx, r)
	switch {
	case a.Outcome != gateway.Refused:
		return a
	case isFinal(err):
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownRefund(r, "create", err)
}

// QueryRefund implements gateway.Gateway.
func (g *Gateway) QueryRefund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	var found refundState
	err := g.client.call(ctx, http.MethodGet, refundsPath+"/"+url.PathEscape(r.ID), nil, &found)
	if isAbsent(err) {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	if err != nil {
		return unknownRefund(r, "query", err)
	}
	return refundAnswer(r, found)
}

func refundAnswer(r gateway.Refund, s refundState) gateway.RefundAnswer {
	status, err := s.status(s.Status)
	if err == nil && (s.OutRefundNo != r.ID || s.OutTradeNo != r.Payment.ID) {
		err = fmt.Errorf("%w: it is refund %.64q of order %.64q", errUnreadable, s.OutRefundNo, s.OutTradeNo)
	}
	if err != nil {
		return unknownRefund(r, "read", err)
	}
	a := gateway.RefundAnswer{Outcome: gateway.Done, Status: status, Ref: s.RefundID, Amount: s.Amount.Refund}
	if status == gateway.RefundFailed || s.Status == stateAbnormal {
		a.Code = s.Status
	}
	return a
}

// status translates the word. CLOSED means that no money moved. ABNORMAL means
// that it could not reach the buyer and lies at WeChat Pay, where a second refund
// of the same money is refused: a person has to say there where it is to go, and
// then it is done. So it is under way until he has.
func (s refundState) status(word string) (gateway.RefundStatus, error) {
	if s.RefundID == "" || s.Amount.Refund < 1 || s.Amount.Refund > maxAmount || s.Amount.Currency != "" && s.Amount.Currency != currency {
		return "", fmt.Errorf("%w: refund %.64q of %d %.8q", errUnreadable, s.RefundID, s.Amount.Refund, s.Amount.Currency)
	}
	switch word {
	case "PROCESSING", stateAbnormal:
		return gateway.RefundPending, nil
	case "SUCCESS":
		return gateway.RefundDone, nil
	case "CLOSED":
		return gateway.RefundFailed, nil
	}
	return "", fmt.Errorf("%w: refund state %.40q", errUnreadable, word)
}

func unknownRefund(r gateway.Refund, what string, err error) gateway.RefundAnswer {
	return gateway.RefundAnswer{
		Outcome: gateway.Unknown, Ref: r.Ref, Code: code(err),
		Err: fmt.Errorf("wechatpay: %s refund %s of payment %s: %w", what, r.ID, r.Payment.ID, err),
	}
}
