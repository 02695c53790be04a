package alipaysim_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

func TestRequestsThatAreNotOfTheFormAreRefused(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		code   string
		change func(url.Values)
	}{
		{"isv.missing-app-id", func(f url.Values) { f.Del("app_id") }},
		{"isv.missing-timestamp", func(f url.Values) { f.Del("timestamp") }},
		{"isv.invalid-app-id", func(f url.Values) { f.Set("app_id", "2021000000000009") }},
		{"isv.invalid-signature-type", func(f url.Values) { f.Set("sign_type", "RSA") }},
		{"isv.invalid-charset", func(f url.Values) { f.Set("charset", "GBK") }},
		{"isv.invalid-format", func(f url.Values) { f.Set("format", "XML") }},
		{"isv.invalid-version", func(f url.Values) { f.Set("version", "2.0") }},
		{"isv.invalid-timestamp", func(f url.Values) { f.Set("timestamp", "2026-03-01T17:00:00Z") }},
		{"isv.invalid-parameter", func(f url.Values) { f.Set("colour", "red") }},
		{"isv.invalid-app-cert-sn", func(f url.Values) { f.Set("app_cert_sn", "abc") }},
		{"isv.invalid-method", func(f url.Values) { f.Set("method", "alipay.trade.gift") }},
	} {
		a := b.send(b.form("alipay.trade.query", biz("out_trade_no", "pay1"), c.change))
		b.want(c.code, a, c.code)
		if a.signed {
			t.Errorf("%s: Alipay signed for somebody it does not know", c.code)
		}
	}
	f := b.form("alipay.trade.query", biz("out_trade_no", "pay1"), nil)
	f.Set("biz_content", `{"out_trade_no":"pay2"}`)
	b.want("changed after signing", b.send(f), "isv.invalid-signature")
	f.Del("sign")
	b.want("unsigned", b.send(f), "isv.missing-sign")
	if a := b.call("query", "out_trade_no", "pay1"); !a.signed || a.code() != "ACQ.TRADE_NOT_EXIST" {
		t.Errorf("got %s", a.raw)
	}
}

func TestAProductIsNamedWhereAnotherCouldBeMeant(t *testing.T) {
	b := newBench(t)
	b.want("precreate", b.call("precreate", offer("pay1", "product_code", "")...), "10000")
	for method, opened := range map[string]bool{"app": true, "page": false, "wap": false} {
		f := b.form("alipay.trade."+method+".pay", biz(offer("pay"+method, "product_code", "")...), nil)
		if status, _, _ := b.visit(http.MethodGet, "/gateway.do?"+f.Encode(), nil); (status == http.StatusSeeOther) != opened {
			t.Errorf("%s: got %d, want it opened: %v", method, status, opened)
		}
	}
}

func TestContentThatIsNotOfTheFormIsRefused(t *testing.T) {
	b := newBench(t)
	for _, more := range [][]string{
		{"total_amount", "0.00"}, {"total_amount", "1.234"}, {"total_amount", "-1"}, {"total_amount", "1e2"}, {"total_amount", "01.00"},
		{"total_amount", ""}, {"total_amount", "100000000.01"}, {"total_amount", "１"},
		{"subject", ""}, {"subject", "a/b"}, {"subject", strings.Repeat("茶", 257)}, {"out_trade_no", ""}, {"out_trade_no", "a b"},
		{"product_code", "QUICK_WAP_WAY"}, {"time_expire", "2026-03-01T17:15:00"}, {"time_expire", "2026-03-01 16:59:59"}, {"colour", "red"},
	} {
		b.want(strings.Join(more, "="), b.call("precreate", offer("pay1", more...)...), "ACQ.INVALID_PARAMETER")
	}
	if n := len(b.sim.Books().Trades); n != 0 || b.sim.Visit("pay1") == nil {
		t.Errorf("what was refused exists: %d trades", n)
	}
	for _, amount := range []string{"9", "9.9", "9.90", "0.01", "100000000"} {
		b.want(amount, b.call("precreate", offer("n"+strings.ReplaceAll(amount, ".", "_"), "total_amount", amount)...), "10000")
	}
}

