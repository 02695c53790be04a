package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/flashsale"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// troubled is Stripe on a bad day.
var troubled = stripesim.Faults{
	DelayNotice: 300 * time.Millisecond, LoseNotice: 0.1, DuplicateNotice: 0.2, ReorderNotice: 0.1, ForgeNotice: 0.1, TwoEvents: 0.1,
	LostAnswer: 0.05, Stored500: 0.03, Unavailable: 0.05, RateLimited: 0.02, KeyInUse: 0.02,
	SlowAnswer: 100 * time.Millisecond, PaidBeforeClose: 0.3,
	BalanceShort: 0.05, PayoutFails: 0.1, PaidBack: 0.1,
}

// mixed is the demo's word for all gateways at once.
const mixed = "mixed"

// booth is one gateway of the demo's shop: the simulator, served at url, and
// our side of it.
type booth struct {
	name    string
	url     string
	sim     sender
	gateway gateway.Gateway
	ways    []flashsale.Way // to pay by it; the first is the usual one
	charges func() []audit.Charge
}

// sender is a simulator that sends its notifications when it is told to.
type sender interface {
	http.Handler
	Deliver(ctx context.Context) (sent int)
	NextDelivery() (time.Time, bool)
}

// stage is where a booth is put up.
type stage struct {
	url    string // of the simulator
	notify string // where it sends notifications
	now    func() time.Time
	seed   uint64
	faults bool
}

// booths are the gateways that a demo can have.
var booths = map[string]func(stage) (booth, error){
	"stripe": stripeBooth, "alipay": alipayBooth, "wechatpay": wechatpayBooth,
}

// boothNames are those of a demo's --gateway; nil when there is none of it.
func boothNames(chosen string) []string {
	if chosen == mixed {
		return []string{"alipay", "wechatpay", "stripe"}
	}
	if booths[chosen] == nil {
		return nil
	}
	return []string{chosen}
}

func stripeBooth(at stage) (booth, error) {
	sim := stripesim.New(stripesim.Config{Seed: at.seed, Now: at.now, WebhookURL: at.notify})
	if at.faults {
		f := troubled
		f.DelayNotice *= demoPace
		sim.SetFaults(f)
	}
	g, err := stripe.New(stripe.Options{
		SecretKey: stripesim.DefaultSecretKey, WebhookSecrets: []string{stripesim.DefaultWebhookSecret}, BaseURL: at.url, Now: at.now,
	})
	ways := []flashsale.Way{{Gateway: "stripe", Method: "checkout"}}
	return booth{"stripe", at.url, sim, g, ways, func() []audit.Charge { return stripeCharges(sim.Books()) }}, err
}

func stripeCharges(books stripesim.Books) (all []audit.Charge) {
	for _, p := range books.Payments {
		all = append(all, audit.Charge{
			Order: p.Metadata["order_id"], Currency: strings.ToUpper(p.Currency), Captured: p.Captured, Refunded: p.Refunded,
		})
	}
	return all
}

func alipayBooth(at stage) (booth, error) {
	papers := alipaysim.DefaultCertificates() // without which it pays out nothing
	sim, err := alipaysim.New(alipaysim.Config{Seed: at.seed, Now: at.now, Certificates: papers, AppURL: at.notify})
	if err != nil {
		return booth{}, err
	}
	if at.faults {
		f := troubledAlipay
		f.DelayNotice *= demoPace
		f.RefundLag *= demoPace
		sim.SetFaults(f)
	}
	g, err := alipay.New(alipay.Options{
		AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID, PrivateKey: alipaysim.DefaultAppKey,
		Certificates: &alipay.Certificates{App: papers.App, Root: papers.Root, Alipay: []string{papers.Alipay}},
		BaseURL:      at.url + "/gateway.do", NotifyURL: at.notify, Now: at.now,
	})
	ways := []flashsale.Way{{Gateway: "alipay", Method: "page"}, {Gateway: "alipay", Method: "precreate"}}
	return booth{"alipay", at.url, sim, g, ways, func() (all []audit.Charge) {
		for _, t := range sim.Books().Trades {
			all = append(all, audit.Charge{Order: orderOf(t.Number), Currency: "CNY", Captured: t.Captured, Refunded: t.Refunded})
		}
		return all
	}}, err
}

// orderOf is the order whose attempt has that number: see flow.PaymentID.
func orderOf(payment string) string {
	if i := strings.LastIndexByte(payment, 'p'); i >= 0 {
		return payment[:i]
	}
	return payment
}

func wechatpayBooth(at stage) (booth, error) {
	sim := wechatpaysim.New(wechatpaysim.Config{Seed: at.seed, Now: at.now})
	if at.faults {
		f := troubledWechatpay
		f.DelayNotice *= demoPace
		sim.SetFaults(f)
	}
	g, err := wechatpay.New(wechatpay.Options{
		MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MerchantSerial: wechatpaysim.MerchantSerial,
		MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), APIv3Key: wechatpaysim.APIv3Key,
		PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile),
		TransferScene: "1005", TransferReports: []wechatpay.TransferReport{{Type: "岗位类型", Content: "推广"}, {Type: "报酬说明", Content: "佣金"}},
		NotifyURL: at.notify, BaseURL: at.url, Now: at.now,
	})
	ways := []flashsale.Way{
		{Gateway: "wechatpay", Method: "native", Phone: at.url}, {Gateway: "wechatpay", Method: "h5", Payer: "203.0.113.7"},
	}
	return booth{"wechatpay", at.url, sim, g, ways, func() (all []audit.Charge) {
		for _, o := range sim.Books().Orders {
			all = append(all, audit.Charge{Order: o.Attach, Currency: "CNY", Captured: o.Captured, Refunded: o.Refunded})
		}
		return all
	}}, err
}
