package alipay_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// dayOf is the day of Beijing on which the bench begins.
func (b bench) dayOf() time.Time {
	y, m, d := b.Now().In(b.statements().Zone()).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, b.statements().Zone())
}

func (b bench) statements() gateway.Statements { return b.Gateway.(gateway.Statements) }

func TestAStatementHasEveryPaymentAndRefund(t *testing.T) {
	b := open(t, "page")
	day := b.dayOf()
	p := b.payment("pay1")
	p.Description = `Cup "茶杯", blue`
	b.Gateway.Create(t.Context(), p)
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	b.paid(t, "pay2")
	b.Gateway.Refund(t.Context(), b.refund(p, "ref1", 500))
	b.Gateway.Refund(t.Context(), b.refund(p, "ref2", 90))

	if _, err := b.statements().FetchStatement(t.Context(), day); err == nil {
		t.Error("a day that is not over has a statement")
	}
	b.Advance(24 * time.Hour)
	file, err := b.statements().FetchStatement(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := b.statements().ReadStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []gateway.StatementLine{
		{Kind: gateway.PaymentLine, Number: "pay1", Amount: 1990, Fee: 12},
		{Kind: gateway.PaymentLine, Number: "pay2", Amount: 1990, Fee: 12},
		{Kind: gateway.RefundLine, Number: "ref1", Amount: -500},
		{Kind: gateway.RefundLine, Number: "ref2", Amount: -90},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d", len(lines), len(want))
	}
	ids := map[string]bool{}
	for i, l := range lines {
		w := want[i]
		if l.Kind != w.Kind || l.Number != w.Number || l.Amount != w.Amount || l.Fee != w.Fee || l.Currency != "CNY" {
			t.Errorf("got %+v, want %+v", l, w)
		}
		if l.At.Before(day) || l.Text == "" || ids[l.ID] {
			t.Errorf("got %+v: its time, text or id is wrong", l)
		}
		ids[l.ID] = true
	}
	if _, err := b.statements().FetchStatement(t.Context(), day.AddDate(0, 0, -1)); !errors.Is(err, gateway.ErrNoStatement) {
		t.Errorf("a day without trades: got %v, want %v", err, gateway.ErrNoStatement)
	}
}

const bill = `#支付宝业务明细查询
#账号：[20880000000000020156]
#起始日期：[2026年03月01日 00:00:00]   终止日期：[2026年03月02日 00:00:00]
#-----------------------------------------业务明细列表----------------------------------------
支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,终端号,对方账户,订单金额（元）,商家实收（元）,支付宝红包（元）,集分宝（元）,支付宝优惠（元）,商家优惠（元）,券核销金额（元）,券名称,商家红包消费金额（元）,卡消费金额（元）,退款批次号/请求号,服务费（元）,分润（元）,备注
2026030122001	,pay1	,交易	,Tea,2026-03-01 10:00:00,2026-03-01 10:00:30,	,	,	,	,*杨(137****2600)	,35.80,35.80,0.00,0.00,0.00,0.00,0.00,,0.00	,0.00,	,-0.21,0.00,
2026030122001	,pay1	,退款	,Tea,2026-03-01 10:00:00,2026-03-01 11:00:30,	,	,	,	,*杨(137****2600)	,-35.80,-35.80,0.00,0.00,0.00,0.00,0.00,,0.00	,0.00,ref1	,0.21,0.00,
2026030122002	,pay2	,服务费	,Tea,2026-03-01 10:00:00,2026-03-01 12:00:30,	,	,	,	,	,1.00,1.00,0.00,0.00,0.00,0.00,0.00,,0.00	,0.00,	,0.00,0.00,
#-----------------------------------------业务明细列表结束------------------------------------
#交易合计：1笔，商家实收共35.80元，商家优惠共0.00元
#退款合计：1笔，商家实收退款共-35.80元，商家优惠退款共0.00元
#导出时间：[2026年03月02日 09:00:00]
`

func TestAStatementIsReadInEitherCharset(t *testing.T) {
	s := open(t, "page").statements()
	gbk, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte(bill))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"UTF-8": []byte(bill), "GBK": gbk, "CRLF": bytes.ReplaceAll(gbk, []byte("\n"), []byte("\r\n")),
		"fees without their signs": []byte(strings.NewReplacer(",-0.21,", ",0.21,", ",0.21,", ",-0.21,").Replace(bill))} {
		lines, err := s.ReadStatement(file)
		if err != nil || len(lines) != 3 {
			t.Errorf("%s: got %d lines, %v; want 3", name, len(lines), err)
			continue
		}
		if l := lines[0]; l.Kind != gateway.PaymentLine || l.Number != "pay1" || l.Amount != 3580 || l.Fee != 21 || l.ID != "2026030122001" {
			t.Errorf("%s: got %+v", name, l)
		}
		if l := lines[1]; l.Kind != gateway.RefundLine || l.Number != "ref1" || l.Amount != -3580 || l.Fee != -21 || l.ID != "2026030122001/ref1" {
			t.Errorf("%s: got %+v", name, l)
		}
		if l := lines[2]; l.Kind != gateway.OtherLine || l.Amount != 100 {
			t.Errorf("%s: got %+v, want it not understood", name, l)
		}
	}
}

