package wechatpay

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// maxStatement is how many bytes of a bill are read.
const maxStatement = 64 << 20

var _ gateway.Statements = (*Gateway)(nil)

// bill says where a bill is. The hash is WeChat Pay's choice: it comes in a
// signed answer and holds the unsigned file against it.
type bill struct {
	HashType    string `json:"hash_type"`
	HashValue   string `json:"hash_value"`
	DownloadURL string `json:"download_url"`
}

// Zone implements gateway.Statements.
func (g *Gateway) Zone() *time.Location { return beijing }

// FetchStatement implements gateway.Statements: the bill of all trades and, where
// payouts are possible, after it those of the money in the two accounts that they
// can come from. They are there from 10:00 of the next day.
func (g *Gateway) FetchStatement(ctx context.Context, day time.Time) ([]byte, error) {
	date := day.In(beijing).Format(time.DateOnly)
	bills := []string{"tradebill?bill_type=ALL"}
	if g.scene != "" {
		bills = append(bills, "fundflowbill?account_type=BASIC", "fundflowbill?account_type=OPERATION")
	}
	var all []byte
	for _, which := range bills {
		var b bill
		err := g.client.call(ctx, http.MethodGet, "/v3/bill/"+which+"&bill_date="+date, nil, &b)
		if e, ok := asAPI(err); ok && e.is("NOSTATEMENTEXIST") {
			continue
		} else if ok && e.is("STATEMENTCREATING") {
			return nil, fmt.Errorf("wechatpay: bill of %s: %w", date, gateway.ErrNoStatement)
		}
		if err != nil {
			return nil, fmt.Errorf("wechatpay: ask for the bill of %s: %w", date, err)
		}
		file, err := g.client.download(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("wechatpay: download the bill of %s: %w", date, err)
		}
		all = append(all, file...)
	}
	if all == nil {
		return nil, fmt.Errorf("wechatpay: bill of %s: %w", date, gateway.ErrNoStatement)
	}
	return all, nil
}

