package wechatpay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// An order's own end must lie at least a minute after WeChat Pay takes it, and
// at most 7 days. We count from the stored creation of the attempt, so that a
// repeated call says the same; the margin covers clocks that differ and a first
// call that came late. Shorter deadlines are kept by closing the order.
const (
	minOrder    = time.Minute
	maxOrder    = 7 * 24 * time.Hour
	orderMargin = 2 * time.Minute
)

// Texts that WeChat Pay would refuse for their length are cut, in bytes.
const (
	maxDescription = 127
	maxAttach      = 127
	maxReason      = 80
)

type merchant struct {
	MchID string `json:"mchid"`
}

// order is the body of a create call. Its fields follow from the payment
// alone, so that a repeated call is the same to the byte.
type order struct {
	AppID       string      `json:"appid"`
	MchID       string      `json:"mchid"`
	Description string      `json:"description"`
	OutTradeNo  string      `json:"out_trade_no"`
	TimeExpire  string      `json:"time_expire,omitempty"`
	Attach      string      `json:"attach,omitempty"`
	NotifyURL   string      `json:"notify_url"`
	Amount      orderAmount `json:"amount"`
	Payer       *payer      `json:"payer,omitempty"`      // jsapi
	SceneInfo   *sceneInfo  `json:"scene_info,omitempty"` // h5
}

type orderAmount struct {
	Total    int64  `json:"total"` // fen
	Currency string `json:"currency"`
}

type payer struct {
	OpenID string `json:"openid"`
}

type sceneInfo struct {
	PayerClientIP string `json:"payer_client_ip"`
	H5Info        struct {
		Type string `json:"type"`
	} `json:"h5_info"`
}

func (g *Gateway) order(p gateway.Payment) order {
	o := order{
		AppID: g.appOf(p.Method), MchID: g.client.mchid, OutTradeNo: p.ID, NotifyURL: g.notifyURL,
		Description: clip(cmp.Or(p.Description, p.Order, p.ID), maxDescription),
		Attach:      clip(p.Order, maxAttach),
		TimeExpire:  expiry(p),
		Amount:      orderAmount{p.Amount, p.Currency},
	}
	switch p.Method {
	case methodJSAPI:
		o.Payer = &payer{p.Payer}
	case methodH5:
		o.SceneInfo = &sceneInfo{PayerClientIP: p.Payer}
		o.SceneInfo.H5Info.Type = "Wap"
	}
	return o
}

func (g *Gateway) appOf(method string) string {
	if method == methodApp {
		return g.mobileAppID
	}
	return g.appID
}

// expiry is the deadline of the attempt within WeChat Pay's bounds; empty when
// there is none, which means 7 days.
func expiry(p gateway.Payment) string {
	at := p.ExpiresAt
	if at.IsZero() {
		return ""
	}
	if !p.CreatedAt.IsZero() {
		if least := p.CreatedAt.Add(minOrder + orderMargin); at.Before(least) {
			at = least
		}
		if most := p.CreatedAt.Add(maxOrder - orderMargin); at.After(most) {
			at = most
		}
	}
	return at.In(beijing).Format(time.RFC3339)
}

// prepaid is the answer to a create call; each method fills one field.
type prepaid struct {
	CodeURL  string `json:"code_url"`
	H5URL    string `json:"h5_url"`
	PrepayID string `json:"prepay_id"`
}

// opened turns it into what the buyer needs. Answers without that are not of
// the method that was asked for.
func (g *Gateway) opened(p gateway.Payment, made prepaid) gateway.Answer {
	a := gateway.Answer{Outcome: gateway.Done, Status: gateway.Open, Ref: p.ID}
	var err error
	switch {
	case p.Method == methodNative && made.CodeURL != "":
		a.URL = made.CodeURL
	case p.Method == methodH5 && made.H5URL != "":
		a.URL = made.H5URL
		if p.ReturnURL != "" {
			a.URL += "&redirect_url=" + url.QueryEscape(p.ReturnURL)
		}
	case p.Method == methodJSAPI && made.PrepayID != "":
		a.Secret, err = g.invokePage(made.PrepayID)
	case p.Method == methodApp && made.PrepayID != "":
		a.Secret, err = g.invokeApp(made.PrepayID)
	default:
		err = fmt.Errorf("%w: nothing to pay with by %s", errUnreadable, p.Method)
	}
	if err != nil {
		return unknown(p, "create", err)
	}
	return a
}