func TestAStatementThatIsNotWholeIsRefused(t *testing.T) {
	s := open(t, "page").statements()
	for name, change := range map[string]func(string) string{
		"a line is missing":   func(b string) string { return strings.Replace(b, "2026030122001\t,pay1\t,退款", "#", 1) },
		"an amount":           func(b string) string { return strings.Replace(b, "35.80,35.80", "35.80,35.81", 1) },
		"no amount":           func(b string) string { return strings.Replace(b, "35.80,35.80", "35.80,many", 1) },
		"the end is missing":  func(b string) string { return b[:strings.Index(b, "#交易合计")] },
		"a column is missing": func(b string) string { return strings.Replace(b, "服务费（元）", "费", 1) },
		"a cell is missing":   func(b string) string { return strings.Replace(b, ",Tea", "", 1) },
		"a time":              func(b string) string { return strings.Replace(b, "2026-03-01 10:00:30", "soon", 1) },
		"nothing":             func(string) string { return "" },
		"a zip of nothing":    func(string) string { return "PK" },
	} {
		if lines, err := s.ReadStatement([]byte(change(bill))); err == nil {
			t.Errorf("%s: got %d lines, want an error", name, len(lines))
		}
	}
}

func TestAStatementHasWhatWasPaidOutAndCameBack(t *testing.T) {
	b := openPayouts(t, alipaysim.Faults{})
	day := b.dayOf()
	b.paid(t, "pay1")
	for i, number := range []string{"out1", "out2"} {
		p := gateway.Payout{ID: number, Destination: somebody, Amount: int64(100 + i), Currency: "CNY"}
		if a := b.Gateway.(gateway.Payer).Payout(t.Context(), p); a.Status != gateway.PayoutPaid {
			t.Fatalf("got %s %s", a.Outcome, a.Status)
		}
	}
	if err := b.sim.ReturnTransfer("out2"); err != nil {
		t.Fatal(err)
	}
	b.Advance(24 * time.Hour)
	file, err := b.statements().FetchStatement(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := b.statements().ReadStatement(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []gateway.StatementLine{
		{Kind: gateway.PaymentLine, Number: "pay1", Amount: 1990}, {Kind: gateway.PayoutLine, Number: "out1", Amount: -100},
		{Kind: gateway.PayoutLine, Number: "out2", Amount: -101}, {Kind: gateway.PayoutBackLine, Number: "out2", Amount: 101},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %+v", len(lines), len(want), lines)
	}
	for i, l := range lines {
		if w := want[i]; l.Kind != w.Kind || l.Number != w.Number || l.Amount != w.Amount || l.ID == "" || l.At.Before(day) {
			t.Errorf("got %+v, want %+v", l, w)
		}
	}
	account, err := b.sim.AccountBill(day)
	if err != nil {
		t.Fatal(err)
	}
	if alone, err := b.statements().ReadStatement(account); err != nil || len(alone) != 3 {
		t.Errorf("the bill of the account alone: got %d lines, %v; want 3", len(alone), err)
	}
}

const account = `#支付宝账务明细查询
#账号：[20880000000000020156]
#起始日期：[2026年03月01日 00:00:00]   终止日期：[2026年03月02日 00:00:00]
#-----------------------------------------账务明细列表----------------------------------------
账务流水号,业务流水号,商户订单号,商品名称,发生时间,对方账号,收入金额（+元）,支出金额（-元）,账户余额（元）,交易渠道,业务类型,备注
54632446537371	,2026030122923922	,pay1	,海航机票	,2026-03-01 21:02:06,陈晶 (kuangzhe@example.com)	,2274.00,0.00,14533.03,支付宝,在线支付,
54629090595411	,2026030148927762	,out1	,三月	,2026-03-01 20:31:32,张青 (13335406888)	,0.00,-393.00,12261.39,支付宝,转账,三月
54628332402591	,2026030126087002	,	,by hand	,2026-03-01 20:24:45,田爱平 (774680501@example.com)	,0.00,-1.00,11875.06,支付宝,转账,
#----------------------------------------账务明细列表结束-------------------------------------
#支出合计：2笔，共-394.00元
#收入合计：1笔，共2274.00元
#导出时间：[2026年03月02日 13:19:01]
`

func TestTheBillOfTheAccountTellsOfTransfersAlone(t *testing.T) {
	s := open(t, "page").statements()
	lines, err := s.ReadStatement([]byte(account))
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %+v, %v; want 2 lines", lines, err)
	}
	if l := lines[0]; l.Kind != gateway.PayoutLine || l.Number != "out1" || l.Amount != -39300 || l.ID != "54629090595411" {
		t.Errorf("got %+v", l)
	}
	if l := lines[1]; l.Kind != gateway.OtherLine || l.Amount != -100 {
		t.Errorf("by hand: got %+v, want it not understood", l)
	}
	for name, change := range map[string][2]string{
		"a line is missing": {"54629090595411", "#"}, "an amount": {"-393.00", "-393.01"}, "no amount": {"-393.00", "many"},
		"no sums": {"合计", "总计"}, "both ways": {",0.00,-393.00", ",1.00,-393.00"}, "a time": {"2026-03-01 20:31:32", "soon"},
	} {
		if lines, err := s.ReadStatement([]byte(strings.ReplaceAll(account, change[0], change[1]))); err == nil {
			t.Errorf("%s: got %d lines, want an error", name, len(lines))
		}
	}
}
