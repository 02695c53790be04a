package alipaysim

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What a payment costs, in basis points of its amount, rounded half up to the
// fen. Refunds cost nothing and do not give it back.
const feeBasisPoints = 60

func feeOf(amount int64) int64 { return (amount*feeBasisPoints + 5_000) / 10_000 }

const linkLife = 30 * time.Second // of a bill's address

// line is one line of a bill: a payment, or a refund when r is set.
type line struct {
	t      *trade
	r      *refund
	at     time.Time
	amount int64 // fen, negative when money leaves
	fee    int64
}

func (s *Sim) bill(l line) { s.lines = append(s.lines, l) }

const dayForm = "2006-01-02"

// billAddress answers where the bill of a day that is over can be had.
func (s *Sim) billAddress(c *call) (object, *apiError) {
	day, err := time.ParseInLocation(dayForm, c.biz["bill_date"], beijing)
	today := c.now.In(beijing).Format(dayForm)
	kind := c.biz["bill_type"]
	switch {
	case kind != billOfTrades && kind != billOfAccount:
		return nil, parameter("bill_type")
	case err != nil || c.biz["bill_date"] >= today:
		return nil, parameter("bill_date")
	case kind == billOfTrades && len(s.of(day)) == 0, kind == billOfAccount && len(s.flowsOf(day)) == 0:
		return nil, &apiError{"40004", "Business Failed", "isp.bill_not_exist", "账单不存在", false}
	}
	until := strconv.FormatInt(c.now.Add(linkLife).Unix(), 10)
	q := url.Values{"bizType": {kind}, "until": {until}, "token": {s.keys.sign(kind + " " + c.biz["bill_date"] + " " + until)}}
	return object{{"bill_download_url", c.base + "/bill/" + c.biz["bill_date"] + "?" + q.Encode()}}, nil
}

// of lists the lines of a day of Beijing.
func (s *Sim) of(day time.Time) (list []line) {
	for _, l := range s.lines {
		if !l.at.Before(day) && l.at.Before(day.AddDate(0, 0, 1)) {
			list = append(list, l)
		}
	}
	return list
}

