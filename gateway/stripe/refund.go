package stripe

import (
	"context"
	"fmt"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

// Refund implements gateway.Gateway. After 23 hours it only looks.
func (g *Gateway) Refund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	amount, ok := toWire(r.Amount, r.Payment.Currency)
	if !ok {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAmount}
	}
	if !g.fresh(r.CreatedAt) {
		a := g.QueryRefund(ctx, r)
		if a.Outcome == gateway.Refused {
			return unknownRefund(r, "create", errKeyOld)
		}
		return a
	}
	s, err := g.locate(ctx, r.Payment)
	if isAbsent(err) {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknownRefund(r, "create", err)
	}
	if s.intent == "" {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeUnpaid}
	}
	for n := range maxKeys {
		var re *sdk.Refund
		re, err = g.createRefund(ctx, r, s.intent, amount, key("refund", r.ID, n))
		if err == nil {
			return refundAnswer(r, re)
		}
		// "Already refunded" may be our own refund, whose answer was lost; so what
		// Stripe refuses and what it failed at is looked for before it is believed.
		if !isFinal(err) && !isKept(err) {
			break
		}
		a := g.findRefund(ctx, r, s.intent)
		if a.Outcome != gateway.Refused {
			return a
		}
		if isFinal(err) {
			return gateway.RefundAnswer{Outcome: gateway.Refused, Code: code(err)}
		}
		if !isSpent(err) {
			break
		}
	}
	return unknownRefund(r, "create", err)
}

func (g *Gateway) createRefund(ctx context.Context, r gateway.Refund, intent string, amount int64, key string) (*sdk.Refund, error) {
	params := &sdk.RefundCreateParams{
		PaymentIntent: sdk.String(intent),
		Amount:        sdk.Int64(amount),
		Metadata: map[string]string{
			metaRefund:  r.ID,
			metaPayment: r.Payment.ID,
			metaOrder:   clip(r.Payment.Order, maxMetadata),
			metaReason:  clip(r.Reason, maxMetadata),
		},
	}
	params.SetIdempotencyKey(key)
	return g.client.V1Refunds.Create(ctx, params)
}

// QueryRefund implements gateway.Gateway. Without Refund.Ref it reads the
// refunds of the payment.
func (g *Gateway) QueryRefund(ctx context.Context, r gateway.Refund) gateway.RefundAnswer {
	if r.Ref != "" {
		re, err := g.client.V1Refunds.Retrieve(ctx, r.Ref, &sdk.RefundRetrieveParams{})
		if isAbsent(err) {
			return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAbsent}
		}
		if err != nil {
			return unknownRefund(r, "query", err)
		}
		return refundAnswer(r, re)
	}
	s, err := g.locate(ctx, r.Payment)
	if isAbsent(err) || (err == nil && s.intent == "") {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknownRefund(r, "query", err)
	}
	return g.findRefund(ctx, r, s.intent)
}

func (g *Gateway) findRefund(ctx context.Context, r gateway.Refund, intent string) gateway.RefundAnswer {
	params := &sdk.RefundListParams{PaymentIntent: sdk.String(intent)}
	params.Limit = sdk.Int64(maxPage)
	re, err := first(ctx, g.client.V1Refunds.List(ctx, params), func(re *sdk.Refund) bool {
		return re.Metadata[metaRefund] == r.ID
	})
	if isAbsent(err) {
		return gateway.RefundAnswer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknownRefund(r, "find", err)
	}
	return refundAnswer(r, re)
}

func refundAnswer(r gateway.Refund, re *sdk.Refund) gateway.RefundAnswer {
	status, ok := refundStatus(string(re.Status))
	if !ok {
		return unknownRefund(r, "read", fmt.Errorf("%w: refund %q is %q", errUnreadable, re.ID, re.Status))
	}
	if id := re.Metadata[metaRefund]; id != r.ID {
		return unknownRefund(r, "read", fmt.Errorf("%w: %s is refund %q", errUnreadable, re.ID, id))
	}
	amount, _, ok := fromWire(re.Amount, string(re.Currency))
	if !ok {
		return unknownRefund(r, "read", fmt.Errorf("%w: refunded amount %d %s", errUnreadable, re.Amount, re.Currency))
	}
	return gateway.RefundAnswer{
		Outcome: gateway.Done, Status: status, Ref: re.ID, Amount: amount, Code: string(re.FailureReason),
	}
}

func refundStatus(word string) (gateway.RefundStatus, bool) {
	switch sdk.RefundStatus(word) {
	case sdk.RefundStatusPending, sdk.RefundStatusRequiresAction:
		return gateway.RefundPending, true
	case sdk.RefundStatusSucceeded:
		return gateway.RefundDone, true
	case sdk.RefundStatusFailed, sdk.RefundStatusCanceled:
		return gateway.RefundFailed, true
	}
	return "", false
}

func unknownRefund(r gateway.Refund, what string, err error) gateway.RefundAnswer {
	return gateway.RefundAnswer{
		Outcome: gateway.Unknown, Ref: r.Ref, Code: code(err),
		Err: fmt.Errorf("stripe: %s refund %s of payment %s: %w", what, r.ID, r.Payment.ID, readable(err)),
	}
}
