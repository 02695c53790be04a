package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type saleBody struct {
	ID          string          `json:"id,omitempty" pattern:"^[A-Za-z0-9_-]{1,48}$" doc:"Of the sale that is replaced, or of a new one; absent = a new one"`
	SKU         string          `json:"sku" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"Never changes"`
	OpensAt     time.Time       `json:"opens_at" doc:"RFC 3339 in UTC"`
	ClosesAt    time.Time       `json:"closes_at" doc:"The first moment after the window; RFC 3339 in UTC"`
	Price       int64           `json:"price" minimum:"1" maximum:"9007199254740991" doc:"Of one piece, minor units of the item's currency"`
	PerCustomer int64           `json:"per_customer,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Pieces that one customer may have, held or paid for; 0 = no limit; never changes"`
	HoldFor     *int64          `json:"hold_for,omitempty" minimum:"30" maximum:"86400" doc:"Seconds that an order holds it; absent = the item's"`
	Late        []holdfast.Late `json:"late_policy,omitempty" enum:"retake,backorder,refund" doc:"Tried in order when money comes after the stock was released; absent = the item's"`
	SoldOutside bool            `json:"sold_outside,omitempty" doc:"While the sale is not open the item is sold on its own terms; otherwise not at all"`
	Preset      string          `json:"preset,omitempty" doc:"The one that the server runs with; absent = whichever"`
	IfMatch     int64           `json:"if_match,omitempty" doc:"The version that is replaced; like If-Match"`
}

func (b *saleBody) missing() (fields []string) {
	if b.SKU == "" {
		fields = append(fields, "/sku")
	}
	if b.OpensAt.IsZero() {
		fields = append(fields, "/opens_at")
	}
	if b.ClosesAt.IsZero() {
		fields = append(fields, "/closes_at")
	}
	if b.Price == 0 {
		fields = append(fields, "/price")
	}
	return fields
}

func (a *API) sales() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/sales", name: "putSale", tag: "Sales", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Create or replace a sale",
		about: "Between opens_at and closes_at the item is sold on the sale's terms. The limit counts over all orders of a customer: " +
			"what they hold, and what they have paid for and not sent back.",
		also:   []int{http.StatusCreated},
		header: []*huma.Param{{Name: "If-Match", In: "header", Description: `The ETag that is replaced, such as "v3"`, Schema: stringSchema()}},
	}, putSale)
	handle(a, route{
		method: http.MethodGet, path: "/v1/sales", name: "listSales", tag: "Sales", scope: holdfast.ScopeRead,
		summary: "List sales by id", query: append(pageQuery(), &huma.Param{Name: "sku", In: "query", Schema: stringSchema()}),
	}, listSales)
	handle(a, route{
		method: http.MethodGet, path: "/v1/sales/{id}", name: "getSale", tag: "Sales", scope: holdfast.ScopeRead,
		summary: "Read a sale",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Sale, error) {
		s, err := a.core.Sale(ctx, c.id("id"))
		if err != nil {
			return s, err
		}
		c.w.Header().Set("ETag", etag(s.Version))
		return s, nil
	})
}

func putSale(ctx context.Context, c *call, b *saleBody) (holdfast.Sale, error) {
	hold, err := holdFor(b.HoldFor, "/hold_for")
	if err != nil {
		return holdfast.Sale{}, err
	}
	version, err := ifMatch(c.r, b.IfMatch)
	if err != nil {
		return holdfast.Sale{}, err
	}
	s, err := c.api.core.PutSale(ctx, c.key, holdfast.SaleInput{
		ID: b.ID, SKU: b.SKU, OpensAt: b.OpensAt, ClosesAt: b.ClosesAt, Price: b.Price, PerCustomer: b.PerCustomer,
		HoldFor: hold, Late: b.Late, SoldOutside: b.SoldOutside, Preset: b.Preset, IfMatch: version,
	})
	if err != nil {
		return holdfast.Sale{}, err
	}
	c.w.Header().Set("ETag", etag(s.Value.Version))
	if s.Value.Version == 1 {
		c.status = http.StatusCreated
	}
	return answered(c, s), nil
}

func listSales(ctx context.Context, c *call, _ *none) (page[holdfast.Sale], error) {
	limit, err := c.limit()
	if err != nil {
		return page[holdfast.Sale]{}, err
	}
	after, err := c.after()
	if err != nil {
		return page[holdfast.Sale]{}, err
	}
	rows, err := c.api.core.Sales(ctx, c.query.Get("sku"), after, limit+1)
	if err != nil {
		return page[holdfast.Sale]{}, err
	}
	return paged(c, rows, limit, func(s holdfast.Sale) string { return s.ID }), nil
}
