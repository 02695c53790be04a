package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// OrderInput is what a buyer wants.
type OrderInput struct {
	Lines     []LineInput       // 1..MaxLines
	Customer  string            // [A-Za-z0-9_-]{1,64}; "" = unknown, which a sale with a limit refuses
	Reference string            // the shop's own number, same form, unique; "" = none
	Currency  string            // "" = that of the items; otherwise it must be theirs
	HoldFor   time.Duration     // whole seconds, MinHold..MaxHold; 0 = the shortest of the items' and sales'
	Splits    []SplitInput      // to whom its money goes; at most MaxSplits, an account once; nil = all is the shop's
	Metadata  map[string]string // at most MaxMetadata; values of at most MaxText characters
}

// LineInput is one line; lines of one SKU are summed.
type LineInput struct {
	SKU      string
	Quantity int64 // pieces, 1..ledger.MaxAmount
}

const kindReference = "reference" // of the record that makes Order.Reference unique

// Place holds the stock of a new order, all of it or none.
//
// A repeat, under the same key, gets the order. In a rush for what is sold out, in
// which orders are refused faster than every 100 ms, that is certain for a minute;
// a later repeat may be told CodeSoldOut then, and Ticket still finds the order.
func (h *Holdfast) Place(ctx context.Context, key Key, in OrderInput) (Answer[Order], error) {
	began := time.Now()
	a, err := h.place(ctx, key, in)
	h.count(began, a.Replayed, err)
	return a, err
}

func (h *Holdfast) place(ctx context.Context, key Key, in OrderInput) (Answer[Order], error) {
	d, err := h.draft(ctx, key, in)
	if err == nil {
		return h.placeDraft(ctx, d)
	}
	var r *Rejection
	if errors.As(err, &r) {
		// What can't be asked for now may have been accepted before, under this key.
		if old, ok, err := replayed[Order](ctx, h, key); ok || err != nil {
			return old, err
		}
	}
	return Answer[Order]{}, err
}

// draft is an order that is ready to be placed, and the entry that does so.
type draft struct {
	order  Order
	entry  ledger.Entry
	grants []flow.Grant
}

func (h *Holdfast) draft(ctx context.Context, key Key, in OrderInput) (draft, error) {
	order, err := h.newOrder(ctx, in)
	if err != nil {
		return draft{}, err
	}
	ch, refusal := flow.Place(order)
	if refusal != nil {
		return draft{}, &Rejection{Code: refusal.Code, Detail: refusal.Detail}
	}
	d := draft{order: ch.Case.Order, grants: order.Grants(),
		entry: ledger.Entry{ID: key.entry(), Fingerprint: key.Print, Ops: ch.Ops, Records: ch.Records(), Events: ch.Events}}
	if d.entry.ID == "" {
		d.entry.ID = order.ID
	}
	if order.Reference != "" {
		d.entry.Records = append(d.entry.Records, ledger.Record{Kind: kindReference, ID: order.Reference, Version: 1, Ref: order.ID})
	}
	return d, nil
}

func (h *Holdfast) placeDraft(ctx context.Context, d draft) (Answer[Order], error) {
	res, grants, err := h.applyGranted(ctx, d.entry, d.grants)
	if err == nil && res.Code == ledger.Insufficient {
		res, grants, err = h.insist(ctx, d.entry, grants, res)
	}
	if err != nil {
		return Answer[Order]{}, err
	}
	if res.Replayed {
		return answer[Order](res.Reply, true)
	}
	return Answer[Order]{Value: d.order}, notPlaced(d.order.Lines, res, grants)
}

// notPlaced is why the ledger refused a new order; nil = it did not. grants are
// those that did not happen either.
func notPlaced(lines []Line, res ledger.Result, grants []flow.Grant) error {
	switch {
	case res.Code == ledger.OK:
		return nil
	case res.Code == ledger.Insufficient:
		return short(lines, res, grants)
	case res.Code == ledger.Stale && res.Record.Kind == kindReference:
		return reject(CodeOrderExists, "there is an order with reference %s", res.Record.ID)
	case res.Code == ledger.Overflow:
		return reject(CodeTotalOverflow, "the quantities are too large")
	}
	return fmt.Errorf("holdfast: place order: the ledger refused: %s %s", res.Code, res.Detail)
}

