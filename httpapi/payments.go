package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-pay/holdfast"
)

type payBody struct {
	Gateway   string `json:"gateway,omitempty" doc:"Absent = the only one"`
	Method    string `json:"method,omitempty" doc:"Absent = the gateway's first"`
	ReturnURL link   `json:"return_url,omitempty" format:"uri" doc:"Where the buyer's browser goes afterwards"`
	Payer     party  `json:"payer,omitempty" maxLength:"500" doc:"Who pays, where the method must know: for WeChat Pay the openid (jsapi) or the buyer's IP address (h5)"`
}

func (*payBody) missing() []string { return nil }

type refundBody struct {
	Amount  *int64        `json:"amount,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Minor units of the order's currency; absent = all that is left"`
	Reason  text          `json:"reason,omitempty" maxLength:"500"`
	Restock []restockBody `json:"restock,omitempty" doc:"Pieces to put back on sale; absent = none"`
}

type restockBody struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity" minimum:"1"`
}

func (b *refundBody) missing() (fields []string) {
	for i := range b.Restock {
		if b.Restock[i].SKU == "" {
			fields = append(fields, fmt.Sprintf("/restock/%d/sku", i))
		}
		if b.Restock[i].Quantity == 0 {
			fields = append(fields, fmt.Sprintf("/restock/%d/quantity", i))
		}
	}
	return fields
}

func (a *API) payments() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders/{id}/payments", name: "pay", tag: "Payments", scope: holdfast.ScopeWrite, keyed: true, quiet: true, order: itself,
		summary: "Start a payment", about: "202: stored, and the gateway has not answered yet, or an attempt by another method has to be closed first; read the payment until it is open.",
		status: http.StatusCreated, also: []int{http.StatusAccepted},
	}, pay)
	handle(a, route{
		method: http.MethodGet, path: "/v1/payments/{id}", name: "getPayment", tag: "Payments", scope: holdfast.ScopeRead, order: ofPayment,
		summary: "Read a payment",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Payment, error) {
		return a.core.Payment(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/payments/{id}/refresh", name: "refreshPayment", tag: "Payments", scope: holdfast.ScopeWrite, order: ofPayment,
		summary: "Ask the gateway about a payment now", about: "For the page to which the buyer comes back. Asking again changes nothing, so it needs no Idempotency-Key.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Payment, error) {
		return a.core.Refresh(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders/{id}/refunds", name: "refund", tag: "Refunds", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Repay an order's buyer", about: "Answered when it is stored; the gateway is asked afterwards.", status: http.StatusCreated,
	}, refund)
	handle(a, route{
		method: http.MethodGet, path: "/v1/refunds/{id}", name: "getRefund", tag: "Refunds", scope: holdfast.ScopeRead,
		summary: "Read a refund",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Refund, error) {
		return a.core.RefundByID(ctx, c.id("id"))
	})
}

// ofPayment is the order behind a payment's id.
func ofPayment(ctx context.Context, core *holdfast.Holdfast, id string) (string, error) {
	p, err := core.Payment(ctx, id)
	return p.Order, err
}

func pay(ctx context.Context, c *call, b *payBody) (holdfast.Payment, error) {
	if b.ReturnURL != "" && !returnable(string(b.ReturnURL), c.api.returnURLs) {
		return holdfast.Payment{}, &refusal{code: codeReturnURL, detail: "must be https, and of an allowed origin", field: "/return_url"}
	}
	p, err := c.api.core.Pay(ctx, c.key, holdfast.PayInput{
		Order: c.id("id"), Gateway: b.Gateway, Method: b.Method, ReturnURL: string(b.ReturnURL), Payer: string(b.Payer),
	})
	if p.Value.State == "requested" || p.Value.State == "waiting" {
		c.status = http.StatusAccepted
	}
	return answered(c, p), err
}

func refund(ctx context.Context, c *call, b *refundBody) (holdfast.Refund, error) {
	in := holdfast.RefundInput{Order: c.id("id"), Reason: string(b.Reason)}
	if b.Amount != nil {
		if *b.Amount < 1 {
			return holdfast.Refund{}, &refusal{code: holdfast.CodeAmountRange, detail: "must be at least 1", field: "/amount"}
		}
		in.Amount = *b.Amount
	}
	for _, r := range b.Restock {
		in.Restock = append(in.Restock, holdfast.Restock(r))
	}
	r, err := c.api.core.Refund(ctx, c.key, in)
	return answered(c, r), err
}
