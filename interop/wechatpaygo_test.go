package interop

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/downloader"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"
	"github.com/wechatpay-apiv3/wechatpay-go/core/option"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments/native"
	"github.com/wechatpay-apiv3/wechatpay-go/services/refunddomestic"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// noticeURL is https, as WeChat Pay wants it. The mailbox is behind it.
const noticeURL = "https://shop.example/wechatpay"

// wechat is the simulator and who is notified by it.
type wechat struct {
	*testing.T
	buyer
	at   *url.URL
	sim  *wechatpaysim.Sim
	mail *mailbox
}

func openWechat(t *testing.T, byCert bool) wechat {
	mail := newMailbox(t)
	sim := wechatpaysim.New(wechatpaysim.Config{
		ByCert: byCert, Client: &http.Client{Transport: detour{address(t, mail.url)}, Timeout: callTimeout},
	})
	at := serve(t, sim)
	return wechat{t, newBuyer(t, at), at, sim, mail}
}

// scan is the address that a phone comes to with the text of a QR code.
func scan(code string) string { return "https://wechat.example/scan?code=" + url.QueryEscape(code) }

// official is wechatpay-go, Tencent's own, on the way to the simulator.
type official struct {
	wechat
	orders  native.NativeApiService
	refunds refunddomestic.RefundsApiService
	notices *notify.Handler
}

// openOfficial trusts the public key or, byCert, the certificate that it downloads.
func openOfficial(t *testing.T, byCert bool) official {
	w, ctx := openWechat(t, byCert), t.Context()
	key := try(utils.LoadPrivateKey(string(wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile)))).or(t)
	public := try(utils.LoadPublicKey(string(wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile)))).or(t)
	wire := option.WithHTTPClient(&http.Client{Transport: detour{w.at}, Timeout: callTimeout})
	trust := option.WithWechatPayPublicKeyAuthCipher(wechatpaysim.MerchantID, wechatpaysim.MerchantSerial, key, wechatpaysim.PublicKeyID, public)
	var verifier auth.Verifier = verifiers.NewSHA256WithRSAPubkeyVerifier(wechatpaysim.PublicKeyID, *public)
	if byCert {
		bare := try(core.NewClient(ctx, option.WithMerchantCredential(wechatpaysim.MerchantID, wechatpaysim.MerchantSerial, key), option.WithoutValidator(), wire)).or(t)
		list := downloader.NewCertificateDownloaderMgr(ctx)
		if err := list.RegisterDownloaderWithClient(ctx, bare, wechatpaysim.MerchantID, wechatpaysim.APIv3Key); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(list.Stop)
		trust = option.WithWechatPayAutoAuthCipherUsingDownloaderMgr(wechatpaysim.MerchantID, wechatpaysim.MerchantSerial, key, list)
		verifier = verifiers.NewSHA256WithRSAVerifier(list.GetCertificateVisitor(wechatpaysim.MerchantID))
	}
	client := try(core.NewClient(ctx, trust, wire)).or(t)
	return official{
		w, native.NativeApiService{Client: client}, refunddomestic.RefundsApiService{Client: client},
		try(notify.NewRSANotifyHandler(wechatpaysim.APIv3Key, verifier)).or(t),
	}
}

func (o official) prepay(number string) string {
	made, _, err := o.orders.Prepay(o.Context(), native.PrepayRequest{
		Appid: core.String(wechatpaysim.AppID), Mchid: core.String(wechatpaysim.MerchantID), OutTradeNo: core.String(number),
		Description: core.String("茶 & Tee"), NotifyUrl: core.String(noticeURL), Amount: &native.Amount{Total: core.Int64(8888)},
	})
	if err != nil {
		o.Fatal(err)
	}
	return *made.CodeUrl
}

func (o official) query(number string) *payments.Transaction {
	o.Helper()
	seen, _, err := o.orders.QueryOrderByOutTradeNo(o.Context(), native.QueryOrderByOutTradeNoRequest{
		OutTradeNo: core.String(number), Mchid: core.String(wechatpaysim.MerchantID),
	})
	if err != nil {
		o.Fatal(err)
	}
	return seen
}

func (o official) close(number string) error {
	_, err := o.orders.CloseOrder(o.Context(), native.CloseOrderRequest{OutTradeNo: core.String(number), Mchid: core.String(wechatpaysim.MerchantID)})
	return err
}

