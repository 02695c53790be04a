package interop

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/url"
	"testing"

	"github.com/go-pay/gopay"
	"github.com/go-pay/gopay/alipay"
	"github.com/go-pay/gopay/pkg/xhttp"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// gopayAlipay is gopay's client of Alipay on the way to the simulator: it
// knows one address, so that its requests are led there.
type gopayAlipay struct {
	*testing.T
	buyer
	sdk  *alipay.Client
	sim  *alipaysim.Sim
	mail *mailbox
}

func openGopayAlipay(t *testing.T) gopayAlipay {
	sim := try(alipaysim.New(alipaysim.Config{})).or(t)
	at, mail := serve(t, sim), newMailbox(t)
	sdk := try(alipay.NewClient(alipaysim.DefaultAppID, bare(t, alipaysim.DefaultAppKey), true)).or(t)
	sdk.SetHttpClient(xhttp.NewClient().SetTransport(detour{at}).SetTimeout(callTimeout))
	sdk.SetNotifyUrl(mail.url).SetReturnUrl("https://shop.example/ok")
	sdk.AutoVerifySign([]byte(alipaysim.DefaultPublicKey))
	return gopayAlipay{t, newBuyer(t, at), sdk, sim, mail}
}

// trade has a body because gopay leaves empty values out of what it verifies,
// unlike Alipay's own SDKs.
func (s gopayAlipay) trade(number string) gopay.BodyMap {
	return gopay.BodyMap{"out_trade_no": number, "subject": "茶 Tee", "body": "two", "total_amount": "88.88"}
}

func (s gopayAlipay) precreate(number string) string {
	b := s.trade(number).Set("product_code", "FACE_TO_FACE_PAYMENT")
	return try(s.sdk.TradePrecreate(s.Context(), b)).or(s.T).Response.QrCode
}

func (s gopayAlipay) wantState(number, want string) {
	s.Helper()
	seen := try(s.sdk.TradeQuery(s.Context(), gopay.BodyMap{"out_trade_no": number})).or(s.T).Response
	if seen.TradeStatus != want || seen.TotalAmount != "88.88" {
		s.Errorf("got %+v, want %s", seen, want)
	}
}

// refusedAs is the sub_code of what Alipay refused.
func refusedAs(err error) string {
	var e *alipay.BizErr
	if !errors.As(err, &e) {
		return ""
	}
	return e.SubCode
}

func TestGopayPaysAndRepaysAtAlipay(t *testing.T) {
	s, ctx := openGopayAlipay(t), t.Context()
	s.pay(s.precreate("order-1"))
	s.wantState("order-1", "TRADE_SUCCESS")
	if _, err := s.sdk.TradeClose(ctx, gopay.BodyMap{"out_trade_no": "order-1"}); refusedAs(err) != "ACQ.TRADE_STATUS_ERROR" {
		t.Errorf("close what is paid: got %v", err)
	}

	part := gopay.BodyMap{"out_trade_no": "order-1", "out_request_no": "refund-1", "refund_amount": "8.88", "refund_reason": "broken"}
	if r := try(s.sdk.TradeRefund(ctx, part)).or(t).Response; r.FundChange != "Y" || r.RefundFee != "8.88" {
		t.Errorf("got %+v", r)
	}
	read := try(s.sdk.TradeFastPayRefundQuery(ctx, gopay.BodyMap{"out_trade_no": "order-1", "out_request_no": "refund-1"})).or(t).Response
	if read.RefundStatus != "REFUND_SUCCESS" || read.RefundAmount != "8.88" {
		t.Errorf("got %+v", read)
	}
	part.Set("out_request_no", "refund-2").Set("refund_amount", "80.01")
	if _, err := s.sdk.TradeRefund(ctx, part); refusedAs(err) != "ACQ.REASON_TRADE_REFUND_FEE_ERR" {
		t.Errorf("repay more than is left: got %v", err)
	}
}

func TestGopayPaysByEveryAddressOfAlipay(t *testing.T) {
	s, ctx := openGopayAlipay(t), t.Context()
	s.pay(try(s.sdk.TradePagePay(ctx, s.trade("by-page"))).or(t))
	s.pay(try(s.sdk.TradeWapPay(ctx, s.trade("by-wap"))).or(t))
	app := s.trade("by-app").Set("product_code", "QUICK_MSECURITY_PAY")
	s.pay("https://alipay.example/app?" + try(s.sdk.TradeAppPay(ctx, app)).or(t))
	for _, number := range []string{"by-page", "by-wap", "by-app"} {
		s.wantState(number, "TRADE_SUCCESS")
	}
}

func TestGopayClosesWhatIsUnpaidAtAlipay(t *testing.T) {
	s := openGopayAlipay(t)
	code := s.precreate("order-1")
	s.visit(code)
	s.wantState("order-1", "WAIT_BUYER_PAY")
	try(s.sdk.TradeClose(t.Context(), gopay.BodyMap{"out_trade_no": "order-1"})).or(t)
	s.wantState("order-1", "TRADE_CLOSED")
	if _, page := s.visit(code); payable(page) {
		t.Error("what is closed can be paid")
	}
}

func TestGopayBelievesTheNoticesOfAlipay(t *testing.T) {
	s := openGopayAlipay(t)
	s.pay(s.precreate("order-1"))
	part := gopay.BodyMap{"out_trade_no": "order-1", "out_request_no": "refund-1", "refund_amount": "8.88"}
	try(s.sdk.TradeRefund(t.Context(), part)).or(t)
	notices := s.mail.collect(t, s.sim)
	if len(notices) != 3 {
		t.Errorf("got %d notices, want 3: waiting, paid, repaid", len(notices))
	}
	for _, n := range notices {
		believeForm(t, n, func(form url.Values) error {
			b, err := alipay.ParseNotifyByURLValues(form)
			if err != nil {
				return err
			}
			if ok, err := alipay.VerifySign(bare(t, alipaysim.DefaultPublicKey), b); !ok {
				return errors.Join(errors.New("not verified"), err)
			}
			return nil
		})
	}
}

// bare is a key as Alipay's own tool writes it and gopay wants it: base64
// without the frame of PEM.
func bare(t *testing.T, text string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatal("not PEM")
	}
	return base64.StdEncoding.EncodeToString(block.Bytes)
}
