package wechatpaysim

import "time"

// Books is the simulator's own view of the money, to hold a merchant's
// against. Amounts are in fen.
type Books struct {
	Orders    []Order    `json:"orders"`    // by creation
	Transfers []Transfer `json:"transfers"` // by creation
	// Fooled is how many forged notifications and probes were acknowledged. A
	// merchant that verifies signatures has 0.
	Fooled int `json:"fooled"`
}

// Transfer is one payment to a person.
type Transfer struct {
	OutBillNo      string `json:"out_bill_no"`
	TransferBillNo string `json:"transfer_bill_no"`
	OpenID         string `json:"openid"`
	Amount         int64  `json:"amount"`
	State          string `json:"state"` // ACCEPTED, WAIT_USER_CONFIRM, TRANSFERING, SUCCESS, FAIL, CANCELING, CANCELLED
	FailReason     string `json:"fail_reason"`
}

// Order is one payment.
type Order struct {
	OutTradeNo    string    `json:"out_trade_no"`
	TransactionID string    `json:"transaction_id"` // empty until it is paid
	TradeType     string    `json:"trade_type"`     // NATIVE, JSAPI, MWEB, APP
	Attach        string    `json:"attach"`
	State         string    `json:"state"` // NOTPAY, SUCCESS, REFUND, CLOSED
	Total         int64     `json:"total"`
	Captured      int64     `json:"captured"`       // Total when paid, coupon included
	PayerTotal    int64     `json:"payer_total"`    // of it, by the buyer himself
	Refunded      int64     `json:"refunded"`       // of refunds that reached the buyer
	RefundPending int64     `json:"refund_pending"` // of refunds under way
	Abnormal      int64     `json:"abnormal"`       // of refunds that lie at WeChat Pay
	Refunds       []Refund  `json:"refunds"`
	ExpiresAt     time.Time `json:"expires_at"`
	CodeURL       string    `json:"code_url"` // what the QR code says; empty for other trade types
}

// Refund is one refund of an order.
type Refund struct {
	OutRefundNo string `json:"out_refund_no"`
	RefundID    string `json:"refund_id"`
	Amount      int64  `json:"amount"`
	Status      string `json:"status"` // PROCESSING, SUCCESS, CLOSED, ABNORMAL
}

// Books returns a copy.
func (s *Sim) Books() Books {
	s.enter()
	defer s.mu.Unlock()
	b := Books{Orders: []Order{}, Transfers: []Transfer{}, Fooled: s.fooled}
	for _, t := range s.sent {
		b.Transfers = append(b.Transfers, Transfer{t.number, t.id, t.asked.OpenID, *t.asked.Amount, t.state, t.reason})
	}
	for _, o := range s.booked {
		b.Orders = append(b.Orders, o.book())
	}
	return b
}

func (o *order) book() Order {
	b := Order{
		OutTradeNo: o.number, TransactionID: o.transaction, TradeType: o.trade, Attach: o.asked.Attach,
		State: o.tradeState(), Total: o.total(), Refunds: []Refund{}, ExpiresAt: o.expires,
	}
	if o.trade == "NATIVE" {
		b.CodeURL = "weixin://wxpay/bizpayurl?pr=" + o.code
	}
	if o.state == success {
		b.Captured, b.PayerTotal = o.total(), o.total()-o.coupon
	}
	for _, r := range o.refunds {
		b.Refunds = append(b.Refunds, Refund{r.number, r.id, r.amount, r.status})
		switch r.status {
		case refundDone:
			b.Refunded += r.amount
		case refundProcessing:
			b.RefundPending += r.amount
		case refundAbnormal:
			b.Abnormal += r.amount
		}
	}
	return b
}
