package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// deeds are everything that can be changed in the console.
func deeds() []deed {
	o, a := holdfast.RoleOperator, holdfast.RoleAdmin
	return []deed{
		{"/admin/items", o, false, putItem}, {"/admin/items/{sku}/adjust", o, true, adjust},
		{"/admin/sales", o, false, putSale}, {"/admin/sales/{id}/end", o, true, endSale},
		{"/admin/orders/{id}/cancel", o, true, onOne("orders", "cancel", (*holdfast.Holdfast).Cancel)}, {"/admin/orders/{id}/fulfil", o, true, onOne("orders", "fulfil", (*holdfast.Holdfast).Fulfil)}, {"/admin/orders/{id}/refund", o, true, refund},
		{"/admin/payouts/{id}/approve", o, true, approve}, {"/admin/payouts/{id}/cancel", o, true, onOne("payouts", "cancel_payout", (*holdfast.Holdfast).CancelPayout)},
		{"/admin/accounts/{id}/freeze", o, true, freeze(true)}, {"/admin/accounts/{id}/unfreeze", o, true, freeze(false)},
		{"/admin/tasks/{id}/retry", o, true, onOne("tasks", "retry", (*holdfast.Holdfast).RetryTask)}, {"/admin/tasks/{id}/park", o, true, onOne("tasks", "park", (*holdfast.Holdfast).ParkTask)},
		{"/admin/notifications/{gateway}/{id}/retry", o, true, lookAgain},
		{"/admin/webhooks", a, false, createHook}, {"/admin/webhooks/{id}/replay", o, true, replayHook}, {"/admin/webhooks/{id}/rotate", a, true, rotateHook},
		{"/admin/webhooks/{id}/enable", o, true, enableHook}, {"/admin/webhooks/{id}/disable", o, true, disableHook}, {"/admin/webhooks/{id}/delete", a, true, deleteHook},
		{"/admin/reconcile", o, false, reconcile}, {"/admin/verify", o, false, verify},
		{"/admin/keys", a, false, createKey}, {"/admin/keys/{id}/revoke", a, true, revokeKey},
		{"/admin/staff", a, false, putStaff},
	}
}

func itemForms(d *desk) []form {
	return d.may(holdfast.RoleOperator, form{Action: "/admin/items", Word: "admin.do.put_item", Fields: []field{
		{Name: "sku", Required: true, Hint: "admin.hint.id"}, {Name: "name", Required: true}, {Name: "name_zh"},
		{Name: "currency", Required: true, Value: "CNY"}, {Name: "price", Required: true, Hint: "admin.hint.price"},
		{Name: "stock", Kind: "number", Value: "0", Min: "0", Hint: "admin.hint.stock"}}})
}

func putItem(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	f := d.r.PostForm
	in := holdfast.ItemInput{SKU: f.Get("sku"), Name: f.Get("name"), Currency: f.Get("currency")}
	if zh := f.Get("name_zh"); zh != "" {
		in.Names = map[string]string{"zh": zh}
	}
	var err error
	if in.Price, err = d.sum("price", in.Currency); err != nil {
		return "", err
	}
	if in.Stock, err = d.number("stock"); err != nil {
		return "", err
	}
	_, err = d.core.PutItem(ctx, key, in)
	return "/admin/items/" + in.SKU + "?done=put_item", err
}

func adjust(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	n, err := d.number("quantity")
	if err != nil {
		return "", err
	}
	sku := d.r.PathValue("sku")
	_, err = d.core.Adjust(ctx, key, holdfast.Adjustment{SKU: sku, Quantity: n, Reason: d.r.PostFormValue("reason"), Backorder: d.r.PostFormValue("where") == "backorder"})
	return "/admin/items/" + sku + "?done=adjust", err
}

func saleForms(d *desk) []form {
	return d.may(holdfast.RoleOperator, form{Action: "/admin/sales", Word: "admin.do.put_sale", Fields: []field{
		{Name: "sku", Required: true}, {Name: "opens_at", Kind: "datetime-local", Required: true, Hint: "admin.hint.utc"},
		{Name: "closes_at", Kind: "datetime-local", Required: true, Hint: "admin.hint.utc"}, {Name: "price", Required: true, Hint: "admin.hint.price"},
		{Name: "per_customer", Kind: "number", Value: "0", Min: "0", Hint: "admin.hint.per_customer"},
		{Name: "sold_outside", Kind: "select", Choices: []string{"yes", "no"}}}})
}

