package holdfast

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

var campaignSeeds = flag.Uint64("seeds", 2, "how many campaigns of each gateway")

const (
	campaignOrders = 7
	campaignSteps  = 150
	campaignStock  = 5                // pieces of each item: too few for all
	campaignRest   = 400              // rounds at most until all is at rest
	campaignRound  = 20 * time.Minute // of the time that then goes on
	campaignPin    = 20 * time.Minute // of half of the campaigns: stock is given up while money may still come
)

// campaign is a shop with one gateway, whose buyers, merchant, notifications
// and clock take turns as the seed wants. The ids of orders and the pauses
// between tries are not the seed's, so that a run is only much like the last.
type campaign struct {
	*bench
	peer
	name   string
	rng    *rand.Rand
	down   atomic.Bool // the gateway can't be reached; its buyers reach it all the same
	orders []string
}

// Whatever buyers, merchant, gateway and clock do in whatever order: nobody can
// pay what is over, and when the faults end and time goes on, every
// paid order is fulfilled or refunded in full, the clearing account equals the
// gateway's books, and nothing is left to do.
func TestEveryPaidOrderIsFulfilledOrRefunded(t *testing.T) {
	for name := range peers {
		for seed := range *campaignSeeds {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				c := newCampaign(t, name, seed)
				for range campaignSteps {
					c.step()
					c.nobodyPaysWhatIsOver()
				}
				c.down.Store(false)
				c.calm()
				c.rest()
				c.judge()
			})
		}
	}
}

func newCampaign(t *testing.T, name string, seed uint64) *campaign {
	c := &campaign{name: name, rng: rand.New(rand.NewPCG(seed, 11))}
	c.bench = newBench(t, func(o *Options) {
		c.peer = peers[name](t, surroundings{seed, o.Clock, hookOf(name, func() *Holdfast { return c.Holdfast }), &c.down})
		o.Gateways = map[string]gateway.Gateway{name: c.peer.gateway}
		if seed%2 == 1 {
			o.Pin = campaignPin
		}
	})
	c.item("cup", campaignStock, flow.Retake)
	c.item("pot", campaignStock, flow.Repay)
	for _, id := range []string{"seller", "bank"} {
		_, err := c.OpenAccount(ctx, Key{}, AccountInput{ID: id})
		c.done("open an account", err)
	}
	return c
}

// done lets a refusal pass, as something else may have been faster; an error is none.
func (c *campaign) done(what string, err error) {
	c.t.Helper()
	var no *Rejection
	if err != nil && !errors.As(err, &no) {
		c.t.Fatalf("%s: %v", what, err)
	}
}

func (c *campaign) step() {
	if c.down.Load() {
		c.down.Store(c.rng.IntN(15) > 0)
	} else {
		c.down.Store(c.rng.IntN(60) == 0)
	}
	switch turn := c.rng.IntN(20); {
	case turn < 1 && len(c.orders) < campaignOrders:
		in := OrderInput{Lines: []LineInput{{[]string{"cup", "pot"}[c.rng.IntN(2)], 1 + c.rng.Int64N(2)}}}
		if len(c.orders)%2 == 0 {
			in.Splits = []SplitInput{{"seller", 83}}
		}
		a, err := c.Place(ctx, Key{}, in)
		c.done("place", err)
		if err == nil {
			c.orders = append(c.orders, a.Value.ID)
		}
	case turn < 10 && len(c.orders) > 0:
		c.act(c.detail(c.orders[c.rng.IntN(len(c.orders))]))
	case turn < 13:
		c.sim.Deliver(ctx)
	case turn < 15:
		c.wait(time.Duration(c.rng.Int64N(int64(2 * time.Minute))))
	case turn < 16:
		c.wait(time.Duration(c.rng.Int64N(int64(10 * time.Minute))))
	default:
		c.run()
	}
}

