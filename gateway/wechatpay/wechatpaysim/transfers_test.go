package wechatpaysim_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

const transfers = "/v3/fund-app/mch-transfer/transfer-bills"

// bill is the body of a transfer of 19.90.
func (b *bench) bill(number string) string {
	return fmt.Sprintf(`{"appid":"%s","out_bill_no":"%s","transfer_scene_id":"1005","openid":"oUpF8uMuAJO","transfer_amount":1990,"transfer_remark":"三月",`+
		`"notify_url":"%s","transfer_scene_report_infos":[{"info_type":"岗位类型","info_content":"主播"}]}`, wechatpaysim.AppID, number, b.hook)
}

func (b *bench) transferState(number string) string {
	b.t.Helper()
	a := b.call("GET", transfers+"/out-bill-no/"+number, "")
	if a.status != 200 {
		return a.code()
	}
	state, _ := a.body["state"].(string)
	return state
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestATransferIsOfThePublishedForm(t *testing.T) {
	b := newBench(t)
	good := b.bill("HF0001")
	for name, change := range map[string][2]string{
		"an unknown field": {`"openid"`, `"colour":"red","openid"`}, "half a fen": {"1990", "19.5"}, "too little": {"1990", "9"},
		"no name":         {"1990", "200000"},
		"a name in clear": {`"openid"`, `"user_name":"张三","openid"`}, "no remark": {"三月", ""}, "a long remark": {"三月", strings.Repeat("三", 33)},
		"a wrong number": {"HF0001", "HF-0001"}, "nobody": {"oUpF8uMuAJO", ""}, "no reports": {`{"info_type":"岗位类型","info_content":"主播"}`, ""},
		"notify with a query": {b.hook, "https://shop.example/n?a=1"},
	} {
		if a := b.call("POST", transfers, strings.Replace(good, change[0], change[1], 1)); a.status != 400 || a.code() != "PARAM_ERROR" || a.signed != nil {
			t.Errorf("%s: got %d %s, want 400 PARAM_ERROR, signed", name, a.status, a.raw)
		}
	}
	b.want(b.call("POST", transfers, strings.Replace(good, "1005", "9999", 1)), 400, "INVALID_REQUEST")
	b.want(b.call("POST", transfers, strings.Replace(good, "oUpF8uMuAJO", wechatpaysim.UnknownOpenID, 1)), 400, "INVALID_REQUEST")
	b.want(b.call("GET", transfers+"/out-bill-no/HF0001", ""), 404, "NOT_FOUND")
	if n := len(b.sim.Books().Transfers); n != 0 {
		t.Errorf("%d transfers were made, want none", n)
	}
	first := b.want(b.call("POST", transfers, good), 200, "")
	again := b.want(b.call("POST", transfers, good), 200, "")
	if first.body["package_info"] == nil || first.body["package_info"] != again.body["package_info"] || first.body["transfer_bill_no"] != again.body["transfer_bill_no"] {
		t.Errorf("got %s, then %s", first.raw, again.raw)
	}
	b.want(b.call("POST", transfers, strings.Replace(good, "1990", "1991", 1)), 400, "INVALID_REQUEST")
	id, _ := first.body["transfer_bill_no"].(string)
	if a := b.want(b.call("GET", transfers+"/transfer-bill-no/"+id, ""), 200, ""); a.body["out_bill_no"] != "HF0001" || a.body["package_info"] != nil {
		t.Errorf("got %s", a.raw)
	}
}

func TestATransferEndsByItsReceiverByTimeOrByTheMerchant(t *testing.T) {
	cancel := func(b *bench) {
		if a := b.call("POST", transfers+"/out-bill-no/HF0001/cancel", "", func(r *http.Request) { r.Header.Del("Content-Type") }); a.status != 200 || a.body["state"] != "CANCELING" {
			b.t.Errorf("got %d %s", a.status, a.raw)
		}
	}
	confirm := func(b *bench) { b.must(b.sim.ConfirmTransfer("HF0001")) }
	day := func(b *bench) { b.clock.Advance(24 * time.Hour) }
	for _, c := range []struct {
		name  string
		fault wechatpaysim.Kind
		first string
		do    func(*bench)
		then  string
		last  string // ten minutes later
	}{
		{"confirmed", "", "WAIT_USER_CONFIRM", confirm, "SUCCESS", "SUCCESS"},
		{"confirmed, slowly", wechatpaysim.TransferPending, "WAIT_USER_CONFIRM", confirm, "TRANSFERING", "SUCCESS"},
		{"confirmed in vain", wechatpaysim.TransferFails, "WAIT_USER_CONFIRM", confirm, "FAIL", "FAIL"},
		{"not confirmed", "", "WAIT_USER_CONFIRM", day, "FAIL", "FAIL"},
		{"taken back", "", "WAIT_USER_CONFIRM", cancel, "CANCELLED", "CANCELLED"},
		{"taken back, slowly", wechatpaysim.TransferPending, "WAIT_USER_CONFIRM", cancel, "CANCELING", "CANCELLED"},
		{"taken back early", wechatpaysim.TransferAccepted, "ACCEPTED", cancel, "CANCELLED", "CANCELLED"},
		{"waiting late", wechatpaysim.TransferAccepted, "ACCEPTED", func(*bench) {}, "ACCEPTED", "WAIT_USER_CONFIRM"},
		{"late", wechatpaysim.LateRequest, "NOT_FOUND", func(*bench) {}, "NOT_FOUND", "WAIT_USER_CONFIRM"},
		{"lost", wechatpaysim.LostRequest, "NOT_FOUND", func(*bench) {}, "NOT_FOUND", "NOT_FOUND"},
	} {
		b := newBench(t)
		b.sim.Inject(wechatpaysim.Fault{Call: "transfer.create", Kind: c.fault})
		b.call("POST", transfers, b.bill("HF0001"))
		got := [3]string{b.transferState("HF0001")}
		c.do(b)
		got[1] = b.transferState("HF0001")
		b.clock.Advance(10 * time.Minute)
		got[2] = b.transferState("HF0001")
		if want := [3]string{c.first, c.then, c.last}; got != want {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
		notices := b.deliver()
		if ended := got[2] == "SUCCESS" || got[2] == "FAIL" || got[2] == "CANCELLED"; ended != (len(notices) == 1) {
			t.Errorf("%s: %d notices", c.name, len(notices))
		} else if ended && (notices[0].Event != "MCHTRANSFER.BILL.FINISHED" || notices[0].Plain["state"] != got[2] || notices[0].Plain["mch_id"] != wechatpaysim.MerchantID) {
			t.Errorf("%s: got %+v", c.name, notices[0])
		}
	}
}

func TestWhatIsConfirmedCannotBeTakenBack(t *testing.T) {
	b := newBench(t)
	b.want(b.call("POST", transfers, b.bill("HF0001")), 200, "")
	b.must(b.sim.ConfirmTransfer("HF0001"))
	b.want(b.call("POST", transfers+"/out-bill-no/HF0001/cancel", ""), 400, "INVALID_REQUEST")
	if b.sim.ConfirmTransfer("HF0001") == nil || b.sim.LapseTransfer("HF0001") == nil || b.sim.LapseTransfer("HF9") == nil {
		t.Error("what is over was decided again")
	}
	b.clock.Advance(31 * 24 * time.Hour)
	b.want(b.call("GET", transfers+"/out-bill-no/HF0001", ""), 404, "NOT_FOUND")
}

func TestAReceiverConfirmsOnHisPhone(t *testing.T) {
	b := newBench(t)
	a := b.want(b.call("POST", transfers, b.bill("HF0001")), 200, "")
	pack, _ := a.body["package_info"].(string)
	page := read(t, b.url+"/transfer?lang=zh&package="+url.QueryEscape(pack))
	for _, want := range []string{"¥19.90", "三月", `value="confirm"`, "HF0001"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	res, err := http.PostForm(b.url+"/transfer/HF0001?lang=zh", url.Values{"action": {"confirm"}})
	b.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	b.must(err)
	if !strings.Contains(string(text), "已收款") || strings.Contains(string(text), `value="confirm"`) || b.transferState("HF0001") != "SUCCESS" {
		t.Errorf("got\n%s", text)
	}
	if control := read(t, b.url+"/_sim/"); !strings.Contains(control, "HF0001") {
		t.Errorf("the control page: got\n%s", control)
	}
}
