package holdfast

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Refunds of many orders and payouts of their seller at once: every refund is
// made, no payout takes what is not there, and what is short is owed, to the last
// minor unit.
func TestRefundsAndPayoutsAtOnceLeaveAReceivableAndNoHole(t *testing.T) {
	for name, empty := range map[string]func(testing.TB) string{
		"SQLite":   func(t testing.TB) string { return "sqlite:" + t.(*testing.T).TempDir() + "/t.db" },
		"MySQL":    sqlstoretest.MySQL,
		"Postgres": sqlstoretest.Postgres,
	} {
		if testing.Short() && name != "SQLite" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &payBench{bench: &bench{t: t, at: time.Now(), gw: newTill(), url: empty(t)}}
			b.out = newSender(b.now)
			b.Holdfast = b.open(func(o *Options) { o.Gateways["out"] = b.out })
			defer b.Close(ctx)
			splitStorm(b)
		})
	}
}

func splitStorm(b *payBench) {
	const orders, parts = 6, 3
	b.fund("ann", 0)
	b.fund("fee", 0)
	b.item("tee", orders)
	var wait sync.WaitGroup
	do := func(what string, f func() error) {
		wait.Go(func() {
			var no *Rejection
			if err := f(); err != nil && !errors.As(err, &no) {
				b.t.Errorf("%s: %v", what, err)
			}
		})
	}
	var all []Order
	for range orders {
		o := b.split("tee")
		b.paid(o.ID)
		all = append(all, o)
	}
	b.sent("ann", 200) // of 420: refunds take 390
	for _, o := range all {
		for range parts {
			wait.Go(func() { b.refund(o.ID, 31) })
		}
		do("payout", func() error {
			_, err := b.RequestPayout(ctx, Key{}, PayoutInput{Account: "ann", Currency: "CNY", Amount: 37, Gateway: "out", Destination: "bob"})
			return err
		})
		do("deposit", func() error { _, err := b.Deposit(ctx, Key{}, "ann", "CNY", 5, "test"); return err })
		do("collect", func() error { return b.collect(ctx, Account{ID: "ann"}) })
	}
	wait.Wait()
	b.run()
	sum := b.judgeSplits(all, parts*31)

	// Many at once collect what is owed from somebody who has more.
	const rich = 1000
	if _, err := b.Deposit(ctx, Key{}, "ann", "CNY", rich, "test"); err != nil {
		b.t.Fatal(err)
	}
	for range 8 {
		do("collect", func() error { return b.collect(ctx, Account{ID: "ann"}) })
	}
	wait.Wait()
	b.has("ann", rich+sum, 0, rich+sum)
	if rep, err := b.Verify(ctx, nil); err != nil || !rep.OK() {
		b.t.Errorf("verify: %v %+v", err, rep.Problems)
	}
}

// judgeSplits holds what ann has, owes and was paid against what she got, and says
// what she has in all.
func (b *payBench) judgeSplits(all []Order, refunded int64) (sum int64) {
	b.t.Helper()
	sum = int64(len(all) * (70 + 5)) // that came to her
	for _, o := range all {
		d := b.is(o.ID, flow.PartlyRefunded)
		theirs := d.Splits[0].Refunded + d.Splits[1].Refunded // of 80 in 100
		if d.Refunded != refunded || theirs < refunded*80/100 || theirs > refunded*80/100+1 {
			b.t.Errorf("%d of %d is refunded, of the splits %+v", d.Refunded, refunded, d.Splits)
		}
		sum -= d.Splits[0].Refunded
	}
	paid, err := b.Payouts(ctx, PayoutFilter{Account: "ann"})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range paid {
		b.payoutIs(p.ID, flow.PayoutPaid)
		sum -= p.Amount
	}
	a, err := b.Account(ctx, "ann")
	if err != nil {
		b.t.Fatal(err)
	}
	if x := a.Balances[0]; x.Posted < 0 || x.Held != 0 || x.Posted-x.Receivable != sum {
		b.t.Errorf("ann has %+v, want %d in all after %d payouts", x, sum, len(paid))
	}
	if err := b.collect(ctx, a.Account); err != nil {
		b.t.Fatal(err)
	}
	if owed, err := b.store.Balances(ctx, ledger.BalanceQuery{Account: flow.Receivable("ann")}); err != nil || len(owed) != 1 || sum >= 0 || owed[0].Posted != -sum {
		b.t.Errorf("ann owes %+v %v, want %d", owed, err, -sum)
	}
	return sum
}
