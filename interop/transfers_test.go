package interop

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-pay/gopay"
	gopayalipay "github.com/go-pay/gopay/alipay"
	wechatv3 "github.com/go-pay/gopay/wechat/v3"
	"github.com/smartwalle/alipay/v3"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

func TestGopayTransfersAtAlipay(t *testing.T) {
	mail := newMailbox(t)
	s, papers := certifiedGopay(t, mail)
	transfer := func(number, to string) (*gopayalipay.FundTransUniTransferResponse, error) {
		return s.sdk.FundTransUniTransfer(t.Context(), gopay.BodyMap{
			"out_biz_no": number, "trans_amount": "88.88", "product_code": "TRANS_ACCOUNT_NO_PWD", "biz_scene": "DIRECT_TRANSFER",
			"order_title": "三月", "remark": "三月", "payee_info": gopay.BodyMap{"identity": to, "identity_type": "ALIPAY_USER_ID"},
		})
	}
	made := try(transfer("out1", "2088123412341234")).or(t).Response
	again := try(transfer("out1", "2088123412341234")).or(t).Response
	if made.Status != "SUCCESS" || made.OrderId == "" || made.OrderId != again.OrderId {
		t.Errorf("got %+v, then %+v", made, again)
	}
	if _, err := transfer("out2", alipaysim.UnknownUserID); refusedAs(err) != "PAYEE_NOT_EXIST" {
		t.Errorf("to nobody: got %v", err)
	}
	ask := func(number string) (*gopayalipay.FundTransCommonQueryResponse, error) {
		return s.sdk.FundTransCommonQuery(t.Context(), gopay.BodyMap{
			"out_biz_no": number, "product_code": "TRANS_ACCOUNT_NO_PWD", "biz_scene": "DIRECT_TRANSFER"})
	}
	if seen := try(ask("out1")).or(t).Response; seen.Status != "SUCCESS" || seen.TransAmount != "88.88" {
		t.Errorf("got %+v", seen)
	}
	if _, err := ask("out2"); refusedAs(err) != "ORDER_NOT_EXIST" {
		t.Errorf("what was refused: got %v", err)
	}
	for _, n := range mail.collect(t, s.sim) {
		believeForm(t, n, func(form url.Values) error {
			bm := gopay.BodyMap{}
			for name := range form {
				bm.Set(name, form.Get(name))
			}
			ok, err := gopayalipay.VerifySignWithCert([]byte(papers.alipay), bm)
			if err == nil && !ok {
				err = errors.New("it does not verify")
			}
			return err
		})
	}
}

func TestSmartwalleTransfersAtAlipay(t *testing.T) {
	s := certifiedSmartwalle(t, newMailbox(t))
	made := try(s.sdk.FundTransUniTransfer(t.Context(), alipay.FundTransUniTransfer{
		OutBizNo: "out1", TransAmount: "88.88", ProductCode: "TRANS_ACCOUNT_NO_PWD", BizScene: "DIRECT_TRANSFER", OrderTitle: "三月", Remark: "三月",
		PayeeInfo: &alipay.PayeeInfo{Identity: "13800000000", IdentityType: "ALIPAY_LOGON_ID", Name: "张三"},
	})).or(t)
	seen := try(s.sdk.FundTransCommonQuery(t.Context(), alipay.FundTransCommonQuery{
		OutBizNo: "out1", ProductCode: "TRANS_ACCOUNT_NO_PWD", BizScene: "DIRECT_TRANSFER",
	})).or(t)
	if made.IsFailure() || made.Status != "SUCCESS" || seen.IsFailure() || seen.Status != "SUCCESS" || seen.TransAmount != "88.88" || seen.OrderId != made.OrderId {
		t.Errorf("got %+v and %+v", made, seen)
	}
}

// bill is the body of a transfer; name is encrypted by gopay.
func (g gopayWechat) bill(number string, fen int, name string) gopay.BodyMap {
	b := gopay.BodyMap{
		"appid": wechatpaysim.AppID, "out_bill_no": number, "transfer_scene_id": "1005", "openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o",
		"transfer_amount": fen, "transfer_remark": "三月", "notify_url": noticeURL,
		"transfer_scene_report_infos": []gopay.BodyMap{{"info_type": "岗位类型", "info_content": "主播"}},
	}
	if name != "" {
		b.Set("user_name", try(g.sdk.V3EncryptText(name)).or(g.T))
	}
	return b
}

func (g gopayWechat) wantTransfer(number, want string) {
	g.Helper()
	seen := try(g.sdk.V3TransferBillsMerchantQuery(g.Context(), number)).or(g.T)
	if seen.Code != wechatv3.Success || seen.Response.State != want || seen.Response.Mchid != wechatpaysim.MerchantID {
		g.Errorf("got %+v, want %s", seen, want)
	}
}

func TestGopayTransfersAtWechat(t *testing.T) {
	for name, byCert := range map[string]bool{"by public key": false, "by certificate": true} {
		t.Run(name, func(t *testing.T) {
			g := openGopayWechat(t, byCert)
			made := try(g.sdk.V3TransferBills(t.Context(), g.bill("out1", 300_000, "张三"))).or(t)
			if made.Code != wechatv3.Success || made.Response.State != "WAIT_USER_CONFIRM" || made.Response.PackageInfo == "" {
				t.Fatalf("got %+v", made)
			}
			phone, page := g.visit("https://wechat.example/transfer?package=" + url.QueryEscape(made.Response.PackageInfo))
			if !strings.Contains(page, `value="confirm"`) {
				t.Fatalf("the phone shows\n%s", content(page))
			}
			g.read(try(g.browser.PostForm(phone.String(), url.Values{"action": {"confirm"}})).or(t))
			g.wantTransfer("out1", "SUCCESS")
			if late := try(g.sdk.V3TransferBillsCancel(t.Context(), "out1")).or(t); late.ErrResponse.Code != "INVALID_REQUEST" {
				t.Errorf("take back what is confirmed: got %+v", late)
			}

			made = try(g.sdk.V3TransferBills(t.Context(), g.bill("out2", 100, ""))).or(t)
			if back := try(g.sdk.V3TransferBillsCancel(t.Context(), "out2")).or(t); made.Code != wechatv3.Success || back.Code != wechatv3.Success || back.Response.State != "CANCELING" {
				t.Errorf("got %+v and %+v", made, back)
			}
			g.wantTransfer("out2", "CANCELLED")
			if none := try(g.sdk.V3TransferBillsMerchantQuery(t.Context(), "out3")).or(t); none.ErrResponse.Code != "NOT_FOUND" {
				t.Errorf("got %+v", none)
			}
			for i, n := range g.mail.collect(t, g.sim) {
				believe(t, n, func(r *http.Request) error {
					m, err := wechatv3.V3ParseNotify(r)
					if err != nil {
						return err
					}
					return m.VerifySignByPKMap(g.sdk.WxPublicKeyMap())
				})
				m := try(wechatv3.V3ParseNotify(n.request(n.body))).or(t)
				told := try(m.DecryptTransferBillsNotifyCipherText(wechatpaysim.APIv3Key)).or(t)
				if want := []string{"SUCCESS", "CANCELLED"}[i]; told.State != want || told.MchId != wechatpaysim.MerchantID {
					t.Errorf("got %+v, want %s", told, want)
				}
			}
		})
	}
}
