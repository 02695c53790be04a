package wechatpaysim

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	billReady   = 10 * time.Hour      // after the end of the day
	billKept    = 90 * 24 * time.Hour // how far back bills go
	billTime    = "2006-01-02 15:04:05"
	feePerMille = 6 // of what the merchant is paid, rounded to the fen
	feeRate     = "0.60%"
)

// Every cell but those of the headings begins with a back quote, which keeps
// spreadsheets from reading numbers out of ids.
const (
	billHead    = "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,交易类型,交易状态,付款银行,货币种类,应结订单金额,代金券金额,微信退款单号,商户退款单号,退款金额,充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,申请退款金额,费率备注"
	billSummary = "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额"
)

// createBill makes the bill of trades of one day and answers where it is.
func (s *Sim) createBill(c *call) (any, *apiError) {
	if kind := cmp.Or(c.query["bill_type"], "ALL"); kind != "ALL" {
		return nil, invalid("/bill_type", "模拟器只支持ALL")
	}
	return s.offerBill(c, s.bill)
}

// offerBill makes a bill of one day, if there is anything to write, and answers
// where it is.
func (s *Sim) offerBill(c *call, write func(day, end time.Time) (string, bool)) (any, *apiError) {
	day, err := time.ParseInLocation(time.DateOnly, c.query["bill_date"], beijing)
	if err != nil {
		return nil, invalid("/bill_date", "账单日期格式为yyyy-MM-DD")
	}
	end := day.AddDate(0, 0, 1)
	if c.now.Before(end.Add(billReady)) {
		return nil, refused(http.StatusBadRequest, "STATEMENT_CREATING", "账单文件正在生成中，请在次日10点后获取")
	}
	if c.now.Sub(day) > billKept {
		return nil, invalid("/bill_date", "只能获取三个月以内的账单")
	}
	text, ok := write(day, end)
	if !ok {
		return nil, refused(http.StatusBadRequest, "NO_STATEMENT_EXIST", "账单文件不存在，当日没有交易")
	}
	sum := sha1.Sum([]byte(text))
	token := s.id(32, letters)
	s.bills[token] = text
	return object{
		"hash_type": "SHA1", "hash_value": hex.EncodeToString(sum[:]),
		"download_url": c.base + "/v3/billdownload/file?token=" + token,
	}, nil
}

func (s *Sim) downloadBill(c *call) (any, *apiError) {
	text, ok := s.bills[c.query["token"]]
	if !ok {
		return nil, refused(http.StatusNotFound, "NO_STATEMENT_EXIST", "账单文件不存在")
	}
	return text, nil
}

// billLine is one row, with its amounts in fen.
type billLine struct {
	at                     time.Time
	cells                  []string
	settled, refunded      int64
	fee                    int64
	total, refundedAsAsked int64
}

// bill writes the trade bill of one day; false when nothing happened.
func (s *Sim) bill(day, end time.Time) (string, bool) {
	var lines []billLine
	within := func(t time.Time) bool { return !t.Before(day) && t.Before(end) }
	for _, o := range s.booked {
		if o.state == success && within(o.paidAt) {
			lines = append(lines, o.line())
		}
		for _, r := range o.refunds {
			if r.status != refundClosed && within(r.created) {
				lines = append(lines, r.line())
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b billLine) int { return a.at.Compare(b.at) })
	var text strings.Builder
	row := func(cells []string) {
		text.WriteString("`" + strings.Join(cells, ",`") + "\r\n")
	}
	var sum billLine
	text.WriteString("\ufeff" + billHead + "\r\n")
	for _, l := range lines {
		row(l.cells)
		sum.settled += l.settled
		sum.refunded += l.refunded
		sum.fee += l.fee
		sum.total += l.total
		sum.refundedAsAsked += l.refundedAsAsked
	}
	text.WriteString(billSummary + "\r\n")
	row([]string{
		fmt.Sprint(len(lines)), yuan(sum.settled), yuan(sum.refunded), yuan(0), fee(sum.fee), yuan(sum.total), yuan(sum.refundedAsAsked),
	})
	return text.String(), len(lines) > 0
}

func (o *order) line() billLine {
	l := billLine{at: o.paidAt, settled: o.total(), fee: feeOf(o.total()), total: o.total()}
	l.cells = o.cells(o.paidAt, "SUCCESS", yuan(l.settled), []string{"0", "0", yuan(0), yuan(0), "", ""}, fee(l.fee), yuan(l.total), yuan(0))
	return l
}

func (r *refund) line() billLine {
	l := billLine{at: r.created, refunded: r.amount, fee: -feeOf(r.amount), refundedAsAsked: r.amount}
	status := map[string]string{refundDone: "SUCCESS", refundProcessing: "PROCESSING", refundAbnormal: "CHANGE"}[r.status]
	l.cells = r.order.cells(r.created, "REFUND", yuan(0), []string{r.id, r.number, yuan(r.amount), yuan(0), "ORIGINAL", status}, fee(l.fee), yuan(0), yuan(r.amount))
	return l
}

// cells is one row. refund are the six columns of a refund.
func (o *order) cells(at time.Time, state, settled string, refund []string, fee, total, asked string) []string {
	head := []string{
		at.In(beijing).Format(billTime), o.asked.AppID, MerchantID, "0", "", o.transaction, o.number, o.openID(), o.trade, state,
		"OTHERS", "CNY", settled, yuan(0),
	}
	return slices.Concat(head, refund, []string{plain(o.asked.Description), plain(o.asked.Attach), fee, feeRate, total, asked, ""})
}

// plain takes out of a text what would be read as the end of a cell or a row:
// the file has no way to quote it. A comma is no such end.
func plain(text string) string {
	return strings.NewReplacer("`", " ", "\r", " ", "\n", " ").Replace(text)
}

// yuan writes fen as yuan with two decimals.
func yuan(fen int64) string {
	sign := ""
	if fen < 0 {
		sign, fen = "-", -fen
	}
	return fmt.Sprintf("%s%d.%02d", sign, fen/100, fen%100)
}

// feeOf is WeChat Pay's share of an amount, in fen.
func feeOf(fen int64) int64 { return (fen*feePerMille + 500) / 1000 }

// fee is written with five decimals.
func fee(fen int64) string { return yuan(fen) + "000" }
