package holdfast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

const (
	disbursePayouts = 6
	disburseSteps   = 60
	disburseAmount  = 700 // minor units of each payout, at least
)

// disbursing is a real adapter that pays out, with its real simulator, joined
// without a socket. The simulator has money enough for all.
type disbursing struct {
	gateway gateway.Gateway
	sim     interface {
		Deliver(ctx context.Context) int
		NextDelivery() (time.Time, bool)
	}
	currency string
	to       []string       // destinations
	receive  func(p Payout) // its receiver does what is his; nil = nothing
	calm     func()         // no more faults
	left     func() map[string]outflow
}

// outflow is what a gateway's books say of one of our numbers.
type outflow struct {
	taken int   // how often it was taken on
	out   int64 // minor units that are gone and have not come back
}

// disbursers are the gateways that pay out, by name.
var disbursers = map[string]func(*testing.T, surroundings) disbursing{
	"stripe": newStripeDisbursing, "alipay": newAlipayDisbursing, "wechatpay": newWechatpayDisbursing,
}

func newStripeDisbursing(t *testing.T, in surroundings) disbursing {
	sim := stripesim.New(stripesim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil), WebhookURL: hookAddress})
	if err := sim.TopUp(1_000_000, "eur"); err != nil {
		t.Fatal(err)
	}
	sim.SetFaults(stripesim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, TwoEvents: 0.2,
		LostAnswer: 0.15, LostCall: 0.15, LateCall: 0.2, Stored500: 0.05, Unavailable: 0.1, RateLimited: 0.05, KeyInUse: 0.05,
		BalanceShort: 0.1, PayoutFails: 0.2, PaidBack: 0.2,
	})
	g, err := stripe.New(stripe.Options{
		SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: simAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return disbursing{
		gateway: g, sim: sim, currency: "EUR", to: []string{"acct_1Seller", "bank", "ba_1OwnBank"},
		calm: func() { sim.SetFaults(stripesim.Faults{}) },
		left: func() map[string]outflow {
			books, all := sim.Books(), map[string]outflow{}
			for _, x := range books.Transfers {
				was := all[x.Metadata["payout_id"]]
				all[x.Metadata["payout_id"]] = outflow{was.taken + 1, was.out + x.Amount - x.Reversed}
			}
			for _, x := range books.Payouts {
				was := all[x.Metadata["payout_id"]]
				if x.Status == "failed" || x.Status == "canceled" {
					x.Amount = 0
				}
				all[x.Metadata["payout_id"]] = outflow{was.taken + 1, was.out + x.Amount}
			}
			return all
		},
	}
}

// disbursement is an account whose money goes out while everything goes wrong.
type disbursement struct {
	*bench
	disbursing
	name string
	rng  *rand.Rand
	down atomic.Bool
	all  []string // ids of the payouts
}

// Whatever the network, the gateway, its notifications, people and the clock do:
// money leaves once for a payout that is paid, and never for one that failed or
// was cancelled, and the clearing account equals the gateway's books.
func TestEveryPayoutLeavesOnceOrNotAtAll(t *testing.T) {
	for name := range disbursers {
		for seed := range (*campaignSeeds + 1) / 2 { // they take longer than those of orders
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				d := newDisbursement(t, name, seed)
				for range disburseSteps {
					d.step()
				}
				d.down.Store(false)
				d.calm()
				d.rest()
				d.judge()
				d.reconciled()
			})
		}
	}
}

