package browser

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
)

const secretWord = "correct horse battery"

// fill types into a form's fields: css and value, by turns.
func (b *tab) fill(fields ...string) {
	b.Helper()
	for i := 0; i < len(fields); i += 2 {
		b.until(fmt.Sprintf(`document.querySelector(%q)`, fields[i]))
		b.do(chromedp.SetValue(chromedp.CSS(fields[i]), fields[i+1]))
	}
}

// firstRun adds the first person and signs in.
func (b *tab) firstRun(name string) {
	b.Helper()
	token, err := b.shop.core.FirstRun(b.Context())
	must(b.T, err)
	b.open("/admin/")
	b.until(`location.pathname === "/admin/first-run"`)
	b.fill("[name=token]", token, "[name=name]", name, "[name=password]", secretWord)
	b.click(".door button")
	b.until(`location.pathname === "/admin/"`)
}

func (b *tab) signIn(name string) {
	b.Helper()
	b.open("/admin/sign-in")
	b.fill("[name=name]", name, "[name=password]", secretWord)
	b.click(".door button")
	b.until(`location.pathname === "/admin/"`)
}

// deed opens a form, fills it in and sends it.
func (b *tab) deed(action string, fields ...string) {
	b.Helper()
	css := fmt.Sprintf(`form[action=%q]`, action)
	b.click(fmt.Sprintf(`details:has(%s) summary`, css))
	for i := 0; i < len(fields); i += 2 {
		fields[i] = css + " " + fields[i]
	}
	b.fill(fields...)
	b.click(css + " button")
}

// purse pays out whatever it is asked to, and takes no money.
type purse struct{ gateway.Gateway }

func (purse) Methods() []string { return nil }

func (purse) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }

func (purse) Payout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutPaid, Ref: "purse-" + p.ID}
}

func (g purse) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return g.Payout(ctx, p)
}

// openBook keeps secrets where everybody can read them.
type openBook struct{}

func (openBook) Seal(secret string) string          { return secret }
func (openBook) Open(sealed string) (string, error) { return sealed, nil }

// busy is a shop in which something of everything has happened.
func busy(t *testing.T) (s *shop, paidOrder, payout string) {
	s = openShop(t, mug, seat)
	ctx := t.Context()
	for range 2 {
		_, err := s.core.Place(ctx, holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 2}}, Customer: "lin"})
		must(t, err)
	}
	_, err := s.core.PutSale(ctx, holdfast.Key{}, holdfast.SaleInput{SKU: "seat", OpensAt: s.now().Add(-time.Hour), ClosesAt: s.now().Add(time.Hour), Price: 19900, PerCustomer: 2, SoldOutside: true})
	must(t, err)
	_, err = s.core.OpenAccount(ctx, holdfast.Key{}, holdfast.AccountInput{ID: "seller-1", Name: "老王茶铺", Terms: []holdfast.Terms{{Currency: "CNY", ApproveAbove: 1}}})
	must(t, err)
	_, err = s.core.Deposit(ctx, holdfast.Key{}, "seller-1", "CNY", 500_000, "opening")
	must(t, err)
	p, err := s.core.RequestPayout(ctx, holdfast.Key{}, holdfast.PayoutInput{Account: "seller-1", Currency: "CNY", Amount: 12_300, Gateway: "purse", Destination: "wang@example.com", By: "key/somebody"})
	must(t, err)
	b, phone := s.visitor(t, en), s.visitor(t, en)
	b.buy("mug", "1")
	b.click(way("alipay.precreate"))
	phone.scan("alipay", b.code())
	b.sees(paid[en])
	orders, err := s.core.Orders(ctx, holdfast.OrderFilter{State: "paid"})
	must(t, err)
	return s, orders[0].ID, p.Value.ID
}

