package wechatpaysim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	fundHead    = "记账时间,微信支付业务单号,资金流水单号,业务名称,业务类型,收支类型,收支金额(元),账户结余(元),资金变更提交申请人,备注,业务凭证号"
	fundSummary = "资金流水总笔数,收入笔数,收入金额,支出笔数,支出金额"
)

// createFunds makes the bill of the money in an account on one day. All of it is
// in the basic one here.
func (s *Sim) createFunds(c *call) (any, *apiError) {
	switch cmp.Or(c.query["account_type"], "BASIC") {
	case "BASIC":
		return s.offerBill(c, s.fundBill)
	case "OPERATION", "FEES":
		return s.offerBill(c, func(time.Time, time.Time) (string, bool) { return "", false })
	}
	return nil, invalid("/account_type", "资金账户类型错误")
}

// fund is one row of the bill.
type fund struct {
	at                             time.Time
	business, name, kind, note, no string
	amount                         int64 // fen, negative when it leaves
}

// funds lists what moved the account's balance.
func (s *Sim) funds() (all []fund) {
	for _, o := range s.booked {
		if o.state != success {
			continue
		}
		all = append(all, fund{o.paidAt, o.transaction, "交易", "交易", "", o.number, o.total()},
			fund{o.paidAt, o.transaction, "交易", "扣除交易手续费", "", o.number, -feeOf(o.total())})
		for _, r := range o.refunds {
			if r.status != refundClosed {
				all = append(all, fund{r.created, r.id, "退款", "退款", "", r.number, feeOf(r.amount) - r.amount})
			}
		}
	}
	for _, m := range s.moves {
		name := "商家转账"
		if m.amount > 0 {
			name = "商家转账退回"
		}
		all = append(all, fund{m.at, m.t.id, name, "商家转账", m.t.asked.Remark, m.t.number, m.amount})
	}
	slices.SortStableFunc(all, func(a, b fund) int { return a.at.Compare(b.at) })
	return all
}

func (s *Sim) fundBill(day, end time.Time) (string, bool) {
	var text strings.Builder
	row := func(cells ...string) { text.WriteString("`" + strings.Join(cells, ",`") + "\r\n") }
	text.WriteString("\ufeff" + fundHead + "\r\n")
	var balance, in, out int64
	var ins, outs int
	for i, f := range s.funds() {
		balance += f.amount
		if f.at.Before(day) || !f.at.Before(end) || f.amount == 0 {
			continue
		}
		direction, moved := "收入", f.amount
		if f.amount < 0 {
			direction, moved = "支出", -f.amount
			outs, out = outs+1, out+moved
		} else {
			ins, in = ins+1, in+moved
		}
		row(f.at.In(beijing).Format(billTime), f.business, fmt.Sprintf("19%030d", i+1), f.name, f.kind, direction, yuan(moved), yuan(balance),
			"system", plain(f.note), f.no)
	}
	text.WriteString(fundSummary + "\r\n")
	row(fmt.Sprintf("%d.0", ins+outs), fmt.Sprintf("%d.0", ins), yuan(in), fmt.Sprintf("%d.0", outs), yuan(out))
	return text.String(), ins+outs > 0
}
