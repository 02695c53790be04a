package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-pay/holdfast"
)

// desk is one request of somebody who has signed in to the console.
type desk struct {
	*visit
	who    holdfast.Staff
	secret string            // of the session
	keys   map[string]string // names of API keys, by id; nil = not read yet
	topics []string          // that the page is about; nil = it looks again whatever happens
}

// sheet is what a console page is given besides what is on it.
type sheet struct {
	Who   holdfast.Staff
	Nav   []place
	Live  string // of the stream that says when to look again; "" = none
	Title string
	Done  string // what the visitor has just done, in words; "" = nothing
	Body  any
}

// place is an entry of the console's navigation.
type place struct {
	Href, Word string
	Here       bool
}

// console adds the pages under /admin.
func (s *site) console() {
	s.page("GET /admin/sign-in", func(v *visit) error { return v.showDoor("sign_in", "") })
	s.page("POST /admin/sign-in", signIn)
	s.page("GET /admin/first-run", func(v *visit) error { return v.showDoor("first_run", "") })
	s.page("POST /admin/first-run", firstRun)
	s.page("POST /admin/sign-out", signOut)
	s.desk("GET /admin/{$}", holdfast.RoleViewer, overview)
	s.desk("GET /admin/figures", holdfast.RoleViewer, figures)
	s.desk("GET /admin/live", holdfast.RoleViewer, live)
	s.desk("GET /admin/search", holdfast.RoleViewer, search)
	s.desk("GET /admin/password", holdfast.RoleViewer, passwordPage)
	s.desk("POST /admin/password", holdfast.RoleViewer, changePassword)
	s.page("GET /admin", func(v *visit) error { return v.goTo("/admin/") })
	for _, l := range listings() {
		s.desk("GET /admin/"+l.name, l.role, func(d *desk) error { return d.list(l) })
		s.desk("GET /admin/"+l.name+".csv", l.role, func(d *desk) error { return d.csv(l) })
	}
	for _, c := range cards() {
		s.desk("GET "+c.path, c.role, c.show)
	}
	for _, a := range deeds() {
		s.desk("POST "+a.path, a.role, func(d *desk) error { return d.carryOut(a) })
	}
}

// desk adds a page for those with a role.
func (s *site) desk(pattern string, need holdfast.Role, serve func(*desk) error) {
	s.desks = append(s.desks, deskRoute{pattern, need})
	s.page(pattern, func(v *visit) error {
		d := &desk{visit: v, secret: v.session()}
		var ok bool
		var err error
		if d.who, ok, err = v.core.Session(v.r.Context(), d.secret, byHand(v.r)); err != nil {
			return err
		}
		if !ok {
			return v.signedOut()
		}
		if !d.who.Role.Allows(need) {
			return errRole
		}
		return serve(d)
	})
}

// byHand says whether somebody asks, and not the page by itself: one that is left
// open must not keep its session alive. Browsers that don't tell are believed.
func byHand(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return mode == "" || mode == "navigate"
}

// deskRoute is a page of the console and whom it is for.
type deskRoute struct {
	pattern string
	role    holdfast.Role
}

var (
	errRole = &trouble{"role", http.StatusForbidden}
	errGone = &trouble{"signed_out", http.StatusUnauthorized}
	errOft  = &trouble{"too_often", http.StatusTooManyRequests}
)

// live tells a page of the console that something has happened to its topics.
func live(d *desk) error {
	if d.o.Stream == nil {
		return errNotFound
	}
	r := d.r.Clone(d.r.Context())
	r.Header.Del("Upgrade") // a WebSocket would not be written through guarded
	d.o.Stream(&guarded{ResponseWriter: d.w, desk: d}, r, "staff:"+d.who.Name, d.r.URL.Query()["topic"])
	return nil
}

// guarded is an answer that goes on for as long as the session does.
type guarded struct {
	http.ResponseWriter
	desk    *desk
	checked time.Time
}

// guardEvery is how often a stream looks whether the session goes on.
const guardEvery = 5 * time.Second

