package wechatpaysim_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

func TestOnlyTheMerchantsOwnRequestsAreTaken(t *testing.T) {
	b := newBench(t)
	set := func(from, to string) edit {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), from, to, 1))
		}
	}
	for name, e := range map[string]edit{
		"no authorization":   func(r *http.Request) { r.Header.Del("Authorization") },
		"another scheme":     set("WECHATPAY2-SHA256-RSA2048", "WECHATPAY2-SM2-WITH-SM3"),
		"another merchant":   set(wechatpaysim.MerchantID, "1900000002"),
		"another serial":     set(wechatpaysim.MerchantSerial, "00"),
		"another nonce":      set("NONCE1", "NONCE2"),
		"a broken signature": set(`signature="`, `signature="AAAA`),
		"two nonces":         set(`nonce_str="NONCE1"`, `nonce_str="NONCE1",nonce_str="NONCE1"`),
		"no quotes":          set(`nonce_str="NONCE1"`, `nonce_str=NONCE1`),
		"another path":       func(r *http.Request) { r.URL.Path = "/v3/pay/transactions/app" },
	} {
		if a := b.call("POST", "/v3/pay/transactions/native", b.order("HF0001", ""), e); a.status != 401 || a.code() != "SIGN_ERROR" || a.signed != nil {
			t.Errorf("%s: got %d %s, signed: %v; want 401 SIGN_ERROR, signed", name, a.status, a.raw, a.signed)
		}
	}
	for _, skew := range []time.Duration{-301 * time.Second, 301 * time.Second} {
		b.skew = skew
		b.want(b.native("HF0001", ""), 401, "SIGN_ERROR")
	}
	if n := len(b.sim.Books().Orders); n != 0 {
		t.Errorf("%d orders were made, want none", n)
	}
	b.skew = 299 * time.Second
	b.want(b.native("HF0001", ""), 200, "")
}

func TestWhatIsNotPublishedIsRefused(t *testing.T) {
	b := newBench(t)
	good := b.order("HF0001", "")
	for name, body := range map[string]string{
		"not JSON":              `amount=1`,
		"two objects":           good + "{}",
		"an unknown field":      b.order("HF0001", `,"colour":"red"`),
		"an unknown field deep": strings.Replace(good, `"total":990`, `"total":990,"tip":1`, 1),
		"half a fen":            strings.Replace(good, "990", "990.5", 1),
		"a text for a number":   strings.Replace(good, "990", `"990"`, 1),
		"nothing":               strings.Replace(good, "990", "0", 1),
		"less than nothing":     strings.Replace(good, "990", "-1", 1),
		"no amount":             strings.Replace(good, `"total":990,`, "", 1),
		"another currency":      strings.Replace(good, "CNY", "USD", 1),
		"a short number":        b.order("HF001", ""),
		"a long number":         b.order(strings.Repeat("x", 33), ""),
		"a wrong number":        b.order("HF 0001", ""),
		"no description":        strings.Replace(good, "Tea, hot", "", 1),
		"a long description":    strings.Replace(good, "Tea, hot", strings.Repeat("茶", 43), 1),
		"notify with a query":   strings.Replace(good, b.hook, "https://shop.example/n?a=1", 1),
		"notify in clear":       strings.Replace(good, b.hook, "http://shop.example/n", 1),
		"an end in a minute":    b.order("HF0001", `,"time_expire":"2026-03-01T17:00:59+08:00"`),
		"an end in eight days":  b.order("HF0001", `,"time_expire":"2026-03-09T17:00:00+08:00"`),
		"an end without offset": b.order("HF0001", `,"time_expire":"2026-03-01T18:00:00"`),
		"a payer by native":     b.order("HF0001", `,"payer":{"openid":"x"}`),
	} {
		if a := b.call("POST", "/v3/pay/transactions/native", body); a.status != 400 || a.code() != "PARAM_ERROR" || a.signed != nil {
			t.Errorf("%s: got %d %s, want 400 PARAM_ERROR, signed", name, a.status, a.raw)
		}
	}
	b.want(b.call("POST", "/v3/pay/transactions/jsapi", good), 400, "PARAM_ERROR")
	b.want(b.call("POST", "/v3/pay/transactions/h5", good), 400, "PARAM_ERROR")
	b.want(b.call("POST", "/v3/pay/transactions/native", strings.Replace(good, wechatpaysim.AppID, "wx9", 1)), 400, "APPID_MCHID_NOT_MATCH")
	b.want(b.call("POST", "/v3/pay/transactions/native", strings.Replace(good, wechatpaysim.MerchantID, "19", 1)), 400, "MCH_NOT_EXISTS")
	b.want(b.call("GET", "/v3/pay/transactions/out-trade-no/HF0001?mchid=19", ""), 400, "PARAM_ERROR")
	b.want(b.call("GET", "/v3/pay/transactions/out-trade-no/HF0001?mchid=1900000001&x=1", ""), 400, "PARAM_ERROR")
	b.want(b.call("GET", "/v3/nothing", ""), 404, "NOT_FOUND")
	noType := func(r *http.Request) { r.Header.Del("Content-Type") }
	b.want(b.call("POST", "/v3/pay/transactions/native", good, noType), 400, "PARAM_ERROR")
	if n := len(b.sim.Books().Orders); n != 0 {
		t.Errorf("%d orders were made, want none", n)
	}
	b.want(b.native("HF0001", `,"attach":"a","goods_tag":"WXG","support_fapiao":true,"settle_info":{"profit_sharing":false},"scene_info":{"payer_client_ip":"::1"}`), 200, "")
}

