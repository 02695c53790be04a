package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

// PayInput starts a payment attempt.
type PayInput struct {
	Order     string
	Gateway   string        // "" = the only one
	Method    string        // "" = the gateway's first
	ReturnURL string        // where the buyer's browser goes afterwards; http or https
	Payer     string        // who pays, where the method must know: WeChat Pay's openid (jsapi) or the buyer's IP address (h5)
	Wait      time.Duration // how long to wait for the gateway; 0 = 10 s
}

const defaultWait = 10 * time.Second

// Pay starts a payment attempt and waits for the gateway to open it. When that
// takes longer than Wait, the payment comes back as requested and goes on by
// itself. While an attempt by another gateway or method is open, the new one is
// waiting until that is closed, and ends if that one is paid after all.
func (h *Holdfast) Pay(ctx context.Context, key Key, in PayInput) (Answer[Payment], error) {
	if a, ok, err := replayed[Payment](ctx, h, key.settled()); ok || err != nil {
		return a, err
	}
	name, gw, err := h.gateway(in.Gateway)
	if err != nil {
		return Answer[Payment]{}, err
	}
	if in.Method == "" {
		in.Method = gw.Methods()[0]
	}
	if !slices.Contains(gw.Methods(), in.Method) {
		return Answer[Payment]{}, reject(CodeMethodUnknown, "%s has no method %q", name, in.Method)
	}
	order, err := h.Order(ctx, in.Order)
	if err != nil {
		return Answer[Payment]{}, err
	}
	if u, err := url.Parse(in.ReturnURL); in.ReturnURL != "" && (err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "") {
		return Answer[Payment]{}, reject(CodeInvalidField, "return_url: an absolute http or https URL")
	}
	if !text(in.Payer) {
		return Answer[Payment]{}, reject(CodeInvalidField, "payer: at most %d characters", MaxText)
	}
	wire := gateway.Payment{Order: order.ID, Method: in.Method, Amount: order.Total, Currency: order.Currency, ReturnURL: in.ReturnURL, Payer: in.Payer}
	if unfit := gw.Check(wire); unfit != nil {
		return Answer[Payment]{}, reject(CodePaymentUnfit, "%s: %s", unfit.Field, unfit.Detail)
	}
	ev := flow.Event{On: flow.Pay, Gateway: name, Method: in.Method, ReturnURL: in.ReturnURL, Payer: in.Payer}
	started, err := command(ctx, h, key, in.Order, ev, func(c flow.Case) Payment {
		id := cmp.Or(c.Order.NextPayment, c.Order.Payment)
		return c.Payments[slices.IndexFunc(c.Payments, func(p Payment) bool { return p.ID == id })]
	})
	if err != nil {
		return Answer[Payment]{}, err
	}
	p, err := h.awaitOpen(ctx, started.Value, in.Wait)
	if err != nil {
		return Answer[Payment]{}, err
	}
	a, err := settle(ctx, h, key, p)
	a.Replayed = a.Replayed || started.Replayed
	return a, err
}

