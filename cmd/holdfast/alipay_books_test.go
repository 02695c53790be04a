package main

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// hands is a clock that is moved by hand.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// counter is a shop and Alipay on one clock, without notifications.
type counter struct {
	*holdfast.Holdfast
	t     *testing.T
	clock *hands
	sim   *alipaysim.Sim
}

func openCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{t: t, clock: &hands{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}}
	var err error
	if c.sim, err = alipaysim.New(alipaysim.Config{Now: c.clock.time}); err != nil {
		t.Fatal(err)
	}
	wire := httptest.NewServer(c.sim)
	t.Cleanup(wire.Close)
	g, err := alipay.New(alipay.Options{
		AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID, PrivateKey: alipaysim.DefaultAppKey,
		PublicKey: alipaysim.DefaultPublicKey, BaseURL: wire.URL + "/gateway.do", Now: c.clock.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Holdfast, err = holdfast.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "shop.db"), holdfast.Options{
		Gateways: map[string]gateway.Gateway{"alipay": g}, Clock: c.clock.time, Sweep: readyPoll, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeStore(context.Background(), c.Holdfast); err != nil {
			t.Error(err)
		}
	})
	item := holdfast.ItemInput{SKU: "cup", Name: "茶杯", Price: 1990, Currency: "CNY", Stock: 10}
	if err := c.PutItems(t.Context(), []holdfast.ItemInput{item}, func() {}); err != nil {
		t.Fatal(err)
	}
	return c
}

// orders makes an order of n cups, and where to pay it.
func (c *counter) orders(n int64) holdfast.Payment {
	c.t.Helper()
	order, err := c.Place(c.t.Context(), holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "cup", Quantity: n}}})
	if err != nil {
		c.t.Fatal(err)
	}
	p, err := c.Pay(c.t.Context(), holdfast.Key{}, holdfast.PayInput{Order: order.Value.ID, Method: "precreate"})
	if err != nil {
		c.t.Fatal(err)
	}
	return p.Value
}

// eventually asks until ok, doing step in between.
func (c *counter) eventually(what string, step func(), ok func() bool) {
	c.t.Helper()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for range int(readyFor / readyPoll) {
		if ok() {
			return
		}
		step()
		<-tick.C
	}
	c.t.Fatalf("%s: not within %v", what, readyFor)
}

func (c *counter) state(order string) holdfast.State {
	c.t.Helper()
	o, err := c.Order(c.t.Context(), order)
	if err != nil {
		c.t.Fatal(err)
	}
	return o.State
}

// The books equal Alipay's own bill to the fen, fees included.
func TestADayAtAlipayReconciles(t *testing.T) {
	ctx := t.Context()
	c := openCounter(t)
	for n := range int64(3) {
		p := c.orders(n + 1)
		if err := c.sim.Pay(p.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Refresh(ctx, p.ID); err != nil {
			t.Fatal(err)
		}
		refund, err := c.Refund(ctx, holdfast.Key{}, holdfast.RefundInput{Order: p.Order, Amount: 100 + n})
		if err != nil {
			t.Fatal(err)
		}
		c.eventually("the refund", func() {}, func() bool {
			f, err := c.RefundByID(ctx, refund.Value.ID)
			return err == nil && f.State == "done"
		})
	}
	c.clock.advance(24 * time.Hour)
	r, err := c.Reconcile(ctx, holdfast.ReconcileInput{Day: "2026-03-01"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := int64(0)
	for _, trade := range c.sim.Books().Trades {
		kept += trade.Captured - trade.Refunded - trade.Fee
	}
	if len(r.Differences) != 0 || r.Lines != 6 || r.Booked != 6 || len(r.Sums) != 1 || r.Sums[0].Here != kept || r.Sums[0].There != kept {
		t.Errorf("got %+v, want 6 lines booked and %d fen", r, kept)
	}
	if again, err := c.Reconcile(ctx, holdfast.ReconcileInput{Day: "2026-03-01"}, nil); err != nil || again.Booked != 0 || again.Matched != 6 {
		t.Errorf("again: got %+v, %v; want nothing booked", again, err)
	}
}

// Alipay does not know a payment before its buyer comes, so it cannot close it:
// the stock is released when nobody can come any more, and not before.
func TestStockIsHeldWhileABuyerMayStillCome(t *testing.T) {
	c := openCounter(t)
	nobody, late := c.orders(1), c.orders(2)
	for _, p := range []holdfast.Payment{nobody, late} {
		if _, err := c.Cancel(t.Context(), holdfast.Key{}, p.Order); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually("a close is tried", func() {}, func() bool { return c.state(nobody.Order) == "closing" })
	c.clock.advance(nobody.ExpiresAt.Std().Sub(c.clock.time()) - time.Second)
	if err := c.sim.Pay(late.ID); err != nil {
		t.Fatalf("the buyer who scans at last: %v", err)
	}
	step := func() { c.clock.advance(5 * time.Second) }
	c.eventually("the late buyer gets his cups", step, func() bool { return c.state(late.Order) == "paid" })
	c.eventually("the stock is released", step, func() bool { return c.state(nobody.Order) == "cancelled" })
	if after := c.clock.time().Sub(nobody.ExpiresAt.Std()); after < 2*time.Minute {
		t.Errorf("the stock was released %s after the deadline, while clocks may differ", after)
	}
	if c.sim.Pay(nobody.ID) == nil {
		t.Error("what was given up was paid")
	}
}
