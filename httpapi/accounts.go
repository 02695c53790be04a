package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type accountBody struct {
	ID     string       `json:"id,omitempty" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"Absent = a new one"`
	Name   text         `json:"name,omitempty" maxLength:"500"`
	Limits []limitsBody `json:"limits,omitempty" maxItems:"20" doc:"One for each currency that has any"`
}

func (b *accountBody) missing() []string { return missingLimits(b.Limits) }

type limitsBody struct {
	Currency     string `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217; amounts are its minor units"`
	Floor        int64  `json:"floor,omitempty" doc:"That always stays; below zero: a credit line"`
	Ceiling      int64  `json:"ceiling,omitempty" minimum:"0" doc:"0 = none; only a new account can get one"`
	PerPayout    int64  `json:"per_payout,omitempty" minimum:"0" doc:"0 = no limit"`
	PerDay       int64  `json:"per_day,omitempty" minimum:"0" doc:"Of payouts in a day in UTC; 0 = no limit"`
	ApproveAbove int64  `json:"approve_above,omitempty" minimum:"0" doc:"Larger payouts need a second person; 0 = none does"`
}

func missingLimits(limits []limitsBody) (fields []string) {
	for i := range limits {
		if limits[i].Currency == "" {
			fields = append(fields, fmt.Sprintf("/limits/%d/currency", i))
		}
	}
	return fields
}

func terms(limits []limitsBody) (out []holdfast.Terms) {
	for _, l := range limits {
		out = append(out, holdfast.Terms(l))
	}
	return out
}

type newLimitsBody struct {
	Limits  []limitsBody `json:"limits" maxItems:"20" doc:"All of them: what is left out is gone"`
	IfMatch int64        `json:"if_match,omitempty" doc:"The version that is replaced; like If-Match"`
}

func (b *newLimitsBody) missing() []string {
	if b.Limits == nil {
		return []string{"/limits"}
	}
	return missingLimits(b.Limits)
}

type reasonBody struct {
	Reason text `json:"reason" maxLength:"500" doc:"For people"`
}

func (b *reasonBody) missing() []string {
	if b.Reason == "" {
		return []string{"/reason"}
	}
	return nil
}

type depositBody struct {
	Currency string `json:"currency" pattern:"^[A-Z]{3}$"`
	Amount   int64  `json:"amount" doc:"Minor units; negative = it left by hand"`
	Reason   text   `json:"reason" maxLength:"500"`
}

func (b *depositBody) missing() (fields []string) {
	if b.Currency == "" {
		fields = append(fields, "/currency")
	}
	if b.Amount == 0 {
		fields = append(fields, "/amount")
	}
	if b.Reason == "" {
		fields = append(fields, "/reason")
	}
	return fields
}

// pastBalances are what an account had at a moment.
type pastBalances struct {
	At       time.Time     `json:"at"`
	Balances []pastBalance `json:"balances"`
}

type pastBalance struct {
	Currency string `json:"currency"`
	Posted   int64  `json:"posted"`
}

