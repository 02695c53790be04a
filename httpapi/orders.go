package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type orderBody struct {
	Lines       []lineBody      `json:"lines" minItems:"1" maxItems:"100"`
	Customer    string          `json:"customer,omitempty"`
	Reference   string          `json:"reference,omitempty" doc:"The shop's own number; unique"`
	Currency    string          `json:"currency,omitempty" doc:"Absent = that of the items; otherwise it must be theirs"`
	HoldSeconds *int64          `json:"hold_seconds,omitempty" minimum:"30" maximum:"86400"`
	Splits      []splitBody     `json:"splits,omitempty" maxItems:"20" doc:"To whom the money goes when the order is paid; an account once. What is not split is the shop's. A refund takes back from each in proportion"`
	Metadata    map[string]text `json:"metadata,omitempty"`
}

type splitBody struct {
	Account string `json:"account" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Amount  int64  `json:"amount" minimum:"1" maximum:"9007199254740991" doc:"Minor units of the order's currency; together at most its total"`
}

type lineBody struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity" minimum:"1" maximum:"9007199254740991"`
}

func (b *orderBody) missing() (fields []string) {
	if len(b.Lines) == 0 {
		return []string{"/lines"}
	}
	for i := range b.Lines {
		if b.Lines[i].SKU == "" {
			fields = append(fields, fmt.Sprintf("/lines/%d/sku", i))
		}
		if b.Lines[i].Quantity == 0 {
			fields = append(fields, fmt.Sprintf("/lines/%d/quantity", i))
		}
	}
	for i := range b.Splits {
		if b.Splits[i].Account == "" {
			fields = append(fields, fmt.Sprintf("/splits/%d/account", i))
		}
		if b.Splits[i].Amount == 0 {
			fields = append(fields, fmt.Sprintf("/splits/%d/amount", i))
		}
	}
	return fields
}

// placed is a new order with what the buyer's page needs.
type placed struct {
	holdfast.Order
	ClientSecret string        `json:"client_secret" doc:"Lets the buyer's page see, pay and cancel this order: send it as Client-Secret"`
	ServerTime   holdfast.Time `json:"server_time" doc:"When expires_at was fixed: count down from here"`
}

func (a *API) orders() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders", name: "placeOrder", tag: "Orders", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Place an order",
		about: "Holds the stock of every line, or of none. With the preset queued there is a line: the answer is waited for, 5 seconds unless Prefer says otherwise, " +
			"and after that it is 202 with a ticket; the order is placed though nobody waits. The other presets always decide. " +
			"409 sold_out: nothing was done, and may work later. 429 customer_limit: the customer has had what the sale allows. " +
			"503 overloaded: the line is full and nothing was done; come back after Retry-After.",
		status: http.StatusCreated, other: map[int]any{http.StatusAccepted: waiting{}}, header: []*huma.Param{preferHeader()},
	}, placeOrder)
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders/bulk", name: "placeOrders", tag: "Orders", scope: holdfast.ScopeWrite, keyed: true, quiet: true,
		summary: "Place many orders", about: "In one transaction: each on its own, or with together all or none.",
	}, placeOrders)
	handle(a, route{
		method: http.MethodGet, path: "/v1/orders", name: "listOrders", tag: "Orders", scope: holdfast.ScopeRead,
		summary: "List orders, newest first",
		query: append(pageQuery(),
			&huma.Param{Name: "state", In: "query", Schema: enumSchema(orderStates...)},
			&huma.Param{Name: "customer", In: "query", Schema: stringSchema()},
			&huma.Param{Name: "reference", In: "query", Schema: stringSchema()},
			&huma.Param{Name: "sort", In: "query", Schema: enumSchema("newest")}),
	}, listOrders)
	handle(a, route{
		method: http.MethodGet, path: "/v1/orders/{id}", name: "getOrder", tag: "Orders", scope: holdfast.ScopeRead, order: itself,
		summary: "Read an order with its payments, refunds and tasks", about: "A buyer sees neither tasks, metadata nor splits.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.OrderDetail, error) {
		d, err := a.core.Detail(ctx, c.id("id"))
		d.Order = forBuyer(c, d.Order)
		if c.who.buyer {
			d.Tasks = nil
			for i := range d.RefundList {
				d.RefundList[i].Splits = nil
			}
		}
		d.Payments, d.RefundList, d.Tasks = list(d.Payments), list(d.RefundList), list(d.Tasks)
		return d, err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders/{id}/cancel", name: "cancelOrder", tag: "Orders", scope: holdfast.ScopeWrite, keyed: true, order: itself,
		summary: "Cancel an unpaid order", about: "202: an open payment is being closed first; the order is cancelled when that is certain.", also: []int{http.StatusAccepted},
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Order, error) {
		o, err := a.core.Cancel(ctx, c.key, c.id("id"))
		if o.Value.State == "closing" {
			c.status = http.StatusAccepted
		}
		return forBuyer(c, answered(c, o)), err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/orders/{id}/fulfil", name: "fulfilOrder", tag: "Orders", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Say that the goods were handed over",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Order, error) {
		o, err := a.core.Fulfil(ctx, c.key, c.id("id"))
		return answered(c, o), err
	})
}

