package wechatpaysim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	refundProcessing = "PROCESSING"
	refundDone       = "SUCCESS"
	refundClosed     = "CLOSED"
	refundAbnormal   = "ABNORMAL"

	refundSettles = 30 * time.Second // of a pending refund
	maxRefunds    = 50               // of one order
	refundWindow  = 365 * 24 * time.Hour
)

// refund repays part or all of an order.
type refund struct {
	number      string // out_refund_no
	id          string // refund_id
	fingerprint string // what a repeated create must be equal to
	order       *order
	amount      int64 // fen
	notifyURL   string
	created     time.Time
	settled     time.Time
	status      string
}

type refundBody struct {
	TransactionID string          `json:"transaction_id,omitempty"`
	OutTradeNo    string          `json:"out_trade_no,omitempty"`
	OutRefundNo   string          `json:"out_refund_no"`
	Reason        string          `json:"reason,omitempty"`
	NotifyURL     string          `json:"notify_url,omitempty"`
	FundsAccount  string          `json:"funds_account,omitempty"`
	GoodsDetail   json.RawMessage `json:"goods_detail,omitempty"`
	Amount        struct {
		Refund   *int64          `json:"refund"`
		Total    *int64          `json:"total"`
		Currency string          `json:"currency"`
		From     json.RawMessage `json:"from,omitempty"`
	} `json:"amount"`
}

func (b *refundBody) check() *apiError {
	switch {
	case (b.TransactionID == "") == (b.OutTradeNo == ""):
		return invalid("/out_trade_no", "微信支付订单号和商户订单号二选一")
	case b.OutRefundNo == "" || len(b.OutRefundNo) > 64:
		return invalid("/out_refund_no", "商户退款单号为1至64个字符")
	case len(b.Reason) > 80:
		return invalid("/reason", "退款原因最长80字节")
	case b.NotifyURL != "" && !notifiable(b.NotifyURL):
		return invalid("/notify_url", "通知地址须为不带参数的https地址")
	case b.Amount.Refund == nil || *b.Amount.Refund < 1 || *b.Amount.Refund > maxFen:
		return invalid("/amount/refund", "退款金额为不小于1的整数，单位为分")
	case b.Amount.Total == nil || *b.Amount.Total < 1 || *b.Amount.Total > maxFen:
		return invalid("/amount/total", "原订单金额为不小于1的整数，单位为分")
	case b.Amount.Currency != "CNY":
		return invalid("/amount/currency", "退款币种只支持CNY")
	}
	return nil
}

func (s *Sim) createRefund(c *call) (any, *apiError) {
	var b refundBody
	if fail := readBody(c.body, &b); fail != nil {
		return nil, fail
	}
	if fail := b.check(); fail != nil {
		return nil, fail
	}
	fingerprint := string(encode(b))
	if r := s.refunds[b.OutRefundNo]; r != nil {
		if r.fingerprint != fingerprint {
			return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "退款单号重复，参数与之前的请求不一致")
		}
		return r.object("status"), nil
	}
	o, fail := s.refundable(c, b)
	if fail != nil {
		return nil, fail
	}
	r := &refund{
		number: b.OutRefundNo, id: "503" + s.id(26, digits), fingerprint: fingerprint, order: o, amount: *b.Amount.Refund,
		notifyURL: b.NotifyURL, created: c.now, status: refundProcessing,
	}
	s.refunds[r.number] = r
	o.refunds = append(o.refunds, r)
	s.decide(r, c)
	return r.object("status"), nil
}

// refundable finds the order, if that much of it can be repaid.
func (s *Sim) refundable(c *call, b refundBody) (*order, *apiError) {
	o := s.orders[b.OutTradeNo]
	for _, each := range s.booked {
		if b.TransactionID != "" && each.transaction == b.TransactionID {
			o = each
		}
	}
	switch {
	case o == nil:
		return nil, refused(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "订单不存在")
	case o.state != success:
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "订单未支付")
	case *b.Amount.Total != o.total():
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "订单金额与之前的请求不一致")
	case *b.Amount.Refund > o.refundable():
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "累计退款金额大于支付金额")
	case len(o.refunds) >= maxRefunds:
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "部分退款次数超过50次")
	case c.now.Sub(o.paidAt) > refundWindow:
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "订单已超过退款期限")
	case c.plan.short:
		return nil, refused(http.StatusForbidden, "NOT_ENOUGH", "商户余额不足")
	}
	return o, nil
}