func TestANumberIsOneOrder(t *testing.T) {
	b := newBench(t)
	first := b.want(b.native("HF0001", ""), 200, "").body["code_url"]
	if again := b.want(b.native("HF0001", ""), 200, "").body["code_url"]; again != first {
		t.Errorf("got %v, want %v again", again, first)
	}
	b.clock.Advance(2 * time.Hour)
	if renewed := b.want(b.native("HF0001", ""), 200, "").body["code_url"]; renewed == first {
		t.Error("after two hours: got the same code, want a new one")
	}
	a := b.want(b.native("HF0001", `,"attach":"x"`), 403, "OUT_TRADE_NO_USED")
	if id := a.header.Get("Request-Id"); !strings.HasSuffix(id, "-268498688") {
		t.Errorf("request id: got %q", id)
	}
	if err := b.sim.Pay("HF0001"); err != nil {
		t.Fatal(err)
	}
	b.want(b.native("HF0001", ""), 400, "ORDER_PAID")
	if b.sim.Pay("HF0001") == nil {
		t.Error("it was paid twice")
	}
	b.want(b.native("HF0002", ""), 200, "")
	b.want(b.close("HF0002"), 204, "")
	b.want(b.native("HF0002", ""), 400, "ORDER_CLOSED")
}

func TestAnOrderEndsByItsTimeAndByClosing(t *testing.T) {
	b := newBench(t)
	b.want(b.native("HF0001", `,"time_expire":"2026-03-01T17:05:00+08:00"`), 200, "")
	b.want(b.native("HF0002", ""), 200, "")
	b.clock.Advance(5 * time.Minute)
	if b.sim.Pay("HF0001") == nil {
		t.Error("it was paid after its end")
	}
	b.want(b.native("HF0001", `,"time_expire":"2026-03-01T17:05:00+08:00"`), 400, "PARAM_ERROR")
	if got := b.want(b.query("HF0001"), 200, "").body["trade_state"]; got != "NOTPAY" {
		t.Errorf("after its end: got %v, want NOTPAY until it is closed", got)
	}
	for _, number := range []string{"HF0001", "HF0002", "HF0002"} {
		b.want(b.close(number), 204, "")
		if got := b.want(b.query(number), 200, "").body["trade_state"]; got != "CLOSED" {
			t.Errorf("got %v, want CLOSED", got)
		}
	}
	if b.sim.Pay("HF0002") == nil {
		t.Error("it was paid after it was closed")
	}
	b.paid("HF0003")
	b.want(b.close("HF0003"), 400, "ORDER_PAID")
	b.want(b.close("HF0009"), 404, "ORDER_NOT_EXIST")
	b.want(b.query("HF0009"), 404, "ORDER_NOT_EXIST")
}

func TestRefundsAddUpToWhatWasPaid(t *testing.T) {
	b := newBench(t)
	b.want(b.refund("HF0001", "RF1", 100), 404, "RESOURCE_NOT_EXISTS")
	b.want(b.native("HF0001", ""), 200, "")
	b.want(b.refund("HF0001", "RF1", 100), 400, "INVALID_REQUEST")
	if err := b.sim.Pay("HF0001"); err != nil {
		t.Fatal(err)
	}
	b.want(b.refund("HF0001", "RF1", 0), 400, "PARAM_ERROR")
	first := b.want(b.refund("HF0001", "RF1", 600), 200, "")
	if first.body["status"] != "PROCESSING" {
		t.Errorf("got %v, want PROCESSING", first.body["status"])
	}
	if again := b.want(b.refund("HF0001", "RF1", 600), 200, ""); again.body["refund_id"] != first.body["refund_id"] || again.body["status"] != "SUCCESS" {
		t.Errorf("again: got %s, want the same, done", again.raw)
	}
	b.want(b.refund("HF0001", "RF1", 500), 400, "INVALID_REQUEST")
	b.want(b.refund("HF0001", "RF2", 391), 400, "INVALID_REQUEST")
	b.want(b.refund("HF0001", "RF2", 390), 200, "")
	if got := b.want(b.query("HF0001"), 200, "").body["trade_state"]; got != "REFUND" {
		t.Errorf("got %v, want REFUND", got)
	}
	if err := b.sim.CloseRefund("RF2"); err != nil {
		t.Fatal(err)
	}
	b.want(b.refund("HF0001", "RF3", 390), 200, "")
	if err := b.sim.BreakRefund("RF3"); err != nil {
		t.Fatal(err)
	}
	b.want(b.refund("HF0001", "RF4", 1), 400, "INVALID_REQUEST")
	o := b.sim.Books().Orders[0]
	if o.Refunded != 600 || o.Abnormal != 390 || o.Captured != 990 {
		t.Errorf("got %+v, want 600 of 990 refunded and 390 abnormal", o)
	}
	b.want(b.call("GET", "/v3/refund/domestic/refunds/RF9", ""), 404, "RESOURCE_NOT_EXISTS")
}