// orderStates are what ?state= may ask for.
var orderStates = []string{"held", "paying", "closing", "expired", "cancelled", "paid", "fulfilled", "partly_refunded", "refunding", "refunded"}

// itself is the order behind an order's id.
func itself(_ context.Context, _ *holdfast.Holdfast, id string) (string, error) { return id, nil }

func forBuyer(c *call, o holdfast.Order) holdfast.Order {
	if c.who.buyer {
		o.Metadata, o.Splits = nil, nil
	}
	return o
}

func isNotFound(err error) bool {
	var no *holdfast.Rejection
	return errors.As(err, &no) && no.Code == holdfast.CodeNotFound
}

// input is what the body asks for.
func (b *orderBody) input() (holdfast.OrderInput, error) {
	hold, err := holdFor(b.HoldSeconds, "/hold_seconds")
	if err != nil {
		return holdfast.OrderInput{}, err
	}
	in := holdfast.OrderInput{
		Lines: make([]holdfast.LineInput, len(b.Lines)), Customer: b.Customer, Reference: b.Reference,
		Currency: b.Currency, HoldFor: hold, Metadata: plain(b.Metadata),
	}
	for i, l := range b.Lines {
		in.Lines[i] = holdfast.LineInput(l)
	}
	for _, s := range b.Splits {
		in.Splits = append(in.Splits, holdfast.SplitInput(s))
	}
	return in, nil
}

func placeOrder(ctx context.Context, c *call, b *orderBody) (placed, error) {
	in, err := b.input()
	if err != nil {
		return placed{}, err
	}
	t, err := c.api.core.PlaceQueued(ctx, c.key, in, c.patience(defaultWait))
	if err != nil {
		return placed{}, err
	}
	if t.State == holdfast.TicketWaiting {
		c.status, c.other = http.StatusAccepted, c.api.waiting(t)
		c.w.Header().Set("Location", "/v1/tickets/"+t.ID)
		return placed{}, nil
	}
	c.replayed = t.Replayed
	return c.api.placed(*t.Order), nil
}

// placed adds what follows from the stored order, so that a replay is the same to the byte.
func (a *API) placed(order holdfast.Order) placed {
	return placed{Order: order, ClientSecret: a.core.ClientSecret(order.ID), ServerTime: order.CreatedAt}
}

func listOrders(ctx context.Context, c *call, _ *none) (page[holdfast.Order], error) {
	limit, err := c.limit()
	if err != nil {
		return page[holdfast.Order]{}, err
	}
	after, err := c.after()
	if err != nil {
		return page[holdfast.Order]{}, err
	}
	rows, err := c.api.core.Orders(ctx, holdfast.OrderFilter{
		State: holdfast.State(c.query.Get("state")), Customer: c.query.Get("customer"),
		Reference: c.query.Get("reference"), After: after, Limit: limit + 1,
	})
	if err != nil {
		return page[holdfast.Order]{}, err
	}
	return paged(c, rows, limit, func(o holdfast.Order) string { return o.ID }), nil
}
