package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// asCommand makes the test binary be the command, for tests that need a
// process to signal or to kill.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// ran is what became of a command line.
type ran struct {
	status   int
	out, err string
}

func (r ran) String() string { return fmt.Sprintf("status %d\n%s%s", r.status, r.out, r.err) }

// do runs a command line in this process.
func do(t *testing.T, args ...string) ran { return doIn(t, nil, args...) }

func doIn(t *testing.T, env map[string]string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), args, &host{out: &out, err: &errs, env: func(name string) string { return env[name] }})
	return ran{status, out.String(), errs.String()}
}

// must runs a command line that must work, and reads its answer.
func must(t *testing.T, into any, args ...string) {
	t.Helper()
	r := do(t, append(args, "--json")...)
	if r.status != exitOK {
		t.Fatalf("%v: %v", args, r)
	}
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		t.Fatalf("%v: %v in %q", args, err, r.out)
	}
}

// newStore makes an empty store and returns its address.
func newStore(t *testing.T) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
	var made struct{ Store, Durability string }
	must(t, &made, "migrate", "--db", url)
	if made.Store != "sqlite" || made.Durability != "full" {
		t.Fatalf("got %+v, want sqlite and full", made)
	}
	return url
}

func TestAWrongCommandLineExitsWithTwo(t *testing.T) {
	for _, line := range []string{
		"sell", "serve --no-such-flag", "serve extra", "keys", "keys create", "keys create --name x --scope owner",
		"keys create --name x --ttl -1s", "keys revoke", "stock import", "serve --open --addr 0.0.0.0:0", "serve --hold-for soon", "serve --url shop.example", "serve --url https://shop.example/path",
		"serve --trusted-proxies 10.0.0.0/33", "serve --trusted-proxies 10.0.0.1,proxy.example",
		"demo --buyers 0", "demo --stock -1", "demo --faults maybe", "demo --addr 0.0.0.0:0", "sandbox --addr 0.0.0.0:0",
		"bench --clients 0", "bench --skus 0", "bench --seconds 0",
	} {
		if r := do(t, strings.Fields(line)...); r.status != exitUsage || !strings.Contains(r.err, "--help") || r.out != "" {
			t.Errorf("%s: got %v, want status %d and a hint", line, r, exitUsage)
		}
	}
}

func TestAFailureExitsWithOneAndSaysWhy(t *testing.T) {
	missing := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	for _, line := range []string{"verify", "keys list", "keys create --name x", "stock import " + filepath.Join("internal", "stockfile", "testdata", "own.csv")} {
		r := do(t, append(strings.Fields(line), "--db", missing)...)
		if r.status != exitFailed || !strings.Contains(r.err, "there is no store") {
			t.Errorf("%s: got %v, want status %d and why", line, r, exitFailed)
		}
	}
	if _, err := os.Stat(strings.TrimPrefix(missing, "sqlite:")); err == nil {
		t.Error("asking for a store that is not there made one")
	}
}

func TestTheStoreMayComeFromTheEnvironment(t *testing.T) {
	url := newStore(t)
	if r := doIn(t, map[string]string{"HOLDFAST_DB": url}, "verify"); r.status != exitOK || !strings.Contains(r.out, "Everything agrees") {
		t.Errorf("got %v, want a clean verify", r)
	}
}

func TestVersionIsOneObject(t *testing.T) {
	var b build
	must(t, &b, "version")
	if b.Version == "" || b.Go == "" {
		t.Errorf("got %+v, want a version", b)
	}
}

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	url := newStore(t)
	var made struct {
		Key, ID string
		Scopes  []string
	}
	must(t, &made, "keys", "create", "--db", url, "--name", "shop", "--scope", "read,write", "--ttl", "24h")
	if !strings.HasPrefix(made.Key, "hf_") || len(made.Scopes) != 2 {
		t.Fatalf("got %+v, want a key with two scopes", made)
	}
	var revoked struct{ Revoked string }
	must(t, &revoked, "keys", "revoke", made.ID, "--db", url)
	var list []struct {
		ID        string
		RevokedAt string `json:"revoked_at"`
		ExpiresAt string `json:"expires_at"`
	}
	must(t, &list, "keys", "list", "--db", url)
	if len(list) != 1 || list[0].ID != made.ID || list[0].RevokedAt == "" || list[0].ExpiresAt == "" {
		t.Errorf("got %+v, want one revoked key that expires", list)
	}
	if r := do(t, "keys", "list", "--db", url); strings.Contains(r.out, made.Key) {
		t.Errorf("the list shows the key itself: %v", r)
	}
	if r := do(t, "keys", "revoke", "nobody", "--db", url); r.status != exitFailed {
		t.Errorf("revoking nobody's key: got %v, want status %d", r, exitFailed)
	}
}

