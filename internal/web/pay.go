package web

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"rsc.io/qr"

	"github.com/holdfast-pay/holdfast"
)

// openWait is how long a visitor waits for a gateway before he is shown that it
// has not answered.
const openWait = 3 * time.Second

func (s *site) pay() {
	s.page("GET /pay/{order}", showPay)
	s.page("POST /pay/{order}", letIn)
	s.page("GET /pay/{order}/live", hearPay)
	s.page("POST /pay/{order}/with", payWith)
	s.page("POST /pay/{order}/cancel", cancelOrder)
}

// way is a way to pay that the cashier knows.
type way struct {
	Gateway, method string
	scan            bool // by a code that another device reads; otherwise the buyer's browser goes there
	phone, desk     bool // for browsers on a phone, and elsewhere
}

// Its words are pay.way.<gateway>.<method>. Methods that need an app, or the
// gateway's script in the page, are not among them.
var payWays = []way{
	{"alipay", "precreate", true, true, true},
	{"alipay", "page", false, false, true},
	{"alipay", "wap", false, true, false},
	{"wechatpay", "native", true, true, true},
	{"wechatpay", "h5", false, true, false},
	{"stripe", "checkout", false, true, true},
}

// ID is what the form sends.
func (w way) ID() string { return w.Gateway + "." + w.method }

// ways are those that this visitor can pay o by.
func (v *visit) ways(o holdfast.Order) (ways []way) {
	possible := v.core.Ways(o, v.payInput(o.ID))
	phone := v.r.Header.Get("Sec-CH-UA-Mobile") == "?1" || strings.Contains(v.r.UserAgent(), "Mobile")
	for _, w := range payWays {
		if slices.Contains(possible, holdfast.Way{Gateway: w.Gateway, Method: w.method}) && (phone && w.phone || !phone && w.desk) {
			ways = append(ways, w)
		}
	}
	return ways
}

// host is the visitor's IP address, which WeChat Pay asks for on phones.
func (v *visit) host() string {
	host, _, err := net.SplitHostPort(v.r.RemoteAddr)
	if err != nil {
		return v.r.RemoteAddr
	}
	return host
}

// payInput is what every way to pay an order has in common.
func (v *visit) payInput(order string) holdfast.PayInput {
	in := holdfast.PayInput{Order: order, Payer: v.host(), Wait: openWait}
	if v.o.URL != "" {
		in.ReturnURL = v.o.URL + "/pay/" + order + "?back=1"
	}
	return in
}

// payView is an order as its buyer sees it.
type payView struct {
	holdfast.Order
	Step     string            // what the page is about: pay.step.<step>
	Payment  *holdfast.Payment // the attempt that can be paid, or that decides; nil = none
	Next     *holdfast.Payment // the attempt that waits for the end of Payment; nil = none
	Code     *code             // of a Payment that is paid by one; nil = by its URL
	Ways     []way             // that can be chosen
	Refunds  []holdfast.Refund
	Key      string // of the next form
	Go       bool   // on to the gateway, without another click
	Declined bool   // the gateway would not open the last attempt
}

// Until is when the buyer's time is over.
func (p payView) Until() holdfast.Time {
	if p.Payment != nil && p.Payment.ExpiresAt < p.ExpiresAt && p.Step != "choose" {
		return p.Payment.ExpiresAt
	}
	return p.ExpiresAt
}

// The steps of paying.
const (
	choose  = "choose"  // a way to pay
	wait    = "wait"    // until the gateway answers
	onward  = "open"    // the buyer can pay
	closing = "closing" // the time is over and the gateway is asked what became of the money
	late    = "late"    // the money came too late and goes back
	back    = "back"    // it is there
)

func (v *visit) payView() (payView, error) {
	order, err := v.ownOrder()
	if err != nil {
		return payView{}, err
	}
	d, err := v.core.Detail(v.r.Context(), order)
	if err != nil {
		return payView{}, err
	}
	if err := v.translate(v.r.Context(), d.Lines); err != nil {
		return payView{}, err
	}
	p := payView{Order: d.Order, Step: string(d.State), Refunds: d.RefundList, Key: rand.Text(), Go: v.r.URL.Query().Has("go")}
	for i := range d.Payments {
		switch d.Payments[i].ID {
		case d.Order.Payment:
			p.Payment = &d.Payments[i]
		case d.NextPayment:
			p.Next = &d.Payments[i]
		}
	}
	switch d.State {
	case "held":
		p.Step = choose
		p.Declined = len(d.Payments) > 0 && d.Payments[len(d.Payments)-1].State == "refused"
	case "paying":
		p.Step = wait
		if p.Payment != nil && p.Payment.State == "open" && p.Next == nil {
			p.Step = onward
		}
	case "refunding":
		p.Step = late
	case "refunded":
		if slices.ContainsFunc(p.Refunds, func(r holdfast.Refund) bool { return r.Late }) {
			p.Step = back
		}
	}
	if p.Step == choose || p.Step == onward || p.Step == wait {
		p.Ways = v.ways(d.Order)
	}
	return p, p.draw()
}

