package alipaysim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// States of a transfer.
const (
	dealing    = "DEALING"
	arrived    = "SUCCESS"
	notArrived = "FAIL"
	cameBack   = "REFUND" // it came back
)

const (
	transferProduct = "TRANS_ACCOUNT_NO_PWD"
	transferScene   = "DIRECT_TRANSFER"
	minTransfer     = 10 // fen

	dealingFor  = 10 * time.Minute   // of a transfer that is not settled at once
	returnAfter = 3 * 24 * time.Hour // of one that comes back
)

// transfer is money on its way from the merchant to a person, or there.
type transfer struct {
	number string // the merchant's
	no     string // Alipay's
	fund   string // Alipay's, of the movement of money
	to     payee
	amount int64 // fen
	title  string
	remark string
	status string
	reason string // why it failed or came back
	at     time.Time
}

type payee struct {
	Identity string `json:"identity"`
	Type     string `json:"identity_type"`
	Name     string `json:"name"`
}

// same says whether another transfer under the same number is this one again.
func (t *transfer) same(other *transfer) bool {
	return t.amount == other.amount && t.to == other.to && t.title == other.title && t.remark == other.remark
}

var transferParams = []string{
	"out_biz_no", "trans_amount", "product_code", "biz_scene", "order_title", "remark", "payee_info", "original_order_id",
	"transfer_scene_name", "transfer_scene_report_infos",
}

