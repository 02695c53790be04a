// Package wechatpay is the gateway to WeChat Pay in mainland China, over its
// APIv3. It is written on the standard library's cryptography.
//
// Four methods: "native" answers an address that is shown as a QR code and
// scanned with WeChat, "h5" a page for a browser on a phone outside WeChat;
// "jsapi" (a page or mini program inside WeChat) and "app" (the merchant's own
// app) answer, as Answer.Secret, the signed JSON object with which the page or
// the app calls WeChat. Payment.Payer is the buyer's openid for jsapi and his
// IP address for h5; the others need none.
//
// # What repeating means here
//
// Our own numbers are WeChat Pay's keys as well (out_trade_no, out_refund_no),
// kept for good: the same number with the same parameters is the same payment
// or refund, with others it is refused. So Payment.Ref is our number again, and
// every question is asked by it.
//
// # Paying out
//
// The receiver of a transfer is his openid, with ":NAME" behind it if WeChat Pay
// is to pay nobody of another name, which it wants to know from 2000 yuan on. It
// waits for him to confirm it in WeChat with PayoutAnswer.Confirm, fails after 24
// hours, and can be taken back until he has. While one waits for him, another to
// the same receiver is better not begun: he would see two.
//
// # What is believed
//
// Every request is signed by the merchant, and every answer must be signed by
// WeChat Pay. One that is not, whatever its status and whatever it says, is
// Unknown: it may be a proxy's. So is an authentic one with a code that is not
// known to be final.
package wechatpay

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	methodNative = "native"
	methodJSAPI  = "jsapi"
	methodH5     = "h5"
	methodApp    = "app"
)

const currency = "CNY"

// maxAmount is the contract's bound in fen, 2^53-1.
const maxAmount = 1<<53 - 1

// Gateway is a gateway.Gateway. It is safe for concurrent use.
type Gateway struct {
	client      client
	apiv3       []byte
	appID       string
	mobileAppID string
	notifyURL   string
	scene       string // of transfers; empty = none are made
	reports     []report
}

var _ gateway.Gateway = (*Gateway)(nil)

// New checks the options and makes no call.
func New(o Options) (*Gateway, error) {
	c, err := o.client()
	if err != nil {
		return nil, fmt.Errorf("wechatpay: options: %w", err)
	}
	reports := []report{}
	for _, r := range o.TransferReports {
		reports = append(reports, report(r))
	}
	return &Gateway{
		scene: o.TransferScene, reports: reports,
		client: c, apiv3: []byte(o.APIv3Key), appID: o.AppID,
		mobileAppID: cmp.Or(o.MobileAppID, o.AppID), notifyURL: o.NotifyURL,
	}, nil
}

// Methods implements gateway.Gateway.
func (g *Gateway) Methods() []string {
	return []string{methodNative, methodJSAPI, methodH5, methodApp}
}

// Check implements gateway.Gateway.
func (g *Gateway) Check(p gateway.Payment) *gateway.Unfit {
	if !g.offers(p.Method) {
		return &gateway.Unfit{Field: "method", Detail: fmt.Sprintf("method %q is not one of %v", p.Method, g.Methods())}
	}
	if p.Currency != currency {
		return &gateway.Unfit{Field: "currency", Detail: "wechat pay takes CNY only"}
	}
	if p.Amount < 1 || p.Amount > maxAmount {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("wechat pay can't carry %d fen", p.Amount)}
	}
	if p.Method == methodJSAPI && p.Payer == "" {
		return &gateway.Unfit{Field: "payer", Detail: "jsapi needs the buyer's openid"}
	}
	if p.Method == methodH5 && p.Payer == "" {
		return &gateway.Unfit{Field: "payer", Detail: "h5 needs the buyer's IP address"}
	}
	return nil
}

func (g *Gateway) offers(method string) bool { return slices.Contains(g.Methods(), method) }

// Create implements gateway.Gateway.
func (g *Gateway) Create(ctx context.Context, p gateway.Payment) gateway.Answer {
	if unfit := g.Check(p); unfit != nil {
		return gateway.Answer{Outcome: gateway.Refused, Code: unfit.Field + "_unsupported"}
	}
	var made prepaid
	err := g.client.call(ctx, http.MethodPost, "/v3/pay/transactions/"+p.Method, g.order(p), &made)
	if err == nil {
		return g.opened(p, made)
	}
	if !isFinal(err) && !speaksOfState(err) {
		return unknown(p, "create", err)
	}
	// Paid, closed, or used with other parameters: the order itself tells. And a
	// refused call is no proof that an earlier one made nothing.
	a := g.Query(ctx, p)
	switch {
	case a.Outcome != gateway.Refused:
		return a
	case isFinal(err):
		return gateway.Answer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknown(p, "create", err)
}

// Query implements gateway.Gateway.
func (g *Gateway) Query(ctx context.Context, p gateway.Payment) gateway.Answer {
	var t transaction
	err := g.client.call(ctx, http.MethodGet, transactionPath(p.ID)+"?mchid="+url.QueryEscape(g.client.mchid), nil, &t)
	if isAbsent(err) {
		return gateway.Answer{Outcome: gateway.Refused, Code: code(err)}
	}
	if err == nil {
		err = g.ours(t, p.ID)
	}
	if err != nil {
		return unknown(p, "query", err)
	}
	status, err := t.status()
	if err != nil {
		return unknown(p, "query", err)
	}
	a := gateway.Answer{Outcome: gateway.Done, Status: status, Ref: p.ID}
	if status == gateway.Paid {
		a.Amount, a.Currency = t.Amount.Total, t.Amount.Currency
	}
	return a
}

// Close implements gateway.Gateway. Without Payment.Ref it first creates the
// payment under its number: that finds the one whose answer was lost, and lets
// no call that is still on its way create it afterwards.
func (g *Gateway) Close(ctx context.Context, p gateway.Payment) gateway.Answer {
	if !g.offers(p.Method) {
		return unknown(p, "close", fmt.Errorf("method %q is not one of %v", p.Method, g.Methods()))
	}
	if p.Ref == "" {
		a := g.Create(ctx, p)
		if a.Outcome == gateway.Refused {
			return gateway.Answer{Outcome: gateway.Done, Status: gateway.Closed, Code: a.Code}
		}
		if a.Outcome != gateway.Done || a.Status != gateway.Open {
			return a
		}
	}
	err := g.client.call(ctx, http.MethodPost, transactionPath(p.ID)+"/close", merchant{g.client.mchid}, nil)
	if err == nil {
		return gateway.Answer{Outcome: gateway.Done, Status: gateway.Closed, Ref: p.ID}
	}
	// Paid, closed before, being paid, too early, or an answer that says nothing.
	a := g.Query(ctx, p)
	if a.Outcome == gateway.Done && a.Status != gateway.Open {
		return a
	}
	return unknown(p, "close", err)
}

func transactionPath(id string) string {
	return "/v3/pay/transactions/out-trade-no/" + url.PathEscape(id)
}

func unknown(p gateway.Payment, what string, err error) gateway.Answer {
	return gateway.Answer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("wechatpay: %s payment %s: %w", what, p.ID, err),
	}
}

// beijing is the offset in which WeChat Pay writes times.
var beijing = time.FixedZone("", 8*60*60)