func TestCertificatesCanBeDownloadedAndFollowEachOther(t *testing.T) {
	b := newBench(t)
	list := func() (serials []string) {
		var got struct {
			Data []struct {
				SerialNo           string `json:"serial_no"`
				EncryptCertificate sealed `json:"encrypt_certificate"`
			}
		}
		if err := json.Unmarshal([]byte(b.want(b.call("GET", "/v3/certificates", ""), 200, "").raw), &got); err != nil {
			t.Fatal(err)
		}
		for i, d := range got.Data {
			name := []string{wechatpaysim.CertificateFile, wechatpaysim.NextCertificateFile}[i]
			plain, err := d.EncryptCertificate.open()
			if err != nil || string(plain) != string(wechatpaysim.KeyFile(name)) {
				t.Errorf("certificate %d: %v, or not the one of the file", i, err)
			}
			serials = append(serials, d.SerialNo)
		}
		return serials
	}
	one := list()
	b.sim.Rotate()
	two := list()
	if len(one) != 1 || len(two) != 2 || two[0] != one[0] {
		t.Fatalf("got %v and %v, want one, and it and another", one, two)
	}
	for _, serial := range append(two, wechatpaysim.PublicKeyID) {
		ask := func(r *http.Request) { r.Header.Set("Wechatpay-Serial", serial) }
		if a := b.want(b.call("GET", "/v3/certificates", "", ask), 200, ""); a.header.Get("Wechatpay-Serial") != serial {
			t.Errorf("asked for %s: got %s", serial, a.header.Get("Wechatpay-Serial"))
		}
	}
}

func TestTheBillHoldsTheDay(t *testing.T) {
	b := newBench(t) // 2026-03-01 17:00 in Beijing
	b.paid("HF0001")
	b.paid("HF0002")
	b.want(b.refund("HF0001", "RF1", 330), 200, "")
	b.want(b.native("HF0003", ""), 200, "") // unpaid
	const path = "/v3/bill/tradebill?bill_date=2026-03-01&bill_type=ALL"
	b.want(b.call("GET", path, ""), 400, "STATEMENT_CREATING")
	b.clock.Advance(17 * time.Hour) // 10:00 on the day after
	a := b.want(b.call("GET", path, ""), 200, "")
	b.want(b.call("GET", "/v3/bill/tradebill?bill_date=2026-02-28", ""), 400, "NO_STATEMENT_EXIST")
	b.want(b.call("GET", "/v3/bill/tradebill?bill_date=28.2.2026", ""), 400, "PARAM_ERROR")

	url, _ := a.body["download_url"].(string)
	file := b.call("GET", strings.TrimPrefix(url, b.url), "")
	sum := sha1.Sum([]byte(file.raw))
	if a.body["hash_type"] != "SHA1" || a.body["hash_value"] != hex.EncodeToString(sum[:]) {
		t.Errorf("got %s, want the hash of the file", a.raw)
	}
	if file.status != 200 || file.header.Get("Wechatpay-Signature") != "" {
		t.Errorf("got %d, %q; want 200 without a signature", file.status, file.header.Get("Wechatpay-Signature"))
	}
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(file.raw, "\ufeff"), "\r\n"), "\r\n")
	if len(lines) != 6 || strings.Count(lines[0], ",") != 26 || !strings.HasPrefix(lines[0], "交易时间,公众账号ID,") {
		t.Fatalf("got %q, want a heading, three rows and a summary", lines)
	}
	for i, want := range []string{
		1: "`0,`0,`0.00,`0.00,`,`,`Tea, hot,`,`0.06000,`0.60%,`9.90,`0.00,`",
		2: "`RF1,`3.30,`0.00,`ORIGINAL,`SUCCESS,`Tea, hot,`,`-0.02000,`0.60%,`0.00,`3.30,`",
		4: "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额",
		5: "`3,`19.80,`3.30,`0.00,`0.10000,`19.80,`3.30",
	} {
		if !strings.Contains(strings.Join(lines, "\n"), want) || i > 3 && lines[i] != want {
			t.Errorf("line %d: want %s in %q", i, want, lines)
		}
	}
	b.want(b.call("GET", "/v3/billdownload/file?token=x", ""), 404, "NO_STATEMENT_EXIST")
}