func putSale(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	f := d.r.PostForm
	in := holdfast.SaleInput{SKU: f.Get("sku"), SoldOutside: f.Get("sold_outside") != "no"}
	item, err := d.core.Item(ctx, in.SKU)
	if err != nil {
		return "", err
	}
	if in.Price, err = d.sum("price", item.Currency); err != nil {
		return "", err
	}
	if in.PerCustomer, err = d.number("per_customer"); err != nil {
		return "", err
	}
	for name, to := range map[string]*time.Time{"opens_at": &in.OpensAt, "closes_at": &in.ClosesAt} {
		if *to, err = time.Parse(atForm, f.Get(name)); err != nil {
			return "", &holdfast.Rejection{Code: holdfast.CodeInvalidTime, Detail: name}
		}
	}
	s, err := d.core.PutSale(ctx, key, in)
	return "/admin/sales/" + s.Value.ID + "?done=put_sale", err
}

// endSale lets a sale close now.
func endSale(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	s, err := d.core.Sale(ctx, d.r.PathValue("id"))
	if err != nil {
		return "", err
	}
	now, err := d.core.Ledger().Now(ctx)
	if err != nil {
		return "", err
	}
	if now >= int64(s.ClosesAt) || now <= int64(s.OpensAt) {
		return "", &holdfast.Rejection{Code: holdfast.CodeInvalidState, Detail: "the sale is not open"}
	}
	_, err = d.core.PutSale(ctx, key, holdfast.SaleInput{ID: s.ID, SKU: s.SKU, OpensAt: s.OpensAt.Std(), ClosesAt: time.UnixMilli(now), Price: s.Price,
		PerCustomer: s.PerCustomer, HoldFor: time.Duration(s.HoldFor) * time.Second, Late: s.Late, SoldOutside: s.SoldOutside, Preset: s.Preset, IfMatch: s.Version})
	return "/admin/sales/" + s.ID + "?done=end_sale", err
}

// onOne is a deed that needs to know nothing but of what it is done.
func onOne[T any](place, done string, do func(*holdfast.Holdfast, context.Context, holdfast.Key, string) (holdfast.Answer[T], error)) func(*desk, context.Context, holdfast.Key) (string, error) {
	return func(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
		id := d.r.PathValue("id")
		_, err := do(d.core, ctx, key, id)
		return "/admin/" + place + "/" + id + "?done=" + done, err
	}
}

func refund(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	o, err := d.core.Order(ctx, d.r.PathValue("id"))
	if err != nil {
		return "", err
	}
	in := holdfast.RefundInput{Order: o.ID, Reason: d.r.PostFormValue("reason")}
	if in.Amount, err = d.sum("amount", o.Currency); err != nil {
		return "", err
	}
	if d.r.PostFormValue("restock") == "yes" {
		for _, l := range o.Lines {
			if left := l.Quantity - l.Restocked; left > 0 {
				in.Restock = append(in.Restock, holdfast.Restock{SKU: l.SKU, Quantity: left})
			}
		}
	}
	_, err = d.core.Refund(ctx, key, in)
	return "/admin/orders/" + o.ID + "?done=refund", err
}

func approve(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	id := d.r.PathValue("id")
	_, err := d.core.ApprovePayout(ctx, key, id, d.who.Actor("").ID)
	return "/admin/payouts/" + id + "?done=approve", err
}

func freeze(frozen bool) func(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	done := "unfreeze"
	if frozen {
		done = "freeze"
	}
	return func(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
		id := d.r.PathValue("id")
		_, err := d.core.Freeze(ctx, key, id, frozen, d.r.PostFormValue("reason"))
		return "/admin/accounts/" + id + "?done=" + done, err
	}
}

func lookAgain(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	id := d.r.PathValue("gateway") + "/" + d.r.PathValue("id")
	return "/admin/notifications/" + id + "?done=look_again", d.core.RetryNotification(ctx, id)
}

