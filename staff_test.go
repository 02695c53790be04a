package holdfast

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/holdfast-pay/holdfast/ledger"
)

const secretWord = "correct horse battery"

// admitted is a bench with an admin, anna.
func admitted(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.put("anna", secretWord, RoleAdmin)
	return b
}

func (b *bench) put(name, password string, role Role) {
	b.t.Helper()
	if _, err := b.PutStaff(ctx, Key{}, StaffInput{Name: name, Password: password, Role: role}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) signIn(name, password string) (secret string, ok bool) {
	b.t.Helper()
	secret, _, ok, err := b.SignIn(ctx, name, password)
	if err != nil {
		b.t.Fatal(err)
	}
	return secret, ok
}

func (b *bench) session(secret string) bool {
	b.t.Helper()
	_, ok, err := b.Session(ctx, secret, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return ok
}

func TestTheFirstPersonNeedsAFreshTokenAndUsesUpAll(t *testing.T) {
	b := newBench(t)
	token := func() string {
		s, err := b.FirstRun(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := func(token string) bool {
		ok, err := b.FirstStaff(ctx, token, "anna", secretWord)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	old := token()
	b.wait(firstFor)
	for what, token := range map[string]string{"old": old, "empty": "", "edited": "1" + token()[1:], "cut": token()[:10]} {
		if first(token) {
			t.Errorf("a token that is %s added somebody", what)
		}
	}
	one, other := token(), token()
	if _, err := b.FirstStaff(ctx, one, "anna", "short"); code(err) != CodeInvalidField {
		t.Errorf("a short password: %v", err)
	}
	var wait sync.WaitGroup
	won := make([]bool, 2)
	for i, tok := range []string{one, other} {
		wait.Go(func() {
			won[i], _ = b.FirstStaff(ctx, tok, []string{"anna", "bert"}[i], secretWord)
		})
	}
	wait.Wait()
	if won[0] == won[1] {
		t.Errorf("two at once: got %v, want one admin", won)
	}
	if token() != "" || first(one) || first(other) {
		t.Error("there is somebody, and a token still works")
	}
}

func TestOnlyTheRightPasswordSignsIn(t *testing.T) {
	b := admitted(t)
	for _, c := range []struct{ name, password string }{
		{"anna", "wrong horse battery"}, {"anna", ""}, {"bert", secretWord}, {"", ""}, {"staff/anna", secretWord}, {"anna", strings.Repeat("x", 1<<20)},
	} {
		if _, ok := b.signIn(c.name, c.password); ok {
			t.Errorf("%q signed in with a password of %d bytes", c.name, len(c.password))
		}
	}
	one, ok := b.signIn("anna", secretWord)
	two, _ := b.signIn("anna", secretWord)
	if !ok || one == two || !b.session(one) || !b.session(two) {
		t.Error("the right password does not begin a session of its own each time")
	}
	if b.session("hfc_" + strings.Repeat("a", 26)) {
		t.Error("a made-up secret is a session")
	}
}

func TestAnUnknownNameCostsAsMuchAsAKnownOne(t *testing.T) {
	p, salt, key, err := argon2id.DecodeHash(nobody)
	if err != nil || p.Memory != hashParams.Memory || p.Iterations != hashParams.Iterations || p.Parallelism != hashParams.Parallelism ||
		len(salt) != int(hashParams.SaltLength) || len(key) != int(hashParams.KeyLength) {
		t.Errorf("got %+v %v, want %+v", p, err, hashParams)
	}
}

func TestASessionEndsWhenItShould(t *testing.T) {
	for what, end := range map[string]func(b *bench, secret string){
		"idle": func(b *bench, _ string) { b.wait(SessionIdle) },
		"signed out": func(b *bench, secret string) {
			if err := b.SignOut(ctx, secret); err != nil {
				b.t.Fatal(err)
			}
		},
		"another password": func(b *bench, _ string) {
			if ok, err := b.ChangePassword(ctx, "anna", secretWord, "another horse"); !ok || err != nil {
				b.t.Fatal(ok, err)
			}
		},
		"disabled": func(b *bench, _ string) {
			if _, err := b.PutStaff(ctx, Key{}, StaffInput{Name: "anna", Role: RoleAdmin, Disabled: true}); err != nil {
				b.t.Fatal(err)
			}
		},
		"too long": func(b *bench, secret string) {
			for range int(SessionMost/SessionIdle) * 2 {
				b.wait(SessionIdle / 2)
				_ = b.session(secret)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := admitted(t)
			secret, _ := b.signIn("anna", secretWord)
			b.wait(SessionIdle - time.Minute)
			if !b.session(secret) {
				t.Fatal("it is over before")
			}
			b.wait(SessionIdle - time.Minute)
			if _, ok, err := b.Session(ctx, secret, false); !ok || err != nil {
				t.Fatal("a request did not prolong it")
			}
			if b.session(secret); !b.session(secret) {
				t.Fatal("it is over before")
			}
			end(b, secret)
			if b.session(secret) {
				t.Error("it goes on")
			}
		})
	}
}

func TestLookingWithoutUsingDoesNotProlongASession(t *testing.T) {
	b := admitted(t)
	secret, _ := b.signIn("anna", secretWord)
	for range 3 {
		if _, ok, err := b.Session(ctx, secret, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
		b.wait(SessionIdle / 3)
	}
	if b.session(secret) {
		t.Error("it goes on")
	}
}

func TestNoPasswordOrSecretIsStored(t *testing.T) {
	b := admitted(t)
	secret, _ := b.signIn("anna", secretWord)
	lines, err := b.Ledger().Lines(ctx, ledger.LineQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if strings.Contains(string(l.Body), secretWord) || strings.Contains(string(l.Body), secret) {
			t.Errorf("line %d of the journal has a secret", l.Seq)
		}
	}
}

func TestEachRoleIncludesThoseBefore(t *testing.T) {
	for i, have := range roles {
		for j, need := range roles {
			if got := have.Allows(need); got != (i >= j) {
				t.Errorf("%s for %s: got %v", have, need, got)
			}
		}
	}
	if Role("").Allows(RoleViewer) || RoleAdmin.Allows("") || Role("root").Allows("root") {
		t.Error("a role that is none allows something, or is needed for something")
	}
}

func TestOnlySoManyPasswordsAreHashedAtOnce(t *testing.T) {
	b := admitted(t)
	for range hashers {
		b.hashing <- struct{}{}
	}
	waiting, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, ok, err := b.SignIn(waiting, "anna", secretWord); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("with no room: got %v %v, want to wait", ok, err)
	}
	<-b.hashing
	if _, ok := b.signIn("anna", secretWord); !ok {
		t.Error("with room: not signed in")
	}
}