// refundable is what has neither been refunded nor may still be. An abnormal
// refund goes on counting: its money is no longer the merchant's.
func (o *order) refundable() int64 {
	left := o.total()
	for _, r := range o.refunds {
		if r.status != refundClosed {
			left -= r.amount
		}
	}
	return left
}

// decide puts what becomes of the refund on the agenda: at once, but after the
// answer, which says PROCESSING.
func (s *Sim) decide(r *refund, c *call) {
	becomes, at := refundDone, c.now
	switch c.plan.fate {
	case RefundPending:
		at = at.Add(refundSettles)
	case RefundAbnormal:
		becomes = refundAbnormal
	case RefundClosed:
		becomes = refundClosed
	}
	s.at(at, func() {
		if r.status == refundProcessing {
			s.settle(r, becomes, at)
		}
	})
}

func (s *Sim) settle(r *refund, status string, now time.Time) {
	r.status, r.settled = status, now
	if r.notifyURL != "" {
		s.emit(now, r.notifyURL, "REFUND."+status, "refund", r.object("refund_status"))
	}
}

// CloseRefund makes a refund that was taken on end as CLOSED: no money moved,
// or it came back.
func (s *Sim) CloseRefund(number string) error { return s.fail(number, refundClosed) }

// BreakRefund makes a refund that was taken on end as ABNORMAL: it could not
// reach the buyer.
func (s *Sim) BreakRefund(number string) error { return s.fail(number, refundAbnormal) }

// RepairRefund is the merchant saying at WeChat Pay where an abnormal refund is to
// go instead, and it goes there.
func (s *Sim) RepairRefund(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	r := s.refunds[number]
	if r == nil || r.status != refundAbnormal {
		return fmt.Errorf("repair refund %s: there is no abnormal one", number)
	}
	s.settle(r, refundDone, now)
	return nil
}

func (s *Sim) fail(number, status string) error {
	now := s.enter()
	defer s.mu.Unlock()
	r := s.refunds[number]
	if r == nil {
		return fmt.Errorf("fail refund %s: no such refund", number)
	}
	if r.status != refundProcessing && r.status != refundDone {
		return fmt.Errorf("fail refund %s: it is %s already", number, r.status)
	}
	s.settle(r, status, now)
	return nil
}

func (s *Sim) queryRefund(c *call) (any, *apiError) {
	r := s.refunds[c.id]
	if r == nil {
		return nil, refused(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "退款单不存在")
	}
	return r.object("status"), nil
}

// object is the refund as an answer (status) or a notification (refund_status)
// tells it.
func (r *refund) object(statusField string) object {
	o := r.order
	cash := r.amount
	if o.coupon > 0 { // a coupon's share of a refund goes back to the coupon
		cash = r.amount * (o.total() - o.coupon) / o.total()
	}
	amount := object{"total": o.total(), "refund": r.amount, "payer_total": o.total() - o.coupon, "payer_refund": cash}
	out := object{
		"refund_id": r.id, "out_refund_no": r.number, "transaction_id": o.transaction, "out_trade_no": o.number,
		"user_received_account": "支付用户零钱", statusField: r.status, "amount": amount,
	}
	if r.status == refundDone {
		out["success_time"] = stamp(r.settled)
	}
	if statusField == "refund_status" {
		out["mchid"] = MerchantID
		return out
	}
	amount["settlement_total"], amount["settlement_refund"] = o.total(), r.amount
	amount["discount_refund"], amount["currency"] = r.amount-cash, "CNY"
	out["channel"], out["create_time"], out["funds_account"] = "ORIGINAL", stamp(r.created), "AVAILABLE"
	out["promotion_detail"] = []object{}
	return out
}
