package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
)

// purse is a gateway that could pay out; nobody asks it.
type purse struct{ gateway.Gateway }

func (purse) Payout(context.Context, gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Unknown}
}

func (purse) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }

func (purse) QueryPayout(context.Context, gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Unknown}
}

// importing is a store with 100.00 EUR on the account ann, and how files are
// imported into it.
type importing struct {
	t    *testing.T
	core *holdfast.Holdfast
	dir  string
}

func newImporting(t *testing.T) *importing {
	core, err := holdfast.Open(t.Context(), newStore(t), holdfast.Options{Passive: true, Gateways: map[string]gateway.Gateway{"purse": purse{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if rep, err := core.Verify(context.Background(), nil); err != nil || !rep.OK() {
			t.Errorf("verify: %v %+v", err, rep.Problems)
		}
		if err := core.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	terms := []holdfast.Terms{{Currency: "EUR", ApproveAbove: 5000}}
	if _, err := core.OpenAccount(t.Context(), holdfast.Key{}, holdfast.AccountInput{ID: "ann", Terms: terms}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Deposit(t.Context(), holdfast.Key{}, "ann", "EUR", 10000, "a start"); err != nil {
		t.Fatal(err)
	}
	return &importing{t, core, t.TempDir()}
}

// run payoutsAsked a file; what is its report.
func (i *importing) run(ctx context.Context, batch, file string) (a payoutsAsked, report string, err error) {
	i.t.Helper()
	ask := payoutAsk{file: filepath.Join(i.dir, "payouts.csv"), batch: batch, by: "import", report: filepath.Join(i.dir, "report.csv")}
	if err := os.WriteFile(ask.file, []byte(file), 0o600); err != nil {
		i.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = (&host{out: &out, err: &errs, json: true}).importPayouts(ctx, i.core, ask)
	if out.Len() > 0 {
		if bad := json.Unmarshal(out.Bytes(), &a); bad != nil {
			i.t.Fatalf("%v in %q", bad, out.String())
		}
	}
	b, _ := os.ReadFile(ask.report) // not there when nothing was read
	return a, string(b), err
}

func (i *importing) available(want int64) {
	i.t.Helper()
	a, err := i.core.Account(i.t.Context(), "ann")
	if err != nil || a.Balances[0].Available != want {
		i.t.Errorf("got %+v %v, want %d available", a.Balances, err, want)
	}
}

const payoutHead = "id,account,amount,currency,destination,fee\n"

func TestPayoutsAreImportedOnceHoweverOften(t *testing.T) {
	i := newImporting(t)
	file := payoutHead + "r1,ann,10.00,EUR,bob,0.10\nr2,ann,60,EUR,eve,\n"
	for n, want := range []payoutsAsked{{Held: 1, Approval: 1}, {Held: 1, Approval: 1, Again: 2}} {
		a, report, err := i.run(t.Context(), "march", file)
		if err != nil || a.Held != want.Held || a.Approval != want.Approval || a.Again != want.Again || a.Refused+a.Bad != 0 {
			t.Errorf("import %d: got %+v %v, want %+v", n, a, err, want)
		}
		if !strings.Contains(report, "r1,") || !strings.Contains(report, ",pending_approval,") {
			t.Errorf("import %d: got report %q", n, report)
		}
	}
	i.available(10000 - 1010 - 6000)
	// A row that says something else now is not the row that was asked for.
	if a, _, err := i.run(t.Context(), "march", strings.Replace(file, "10.00", "11.00", 1)); err == nil || a.Bad != 1 {
		t.Errorf("got %+v %v, want one bad row", a, err)
	}
	i.available(10000 - 1010 - 6000)
}

func TestAnImportIsAllOrNothing(t *testing.T) {
	i := newImporting(t)
	good := "r1,ann,10,EUR,bob,\n"
	for name, c := range map[string]struct {
		rows string
		bad  int
	}{
		"decimals":           {"r2,ann,1.001,EUR,bob,\n", 1},
		"negative":           {"r2,ann,-1,EUR,bob,\n", 1},
		"nothing":            {"r2,ann,0,EUR,bob,\n", 1},
		"no account":         {"r2,eve,1,EUR,bob,\n", 1},
		"no receiver":        {"r2,ann,1,EUR,,\n", 1},
		"the row again":      {good, 1},
		"more than there is": {"r2,ann,45,EUR,bob,\nr3,ann,45.01,EUR,bob,\n", 1},
		"two":                {"r2,ann,1,XYZ,bob,\nr 3,ann,1,EUR,bob,\n", 2},
		"a formula":          {"=1+1,ann,1,EUR,bob,\n", 1},
	} {
		a, report, err := i.run(t.Context(), "b", payoutHead+good+c.rows)
		if err == nil || a.Bad != c.bad || a.Held != 0 || strings.Contains(report, "\n=") {
			t.Errorf("%s: got %+v %v, want %d bad rows\n%s", name, a, err, c.bad, report)
		}
		i.available(10000)
	}
	for _, file := range []string{"", payoutHead, "id,account\nr1,ann\n", payoutHead + "r1,ann\n", "id,id\n", payoutHead + "\xff\n"} {
		if _, _, err := i.run(t.Context(), "b", file); err == nil {
			t.Errorf("%q was imported", file)
		}
	}
}

func TestAnImportThatBrokeOffGoesOn(t *testing.T) {
	i := newImporting(t)
	file := payoutHead
	for n := range 50 {
		file += fmt.Sprintf("r%d,ann,1,EUR,bob,\n", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows := strings.Split(strings.TrimSpace(file), "\n")
	if _, _, err := i.run(t.Context(), "b", strings.Join(rows[:21], "\n")); err != nil { // as far as it came
		t.Fatal(err)
	}
	cancel()
	if _, _, err := i.run(ctx, "b", file); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it broke off", err)
	}
	a, _, err := i.run(t.Context(), "b", file)
	if err != nil || a.Held != 50 || a.Again < 20 {
		t.Errorf("got %+v %v, want 50 held, at least 20 of them before", a, err)
	}
	i.available(10000 - 50*100)
}

func TestImportNeedsABatchAndAStore(t *testing.T) {
	if r := do(t, "payout", "import", "x.csv"); r.status != exitUsage {
		t.Errorf("got %v, want status %d", r, exitUsage)
	}
	missing := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	if r := do(t, "payout", "import", "x.csv", "--batch", "b", "--db", missing); r.status != exitFailed || !strings.Contains(r.err, "there is no store") {
		t.Errorf("got %v, want status %d and why", r, exitFailed)
	}
}
