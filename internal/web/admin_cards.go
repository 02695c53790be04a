package web

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// cardRoute is a page of the console about one thing.
type cardRoute struct {
	path string
	role holdfast.Role
	show func(*desk) error
}

func cards() []cardRoute {
	v, a := holdfast.RoleViewer, holdfast.RoleAdmin
	return []cardRoute{
		{"/admin/items/{sku}", v, whyPage}, {"/admin/orders/{id}", v, orderCard}, {"/admin/payments/{id}", v, paymentCard},
		{"/admin/refunds/{id}", v, refundCard}, {"/admin/payouts/{id}", v, payoutCard}, {"/admin/accounts/{id}", v, accountCard},
		{"/admin/sales/{id}", v, saleCard}, {"/admin/tasks/{id}", v, taskCard}, {"/admin/notifications/{gateway}/{id}", v, notificationCard},
		{"/admin/webhooks/{id}", v, hookCard}, {"/admin/transfers/{id}", v, transferCard}, {"/admin/holds/{id}", v, holdCard},
		{"/admin/keys/{id}", a, keyCard}, {"/admin/staff/{name}", a, staffCard},
		{"/admin/reconcile", v, reconcilePage}, {"/admin/verify", v, verifyPage},
	}
}

// why is the page that says why a number is what it is.
type why struct {
	Item holdfast.Item
	holdfast.Explanation
	Ahead int64         // sold before it was there
	At    holdfast.Time // a past moment; 0 = now
	Input string        // of the moment, as a form has it
	Open  table
	Moved table
	Next  string // address of earlier movements; "" = these are all
	Audit string
	Forms []form
}

// atForm is how a browser writes a moment in a form; it has no zone: UTC.
const atForm = "2006-01-02T15:04"

const atExact = "2006-01-02T15:04:05.000Z" // of an address

// at reads the moment that a page is asked about; 0 = now.
func (d *desk) at() (holdfast.Time, error) {
	text := d.r.URL.Query().Get("at")
	if text == "" {
		return 0, nil
	}
	for _, form := range []string{time.RFC3339Nano, atForm, atForm + ":05"} {
		if t, err := time.Parse(form, text); err == nil && t.UnixMilli() > 0 {
			return holdfast.Time(t.UnixMilli()), nil
		}
	}
	return 0, errForm
}

func whyPage(d *desk) error {
	ctx, sku := d.r.Context(), d.r.PathValue("sku")
	in := why{Audit: "/admin/audit?by=" + url.QueryEscape(sku)}
	var err error
	if in.Item, err = d.core.Item(ctx, sku); err != nil {
		return err
	}
	if in.At, err = d.at(); err != nil {
		return err
	}
	d.topics = []string{holdfast.TopicStock + "/" + sku, holdfast.TopicItem + "/" + sku}
	if in.At == 0 {
		in.Explanation, err = d.core.Explain(ctx, sku)
	} else {
		in.Input = in.At.Std().Format(atForm)
		in.Explanation, err = d.core.ExplainAt(ctx, sku, in.At.Std())
	}
	if err != nil {
		return d.refused(err, d.r.URL.Path)
	}
	in.Ahead = in.OnHand - (in.Received - in.Lost - in.Sold - in.Delivered)
	in.Open = table{ID: "holds", Columns: []string{"order", "quantity", "until"}, Empty: "admin.why.no_holds"}
	for _, h := range in.Holds {
		order, _, _ := strings.Cut(h.ID, "-")
		until := moment(holdfast.Time(h.Until))
		if in.At != 0 {
			until = cell{}
		}
		in.Open.Rows = append(in.Open.Rows, []cell{to("orders", order), count(h.Left()), until})
	}
	if err := d.movements(&in, sku); err != nil {
		return err
	}
	in.Forms = d.may(holdfast.RoleOperator, form{Action: "/admin/items/" + sku + "/adjust", Word: "admin.do.adjust", Fields: []field{
		{Name: "quantity", Kind: "number", Required: true, Hint: "admin.hint.quantity"}, reason,
		{Name: "where", Kind: "select", Choices: []string{"stock", "backorder"}}}})
	return d.sheet("admin.why", in)
}

