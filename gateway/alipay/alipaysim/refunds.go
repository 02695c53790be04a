package alipaysim

import "time"

// refund is money that went back. It is done when it is answered.
type refund struct {
	number string // the merchant's
	amount int64  // fen
	reason string
	at     time.Time
}

// refund repays a part or all. A number that was used before moves nothing and
// is answered as a success, whatever amount it comes with.
func (s *Sim) refund(c *call) (object, *apiError) {
	t, fail := s.find(c.biz)
	if fail != nil {
		return nil, fail
	}
	amount, fail := c.biz.amount("refund_amount")
	if fail != nil {
		return nil, fail
	}
	reason, fail := c.biz.text("refund_reason", 256)
	if fail != nil {
		return nil, fail
	}
	number := c.biz["out_request_no"]
	switch {
	case number == "" && amount != t.amount:
		return nil, parameter("out_request_no")
	case number == "":
		number = t.number
	case !numberForm.MatchString(number):
		return nil, parameter("out_request_no")
	}
	if old := t.refund(number); old != nil {
		return t.refundObject("N"), nil
	}
	switch {
	case t.paid.IsZero():
		return nil, errStatus
	case t.status == finished:
		return nil, errFinished
	case t.status == closed, amount > t.amount-t.refunded():
		return nil, errOver
	case c.plan.poor:
		return nil, errPoor
	}
	r := &refund{number, amount, reason, c.now}
	t.refunds = append(t.refunds, r)
	if t.refunded() == t.amount {
		t.status, t.closed = closed, c.now
	}
	s.bill(line{t: t, r: r, at: c.now, amount: -amount})
	s.notify(t, c.now, r)
	return t.refundObject("Y"), nil
}

func (t *trade) refund(number string) *refund {
	for _, r := range t.refunds {
		if r.number == number {
			return r
		}
	}
	return nil
}

// refundObject tells the sum of all refunds, not of one.
func (t *trade) refundObject(moved string) object {
	return object{
		{"buyer_logon_id", "hol***@example.com"}, {"buyer_user_id", buyerID}, {"fund_change", moved},
		{"out_trade_no", t.number}, {"refund_fee", yuan(t.refunded())}, {"trade_no", t.no},
	}
}

// queryRefund answers success for a number that it does not know, too, and for
// one that it does not know yet: only the status tells.
func (s *Sim) queryRefund(c *call) (object, *apiError) {
	t, fail := s.find(c.biz)
	if fail != nil {
		return nil, fail
	}
	number, fail := c.biz.number("out_request_no")
	if fail != nil {
		return nil, fail
	}
	r := t.refund(number)
	if r == nil || c.now.Before(r.at.Add(s.faults.RefundLag)) {
		return object{}, nil
	}
	return object{
		{"out_request_no", r.number}, {"out_trade_no", t.number}, {"refund_amount", yuan(r.amount)}, {"refund_reason", r.reason},
		{"refund_status", "REFUND_SUCCESS"}, {"total_amount", yuan(t.amount)}, {"trade_no", t.no},
	}, nil
}