// newOrder checks what the buyer wants and looks up names, and the prices and
// policies of this moment.
func (h *Holdfast) newOrder(ctx context.Context, in OrderInput) (Order, error) {
	if err := in.check(); err != nil {
		return Order{}, err
	}
	now, err := h.now(ctx)
	if err != nil {
		return Order{}, err
	}
	o := Order{Customer: in.Customer, Reference: in.Reference, Currency: in.Currency, Metadata: in.Metadata}
	holdFor := time.Duration(0)
	for _, l := range in.Lines {
		if n := slices.IndexFunc(o.Lines, func(m Line) bool { return m.SKU == l.SKU }); n >= 0 {
			if o.Lines[n].Quantity += l.Quantity; o.Lines[n].Quantity > ledger.MaxAmount {
				return o, &Rejection{Code: CodeAmountRange, SKU: l.SKU, Detail: "quantity: too many pieces"}
			}
			continue
		}
		item, err := h.knownItem(ctx, l.SKU)
		if err != nil {
			return o, err
		}
		if o.Currency == "" {
			o.Currency = item.Currency
		}
		if o.Currency != item.Currency {
			return o, &Rejection{Code: CodeCurrencyMismatch, SKU: l.SKU, Detail: fmt.Sprintf("%s is priced in %s", l.SKU, item.Currency)}
		}
		line, d, err := h.offer(ctx, item, now)
		if err != nil {
			return o, err
		}
		if line.PerCustomer > 0 && o.Customer == "" {
			return o, &Rejection{Code: CodeCustomerRequired, SKU: l.SKU, Detail: l.SKU + " is limited for each customer; say whose order it is"}
		}
		if d > 0 && (holdFor == 0 || d < holdFor) {
			holdFor = d
		}
		line.Quantity = l.Quantity
		o.Lines = append(o.Lines, line)
	}
	if o.Splits, err = h.splits(ctx, in.Splits, o.Currency); err != nil {
		return o, err
	}
	if in.HoldFor > 0 {
		holdFor = in.HoldFor
	}
	if holdFor == 0 {
		holdFor = h.o.HoldFor
	}
	o.CreatedAt, o.ExpiresAt = now, now.Add(holdFor)
	o.CapAt = now.Add(max(h.o.Pin, holdFor))
	o.ID, err = newID()
	return o, err
}

