package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

var (
	mug  = holdfast.ItemInput{SKU: "mug", Name: "Mug", Names: map[string]string{"en": "Mug", "zh": "马克杯"}, Price: 3900, Currency: "CNY", Stock: 20}
	seat = holdfast.ItemInput{SKU: "seat", Name: "Concert seat", Names: map[string]string{"en": "Concert seat", "zh": "音乐会座位"}, Price: 28000, Currency: "CNY", Stock: 5}
)

// says is a text in each language.
type says map[string]string

const (
	en = "en"
	zh = "zh-CN"
)

// inBoth walks in both languages.
func inBoth(t *testing.T, walk func(*testing.T, string)) {
	for _, lang := range []string{en, zh} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			walk(t, lang)
		})
	}
}

var paid = says{en: "Paid. It is yours", zh: "付款成功，商品归您"}

// buy orders an item from the shop's page, and comes to the cashier.
func (b *tab) buy(sku, quantity string) {
	b.Helper()
	b.open("/shop/")
	if quantity != "1" {
		b.do(chromedp.SetValue(chromedp.CSS("#quantity-"+sku), quantity))
	}
	b.click("#button-" + sku)
	b.until(`location.pathname.startsWith("/pay/") && document.querySelector(".ways")`)
}

func way(id string) string { return "#way-" + strings.ReplaceAll(id, ".", `\.`) }

// code reads the QR code on the page as a phone's camera does.
func (b *tab) code() string {
	b.Helper()
	b.until(`document.querySelector(".code svg")`)
	picture, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS(".code svg")))
	must(b.T, err)
	img, err := png.Decode(bytes.NewReader(picture))
	must(b.T, err)
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	must(b.T, err)
	read, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	must(b.T, err)
	return read.GetText()
}

// scan opens in the phone's browser what a code says, as the gateway's app does.
func (b *tab) scan(gateway, text string) {
	b.Helper()
	sim := b.shop.sims[gateway]
	if gateway == "wechatpay" {
		if !strings.HasPrefix(text, "weixin://wxpay/bizpayurl?pr=") {
			b.Fatalf("the code says %q", text)
		}
		text = sim + "/scan?code=" + url.QueryEscape(text)
	}
	if !strings.HasPrefix(text, sim+"/") {
		b.Fatalf("the code says %q, want a page of %s", text, sim)
	}
	b.open(text)
	b.click(`button[value=pay]`)
	b.until(`document.querySelector("#state.paid")`)
}

func TestABuyerPaysByEveryWay(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug, seat)
		b, phone := s.visitor(t, lang), s.visitor(t, lang)
		b.open("/shop/")
		b.audit("shop")
		b.buy("mug", "2")
		b.audit("choose")

		b.click(way("wechatpay.native"))
		b.code()
		b.click(way("alipay.precreate")) // instead: the other is closed first
		b.sees(says{en: "Scan with Alipay", zh: "请用支付宝扫码"}[lang])
		b.audit("code")
		b.click(way("wechatpay.native")) // and back: Alipay can't tell yet that nobody will come
		b.sees(says{en: "WeChat Pay opens as soon as", zh: "确认关闭后才会启用微信支付"}[lang])
		b.audit("switch")
		phone.open(b.code()) // somebody comes, so that it can be closed for certain
		s.later(10 * time.Second)
		b.sees(says{en: "Scan with WeChat", zh: "请用微信扫码"}[lang])
		phone.scan("wechatpay", b.code())
		phone.audit("at-wechatpay")
		b.sees(paid[lang])
		b.audit("paid")

		b.buy("mug", "1")
		b.click(way("alipay.precreate"))
		phone.scan("alipay", b.code())
		b.sees(paid[lang])

		for _, there := range []string{"alipay.page", "stripe.checkout"} {
			gateway, _, _ := strings.Cut(there, ".")
			b.buy("mug", "1")
			b.click(way(there))
			b.until(fmt.Sprintf(`location.href.startsWith(%q)`, s.sims[gateway]))
			b.audit("at-" + gateway)
			b.click(`button[value=pay]`)
			b.until(fmt.Sprintf(`location.href.startsWith(%q) && !location.search`, s.url+"/pay/"))
			b.sees(paid[lang])
		}
		b.open("/shop/orders")
		b.sees(says{en: "Mug × 2", zh: "马克杯 × 2"}[lang])
		b.audit("orders")
	})
}

func TestTheLastUnitGoesToOneAndThenToTheOther(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		last := mug
		last.Stock = 1
		s := openShop(t, last, seat)
		first, second := s.visitor(t, lang), s.visitor(t, lang)
		second.open("/shop/")
		second.until(`document.body.dataset.online === "yes" && !document.querySelector("#button-mug").disabled`)
		first.buy("mug", "1")
		second.until(`document.querySelector("#button-mug").disabled`)
		second.sees(says{en: "All on hold", zh: "已全部被预留"}[lang])
		second.until(`/^0[0-5]:\d\d$/.test(document.querySelector("#ware-mug .hint time").textContent)`)
		second.audit("held")

		s.later(holdFor + time.Second)
		first.sees(says{en: "Time ran out", zh: "已超时"}[lang])
		first.audit("expired")
		second.click("#button-mug")
		second.until(`location.pathname.startsWith("/pay/")`)
		second.click(way("alipay.precreate"))
		first.open("/shop/")
		first.sees(says{en: "All on hold", zh: "已全部被预留"}[lang])
		phone := s.visitor(t, lang)
		phone.scan("alipay", second.code())
		second.sees(paid[lang])
		first.sees(says{en: "Sold out", zh: "已售罄"}[lang])
		first.audit("gone")
	})
}

