package alipay

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/holdfast-pay/holdfast/gateway"
)

// Limits of a statement.
const (
	maxStatement = 64 << 20 // bytes, zipped and not
	maxFiles     = 16       // of one zip
)

const subNoBill = "isp.bill_not_exist"

var _ gateway.Statements = (*Gateway)(nil)

type billQuery struct {
	Type string `json:"bill_type"`
	Date string `json:"bill_date"`
}

// Zone implements gateway.Statements.
func (g *Gateway) Zone() *time.Location { return beijing }

// FetchStatement implements gateway.Statements: the bill of trades and, where
// payouts are possible, the bill of the account in one zip with it. They are there
// from about 09:00 of the next day.
func (g *Gateway) FetchStatement(ctx context.Context, day time.Time) ([]byte, error) {
	date, kinds := day.In(beijing).Format(time.DateOnly), []string{"trade"}
	if g.trust.bySN != nil {
		kinds = append(kinds, "signcustomer")
	}
	var files [][]byte
	for _, kind := range kinds {
		file, err := g.fetchBill(ctx, kind, date)
		if err != nil {
			return nil, fmt.Errorf("alipay: bill %s of %s: %w", kind, date, err)
		}
		if file != nil {
			files = append(files, file)
		}
	}
	switch len(files) {
	case 0:
		return nil, fmt.Errorf("alipay: bill of %s: %w", date, gateway.ErrNoStatement)
	case 1:
		return files[0], nil
	}
	file, err := joined(files)
	if err != nil {
		return nil, fmt.Errorf("alipay: join the bills of %s: %w", date, err)
	}
	return file, nil
}

// fetchBill is nil when there is none of that day.
func (g *Gateway) fetchBill(ctx context.Context, kind, date string) ([]byte, error) {
	a, err := g.call(ctx, "alipay.data.dataservice.bill.downloadurl.query", "", billQuery{kind, date}, nil)
	if code(err) == subNoBill {
		return nil, nil
	}
	if err == nil && a.BillURL == "" {
		err = fmt.Errorf("%w: no address", errUnreadable)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for it: %w", err)
	}
	file, err := g.download(ctx, a.BillURL)
	if err != nil {
		return nil, fmt.Errorf("download it: %w", err)
	}
	return file, nil
}

// joined is one zip of what is in several.
func joined(files [][]byte) ([]byte, error) {
	var b bytes.Buffer
	all := zip.NewWriter(&b)
	for _, file := range files {
		z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			if err := all.Copy(f); err != nil {
				return nil, err
			}
		}
	}
	err := all.Close()
	return b.Bytes(), err
}

// download gets what an authentic answer pointed to; the file itself is not
// signed.
func (g *Gateway) download(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errUnreadable // the address lets everybody in, so it is not repeated
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: http %d", errUnreadable, resp.StatusCode)
	}
	return limited(resp.Body)
}

func limited(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxStatement+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxStatement {
		return nil, fmt.Errorf("more than %d bytes", maxStatement)
	}
	return b, nil
}

// ReadStatement implements gateway.Statements. file is the zip as it is
// downloaded, or the file of details out of it, in GBK or UTF-8. Of the bill of
// the account only transfers are lines here: the bill of trades has the rest.
func (g *Gateway) ReadStatement(file []byte) ([]gateway.StatementLine, error) {
	lines, err := readStatement(file)
	if err != nil {
		return nil, fmt.Errorf("alipay: read statement: %w", err)
	}
	return lines, nil
}

// These begin the files that have lines, of trades and of the account; others have
// their sums.
const (
	titleOfDetails = "#支付宝业务明细查询"
	titleOfAccount = "#支付宝账务明细查询"
)

func readStatement(file []byte) ([]gateway.StatementLine, error) {
	if !bytes.HasPrefix(file, []byte("PK")) {
		text, err := toUTF8(file)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(text, titleOfAccount) {
			return readAccount(text)
		}
		return readDetails(text)
	}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	if len(z.File) > maxFiles {
		return nil, fmt.Errorf("more than %d files", maxFiles)
	}
	var lines []gateway.StatementLine
	known := false
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := limited(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		text, err := toUTF8(b)
		if err != nil || !strings.HasPrefix(text, titleOfDetails) && !strings.HasPrefix(text, titleOfAccount) {
			continue
		}
		more, err := readStatement([]byte(text))
		if err != nil {
			return nil, err
		}
		lines, known = append(lines, more...), true
	}
	if !known {
		return nil, errors.New("no file of details in the zip")
	}
	return lines, nil
}

func toUTF8(b []byte) (string, error) {
	if utf8.Valid(b) {
		return strings.TrimPrefix(string(b), "\ufeff"), nil
	}
	b, err := simplifiedchinese.GBK.NewDecoder().Bytes(b)
	return string(b), err
}