// movements fills in what changed the number, from the asked moment back.
func (d *desk) movements(in *why, sku string) error {
	before, _ := strconv.ParseInt(d.r.URL.Query().Get("before"), 10, 64) // anything else is the beginning
	moved, more, err := d.core.Movements(d.r.Context(), sku, before, pageRows)
	if err != nil {
		return err
	}
	in.Moved = table{ID: "moved", Columns: []string{"at", "change", "kind", "about", "reason"}, Empty: "admin.why.no_moves"}
	for _, m := range moved {
		if in.At != 0 && m.At > in.At {
			continue
		}
		then := moment(m.At)
		then.Href = "/admin/items/" + sku + "?at=" + m.At.Std().Format(atExact)
		who := to("orders", m.Order)
		if m.Order == "" {
			who = d.asker(entryBy(m.Entry))
		}
		in.Moved.Rows = append(in.Moved.Rows, []cell{then, {As: "change", N: m.Quantity}, {As: "word", Text: "admin.move." + m.Kind}, who, said(m.Reason)})
	}
	if more {
		q := url.Values{"before": {strconv.FormatInt(moved[len(moved)-1].Seq, 10)}}
		if at := d.r.URL.Query().Get("at"); at != "" {
			q.Set("at", at)
		}
		in.Next = d.r.URL.Path + "?" + q.Encode() + "#moved"
	}
	return nil
}

// entryBy is who asked for an entry, by its id.
func entryBy(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	who, _, ok := strings.Cut(rest, "/")
	if kind != "k" || !ok {
		return ""
	}
	if name, staff := strings.CutPrefix(who, "staff:"); staff {
		return "staff/" + name
	}
	return who
}

