package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-pay/holdfast"
)

func hookRows(d *desk, q query, _ int) ([][]cell, string, error) {
	all, err := d.core.Endpoints(d.r.Context())
	if q.After != "" {
		all = nil // one page has them all
	}
	return paged(all, err, len(all), func(e holdfast.Endpoint) string { return e.ID }, func(e holdfast.Endpoint) []cell {
		return []cell{link(e.URL, "/admin/webhooks/"+e.ID), said(strings.Join(e.Types, " ")), state(string(e.State)), said(e.Reason), moment(e.ChangedAt)}
	})
}

func hookForms(d *desk) []form {
	return d.may(holdfast.RoleAdmin, form{Action: "/admin/webhooks", Word: "admin.do.create_hook", Fields: []field{
		{Name: "url", Kind: "url", Required: true, Hint: "admin.hint.url"}, {Name: "types", Required: true, Value: "order.*", Hint: "admin.hint.types"}, {Name: "description"}}})
}

// hookCard is the page of an endpoint, with its log of deliveries.
func hookCard(d *desk) error {
	ctx, id := d.r.Context(), d.r.PathValue("id")
	e, err := d.core.Endpoint(ctx, id)
	if err != nil {
		return err
	}
	all, err := d.core.Deliveries(ctx, id, "")
	if err != nil {
		return err
	}
	path := "/admin/webhooks/" + id
	c := card{Title: e.URL, State: state(string(e.State)), Facts: []fact{{"types", said(strings.Join(e.Types, " "))}, {"description", said(e.Description)},
		{"reason", said(e.Reason)}, {"created_at", moment(e.CreatedAt)}, {"changed_at", moment(e.ChangedAt)}, {"id", said(e.ID)}}}
	t := table{ID: "deliveries", Columns: []string{"event", "type", "state", "tries", "status", "error", "at", "due"}, Empty: "admin.hook.no_deliveries"}
	for _, v := range all {
		event := count(v.Event)
		event.Href = path + "?" + url.Values{"event": {strconv.FormatInt(v.Event, 10)}}.Encode()
		t.Rows = append(t.Rows, []cell{event, said(v.Type), state(string(v.State)), count(int64(v.Tries)), limitOf(int64(v.Status)), said(v.Error), moment(v.CreatedAt), moment(v.NextAt)})
	}
	c.Sections = []section{{"admin.hook.deliveries", t}}
	event := d.r.URL.Query().Get("event")
	c.Forms = d.may(holdfast.RoleOperator, form{Action: path + "/replay", Word: "admin.do.replay", Open: event != "", Fields: []field{
		{Name: "event", Kind: "number", Required: true, Value: event, Min: "1", Hint: "admin.hint.event"}, reason}})
	if e.State == holdfast.EndpointDisabled {
		c.Forms = append(c.Forms, d.may(holdfast.RoleOperator, form{Action: path + "/enable", Word: "admin.do.enable_hook", Fields: []field{reason}})...)
	} else {
		c.Forms = append(c.Forms, d.may(holdfast.RoleOperator, form{Action: path + "/disable", Word: "admin.do.disable_hook", Danger: true, Fields: []field{reason}})...)
	}
	c.Forms = append(c.Forms, d.may(holdfast.RoleAdmin, form{Action: path + "/rotate", Word: "admin.do.rotate", Fields: []field{reason}})...)
	c.Forms = append(c.Forms, d.may(holdfast.RoleAdmin, form{Action: path + "/delete", Word: "admin.do.delete_hook", Danger: true, Fields: []field{reason}})...)
	return d.sheet("admin.hook", c)
}

func createHook(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	f := d.r.PostForm
	e, secret, err := d.core.CreateEndpoint(ctx, key, holdfast.EndpointInput{URL: strings.TrimSpace(f.Get("url")), Types: strings.Fields(f.Get("types")), Description: f.Get("description")})
	if err != nil {
		return "", err
	}
	if secret == "" {
		return "/admin/webhooks/" + e.ID + "?done=secret_shown", nil
	}
	return "", d.showSecret(e, secret)
}

// showSecret shows an endpoint's secret, once.
func (d *desk) showSecret(e holdfast.Endpoint, secret string) error {
	return d.sheet("admin.hook", card{Title: e.URL, Note: note{"admin.hook.once", "good", secret}, Facts: []fact{{"id", link(e.ID, "/admin/webhooks/"+e.ID)}, {"types", said(strings.Join(e.Types, " "))}}})
}

func rotateHook(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	e, err := d.core.Endpoint(ctx, d.r.PathValue("id"))
	if err != nil {
		return "", err
	}
	secret, err := d.core.RotateEndpointSecret(ctx, e.ID)
	if err != nil {
		return "", err
	}
	return "", d.showSecret(e, secret)
}

func replayHook(d *desk, ctx context.Context, key holdfast.Key) (string, error) {
	event, err := d.number("event")
	if err != nil {
		return "", err
	}
	id := d.r.PathValue("id")
	return "/admin/webhooks/" + id + "?done=replay", d.core.ReplayDelivery(ctx, key, id, event)
}

func enableHook(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	e, err := d.core.EnableEndpoint(ctx, d.r.PathValue("id"))
	return "/admin/webhooks/" + e.ID + "?done=enable_hook", err
}

func disableHook(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	e, err := d.core.DisableEndpoint(ctx, d.r.PathValue("id"), d.r.PostFormValue("reason"))
	return "/admin/webhooks/" + e.ID + "?done=disable_hook", err
}

func deleteHook(d *desk, ctx context.Context, _ holdfast.Key) (string, error) {
	return "/admin/webhooks?done=delete_hook", d.core.DeleteEndpoint(ctx, d.r.PathValue("id"))
}