func (c *campaign) detail(order string) OrderDetail {
	d, err := c.Detail(ctx, order)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// act is somebody doing something about an order.
func (c *campaign) act(d OrderDetail) {
	if len(d.Payments) > 0 && c.rng.IntN(3) == 0 {
		p := d.Payments[c.rng.IntN(len(d.Payments))]
		if p.URL != "" && c.rng.IntN(3) == 0 {
			c.visit(p)
			return
		}
		_ = c.pay(p) // it may be too late, or not yet possible
		return
	}
	var err error
	switch c.rng.IntN(16) {
	default:
		in := c.ways[c.rng.IntN(len(c.ways))]
		in.Order, in.ReturnURL, in.Wait = d.ID, "https://shop.example/thanks", time.Nanosecond
		_, err = c.Pay(ctx, Key{}, in)
	case 0:
		_, err = c.Cancel(ctx, Key{}, d.ID)
	case 1, 2: // some of it, of a price of 100 or more
		_, err = c.Refund(ctx, Key{}, RefundInput{Order: d.ID, Amount: 1 + c.rng.Int64N(9)})
	case 3:
		c.decide(d)
	case 4, 5, 6:
		if n := len(d.RefundList); n > 0 && c.bounce != nil {
			c.bounce(d.RefundList[c.rng.IntN(n)])
		}
	case 9: // the seller's money goes where no refund finds it
		_, err = c.Transfer(ctx, Key{}, TransferInput{From: "seller", To: "bank", Currency: "CNY", Amount: 1 + c.rng.Int64N(83)})
	case 7, 8:
		if n := len(d.Payments); n > 0 {
			_, err = c.Refresh(ctx, d.Payments[c.rng.IntN(n)].ID)
		}
	}
	c.done("act", err)
}

// decide is the merchant looking after an order that has its money: asking
// again for what the gateway would not repay, sending the goods, or repaying
// all. It says whether there was something to do.
func (c *campaign) decide(d OrderDetail) bool {
	paid := d.State == flow.Paid || d.State == flow.PartlyRefunded
	var err error
	switch {
	case owed(d):
		_, err = c.Refund(ctx, Key{}, RefundInput{Order: d.ID})
	case !paid || d.FulfilledAt != 0 || d.Refunding > 0:
		return false
	case c.rng.IntN(2) == 0:
		_, err = c.Fulfil(ctx, Key{}, d.ID)
	default:
		_, err = c.Refund(ctx, Key{}, RefundInput{Order: d.ID})
	}
	c.done("decide", err)
	return true
}

// owed says that money which bought nothing was not repaid when it was asked for.
func owed(d OrderDetail) bool {
	last := map[string]Refund{}
	for _, f := range d.RefundList {
		if f.Late {
			last[f.Payment] = f
		}
	}
	for _, f := range last {
		if f.State == flow.RefundRefused || f.State == flow.RefundFailed {
			return true
		}
	}
	return false
}

// nobodyPaysWhatIsOver tries it: attempts that ended without money, and those of
// orders whose stock was released. At its cap an order is given up, come what may.
func (c *campaign) nobodyPaysWhatIsOver() {
	c.t.Helper()
	for _, id := range c.orders {
		d := c.detail(id)
		released := (d.State == flow.Expired || d.State == flow.Cancelled) && c.now().Before(d.CapAt.Std())
		for _, p := range d.Payments {
			over := released || p.State == flow.AttemptClosed || p.State == flow.Declined
			if over && c.pay(p) == nil {
				c.t.Fatalf("payment %s is %s, its order %s, and it could be paid", p.ID, p.State, d.State)
			}
		}
	}
}

// rest lets time go on until nothing is under way and the merchant has no wish.
func (c *campaign) rest() {
	c.t.Helper()
	for range campaignRest {
		c.sim.Deliver(ctx)
		c.run()
		c.nobodyPaysWhatIsOver()
		busy := len(c.unfinished()) > 0
		for _, id := range c.orders {
			busy = c.decide(c.detail(id)) || busy
		}
		if _, more := c.sim.NextDelivery(); !more && !busy {
			return
		}
		c.wait(campaignRound)
	}
}

// unfinished is what waits for something.
func (c *campaign) unfinished() (found []string) {
	for kind, states := range map[string][]State{
		flow.KindOrder:   {flow.Held, flow.Paying, flow.Closing, flow.Refunding},
		flow.KindPayment: {flow.Waiting, flow.Requested, flow.Open},
		flow.KindRefund:  {flow.RefundRequested, flow.RefundAccepted},
		flow.KindTask:    {flow.TaskReady, flow.TaskStuck},
	} {
		for _, state := range states {
			rs, err := c.store.Records(ctx, ledger.RecordQuery{Kind: kind, State: string(state)})
			if err != nil {
				c.t.Fatal(err)
			}
			for _, r := range rs {
				found = append(found, fmt.Sprintf("%s %s is %s", r.Kind, r.ID, r.State))
			}
		}
	}
	holds, err := c.store.Holds(ctx, ledger.HoldQuery{State: ledger.Held})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range holds {
		found = append(found, fmt.Sprintf("hold %s holds %d", h.ID, h.Left()))
	}
	return found
}

// judge holds the orders and the clearing account against the gateway's books.
// That the journal is in order the bench verifies when it ends.
func (c *campaign) judge() {
	c.t.Helper()
	for _, s := range c.unfinished() {
		c.t.Errorf("stuck: %s", s)
	}
	books, all := c.collected(), int64(0)
	for _, b := range books {
		all += b.captured - b.refunded
	}
	booked := int64(0)
	if clearing, ok := c.balance(flow.Clearing(c.name), "CNY"); ok {
		booked = -clearing.Posted
	}
	if booked != all {
		c.t.Errorf("the clearing account says %d, %s %d", booked, c.name, all)
	}
	for _, id := range c.orders {
		d, net := c.detail(id), int64(0)
		for _, p := range d.Payments {
			net += books[p.ID].captured - books[p.ID].refunded
		}
		switch fulfilled := d.FulfilledAt != 0; {
		case net != d.Paid-d.Refunded:
			c.t.Errorf("order %s says %d paid and %d refunded, %s has %d", id, d.Paid, d.Refunded, c.name, net)
		case fulfilled != (net > 0):
			c.t.Errorf("order %s is %s, fulfilled %v, and %s has %d for it", id, d.State, fulfilled, c.name, net)
		}
		if due, ok := c.balance(flow.RefundsDue(id), "CNY"); ok && due.Posted != 0 {
			c.t.Errorf("order %s: %d are due to the buyer", id, due.Posted)
		}
	}
}

func (c *campaign) balance(account ledger.Account, asset ledger.Asset) (ledger.Balance, bool) {
	bs, err := c.store.Balances(ctx, ledger.BalanceQuery{Account: account})
	if err != nil {
		c.t.Fatal(err)
	}
	if i := slices.IndexFunc(bs, func(b ledger.Balance) bool { return b.Asset == asset }); i >= 0 {
		return bs[i], true
	}
	return ledger.Balance{}, false
}
