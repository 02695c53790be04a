package alipaysim_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// visit follows no redirect and says where one leads.
func (b *bench) visit(method, target string, form url.Values) (status int, to, page string) {
	b.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = b.url + target
	}
	req, err := http.NewRequest(method, target, strings.NewReader(form.Encode()))
	b.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(req)
	b.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.must(err)
	return res.StatusCode, res.Header.Get("Location"), html.UnescapeString(string(body))
}

func (b *bench) shows(target string, want ...string) {
	b.t.Helper()
	_, _, page := b.visit(http.MethodGet, target, nil)
	for _, w := range want {
		if !strings.Contains(page, w) {
			b.t.Errorf("%s does not show %q:\n%s", target, w, page)
		}
	}
}

// pageForm is the signed form of a payment by browser.
func (b *bench) pageForm(number string, more ...string) url.Values {
	content := offer(number, append([]string{"product_code", "FAST_INSTANT_TRADE_PAY"}, more...)...)
	return b.form("alipay.trade.page.pay", biz(content...), func(f url.Values) {
		f.Set("return_url", "https://shop.example/thanks?order=1")
	})
}

func TestABrowserPaysAndReturnsToTheShop(t *testing.T) {
	b := newBench(t)
	status, to, _ := b.visit(http.MethodGet, "/gateway.do?"+b.pageForm("pay1").Encode(), nil)
	if status != 303 || to != "/pay/pay1" {
		t.Fatalf("got %d %s", status, to)
	}
	b.shows(to, "¥19.90", "茶杯", "Pay ¥19.90", "viewport", "2026-03-01 17:15:00")
	if _, to, _ := b.visit(http.MethodPost, "/pay/pay1?lang=en", url.Values{"action": {"decline"}}); to != "/pay/pay1?lang=en&declined" {
		t.Errorf("declined: to %s", to)
	}
	b.shows("/pay/pay1?lang=en&declined", "balance is too low", "Pay ¥19.90")
	_, to, _ = b.visit(http.MethodPost, "/pay/pay1?lang=en", url.Values{"action": {"pay"}})
	back, err := url.Parse(to)
	b.must(err)
	q := back.Query()
	if back.Host != "shop.example" || q.Get("order") != "1" || q.Get("out_trade_no") != "pay1" || q.Get("total_amount") != "19.90" || q.Get("sign") == "" {
		t.Errorf("paid: to %s", to)
	}
	q.Del("order")
	if !authentic(t, q) {
		t.Error("what the buyer brings back is not signed")
	}
	b.shows("/pay/pay1", "Paid. Thank you.", "Back to the shop")
	b.shows("/pay/pay1?lang=zh", "已支付", "返回商店")
}

func TestAFormThatABrowserPostsIsWelcomeToo(t *testing.T) {
	b := newBench(t)
	req, err := http.NewRequest(http.MethodPost, b.url+"/gateway.do?charset=utf-8", strings.NewReader(b.pageForm("pay1").Encode()))
	b.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := http.DefaultTransport.RoundTrip(req)
	b.must(err)
	res.Body.Close()
	if res.StatusCode != 303 {
		t.Errorf("got %s", res.Status)
	}
	// Nobody else's page may press the buyer's button.
	req, err = http.NewRequest(http.MethodPost, b.url+"/pay/pay1", strings.NewReader("action=pay"))
	b.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err = http.DefaultTransport.RoundTrip(req)
	b.must(err)
	res.Body.Close()
	if res.StatusCode != 403 || b.trade("pay1").Captured != 0 {
		t.Errorf("got %s and %+v", res.Status, b.trade("pay1"))
	}
}

func TestAPhoneScansAndPays(t *testing.T) {
	b := newBench(t)
	status, to, _ := b.visit(http.MethodGet, b.precreated("pay1"), nil)
	if status != 303 || to != "/pay/pay1" {
		t.Fatalf("got %d %s", status, to)
	}
	if _, to, _ = b.visit(http.MethodPost, to, url.Values{"action": {"pay"}}); !strings.HasPrefix(to, "/pay/pay1") || b.trade("pay1").Captured != 1990 {
		t.Errorf("got %s, %+v", to, b.trade("pay1"))
	}
}

