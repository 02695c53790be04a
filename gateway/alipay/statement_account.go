package alipay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	colFlow     = "账务流水号"
	colBusiness = "业务流水号"
	colHappened = "发生时间"
	colIncome   = "收入金额（+元）"
	colExpense  = "支出金额（-元）"
	ofTransfers = "转账" // is in the kinds of business that are about transfers
)

// readAccount reads the bill of the account. Its lines about trades are left out:
// the bill of trades has them too, with their fees.
func readAccount(text string) ([]gateway.StatementLine, error) {
	var lines []gateway.StatementLine
	var told, seen struct {
		here            bool
		income, expense sum
	}
	title := func(row string) (err error) {
		if rest, ok := strings.CutPrefix(row, "#支出合计："); ok {
			told.here = true
			told.expense, err = readSum(rest, "笔，共")
		}
		if rest, ok := strings.CutPrefix(row, "#收入合计："); ok {
			told.here = true
			told.income, err = readSum(rest, "笔，共")
		}
		return err
	}
	line := func(row string, columns map[string]int) error {
		l, transfer, err := readAccountLine(row, columns)
		if l.Amount > 0 {
			seen.income.count, seen.income.amount = seen.income.count+1, seen.income.amount+l.Amount
		} else if l.Amount < 0 {
			seen.expense.count, seen.expense.amount = seen.expense.count+1, seen.expense.amount+l.Amount
		}
		if transfer {
			lines = append(lines, l)
		}
		return err
	}
	if err := readTable(text, []string{colFlow, colBusiness, colNumber, colHappened, colIncome, colExpense, colKind}, title, line); err != nil {
		return nil, err
	}
	if told.expense.amount = -abs(told.expense.amount); !told.here {
		return nil, errors.New("it tells no sums: it is not whole")
	}
	if told.income != seen.income || told.expense != seen.expense {
		return nil, fmt.Errorf("its sums are not those of its lines: %+v and %+v, not %+v and %+v", told.income, told.expense, seen.income, seen.expense)
	}
	return lines, nil
}

// readAccountLine says too whether the line is about a transfer. One without a
// number of ours was made by hand, and is not understood.
func readAccountLine(row string, columns map[string]int) (l gateway.StatementLine, transfer bool, err error) {
	list, err := cells(row)
	if err != nil {
		return l, false, err
	}
	if len(list) != len(columns) {
		return l, false, fmt.Errorf("it has %d cells, not %d", len(list), len(columns))
	}
	cell := func(name string) string { return list[columns[name]] }
	l = gateway.StatementLine{
		ID: cell(colFlow), Kind: gateway.OtherLine, Number: cell(colNumber), Ref: cell(colBusiness), Currency: currency, Text: row,
	}
	if l.At, err = time.ParseInLocation(timeForm, cell(colHappened), beijing); err != nil {
		return l, false, fmt.Errorf("time %q", cell(colHappened))
	}
	income, ok := signed(cell(colIncome))
	expense, ok2 := signed(cell(colExpense))
	if !ok || !ok2 || l.ID == "" || income != 0 && expense != 0 {
		return l, false, fmt.Errorf("flow %q, income %q, expense %q", l.ID, cell(colIncome), cell(colExpense))
	}
	l.Amount = income - abs(expense)
	transfer = strings.Contains(cell(colKind), ofTransfers)
	switch {
	case transfer && l.Number != "" && l.Amount < 0:
		l.Kind = gateway.PayoutLine
	case transfer && l.Number != "":
		l.Kind = gateway.PayoutBackLine
	}
	return l, transfer, nil
}