func keyForms(d *desk) []form {
	return d.may(holdfast.RoleAdmin, form{Action: "/admin/keys", Word: "admin.do.create_key", Fields: []field{{Name: "name", Required: true},
		{Name: "scope", Kind: "select", Choices: []string{holdfast.ScopeRead, holdfast.ScopeWrite, holdfast.ScopeAdmin}, Hint: "admin.hint.scope"},
		{Name: "days", Kind: "number", Value: "0", Min: "0", Hint: "admin.hint.days"}}})
}

const maxKeyDays = 3650

// createKey shows the new key, once: there is nothing to go to where it could be
// read again. A form that was sent again is told so on the page of its key.
func createKey(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	days, err := d.number("days")
	if err != nil {
		return "", err
	}
	if days < 0 || days > maxKeyDays {
		return "", &holdfast.Rejection{Code: "not_a_number", Detail: "days"}
	}
	plain, k, err := d.core.CreateKey(ctx, key, d.r.PostFormValue("name"), []string{d.r.PostFormValue("scope")}, time.Duration(days)*24*time.Hour)
	if err != nil {
		return "", err
	}
	if plain == "" {
		return "/admin/keys/" + k.ID + "?done=secret_shown", nil
	}
	return "", d.sheet("admin.key", card{Title: k.Name, Note: note{"admin.key.once", "good", plain}, Facts: keyFacts(k)})
}

// scopesOf is what a key may, in words if it is one thing, as with all keys that
// are made in the console.
func scopesOf(k holdfast.APIKey) cell {
	if len(k.Scopes) == 1 {
		return cell{As: "word", Text: "admin.choice." + k.Scopes[0]}
	}
	return said(strings.Join(k.Scopes, " "))
}

func keyFacts(k holdfast.APIKey) []fact {
	return []fact{{"begins", said(k.Prefix + "…")}, {"scopes", scopesOf(k)}, {"created_at", moment(k.CreatedAt)},
		{"expires_at", moment(k.ExpiresAt)}, {"revoked_at", moment(k.RevokedAt)}, {"id", said(k.ID)}}
}

func keyCard(d *desk) error {
	keys, err := d.core.Keys(d.r.Context())
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.ID != d.r.PathValue("id") {
			continue
		}
		c := card{Title: k.Name, State: state("active"), Facts: keyFacts(k)}
		if k.RevokedAt != 0 {
			c.State = state("revoked")
		} else {
			c.Forms = d.may(holdfast.RoleAdmin, form{Action: "/admin/keys/" + k.ID + "/revoke", Word: "admin.do.revoke", Danger: true, Fields: []field{reason}})
		}
		return d.sheet("admin.key", c)
	}
	return errNotFound
}

func revokeKey(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	return "/admin/keys?done=revoke", d.core.RevokeKey(ctx, d.r.PathValue("id"))
}

var roleNames = []string{string(holdfast.RoleViewer), string(holdfast.RoleOperator), string(holdfast.RoleAdmin)}

func staffForms(d *desk) []form {
	return d.may(holdfast.RoleAdmin, form{Action: "/admin/staff", Word: "admin.do.put_staff", Fields: []field{{Name: "name", Required: true, Hint: "admin.hint.staff"},
		{Name: "password", Kind: "password", Required: true, Hint: "admin.hint.password"}, {Name: "role", Kind: "select", Choices: roleNames}}})
}

func staffCard(d *desk) error {
	all, err := d.core.StaffMembers(d.r.Context())
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name != d.r.PathValue("name") {
			continue
		}
		is, enabled := "active", "yes"
		if s.Disabled {
			is, enabled = "disabled", "no"
		}
		return d.sheet("admin.person", card{Title: s.Name, State: state(is), Facts: []fact{{"role", cell{As: "word", Text: "admin.choice." + string(s.Role)}}, {"created_at", moment(s.CreatedAt)}},
			Forms: d.may(holdfast.RoleAdmin, form{Action: "/admin/staff", Word: "admin.do.change_staff", Fields: []field{{Name: "name", Kind: "hidden", Value: s.Name},
				{Name: "role", Kind: "select", Choices: roleNames, Value: string(s.Role)}, {Name: "enabled", Kind: "select", Choices: []string{"yes", "no"}, Value: enabled},
				{Name: "password", Kind: "password", Hint: "admin.hint.same_password"}}})})
	}
	return errNotFound
}

