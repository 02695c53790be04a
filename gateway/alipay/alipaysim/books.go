package alipaysim

// Books is the simulator's own view of the money, to hold a merchant's against.
type Books struct {
	Trades    []Trade    `json:"trades"`    // by creation
	Transfers []Transfer `json:"transfers"` // by creation
}

// Transfer is one payment to a person. Amount is fen.
type Transfer struct {
	Number   string `json:"out_biz_no"`
	No       string `json:"order_id"` // Alipay's own
	Receiver string `json:"identity"`
	Amount   int64  `json:"amount"`
	Status   string `json:"status"` // DEALING, SUCCESS, FAIL or REFUND
}

// Trade is one payment for which a buyer has come. Amounts are fen.
type Trade struct {
	Number   string   `json:"out_trade_no"`
	No       string   `json:"trade_no"` // Alipay's own
	Product  string   `json:"product_code"`
	Amount   int64    `json:"amount"`
	Status   string   `json:"status"` // WAIT_BUYER_PAY, TRADE_SUCCESS, TRADE_CLOSED or TRADE_FINISHED
	Captured int64    `json:"captured"`
	Refunded int64    `json:"refunded"`
	Fee      int64    `json:"fee"`
	Refunds  []Refund `json:"refunds"`
}

// Refund is one refund of a trade. Amount is fen.
type Refund struct {
	Number string `json:"out_request_no"`
	Amount int64  `json:"amount"`
}

// Books returns a copy.
func (s *Sim) Books() Books {
	s.enter()
	defer s.mu.Unlock()
	b := Books{Trades: []Trade{}, Transfers: []Transfer{}}
	for _, t := range s.sent {
		b.Transfers = append(b.Transfers, Transfer{t.number, t.no, t.to.Identity, t.amount, t.status})
	}
	for _, t := range s.order {
		row := Trade{
			Number: t.number, No: t.no, Product: t.product, Amount: t.amount, Status: t.status,
			Refunded: t.refunded(), Refunds: []Refund{},
		}
		if !t.paid.IsZero() {
			row.Captured, row.Fee = t.amount, feeOf(t.amount)
		}
		for _, r := range t.refunds {
			row.Refunds = append(row.Refunds, Refund{r.number, r.amount})
		}
		b.Trades = append(b.Trades, row)
	}
	return b
}
