package alipaysim

import (
	"slices"
	"strings"
	"time"
)

// States of a trade.
const (
	waiting  = "WAIT_BUYER_PAY"
	success  = "TRADE_SUCCESS"
	closed   = "TRADE_CLOSED"
	finished = "TRADE_FINISHED"
)

const (
	qrLife     = 2 * time.Hour // of a precreated payment without time_expire
	pageLife   = 15 * 24 * time.Hour
	refundLife = 365 * 24 * time.Hour // then a trade is finished, and no more refunded
)

// offer is a payment that a merchant has asked for. Where it was signed for a
// browser, Alipay first hears of it when the buyer comes.
type offer struct {
	number    string // the merchant's
	product   string
	amount    int64 // fen
	subject   string
	body      string
	expires   time.Time
	notifyURL string
	returnURL string
	gbk       bool // of notifications
}

// same says whether another offer under the same number is this one again.
func (o *offer) same(other *offer) bool {
	return o.product == other.product && o.amount == other.amount && o.subject == other.subject && o.expires.Equal(other.expires)
}

// trade is a payment for which a buyer has come.
type trade struct {
	offer
	no      string // Alipay's
	status  string
	created time.Time
	paid    time.Time // zero = not
	closed  time.Time
	refunds []*refund
}

func (t *trade) refunded() (fen int64) {
	for _, r := range t.refunds {
		fen += r.amount
	}
	return fen
}

var offerParams = []string{
	"out_trade_no", "total_amount", "subject", "body", "product_code", "time_expire", "quit_url", "seller_id",
}

// buyers are the calls that a buyer's browser or phone brings.
var buyers = map[string]string{
	"alipay.trade.page.pay": "FAST_INSTANT_TRADE_PAY",
	"alipay.trade.wap.pay":  "QUICK_WAP_WAY",
	"alipay.trade.app.pay":  "QUICK_MSECURITY_PAY",
}

// optional are the products that need not be named where their call is made: no
// other can be meant.
var optional = []string{"FACE_TO_FACE_PAYMENT", "QUICK_MSECURITY_PAY"}

// readOffer reads what a payment asks for; code is the product's only one.
func (s *Sim) readOffer(b biz, code string, life time.Duration, now time.Time) (*offer, *apiError) {
	o := &offer{product: b["product_code"]}
	if o.product == "" && slices.Contains(optional, code) {
		o.product = code
	}
	var fail *apiError
	check := func(f *apiError) {
		if fail == nil {
			fail = f
		}
	}
	var f *apiError
	o.number, f = b.number("out_trade_no")
	check(f)
	o.amount, f = b.amount("total_amount")
	check(f)
	o.subject, f = b.text("subject", 256)
	check(f)
	o.body, f = b.text("body", 128)
	check(f)
	o.expires, f = b.deadline("time_expire")
	check(f)
	switch {
	case fail != nil:
		return nil, fail
	case o.product != code:
		return nil, parameter("product_code")
	case o.subject == "" || strings.ContainsAny(o.subject, "/=&"):
		return nil, parameter("subject")
	case b["seller_id"] != "" && b["seller_id"] != s.sellerID:
		return nil, parameter("seller_id")
	}
	if o.expires.IsZero() {
		o.expires = now.Add(life)
	}
	return o, nil
}

// precreate answers with an address for a QR code. No trade exists before it
// is scanned.
func (s *Sim) precreate(c *call) (object, *apiError) {
	o, fail := s.readOffer(c.biz, "FACE_TO_FACE_PAYMENT", qrLife, c.now)
	if fail != nil {
		return nil, fail
	}
	o.notifyURL, o.gbk = c.form.Get("notify_url"), c.gbk
	if t := s.trades[o.number]; t != nil {
		switch {
		case !t.same(o):
			return nil, errOther
		case !t.paid.IsZero():
			return nil, errPaid
		case t.status == closed:
			return nil, errClosed
		}
	}
	if !c.now.Before(o.expires) {
		return nil, parameter("time_expire")
	}
	code := ""
	for k, old := range s.offers {
		if old.number == o.number {
			if !old.same(o) {
				return nil, errOther
			}
			code = k
		}
	}
	if code == "" {
		code = s.code()
		s.offers[code] = o
	}
	return object{{"out_trade_no", o.number}, {"qr_code", c.base + "/qr/" + code}}, nil
}

func (s *Sim) code() string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	b := make([]byte, 22)
	for i := range b {
		b[i] = letters[s.numbers.IntN(len(letters))]
	}
	return string(b)
}

// come makes the trade of an offer whose buyer has come, or finds it.
func (s *Sim) come(o *offer, now time.Time) (*trade, *apiError) {
	if t := s.trades[o.number]; t != nil {
		if !t.same(o) {
			return nil, errOther
		}
		return t, nil
	}
	if !now.Before(o.expires) {
		return nil, errClosed
	}
	t := &trade{offer: *o, no: s.number(now, 20), status: waiting, created: now}
	s.trades[o.number] = t
	s.order = append(s.order, t)
	s.at(o.expires, func() { s.end(t, o.expires) })
	if t.product == "FACE_TO_FACE_PAYMENT" {
		s.notify(t, now, nil) // that it was scanned
	}
	return t, nil
}

// end closes a trade that nobody has paid.
func (s *Sim) end(t *trade, now time.Time) {
	if t.status != waiting {
		return
	}
	t.status, t.closed = closed, now
	s.notify(t, now, nil)
}

// find is the trade that a call names; out_trade_no may be left out for
// trade_no.
func (s *Sim) find(b biz) (*trade, *apiError) {
	if b["out_trade_no"] == "" && b["trade_no"] == "" {
		return nil, parameter("out_trade_no")
	}
	if no := b["trade_no"]; no != "" {
		for _, t := range s.order {
			if t.no == no {
				return t, nil
			}
		}
		return nil, errNotExist
	}
	t := s.trades[b["out_trade_no"]]
	if t == nil {
		return nil, errNotExist
	}
	return t, nil
}

func (s *Sim) query(c *call) (object, *apiError) {
	t, fail := s.find(c.biz)
	if fail != nil {
		return nil, fail
	}
	took := int64(0)
	if !t.paid.IsZero() {
		took = t.amount
	}
	o := object{
		{"buyer_logon_id", "hol***@example.com"}, {"buyer_pay_amount", yuan(took)}, {"buyer_user_id", buyerID},
		{"invoice_amount", yuan(took)}, {"out_trade_no", t.number}, {"point_amount", "0.00"}, {"receipt_amount", yuan(took)},
	}
	if took > 0 {
		o = append(o, field{"send_pay_date", stamp(t.paid)})
	}
	return append(o, field{"total_amount", yuan(t.amount)}, field{"trade_no", t.no}, field{"trade_status", t.status}), nil
}

// closeTrade closes what a buyer has come for. Of what nobody has come for yet
// it knows nothing, and closes nothing.
func (s *Sim) closeTrade(c *call) (object, *apiError) {
	t, fail := s.find(c.biz)
	if fail != nil {
		return nil, fail
	}
	if c.plan.paid {
		// What cannot be paid is not.
		_ = s.take(t, c.now)
	}
	if t.status != waiting {
		return nil, errStatus
	}
	s.end(t, c.now)
	return object{{"out_trade_no", t.number}, {"trade_no", t.no}}, nil
}

func stamp(t time.Time) string { return t.In(beijing).Format(timeForm) }
