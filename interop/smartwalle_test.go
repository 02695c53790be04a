package interop

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/smartwalle/alipay/v3"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// smartwalle is smartwalle/alipay, pointed at the simulator. It names the
// charset in the body alone, for which Alipay answers with notices in GBK.
type smartwalle struct {
	*testing.T
	buyer
	sdk  *alipay.Client
	sim  *alipaysim.Sim
	mail *mailbox
}

func openSmartwalle(t *testing.T) smartwalle {
	sim := try(alipaysim.New(alipaysim.Config{})).or(t)
	at := serve(t, sim)
	sdk := try(alipay.New(alipaysim.DefaultAppID, alipaysim.DefaultAppKey, true,
		alipay.WithProductionGateway(at.String()+"/gateway.do"),
		alipay.WithTimeLocation(time.FixedZone("Asia/Shanghai", 8*60*60)),
		alipay.WithHTTPClient(&http.Client{Timeout: callTimeout}),
	)).or(t)
	if err := sdk.LoadAliPayPublicKey(alipaysim.DefaultPublicKey); err != nil {
		t.Fatal(err)
	}
	return smartwalle{t, newBuyer(t, at), sdk, sim, newMailbox(t)}
}

func (s smartwalle) trade(number, product string) alipay.Trade {
	return alipay.Trade{
		OutTradeNo: number, Subject: "茶 Tee", TotalAmount: "88.88", ProductCode: product,
		NotifyURL: s.mail.url, ReturnURL: "https://shop.example/ok",
	}
}

// precreate is the address of a QR code.
func (s smartwalle) precreate(number string) string {
	p := alipay.TradePreCreate{Trade: s.trade(number, "FACE_TO_FACE_PAYMENT")}
	made := try(s.sdk.TradePreCreate(s.Context(), p)).or(s.T)
	if made.IsFailure() || made.OutTradeNo != number {
		s.Fatalf("got %+v", made)
	}
	return made.QRCode
}

func (s smartwalle) wantState(number string, want alipay.TradeStatus) {
	s.Helper()
	seen := try(s.sdk.TradeQuery(s.Context(), alipay.TradeQuery{OutTradeNo: number})).or(s.T)
	if seen.IsFailure() || seen.TradeStatus != want || seen.TotalAmount != "88.88" {
		s.Errorf("got %+v, want %s", seen, want)
	}
}

func TestSmartwallePaysAndRepays(t *testing.T) {
	s, ctx := openSmartwalle(t), t.Context()
	code := s.precreate("order-1")
	if seen := try(s.sdk.TradeQuery(ctx, alipay.TradeQuery{OutTradeNo: "order-1"})).or(t); seen.SubCode != "ACQ.TRADE_NOT_EXIST" {
		t.Errorf("before the scan: got %+v", seen)
	}
	s.pay(code)
	s.wantState("order-1", alipay.TradeStatusSuccess)
	if shut := try(s.sdk.TradeClose(ctx, alipay.TradeClose{OutTradeNo: "order-1"})).or(t); shut.SubCode != "ACQ.TRADE_STATUS_ERROR" {
		t.Errorf("close what is paid: got %+v", shut)
	}

	part := alipay.TradeRefund{OutTradeNo: "order-1", OutRequestNo: "refund-1", RefundAmount: "8.88", RefundReason: "broken"}
	if r := try(s.sdk.TradeRefund(ctx, part)).or(t); r.IsFailure() || r.FundChange != "Y" || r.RefundFee != "8.88" {
		t.Errorf("got %+v", r)
	}
	if r := try(s.sdk.TradeRefund(ctx, part)).or(t); r.IsFailure() || r.FundChange != "N" || r.RefundFee != "8.88" {
		t.Errorf("the same again: got %+v", r)
	}
	read := try(s.sdk.TradeFastPayRefundQuery(ctx, alipay.TradeFastPayRefundQuery{OutTradeNo: "order-1", OutRequestNo: "refund-1"})).or(t)
	if read.IsFailure() || read.RefundStatus != "REFUND_SUCCESS" || read.RefundAmount != "8.88" {
		t.Errorf("got %+v", read)
	}
	part.OutRequestNo, part.RefundAmount = "refund-2", "80.01"
	if r := try(s.sdk.TradeRefund(ctx, part)).or(t); r.SubCode != "ACQ.REASON_TRADE_REFUND_FEE_ERR" {
		t.Errorf("repay more than is left: got %+v", r)
	}
}