func TestFiveSeatsAndTwoBuyersOfFive(t *testing.T) {
	s := openShop(t, seat)
	first, second := s.visitor(t, en), s.visitor(t, zh)
	second.open("/shop/")
	second.until(`document.body.dataset.online === "yes"`)
	first.buy("seat", "5")
	second.sees("剩余商品正由其他买家付款，最快释放还需")
	first.click("#give-up")
	first.sees("Order cancelled")
	first.audit("cancelled")
	second.sees("仅剩 5 件")
	second.do(chromedp.SetValue(chromedp.CSS("#quantity-seat"), "5"))
	second.click("#button-seat")
	second.sees("音乐会座位 × 5")
}

func TestACutNetworkMissesNothing(t *testing.T) {
	s := openShop(t, mug, seat)
	b := s.visitor(t, zh)
	b.open("/shop/")
	b.until(`document.body.dataset.online === "yes"`)
	b.do(chromedp.Evaluate[chromedp.Void](`window.stayed = true; 0`))
	b.offline(true)
	s.line.cut()
	b.until(`document.body.dataset.online === "no"`)
	b.sees("正在重新连接")
	_, err := s.core.Place(t.Context(), holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "seat", Quantity: 5}}})
	must(t, err)
	s.line.mend()
	b.sees("已全部被预留")
	b.until(`document.body.dataset.online === "yes" && window.stayed`)
}

func TestMoneyThatComesTooLateIsShownOnItsWayBack(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		last := mug
		last.Stock = 1
		s := openShop(t, last)
		b, phone := s.visitor(t, lang), s.visitor(t, lang)
		b.buy("mug", "1")
		b.click(way("wechatpay.native"))
		text := b.code()
		// The buyer pays in time, and nobody tells the shop.
		s.quiet.Store(true)
		s.wechat.SetFaults(wechatpaysim.Faults{Unavailable: 1})
		phone.scan("wechatpay", text)
		s.later(payFor + time.Second)
		b.sees(says{en: "Time is up. We are making sure", zh: "时间已到，正在核实"}[lang])
		b.audit("closing")
		s.later(pin)
		b.sees(says{en: "Time ran out", zh: "已超时"}[lang])
		// An order would hold it for minutes only, and an hour is to pass.
		_, err := s.core.Adjust(t.Context(), holdfast.Key{}, holdfast.Adjustment{SKU: "mug", Quantity: -1, Reason: "sold at the counter"})
		must(t, err)
		s.wechat.SetFaults(wechatpaysim.Faults{})
		s.quiet.Store(false)
		s.later(time.Hour) // it is asked again, ever more rarely
		b.sees(says{en: "Your money came too late and", zh: "付款已超时，"}[lang])
		b.sees(says{en: "Your money came too late and was sent back", zh: "付款已超时，款项已退回"}[lang])
		b.sees(says{en: "CN¥39.00", zh: "¥39.00"}[lang])
		b.audit("late")
	})
}

func TestEverythingCanBeBoughtWithTheKeyboard(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		b := s.visitor(t, lang)
		b.open("/shop/")
		b.do(chromedp.KeyEvent(kb.Tab))
		b.until(`document.activeElement.matches(".skip")`)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.tabTo("#button-mug", kb.Enter)
		b.until(`document.querySelector(".ways")`)
		b.tabTo(way("alipay.page"), kb.Enter)
		b.until(fmt.Sprintf(`location.href.startsWith(%q)`, s.sims["alipay"]))
		b.tabTo(`button[value=pay]`, kb.Enter)
		b.sees(paid[lang])
		other, button := zh, `[name=lang][value=zh]`
		if lang == zh {
			other, button = en, `[name=lang][value=en]`
		}
		b.tabTo(button, kb.Enter)
		b.sees(paid[other])
	})
}

func TestASecretOpensOneOrder(t *testing.T) {
	s := openShop(t, mug)
	order, err := s.core.Place(t.Context(), holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 1}}})
	must(t, err)
	b := s.visitor(t, en)
	b.offline(true) // 404 is said in the console
	b.open("/pay/" + order.Value.ID)
	b.sees("There is nothing here")
	b.audit("missing")
	b.open("/pay/" + order.Value.ID + "#" + s.core.ClientSecret(order.Value.ID))
	b.do(chromedp.Reload()) // only the # has changed
	b.sees("How would you like to pay?")
}

func TestTheLineMovesOnByItself(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		b := s.visitor(t, lang)
		free := s.lock()
		b.open("/shop/")
		b.click("#button-mug")
		b.sees(says{en: "You are in the line", zh: "正在排队"}[lang])
		b.audit("line")
		free()
		b.until(`location.pathname.startsWith("/pay/") && document.querySelector(".ways")`)
	})
}