// download gets the file, from where the API is. The token in its address lets
// everybody in, so it is not repeated in errors.
func (c client) download(ctx context.Context, b bill) ([]byte, error) {
	u, err := url.Parse(b.DownloadURL)
	if err != nil || u.Path == "" {
		return nil, fmt.Errorf("%w: no address", errUnreadable)
	}
	req, err := c.request(ctx, http.MethodGet, u.RequestURI(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: http %d", errUnreadable, resp.StatusCode)
	}
	file, err := io.ReadAll(io.LimitReader(resp.Body, maxStatement+1))
	if err != nil {
		return nil, err
	}
	if len(file) > maxStatement {
		return nil, fmt.Errorf("%w: over %d bytes", errUnreadable, maxStatement)
	}
	if sum := sha1.Sum(file); b.HashType != "SHA1" || !strings.EqualFold(b.HashValue, hex.EncodeToString(sum[:])) {
		return nil, fmt.Errorf("%w: it is not the file of that hash", errUnreadable)
	}
	return file, nil
}

// ReadStatement implements gateway.Statements. file is a bill of trades, of the
// money in an account, or several one after another. Of the money only transfers
// are lines here: the bill of trades has the rest.
func (g *Gateway) ReadStatement(file []byte) ([]gateway.StatementLine, error) {
	lines, err := readBills(string(file))
	if err != nil {
		return nil, fmt.Errorf("wechatpay: read statement: %w", err)
	}
	return lines, nil
}

// readBills parts the file where the names of columns begin another bill.
func readBills(text string) (lines []gateway.StatementLine, err error) {
	rows := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	for i := range rows {
		rows[i] = strings.TrimPrefix(rows[i], "\ufeff")
	}
	for begin := 0; begin < len(rows); {
		end := begin + 1
		for end < len(rows) && !strings.HasPrefix(rows[end], colTime+",") && !strings.HasPrefix(rows[end], colBooked+",") {
			end++
		}
		read := readBill
		if strings.HasPrefix(rows[begin], colBooked+",") {
			read = readFunds
		}
		more, err := read(rows[begin:end])
		if err != nil {
			return nil, err
		}
		lines, begin = append(lines, more...), end
	}
	return lines, nil
}

const (
	colTime        = "交易时间"
	colTransaction = "微信订单号"
	colNumber      = "商户订单号"
	colState       = "交易状态"
	colCurrency    = "货币种类"
	colSettled     = "应结订单金额" // what the merchant is owed: less than the price by coupons of his own
	colRefundID    = "微信退款单号"
	colRefundNo    = "商户退款单号"
	colRefunded    = "退款金额"
	colFee         = "手续费"
	billTime       = "2006-01-02 15:04:05"
	summaryBegins  = "总交易单数,"
)

// readBill reads the names of the columns, the lines, the names of the sums and
// the sums.
func readBill(rows []string) ([]gateway.StatementLine, error) {
	columns, err := readColumns(rows[0], colTime, colTransaction, colNumber, colState, colCurrency, colSettled, colRefundID, colRefundNo, colRefunded, colFee)
	if err != nil {
		return nil, err
	}
	var lines []gateway.StatementLine
	var sums totals
	for n, row := range rows[1:] {
		if strings.HasPrefix(row, summaryBegins) {
			return lines, sums.check(rows[n+2:])
		}
		l, err := readLine(row, columns, &sums)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		lines = append(lines, l)
	}
	return nil, errors.New("it tells no sums: it is not whole")
}

func readColumns(row string, wanted ...string) (map[string]int, error) {
	columns := map[string]int{}
	for i, name := range strings.Split(strings.NewReplacer("（", "(", "）", ")").Replace(row), ",") {
		columns[name] = i
	}
	for _, name := range wanted {
		if _, ok := columns[name]; !ok {
			return nil, fmt.Errorf("there is no column %s", name)
		}
	}
	return columns, nil
}

// cells begin with a back quote each, so that a comma within one is no end.
func cells(row string) []string {
	return strings.Split(strings.TrimPrefix(row, "`"), ",`")
}

func readLine(row string, columns map[string]int, sums *totals) (gateway.StatementLine, error) {
	list := cells(row)
	if len(list) != len(columns) {
		return gateway.StatementLine{}, fmt.Errorf("it has %d cells, not %d", len(list), len(columns))
	}
	cell := func(name string) string { return list[columns[name]] }
	settled, ok := fromYuan(cell(colSettled))
	refunded, ok2 := fromYuan(cell(colRefunded))
	fee, ok3 := fromYuan(cell(colFee))
	at, err := time.ParseInLocation(billTime, cell(colTime), beijing)
	if !ok || !ok2 || !ok3 || err != nil || settled%perFen != 0 || refunded%perFen != 0 || cell(colTransaction) == "" {
		return gateway.StatementLine{}, fmt.Errorf("order %q, time %q, amount %q, refund %q, fee %q",
			cell(colTransaction), cell(colTime), cell(colSettled), cell(colRefunded), cell(colFee))
	}
	sums.add(settled, refunded, fee)
	l := gateway.StatementLine{
		ID: cell(colTransaction), Kind: gateway.OtherLine, Number: cell(colNumber), Ref: cell(colTransaction),
		Amount: (settled - refunded) / perFen, Fee: wholeFen(fee), Currency: cell(colCurrency), At: at, Text: row,
	}
	switch cell(colState) {
	case "SUCCESS":
		l.Kind = gateway.PaymentLine
	case "REFUND":
		l.Kind, l.ID, l.Ref, l.Number = gateway.RefundLine, cell(colRefundID), cell(colRefundID), cell(colRefundNo)
	}
	return l, nil
}

// perFen: amounts are read in thousandths of a fen, since fees have five
// decimals of a yuan.
const perFen = 1000

// fromYuan reads yuan with at most five decimals, without a float in between.
func fromYuan(text string) (int64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, _ := strings.Cut(digits, ".")
	if whole == "" || len(part) > 5 || strings.Trim(whole+part, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+(part + "00000")[:5], 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

func wholeFen(n int64) int64 {
	if n < 0 {
		return -wholeFen(-n)
	}
	return (n + perFen/2) / perFen
}

// totals are sums over the lines, in thousandths of a fen.
type totals struct{ count, settled, refunded, fee int64 }

func (t *totals) add(settled, refunded, fee int64) {
	t.count++
	t.settled += settled
	t.refunded += refunded
	t.fee += fee
}

// check holds the sums that the file tells against those of its lines.
func (t *totals) check(rows []string) error {
	if len(rows) != 1 {
		return fmt.Errorf("it has %d rows of sums, not 1", len(rows))
	}
	told := cells(rows[0])
	if len(told) < 5 {
		return fmt.Errorf("its sums are %q", rows[0])
	}
	count, err := strconv.ParseInt(told[0], 10, 64)
	settled, ok := fromYuan(told[1])
	refunded, ok2 := fromYuan(told[2])
	fee, ok3 := fromYuan(told[4])
	if said := (totals{count, settled, refunded, fee}); err != nil || !ok || !ok2 || !ok3 || said != *t {
		return fmt.Errorf("its sums are not those of its lines: %q", rows[0])
	}
	return nil
}