func (a *API) accounts() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts", name: "openAccount", tag: "Accounts", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Open an account", status: http.StatusCreated,
	}, func(ctx context.Context, c *call, b *accountBody) (holdfast.Account, error) {
		acc, err := a.core.OpenAccount(ctx, c.key, holdfast.AccountInput{ID: b.ID, Name: string(b.Name), Terms: terms(b.Limits)})
		return answered(c, acc), err
	})
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts/{id}", name: "getAccount", tag: "Accounts", scope: holdfast.ScopeRead,
		summary: "Read an account with its balances", about: "As of one moment. receivable is owed for refunds of what came with orders' splits; available = posted - held - floor - receivable, or 0 if that is less.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.AccountDetail, error) {
		d, err := a.core.Account(ctx, c.id("id"))
		d.Balances = list(d.Balances)
		if err == nil {
			c.w.Header().Set("ETag", etag(d.Version))
		}
		return d, err
	})
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts/{id}/balances", name: "getPastBalances", tag: "Accounts", scope: holdfast.ScopeRead,
		summary: "Read what an account had at a moment", about: "Out of the journal: what was posted until then.",
		query: []*huma.Param{{Name: "at", In: "query", Required: true, Description: "RFC 3339 in UTC", Schema: stringSchema()}},
	}, pastBalancesOf)
	handle(a, route{
		method: http.MethodGet, path: "/v1/accounts/{id}/statement", name: "getStatement", tag: "Accounts", scope: holdfast.ScopeRead,
		summary: "List what changed an account's balance, oldest first", about: "A page has the lines of at most limit entries: an entry is never split.",
		query: append(pageQuery(), &huma.Param{Name: "currency", In: "query", Required: true, Schema: stringSchema()}),
	}, statement)
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts/{id}/limits", name: "setLimits", tag: "Accounts", scope: holdfast.ScopeAdmin, keyed: true,
		summary: "Replace an account's limits", about: "Refused if the balance is outside of the new floor and ceiling.",
		header: []*huma.Param{{Name: "If-Match", In: "header", Description: `The ETag that is replaced, such as "v3"`, Schema: stringSchema()}},
	}, func(ctx context.Context, c *call, b *newLimitsBody) (holdfast.Account, error) {
		version, err := ifMatch(c.r, b.IfMatch)
		if err != nil {
			return holdfast.Account{}, err
		}
		acc, err := a.core.SetTerms(ctx, c.key, c.id("id"), terms(b.Limits), version)
		return answered(c, acc), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts/{id}/freeze", name: "freezeAccount", tag: "Accounts", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Keep an account's money where it is", about: "Payouts that have not been sent wait. It may still get money.",
	}, freeze(true))
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts/{id}/unfreeze", name: "unfreezeAccount", tag: "Accounts", scope: holdfast.ScopeAdmin, keyed: true,
		summary: "End a freeze",
	}, freeze(false))
	handle(a, route{
		method: http.MethodPost, path: "/v1/accounts/{id}/deposits", name: "deposit", tag: "Accounts", scope: holdfast.ScopeAdmin, keyed: true,
		summary: "Book money that came from outside, or left by hand", status: http.StatusCreated,
	}, func(ctx context.Context, c *call, b *depositBody) (holdfast.Transfer, error) {
		t, err := a.core.Deposit(ctx, c.key, c.id("id"), b.Currency, b.Amount, string(b.Reason))
		return answered(c, t), err
	})
}

func freeze(frozen bool) func(context.Context, *call, *reasonBody) (holdfast.Account, error) {
	return func(ctx context.Context, c *call, b *reasonBody) (holdfast.Account, error) {
		acc, err := c.api.core.Freeze(ctx, c.key, c.id("id"), frozen, string(b.Reason))
		return answered(c, acc), err
	}
}

func pastBalancesOf(ctx context.Context, c *call, _ *none) (pastBalances, error) {
	at, err := moment(c.query.Get("at"))
	if err != nil {
		return pastBalances{}, err
	}
	rows, err := c.api.core.AccountAt(ctx, c.id("id"), at)
	out := pastBalances{At: at, Balances: []pastBalance{}}
	for _, b := range rows {
		out.Balances = append(out.Balances, pastBalance{b.Currency, b.Posted})
	}
	return out, err
}

func statement(ctx context.Context, c *call, _ *none) (page[holdfast.StatementLine], error) {
	var p page[holdfast.StatementLine]
	limit, err := c.limit()
	if err != nil {
		return p, err
	}
	after, err := c.after()
	if err != nil {
		return p, err
	}
	var from holdfast.StatementFrom
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d/%d", &from.Seq, &from.Balance); err != nil {
			return p, refuse(codeInvalidCursor, "not a cursor of this list")
		}
	}
	lines, more, err := c.api.core.Statement(ctx, c.id("id"), c.query.Get("currency"), from, limit)
	p.Items = list(lines)
	if more {
		last := lines[len(lines)-1]
		p.NextCursor = c.cursor(fmt.Sprintf("%d/%d", last.Seq, last.Balance))
	}
	return p, err
}
