package web

import (
	"errors"
	"net/url"
	"strings"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// listings are the lists of the console, in the order of its navigation.
func listings() []listing {
	return []listing{
		{name: "items", role: holdfast.RoleViewer, columns: []string{"sku", "name", "price", "available", "on_hand", "held", "sold"}, rows: itemRows, forms: itemForms},
		{name: "sales", role: holdfast.RoleViewer, columns: []string{"id", "sku", "state", "opens_at", "closes_at", "price", "per_customer"}, by: "sku", rows: saleRows, forms: saleForms},
		{name: "orders", role: holdfast.RoleViewer, columns: []string{"id", "created_at", "state", "total", "lines", "customer", "reference"}, by: "customer",
			states: []string{"held", "paying", "closing", "paid", "fulfilled", "partly_refunded", "refunding", "refunded", "expired", "cancelled"}, rows: orderRows},
		{name: "payments", role: holdfast.RoleViewer, columns: []string{"id", "created_at", "state", "amount", "gateway", "method", "order", "ref"}, by: "order",
			states: []string{"waiting", "requested", "open", "paid", "closed", "refused"}, rows: paymentRows},
		{name: "refunds", role: holdfast.RoleViewer, columns: []string{"id", "created_at", "state", "amount", "order", "reason"}, by: "order",
			states: []string{"requested", "accepted", "done", "refused", "failed"}, rows: refundRows},
		{name: "payouts", role: holdfast.RoleViewer, columns: []string{"id", "created_at", "state", "amount", "account", "destination", "requested_by", "approved_by"}, by: "account",
			states: []string{"pending_approval", "held", "submitted", "unknown", "paid", "failed", "returned", "cancelled"}, rows: payoutRows},
		{name: "accounts", role: holdfast.RoleViewer, columns: []string{"id", "name", "state", "balances", "created_at"}, rows: accountRows},
		{name: "tasks", role: holdfast.RoleViewer, columns: []string{"id", "do", "gateway", "state", "due", "tries", "error"}, by: "order",
			states: []string{"ready", "stuck", "done"}, rows: taskRows},
		{name: "notifications", role: holdfast.RoleViewer, columns: []string{"id", "type", "state", "ref", "tries", "due"},
			states: []string{"parked", "quarantined", "applied"}, rows: notificationRows},
		{name: "webhooks", role: holdfast.RoleViewer, columns: []string{"url", "types", "state", "reason", "changed_at"}, rows: hookRows, forms: hookForms},
		{name: "audit", role: holdfast.RoleViewer, columns: []string{"at", "by", "did", "about", "reason"}, by: "about", rows: auditRows},
		{name: "keys", role: holdfast.RoleAdmin, columns: []string{"name", "begins", "scopes", "state", "created_at", "expires_at"}, rows: keyRows, forms: keyForms},
		{name: "staff", role: holdfast.RoleAdmin, columns: []string{"name", "role", "state", "created_at"}, rows: staffRows, forms: staffForms},
	}
}

func itemRows(d *desk, q query, n int) ([][]cell, string, error) {
	ctx := d.r.Context()
	items, err := d.core.Items(ctx, q.After, n+1)
	if err != nil {
		return nil, "", err
	}
	rows, next, _ := paged(items, nil, n, func(i holdfast.Item) string { return i.SKU }, func(i holdfast.Item) []cell {
		s, stockErr := d.core.Stock(ctx, i.SKU)
		err = errors.Join(err, stockErr)
		available := count(s.Available)
		available.Href = "/admin/items/" + i.SKU
		return []cell{to("items", i.SKU), said(d.name(i)), moneyOf(i.Price, i.Currency), available, count(s.OnHand), count(s.Held), count(s.Sold)}
	})
	return rows, next, err
}

func saleRows(d *desk, q query, n int) ([][]cell, string, error) {
	ctx := d.r.Context()
	sales, err := d.core.Sales(ctx, q.By, q.After, n+1)
	if err != nil {
		return nil, "", err
	}
	now, err := d.core.Ledger().Now(ctx)
	return paged(sales, err, n, func(s holdfast.Sale) string { return s.ID }, func(s holdfast.Sale) []cell {
		return []cell{to("sales", s.ID), to("items", s.SKU), state(saleState(s, holdfast.Time(now))), moment(s.OpensAt), moment(s.ClosesAt), d.salePrice(s), limitOf(s.PerCustomer)}
	})
}

// limitOf is a limit; 0 = none.
func limitOf(n int64) cell {
	if n == 0 {
		return cell{}
	}
	return count(n)
}

func (d *desk) salePrice(s holdfast.Sale) cell {
	item, err := d.core.Item(d.r.Context(), s.SKU)
	if err != nil {
		return count(s.Price)
	}
	return moneyOf(s.Price, item.Currency)
}

func saleState(s holdfast.Sale, now holdfast.Time) string {
	switch {
	case now < s.OpensAt:
		return "soon"
	case now < s.ClosesAt:
		return "running"
	}
	return "over"
}

func orderRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Orders(d.r.Context(), holdfast.OrderFilter{State: holdfast.State(q.State), Customer: q.By, After: q.After, Limit: n + 1})
	return paged(all, err, n, func(o holdfast.Order) string { return o.ID }, func(o holdfast.Order) []cell {
		return []cell{to("orders", o.ID), moment(o.CreatedAt), state(string(o.State)), moneyOf(o.Total, o.Currency), said(lines(o)), said(o.Customer), said(o.Reference)}
	})
}