// Payable says whether money can be sent now: also while another attempt waits,
// since what it waits for may take minutes.
func (p payView) Payable() bool {
	return (p.Step == onward || p.Step == wait) && p.Payment != nil && p.Payment.State == "open" && p.Payment.URL != ""
}

// draw makes the code of an attempt that is paid by one.
func (p *payView) draw() (err error) {
	if p.Payable() && slices.ContainsFunc(payWays, func(w way) bool { return w.scan && w.is(p.Payment) }) {
		p.Code, err = draw(p.Payment.URL)
	}
	return err
}

func (w way) is(p *holdfast.Payment) bool { return p.Gateway == w.Gateway && p.Method == w.method }

// Cost is that of all pieces of a line.
func (p payView) Cost(l holdfast.Line) int64 { return l.Price * l.Quantity }

// Backorder says whether a line was sold though there was no piece of it.
func (p payView) Backorder() bool {
	return slices.ContainsFunc(p.Lines, func(l holdfast.Line) bool { return l.Backordered })
}

// Chosen says whether w is the way that the buyer chose last.
func (p payView) Chosen(w way) bool {
	last := cmp.Or(p.Next, p.Payment)
	return last != nil && p.Step != choose && w.is(last)
}

func showPay(v *visit) error {
	p, err := v.payView()
	if err != nil {
		return err
	}
	if v.r.URL.Query().Has("back") { // from the gateway's page, which proves nothing
		if p.Payment != nil {
			if _, err := v.core.Refresh(v.r.Context(), p.Payment.ID); err != nil {
				v.o.Logger.WarnContext(v.r.Context(), "ask about a payment", "payment", p.Payment.ID, "error", err)
			}
		}
		return v.goTo("/pay/" + p.ID)
	}
	return v.show(http.StatusOK, "shop/pay", p)
}

func hearPay(v *visit) error {
	order, err := v.ownOrder()
	if err != nil {
		return err
	}
	return v.hear(holdfast.TopicOrder + "/" + order)
}

// secretCookie opens one order to a browser that has not bought it in our shop.
const secretCookie = "holdfast_order"

// ownOrder is the order of the path, if the visitor may see it.
func (v *visit) ownOrder() (string, error) {
	id := v.r.PathValue("order")
	if c, err := v.r.Cookie(secretCookie); err == nil && v.core.CheckClientSecret(id, c.Value) {
		return id, nil
	}
	customer := v.customer()
	if customer == "" {
		return "", errNotFound
	}
	o, err := v.core.Order(v.r.Context(), id)
	if err != nil {
		return "", err
	}
	if o.Customer != customer {
		return "", errNotFound
	}
	return id, nil
}

// letIn opens an order to whoever was sent here with its client secret.
func letIn(v *visit) error {
	id, secret := v.r.PathValue("order"), v.r.PostFormValue("secret")
	if !v.core.CheckClientSecret(id, secret) {
		return errNotFound
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: secretCookie, Value: secret, Path: "/pay/" + id, MaxAge: buyerAge, HttpOnly: true, Secure: v.secure(), SameSite: http.SameSiteLaxMode,
	})
	return v.goTo("/pay/" + id)
}

// payWith starts a payment by another way than before, or the first.
func payWith(v *visit) error {
	order, err := v.ownOrder()
	if err != nil {
		return err
	}
	key, chosen := v.r.PostFormValue("key"), v.r.PostFormValue("way")
	n := slices.IndexFunc(payWays, func(w way) bool { return w.ID() == chosen })
	if n < 0 || !keyForm.MatchString(key) {
		return errForm
	}
	in := v.payInput(order)
	in.Gateway, in.Method = payWays[n].Gateway, payWays[n].method
	_, err = v.core.Pay(v.r.Context(), holdfast.Key{Scope: "pay-" + order, Value: key, Print: []byte(chosen)}, in)
	if err != nil && !overtaken(err) {
		return err
	}
	if payWays[n].scan {
		return v.goTo("/pay/" + order)
	}
	return v.goTo("/pay/" + order + "?go=1")
}

// overtaken says that the order is no longer what the page showed: the page that
// comes next says what it is.
func overtaken(err error) bool {
	var no *holdfast.Rejection
	return errors.As(err, &no) && no.Code == holdfast.CodeInvalidState
}

func cancelOrder(v *visit) error {
	order, err := v.ownOrder()
	if err != nil {
		return err
	}
	if _, err := v.core.Cancel(v.r.Context(), holdfast.Key{}, order); err != nil && !overtaken(err) {
		return err
	}
	return v.goTo("/pay/" + order)
}

// code is a QR code as the path of an SVG: one unit a module.
type code struct {
	Size int
	Path string
}

// quiet is the empty edge that readers need, in modules.
const quiet = 4

func draw(text string) (*code, error) {
	c, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil, fmt.Errorf("web: code of %d bytes: %w", len(text), err)
	}
	var path strings.Builder
	for y := range c.Size {
		for x := 0; x < c.Size; x++ {
			from := x
			for x < c.Size && c.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from+quiet, y+quiet, x-from, x-from)
			}
		}
	}
	return &code{c.Size + 2*quiet, path.String()}, nil
}
