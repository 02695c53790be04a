package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type payoutBody struct {
	Account     string `json:"account" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Amount      int64  `json:"amount" minimum:"1" maximum:"9007199254740991" doc:"That is sent; minor units of currency"`
	Currency    string `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217"`
	Fee         int64  `json:"fee,omitempty" minimum:"0" maximum:"9007199254740991" doc:"That the account pays on top; minor units"`
	Gateway     string `json:"gateway,omitempty" doc:"Absent = the only one"`
	Destination party  `json:"destination" maxLength:"255" doc:"The receiver, in the gateway's own terms"`
	Description text   `json:"description,omitempty" maxLength:"500"`
}

func (b *payoutBody) missing() (fields []string) {
	if b.Account == "" {
		fields = append(fields, "/account")
	}
	if b.Amount == 0 {
		fields = append(fields, "/amount")
	}
	if b.Currency == "" {
		fields = append(fields, "/currency")
	}
	if b.Destination == "" {
		fields = append(fields, "/destination")
	}
	return fields
}

// payoutStates are what ?state= may ask for.
var payoutStates = []string{"pending_approval", "held", "submitted", "unknown", "paid", "failed", "returned", "cancelled"}

func (a *API) payouts() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/payouts", name: "requestPayout", tag: "Payouts", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Pay money out of an account",
		about: "Answered when the money is held; it is sent afterwards, once. 202: it is large, and somebody else has to approve it first. " +
			"A refusal is final for its Idempotency-Key. duplicate_of warns of another one to the same destination in the last 24 hours.",
		status: http.StatusCreated, also: []int{http.StatusAccepted},
	}, requestPayout)
	handle(a, route{
		method: http.MethodGet, path: "/v1/payouts", name: "listPayouts", tag: "Payouts", scope: holdfast.ScopeRead,
		summary: "List payouts, newest first",
		query: append(pageQuery(),
			&huma.Param{Name: "state", In: "query", Schema: enumSchema(payoutStates...)},
			&huma.Param{Name: "account", In: "query", Schema: stringSchema()}),
	}, listPayouts)
	handle(a, route{
		method: http.MethodGet, path: "/v1/payouts/{id}", name: "getPayout", tag: "Payouts", scope: holdfast.ScopeRead,
		summary: "Read a payout", about: "unknown: the gateway did not tell what became of it; the money stays held, and next_try_at says when it is asked again.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Payout, error) {
		return a.core.Payout(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/payouts/{id}/approve", name: "approvePayout", tag: "Payouts", scope: holdfast.ScopeAdmin, keyed: true,
		summary: "Approve a payout", about: "With another API key than the one that asked for it.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Payout, error) {
		p, err := a.core.ApprovePayout(ctx, c.key, c.id("id"), c.who.id)
		return answered(c, p), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/payouts/{id}/cancel", name: "cancelPayout", tag: "Payouts", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Cancel a payout",
		about: "One that has not been sent is cancelled at once. One that is submitted or unknown stays so: the gateway is asked to take it back, " +
			"if it can do that (recall: wanted, then asked), and only the state tells whether that was in time.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Payout, error) {
		p, err := a.core.CancelPayout(ctx, c.key, c.id("id"))
		return answered(c, p), err
	})
}

func requestPayout(ctx context.Context, c *call, b *payoutBody) (holdfast.Payout, error) {
	p, err := c.api.core.RequestPayout(ctx, c.key, holdfast.PayoutInput{
		Account: b.Account, Currency: b.Currency, Amount: b.Amount, Fee: b.Fee, Gateway: b.Gateway,
		Destination: string(b.Destination), Description: string(b.Description), By: c.who.id,
	})
	if p.Value.State == "pending_approval" {
		c.status = http.StatusAccepted
	}
	return answered(c, p), err
}

func listPayouts(ctx context.Context, c *call, _ *none) (page[holdfast.Payout], error) {
	limit, err := c.limit()
	if err != nil {
		return page[holdfast.Payout]{}, err
	}
	after, err := c.after()
	if err != nil {
		return page[holdfast.Payout]{}, err
	}
	rows, err := c.api.core.Payouts(ctx, holdfast.PayoutFilter{
		Account: c.query.Get("account"), State: holdfast.State(c.query.Get("state")), After: after, Limit: limit + 1,
	})
	if err != nil {
		return page[holdfast.Payout]{}, err
	}
	return paged(c, rows, limit, func(p holdfast.Payout) string { return p.ID }), nil
}
