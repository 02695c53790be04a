package alipay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	methodPage      = "page"
	methodWap       = "wap"
	methodApp       = "app"
	methodPrecreate = "precreate"
)

// product is what Alipay calls a method.
type product struct{ call, code string }

var products = map[string]product{
	methodPage:      {"alipay.trade.page.pay", "FAST_INSTANT_TRADE_PAY"},
	methodWap:       {"alipay.trade.wap.pay", "QUICK_WAP_WAY"},
	methodApp:       {"alipay.trade.app.pay", "QUICK_MSECURITY_PAY"},
	methodPrecreate: {"alipay.trade.precreate", "FACE_TO_FACE_PAYMENT"},
}

// expiryMargin is how long after a payment's deadline there can still be a
// trade that we have not heard of.
const expiryMargin = 2 * time.Minute

// Texts that Alipay would refuse for their length are cut, in characters.
const (
	maxSubject = 128
	maxBody    = 128
)

// order is the biz_content that opens a payment.
type order struct {
	OutTradeNo  string `json:"out_trade_no"`
	TotalAmount string `json:"total_amount"`
	Subject     string `json:"subject"`
	Body        string `json:"body,omitempty"`
	ProductCode string `json:"product_code"`
	TimeExpire  string `json:"time_expire"`
	QuitURL     string `json:"quit_url,omitempty"` // of wap: where a buyer goes who gives up
}

// trade names a payment that may exist.
type trade struct {
	OutTradeNo string `json:"out_trade_no"`
}

// Create implements gateway.Gateway. After the payment's deadline it only
// looks. Ref is our number, by which Alipay knows the payment.
func (g *Gateway) Create(ctx context.Context, p gateway.Payment) gateway.Answer {
	if unfit := g.Check(p); unfit != nil {
		return gateway.Answer{Outcome: gateway.Refused, Code: unfit.Field + codeUnfit}
	}
	if p.ExpiresAt.IsZero() {
		return gateway.Answer{Outcome: gateway.Refused, Code: codeDeadline} // it could be paid for ever
	}
	if !g.now().Before(p.ExpiresAt) {
		return g.lookAfter(ctx, p)
	}
	what, biz := products[p.Method], newOrder(p)
	if p.Method == methodPrecreate {
		return g.precreate(ctx, p, what, biz)
	}
	more := map[string]string{"notify_url": g.notifyURL}
	if p.Method != methodApp {
		more["return_url"] = p.ReturnURL
	}
	at := p.CreatedAt // so that repeating it gives the same address to the byte
	if at.IsZero() {
		at = g.now()
	}
	form, err := g.request(what.call, biz, at, more)
	if err != nil {
		return unknown(p, "create", err)
	}
	a := gateway.Answer{Outcome: gateway.Done, Status: gateway.Open, Ref: p.ID}
	if p.Method == methodApp {
		a.Secret = form.Encode()
	} else {
		a.URL = g.baseURL + "?" + form.Encode()
	}
	return a
}

// lookAfter is Create when it is too late: all that can still be there is what
// was made before.
func (g *Gateway) lookAfter(ctx context.Context, p gateway.Payment) gateway.Answer {
	p.Ref = p.ID
	a := g.Query(ctx, p)
	if a.Status == gateway.Open && a.Code == subNotExist {
		return unknown(p, "create", errMayCome)
	}
	return a
}

