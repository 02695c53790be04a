package alipaysim

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const buyerID = "2088000000000001"

// Visit is the buyer scanning the code of a precreated payment of that number,
// without paying. It fails when there is none, or it is over.
func (s *Sim) Visit(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	_, err := s.visit(number, now)
	return err
}

// Pay is the buyer paying a payment of that number, which he has come for or
// scans now. It fails, without effect, when it cannot be paid.
func (s *Sim) Pay(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	t, err := s.visit(number, now)
	if err != nil {
		return err
	}
	return s.take(t, now)
}

// Decline is the buyer trying to pay without the money for it. It stays payable.
func (s *Sim) Decline(number string) error {
	now := s.enter()
	defer s.mu.Unlock()
	t, err := s.visit(number, now)
	if err != nil {
		return err
	}
	return t.payable()
}

func (s *Sim) visit(number string, now time.Time) (*trade, error) {
	if t := s.trades[number]; t != nil {
		return t, nil
	}
	for _, o := range s.offers {
		if o.number == number {
			t, fail := s.come(o, now)
			if fail != nil {
				return nil, fmt.Errorf("visit %s: %w", number, fail)
			}
			return t, nil
		}
	}
	return nil, fmt.Errorf("visit %s: %w", number, errNotExist)
}

func (t *trade) payable() error {
	if t.status != waiting {
		return fmt.Errorf("pay %s: it is %s", t.number, t.status)
	}
	return nil
}

// take takes the buyer's money.
func (s *Sim) take(t *trade, now time.Time) error {
	if err := t.payable(); err != nil {
		return err
	}
	t.status, t.paid = success, now
	s.bill(line{t: t, at: now, amount: t.amount, fee: feeOf(t.amount)})
	s.notify(t, now, nil)
	s.at(now.Add(refundLife), func() {
		if t.status == success {
			t.status = finished
			s.notify(t, now.Add(refundLife), nil)
		}
	})
	return nil
}

// arrive is a browser or a phone that brings a signed payment in its address.
func (s *Sim) arrive(w http.ResponseWriter, r *http.Request) {
	s.welcome(w, r, r.URL.Query())
}

// welcome shows the buyer to the page where he pays.
func (s *Sim) welcome(w http.ResponseWriter, r *http.Request, form url.Values) {
	fail := s.authorize(form)
	code := buyers[form.Get("method")]
	if fail == nil && code == "" {
		fail = invalid("method", "不存在的方法名")
	}
	var t *trade
	if fail == nil {
		t, fail = s.receive(form, code)
	}
	if fail != nil {
		refuse(w, r, fail)
		return
	}
	http.Redirect(w, r, "/pay/"+url.PathEscape(t.number), http.StatusSeeOther)
}

func (s *Sim) receive(form url.Values, code string) (*trade, *apiError) {
	now := s.enter()
	defer s.mu.Unlock()
	b, fail := readBiz(form.Get("biz_content"), offerParams)
	if fail != nil {
		return nil, fail
	}
	o, fail := s.readOffer(b, code, pageLife, now)
	if fail != nil {
		return nil, fail
	}
	o.notifyURL, o.returnURL = form.Get("notify_url"), form.Get("return_url")
	return s.come(o, now)
}

// scan is a phone at the address of a QR code.
func (s *Sim) scan(w http.ResponseWriter, r *http.Request) {
	now := s.enter()
	o, fail := s.offers[r.PathValue("code")], errNotExist
	if o != nil {
		_, fail = s.come(o, now)
	}
	s.mu.Unlock()
	if fail != nil {
		refuse(w, r, fail)
		return
	}
	http.Redirect(w, r, "/pay/"+url.PathEscape(o.number), http.StatusSeeOther)
}

// landing is where the buyer goes after paying: the merchant's address with
// signed facts, that prove less than they seem to.
func (s *Sim) landing(t *trade, now time.Time) string {
	u, err := url.Parse(t.returnURL)
	if t.returnURL == "" || err != nil {
		return ""
	}
	form := url.Values{
		"app_id": {s.appID}, "charset": {"utf-8"}, "method": {"alipay.trade.page.pay.return"}, "out_trade_no": {t.number},
		"seller_id": {s.sellerID}, "sign_type": {"RSA2"}, "timestamp": {stamp(now)}, "total_amount": {yuan(t.amount)},
		"trade_no": {t.no}, "version": {"1.0"},
	}
	unsigned := url.Values{}
	for name, values := range form {
		if name != "sign_type" {
			unsigned[name] = values
		}
	}
	form.Set("sign", s.keys.sign(requestText(unsigned)))
	q := u.Query()
	for name, values := range form {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	return u.String()
}