func TestAWebhookIsDeliveredAgainFromTheConsole(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		heard := make(chan string, 10) // webhook-id of every delivery
		l := s.listen()
		srv := s.serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header.Get("Webhook-Id") }))
		defer srv.Close()
		e, _, err := s.core.CreateEndpoint(t.Context(), holdfast.EndpointInput{URL: "http://" + l.Addr().String() + "/hook", Types: []string{"order.*"}})
		must(t, err)
		_, err = s.core.Place(t.Context(), holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 1}}})
		must(t, err)
		first := <-heard
		b := s.visitor(t, lang)
		b.firstRun("anna")
		b.open("/admin/webhooks")
		b.audit("admin-webhooks")
		b.click(fmt.Sprintf(`a[href="/admin/webhooks/%s"]`, e.ID))
		b.sees(says{en: "delivered", zh: "已送达"}[lang])
		b.audit("admin-webhook")
		b.click(`.is-event a`)
		replay := `form[action="/admin/webhooks/` + e.ID + `/replay"]`
		b.fill(replay+" [name=reason]", "the shop was down")
		b.click(replay + " button")
		b.sees(says{en: "The event is delivered again.", zh: "事件正在重新投递。"}[lang])
		select {
		case again := <-heard:
			if again != first {
				t.Errorf("delivered again as %s, want %s", again, first)
			}
		case <-time.After(patience):
			t.Error("nothing was delivered again")
		}
	})
}

func TestThePastIsOneClickAwayAndAViewerChangesNothing(t *testing.T) {
	s := openShop(t, mug)
	_, err := s.core.PutStaff(t.Context(), holdfast.StaffInput{Name: "vera", Password: secretWord, Role: holdfast.RoleViewer})
	must(t, err)
	s.later(time.Hour)
	b := s.visitor(t, en)
	b.signIn("vera")
	b.open("/admin/items")
	b.click(`.is-available a`)
	b.until(`document.querySelector(".answer .big").textContent === "20" && document.body.dataset.online === "yes"`)
	_, err = s.core.Adjust(t.Context(), holdfast.Key{}, holdfast.Adjustment{SKU: "mug", Quantity: -5, Reason: "broken"})
	must(t, err)
	b.until(`document.querySelector(".answer .big").textContent === "15"`) // by itself
	if b.value(`document.querySelectorAll(".deeds").length`) != "0" {
		t.Error("a viewer is offered a change")
	}
	b.click(`#moved tbody tr:last-child .is-at a`)
	b.until(`document.querySelector(".note.warn") && document.querySelector(".answer .big").textContent === "20"`)
	b.audit("admin-why-then")
}

func TestAnOperatorWalksThroughTheConsole(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s, order, payout := busy(t)
		b := s.visitor(t, lang)
		b.open("/admin/")
		b.audit("admin-first-run")
		b.firstRun("anna")
		b.until(`document.body.dataset.online === "yes"`)
		b.until(`document.querySelector("#rate").textContent !== "–" && document.querySelector("#chart-rate canvas")`)
		b.audit("admin-overview")

		b.open("/admin/items")
		b.audit("admin-items")
		b.click(`a[href="/admin/items/mug"]`)
		b.deed("/admin/items/mug/adjust", "[name=quantity]", "-3", "[name=reason]", "broken in transit")
		b.sees(says{en: "The stock was adjusted.", zh: "库存已调整。"}[lang])
		b.sees("broken in transit")
		b.audit("admin-why")
		b.offline(true) // a refusal is said in the browser's console too
		b.deed("/admin/items/mug/adjust", "[name=quantity]", "-999", "[name=reason]", "a slip of the finger")
		b.sees(says{en: "Orders hold those pieces, or there are not so many.", zh: "这些件数已被订单占用，或库存不足。"}[lang])
		b.audit("admin-refused")
		b.offline(false)

		b.open("/admin/orders/" + order)
		b.audit("admin-order")
		b.open("/admin/payouts/" + payout)
		b.audit("admin-payout")
		b.deed("/admin/payouts/"+payout+"/approve", "[name=reason]", "checked the invoice")
		b.sees(says{en: "The payout is approved and on its way.", zh: "提现已批准，正在发送。"}[lang])

		for _, page := range []string{"sales", "orders", "payments", "refunds", "payouts", "accounts", "accounts/seller-1", "tasks", "notifications", "webhooks", "audit", "keys", "staff", "reconcile", "verify", "password", "search?q=nothing-like-it"} {
			b.open("/admin/" + page)
			b.until(`document.querySelector(".work")`)
			b.audit("admin-" + page[:min(len(page), 8)])
		}
		for _, list := range []string{"sales", "payments", "tasks"} {
			b.open("/admin/" + list)
			b.click(`#rows .is-id a`)
			b.until(`document.querySelector(".facts")`)
			b.audit("admin-" + list + "-one")
		}
		b.click(".me summary")
		b.click(".me button")
		b.until(`document.querySelector(".door")`)
		b.audit("admin-sign-in")
	})
}