func (o official) repay(number, refund string, fen int64) (*refunddomestic.Refund, error) {
	r, _, err := o.refunds.Create(o.Context(), refunddomestic.CreateRequest{
		OutTradeNo: core.String(number), OutRefundNo: core.String(refund), NotifyUrl: core.String(noticeURL),
		Amount: &refunddomestic.AmountReq{Refund: core.Int64(fen), Total: core.Int64(8888), Currency: core.String("CNY")},
	})
	return r, err
}

func TestWechatpayGoPaysAndRepays(t *testing.T) {
	for name, byCert := range map[string]bool{"by public key": false, "by certificate": true} {
		t.Run(name, func(t *testing.T) {
			o := openOfficial(t, byCert)
			o.pay(scan(o.prepay("order-1")))
			seen := o.query("order-1")
			if *seen.TradeState != "SUCCESS" || *seen.TradeType != "NATIVE" || *seen.Amount.PayerTotal != 8888 || *seen.TransactionId == "" {
				t.Errorf("got %s", seen)
			}
			if err := o.close("order-1"); !core.IsAPIError(err, "ORDER_PAID") {
				t.Errorf("close what is paid: got %v", err)
			}

			r := try(o.repay("order-1", "refund-1", 888)).or(t)
			if *r.Amount.Refund != 888 || *r.OutRefundNo != "refund-1" {
				t.Errorf("got %s", r)
			}
			if again := try(o.repay("order-1", "refund-1", 888)).or(t); *again.RefundId != *r.RefundId {
				t.Errorf("the same again: got %s", again)
			}
			r, _, err := o.refunds.QueryByOutRefundNo(t.Context(), refunddomestic.QueryByOutRefundNoRequest{OutRefundNo: core.String("refund-1")})
			if err != nil || *r.Status != refunddomestic.STATUS_SUCCESS || *r.Amount.PayerRefund != 888 {
				t.Errorf("got %v %v", r, err)
			}
			if _, err := o.repay("order-1", "refund-2", 8001); !core.IsAPIError(err, "INVALID_REQUEST") {
				t.Errorf("repay more than is left: got %v", err)
			}
			if state := *o.query("order-1").TradeState; state != "REFUND" {
				t.Errorf("got %s, want REFUND", state)
			}
		})
	}
}

func TestWechatpayGoClosesWhatIsUnpaid(t *testing.T) {
	o := openOfficial(t, false)
	code := o.prepay("order-1")
	if state := *o.query("order-1").TradeState; state != "NOTPAY" {
		t.Errorf("got %s, want NOTPAY", state)
	}
	if err := o.close("order-1"); err != nil {
		t.Fatal(err)
	}
	if state := *o.query("order-1").TradeState; state != "CLOSED" {
		t.Errorf("got %s, want CLOSED", state)
	}
	if _, page := o.visit(scan(code)); payable(page) {
		t.Error("what is closed can be paid")
	}
}

func TestWechatpayGoBelievesTheNotices(t *testing.T) {
	for name, byCert := range map[string]bool{"by public key": false, "by certificate": true} {
		t.Run(name, func(t *testing.T) {
			o := openOfficial(t, byCert)
			o.pay(scan(o.prepay("order-1")))
			try(o.repay("order-1", "refund-1", 888)).or(t)
			notices := o.mail.collect(t, o.sim)
			for _, n := range notices {
				believe(t, n, func(r *http.Request) error {
					_, err := o.notices.ParseNotifyRequest(t.Context(), r, map[string]any{})
					return err
				})
			}
			if len(notices) != 2 {
				t.Fatalf("got %d notices, want 2: paid and repaid", len(notices))
			}
			var paid payments.Transaction
			m, err := o.notices.ParseNotifyRequest(t.Context(), notices[0].request(notices[0].body), &paid)
			if err != nil || m.EventType != "TRANSACTION.SUCCESS" || *paid.OutTradeNo != "order-1" || *paid.Amount.Total != 8888 {
				t.Errorf("got %v %s %v", m, paid, err)
			}
			var repaid refunddomestic.Refund
			if m, err = o.notices.ParseNotifyRequest(t.Context(), notices[1].request(notices[1].body), &repaid); err != nil ||
				m.EventType != "REFUND.SUCCESS" || *repaid.OutRefundNo != "refund-1" || *repaid.Amount.Refund != 888 {
				t.Errorf("got %v %s %v", m, repaid, err)
			}
		})
	}
}