func (in OrderInput) check() error {
	if len(in.Lines) == 0 {
		return reject(CodeInvalidField, "lines: at least one")
	}
	if len(in.Lines) > MaxLines {
		return reject(CodeTooManyItems, "lines: at most %d", MaxLines)
	}
	for _, l := range in.Lines {
		if !idForm.MatchString(l.SKU) {
			return reject(CodeInvalidID, "sku: 1 to 64 of A-Z a-z 0-9 _ -")
		}
		if l.Quantity < 1 || l.Quantity > ledger.MaxAmount {
			return &Rejection{Code: CodeAmountRange, SKU: l.SKU, Detail: fmt.Sprintf("quantity: 1 to %d pieces", int64(ledger.MaxAmount))}
		}
	}
	if in.Customer != "" && !idForm.MatchString(in.Customer) {
		return reject(CodeInvalidID, "customer: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.Reference != "" && !idForm.MatchString(in.Reference) {
		return reject(CodeInvalidID, "reference: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.HoldFor != 0 && !holdInRange(in.HoldFor) {
		return reject(CodeHoldRange, "hold: %v to %v, whole seconds", MinHold, MaxHold)
	}
	if len(in.Metadata) > MaxMetadata {
		return reject(CodeInvalidField, "metadata: at most %d keys", MaxMetadata)
	}
	for k, v := range in.Metadata {
		if !idForm.MatchString(k) || !text(v) {
			return reject(CodeInvalidField, "metadata: keys of A-Z a-z 0-9 _ -, values of at most %d characters", MaxText)
		}
	}
	return checkSplits(in.Splits)
}

// Order finds one order.
func (h *Holdfast) Order(ctx context.Context, id string) (Order, error) {
	return document[Order](ctx, h, flow.KindOrder, id)
}

// OrderDetail is an order with everything that belongs to it.
type OrderDetail struct {
	Order
	Payments   []Payment `json:"payments"`
	RefundList []Refund  `json:"refund_list"`
	Tasks      []Task    `json:"tasks"`
}

// Detail finds one order with its payments, refunds and tasks.
func (h *Holdfast) Detail(ctx context.Context, id string) (OrderDetail, error) {
	c, err := h.load(ctx, id)
	return OrderDetail{c.Order, c.Payments, c.Refunds, c.Tasks}, err
}

// OrderFilter says which orders to list.
type OrderFilter struct {
	State     State  // "" = all
	Customer  string // "" = all
	Reference string // "" = all
	After     string // the id of the last one seen; "" = from the newest
	Limit     int    // 0 = ledger.MaxPage
}

// Orders lists orders, newest first.
func (h *Holdfast) Orders(ctx context.Context, f OrderFilter) ([]Order, error) {
	q := ledger.RecordQuery{Kind: flow.KindOrder, State: string(f.State), Ref: f.Reference, Desc: true, Limit: f.Limit}
	if f.Customer != "" {
		q.Owner = flow.CustomerOwner(f.Customer)
	}
	if f.After != "" {
		q.After = ledger.RecordKey{Kind: flow.KindOrder, ID: f.After}
	}
	rs, err := h.store.Records(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("holdfast: list orders: %w", err)
	}
	return documents[Order](rs)
}

func theOrder(c flow.Case) Order { return c.Order }

// Cancel ends an unpaid order: at once, or as soon as its open payment is closed.
func (h *Holdfast) Cancel(ctx context.Context, key Key, order string) (Answer[Order], error) {
	return command(ctx, h, key, order, flow.Event{On: flow.Cancel}, theOrder)
}

// Fulfil says that the goods have been handed over.
func (h *Holdfast) Fulfil(ctx context.Context, key Key, order string) (Answer[Order], error) {
	return command(ctx, h, key, order, flow.Event{On: flow.Fulfil}, theOrder)
}

// RefundInput asks for a repayment.
type RefundInput struct {
	Order   string
	Amount  int64     // minor units; 0 = all that is left
	Reason  string    // for people; at most MaxText characters
	Restock []Restock // pieces to put back on sale; nil = none
}

// Refund repays an order's buyer, in part or in full. It comes back as soon as
// the refund is stored; the gateway is called afterwards.
func (h *Holdfast) Refund(ctx context.Context, key Key, in RefundInput) (Answer[Refund], error) {
	if in.Amount < 0 || in.Amount > ledger.MaxAmount {
		return Answer[Refund]{}, reject(CodeAmountRange, "amount: 1 to %d minor units", int64(ledger.MaxAmount))
	}
	if !text(in.Reason) {
		return Answer[Refund]{}, reject(CodeInvalidField, "reason: at most %d characters", MaxText)
	}
	if len(in.Restock) > MaxLines {
		return Answer[Refund]{}, reject(CodeTooManyItems, "restock: at most %d", MaxLines)
	}
	ctx = because(ctx, in.Reason)
	ev := flow.Event{On: flow.Repaid, Amount: in.Amount, Reason: in.Reason, Restock: in.Restock}
	return command(ctx, h, key, in.Order, ev, func(c flow.Case) Refund { return c.Refunds[len(c.Refunds)-1] })
}

// RefundByID finds one refund.
func (h *Holdfast) RefundByID(ctx context.Context, id string) (Refund, error) {
	return document[Refund](ctx, h, flow.KindRefund, id)
}
