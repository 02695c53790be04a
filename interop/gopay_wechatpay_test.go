package interop

import (
	"net/http"
	"testing"

	"github.com/go-pay/gopay"
	"github.com/go-pay/gopay/pkg/xhttp"
	wechatv3 "github.com/go-pay/gopay/wechat/v3"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// gopayWechat is gopay's client of WeChat Pay, pointed at the simulator.
type gopayWechat struct {
	wechat
	sdk *wechatv3.ClientV3
}

// openGopayWechat trusts the public key or, byCert, the certificate that it downloads.
func openGopayWechat(t *testing.T, byCert bool) gopayWechat {
	w := openWechat(t, byCert)
	sdk := try(wechatv3.NewClientV3(wechatpaysim.MerchantID, wechatpaysim.MerchantSerial, wechatpaysim.APIv3Key,
		string(wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile)))).or(t)
	sdk.SetProxyHost(w.at.String())
	sdk.SetHttpClient(xhttp.NewClient().SetTimeout(callTimeout))
	trust := func() error {
		return sdk.AutoVerifySignByPublicKey(wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile), wechatpaysim.PublicKeyID)
	}
	if byCert {
		trust = func() error { return sdk.AutoVerifySign(false) }
	}
	if err := trust(); err != nil {
		t.Fatal(err)
	}
	return gopayWechat{w, sdk}
}

func (g gopayWechat) order(number string) gopay.BodyMap {
	return gopay.BodyMap{
		"appid": wechatpaysim.AppID, "mchid": wechatpaysim.MerchantID, "out_trade_no": number, "description": "茶 & Tee",
		"notify_url": noticeURL, "amount": gopay.BodyMap{"total": 8888, "currency": "CNY"},
	}
}

// native is the text of a QR code.
func (g gopayWechat) native(number string) string {
	made := try(g.sdk.V3TransactionNative(g.Context(), g.order(number))).or(g.T)
	if made.Code != wechatv3.Success {
		g.Fatal(made.Error)
	}
	return made.Response.CodeUrl
}

func (g gopayWechat) query(number string) *wechatv3.QueryOrder {
	g.Helper()
	seen := try(g.sdk.V3TransactionQueryOrder(g.Context(), wechatv3.OutTradeNo, number)).or(g.T)
	if seen.Code != wechatv3.Success {
		g.Fatal(seen.Error)
	}
	return seen.Response
}

func (g gopayWechat) repay(number, refund string, fen int) *wechatv3.RefundRsp {
	g.Helper()
	return try(g.sdk.V3Refund(g.Context(), gopay.BodyMap{
		"out_trade_no": number, "out_refund_no": refund, "notify_url": noticeURL, "reason": "broken",
		"amount": gopay.BodyMap{"refund": fen, "total": 8888, "currency": "CNY"},
	})).or(g.T)
}

func TestGopayPaysAndRepaysAtWechat(t *testing.T) {
	for name, byCert := range map[string]bool{"by public key": false, "by certificate": true} {
		t.Run(name, func(t *testing.T) {
			g := openGopayWechat(t, byCert)
			g.pay(scan(g.native("order-1")))
			if seen := g.query("order-1"); seen.TradeState != "SUCCESS" || seen.Amount.PayerTotal != 8888 {
				t.Errorf("got %+v", seen)
			}
			if shut := try(g.sdk.V3TransactionCloseOrder(t.Context(), "order-1")).or(t); shut.ErrResponse.Code != "ORDER_PAID" {
				t.Errorf("close what is paid: got %+v", shut)
			}

			if r := g.repay("order-1", "refund-1", 888); r.Code != wechatv3.Success || r.Response.Amount.Refund != 888 {
				t.Errorf("got %+v", r)
			}
			read := try(g.sdk.V3RefundQuery(t.Context(), "refund-1", nil)).or(t)
			if read.Code != wechatv3.Success || read.Response.Status != "SUCCESS" || read.Response.Amount.PayerRefund != 888 {
				t.Errorf("got %+v", read)
			}
			if r := g.repay("order-1", "refund-2", 8001); r.ErrResponse.Code != "INVALID_REQUEST" {
				t.Errorf("repay more than is left: got %+v", r)
			}
		})
	}
}