func paymentCard(d *desk) error {
	p, err := d.core.Payment(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	c := card{Title: p.ID, State: state(string(p.State)), Facts: []fact{{"order", to("orders", p.Order)}, {"amount", moneyOf(p.Amount, p.Currency)},
		{"gateway", said(p.Gateway)}, {"method", said(p.Method)}, {"ref", said(p.Ref)}, {"code", said(p.Code)}, {"created_at", moment(p.CreatedAt)},
		{"expires_at", moment(p.ExpiresAt)}, {"task", to("tasks", p.ID)}}}
	if p.Surplus {
		c.Note = note{"admin.surplus", "warn", ""}
	}
	return d.sheet("admin.payment", c)
}

func refundCard(d *desk) error {
	r, err := d.core.RefundByID(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	c := card{Title: r.ID, State: state(string(r.State)), Facts: []fact{{"order", to("orders", r.Order)}, {"payment", to("payments", r.Payment)},
		{"amount", moneyOf(r.Amount, r.Currency)}, {"reason", said(r.Reason)}, {"ref", said(r.Ref)}, {"code", said(r.Code)}, {"created_at", moment(r.CreatedAt)},
		{"task", to("tasks", r.ID)}}}
	if r.Late {
		c.Note = note{"admin.late", "warn", ""}
	}
	return d.sheet("admin.refund", c)
}

func payoutCard(d *desk) error {
	p, err := d.core.Payout(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	path := "/admin/payouts/" + p.ID
	c := card{Title: p.ID, State: state(string(p.State)), Facts: []fact{{"account", to("accounts", p.Account)}, {"amount", moneyOf(p.Amount, p.Currency)},
		{"fee", moneyOf(p.Fee, p.Currency)}, {"destination", said(p.Destination)}, {"gateway", said(p.Gateway)}, {"description", said(p.Description)},
		{"requested_by", d.asker(p.RequestedBy)}, {"approved_by", d.asker(p.ApprovedBy)}, {"duplicate_of", to("payouts", p.DuplicateOf)}, {"ref", said(p.Ref)},
		{"code", said(p.Code)}, {"created_at", moment(p.CreatedAt)}, {"sent_at", moment(p.SentAt)}, {"paid_at", moment(p.PaidAt)}, {"task", to("tasks", p.ID)}}}
	switch {
	case p.State == "pending_approval" && p.RequestedBy == d.who.Actor("").ID:
		c.Note = note{"admin.payout.yours", "warn", ""}
	case p.State == "pending_approval":
		c.Note = note{"admin.payout.waits", "warn", ""}
		c.Forms = d.may(holdfast.RoleOperator, form{Action: path + "/approve", Word: "admin.do.approve", Fields: []field{reason}})
	case p.State == "unknown":
		c.Note = note{"admin.payout.unknown", "warn", ""}
	}
	if p.State == "pending_approval" || p.State == "held" {
		c.Forms = append(c.Forms, d.may(holdfast.RoleOperator, form{Action: path + "/cancel", Word: "admin.do.cancel_payout", Danger: true, Fields: []field{reason}})...)
	}
	return d.sheet("admin.payout", c)
}

func accountCard(d *desk) error {
	ctx, id := d.r.Context(), d.r.PathValue("id")
	a, err := d.core.Account(ctx, id)
	if err != nil {
		return err
	}
	at, err := d.at()
	if err != nil {
		return err
	}
	c := card{Title: a.ID, State: accountState(a.Account), Facts: []fact{{"name", said(a.Name)}, {"created_at", moment(a.CreatedAt)}, {"reason", said(a.Reason)}}}
	money := table{ID: "money", Columns: []string{"currency", "posted", "reserved", "spendable"}, Empty: "admin.account.no_money"}
	for _, b := range a.Balances {
		cur := cell{Text: b.Currency, Href: "/admin/accounts/" + id + "?currency=" + b.Currency}
		money.Rows = append(money.Rows, []cell{cur, moneyOf(b.Posted, b.Currency), moneyOf(b.Held, b.Currency), moneyOf(b.Available, b.Currency)})
	}
	c.Sections = append(c.Sections, section{"admin.account.money", money})
	if at != 0 {
		past, err := d.core.AccountAt(ctx, id, at.Std())
		if err != nil {
			return d.refused(err, d.r.URL.Path)
		}
		then := table{Columns: []string{"currency", "posted"}, Empty: "admin.account.no_money"}
		for _, b := range past {
			then.Rows = append(then.Rows, []cell{said(b.Currency), moneyOf(b.Posted, b.Currency)})
		}
		c.Facts = append(c.Facts, fact{"at", moment(at)})
		c.Sections = append(c.Sections, section{"admin.account.then", then})
	}
	if cur := d.r.URL.Query().Get("currency"); cur != "" || len(a.Balances) > 0 {
		if cur == "" {
			cur = a.Balances[0].Currency
		}
		if err := d.statement(&c, id, cur); err != nil {
			return d.refused(err, d.r.URL.Path)
		}
	}
	f := form{Action: "/admin/accounts/" + id + "/freeze", Word: "admin.do.freeze", Danger: true, Fields: []field{reason}}
	if a.Frozen {
		f = form{Action: "/admin/accounts/" + id + "/unfreeze", Word: "admin.do.unfreeze", Fields: []field{reason}}
	}
	c.Forms = d.may(holdfast.RoleOperator, f)
	return d.sheet("admin.account", c)
}

// statement adds a page of an account's statement, from ?after and ?balance.
func (d *desk) statement(c *card, id, currency string) error {
	q := d.r.URL.Query()
	from := holdfast.StatementFrom{}
	from.Seq, _ = strconv.ParseInt(q.Get("after"), 10, 64) // anything else is the beginning
	from.Balance, _ = strconv.ParseInt(q.Get("balance"), 10, 64)
	lines, more, err := d.core.Statement(d.r.Context(), id, currency, from, pageRows)
	if err != nil {
		return err
	}
	t := table{Columns: []string{"at", "amount", "balance", "about"}, Empty: "admin.account.no_lines"}
	for _, l := range lines {
		about := to(things[l.About], l.ID)
		if things[l.About] == "" {
			about = said(l.ID)
		}
		then := moment(l.At)
		then.Href = "/admin/accounts/" + id + "?at=" + l.At.Std().Format(atExact)
		t.Rows = append(t.Rows, []cell{then, moneyOf(l.Amount, currency), moneyOf(l.Balance, currency), about})
	}
	c.Sections = append(c.Sections, section{"admin.account.statement", t})
	if more {
		last := lines[len(lines)-1]
		c.NextStep = d.r.URL.Path + "?" + url.Values{"currency": {currency}, "after": {strconv.FormatInt(last.Seq, 10)}, "balance": {strconv.FormatInt(last.Balance, 10)}}.Encode()
	}
	return nil
}

func saleCard(d *desk) error {
	s, err := d.core.Sale(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	now, err := d.core.Ledger().Now(d.r.Context())
	if err != nil {
		return err
	}
	is := saleState(s, holdfast.Time(now))
	c := card{Title: s.ID, State: state(is), Facts: []fact{{"sku", to("items", s.SKU)}, {"price", d.salePrice(s)}, {"opens_at", moment(s.OpensAt)},
		{"closes_at", moment(s.ClosesAt)}, {"per_customer", limitOf(s.PerCustomer)}}}
	if is == "running" {
		c.Forms = d.may(holdfast.RoleOperator, form{Action: "/admin/sales/" + s.ID + "/end", Word: "admin.do.end_sale", Danger: true, Fields: []field{reason}})
	}
	return d.sheet("admin.sale", c)
}

func taskCard(d *desk) error {
	t, err := d.core.TaskByID(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	c := card{Title: t.ID, State: state(t.State), Facts: []fact{{"do", cell{As: "word", Text: "admin.task." + string(t.Do)}}, {"gateway", said(t.Gateway)},
		{"order", to("orders", t.Order)}, {"due", moment(t.Due)}, {"tries", count(int64(t.Tries))}, {"error", said(t.Error)}}}
	if t.State != "done" {
		path := "/admin/tasks/" + t.ID
		c.Forms = d.may(holdfast.RoleOperator, form{Action: path + "/retry", Word: "admin.do.retry", Fields: []field{reason}})
		if t.State == "ready" {
			c.Forms = append(c.Forms, d.may(holdfast.RoleOperator, form{Action: path + "/park", Word: "admin.do.park", Danger: true, Fields: []field{reason}})...)
		}
	}
	return d.sheet("admin.task", c)
}

func notificationCard(d *desk) error {
	id := d.r.PathValue("gateway") + "/" + d.r.PathValue("id")
	p, err := d.core.NotificationByID(d.r.Context(), id)
	if err != nil {
		return err
	}
	n := p.Note
	c := card{Title: p.ID, State: state(p.State), Facts: []fact{{"gateway", said(p.Gateway)}, {"type", said(n.Type)}, {"payment", about(n.Payment)},
		{"refund", about(n.Refund)}, {"ref", said(n.Ref)}, {"tries", count(int64(p.Tries))}, {"due", moment(p.NextAt)}}}
	if n.Currency != "" {
		c.Facts = append(c.Facts, fact{"amount", moneyOf(n.Amount, n.Currency)})
	}
	if p.State != "applied" {
		c.Note = note{"admin.notification.unknown", "warn", ""}
		c.Forms = d.may(holdfast.RoleOperator, form{Action: "/admin/notifications/" + id + "/retry", Word: "admin.do.look_again", Fields: []field{reason}})
	}
	return d.sheet("admin.notification", c)
}

func transferCard(d *desk) error {
	t, err := d.core.TransferByID(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	return d.sheet("admin.transfer", card{Title: t.ID, Facts: []fact{{"from", about(t.From)}, {"to", about(t.To)},
		{"amount", moneyOf(t.Amount, t.Currency)}, {"reason", said(t.Reason)}, {"created_at", moment(t.CreatedAt)}}})
}

func holdCard(d *desk) error {
	h, err := d.core.HoldByID(d.r.Context(), d.r.PathValue("id"))
	if err != nil {
		return err
	}
	return d.sheet("admin.hold", card{Title: h.ID, State: state(string(h.State)), Facts: []fact{{"from", to("accounts", h.From)}, {"to", to("accounts", h.To)},
		{"amount", moneyOf(h.Amount, h.Currency)}, {"reason", said(h.Reason)}, {"created_at", moment(h.CreatedAt)}, {"expires_at", moment(h.ExpiresAt)}}})
}

// things is where the pages of a kind of document are.
var things = map[string]string{"item": "items", "order": "orders", "payment": "payments", "refund": "refunds", "payout": "payouts",
	"account": "accounts", "sale": "sales", "transfer": "transfers", "wallet_hold": "holds"}

func search(d *desk) error {
	q := strings.TrimSpace(d.r.URL.Query().Get("q"))
	found, err := d.core.Find(d.r.Context(), q)
	if err != nil {
		return err
	}
	if len(found) == 1 {
		return d.goTo("/admin/" + things[found[0].Kind] + "/" + found[0].ID)
	}
	t := table{Columns: []string{"kind", "id"}, Empty: "admin.search.none"}
	for _, f := range found {
		t.Rows = append(t.Rows, []cell{{As: "word", Text: "admin.kind." + f.Kind}, to(things[f.Kind], f.ID)})
	}
	return d.sheet("admin.search", card{Title: q, Sections: []section{{"admin.search.found", t}}})
}
