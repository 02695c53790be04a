package web

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// signedOut sends whoever reads to the door, and back from there. A form is not
// sent again by itself.
func (v *visit) signedOut() error {
	if v.r.Method != http.MethodGet || strings.HasPrefix(v.r.URL.Path, "/admin/figures") || strings.HasPrefix(v.r.URL.Path, "/admin/live") {
		return errGone
	}
	token, err := v.core.FirstRun(v.r.Context())
	if err != nil {
		return err
	}
	if token != "" {
		return v.goTo("/admin/first-run")
	}
	return v.goTo("/admin/sign-in?to=" + url.QueryEscape(v.r.URL.RequestURI()))
}

// sessionCookie is the name of the session's cookie. Browsers keep no __Host-
// cookie that came without TLS, or that another host of the domain has set.
func (s *site) sessionCookie() string {
	if s.secure() {
		return "__Host-holdfast_admin"
	}
	return "holdfast_admin"
}

func (v *visit) session() string {
	c, err := v.r.Cookie(v.sessionCookie())
	if err != nil {
		return ""
	}
	return c.Value
}

// setSession gives the browser a session, or (age below zero) takes it back.
func (v *visit) setSession(secret string, age int) {
	http.SetCookie(v.w, &http.Cookie{Name: v.sessionCookie(), Value: secret, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: v.secure(), SameSite: http.SameSiteStrictMode})
}

// doorway is what the page before the console is given.
type doorway struct {
	Kind    string // sign_in or first_run
	Wrong   string // what was wrong, a key; "" = nothing yet
	Name    string
	To      string // where to go then
	Minimum int    // characters of a password
}

func (v *visit) showDoor(kind, wrong string) error {
	in := doorway{Kind: kind, Wrong: wrong, Name: v.r.PostFormValue("name"), To: v.r.FormValue("to"), Minimum: holdfast.MinPassword}
	status := http.StatusOK
	if wrong != "" {
		status = http.StatusUnprocessableEntity
	}
	return v.show(status, "admin/door", sheet{Title: "admin." + kind, Body: in})
}

// Limits of wrong passwords and tokens in a triesWindow.
const (
	triesOfAddress = 10
	triesOfName    = 30 // more, so that one address can't lock somebody out
	triesWindow    = time.Minute
	maxTried       = 4096 // that are counted apart; the rest share one count
)

// tries counts wrong passwords.
type tries struct {
	mu    sync.Mutex
	until time.Time
	count map[string]int
}

// spent says whether there were too many; another = one more was wrong.
func (t *tries) spent(now time.Time, address, name string, another bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil || !now.Before(t.until) {
		t.until, t.count = now.Add(triesWindow), map[string]int{}
	}
	over := false
	for key, most := range map[string]int{"address " + address: triesOfAddress, "name " + name: triesOfName} {
		if _, ok := t.count[key]; !ok && len(t.count) >= maxTried {
			key = ""
		}
		if another {
			t.count[key]++
		}
		over = over || t.count[key] >= most
	}
	return over
}

// nameForm is what a name of staff can be; others are not counted apart.
var nameForm = regexp.MustCompile(`^[a-z0-9._-]{1,32}$`)

// limited runs check, which says whether a secret is right, unless there were too
// many wrong ones.
func (v *visit) limited(name string, check func() (bool, error)) (bool, error) {
	if !nameForm.MatchString(name) {
		name = ""
	}
	if v.tries.spent(time.Now(), address(v.r), name, false) {
		return false, errOft
	}
	ok, err := check()
	if err == nil && !ok {
		v.tries.spent(time.Now(), address(v.r), name, true)
	}
	return ok, err
}

func signIn(v *visit) error {
	name, to := v.r.PostFormValue("name"), v.r.PostFormValue("to")
	ok, err := v.limited(name, func() (bool, error) { return v.enter(name, v.r.PostFormValue("password")) })
	if err != nil {
		return err
	}
	if !ok {
		return v.showDoor("sign_in", "admin.wrong.sign_in")
	}
	if !local(to) || !strings.HasPrefix(to, "/admin") {
		to = "/admin/"
	}
	return v.goTo(to)
}

// enter begins a new session; the one that the browser had is over.
func (v *visit) enter(name, password string) (bool, error) {
	ctx := v.r.Context()
	secret, _, ok, err := v.core.SignIn(ctx, name, password)
	if err != nil || !ok {
		return false, err
	}
	if old := v.session(); old != "" {
		if err := v.core.SignOut(ctx, old); err != nil {
			return false, err
		}
	}
	v.setSession(secret, int(holdfast.SessionMost/time.Second))
	return true, nil
}

func firstRun(v *visit) error {
	name, password := v.r.PostFormValue("name"), v.r.PostFormValue("password")
	ok, err := v.limited("", func() (bool, error) {
		return v.core.FirstStaff(v.r.Context(), v.r.PostFormValue("token"), name, password)
	})
	var no *holdfast.Rejection
	if errors.As(err, &no) {
		return v.showDoor("first_run", "admin.wrong.person")
	}
	if err != nil {
		return err
	}
	if !ok {
		return v.showDoor("first_run", "admin.wrong.token")
	}
	if _, err := v.enter(name, password); err != nil {
		return err
	}
	return v.goTo("/admin/")
}

func signOut(v *visit) error {
	if secret := v.session(); secret != "" {
		if err := v.core.SignOut(v.r.Context(), secret); err != nil {
			return err
		}
	}
	v.setSession("", -1)
	return v.goTo("/admin/sign-in")
}

func passwordPage(d *desk) error {
	return d.sheet("admin.password", card{Lead: "admin.password.lead", Forms: []form{{Action: "/admin/password", Word: "admin.password", Open: true, Key: rand.Text(), Fields: []field{
		{Name: "old", Kind: "password", Required: true}, {Name: "password", Kind: "password", Required: true, Hint: "admin.hint.password"}}}}})
}

func changePassword(d *desk) error {
	ok, err := d.limited(d.who.Name, func() (bool, error) {
		return d.core.ChangePassword(d.r.Context(), d.who.Name, d.r.PostFormValue("old"), d.r.PostFormValue("password"))
	})
	if err != nil {
		return d.refused(err, "/admin/password")
	}
	if !ok {
		return d.refused(&holdfast.Rejection{Code: "wrong_password"}, "/admin/password")
	}
	if _, err := d.enter(d.who.Name, d.r.PostFormValue("password")); err != nil {
		return err
	}
	return d.goTo("/admin/?done=password")
}
