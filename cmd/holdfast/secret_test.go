package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// typed runs a command line with something on its standard input.
func typed(t *testing.T, in string, env map[string]string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	h := &host{in: strings.NewReader(in), out: &out, err: &errs, env: func(name string) string { return env[name] }}
	return ran{run(t.Context(), args, h), out.String(), errs.String()}
}

const canary = "sk_live_canary"

// One master key after another: what was sealed under the first is read, sealed
// anew under the second, and then no longer opened by the first.
func TestASealedSecretIsReadAndRotated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stripe.key")
	first, second := newMasterKey(t, "first"), newMasterKey(t, "second")
	r := typed(t, canary+"\n", map[string]string{masterKey: first}, "secret", "seal")
	if r.status != exitOK || strings.Contains(r.out, "canary") {
		t.Fatalf("got %v", r)
	}
	write(t, file, r.out)
	open := func(key string) (string, error) {
		env := map[string]string{masterKey: key, "KEY_FILE": file}
		return (&host{env: func(name string) string { return env[name] }}).secret("KEY", "")
	}
	if got, err := open(first); err != nil || got != canary {
		t.Fatalf("got %q, %v", got, err)
	}
	both := second + "\n" + first
	for _, want := range []string{"1 sealed anew, 0 were fresh\n", "0 sealed anew, 1 were fresh\n"} {
		if r := typed(t, "", map[string]string{masterKey: both}, "secret", "rotate", file); r.status != exitOK || r.out != want {
			t.Fatalf("got %v, want %q", r, want)
		}
	}
	if got, err := open(second); err != nil || got != canary {
		t.Errorf("after the rotation: got %q, %v", got, err)
	}
	if got, err := open(first); err == nil {
		t.Errorf("the old key still opens it: %q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, want it for its owner alone", info.Mode(), err)
	}
}

func TestARotationThatCannotReadAFileChangesNone(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	write(t, good, canary)
	write(t, bad, "hfsealed:v1:gone:AAAA")
	r := typed(t, "", map[string]string{masterKey: newMasterKey(t, "k")}, "secret", "rotate", good, bad)
	if r.status != exitFailed || !strings.Contains(r.err, bad) {
		t.Errorf("got %v, want a failure that names the file", r)
	}
	if b, _ := os.ReadFile(good); string(b) != canary {
		t.Errorf("the good file has become %q", b)
	}
}

// Whatever is wrong with a secret, the message does not show it.
func TestNoErrorShowsASecret(t *testing.T) {
	dir := t.TempDir()
	key, other := newMasterKey(t, "k"), newMasterKey(t, "k")
	sealed := strings.TrimSpace(typed(t, canary, map[string]string{masterKey: key}, "secret", "seal").out)
	half := filepath.Join(dir, "half")
	write(t, half, sealed[:len(sealed)-4])
	for name, env := range map[string]map[string]string{
		"no master key":      {"HOLDFAST_STRIPE_SECRET_KEY": sealed},
		"another master key": {"HOLDFAST_STRIPE_SECRET_KEY": sealed, masterKey: other},
		"no key at all":      {"HOLDFAST_STRIPE_SECRET_KEY": sealed, masterKey: "canary"},
		"a torn file":        {"HOLDFAST_STRIPE_SECRET_KEY_FILE": half, masterKey: key},
		"half configured":    {"HOLDFAST_STRIPE_SECRET_KEY": canary},
		"twice":              {"HOLDFAST_STRIPE_SECRET_KEY": canary, "HOLDFAST_STRIPE_SECRET_KEY_FILE": half},
	} {
		r := typed(t, "", env, "serve", "--db", "sqlite:"+filepath.Join(dir, "x.db"), "--addr", "127.0.0.1:0")
		if r.status == exitOK || r.err == "" || strings.Contains(r.err, "unknown flag") {
			t.Errorf("%s: got %v, want it refused", name, r)
		}
		for _, secret := range []string{"canary", sealed[len(sealed)-20:], key[2:], other[2:]} {
			if strings.Contains(r.err+r.out, secret) {
				t.Errorf("%s: the message shows a secret: %v", name, r)
			}
		}
	}
}

func newMasterKey(t *testing.T, id string) string {
	t.Helper()
	r := do(t, "secret", "key", id)
	if r.status != exitOK {
		t.Fatalf("got %v", r)
	}
	return strings.TrimSpace(r.out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
