package alipaysim

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of bills.
const (
	billOfTrades  = "trade"
	billOfAccount = "signcustomer"
)

// move is money of a transfer that left the account, or came back.
type move struct {
	t      *transfer
	at     time.Time
	amount int64 // fen, negative when it leaves
}

// flow is one line of the bill of the account.
type flow struct {
	business, number, title, kind, note string
	at                                  time.Time
	amount                              int64 // fen, negative when it leaves
}

// flowsOf lists what moved the account's balance on a day of Beijing.
func (s *Sim) flowsOf(day time.Time) (list []flow) {
	for _, l := range s.of(day) {
		f := flow{l.t.no, l.t.number, l.t.subject, "在线支付", "", l.at, l.amount}
		if l.r != nil {
			f.kind, f.note = "交易退款", l.r.reason
		}
		list = append(list, f)
		if l.fee > 0 {
			list = append(list, flow{l.t.no, l.t.number, l.t.subject, "收费", "服务费", l.at, -l.fee})
		}
	}
	for _, m := range s.moves {
		if !m.at.Before(day) && m.at.Before(day.AddDate(0, 0, 1)) {
			list = append(list, flow{m.t.fund, m.t.number, m.t.title, "转账", m.t.remark, m.at, m.amount})
		}
	}
	slices.SortStableFunc(list, func(a, b flow) int { return a.at.Compare(b.at) })
	return list
}

// AccountBill is the bill of the account of a day of Beijing, as it is downloaded.
func (s *Sim) AccountBill(day time.Time) ([]byte, error) {
	s.enter()
	y, m, d := day.In(beijing).Date()
	day = time.Date(y, m, d, 0, 0, 0, 0, beijing)
	flows := s.flowsOf(day)
	s.mu.Unlock()
	return s.accountOf(day, flows)
}

var accountColumns = []string{
	"账务流水号", "业务流水号", "商户订单号", "商品名称", "发生时间", "对方账号", "收入金额（+元）", "支出金额（-元）", "账户余额（元）", "交易渠道", "业务类型", "备注",
}

func (s *Sim) accountOf(day time.Time, flows []flow) ([]byte, error) {
	var b strings.Builder
	b.WriteString(s.head("账务明细", "账务明细列表", day))
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	rows := [][]string{accountColumns}
	var in, out, balance int64
	ins := 0
	for i, f := range flows {
		income, expense := "0.00", "0.00"
		if balance += f.amount; f.amount > 0 {
			in, ins, income = in+f.amount, ins+1, yuan(f.amount)
		} else {
			out, expense = out+f.amount, yuan(f.amount)
		}
		id := fmt.Sprintf("%s%08d", day.Format("20060102"), i+1)
		rows = append(rows, []string{
			id + "\t", f.business + "\t", f.number + "\t", f.title, stamp(f.at), "hol***@example.com\t", income, expense, yuan(balance), "支付宝", f.kind, f.note,
		})
	}
	// A strings.Builder takes everything.
	_ = w.WriteAll(rows)
	b.WriteString("#-----------------------------------------账务明细列表结束------------------------------------\r\n")
	fmt.Fprintf(&b, "#支出合计：%d笔，共%s元\r\n#收入合计：%d笔，共%s元\r\n", len(flows)-ins, yuan(out), ins, yuan(in))
	fmt.Fprintf(&b, "#导出时间：[%s]\r\n", day.AddDate(0, 0, 1).Add(9*time.Hour).Format("2006年01月02日 15:04:05"))
	return s.zipped(day, "账务明细", b.String(), s.head("账务汇总", "账务汇总列表", day)+"类型,收入笔数,收入金额（+元）,支出笔数,支出金额（-元）,总金额（元）\r\n"+
		fmt.Sprintf("合计,%d,%s,%d,%s,%s\r\n", ins, yuan(in), len(flows)-ins, yuan(out), yuan(in+out)))
}
