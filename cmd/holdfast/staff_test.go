package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
)

func TestAPersonIsAddedFromTheCommandLineWithoutShowingThePassword(t *testing.T) {
	url, password := newStore(t), "correct horse battery"
	put := func(in string, args ...string) ran {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"staff", "put", "--db", url}, args...),
			&host{in: strings.NewReader(in), out: &out, err: &errs, env: func(string) string { return "" }})
		return ran{status, out.String(), errs.String()}
	}
	if r := put("", "anna", "--role", "admin"); r.status == exitOK {
		t.Errorf("a new person without a password: %v", r)
	}
	if r := put(password+"\n", "anna", "--role", "owner", "--password"); r.status == exitOK {
		t.Errorf("a role that is none: %v", r)
	}
	if r := put(password+"\n", "anna", "--role", "admin", "--password"); r.status != exitOK || strings.Contains(r.String(), password) {
		t.Fatalf("got %v", r)
	}
	if r := put("", "anna", "--role", "viewer"); r.status != exitOK {
		t.Fatalf("another role: %v", r)
	}
	var all []holdfast.Staff
	must(t, &all, "staff", "list", "--db", url)
	if len(all) != 1 || all[0].Role != holdfast.RoleViewer || all[0].Name != "anna" {
		t.Errorf("got %+v", all)
	}
	signedIn := false
	if err := withStore(t.Context(), url, func(core *holdfast.Holdfast) (err error) {
		_, _, signedIn, err = core.SignIn(t.Context(), "anna", password)
		return err
	}); err != nil || !signedIn {
		t.Errorf("signed in: %v %v", signedIn, err)
	}
	if r := do(t, "staff", "list", "--db", url); !slices.Contains(strings.Fields(r.out), "anna") {
		t.Errorf("got %v", r)
	}
}

func TestServeTellsTheTokenOfTheFirstPersonOnce(t *testing.T) {
	url := newStore(t)
	if err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		token, err := core.FirstRun(t.Context())
		if err != nil {
			return err
		}
		var h host
		var out bytes.Buffer
		h.out = &out
		l, err := listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		for _, c := range []struct {
			token string
			want  bool
		}{{token, true}, {"", false}} {
			out.Reset()
			if err := h.announce(&serving{db: url}, l, false, c.token); err != nil {
				return err
			}
			if !strings.Contains(out.String(), "/admin/") || strings.Contains(out.String(), "with this token: "+token) != c.want {
				t.Errorf("with the token %q it says\n%s", c.token, out.String())
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