func TestSmartwallePaysByEveryAddress(t *testing.T) {
	s := openSmartwalle(t)
	page := try(s.sdk.TradePagePay(alipay.TradePagePay{Trade: s.trade("by-page", "FAST_INSTANT_TRADE_PAY")})).or(t)
	wap := try(s.sdk.TradeWapPay(alipay.TradeWapPay{Trade: s.trade("by-wap", "QUICK_WAP_WAY")})).or(t)
	app := try(s.sdk.TradeAppPay(alipay.TradeAppPay{Trade: s.trade("by-app", "QUICK_MSECURITY_PAY")})).or(t)
	for number, at := range map[string]string{"by-page": page.String(), "by-wap": wap.String(), "by-app": "https://alipay.example/app?" + app} {
		s.pay(at)
		s.wantState(number, alipay.TradeStatusSuccess)
	}
}

func TestSmartwalleClosesWhatIsUnpaid(t *testing.T) {
	s := openSmartwalle(t)
	code := s.precreate("order-1")
	if _, page := s.visit(code); !payable(page) {
		t.Fatal("what is open can't be paid")
	}
	s.wantState("order-1", alipay.TradeStatusWaitBuyerPay)
	if shut := try(s.sdk.TradeClose(t.Context(), alipay.TradeClose{OutTradeNo: "order-1"})).or(t); shut.IsFailure() {
		t.Errorf("got %+v", shut)
	}
	s.wantState("order-1", alipay.TradeStatusClosed)
	if _, page := s.visit(code); payable(page) {
		t.Error("what is closed can be paid")
	}
}

func TestSmartwalleBelievesTheNotices(t *testing.T) {
	s := openSmartwalle(t)
	s.pay(s.precreate("order-1"))
	part := alipay.TradeRefund{OutTradeNo: "order-1", OutRequestNo: "refund-1", RefundAmount: "8.88"}
	if r := try(s.sdk.TradeRefund(t.Context(), part)).or(t); r.IsFailure() {
		t.Fatalf("got %+v", r)
	}
	var told []string
	for _, n := range s.mail.collect(t, s.sim) {
		believeForm(t, n, func(form url.Values) error {
			_, err := s.sdk.DecodeNotification(t.Context(), form)
			return err
		})
		form := try(url.ParseQuery(string(n.body))).or(t)
		m := try(s.sdk.DecodeNotification(t.Context(), form)).or(t)
		if m.OutTradeNo != "order-1" || m.SellerId != alipaysim.DefaultSellerID || m.TotalAmount != "88.88" || m.Charset != "GBK" {
			t.Errorf("got %+v", m)
		}
		told = append(told, string(m.TradeStatus)+m.RefundFee)
	}
	if len(told) != 3 || told[0] != "WAIT_BUYER_PAY" || told[1] != "TRADE_SUCCESS" || told[2] != "TRADE_SUCCESS8.88" {
		t.Errorf("got notices of %q, want waiting, paid and repaid", told)
	}
}

// TestSmartwalleRefusesAForgedNotice turns the simulator's forger on.
func TestSmartwalleRefusesAForgedNotice(t *testing.T) {
	s := openSmartwalle(t)
	s.sim.SetFaults(alipaysim.Faults{ForgeNotice: 1})
	s.pay(s.precreate("order-1"))
	for i, n := range s.mail.collect(t, s.sim) {
		form := try(url.ParseQuery(string(n.body))).or(t)
		if _, err := s.sdk.DecodeNotification(t.Context(), form); (err != nil) != (i%2 == 1) {
			t.Errorf("notice %d: got %v", i, err)
		}
	}
}
