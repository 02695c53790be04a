package holdfast

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

func newAlipayDisbursing(t *testing.T, in surroundings) disbursing {
	papers := alipaysim.DefaultCertificates()
	sim, err := alipaysim.New(alipaysim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil), Certificates: papers, AppURL: hookAddress})
	if err != nil {
		t.Fatal(err)
	}
	sim.SetFaults(alipaysim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, GBKNotice: 0.3,
		LostAnswer: 0.1, LostRequest: 0.1, LateTransfer: 0.2, Unavailable: 0.05, SystemError: 0.1, Unsigned: 0.05, ForgedAnswer: 0.1, Recoded: 0.05,
		BalanceShort: 0.1, TransferPending: 0.2, TransferFails: 0.2, TransferReturned: 0.3,
	})
	g, err := alipay.New(alipay.Options{
		AppID: alipaysim.DefaultAppID, SellerID: alipaysim.DefaultSellerID, PrivateKey: alipaysim.DefaultAppKey,
		Certificates: &alipay.Certificates{App: papers.App, Root: papers.Root, Alipay: []string{papers.Alipay}},
		BaseURL:      simAddress + "/gateway.do", NotifyURL: hookAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return disbursing{
		gateway: g, sim: sim, currency: "CNY",
		to:   []string{"user_id:2088123412341234", "open_id:074a1CcTG1LelxKe4xQC0zgNdId0nxi95b5lsNpazWYoCo5", "logon_id:13800000000:张三", "user_id:" + alipaysim.UnknownUserID},
		calm: func() { sim.SetFaults(alipaysim.Faults{}) },
		left: func() map[string]outflow {
			all := map[string]outflow{}
			for _, x := range sim.Books().Transfers {
				if x.Status != "DEALING" && x.Status != "SUCCESS" {
					x.Amount = 0
				}
				was := all[x.Number]
				all[x.Number] = outflow{was.taken + 1, was.out + x.Amount}
			}
			return all
		},
	}
}

func newWechatpayDisbursing(t *testing.T, in surroundings) disbursing {
	sim := wechatpaysim.New(wechatpaysim.Config{Seed: in.seed, Now: in.now, Client: over(in.hook, nil)})
	sim.SetFaults(wechatpaysim.Faults{
		DelayNotice: time.Minute, LoseNotice: 0.2, DuplicateNotice: 0.3, ReorderNotice: 0.2, ForgeNotice: 0.3, ProbeNotice: 0.2, SkewedNotice: 0.2,
		LostAnswer: 0.1, LostRequest: 0.1, LateTransfer: 0.2, ErrorAfterEffect: 0.08, Unavailable: 0.08, RateLimited: 0.05, UnsignedRefusal: 0.15,
		UnsignedAnswer: 0.05, ReencodedAnswer: 0.05, ProbeAnswer: 0.05, SkewedAnswer: 0.05, KeySwitch: 0.5, OldCodes: 0.3,
		NotEnough: 0.1, TransferAccepted: 0.2, TransferPending: 0.2, TransferFails: 0.2,
	})
	g, err := wechatpay.New(wechatpay.Options{
		MerchantID: wechatpaysim.MerchantID, AppID: wechatpaysim.AppID, MerchantSerial: wechatpaysim.MerchantSerial,
		MerchantKey: wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile), APIv3Key: wechatpaysim.APIv3Key,
		PublicKeyID: wechatpaysim.PublicKeyID, PublicKey: wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile),
		Certificates:  [][]byte{wechatpaysim.KeyFile(wechatpaysim.CertificateFile)},
		TransferScene: "1005", TransferReports: []wechatpay.TransferReport{{Type: "岗位类型", Content: "主播"}},
		BaseURL: simAddress, NotifyURL: hookAddress, HTTPClient: over(sim, in.down), Now: in.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	luck, willing := rand.New(rand.NewPCG(in.seed, 17)), map[string]bool{}
	return disbursing{
		gateway: g, sim: sim, currency: "CNY",
		to:   []string{"oUpF8uMuAJO_M2pxb1Q9zNjWeS6o", "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o:张三", "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o:" + wechatpaysim.WrongName, wechatpaysim.UnknownOpenID},
		calm: func() { sim.SetFaults(wechatpaysim.Faults{}) },
		// Some never confirm.
		receive: func(p Payout) {
			if _, asked := willing[p.ID]; !asked {
				willing[p.ID] = luck.IntN(3) > 0
			}
			if willing[p.ID] && p.State != flow.PayoutHeld {
				_ = sim.ConfirmTransfer(p.ID) // there may be nothing to confirm
			}
		},
		left: func() map[string]outflow {
			all := map[string]outflow{}
			for _, x := range sim.Books().Transfers {
				if x.State == "FAIL" || x.State == "CANCELLED" {
					x.Amount = 0
				}
				was := all[x.OutBillNo]
				all[x.OutBillNo] = outflow{was.taken + 1, was.out + x.Amount}
			}
			return all
		},
	}
}