// awaitOpen waits until the gateway has said something of p.
func (h *Holdfast) awaitOpen(ctx context.Context, p Payment, wait time.Duration) (Payment, error) {
	if wait == 0 {
		wait = defaultWait
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	rung, stop := h.bell.listen(p.Order)
	defer stop()
	for {
		now, err := h.Payment(ctx, p.ID)
		if err != nil || now.State != flow.Requested && now.State != flow.Waiting {
			return now, err
		}
		select {
		case <-rung:
		case <-timeout.C:
			return now, nil
		case <-ctx.Done():
			return now, fmt.Errorf("holdfast: pay %s: %w", p.ID, ctx.Err())
		}
	}
}

// Way is a way to pay.
type Way struct {
	Gateway, Method string
}

// Ways are those that an order may be paid by, as far as that can be told
// beforehand, by gateway. in says where its buyer goes afterwards and who he is.
func (h *Holdfast) Ways(o Order, in PayInput) (ways []Way) {
	for _, name := range slices.Sorted(maps.Keys(h.o.Gateways)) {
		gw := h.o.Gateways[name]
		for _, method := range gw.Methods() {
			wire := gateway.Payment{Order: o.ID, Method: method, Amount: o.Total, Currency: o.Currency, ReturnURL: in.ReturnURL, Payer: in.Payer}
			if gw.Check(wire) == nil {
				ways = append(ways, Way{name, method})
			}
		}
	}
	return ways
}

// gateway finds a gateway; "" is the only one.
func (h *Holdfast) gateway(name string) (string, gateway.Gateway, error) {
	if name == "" && len(h.o.Gateways) == 1 {
		for n, g := range h.o.Gateways {
			return n, g, nil
		}
	}
	g, ok := h.o.Gateways[name]
	if !ok {
		return name, nil, reject(CodeGatewayUnknown, "there is no gateway %q", name)
	}
	return name, g, nil
}

// Payment finds one payment.
func (h *Holdfast) Payment(ctx context.Context, id string) (Payment, error) {
	return document[Payment](ctx, h, flow.KindPayment, id)
}

// Refresh asks the gateway about a payment now, e.g. because the buyer came
// back from its page, which by itself proves nothing.
func (h *Holdfast) Refresh(ctx context.Context, payment string) (Payment, error) {
	p, err := h.Payment(ctx, payment)
	if err != nil || p.State != flow.Open {
		return p, err
	}
	_, gw, err := h.gateway(p.Gateway)
	if err != nil {
		return p, err
	}
	call, cancel := context.WithTimeout(ctx, h.o.CallFor)
	defer cancel()
	ev, known := paymentFact(flow.DoQuery, gw.Query(call, wirePayment(p)))
	if !known {
		return p, nil // the task goes on asking
	}
	ev.ID = p.ID
	if _, _, err := h.advance(ctx, p.Order, ev, nil); err != nil {
		return p, err
	}
	return h.Payment(ctx, payment)
}

// wirePayment is the payment as the gateway knows it: always the same.
func wirePayment(p Payment) gateway.Payment {
	return gateway.Payment{
		ID: p.ID, Order: p.Order, Method: p.Method, Amount: p.Amount, Currency: p.Currency, Description: p.Description,
		Payer: p.Payer, ReturnURL: p.ReturnURL, CreatedAt: p.CreatedAt.Std(), ExpiresAt: p.ExpiresAt.Std(), Ref: p.Ref,
	}
}

// paymentFact is what an answer says happened; false = we still don't know.
func paymentFact(do flow.Do, a gateway.Answer) (flow.Event, bool) {
	ev := flow.Event{Ref: a.Ref, URL: a.URL, Secret: a.Secret, Code: a.Code, Amount: a.Amount, Currency: a.Currency}
	switch {
	case a.Outcome == gateway.Refused && do == flow.DoCreate:
		ev.On = flow.Refused
	case a.Outcome != gateway.Done:
		return ev, false
	case a.Status == gateway.Paid:
		ev.On = flow.MoneyCame
	case a.Status == gateway.Closed:
		ev.On = flow.ClosedThere
	case a.Status == gateway.Open && do != flow.DoClose:
		ev.On = flow.Opened
	default:
		return ev, false
	}
	return ev, true
}

// refundFact is what an answer says of a refund; false = we still don't know.
func refundFact(do flow.Do, a gateway.RefundAnswer) (flow.Event, bool) {
	ev := flow.Event{Ref: a.Ref, Code: a.Code}
	switch {
	case a.Outcome == gateway.Refused && do == flow.DoRefund:
		ev.On = flow.RefundDenied
	case a.Outcome == gateway.Accepted:
		ev.On = flow.RefundTaken
	case a.Outcome != gateway.Done:
		return ev, false
	default:
		ev.On = refundStatus(a.Status)
	}
	return ev, ev.On != ""
}

func refundStatus(s gateway.RefundStatus) flow.On {
	return map[gateway.RefundStatus]flow.On{
		gateway.RefundPending: flow.RefundTaken,
		gateway.RefundDone:    flow.RefundMade,
		gateway.RefundFailed:  flow.RefundBroke,
	}[s]
}
