package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type itemBody struct {
	SKU         string          `json:"sku" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Name        text            `json:"name" maxLength:"500"`
	Names       map[string]text `json:"names,omitempty" doc:"By language, such as zh"`
	Currency    string          `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217"`
	Price       int64           `json:"price" minimum:"1" maximum:"9007199254740991" doc:"Of one piece, minor units of currency"`
	HoldSeconds *int64          `json:"hold_seconds,omitempty" minimum:"30" maximum:"86400" doc:"How long an order holds it; absent = the shop's default"`
	Late        []holdfast.Late `json:"late_policy,omitempty" enum:"retake,backorder,refund" doc:"Tried in order when money comes after the stock was released"`
	IfMatch     int64           `json:"if_match,omitempty" doc:"The version that is replaced; like If-Match"`
	Stock       int64           `json:"stock,omitempty" doc:"Pieces received with a new item"`
}

func (b *itemBody) missing() (fields []string) {
	if b.SKU == "" {
		fields = append(fields, "/sku")
	}
	if b.Name == "" {
		fields = append(fields, "/name")
	}
	if b.Currency == "" {
		fields = append(fields, "/currency")
	}
	if b.Price == 0 {
		fields = append(fields, "/price")
	}
	return fields
}

type stockBody struct {
	Quantity  int64 `json:"quantity" doc:"Pieces; negative = write off"`
	Reason    text  `json:"reason" maxLength:"500"`
	Backorder bool  `json:"backorder,omitempty" doc:"Change the backorder budget instead of the stock"`
}

func (b *stockBody) missing() (fields []string) {
	if b.Quantity == 0 {
		fields = append(fields, "/quantity")
	}
	if b.Reason == "" {
		fields = append(fields, "/reason")
	}
	return fields
}

func (a *API) items() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/items", name: "putItem", tag: "Items", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Create or replace an item", also: []int{http.StatusCreated},
		header: []*huma.Param{{Name: "If-Match", In: "header", Description: `The ETag that is replaced, such as "v3"`, Schema: stringSchema()}},
	}, putItem)
	handle(a, route{
		method: http.MethodGet, path: "/v1/items", name: "listItems", tag: "Items", scope: holdfast.ScopeRead,
		summary: "List items by SKU", query: pageQuery(),
	}, listItems)
	handle(a, route{
		method: http.MethodGet, path: "/v1/items/{sku}", name: "getItem", tag: "Items", scope: holdfast.ScopeRead,
		summary: "Read an item",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Item, error) {
		it, err := a.core.Item(ctx, c.id("sku"))
		if err != nil {
			return it, err
		}
		c.w.Header().Set("ETag", etag(it.Version))
		return it, nil
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/items/{sku}/stock", name: "adjustStock", tag: "Items", scope: holdfast.ScopeWrite, keyed: true,
		summary: "Receive or write off stock",
	}, func(ctx context.Context, c *call, in *stockBody) (holdfast.StockLevel, error) {
		s, err := a.core.Adjust(ctx, c.key, holdfast.Adjustment{SKU: c.id("sku"), Quantity: in.Quantity, Reason: string(in.Reason), Backorder: in.Backorder})
		return answered(c, s), err
	})
	handle(a, route{
		method: http.MethodGet, path: "/v1/items/{sku}/stock", name: "getStock", tag: "Items", scope: holdfast.ScopeRead,
		summary: "Read the stock of an item",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.StockLevel, error) {
		return a.core.Stock(ctx, c.id("sku"))
	})
	handle(a, route{
		method: http.MethodGet, path: "/v1/items/{sku}/stock/explain", name: "explainStock", tag: "Items", scope: holdfast.ScopeRead,
		summary: "Why is available what it is?", about: "The stock with the open holds behind it, oldest first.",
	}, func(ctx context.Context, c *call, _ *none) (holdfast.Explanation, error) {
		e, err := a.core.Explain(ctx, c.id("sku"))
		e.Holds = list(e.Holds)
		return e, err
	})
}

func putItem(ctx context.Context, c *call, b *itemBody) (holdfast.Item, error) {
	hold, err := holdFor(b.HoldSeconds, "/hold_seconds")
	if err != nil {
		return holdfast.Item{}, err
	}
	version, err := ifMatch(c.r, b.IfMatch)
	if err != nil {
		return holdfast.Item{}, err
	}
	it, err := c.api.core.PutItem(ctx, c.key, holdfast.ItemInput{
		SKU: b.SKU, Name: string(b.Name), Names: plain(b.Names), Price: b.Price, Currency: b.Currency,
		HoldFor: hold, Late: b.Late, IfMatch: version, Stock: b.Stock,
	})
	if err != nil {
		return holdfast.Item{}, err
	}
	c.w.Header().Set("ETag", etag(it.Value.Version))
	if it.Value.Version == 1 {
		c.status = http.StatusCreated
	}
	return answered(c, it), nil
}

func listItems(ctx context.Context, c *call, _ *none) (page[holdfast.Item], error) {
	limit, err := c.limit()
	if err != nil {
		return page[holdfast.Item]{}, err
	}
	after, err := c.after()
	if err != nil {
		return page[holdfast.Item]{}, err
	}
	rows, err := c.api.core.Items(ctx, after, limit+1)
	if err != nil {
		return page[holdfast.Item]{}, err
	}
	return paged(c, rows, limit, func(it holdfast.Item) string { return it.SKU }), nil
}

func etag(version int64) string { return `"v` + strconv.FormatInt(version, 10) + `"` }

// ifMatch is the version that a write replaces, as the header or the body says;
// 0 = any.
func ifMatch(r *http.Request, said int64) (int64, error) {
	tags := r.Header["If-Match"]
	if len(tags) == 0 {
		return said, nil
	}
	s := tags[0]
	if len(tags) > 1 || len(s) < len(`"v1"`) || s[:2] != `"v` || s[len(s)-1] != '"' {
		return 0, refuse(codeInvalidParameter, "If-Match is one ETag of this item")
	}
	n, err := strconv.ParseInt(s[2:len(s)-1], 10, 64)
	if err != nil || n < 1 || said != 0 && said != n {
		return 0, refuse(codeInvalidParameter, "If-Match is one ETag of this item, and agrees with if_match")
	}
	return n, nil
}

// holdFor reads how long stock is held, of the member field; absent = 0, the default.
func holdFor(seconds *int64, field string) (time.Duration, error) {
	if seconds == nil {
		return 0, nil
	}
	if *seconds < int64(holdfast.MinHold/time.Second) || *seconds > int64(holdfast.MaxHold/time.Second) {
		return 0, &refusal{code: holdfast.CodeHoldRange, detail: "must be 30 to 86400 seconds", field: field}
	}
	return time.Duration(*seconds) * time.Second, nil
}

func plain(m map[string]text) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}