func TestGopayPaysByEveryMethodOfWechat(t *testing.T) {
	g, ctx := openGopayWechat(t, false), t.Context()
	h5 := g.order("order-h5").Set("scene_info", gopay.BodyMap{"payer_client_ip": "127.0.0.1", "h5_info": gopay.BodyMap{"type": "Wap"}})
	page := try(g.sdk.V3TransactionH5(ctx, h5)).or(t)
	if page.Code != wechatv3.Success {
		t.Fatal(page.Error)
	}
	g.pay(page.Response.H5Url)

	inside := try(g.sdk.V3TransactionJsapi(ctx, g.order("order-js").Set("payer", gopay.BodyMap{"openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}))).or(t)
	app := try(g.sdk.V3TransactionApp(ctx, g.order("order-app").Set("appid", wechatpaysim.MobileAppID))).or(t)
	if inside.Code != wechatv3.Success || app.Code != wechatv3.Success || inside.Response.PrepayId == app.Response.PrepayId {
		t.Fatalf("got %+v and %+v", inside, app)
	}
	g.pay("https://wechat.example/pay/order-js")
	g.pay("https://wechat.example/pay/order-app")
	for number, trade := range map[string]string{"order-h5": "MWEB", "order-js": "JSAPI", "order-app": "APP"} {
		if seen := g.query(number); seen.TradeState != "SUCCESS" || seen.TradeType != trade {
			t.Errorf("got %+v, want paid by %s", seen, trade)
		}
	}
}

func TestGopayClosesWhatIsUnpaidAtWechat(t *testing.T) {
	g := openGopayWechat(t, false)
	code := g.native("order-1")
	if shut := try(g.sdk.V3TransactionCloseOrder(t.Context(), "order-1")).or(t); shut.Code != wechatv3.Success {
		t.Fatal(shut.Error)
	}
	if seen := g.query("order-1"); seen.TradeState != "CLOSED" {
		t.Errorf("got %+v, want it closed", seen)
	}
	if _, page := g.visit(scan(code)); payable(page) {
		t.Error("what is closed can be paid")
	}
}

func TestGopayBelievesTheNoticesOfWechat(t *testing.T) {
	for name, byCert := range map[string]bool{"by public key": false, "by certificate": true} {
		t.Run(name, func(t *testing.T) {
			g := openGopayWechat(t, byCert)
			g.pay(scan(g.native("order-1")))
			g.repay("order-1", "refund-1", 888)
			notices := g.mail.collect(t, g.sim)
			for _, n := range notices {
				believe(t, n, func(r *http.Request) error {
					m, err := wechatv3.V3ParseNotify(r)
					if err != nil {
						return err
					}
					return m.VerifySignByPKMap(g.sdk.WxPublicKeyMap())
				})
			}
			if len(notices) != 2 {
				t.Fatalf("got %d notices, want 2: paid and repaid", len(notices))
			}
			m := try(wechatv3.V3ParseNotify(notices[0].request(notices[0].body))).or(t)
			if paid := try(m.DecryptPayCipherText(wechatpaysim.APIv3Key)).or(t); paid.OutTradeNo != "order-1" || paid.Amount.Total != 8888 {
				t.Errorf("got %+v", paid)
			}
			m = try(wechatv3.V3ParseNotify(notices[1].request(notices[1].body))).or(t)
			if repaid := try(m.DecryptRefundCipherText(wechatpaysim.APIv3Key)).or(t); repaid.OutRefundNo != "refund-1" || repaid.RefundStatus != "SUCCESS" || repaid.Amount.Refund != 888 {
				t.Errorf("got %+v", repaid)
			}
		})
	}
}
