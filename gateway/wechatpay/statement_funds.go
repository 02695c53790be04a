package wechatpay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	colBooked    = "记账时间"
	colBusiness  = "微信支付业务单号"
	colFlow      = "资金流水单号"
	colName      = "业务名称"
	colKind      = "业务类型"
	colDirection = "收支类型"
	colMoved     = "收支金额(元)"
	colVoucher   = "业务凭证号" // our number, where we have given one
	income       = "收入"
	expense      = "支出"
	ofTransfers  = "转账" // is in the names of business that are about transfers

	fundSummaryBegins = "资金流水总笔数,"
)

// flows are sums over the lines of a bill of money, in thousandths of a fen; the
// counts are in the same measure, since they are written with a point too.
type flows struct{ count, ins, in, outs, out int64 }

const perOne = 100 * perFen // of a count

// readFunds reads a bill of the money in an account.
func readFunds(rows []string) ([]gateway.StatementLine, error) {
	columns, err := readColumns(rows[0], colBooked, colBusiness, colFlow, colName, colKind, colDirection, colMoved, colVoucher)
	if err != nil {
		return nil, err
	}
	var lines []gateway.StatementLine
	var seen flows
	for n, row := range rows[1:] {
		if strings.HasPrefix(row, fundSummaryBegins) {
			return lines, seen.check(rows[n+2:])
		}
		l, transfer, err := readFundLine(row, columns, &seen)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		if transfer {
			lines = append(lines, l)
		}
	}
	return nil, errors.New("it tells no sums: it is not whole")
}

// readFundLine says too whether the line is about a transfer. One without a
// number was made by hand, and is not understood.
func readFundLine(row string, columns map[string]int, seen *flows) (l gateway.StatementLine, transfer bool, err error) {
	list := cells(row)
	if len(list) != len(columns) {
		return l, false, fmt.Errorf("it has %d cells, not %d", len(list), len(columns))
	}
	cell := func(name string) string { return list[columns[name]] }
	moved, ok := fromYuan(cell(colMoved))
	at, err := time.ParseInLocation(billTime, cell(colBooked), beijing)
	direction := cell(colDirection)
	if !ok || err != nil || moved < 0 || moved%perFen != 0 || cell(colFlow) == "" || direction != income && direction != expense {
		return l, false, fmt.Errorf("flow %q, time %q, %q of %q", cell(colFlow), cell(colBooked), direction, cell(colMoved))
	}
	l = gateway.StatementLine{
		ID: cell(colBusiness) + "/" + cell(colFlow), Kind: gateway.OtherLine, Number: cell(colVoucher), Ref: cell(colBusiness),
		Amount: moved / perFen, Currency: currency, At: at, Text: row,
	}
	transfer = strings.Contains(cell(colName)+cell(colKind), ofTransfers)
	named := transfer && l.Number != ""
	seen.count += perOne
	if direction == income {
		seen.ins, seen.in = seen.ins+perOne, seen.in+moved
		if named {
			l.Kind = gateway.PayoutBackLine
		}
		return l, transfer, nil
	}
	seen.outs, seen.out, l.Amount = seen.outs+perOne, seen.out+moved, -l.Amount
	if named {
		l.Kind = gateway.PayoutLine
	}
	return l, transfer, nil
}

// check holds the sums that the file tells against those of its lines.
func (f flows) check(rows []string) error {
	if len(rows) != 1 {
		return fmt.Errorf("it has %d rows of sums, not 1", len(rows))
	}
	told := cells(rows[0])
	if len(told) != 5 {
		return fmt.Errorf("its sums are %q", rows[0])
	}
	var said flows
	for i, into := range []*int64{&said.count, &said.ins, &said.in, &said.outs, &said.out} {
		n, ok := fromYuan(told[i])
		if !ok {
			return fmt.Errorf("its sums are %q", rows[0])
		}
		*into = n
	}
	if said != f {
		return fmt.Errorf("its sums are not those of its lines: %q", rows[0])
	}
	return nil
}