// invokePage is what WeixinJSBridge and wx.requestPayment take.
func (g *Gateway) invokePage(prepayID string) (string, error) {
	v := struct {
		AppID     string `json:"appId"`
		TimeStamp string `json:"timeStamp"`
		NonceStr  string `json:"nonceStr"`
		Package   string `json:"package"`
		SignType  string `json:"signType"`
		PaySign   string `json:"paySign"`
	}{AppID: g.appID, TimeStamp: g.client.stamp(), NonceStr: newNonce(), Package: "prepay_id=" + prepayID, SignType: "RSA"}
	var err error
	if v.PaySign, err = g.client.sign(v.AppID, v.TimeStamp, v.NonceStr, v.Package); err != nil {
		return "", err
	}
	return encode(v)
}

// invokeApp is what the open SDK's PayReq takes.
func (g *Gateway) invokeApp(prepayID string) (string, error) {
	v := struct {
		AppID     string `json:"appid"`
		PartnerID string `json:"partnerid"`
		PrepayID  string `json:"prepayid"`
		Package   string `json:"package"`
		NonceStr  string `json:"noncestr"`
		Timestamp string `json:"timestamp"`
		Sign      string `json:"sign"`
	}{AppID: g.mobileAppID, PartnerID: g.client.mchid, PrepayID: prepayID, Package: "Sign=WXPay", NonceStr: newNonce(), Timestamp: g.client.stamp()}
	var err error
	if v.Sign, err = g.client.sign(v.AppID, v.Timestamp, v.NonceStr, v.PrepayID); err != nil {
		return "", err
	}
	return encode(v)
}

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// transaction is an order as WeChat Pay tells it, in an answer or in a
// notification.
type transaction struct {
	MchID      string `json:"mchid"`
	AppID      string `json:"appid"`
	OutTradeNo string `json:"out_trade_no"`
	TradeState string `json:"trade_state"`
	Amount     struct {
		// Total is the price of the order. The payer's share (payer_total) is less
		// when he had a coupon, and is none of our business.
		Total    int64  `json:"total"`
		Currency string `json:"currency"`
	} `json:"amount"`
}

// ours says that t is the order asked for, of this merchant.
func (g *Gateway) ours(t transaction, id string) error {
	if err := g.mine(t); err != nil {
		return err
	}
	if t.OutTradeNo != id {
		return fmt.Errorf("%w: it is of order %.64q", errUnreadable, t.OutTradeNo)
	}
	return nil
}

func (g *Gateway) mine(t transaction) error {
	if t.MchID != g.client.mchid || t.AppID != g.appID && t.AppID != g.mobileAppID {
		return fmt.Errorf("%w: it is of merchant %.64q and app %.64q", errUnreadable, t.MchID, t.AppID)
	}
	return nil
}

// status translates the state. USERPAYING and PAYERROR end in money or in
// nothing, and until then it can arrive.
func (t transaction) status() (gateway.Status, error) {
	switch t.TradeState {
	case "SUCCESS", "REFUND":
		if t.Amount.Total < 1 || t.Amount.Total > maxAmount || t.Amount.Currency != currency {
			return "", fmt.Errorf("%w: paid amount %d %.8q", errUnreadable, t.Amount.Total, t.Amount.Currency)
		}
		return gateway.Paid, nil
	case "NOTPAY", "USERPAYING", "ACCEPT", "PAYERROR":
		return gateway.Open, nil
	case "CLOSED", "REVOKED":
		return gateway.Closed, nil
	}
	return "", fmt.Errorf("%w: state %.40q", errUnreadable, t.TradeState)
}