// Write implements http.ResponseWriter.
func (g *guarded) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(g.checked) >= guardEvery {
		_, ok, err := g.desk.core.Session(g.desk.r.Context(), g.desk.secret, false)
		if err != nil || !ok {
			return 0, errors.Join(errGone, err)
		}
		g.checked = now
	}
	return g.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (g *guarded) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// sheet answers with a page of the console.
func (d *desk) sheet(title string, body any) error {
	in := sheet{Who: d.who, Title: title, Body: body, Nav: d.nav()}
	if done := d.r.URL.Query().Get("done"); d.words["admin.done."+done] != "" {
		in.Done = "admin.done." + done
	}
	if d.o.Stream != nil && d.r.Method == http.MethodGet {
		in.Live = "/admin/live?" + url.Values{"topic": d.topics}.Encode()
	}
	name := "admin/card"
	switch body.(type) {
	case listed:
		name = "admin/list"
	case why:
		name = "admin/why"
	case summary:
		name = "admin/overview"
	}
	return d.show(http.StatusOK, name, in)
}

func (d *desk) nav() []place {
	here, _, _ := strings.Cut(strings.TrimPrefix(d.r.URL.Path, "/admin/"), "/")
	nav := []place{{"/admin/", "admin.overview", here == ""}}
	for _, l := range listings() {
		if d.who.Role.Allows(l.role) {
			nav = append(nav, place{"/admin/" + l.name, "admin." + l.name, here == l.name})
		}
	}
	for _, name := range []string{"reconcile", "verify"} {
		nav = append(nav, place{"/admin/" + name, "admin." + name, here == name})
	}
	return nav
}

// deed is a change that people make in the console. do comes back with where to
// go then; "" = it has shown what came of it.
type deed struct {
	path string
	role holdfast.Role
	why  bool // nothing is done without a reason
	do   func(d *desk, ctx context.Context, key holdfast.Key) (to string, err error)
}

// carryOut does a deed in the name of the visitor, once for the form's key.
func (d *desk) carryOut(a deed) error {
	if err := d.r.ParseForm(); err != nil {
		return errForm
	}
	f := d.r.PostForm
	value := f.Get("key")
	if !keyForm.MatchString(value) {
		return errForm
	}
	if text := strings.TrimSpace(f.Get("reason")); a.why && text == "" || utf8.RuneCountInString(text) > holdfast.MaxText {
		return d.refused(&holdfast.Rejection{Code: "reason"}, cameFrom(d.r))
	}
	f.Del("key")
	// What is stored of a form must not let a password in it be guessed.
	print := hmac.New(sha256.New, []byte(d.secret))
	print.Write([]byte(d.r.URL.Path + "?" + f.Encode()))
	key := holdfast.Key{Scope: "staff:" + d.who.Name, Value: value, Print: print.Sum(nil)}
	to, err := a.do(d, holdfast.By(d.r.Context(), d.who.Actor(f.Get("reason"))), key)
	if err != nil {
		return d.refused(err, cameFrom(d.r))
	}
	if to != "" {
		return d.goTo(to)
	}
	return nil
}

// cameFrom is the page of ours that a form was on.
func cameFrom(r *http.Request) string {
	if to := r.PostFormValue("back"); local(to) && strings.HasPrefix(to, "/admin") {
		return to
	}
	return "/admin/"
}

// refused says in words why nothing was done.
func (d *desk) refused(err error, to string) error {
	var no *holdfast.Rejection
	if !errors.As(err, &no) || no.Code == holdfast.CodeOverloaded {
		return err
	}
	word := "admin.refused." + no.Code
	detail := no.Detail // is in English, and may begin with the field's name
	name, _, _ := strings.Cut(detail, ":")
	field := "admin.field." + name
	if d.words[field] == "" {
		field = ""
	}
	switch {
	case d.words[word] == "":
		word = "admin.refused.other"
	case d.Lang != "en", detail == name:
		detail = ""
	}
	status := http.StatusUnprocessableEntity
	if no.Code == holdfast.CodeNotFound {
		status = http.StatusNotFound
	}
	return d.show(status, "admin/refused", sheet{Who: d.who, Nav: d.nav(), Title: "admin.refused",
		Body: struct{ Word, Field, Detail, To string }{word, field, detail, to}})
}