func putStaff(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	f := d.r.PostForm
	in := holdfast.StaffInput{Name: f.Get("name"), Password: f.Get("password"), Role: holdfast.Role(f.Get("role")), Disabled: f.Get("enabled") == "no"}
	if in.Name == d.who.Name && (in.Disabled || in.Role != holdfast.RoleAdmin) {
		return "", &holdfast.Rejection{Code: "yourself"}
	}
	_, err := d.core.PutStaff(ctx, key, in)
	return "/admin/staff?done=put_staff", err
}

func reconcilePage(d *desk) error {
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format(time.DateOnly)
	return d.sheet("admin.reconcile", card{Lead: "admin.reconcile.lead", Forms: d.may(holdfast.RoleOperator, form{Action: "/admin/reconcile", Word: "admin.do.reconcile", Open: true,
		Fields: []field{{Name: "gateway", Kind: "select", Choices: d.core.GatewayNames(), Required: true}, {Name: "day", Kind: "date", Required: true, Value: yesterday}}})})
}

// longest is how long the console waits for what takes long.
const longest = 30 * time.Second

func reconcile(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err := d.core.Reconcile(ctx, holdfast.ReconcileInput{Gateway: d.r.PostFormValue("gateway"), Day: d.r.PostFormValue("day")}, nil)
	if err != nil {
		return "", err
	}
	sums := table{Columns: []string{"currency", "here", "there"}, Empty: "admin.reconcile.no_lines"}
	for _, s := range r.Sums {
		sums.Rows = append(sums.Rows, []cell{said(s.Currency), moneyOf(s.Here, s.Currency), moneyOf(s.There, s.Currency)})
	}
	diffs := table{Columns: []string{"kind", "line", "about", "ref", "here", "there", "todo"}, Empty: "admin.reconcile.none"}
	for _, f := range r.Differences {
		diffs.Rows = append(diffs.Rows, []cell{{As: "word", Text: "admin.difference." + f.Kind}, {As: "word", Text: "admin.line." + f.About}, about(f.Number), said(f.Ref),
			moneyOf(f.Here, f.Currency), moneyOf(f.There, f.Currency), {As: "word", Text: "admin.todo." + f.Kind}})
	}
	return "", d.sheet("admin.reconcile", card{Title: r.Gateway + " " + r.Day, Facts: []fact{{"lines", count(int64(r.Lines))}, {"matched", count(int64(r.Matched))}, {"booked", count(int64(r.Booked))}},
		Sections: []section{{"admin.reconcile.differences", diffs}, {"admin.reconcile.sums", sums}}})
}

func verifyPage(d *desk) error {
	return d.sheet("admin.verify", card{Lead: "admin.verify.lead", Forms: d.may(holdfast.RoleOperator, form{Action: "/admin/verify", Word: "admin.do.verify", Open: true})})
}

func verify(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err := d.core.Verify(ctx, nil)
	if err != nil {
		if ctx.Err() != nil {
			return "", &trouble{"too_long", http.StatusServiceUnavailable}
		}
		return "", err
	}
	c := card{Note: note{"admin.verify.good", "good", ""}, Facts: []fact{{"entries", count(r.Entries)}, {"postings", count(r.Postings)}, {"events", count(r.Events)},
		{"all_balances", count(r.Balances)}, {"holds", count(r.Holds)}, {"records", count(r.Records)}, {"problems", count(r.Count)}}}
	if !r.OK() {
		c.Note = note{"admin.verify.bad", "bad", ""}
		t := table{Columns: []string{"entry", "kind", "detail"}}
		for _, p := range r.Problems {
			t.Rows = append(t.Rows, []cell{limitOf(p.Seq), d.problem(p.What), said(p.Detail)})
		}
		c.Sections = []section{{"admin.verify.problems", t}}
	}
	return "", d.sheet("admin.verify", c)
}