// A trade comes into being when the buyer comes, and not before.
func TestAPrecreatedPaymentDoesNotExistAndCanBePaid(t *testing.T) {
	b := newBench(t)
	b.precreated("pay1")
	b.want("query", b.call("query", "out_trade_no", "pay1"), "ACQ.TRADE_NOT_EXIST")
	b.want("close", b.call("close", "out_trade_no", "pay1"), "ACQ.TRADE_NOT_EXIST")
	b.must(b.sim.Visit("pay1"))
	if a := b.call("query", "out_trade_no", "pay1"); a.node["trade_status"] != "WAIT_BUYER_PAY" || a.node["send_pay_date"] != "" {
		t.Errorf("got %s", a.raw)
	}
	b.must(b.sim.Pay("pay1"))
	a := b.call("query", "out_trade_no", "pay1")
	if a.node["trade_status"] != "TRADE_SUCCESS" || a.node["total_amount"] != "19.90" || a.node["send_pay_date"] != "2026-03-01 17:00:00" {
		t.Errorf("got %s", a.raw)
	}
	if b.call("query", "trade_no", a.node["trade_no"]).node["out_trade_no"] != "pay1" {
		t.Error("not to be found by Alipay's number")
	}
}

func TestAfterTheDeadlineNothingCanBePaid(t *testing.T) {
	b := newBench(t)
	b.precreated("pay1")
	b.precreated("pay2")
	b.must(b.sim.Visit("pay2"))
	b.advance(15 * time.Minute)
	if b.sim.Pay("pay1") == nil || b.sim.Pay("pay2") == nil {
		t.Error("paid after the deadline")
	}
	b.want("query of one that nobody scanned", b.call("query", "out_trade_no", "pay1"), "ACQ.TRADE_NOT_EXIST")
	if got := b.trade("pay2").Status; got != "TRADE_CLOSED" {
		t.Errorf("got %s, want TRADE_CLOSED", got)
	}
}

func TestANumberBelongsToOnePayment(t *testing.T) {
	b := newBench(t)
	first := b.precreated("pay1")
	if again := b.precreated("pay1"); again != first {
		t.Errorf("repeated: got %s, want %s", again, first)
	}
	b.want("another amount", b.call("precreate", offer("pay1", "total_amount", "19.91")...), "ACQ.CONTEXT_INCONSISTENT")
	b.must(b.sim.Visit("pay1"))
	if again := b.precreated("pay1"); again != first {
		t.Errorf("repeated after a scan: got %s, want %s", again, first)
	}
	b.want("another subject", b.call("precreate", offer("pay1", "subject", "Tee")...), "ACQ.CONTEXT_INCONSISTENT")
	b.must(b.sim.Pay("pay1"))
	b.want("paid", b.call("precreate", offer("pay1")...), "ACQ.TRADE_HAS_SUCCESS")
	b.precreated("pay2")
	b.must(b.sim.Visit("pay2"))
	b.want("close", b.call("close", "out_trade_no", "pay2"), "10000")
	b.want("closed", b.call("precreate", offer("pay2")...), "ACQ.TRADE_HAS_CLOSE")
}

