package alipay

import (
	"crypto/rsa"
	"os"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// FuzzNotification reads what could have been signed, without its signature.
func FuzzNotification(f *testing.F) {
	for _, s := range []string{
		"notify_id=1&notify_type=trade_status_sync&out_trade_no=p&trade_status=TRADE_SUCCESS&total_amount=9.90",
		"notify_id=1&notify_type=trade_status_sync&out_trade_no=p&trade_status=TRADE_CLOSED&total_amount=9.9&refund_fee=0.00",
		"notify_id=1&notify_type=trade_status_sync&out_trade_no=p&trade_status=TRADE_CLOSED&total_amount=9&refund_fee=9&out_biz_no=r",
		"notify_id=1&notify_type=other", "a=%zz", "a=b&a=b", "", "&&=&",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		params, err := parameters(body)
		if err != nil {
			return
		}
		n, err := readNotification(params)
		if err != nil || n.Ignored {
			return
		}
		if n.ID == "" || n.Payment == "" || n.Amount < 0 || n.Amount > maxAmount {
			t.Errorf("%q was read as %+v", body, n)
		}
		if (n.Status == "") == (n.Refunded == "") {
			t.Errorf("%q is about a payment and a refund, or neither: %+v", body, n)
		}
		if n.Status == gateway.Paid && n.Currency != currency {
			t.Errorf("%q was paid in %q", body, n.Currency)
		}
	})
}

// FuzzSignedNotification looks for bytes that are believed without Alipay's key.
func FuzzSignedNotification(f *testing.F) {
	f.Add("sign=AAAA&sign_type=RSA2&app_id=2021000000000001&seller_id=2088000000000002")
	f.Add("sign=&sign_type=RSA2")
	text, err := os.ReadFile("testdata/gateway.pub.pem")
	if err != nil {
		f.Fatal(err)
	}
	key, err := publicKey(string(text))
	if err != nil {
		f.Fatal(err)
	}
	g := &Gateway{appID: "2021000000000001", sellerID: "2088000000000002", trust: trust{keys: []*rsa.PublicKey{key}}}
	f.Fuzz(func(t *testing.T, body string) {
		if n, err := g.Parse(nil, []byte(body), time.Time{}); err == nil {
			t.Errorf("%q was believed: %+v", body, n)
		}
		if node, err := g.authentic("alipay.trade.query", []byte(body)); err == nil {
			t.Errorf("%q was believed: %s", body, node)
		}
	})
}

func FuzzStatement(f *testing.F) {
	f.Add([]byte("#支付宝业务明细查询\n支付宝交易号,商户订单号,业务类型,完成时间,商家实收（元）,服务费（元）,退款批次号/请求号\n" +
		"1,p,交易,2026-03-01 10:00:00,1.00,-0.01,\n#交易合计：1笔，商家实收共1.00元\n"))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, file []byte) {
		lines, err := readStatement(file)
		if err != nil {
			return
		}
		for _, l := range lines {
			if l.ID == "" || l.Currency != currency || l.At.IsZero() {
				t.Errorf("read %+v", l)
			}
		}
	})
}

func FuzzYuan(f *testing.F) {
	for _, s := range []string{"0.01", "1.1", "100000000.00", "-1", "1e3", "", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fen, ok := fromYuan(s)
		if !ok {
			return
		}
		if again, ok := fromYuan(toYuan(fen)); !ok || again != fen || fen < 0 || fen > maxAmount {
			t.Errorf("%q is %d, and that is %q", s, fen, toYuan(fen))
		}
	})
}
