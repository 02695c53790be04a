package alipaysim_test

import (
	"crypto/md5"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// transferBench is a bench in certificate mode, as transfers need it.
func transferBench(t *testing.T) *bench { return benchWith(t, alipaysim.DefaultCertificates()) }

func serial(t *testing.T, text string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String()))
	return hex.EncodeToString(sum[:])
}

func (b *bench) fund(method string, pairs ...string) answer {
	b.t.Helper()
	papers := alipaysim.DefaultCertificates()
	return b.send(b.form("alipay.fund.trans."+method, biz(pairs...), func(f url.Values) {
		f.Set("app_cert_sn", serial(b.t, papers.App))
		f.Set("alipay_root_cert_sn", serial(b.t, papers.Root))
	}))
}

// transfer asks for 19.90 to somebody.
func (b *bench) transfer(number string, more ...string) answer {
	b.t.Helper()
	return b.fund("uni.transfer", append([]string{
		"out_biz_no", number, "trans_amount", "19.90", "product_code", "TRANS_ACCOUNT_NO_PWD", "biz_scene", "DIRECT_TRANSFER",
		"order_title", "三月", "remark", "三月", "payee_info", `{"identity":"2088123412341234","identity_type":"ALIPAY_USER_ID"}`,
	}, more...)...)
}

func (b *bench) transferStatus(number string) string {
	b.t.Helper()
	a := b.fund("common.query", "out_biz_no", number, "product_code", "TRANS_ACCOUNT_NO_PWD", "biz_scene", "DIRECT_TRANSFER")
	if a.err != nil || a.node["sub_code"] != "" {
		return a.code()
	}
	return a.node["status"]
}

func TestATransferIsOfThePublishedForm(t *testing.T) {
	b := transferBench(t)
	for _, c := range []struct {
		code string
		more []string
	}{
		{"INVALID_PARAMETER", []string{"trans_amount", "1.234"}},
		{"INVALID_PARAMETER", []string{"trans_amount", "0"}},
		{"EXCEED_LIMIT_SM_MIN_AMOUNT", []string{"trans_amount", "0.09"}},
		{"INVALID_PARAMETER", []string{"out_biz_no", ""}},
		{"INVALID_PARAMETER", []string{"product_code", "STD_RED_PACKET"}},
		{"INVALID_PARAMETER", []string{"biz_scene", "PERSONAL_PAY"}},
		{"INVALID_PARAMETER", []string{"remark", strings.Repeat("a", 201)}},
		{"INVALID_PARAMETER", []string{"colour", "red"}},
		{"INVALID_PARAMETER", []string{"payee_info", "somebody"}},
		{"INVALID_PARAMETER", []string{"payee_info", `{"identity":"2088","identity_type":"ALIPAY_USER_ID"}`}},
		{"INVALID_PARAMETER", []string{"payee_info", `{"identity":"13800000000","identity_type":"ALIPAY_LOGON_ID"}`}},
		{"INVALID_PARAMETER", []string{"payee_info", `{"identity":"13800000000","identity_type":"PHONE","name":"张三"}`}},
		{"INVALID_PARAMETER", []string{"payee_info", `{"identity":"2088123412341234","identity_type":"ALIPAY_USER_ID","colour":"red"}`}},
		{"PAYEE_NOT_EXIST", []string{"payee_info", `{"identity":"` + alipaysim.UnknownUserID + `","identity_type":"ALIPAY_USER_ID"}`}},
	} {
		b.want(strings.Join(c.more, "="), b.transfer("out1", c.more...), c.code)
	}
	if got := b.transferStatus("out1"); got != "ORDER_NOT_EXIST" || len(b.sim.Books().Transfers) != 0 {
		t.Errorf("what was refused exists: %s", got)
	}
	if a := b.transfer("out1"); a.node["status"] != "SUCCESS" || a.node["order_id"] == "" || a.node["out_biz_no"] != "out1" {
		t.Errorf("got %s", a.raw)
	}
}

