package wechatpaysim

import (
	"fmt"
	"time"
)

// couponShare of a price is paid by a coupon, with the fault Coupon: a tenth.
const couponShare = 10

// Pay does what the buyer does after he has scanned the code or opened the
// page of the order with that out_trade_no. It fails, without effect, when the
// order cannot be paid.
func (s *Sim) Pay(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	o := s.orders[number]
	if o == nil {
		return fmt.Errorf("pay %s: no such order", number)
	}
	return s.pay(o, now)
}

func (s *Sim) pay(o *order, now time.Time) error {
	if why := o.unpayable(now); why != "" {
		return fmt.Errorf("pay %s: the order is %s", o.number, why)
	}
	o.state, o.paidAt, o.declined = success, now, false
	o.transaction = "42000" + s.id(23, digits)
	if s.luck.Chance(s.faults.Coupon) {
		o.coupon = o.total() / couponShare
	}
	s.emit(now, o.asked.NotifyURL, "TRANSACTION.SUCCESS", "transaction", o.object())
	return nil
}

// unpayable says why the buyer cannot pay; "" when he can.
func (o *order) unpayable(now time.Time) string {
	switch {
	case o.state == success:
		return "paid"
	case o.state == closed:
		return "closed"
	case !now.Before(o.expires):
		return "expired"
	case now.Sub(o.renewed) >= o.codeLife():
		return "stale" // its code or page, not the order
	}
	return ""
}

// Decline is a try to pay that fails; the order stays payable.
func (s *Sim) Decline(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	o := s.orders[number]
	if o == nil {
		return fmt.Errorf("decline %s: no such order", number)
	}
	if why := o.unpayable(now); why != "" {
		return fmt.Errorf("decline %s: the order is %s", number, why)
	}
	o.declined = true
	return nil
}