func TestSecretsComeFromTheEnvironmentOrAFileNotBoth(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file, empty, large := write("key", " sk_test_file\n"), write("empty", "\n"), write("large", strings.Repeat("x", maxSecretFile+1))
	for _, c := range []struct {
		name, env, envFile, flag, want string
		fails                          bool
	}{
		{name: "nothing"},
		{name: "environment", env: "sk_test_env", want: "sk_test_env"},
		{name: "file by environment", envFile: file, want: "sk_test_file"},
		{name: "file by flag", flag: file, want: "sk_test_file"},
		{name: "both", env: "sk_test_env", envFile: file, fails: true},
		{name: "empty file", flag: empty, fails: true},
		{name: "no file", flag: filepath.Join(dir, "none"), fails: true},
		{name: "large file", flag: large, fails: true},
	} {
		env := map[string]string{"KEY": c.env, "KEY_FILE": c.envFile}
		h := &host{env: func(name string) string { return env[name] }}
		got, err := h.secret("KEY", c.flag)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %q, %v; want %q, error %v", c.name, got, err, c.want, c.fails)
		}
	}
}

func TestAGatewayNeedsItsWholeConfiguration(t *testing.T) {
	for _, c := range []struct {
		key, signing string
		n            int
		fails        bool
	}{
		{"", "", 0, false}, {"sk_test_x", "whsec_a, whsec_b", 1, false}, {"sk_test_x", "", 0, true}, {"", "whsec_a", 0, true},
	} {
		env := map[string]string{"HOLDFAST_STRIPE_SECRET_KEY": c.key, "HOLDFAST_STRIPE_WEBHOOK_SECRETS": c.signing}
		h := &host{env: func(name string) string { return env[name] }}
		list, err := h.gateways(h.gatewayFlags(pflag.NewFlagSet("serve", pflag.ContinueOnError)))
		if len(list) != c.n || (err != nil) != c.fails {
			t.Errorf("%q, %q: got %d gateways, %v; want %d, error %v", c.key, c.signing, len(list), err, c.n, c.fails)
		}
	}
}

func TestBenchCountsOnlyWhatTheJournalConfirms(t *testing.T) {
	r := do(t, "bench", "--seconds", "0.3", "--clients", "8", "--skus", "2", "--json")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.status != exitOK || len(lines) != 2 {
		t.Fatalf("got %v, want two lines", r)
	}
	for i, preset := range []string{"batched", "conditional"} {
		var f figures
		if err := json.Unmarshal([]byte(lines[i]), &f); err != nil {
			t.Fatal(err)
		}
		if f.Preset != preset || !f.ok() || f.Accepted == nil || *f.Accepted <= 0 || f.Refused == nil || *f.Refused <= 0 || f.P99 == nil {
			t.Errorf("got %s, want figures of %s", lines[i], preset)
		}
	}
}

func TestBenchSaysWhenAPresetIsUnknown(t *testing.T) {
	if r := do(t, "bench", "--preset", "hopeful"); r.status != exitFailed || r.out != "" {
		t.Errorf("got %v, want status %d", r, exitFailed)
	}
}

// A journal that disagrees with what the clients were told is no figure.
func TestBenchHidesTheFiguresOfAWrongRun(t *testing.T) {
	b, err := json.Marshal(figures{Preset: "batched", Oversold: 1})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "per_s") || strings.Contains(string(b), "_ms") {
		t.Errorf("got %s, want no figures", b)
	}
}

func TestASignalEndsTheDemoEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	status := run(ctx, []string{"demo", "--once", "--buyers", "5"}, &host{out: &out, err: &errs, env: func(string) string { return "" }})
	if status != exitFailed || out.Len() > 0 {
		t.Errorf("got status %d, %q, want %d and no result", status, out.String(), exitFailed)
	}
}