var identityForms = map[string]*regexp.Regexp{
	"ALIPAY_USER_ID":  regexp.MustCompile(`^2088[0-9]{12}$`),
	"ALIPAY_LOGON_ID": regexp.MustCompile(`^([0-9+-]{5,32}|[^@\s]+@[^@\s]+)$`),
	"OPEN_ID":         regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`),
}

// Receivers to whom no money can be cameBack.
const (
	UnknownUserID  = "2088000000000404" // there is none of that number
	UnknownLogonID = "nobody@example.com"
	WrongName      = "王不符" // is not the name of anybody
)

func (s *Sim) readPayee(text string) (p payee, fail *apiError) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if dec.Decode(&p) != nil {
		return p, wrong("payee_info")
	}
	form := identityForms[p.Type]
	switch {
	case form == nil || !form.MatchString(p.Identity):
		return p, wrong("identity")
	case p.Type == "ALIPAY_LOGON_ID" && p.Name == "":
		return p, wrong("name")
	case p.Identity == UnknownUserID || p.Identity == UnknownLogonID:
		return p, fund("PAYEE_NOT_EXIST", "收款用户不存在")
	case p.Name == WrongName:
		return p, fund("PAYEE_USER_INFO_ERROR", "支付宝账号和姓名不匹配")
	case p.Identity == s.sellerID:
		return p, fund("PAYER_PAYEE_CANNOT_SAME", "收付款方不能相同")
	}
	return p, nil
}

func (s *Sim) readTransfer(b biz) (t *transfer, fail *apiError) {
	t = &transfer{}
	for _, text := range []struct {
		name string
		max  int
		into *string
	}{{"out_biz_no", 64, &t.number}, {"order_title", 128, &t.title}, {"remark", 200, &t.remark}} {
		if *text.into, fail = b.text(text.name, text.max); fail != nil {
			return nil, wrong(text.name)
		}
	}
	amount, fail := b.amount("trans_amount")
	switch {
	case fail != nil:
		return nil, wrong("trans_amount")
	case !numberForm.MatchString(t.number):
		return nil, wrong("out_biz_no")
	case b["product_code"] != transferProduct || b["biz_scene"] != transferScene || b["original_order_id"] != "":
		return nil, wrong("product_code, biz_scene")
	case amount < minTransfer:
		return nil, fund("EXCEED_LIMIT_SM_MIN_AMOUNT", "单笔最低转账金额0.1元")
	}
	t.amount = amount
	t.to, fail = s.readPayee(b["payee_info"])
	return t, fail
}

// transfer pays a person. A number that was used before moves nothing, and
// tells what the first call did.
func (s *Sim) transfer(c *call) (object, *apiError) {
	if s.keys.appSN == "" {
		return nil, missing("app-cert-sn") // money goes out in certificate mode only
	}
	t, fail := s.readTransfer(c.biz)
	if fail != nil {
		return nil, fail
	}
	if old := s.transfers[t.number]; old != nil {
		if !old.same(t) {
			return nil, fund("PAYMENT_INFO_INCONSISTENCY", "两次请求商户单号一样，但是参数不一致")
		}
		return old.made(), nil
	}
	if c.plan.poor {
		return nil, errNoMoney
	}
	t.no, t.fund, t.at, t.status = s.number(c.now, 24), s.number(c.now, 24), c.now, dealing
	s.transfers[t.number] = t
	s.sent = append(s.sent, t)
	switch c.plan.fate {
	case TransferPending:
		s.at(c.now.Add(dealingFor), func() { s.settle(t, arrived, "", c.now.Add(dealingFor)) })
	case TransferFails:
		s.at(c.now.Add(dealingFor), func() { s.settle(t, notArrived, "PAYEE_ACCOUNT_STATUS_ERROR", c.now.Add(dealingFor)) })
	case TransferReturned:
		s.settle(t, arrived, "", c.now)
		s.at(c.now.Add(returnAfter), func() { s.settle(t, cameBack, "PAYEE_ACCOUNT_STATUS_ERROR", c.now.Add(returnAfter)) })
	default:
		s.settle(t, arrived, "", c.now)
	}
	return t.made(), nil
}

// settle takes a transfer on: from dealing to an end, or from there back.
// What somebody has ended by hand before stays.
func (s *Sim) settle(t *transfer, status, reason string, now time.Time) bool {
	if want := map[string]string{arrived: dealing, notArrived: dealing, cameBack: arrived}; t.status != want[status] {
		return false
	}
	t.status, t.reason = status, reason
	if status != notArrived {
		amount := t.amount
		if status == arrived {
			amount = -amount
		}
		s.moves = append(s.moves, move{t, now, amount})
	}
	s.tell(t, now)
	return true
}

func (t *transfer) made() object {
	return object{
		{"order_id", t.no}, {"out_biz_no", t.number}, {"pay_fund_order_id", t.fund}, {"status", t.status}, {"trans_date", stamp(t.at)},
	}
}

func (s *Sim) queryTransfer(c *call) (object, *apiError) {
	i := slices.IndexFunc(s.sent, func(t *transfer) bool {
		return t.number == c.biz["out_biz_no"] || t.no == c.biz["order_id"] || t.fund == c.biz["pay_fund_order_id"]
	})
	switch {
	case s.keys.appSN == "":
		return nil, missing("app-cert-sn")
	case c.biz["out_biz_no"] == "" && c.biz["order_id"] == "" && c.biz["pay_fund_order_id"] == "":
		return nil, wrong("out_biz_no")
	case c.biz["out_biz_no"] != "" && (c.biz["product_code"] != transferProduct || c.biz["biz_scene"] != transferScene):
		return nil, wrong("product_code, biz_scene")
	case i < 0:
		return nil, errNoOrder
	}
	return s.sent[i].state(), nil
}

func (t *transfer) state() object {
	o := object{
		{"order_id", t.no}, {"pay_fund_order_id", t.fund}, {"out_biz_no", t.number}, {"trans_amount", yuan(t.amount)}, {"status", t.status},
		{"order_fee", "0.00"},
	}
	if t.status == arrived || t.status == cameBack {
		o = append(o, field{"pay_date", stamp(t.at)})
	}
	if t.reason != "" {
		o = append(o, field{"error_code", t.reason}, field{"fail_reason", "收款方账号异常"})
	}
	return o
}

// tell sends the message about a transfer that has come to an end, to the app.
func (s *Sim) tell(t *transfer, now time.Time) {
	if s.appURL == "" {
		return
	}
	action := map[string]string{arrived: "FINISH", notArrived: "CLOSE", cameBack: "REFUND"}[t.status]
	about := append(t.state(), field{"product_code", transferProduct}, field{"biz_scene", transferScene}, field{"action_type", action},
		field{"origin_interface", "alipay.fund.trans.uni.transfer"})
	s.mail(now, s.appURL, map[string]string{
		"notify_id": s.number(now, 26), "msg_method": "alipay.fund.trans.order.changed", "app_id": s.appID, "version": "1.1",
		"charset": "UTF-8", "utc_timestamp": strconv.FormatInt(now.UnixMilli(), 10), "biz_content": about.encode(),
	})
}

// SettleTransfer makes a transfer that is dealt with arrive.
func (s *Sim) SettleTransfer(number string) error { return s.force(number, arrived, "") }

// FailTransfer makes a transfer that is dealt with fail.
func (s *Sim) FailTransfer(number string) error {
	return s.force(number, notArrived, "PAYEE_ACCOUNT_STATUS_ERROR")
}

// ReturnTransfer makes a transfer that has arrived come back.
func (s *Sim) ReturnTransfer(number string) error {
	return s.force(number, cameBack, "PAYEE_ACCOUNT_STATUS_ERROR")
}

func (s *Sim) force(number, status, reason string) error {
	now := s.enter()
	defer s.mu.Unlock()
	t := s.transfers[number]
	if t == nil {
		return fmt.Errorf("transfer %s: %w", number, errNoOrder)
	}
	if !s.settle(t, status, reason, now) {
		return fmt.Errorf("transfer %s: it is %s", number, t.status)
	}
	return nil
}
