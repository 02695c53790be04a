package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-pay/holdfast"
)

type transferBody struct {
	From     string `json:"from" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"An account"`
	To       string `json:"to" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"Another account"`
	Currency string `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217"`
	Amount   int64  `json:"amount" minimum:"1" maximum:"9007199254740991" doc:"Minor units of currency"`
	Reason   text   `json:"reason,omitempty" maxLength:"500"`
}

func (b *transferBody) missing() (fields []string) {
	if b.From == "" {
		fields = append(fields, "/from")
	}
	if b.To == "" {
		fields = append(fields, "/to")
	}
	if b.Currency == "" {
		fields = append(fields, "/currency")
	}
	if b.Amount == 0 {
		fields = append(fields, "/amount")
	}
	return fields
}

func (b *transferBody) input() holdfast.TransferInput {
	return holdfast.TransferInput{From: b.From, To: b.To, Currency: b.Currency, Amount: b.Amount, Reason: string(b.Reason)}
}

type bulkTransferBody struct {
	Transfers []transferBody `json:"transfers" minItems:"1" maxItems:"100"`
	Together  bool           `json:"together,omitempty" doc:"All of them or none; absent = each on its own"`
}

func (b *bulkTransferBody) missing() (fields []string) {
	if len(b.Transfers) == 0 {
		return []string{"/transfers"}
	}
	for i := range b.Transfers {
		for _, field := range b.Transfers[i].missing() {
			fields = append(fields, fmt.Sprintf("/transfers/%d%s", i, field))
		}
	}
	return fields
}

// bulkMoved is the answer to a bulkTransferBody, one for each transfer.
type bulkMoved struct {
	Transfers []holdfast.BulkTransfer `json:"transfers" doc:"A transfer, or code and detail of why not"`
}

type holdBody struct {
	From        string `json:"from" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"The account whose money is held"`
	To          string `json:"to" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"Where a commit moves it"`
	Currency    string `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217"`
	Amount      int64  `json:"amount" minimum:"1" maximum:"9007199254740991" doc:"Minor units of currency"`
	Reason      text   `json:"reason,omitempty" maxLength:"500"`
	HoldSeconds *int64 `json:"hold_seconds,omitempty" minimum:"30" maximum:"86400" doc:"Absent = 900"`
}

func (b *holdBody) transfer() *transferBody {
	return &transferBody{From: b.From, To: b.To, Currency: b.Currency, Amount: b.Amount, Reason: b.Reason}
}

func (b *holdBody) missing() []string { return b.transfer().missing() }

type commitBody struct {
	Amount *int64 `json:"amount,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Minor units; absent = all that is left"`
	Keep   bool   `json:"keep,omitempty" doc:"The rest stays held; absent = it is released"`
}

func (*commitBody) missing() []string { return nil }

type extendBody struct {
	HoldSeconds *int64 `json:"hold_seconds" minimum:"30" maximum:"86400" doc:"From now on; the end is never moved to an earlier time"`
}

func (b *extendBody) missing() []string {
	if b.HoldSeconds == nil {
		return []string{"/hold_seconds"}
	}
	return nil
}

func (a *API) transfers() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/transfers", name: "transfer", tag: "Transfers", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Move money from one account to another", about: "A refusal is final for its Idempotency-Key.", status: http.StatusCreated,
	}, func(ctx context.Context, c *call, b *transferBody) (holdfast.Transfer, error) {
		t, err := a.core.Transfer(ctx, c.key, b.input())
		return answered(c, t), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/transfers/bulk", name: "transferMany", tag: "Transfers", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Make many transfers", about: "In one transaction: each on its own, or with together all or none.",
	}, transferMany)
	handle(a, route{
		method: http.MethodGet, path: "/v1/transfers/{id}", name: "getTransfer", tag: "Transfers", scope: holdfast.ScopeRead,
		summary: "Read a transfer",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Transfer, error) {
		return a.core.TransferByID(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/holds", name: "holdMoney", tag: "Holds", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Hold money of one account for another", status: http.StatusCreated,
	}, holdMoney)
	handle(a, route{
		method: http.MethodGet, path: "/v1/holds/{id}", name: "getHold", tag: "Holds", scope: holdfast.ScopeRead,
		summary: "Read a hold",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.WalletHold, error) {
		return a.core.HoldByID(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/holds/{id}/commit", name: "commitHold", tag: "Holds", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Move the money of a hold, or part of it",
	}, func(ctx context.Context, c *call, b *commitBody) (holdfast.WalletHold, error) {
		amount := int64(0)
		if b.Amount != nil {
			if amount = *b.Amount; amount < 1 {
				return holdfast.WalletHold{}, &refusal{code: holdfast.CodeAmountRange, detail: "must be at least 1", field: "/amount"}
			}
		}
		h, err := a.core.CommitHold(ctx, c.key, c.id("id"), amount, b.Keep)
		return answered(c, h), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/holds/{id}/void", name: "voidHold", tag: "Holds", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Release what is left of a hold",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.WalletHold, error) {
		h, err := a.core.VoidHold(ctx, c.key, c.id("id"))
		return answered(c, h), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/holds/{id}/extend", name: "extendHold", tag: "Holds", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Hold the money for longer",
	}, func(ctx context.Context, c *call, b *extendBody) (holdfast.WalletHold, error) {
		d, err := holdFor(b.HoldSeconds, "/hold_seconds")
		if err != nil {
			return holdfast.WalletHold{}, err
		}
		h, err := a.core.ExtendHold(ctx, c.key, c.id("id"), d)
		return answered(c, h), err
	})
}

func transferMany(ctx context.Context, c *call, b *bulkTransferBody) (bulkMoved, error) {
	if len(b.Transfers) > holdfast.MaxBulk {
		return bulkMoved{}, &refusal{code: holdfast.CodeTooManyItems, detail: fmt.Sprintf("at most %d transfers", holdfast.MaxBulk), field: "/transfers"}
	}
	in := make([]holdfast.TransferInput, len(b.Transfers))
	for i := range b.Transfers {
		in[i] = b.Transfers[i].input()
	}
	many, err := c.api.core.TransferMany(ctx, c.key, in, b.Together)
	return bulkMoved{answered(c, many)}, err
}

func holdMoney(ctx context.Context, c *call, b *holdBody) (holdfast.WalletHold, error) {
	d, err := holdFor(b.HoldSeconds, "/hold_seconds")
	if err != nil {
		return holdfast.WalletHold{}, err
	}
	h, err := c.api.core.Hold(ctx, c.key, holdfast.HoldInput{TransferInput: b.transfer().input(), HoldFor: d})
	return answered(c, h), err
}