func TestANumberIsOneTransfer(t *testing.T) {
	b := transferBench(t)
	first := b.transfer("out1")
	if again := b.transfer("out1"); again.node["order_id"] != first.node["order_id"] || again.node["order_id"] == "" {
		t.Errorf("got %s, then %s", first.raw, again.raw)
	}
	b.want("another amount", b.transfer("out1", "trans_amount", "20"), "PAYMENT_INFO_INCONSISTENCY")
	b.want("another remark", b.transfer("out1", "remark", "四月"), "PAYMENT_INFO_INCONSISTENCY")
	if all := b.sim.Books().Transfers; len(all) != 1 || all[0].Amount != 1990 {
		t.Errorf("got %+v", all)
	}
}

func TestInPublicKeyModeNothingIsTransferred(t *testing.T) {
	b := newBench(t)
	a := b.send(b.form("alipay.fund.trans.uni.transfer", biz("out_biz_no", "out1"), nil))
	b.want("transfer", a, "isv.missing-app-cert-sn")
}

func TestFaultsOfATransfer(t *testing.T) {
	for kind, want := range map[alipaysim.Kind][]string{ // at once, ten minutes and three days later
		"":                          {"SUCCESS", "SUCCESS", "SUCCESS"},
		alipaysim.LostAnswer:        {"SUCCESS", "SUCCESS", "SUCCESS"},
		alipaysim.LostRequest:       {"ORDER_NOT_EXIST", "ORDER_NOT_EXIST", "ORDER_NOT_EXIST"},
		alipaysim.LateRequest:       {"ORDER_NOT_EXIST", "SUCCESS", "SUCCESS"},
		alipaysim.SystemError:       {"ORDER_NOT_EXIST", "ORDER_NOT_EXIST", "ORDER_NOT_EXIST"},
		alipaysim.BalanceShort:      {"ORDER_NOT_EXIST", "ORDER_NOT_EXIST", "ORDER_NOT_EXIST"},
		alipaysim.TransferPending:   {"DEALING", "SUCCESS", "SUCCESS"},
		alipaysim.TransferFails:     {"DEALING", "FAIL", "FAIL"},
		alipaysim.TransferReturned:  {"SUCCESS", "SUCCESS", "REFUND"},
		"system_error_after_effect": {"SUCCESS", "SUCCESS", "SUCCESS"},
		alipaysim.Unsigned:          {"SUCCESS", "SUCCESS", "SUCCESS"},
		alipaysim.ForgedAnswer:      {"SUCCESS", "SUCCESS", "SUCCESS"},
	} {
		b := transferBench(t)
		b.sim.Inject(alipaysim.Fault{Call: "transfer", Kind: kind})
		a := b.transfer("out1")
		if cut := kind == alipaysim.LostAnswer || kind == alipaysim.LostRequest || kind == alipaysim.LateRequest; cut != (a.err != nil) {
			t.Errorf("%s: got %s, %v", kind, a.raw, a.err)
		}
		for i, d := range []time.Duration{0, 10 * time.Minute, 3 * 24 * time.Hour} {
			b.advance(d)
			if got := b.transferStatus("out1"); got != want[i] {
				t.Errorf("%s: got %s, want %s at step %d", kind, got, want[i], i)
			}
		}
	}
}

func TestTheAppIsToldWhatBecameOfATransfer(t *testing.T) {
	b := transferBench(t)
	b.transfer("out1")
	b.must(b.sim.ReturnTransfer("out1"))
	got := b.deliver()
	if len(got) != 2 {
		t.Fatalf("got %d messages, want 2", len(got))
	}
	for i, n := range got {
		var about map[string]string
		if err := json.Unmarshal([]byte(n.form.Get("biz_content")), &about); err != nil {
			t.Fatal(err)
		}
		if n.form.Get("msg_method") != "alipay.fund.trans.order.changed" || about["out_biz_no"] != "out1" || about["status"] != []string{"SUCCESS", "REFUND"}[i] {
			t.Errorf("got %s", n.form)
		}
	}
	for _, err := range []error{b.sim.ReturnTransfer("out1"), b.sim.FailTransfer("out1"), b.sim.SettleTransfer("out2")} {
		if err == nil {
			t.Error("what is over began again")
		}
	}
}