// lines are what was ordered, in short.
func lines(o holdfast.Order) string {
	var all []string
	for _, l := range o.Lines {
		all = append(all, l.SKU+" × "+count(l.Quantity).csv(false))
	}
	return strings.Join(all, ", ")
}

func filter(q query, n int) holdfast.Filter {
	return holdfast.Filter{State: q.State, Owner: q.By, After: q.After, Limit: n + 1}
}

func paymentRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Payments(d.r.Context(), filter(q, n))
	return paged(all, err, n, func(p holdfast.Payment) string { return p.ID }, paymentCells)
}

func paymentCells(p holdfast.Payment) []cell {
	return []cell{to("payments", p.ID), moment(p.CreatedAt), state(string(p.State)), moneyOf(p.Amount, p.Currency), said(p.Gateway), said(p.Method), to("orders", p.Order), said(p.Ref)}
}

func refundRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Refunds(d.r.Context(), filter(q, n))
	return paged(all, err, n, func(r holdfast.Refund) string { return r.ID }, refundCells)
}

func refundCells(r holdfast.Refund) []cell {
	why := said(r.Reason)
	if r.Late {
		why = cell{As: "word", Text: "admin.late"}
	}
	return []cell{to("refunds", r.ID), moment(r.CreatedAt), state(string(r.State)), moneyOf(r.Amount, r.Currency), to("orders", r.Order), why}
}

func payoutRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Payouts(d.r.Context(), holdfast.PayoutFilter{Account: q.By, State: holdfast.State(q.State), After: q.After, Limit: n + 1})
	return paged(all, err, n, func(p holdfast.Payout) string { return p.ID }, func(p holdfast.Payout) []cell {
		return []cell{to("payouts", p.ID), moment(p.CreatedAt), state(string(p.State)), moneyOf(p.Amount, p.Currency), to("accounts", p.Account), said(p.Destination), d.asker(p.RequestedBy), d.asker(p.ApprovedBy)}
	})
}

func accountRows(d *desk, q query, n int) ([][]cell, string, error) {
	ctx := d.r.Context()
	all, err := d.core.Accounts(ctx, filter(q, n))
	rows, next, _ := paged(all, nil, n, func(a holdfast.Account) string { return a.ID }, func(a holdfast.Account) []cell {
		has, readErr := d.core.Account(ctx, a.ID)
		err = errors.Join(err, readErr)
		return []cell{to("accounts", a.ID), said(a.Name), accountState(a), said(d.balances(has)), moment(a.CreatedAt)}
	})
	return rows, next, err
}

func accountState(a holdfast.Account) cell {
	if a.Frozen {
		return state("frozen")
	}
	return state("active")
}

// balances are what an account has available, in short.
func (d *desk) balances(a holdfast.AccountDetail) string {
	var all []string
	for _, b := range a.Balances {
		if text, err := d.amount(b.Available, b.Currency); err == nil {
			all = append(all, text)
		}
	}
	return strings.Join(all, " · ")
}

func taskRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Tasks(d.r.Context(), filter(q, n))
	return paged(all, err, n, func(t holdfast.TaskDetail) string { return t.ID }, taskCells)
}

func taskCells(t holdfast.TaskDetail) []cell {
	return []cell{to("tasks", t.ID), {As: "word", Text: "admin.task." + string(t.Do)}, said(t.Gateway), state(t.State), moment(t.Due), count(int64(t.Tries)), said(t.Error)}
}

func notificationRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Notifications(d.r.Context(), filter(q, n))
	return paged(all, err, n, func(p holdfast.Parked) string { return p.ID }, func(p holdfast.Parked) []cell {
		return []cell{link(p.ID, "/admin/notifications/"+p.ID), said(p.Note.Type), state(p.State), said(p.Note.Ref), count(int64(p.Tries)), moment(p.NextAt)}
	})
}

func auditRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Audit(d.r.Context(), holdfast.AuditFilter{About: q.By, After: q.After, Limit: n + 1})
	return paged(all, err, n, func(a holdfast.Audited) string { return a.ID }, func(a holdfast.Audited) []cell {
		what := about(a.About)
		if kind, _, _ := strings.Cut(a.Did, "."); kind == "staff" || kind == "session" || kind == "apikey" {
			what.Href = "" // nothing that a search finds
		}
		return []cell{moment(a.At), said(a.Name), d.event(a.Did), what, said(a.Reason)}
	})
}

// about links to whatever has an id; without an id there is none.
func about(id string) cell {
	if id == "" {
		return cell{}
	}
	return cell{Text: id, Href: "/admin/search?q=" + url.QueryEscape(id), As: "id"}
}

// event is what happened, in words if there are any.
func (d *desk) event(kind string) cell {
	if d.words["admin.event."+kind] == "" {
		return said(kind)
	}
	return cell{As: "word", Text: "admin.event." + kind}
}

// problem is what does not agree with the journal, in words if there are any.
func (d *desk) problem(what string) cell {
	key := "admin.problem." + strings.ReplaceAll(what, " ", "_")
	if d.words[key] == "" {
		return said(what)
	}
	return cell{As: "word", Text: key}
}

// asker is whoever asked for something: a person, an API key, a buyer on our pages,
// or a gateway that sent a notification.
func (d *desk) asker(id string) cell {
	kind, name, _ := strings.Cut(id, "/")
	switch {
	case id == "":
		return cell{}
	case strings.HasPrefix(id, "order:"), strings.HasPrefix(id, "key/web-"), strings.HasPrefix(id, "key/pay-"):
		return cell{As: "word", Text: "admin.by.buyer"}
	case kind == "gateway":
		text, _ := d.say("admin.by.notification", "gateway", d.accountName(ledger.Account(name)))
		return said(text)
	case kind == "staff":
		return said(name)
	}
	return said(d.keyName(strings.TrimPrefix(id, "key/")))
}

// keyName is the name of an API key, or whatever it is that has this id.
func (d *desk) keyName(id string) string {
	if d.keys == nil {
		d.keys = map[string]string{}
		all, _ := d.core.Keys(d.r.Context()) // without their names, the ids are shown
		for _, k := range all {
			d.keys[k.ID] = k.Name
		}
	}
	if name := d.keys[id]; name != "" {
		return name
	}
	return id
}

func keyRows(d *desk, q query, n int) ([][]cell, string, error) {
	all, err := d.core.Keys(d.r.Context())
	if q.After != "" {
		all = nil // one page has them all
	}
	now, nowErr := d.core.Ledger().Now(d.r.Context())
	if err == nil {
		err = nowErr
	}
	return paged(all, err, len(all), func(k holdfast.APIKey) string { return k.ID }, func(k holdfast.APIKey) []cell {
		is := "active"
		if k.RevokedAt != 0 {
			is = "revoked"
		} else if k.ExpiresAt != 0 && now >= int64(k.ExpiresAt) {
			is = "expired"
		}
		return []cell{link(k.Name, "/admin/keys/"+k.ID), said(k.Prefix + "…"), scopesOf(k), state(is), moment(k.CreatedAt), moment(k.ExpiresAt)}
	})
}

func staffRows(d *desk, q query, _ int) ([][]cell, string, error) {
	all, err := d.core.StaffMembers(d.r.Context())
	if q.After != "" {
		all = nil
	}
	return paged(all, err, len(all), func(s holdfast.Staff) string { return s.Name }, func(s holdfast.Staff) []cell {
		is := "active"
		if s.Disabled {
			is = "disabled"
		}
		return []cell{link(s.Name, "/admin/staff/"+s.Name), {As: "word", Text: "admin.choice." + string(s.Role)}, state(is), moment(s.CreatedAt)}
	})
}
