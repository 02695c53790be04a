package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// A statement from a file: what was paid out is booked once, and what is not
// here is listed and makes the command fail.
func TestReconcileReadsAStatementFromAFile(t *testing.T) {
	store := newStore(t)
	yesterday := time.Now().UTC().AddDate(0, 0, -1)
	env := map[string]string{"HOLDFAST_STRIPE_SECRET_KEY": "sk_test_x", "HOLDFAST_STRIPE_WEBHOOK_SECRETS": "whsec_x"}
	line := func(id, kind string, amount int64) string {
		return fmt.Sprintf(`{"id":%q,"type":%q,"amount":%d,"fee":0,"currency":"eur","created":%d,"source":null}`, id, kind, amount, yesterday.Truncate(24*time.Hour).Unix()+3600)
	}
	reconcile := func(lines ...string) (ran, holdfast.Reconciliation) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "statement.json")
		write(t, file, `{"data":[`+strings.Join(lines, ",")+`]}`)
		r := doIn(t, env, "reconcile", "--db", store, "--date", yesterday.Format(time.DateOnly), "--file", file, "--json")
		var out holdfast.Reconciliation
		if err := json.Unmarshal([]byte(r.out), &out); err != nil {
			t.Fatalf("got %v: %v", r, err)
		}
		return r, out
	}
	for _, booked := range []int{1, 0} {
		r, out := reconcile(line("txn_1", "payout", -500))
		if r.status != exitOK || out.Matched != 1 || out.Booked != booked || len(out.Differences) != 0 {
			t.Errorf("got %v, want one line, %d of it booked now", r, booked)
		}
	}
	r, out := reconcile(line("txn_1", "payout", -500), line("txn_2", "charge", 700))
	if r.status != exitFailed || len(out.Differences) != 1 || out.Differences[0].Kind != holdfast.MissingHere {
		t.Errorf("got %v, want a payment that is not here", r)
	}
	if r := do(t, "verify", "--db", store); r.status != exitOK {
		t.Errorf("verify: %v", r)
	}
}

func TestReconcileSaysWhatItNeeds(t *testing.T) {
	store := newStore(t)
	env := map[string]string{"HOLDFAST_STRIPE_SECRET_KEY": "sk_test_x", "HOLDFAST_STRIPE_WEBHOOK_SECRETS": "whsec_x"}
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, "")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--date is missing", nil},
		{"YYYY-MM-DD", []string{"--date", "yesterday"}},
		{"read the statement", []string{"--date", "2026-11-01", "--file", filepath.Join(t.TempDir(), "none")}},
		{"it is empty", []string{"--date", "2026-11-01", "--file", empty}},
		{"no gateway", []string{"--date", "2026-11-01", "--gateway", "paypal"}},
	} {
		r := doIn(t, env, append([]string{"reconcile", "--db", store}, c.args...)...)
		if r.status == exitOK || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: got %v, want it to say %q", c.args, r, c.says)
		}
	}
}