func TestAPaymentThatAlipayDoesNotOpenSaysWhy(t *testing.T) {
	b := newBench(t)
	late, other, forged := b.pageForm("pay1"), b.pageForm("pay2", "total_amount", "19.91"), b.pageForm("pay3")
	b.visit(http.MethodGet, "/gateway.do?"+b.pageForm("pay2").Encode(), nil)
	forged.Set("biz_content", strings.Replace(forged.Get("biz_content"), "19.90", "0.01", 1))
	code := b.precreated("pay4")
	for form, want := range map[string]string{
		"/gateway.do?" + other.Encode():  "ACQ.CONTEXT_INCONSISTENT",
		"/gateway.do?" + forged.Encode(): "isv.invalid-signature",
		"/gateway.do?" + b.form("alipay.trade.query", biz("out_trade_no", "pay1"), nil).Encode(): "isv.invalid-method",
		"/qr/nothing": "ACQ.TRADE_NOT_EXIST",
	} {
		if status, _, page := b.visit(http.MethodGet, form, nil); status != 400 || !strings.Contains(page, want) {
			t.Errorf("got %d, want 400 and %s: %s", status, want, page)
		}
	}
	b.advance(15 * time.Minute)
	for _, target := range []string{"/gateway.do?" + late.Encode(), code} {
		if status, _, page := b.visit(http.MethodGet, target, nil); status != 400 || !strings.Contains(page, "ACQ.TRADE_HAS_CLOSE") {
			t.Errorf("after the deadline: got %d: %s", status, page)
		}
	}
	if n := len(b.sim.Books().Trades); n != 1 {
		t.Errorf("%d trades, want 1", n)
	}
}

func TestTheControlPageShowsTheDialAndTheTrades(t *testing.T) {
	b := newBench(t)
	b.precreated("pay1")
	b.must(b.sim.Visit("pay1"))
	b.shows("/_sim/?lang=en", "forged_answer", "refund_lag", "pay1", "WAIT_BUYER_PAY", "/_sim/pay/pay1")
	b.shows("/_sim/?lang=zh", "故障", "交易")
	if status, _, page := b.visit(http.MethodPost, "/_sim/pay/pay1", nil); status != 200 || !strings.Contains(page, `"captured":1990`) {
		t.Errorf("got %d %s", status, page)
	}
	if status, _, page := b.visit(http.MethodPost, "/_sim/pay/pay1", nil); status != 409 || !strings.Contains(page, "TRADE_SUCCESS") {
		t.Errorf("again: got %d %s", status, page)
	}
}

func TestABillIsAZipInGBK(t *testing.T) {
	b := newBench(t)
	b.paid("pay1")
	b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "5")
	ask := func(day string) answer {
		return b.send(b.form("alipay.data.dataservice.bill.downloadurl.query", biz("bill_type", "trade", "bill_date", day), nil))
	}
	b.want("today", ask("2026-03-01"), "ACQ.INVALID_PARAMETER")
	b.advance(24 * time.Hour)
	b.want("without trades", ask("2026-02-28"), "isp.bill_not_exist")
	a := ask("2026-03-01")
	b.want("yesterday", a, "10000")
	status, _, _ := b.visit(http.MethodGet, strings.Replace(a.node["bill_download_url"], "2026-03-01", "2026-02-28", 1), nil)
	if status != 403 {
		t.Errorf("another day's with the same token: got %d", status)
	}
	res, err := http.Get(a.node["bill_download_url"])
	b.must(err)
	defer res.Body.Close()
	file, err := io.ReadAll(res.Body)
	b.must(err)
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	b.must(err)
	var all strings.Builder
	for _, f := range z.File {
		r, err := f.Open()
		b.must(err)
		text, err := io.ReadAll(simplifiedchinese.GBK.NewDecoder().Reader(r))
		b.must(err)
		name, err := simplifiedchinese.GBK.NewDecoder().String(f.Name)
		b.must(err)
		fmt.Fprintf(&all, "%s\n%s\n", name, text)
	}
	for _, want := range []string{
		"20880000000000020156_20260301_业务明细.csv", "业务明细(汇总).csv", "#支付宝业务明细查询", "pay1\t,交易,茶杯", ",19.90,19.90,", ",-0.12,",
		"pay1\t,退款,茶杯", ",-5.00,-5.00,", ",r1\t,", "#交易合计：1笔，商家实收共19.90元", "#退款合计：1笔，商家实收退款共-5.00元",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the bill has no %q:\n%s", want, all.String())
		}
	}
	b.advance(31 * time.Second)
	if status, _, _ := b.visit(http.MethodGet, a.node["bill_download_url"], nil); status != 403 {
		t.Errorf("the address is good for ever: got %d", status)
	}
}
