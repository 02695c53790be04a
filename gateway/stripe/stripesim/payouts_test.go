package stripesim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func newRichBench(t *testing.T) *bench {
	b := newBench(t)
	b.must(b.sim.TopUp(10_000, "usd"))
	b.deliver()
	return b
}

func (b *bench) transfer(key, amount string) answer {
	b.t.Helper()
	return b.do("POST", "/v1/transfers", key, "amount", amount, "currency", "usd", "destination", "acct_1Seller", "transfer_group", "g1", "metadata[n]", "1")
}

func (b *bench) payout(key, amount string, more ...string) answer {
	b.t.Helper()
	return b.do("POST", "/v1/payouts", key, append([]string{"amount", amount, "currency", "usd"}, more...)...)
}

func (b *bench) balance(want int64) {
	b.t.Helper()
	if got := b.sim.Books().Balance["usd"]; got != want {
		b.t.Errorf("the balance is %d, want %d", got, want)
	}
}

func TestATransferTakesMoneyOnceAndReversalsBringItBack(t *testing.T) {
	b := newRichBench(t)
	a := b.transfer("k1", "4000")
	if again := b.transfer("k1", "4000"); again.text("id") != a.text("id") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want %s again", again.raw, a.text("id"))
	}
	b.want(b.transfer("k1", "4001"), 400, "<nil>")
	b.balance(6000)
	path := "/v1/transfers/" + a.text("id")
	if r := b.post(path+"/reversals", "amount", "1500"); r.status != 200 || r.text("transfer") != a.text("id") {
		t.Errorf("got %d %s", r.status, r.raw)
	}
	if got := b.get(path); got.text("amount_reversed") != "1500" || got.text("reversed") != "false" {
		t.Errorf("got %s", got.raw)
	}
	b.want(b.post(path+"/reversals", "amount", "2501"), 400, "<nil>")
	b.must(b.sim.ReverseTransfer(a.text("id")))
	if b.sim.ReverseTransfer(a.text("id")) == nil {
		t.Error("it was reversed twice")
	}
	if got := b.get(path); got.text("reversed") != "true" {
		t.Errorf("got %s", got.raw)
	}
	b.balance(10_000)
	if got := types(b.deliver()); got != "transfer.created transfer.reversed transfer.reversed" {
		t.Errorf("got %s", got)
	}
	if ids := b.get("/v1/transfers", "transfer_group", "g1").ids(); len(ids) != 1 {
		t.Errorf("got %v, want the one of the group", ids)
	}
	if ids := b.get("/v1/transfers", "transfer_group", "g2").ids(); len(ids) != 0 {
		t.Errorf("got %v, want none of another group", ids)
	}
}

func TestMoneyThatIsNotThereIsNotSent(t *testing.T) {
	b := newRichBench(t)
	b.want(b.transfer("k1", "10001"), 400, "balance_insufficient")
	b.want(b.payout("k2", "10001"), 400, "balance_insufficient")
	b.must(b.sim.TopUp(5, "usd"))
	b.want(b.transfer("k1", "10001"), 400, "balance_insufficient") // what is kept under the key
	if a := b.transfer("k3", "10001"); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	b.balance(4)
	if a := b.get("/v1/balance"); !strings.Contains(a.raw, `"amount": 4`) {
		t.Errorf("got %s", a.raw)
	}
}

func TestWrongDestinationsAreRefused(t *testing.T) {
	b := newRichBench(t)
	for _, to := range []string{"acct_missing", "acct_", "ba_1", "bob", "acct_restricted1"} {
		if a := b.post("/v1/transfers", "amount", "1", "currency", "usd", "destination", to); a.status != 400 {
			t.Errorf("%s: got %d %s", to, a.status, a.raw)
		}
	}
	b.want(b.post("/v1/transfers", "amount", "1", "currency", "usd"), 400, "parameter_missing")
	b.want(b.payout("", "1", "destination", "ba_missing"), 404, "resource_missing")
	b.want(b.payout("", "1", "destination", "acct_1"), 404, "resource_missing")
	b.want(b.payout("", "1", "method", "slow"), 400, "<nil>")
	b.balance(10_000)
}

func TestAPayoutGoesItsWayByTheClock(t *testing.T) {
	b := newRichBench(t)
	id := b.payout("k1", "3000").text("id")
	b.balance(7000)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "pending"}, {time.Hour, "in_transit"}, {23 * time.Hour, "paid"}, {90 * 24 * time.Hour, "paid"}} {
		b.clock.Advance(step.after)
		if got := b.get("/v1/payouts/" + id).text("status"); got != step.want {
			t.Errorf("after %v more it is %s, want %s", step.after, got, step.want)
		}
	}
	if got := types(b.deliver()); got != "payout.created payout.updated payout.paid" {
		t.Errorf("got %s", got)
	}
	b.must(b.sim.FailPayout(id))
	if got := b.get("/v1/payouts/" + id); got.text("status") != "failed" || got.text("failure_code") == "<nil>" {
		t.Errorf("got %s", got.raw)
	}
	b.balance(10_000)
}

func TestOnlyAPendingPayoutIsCanceled(t *testing.T) {
	b := newRichBench(t)
	path := "/v1/payouts/" + b.payout("", "3000").text("id")
	if a := b.post(path + "/cancel"); a.text("status") != "canceled" {
		t.Errorf("got %s", a.raw)
	}
	b.want(b.post(path+"/cancel"), 400, "<nil>")
	b.clock.Advance(48 * time.Hour)
	if a := b.get(path); a.text("status") != "canceled" {
		t.Errorf("got %s, want it canceled for good", a.raw)
	}
	b.balance(10_000)
	path = "/v1/payouts/" + b.payout("", "3000").text("id")
	b.clock.Advance(time.Hour)
	b.want(b.post(path+"/cancel"), 400, "<nil>")
	b.balance(7000)
}