// readDetails reads the file of details of trades.
func readDetails(text string) ([]gateway.StatementLine, error) {
	var lines []gateway.StatementLine
	var said totals
	err := readTable(text, []string{colTrade, colNumber, colKind, colTime, colAmount, colFee, colRequest}, said.read, func(row string, columns map[string]int) error {
		l, err := readLine(row, columns)
		lines = append(lines, l)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lines, said.check(lines)
}

// readTable reads titles and sums, which begin with #, the names of the columns,
// among which those wanted must be, and the lines.
func readTable(text string, wanted []string, title func(row string) error, line func(row string, columns map[string]int) error) (err error) {
	var columns map[string]int
	for n, row := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if row == "" || strings.HasPrefix(row, "#") {
			err = title(row)
		} else if columns == nil {
			columns, err = readColumns(row, wanted)
		} else {
			err = line(row, columns)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	if columns == nil {
		return errors.New("no names of columns")
	}
	return nil
}

const (
	colTrade   = "支付宝交易号"
	colNumber  = "商户订单号"
	colKind    = "业务类型"
	colTime    = "完成时间"
	colAmount  = "商家实收（元）"
	colFee     = "服务费（元）"
	colRequest = "退款批次号/请求号"
)

func readColumns(row string, wanted []string) (map[string]int, error) {
	names, err := cells(row)
	if err != nil {
		return nil, err
	}
	columns := map[string]int{}
	for i, name := range names {
		columns[name] = i
	}
	for _, name := range wanted {
		if _, ok := columns[name]; !ok {
			return nil, fmt.Errorf("there is no column %s", name)
		}
	}
	return columns, nil
}

// cells have a tab after numbers, which keeps spreadsheets from rounding them.
func cells(row string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(row))
	r.LazyQuotes = true
	list, err := r.Read()
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list, err
}

func readLine(row string, columns map[string]int) (l gateway.StatementLine, err error) {
	list, err := cells(row)
	if err != nil {
		return l, err
	}
	if len(list) != len(columns) {
		return l, fmt.Errorf("it has %d cells, not %d", len(list), len(columns))
	}
	cell := func(name string) string { return list[columns[name]] }
	l = gateway.StatementLine{
		ID: cell(colTrade), Kind: gateway.OtherLine, Number: cell(colNumber), Ref: cell(colTrade), Currency: currency, Text: row,
	}
	if l.At, err = time.ParseInLocation(timeForm, cell(colTime), beijing); err != nil {
		return l, fmt.Errorf("time %q", cell(colTime))
	}
	amount, ok := signed(cell(colAmount))
	fee, ok2 := signed(cell(colFee))
	if !ok || !ok2 || l.ID == "" {
		return l, fmt.Errorf("trade %q, amount %q, fee %q", l.ID, cell(colAmount), cell(colFee))
	}
	l.Amount, l.Fee = amount, -fee
	switch cell(colKind) {
	case "交易":
		l.Kind, l.Fee = gateway.PaymentLine, abs(fee)
	case "退款":
		l.Kind, l.Number = gateway.RefundLine, cell(colRequest)
		l.ID += "/" + l.Number
		l.Amount, l.Fee = -abs(amount), -abs(fee)
	}
	return l, nil
}

// signed reads yuan with or without a sign; an empty cell is 0.
func signed(yuan string) (fen int64, ok bool) {
	if yuan == "" {
		return 0, true
	}
	digits, negative := strings.CutPrefix(yuan, "-")
	if fen, ok = fromYuan(digits); negative {
		fen = -fen
	}
	return fen, ok
}

func abs(n int64) int64 { return max(n, -n) }

// totals are the sums that the file itself tells, in fen.
type totals struct {
	told     bool
	payments sum
	refunds  sum
}

type sum struct{ count, amount int64 }

func (t *totals) read(row string) (err error) {
	if rest, ok := strings.CutPrefix(row, "#交易合计："); ok {
		t.told = true
		t.payments, err = readSum(rest, "笔，商家实收共")
	}
	if rest, ok := strings.CutPrefix(row, "#退款合计："); ok {
		t.told = true
		t.refunds, err = readSum(rest, "笔，商家实收退款共")
	}
	return err
}

func readSum(text, between string) (s sum, err error) {
	count, rest, ok := strings.Cut(text, between)
	amount, _, ok2 := strings.Cut(rest, "元")
	if s.count, err = strconv.ParseInt(count, 10, 64); err != nil {
		return s, fmt.Errorf("sum %q", text)
	}
	digits, negative := strings.CutPrefix(amount, "-")
	whole, part, _ := strings.Cut(digits, ".")
	s.amount, err = strconv.ParseInt(whole+(part + "00")[:2], 10, 64) // a sum may be more than any amount
	if !ok || !ok2 || err != nil || len(part) > 2 {
		return s, fmt.Errorf("sum %q", text)
	}
	if negative {
		s.amount = -s.amount
	}
	return s, nil
}

// check holds what the file tells against its lines. Those of other kinds are
// in neither sum.
func (t *totals) check(lines []gateway.StatementLine) error {
	if !t.told {
		return errors.New("it tells no sums: it is not whole")
	}
	var payments, refunds sum
	for _, l := range lines {
		switch l.Kind {
		case gateway.PaymentLine:
			payments.count, payments.amount = payments.count+1, payments.amount+l.Amount
		case gateway.RefundLine:
			refunds.count, refunds.amount = refunds.count+1, refunds.amount+l.Amount
		}
	}
	if payments != t.payments || refunds.count != t.refunds.count || refunds.amount != -abs(t.refunds.amount) {
		return fmt.Errorf("its sums are not those of its lines: %+v and %+v, not %+v and %+v", t.payments, t.refunds, payments, refunds)
	}
	return nil
}