func newDisbursement(t *testing.T, name string, seed uint64) *disbursement {
	d := &disbursement{name: name, rng: rand.New(rand.NewPCG(seed, 13))}
	d.bench = newBench(t, func(o *Options) {
		d.disbursing = disbursers[name](t, surroundings{seed, o.Clock, hookOf(name, func() *Holdfast { return d.Holdfast }), &d.down})
		o.Gateways = map[string]gateway.Gateway{name: d.disbursing.gateway}
	})
	if _, err := d.OpenAccount(ctx, Key{}, AccountInput{ID: "hot", Terms: []Terms{{Currency: d.currency, PerDay: disbursePayouts * 1000}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Deposit(ctx, Key{}, "hot", d.currency, disbursePayouts*1000, "seed"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *disbursement) step() {
	d.t.Helper()
	if d.down.Load() {
		d.down.Store(d.rng.IntN(8) > 0)
	} else {
		d.down.Store(d.rng.IntN(40) == 0)
	}
	switch turn := d.rng.IntN(20); {
	case turn < 5 && len(d.all) < disbursePayouts:
		a, err := d.RequestPayout(ctx, Key{}, PayoutInput{Account: "hot", Currency: d.currency, Amount: disburseAmount + d.rng.Int64N(100),
			Fee: d.rng.Int64N(3), Destination: d.to[d.rng.IntN(len(d.to))]})
		if err != nil {
			d.t.Fatal(err)
		}
		d.all = append(d.all, a.Value.ID)
	case turn < 6 && len(d.all) > 0:
		_, _ = d.CancelPayout(ctx, Key{}, d.all[d.rng.IntN(len(d.all))]) // it may be too late
	case turn < 9:
		d.sim.Deliver(ctx)
	case turn < 13:
		d.wait(time.Duration(d.rng.Int64N(int64(time.Minute))))
	case turn < 14:
		d.wait(time.Duration(d.rng.Int64N(int64(4 * time.Hour))))
	default:
		d.run()
	}
	d.watched()
}

// watched: what is not at its end has a time when it is looked at again, and no
// number was taken on twice.
func (d *disbursement) watched() {
	d.t.Helper()
	left := d.left()
	for _, id := range d.all {
		p, err := d.Payout(ctx, id)
		if err != nil {
			d.t.Fatal(err)
		}
		if p.NextTryAt == 0 && (p.State == flow.PayoutHeld || p.State == flow.PayoutSubmitted || p.State == flow.PayoutUnknown) {
			d.t.Errorf("payout %s is %s, and nobody will ask about it", id, p.State)
		}
		if left[id].taken > 1 {
			d.t.Fatalf("payout %s was taken on %d times", id, left[id].taken)
		}
		if d.receive != nil && d.rng.IntN(4) == 0 {
			d.receive(p)
		}
	}
}

// rest lets two weeks pass: every number is forgotten by then, and what was paid
// has come back if it ever will.
func (d *disbursement) rest() {
	for _, s := range []struct {
		n     int
		every time.Duration
	}{{14, 2 * time.Hour}, {14, 24 * time.Hour}} {
		for range s.n {
			d.sim.Deliver(ctx)
			d.run()
			d.watched()
			d.wait(s.every)
		}
	}
	d.sim.Deliver(ctx)
	d.run()
}

func (d *disbursement) judge() {
	d.t.Helper()
	left, sum := d.left(), int64(0)
	for _, o := range left {
		sum += o.out
	}
	states := map[State]int{}
	for _, id := range d.all {
		p, err := d.Payout(ctx, id)
		if err != nil {
			d.t.Fatal(err)
		}
		states[p.State]++
		o, bad := left[id], false
		switch p.State {
		case flow.PayoutPaid:
			bad = o != outflow{1, p.Amount}
		case flow.PayoutReturned:
			bad = o != outflow{1, 0}
		case flow.PayoutFailed, flow.PayoutCancelled:
			bad = o.out != 0 || o.taken > 1
		default:
			bad = true
		}
		if bad || p.Code == flow.Contradiction {
			d.t.Errorf("payout %s of %d to %s is %s (%s), and %s took it on %d times and has sent %d", id, p.Amount, p.Destination, p.State, p.Code, d.name, o.taken, o.out)
		}
	}
	if len(left) > len(d.all) {
		d.t.Errorf("%s has %d payouts, %d were asked for", d.name, len(left), len(d.all))
	}
	booked, held := int64(0), int64(0)
	if clearing, ok := (&campaign{bench: d.bench}).balance(flow.Clearing(d.name), ledger.Asset(d.currency)); ok {
		booked = clearing.Posted
	}
	if booked != sum {
		d.t.Errorf("the clearing account says that %d left, %s %d", booked, d.name, sum)
	}
	a, err := d.Account(ctx, "hot")
	if err != nil {
		d.t.Fatal(err)
	}
	if held = a.Balances[0].Held; held != 0 {
		d.t.Errorf("%d are still held; the payouts are %v", held, states)
	}
}

// reconciled holds every day's statement against the books, twice: a payout is on
// the statement of another day than it is paid or comes back, so only what is
// still amiss when all have been read is a difference.
func (d *disbursement) reconciled() {
	d.t.Helper()
	st, ok := d.disbursing.gateway.(gateway.Statements)
	if !ok {
		return
	}
	files := map[string][]byte{}
	for at := time.Date(2026, 3, 1, 0, 0, 0, 0, st.Zone()); d.now().Sub(at) > day; at = at.AddDate(0, 0, 1) {
		file, err := st.FetchStatement(ctx, at)
		if errors.Is(err, gateway.ErrNoStatement) {
			continue // nothing happened on that day
		}
		if err != nil {
			d.t.Fatal(err)
		}
		files[at.Format(time.DateOnly)] = file
	}
	amiss := []Difference{}
	for range 2 {
		amiss = amiss[:0]
		for _, day := range slices.Sorted(maps.Keys(files)) {
			r, err := d.Reconcile(ctx, ReconcileInput{Day: day, File: files[day]}, nil)
			if err != nil {
				d.t.Fatal(err)
			}
			amiss = append(amiss, r.Differences...)
		}
	}
	for _, diff := range amiss {
		if diff.Kind != NotUnderstood { // how the simulator came to its money
			d.t.Errorf("not reconciled: %+v", diff)
		}
	}
}