func TestWhatIsPaidOrClosedIsNotClosed(t *testing.T) {
	b := newBench(t)
	b.paid("pay1")
	b.want("close of paid", b.call("close", "out_trade_no", "pay1"), "ACQ.TRADE_STATUS_ERROR")
	b.precreated("pay2")
	b.must(b.sim.Visit("pay2"))
	b.want("close", b.call("close", "out_trade_no", "pay2"), "10000")
	b.want("close again", b.call("close", "out_trade_no", "pay2"), "ACQ.TRADE_STATUS_ERROR")
	if b.sim.Pay("pay2") == nil {
		t.Error("paid after it was closed")
	}
	b.precreated("pay3")
	b.must(b.sim.Visit("pay3"))
	b.sim.Inject(alipaysim.Fault{Call: "close", Kind: alipaysim.PaidBeforeClose})
	b.want("close after the buyer", b.call("close", "out_trade_no", "pay3"), "ACQ.TRADE_STATUS_ERROR")
	if got := b.trade("pay3").Captured; got != 1990 {
		t.Errorf("captured %d, want 1990", got)
	}
}

func TestRefundsAddUpToNoMoreThanWasPaid(t *testing.T) {
	b := newBench(t)
	refund := func(number, amount string) answer {
		return b.call("refund", "out_trade_no", "pay1", "out_request_no", number, "refund_amount", amount)
	}
	b.precreated("pay1")
	b.want("nobody came", refund("r0", "1.00"), "ACQ.TRADE_NOT_EXIST")
	b.must(b.sim.Visit("pay1"))
	b.want("unpaid", refund("r0", "1.00"), "ACQ.TRADE_STATUS_ERROR")
	b.must(b.sim.Pay("pay1"))
	b.want("without a number", refund("", "1.00"), "ACQ.INVALID_PARAMETER")
	b.want("malformed", refund("r0", "1.001"), "ACQ.INVALID_PARAMETER")
	if a := refund("r1", "9.90"); a.node["fund_change"] != "Y" || a.node["refund_fee"] != "9.90" {
		t.Errorf("first: got %s", a.raw)
	}
	// The trap: another amount under the same number looks like a success.
	if a := refund("r1", "5.00"); a.code() != "10000" || a.node["fund_change"] != "N" || a.node["refund_fee"] != "9.90" {
		t.Errorf("the number again: got %s", a.raw)
	}
	b.want("too much", refund("r2", "10.01"), "ACQ.REASON_TRADE_REFUND_FEE_ERR")
	if a := refund("r2", "10.00"); a.node["fund_change"] != "Y" || a.node["refund_fee"] != "19.90" {
		t.Errorf("the rest: got %s", a.raw)
	}
	b.want("more", refund("r3", "0.01"), "ACQ.REASON_TRADE_REFUND_FEE_ERR")
	if got := b.trade("pay1"); got.Refunded != 1990 || got.Status != "TRADE_CLOSED" || len(got.Refunds) != 2 {
		t.Errorf("got %+v", got)
	}
	if a := b.call("query", "out_trade_no", "pay1"); a.node["trade_status"] != "TRADE_CLOSED" || a.node["send_pay_date"] == "" {
		t.Errorf("got %s", a.raw)
	}
}

func TestARefundQueryAnswersSuccessForWhatIsNotThere(t *testing.T) {
	b := newBench(t)
	b.paid("pay1")
	query := func(number string) answer {
		return b.call("fastpay.refund.query", "out_trade_no", "pay1", "out_request_no", number)
	}
	if a := query("r1"); a.code() != "10000" || a.node["refund_status"] != "" {
		t.Errorf("got %s", a.raw)
	}
	b.sim.SetFaults(alipaysim.Faults{RefundLag: 10 * time.Second})
	b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "5")
	if a := query("r1"); a.code() != "10000" || a.node["refund_status"] != "" {
		t.Errorf("too early: got %s", a.raw)
	}
	b.advance(10 * time.Second)
	if a := query("r1"); a.node["refund_status"] != "REFUND_SUCCESS" || a.node["refund_amount"] != "5.00" {
		t.Errorf("got %s", a.raw)
	}
}

func TestAYearLaterATradeIsFinished(t *testing.T) {
	b := newBench(t)
	b.paid("pay1")
	b.advance(366 * 24 * time.Hour)
	a := b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "5")
	b.want("refund", a, "ACQ.TRADE_HAS_FINISHED")
}