// What the adapter must never meet: a key that is a day old pays again.
func TestAForgottenKeyPaysAgain(t *testing.T) {
	b := newRichBench(t)
	one := b.transfer("k1", "4000").text("id")
	b.clock.Advance(24*time.Hour - time.Second)
	if got := b.transfer("k1", "4000").text("id"); got != one {
		t.Errorf("got %s, want %s", got, one)
	}
	b.clock.Advance(time.Second)
	if got := b.transfer("k1", "4000").text("id"); got == one {
		t.Error("the key was kept for longer than a day")
	}
	b.balance(2000)
}

func TestEveryFaultOfAPayout(t *testing.T) {
	for kind, c := range map[stripesim.Kind]struct {
		status      int   // of the answer; 0 = none
		now, later  int64 // of the balance: at once, and 10 minutes later
		transferEnd int64 // a week later
		payoutEnd   string
	}{
		"":                    {200, 9000, 9000, 9000, "paid"},
		stripesim.LostAnswer:  {0, 9000, 9000, 9000, "paid"},
		stripesim.LostCall:    {0, 10_000, 10_000, 10_000, ""},
		stripesim.LateCall:    {0, 10_000, 9000, 9000, "paid"},
		stripesim.PaidBack:    {200, 9000, 9000, 10_000, "failed"},
		stripesim.PayoutFails: {200, 9000, 9000, 9000, "failed"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			b := newRichBench(t)
			b.inject("transfer.create", kind)
			if a := b.transfer("k1", "1000"); a.status != c.status {
				t.Errorf("got %d %s, want %d", a.status, a.raw, c.status)
			}
			b.balance(c.now)
			b.clock.Advance(10 * time.Minute)
			b.balance(c.later)
			b.clock.Advance(7 * 24 * time.Hour)
			b.balance(c.transferEnd)

			b = newRichBench(t)
			b.inject("payout.create", kind)
			b.payout("k1", "1000")
			b.clock.Advance(7 * 24 * time.Hour)
			got := ""
			for _, p := range b.sim.Books().Payouts {
				got += p.Status
			}
			if got != c.payoutEnd {
				t.Errorf("a week later the payouts are %q, want %q", got, c.payoutEnd)
			}
		})
	}
}

func (b *bench) inject(call string, kind stripesim.Kind) {
	if kind != "" {
		b.sim.Inject(stripesim.Fault{Call: call, Kind: kind})
	}
}

// A late call finds its key used meanwhile, and is that call.
func TestALateCallThatWasOvertakenHasNoEffect(t *testing.T) {
	b := newRichBench(t)
	b.inject("transfer.create", stripesim.LateCall)
	b.transfer("k1", "1000")
	b.transfer("k1", "1000")
	b.clock.Advance(time.Hour)
	b.balance(9000)
}

func TestTheBalanceTransactionsAddUpToTheBalance(t *testing.T) {
	b := newRichBench(t)
	tr, po := b.transfer("k1", "4000").text("id"), b.payout("k2", "1000").text("id")
	b.must(b.sim.ReverseTransfer(tr))
	b.must(b.sim.FailPayout(po))
	b.post("/v1/payouts/" + b.payout("k3", "7").text("id") + "/cancel")
	list := b.get("/v1/balance_transactions", "expand[]", "data.source")
	want := []string{"payout_cancel", "payout", "payout_failure", "transfer_refund", "payout", "transfer", "topup"}
	rows := list.body["data"].([]any)
	for i, v := range rows {
		row := answer{body: v.(map[string]any)}
		if row.text("type") != want[i] {
			t.Errorf("line %d: got %s, want %s", i, row.text("type"), want[i])
		}
		if row.text("type") == "transfer_refund" && row.text("source", "transfer") != tr {
			t.Errorf("a reversal does not lead to its transfer: %v", v)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("got %d lines, want %d", len(rows), len(want))
	}
	b.balance(10_000)
}

func TestTheControlPageMovesPayouts(t *testing.T) {
	b := newBench(t)
	b.act("/_sim/topups/9000usd", 200)
	for _, bad := range []string{"usd", "9000", "0usd", "9000xxx", "-5usd"} {
		b.act("/_sim/topups/"+bad, 409)
	}
	tr, po := b.transfer("k1", "4000").text("id"), b.payout("k2", "1000").text("id")
	b.shows("/_sim/", "$40.00 USD", tr, "$10.00 USD", po, "pending", "$40.00 USD")
	b.act("/_sim/payouts/"+po+"/pay", 200)
	b.act("/_sim/payouts/"+po+"/pay", 409)
	b.act("/_sim/payouts/"+po+"/fail", 200)
	b.act("/_sim/transfers/"+tr+"/reverse", 200)
	b.act("/_sim/transfers/"+tr+"/reverse", 409)
	b.act("/_sim/payouts/po_none/fail", 409)
	b.shows("/_sim/", "failed", "reversed $40.00 USD", "$90.00 USD")
}

// act presses a button of the control page.
func (b *bench) act(path string, status int) {
	b.t.Helper()
	if a := b.post(path); a.status != status {
		b.t.Errorf("%s: got %d %s, want %d", path, a.status, a.raw, status)
	}
}