func (g *Gateway) precreate(ctx context.Context, p gateway.Payment, what product, biz order) gateway.Answer {
	a, err := g.call(ctx, what.call, p.ID, biz, map[string]string{"notify_url": g.notifyURL})
	if err == nil && a.QRCode == "" {
		err = fmt.Errorf("%w: no qr code", errUnreadable)
	}
	if err == nil {
		return gateway.Answer{Outcome: gateway.Done, Status: gateway.Open, Ref: p.ID, URL: a.QRCode}
	}
	if !isAnswer(err) {
		return unknown(p, "create", err)
	}
	// It may be paid or closed already; what is refused is looked for before
	// that is believed.
	found := g.Query(ctx, p)
	switch {
	case found.Outcome == gateway.Done:
		return found
	case found.Outcome == gateway.Refused && isFinal(err, finalOfCreate):
		return gateway.Answer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknown(p, "create", err)
}

func newOrder(p gateway.Payment) order {
	o := order{
		OutTradeNo: p.ID, TotalAmount: toYuan(p.Amount), Subject: subject(p), Body: clip(p.Order, maxBody),
		ProductCode: products[p.Method].code, TimeExpire: toBeijing(p.ExpiresAt),
	}
	if p.Method == methodWap {
		o.QuitURL = p.ReturnURL
	}
	return o
}

// subject is what the buyer reads: never empty, and without the characters
// that Alipay forbids in it.
func subject(p gateway.Payment) string {
	for _, text := range []string{p.Description, p.Order, p.ID} {
		text = strings.TrimSpace(strings.Map(func(r rune) rune {
			if strings.ContainsRune("/=&", r) || r < ' ' {
				return ' '
			}
			return r
		}, text))
		if text != "" {
			return clip(text, maxSubject)
		}
	}
	return p.ID
}

// Query implements gateway.Gateway. A payment with a Ref that Alipay has not
// heard of is Open until its deadline, and then Closed.
func (g *Gateway) Query(ctx context.Context, p gateway.Payment) gateway.Answer {
	a, err := g.call(ctx, "alipay.trade.query", p.ID, trade{p.ID}, nil)
	switch {
	case isAbsent(err) && p.Ref == "":
		return gateway.Answer{Outcome: gateway.Refused, Code: subNotExist}
	case isAbsent(err) && g.over(p, err):
		return gateway.Answer{Outcome: gateway.Done, Status: gateway.Closed, Ref: p.ID, Code: subNotExist}
	case isAbsent(err):
		return gateway.Answer{Outcome: gateway.Done, Status: gateway.Open, Ref: p.ID, Code: subNotExist}
	case err != nil:
		return unknown(p, "query", err)
	}
	return state(p, a)
}

// over says that no buyer can come any more, when Alipay knows of none. Its
// clock decides when it is behind ours. It is in no signature, so it can put
// the end off and not bring it about.
func (g *Gateway) over(p gateway.Payment, absent error) bool {
	now := g.now()
	var f *failure
	if errors.As(absent, &f) && !f.at.IsZero() && f.at.Before(now) {
		now = f.at
	}
	return !p.ExpiresAt.IsZero() && now.After(p.ExpiresAt.Add(expiryMargin))
}

// state reads the answer to a query.
func state(p gateway.Payment, a answer) gateway.Answer {
	st := gateway.Answer{Outcome: gateway.Done, Ref: p.ID}
	switch {
	case a.OutTradeNo != p.ID:
		return unknown(p, "query", fmt.Errorf("%w: it names no trade", errUnreadable))
	case a.TradeStatus == "WAIT_BUYER_PAY":
		st.Status = gateway.Open
	case a.TradeStatus == "TRADE_CLOSED" && a.SendPayDate == "":
		st.Status = gateway.Closed
	// Closed with a date of payment: all of the money went back.
	case a.TradeStatus == "TRADE_SUCCESS", a.TradeStatus == "TRADE_FINISHED", a.TradeStatus == "TRADE_CLOSED":
		amount, ok := fromYuan(string(a.TotalAmount))
		if !ok {
			return unknown(p, "query", fmt.Errorf("%w: amount %q", errUnreadable, a.TotalAmount))
		}
		st.Status, st.Amount, st.Currency = gateway.Paid, amount, currency
	default:
		return unknown(p, "query", fmt.Errorf("%w: trade status %q", errUnreadable, a.TradeStatus))
	}
	return st
}

// Close implements gateway.Gateway. A payment that Alipay has not heard of
// cannot be closed there, and is Unknown until its deadline.
func (g *Gateway) Close(ctx context.Context, p gateway.Payment) gateway.Answer {
	_, err := g.call(ctx, "alipay.trade.close", p.ID, trade{p.ID}, nil)
	if err == nil {
		return gateway.Answer{Outcome: gateway.Done, Status: gateway.Closed, Ref: p.ID}
	}
	// Paid, closed before, not there, or no answer: only a query can tell, and
	// for what is not there it must come after the deadline.
	p.Ref = p.ID
	a := g.Query(ctx, p)
	if a.Outcome == gateway.Unknown || a.Status != gateway.Open {
		return a
	}
	if a.Code == subNotExist {
		err = fmt.Errorf("%w: %w", errMayCome, err)
	} else {
		err = fmt.Errorf("%w: %w", errStillOpen, err)
	}
	return unknown(p, "close", err)
}
