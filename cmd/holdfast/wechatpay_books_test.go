package main

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// openWechatpayCounter is a shop and WeChat Pay on one clock, without
// notifications.
func openWechatpayCounter(t *testing.T) (*holdfast.Holdfast, *wechatpaysim.Sim, *hands) {
	t.Helper()
	clock := &hands{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	sim := wechatpaysim.New(wechatpaysim.Config{Now: clock.time})
	wire := httptest.NewServer(sim)
	t.Cleanup(wire.Close)
	g, err := wechatpay.New(wechatpay.Options{
		MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MerchantSerial: wechatpaysim.MerchantSerial,
		MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), APIv3Key: wechatpaysim.APIv3Key,
		PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile),
		NotifyURL: "https://shop.example/webhooks/wechatpay", BaseURL: wire.URL, Now: clock.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	core, err := holdfast.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "shop.db"), holdfast.Options{
		Gateways: map[string]gateway.Gateway{"wechatpay": g}, Clock: clock.time, Sweep: readyPoll, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeStore(context.Background(), core); err != nil {
			t.Error(err)
		}
	})
	item := holdfast.ItemInput{SKU: "cup", Name: "茶杯", Price: 1990, Currency: "CNY", Stock: 10}
	if err := core.PutItems(t.Context(), []holdfast.ItemInput{item}, func() {}); err != nil {
		t.Fatal(err)
	}
	return core, sim, clock
}

// The books equal WeChat Pay's own bill to the fen, fees included, whatever part
// of the price a coupon paid.
func TestADayAtWechatPayReconciles(t *testing.T) {
	ctx := t.Context()
	core, sim, clock := openWechatpayCounter(t)
	sim.SetFaults(wechatpaysim.Faults{Coupon: 0.5})
	for n := range int64(3) {
		order, err := core.Place(ctx, holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "cup", Quantity: n + 1}}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := core.Pay(ctx, holdfast.Key{}, holdfast.PayInput{Order: order.Value.ID})
		if err != nil {
			t.Fatal(err)
		}
		if err := sim.Pay(p.Value.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := core.Refresh(ctx, p.Value.ID); err != nil {
			t.Fatal(err)
		}
		refund, err := core.Refund(ctx, holdfast.Key{}, holdfast.RefundInput{Order: order.Value.ID, Amount: 100 + n})
		if err != nil {
			t.Fatal(err)
		}
		awaitRefund(t, core, clock, refund.Value.ID)
	}
	clock.advance(24 * time.Hour)
	r, err := core.Reconcile(ctx, holdfast.ReconcileInput{Day: "2026-03-01"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept int64
	for _, o := range sim.Books().Orders {
		kept += o.Captured - o.Refunded
		kept -= (o.Captured*6 + 500) / 1000
		kept += (o.Refunded*6 + 500) / 1000
	}
	if len(r.Differences) != 0 || r.Lines != 6 || r.Booked != 6 || len(r.Sums) != 1 || r.Sums[0].Here != kept || r.Sums[0].There != kept {
		t.Errorf("got %+v, want 6 lines booked and %d fen", r, kept)
	}
	if again, err := core.Reconcile(ctx, holdfast.ReconcileInput{Day: "2026-03-01"}, nil); err != nil || again.Booked != 0 || again.Matched != 6 {
		t.Errorf("again: got %+v, %v; want nothing booked", again, err)
	}
}

// awaitRefund moves the clock until the refund is done: the first answer only
// says that it is being processed, and is asked after later.
func awaitRefund(t *testing.T, core *holdfast.Holdfast, clock *hands, id string) {
	t.Helper()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for range int(readyFor / readyPoll) {
		f, err := core.RefundByID(t.Context(), id)
		if err == nil && f.State == "done" {
			return
		}
		clock.advance(10 * time.Second)
		<-tick.C
	}
	t.Fatalf("refund %s is not done within %v", id, readyFor)
}
