package browser

import (
	"testing"

	"github.com/holdfast-pay/holdfast"
)

var mug = holdfast.ItemInput{SKU: "mug", Name: "Mug", Names: map[string]string{"en": "Mug", "zh": "马克杯"}, Price: 3900, Currency: "CNY", Stock: 20}
var seat = holdfast.ItemInput{SKU: "seat", Name: "Concert seat", Names: map[string]string{"en": "Concert seat", "zh": "音乐会座位"}, Price: 28000, Currency: "CNY", Stock: 5}

func TestAShopIsLookedAt(t *testing.T) {
	s := openShop(t, mug, seat)
	for _, lang := range []string{"en", "zh-CN"} {
		b := s.visitor(t, lang)
		b.open("/shop/")
		b.audit("shop")
		b.open("/shop/orders")
		b.audit("orders-none")
		b.open("/shop/")
		b.click("#button-mug")
		b.until(`document.querySelector("#way-alipay\\.precreate")`)
		b.audit("choose")
		b.click("#way-alipay\\.precreate")
		b.until(`document.querySelector(".code svg")`)
		b.audit("code")
	}
}
