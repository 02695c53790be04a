package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pay/holdfast"
)

type bulkBody struct {
	Orders   []orderBody `json:"orders" minItems:"1" maxItems:"100"`
	Together bool        `json:"together,omitempty" doc:"All of them or none; absent = each on its own"`
}

func (b *bulkBody) missing() (fields []string) {
	if len(b.Orders) == 0 {
		return []string{"/orders"}
	}
	for i := range b.Orders {
		for _, field := range b.Orders[i].missing() {
			fields = append(fields, fmt.Sprintf("/orders/%d%s", i, field))
		}
	}
	return fields
}

// bulkPlaced is the answer to a bulkBody, one for each order.
type bulkPlaced struct {
	Orders []bulkOrder `json:"orders"`
}

type bulkOrder struct {
	Order   *placed      `json:"order,omitempty" doc:"The order, if it was placed"`
	Refusal *bulkRefusal `json:"refusal,omitempty" doc:"Why not, otherwise"`
}

type bulkRefusal struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	SKU       string `json:"sku,omitempty"`
	Available int64  `json:"available" doc:"Pieces left, with sold_out"`
}

func placeOrders(ctx context.Context, c *call, b *bulkBody) (bulkPlaced, error) {
	if len(b.Orders) > holdfast.MaxBulk {
		return bulkPlaced{}, &refusal{code: holdfast.CodeTooManyItems, detail: fmt.Sprintf("at most %d orders", holdfast.MaxBulk), field: "/orders"}
	}
	in := make([]holdfast.OrderInput, len(b.Orders))
	for i := range b.Orders {
		var err error
		if in[i], err = b.Orders[i].input(); err != nil {
			var no *refusal
			if errors.As(err, &no) {
				no.field = fmt.Sprintf("/orders/%d%s", i, no.field)
			}
			return bulkPlaced{}, err
		}
	}
	a, err := c.api.core.PlaceMany(ctx, c.key, in, b.Together)
	if err != nil {
		return bulkPlaced{}, err
	}
	var out bulkPlaced
	for _, o := range answered(c, a) {
		if o.Order == nil {
			out.Orders = append(out.Orders, bulkOrder{Refusal: &bulkRefusal{o.Code, o.Detail, o.SKU, o.Available}})
			continue
		}
		p := c.api.placed(*o.Order)
		out.Orders = append(out.Orders, bulkOrder{Order: &p})
	}
	return out, nil
}