func (s *Sim) download(w http.ResponseWriter, r *http.Request) {
	name, kind, until, token := r.PathValue("date"), r.FormValue("bizType"), r.FormValue("until"), r.FormValue("token")
	day, err := time.ParseInLocation(dayForm, name, beijing)
	seconds, err2 := strconv.ParseInt(until, 10, 64)
	now := s.enter()
	lines, flows := s.of(day), s.flowsOf(day)
	s.mu.Unlock()
	if err != nil || err2 != nil || now.After(time.Unix(seconds, 0)) || token != s.keys.sign(kind+" "+name+" "+until) {
		http.Error(w, "the address is over", http.StatusForbidden)
		return
	}
	doc, err := s.billOf(day, lines)
	if kind == billOfAccount {
		doc, err = s.accountOf(day, flows)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	// What is left of errors here is a caller that has gone.
	_, _ = w.Write(doc)
}

// Bill is the bill of trades of a day of Beijing, as it is downloaded: a zip of
// two files in GBK, the lines and their sums.
func (s *Sim) Bill(day time.Time) ([]byte, error) {
	s.enter()
	y, m, d := day.In(beijing).Date()
	day = time.Date(y, m, d, 0, 0, 0, 0, beijing)
	lines := s.of(day)
	s.mu.Unlock()
	return s.billOf(day, lines)
}

func (s *Sim) billOf(day time.Time, lines []line) ([]byte, error) {
	return s.zipped(day, "业务明细", s.details(day, lines), s.summary(day, lines))
}

// zipped is a bill as it is downloaded: its details and its summary.
func (s *Sim) zipped(day time.Time, title, details, summary string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	base := s.sellerID + "0156_" + day.Format("20060102") + "_" + title
	for _, file := range [][2]string{{base + "(汇总).csv", summary}, {base + ".csv", details}} {
		f, err := z.CreateHeader(&zip.FileHeader{Name: toGBK(file[0]), NonUTF8: true, Method: zip.Deflate, Modified: day})
		if err != nil {
			return nil, fmt.Errorf("zip bill: %w", err)
		}
		if _, err := f.Write([]byte(toGBK(file[1]))); err != nil {
			return nil, fmt.Errorf("zip bill: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("zip bill: %w", err)
	}
	return b.Bytes(), nil
}

var columns = []string{
	"支付宝交易号", "商户订单号", "业务类型", "商品名称", "创建时间", "完成时间", "门店编号", "门店名称", "操作员", "终端号", "对方账户",
	"订单金额（元）", "商家实收（元）", "支付宝红包（元）", "集分宝（元）", "支付宝优惠（元）", "商家优惠（元）", "券核销金额（元）", "券名称",
	"商家红包消费金额（元）", "卡消费金额（元）", "退款批次号/请求号", "服务费（元）", "分润（元）", "备注",
}

func (s *Sim) head(title, list string, day time.Time) string {
	const form = "2006年01月02日 15:04:05"
	return "#支付宝" + title + "查询\r\n#账号：[" + s.sellerID + "0156]\r\n" +
		"#起始日期：[" + day.Format(form) + "]   终止日期：[" + day.AddDate(0, 0, 1).Format(form) + "]\r\n" +
		"#-----------------------------------------" + list + "----------------------------------------\r\n"
}

func (s *Sim) details(day time.Time, lines []line) string {
	var b strings.Builder
	b.WriteString(s.head("业务明细", "业务明细列表", day))
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	rows := [][]string{columns}
	for _, l := range lines {
		rows = append(rows, l.row())
	}
	// A strings.Builder takes everything.
	_ = w.WriteAll(rows)
	paid, repaid, count := sums(lines)
	b.WriteString("#-----------------------------------------业务明细列表结束------------------------------------\r\n")
	fmt.Fprintf(&b, "#交易合计：%d笔，商家实收共%s元，商家优惠共0.00元\r\n", count[false], yuan(paid))
	fmt.Fprintf(&b, "#退款合计：%d笔，商家实收退款共%s元，商家优惠退款共0.00元\r\n", count[true], yuan(repaid))
	fmt.Fprintf(&b, "#导出时间：[%s]\r\n", day.AddDate(0, 0, 1).Add(9*time.Hour).Format("2006年01月02日 15:04:05"))
	return b.String()
}

// row has a tab after numbers, so that a spreadsheet leaves them as they are.
func (l line) row() []string {
	kind, request, fee := "交易", "", yuan(-l.fee)
	if l.r != nil {
		kind, request, fee = "退款", l.r.number, "0.00"
	}
	const nothing = "0.00"
	return []string{
		l.t.no + "\t", l.t.number + "\t", kind, l.t.subject, stamp(l.t.created), stamp(l.at), "\t", "\t", "\t", "\t", "hol***@example.com\t",
		yuan(l.amount), yuan(l.amount), nothing, nothing, nothing, nothing, nothing, "",
		nothing + "\t", nothing, request + "\t", fee, nothing, l.t.body,
	}
}

func sums(lines []line) (paid, repaid int64, count map[bool]int) {
	count = map[bool]int{}
	for _, l := range lines {
		count[l.r != nil]++
		if l.r != nil {
			repaid += l.amount
		} else {
			paid += l.amount
		}
	}
	return paid, repaid, count
}

func (s *Sim) summary(day time.Time, lines []line) string {
	paid, repaid, count := sums(lines)
	fees := int64(0)
	for _, l := range lines {
		fees += l.fee
	}
	return s.head("业务汇总", "业务汇总列表", day) +
		"门店编号,门店名称,交易订单总笔数,退款订单总笔数,订单金额（元）,商家实收（元）,支付宝优惠（元）,商家优惠（元）,卡消费金额（元）,服务费（元）,分润（元）,实收净额（元）\r\n" +
		fmt.Sprintf("合计\t,\t,%d,%d,%s,%s,0.00,0.00,0.00,%s,0.00,%s\r\n",
			count[false], count[true], yuan(paid+repaid), yuan(paid+repaid), yuan(-fees), yuan(paid+repaid-fees)) +
		"#-----------------------------------------业务汇总列表结束------------------------------------\r\n"
}
