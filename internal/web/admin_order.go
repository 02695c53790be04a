package web

import (
	"strconv"
	"strings"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// step is one step of an order's timeline, in words.
type step struct {
	At     holdfast.Time
	What   cell
	Cause  cell
	Reason string
	Error  string
	Moves  []move
	States []fact // documents that changed, by kind
	Quiet  bool   // it only asked
	Next   holdfast.Time
}

// move is an op of the ledger, in words.
type move struct {
	Op       string // words
	What     cell
	From, To string
}

func orderCard(d *desk) error {
	ctx, id := d.r.Context(), d.r.PathValue("id")
	o, err := d.core.Detail(ctx, id)
	if err != nil {
		return err
	}
	d.topics = []string{holdfast.TopicOrder + "/" + id}
	c := card{Title: o.ID, State: state(string(o.State)), Forms: d.orderForms(o.Order), Facts: []fact{{"total", moneyOf(o.Total, o.Currency)}, {"paid", moneyOf(o.Paid, o.Currency)},
		{"refunded", moneyOf(o.Refunded, o.Currency)}, {"customer", said(o.Customer)}, {"reference", said(o.Reference)},
		{"created_at", moment(o.CreatedAt)}, {"expires_at", moment(o.ExpiresAt)}, {"paid_at", moment(o.PaidAt)}, {"fulfilled_at", moment(o.FulfilledAt)}}}
	bought := table{ID: "lines", Columns: []string{"sku", "name", "quantity", "price", "sale"}}
	for _, l := range o.Lines {
		bought.Rows = append(bought.Rows, []cell{to("items", l.SKU), said(l.Name), count(l.Quantity), moneyOf(l.Price, o.Currency), to("sales", l.Sale)})
	}
	paid := table{ID: "payments", Columns: []string{"id", "created_at", "state", "amount", "gateway", "method", "ref"}, Empty: "admin.order.no_payments"}
	for _, p := range o.Payments {
		row := paymentCells(p)
		paid.Rows = append(paid.Rows, append(row[:6:6], row[7]))
	}
	c.Sections = []section{{"admin.order.lines", bought}, {"admin.order.payments", paid}}
	if len(o.RefundList) > 0 {
		back := table{ID: "refunds", Columns: []string{"id", "created_at", "state", "amount", "reason"}}
		for _, r := range o.RefundList {
			row := refundCells(r)
			back.Rows = append(back.Rows, append(row[:4:4], row[5]))
		}
		c.Sections = append(c.Sections, section{"admin.order.refunds", back})
	}
	after, _ := strconv.ParseInt(d.r.URL.Query().Get("after"), 10, 64) // anything else is the beginning
	steps, next, err := d.core.Timeline(ctx, id, after)
	if err != nil {
		return err
	}
	held := map[string]ledger.Op{}
	for _, s := range steps {
		c.Steps = append(c.Steps, d.step(s, held))
	}
	if next > 0 {
		c.NextStep = d.r.URL.Path + "?after=" + strconv.FormatInt(next, 10)
	}
	return d.sheet("admin.order", c)
}

// orderForms are what can be done to an order now.
func (d *desk) orderForms(o holdfast.Order) (all []form) {
	path, add := "/admin/orders/"+o.ID, func(f form) { all = append(all, d.may(holdfast.RoleOperator, f)...) }
	switch o.State {
	case "held", "paying", "closing":
		add(form{Action: path + "/cancel", Word: "admin.do.cancel", Danger: true, Fields: []field{reason}})
	case "paid":
		add(form{Action: path + "/fulfil", Word: "admin.do.fulfil", Fields: []field{reason}})
	}
	if o.Paid > o.Refunded+o.Refunding && (o.State == "paid" || o.State == "fulfilled" || o.State == "partly_refunded") {
		add(form{Action: path + "/refund", Word: "admin.do.refund", Danger: true, Fields: []field{
			{Name: "amount", Hint: "admin.hint.refund"}, {Name: "restock", Kind: "select", Choices: []string{"no", "yes"}, Hint: "admin.hint.restock"}, reason}})
	}
	return all
}

// step puts a step of the journal into words. held are the holds of the steps
// before.
func (d *desk) step(s holdfast.Step, held map[string]ledger.Op) step {
	out := step{At: s.At, What: d.event(s.What), Cause: d.asker(s.Cause), Reason: s.Reason}
	if t := s.Task; t != nil {
		out.Quiet, out.Error = true, t.Error
		out.States = []fact{{"do", cell{As: "word", Text: "admin.task." + string(t.Do)}}, {"gateway", said(t.Gateway)}}
		if s.What != holdfast.StepCalled {
			out.Next = t.Due
		} else {
			out.Error = ""
		}
		return out
	}
	for _, op := range s.Ops {
		if op.Kind == ledger.KindReserve {
			held[op.Hold] = op
		}
		m := move{Op: "admin.op." + string(op.Kind), From: d.accountName(op.From), To: d.accountName(op.To)}
		asset, n := op.Asset, op.Amount
		if was, ok := held[op.Hold]; ok && op.Kind != ledger.KindReserve {
			asset = was.Asset
			if n == 0 {
				n = was.Amount
			}
			if op.Kind == ledger.KindCommit {
				m.From, m.To = d.accountName(was.From), d.accountName(was.To)
			}
		}
		if op.Kind == ledger.KindExtend || op.Kind == ledger.KindReserve {
			m.From, m.To = "", ""
		}
		m.What = d.assetCell(asset, n)
		out.Moves = append(out.Moves, m)
	}
	for _, r := range s.Records {
		if r.State != "" && (r.Kind == "payment" || r.Kind == "refund" || r.Kind == "order") {
			out.States = append(out.States, fact{r.Kind, state(r.State)})
		}
	}
	return out
}

// assetCell is an amount of whatever can run out.
func (d *desk) assetCell(asset ledger.Asset, n int64) cell {
	if sku, ok := strings.CutPrefix(string(asset), "sku:"); ok {
		return cell{Text: sku + " × " + strconv.FormatInt(n, 10), Href: "/admin/items/" + sku}
	}
	if _, err := d.amount(n, string(asset)); err == nil {
		return moneyOf(n, string(asset))
	}
	return said(string(asset) + " " + strconv.FormatInt(n, 10))
}

// accountName is an account of the ledger, in words if there are any.
func (d *desk) accountName(a ledger.Account) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(string(a), "@"), "/")
	if text := d.words["admin.ledger."+kind]; text != "" {
		return text
	}
	return string(a)
}
