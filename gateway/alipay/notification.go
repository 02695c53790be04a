package alipay

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// maxParams of one notification are read.
const maxParams = 200

// Parse implements gateway.Gateway. The body must be the bytes as received:
// its content type is one that form parsers refuse, and its text may be in
// another charset, in whose bytes it is signed. Nothing in it tells its age, so
// the time is not looked at; what comes again meets a payment that has moved on.
func (g *Gateway) Parse(_ http.Header, body []byte, _ time.Time) (gateway.Notification, error) {
	params, err := parameters(string(body))
	if err != nil {
		return gateway.Notification{}, fmt.Errorf("alipay: notification: %w", err)
	}
	if err := g.verify(params); err != nil {
		return gateway.Notification{}, fmt.Errorf("alipay: notification: %w", err)
	}
	n, err := readNotification(params)
	if err != nil {
		return gateway.Notification{}, fmt.Errorf("alipay: notification %s: %w: %w", params["notify_id"], gateway.ErrMalformed, err)
	}
	return n, nil
}

// Acknowledge implements gateway.Gateway: nothing but the word stops Alipay
// from sending again.
func (g *Gateway) Acknowledge(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	word := "fail"
	if ok {
		word = "success"
	}
	// What is left of errors here is a sender that has gone; it comes again.
	_, _ = io.WriteString(w, word)
}

// parameters decodes a body once, and repairs nothing: a name that comes twice
// or a text that is not encoded right was not signed by Alipay.
func parameters(body string) (map[string]string, error) {
	params := map[string]string{}
	for pair := range strings.SplitSeq(body, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: not a form", gateway.ErrSignatureInvalid)
		}
		if _, twice := params[name]; twice {
			return nil, fmt.Errorf("%w: a parameter comes twice", gateway.ErrSignatureInvalid)
		}
		if len(params) == maxParams {
			return nil, fmt.Errorf("%w: more than %d parameters", gateway.ErrSignatureInvalid, maxParams)
		}
		params[name] = value
	}
	return params, nil
}

// verify also checks what no caller can: that it was sent to us.
func (g *Gateway) verify(params map[string]string) error {
	if params["sign"] == "" {
		return gateway.ErrSignatureMissing
	}
	if params["sign_type"] != signType {
		return fmt.Errorf("%w: of type %q, not %s", gateway.ErrSignatureInvalid, clip(params["sign_type"], maxHint), signType)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(params["sign"])
	if err != nil {
		return fmt.Errorf("%w: not base64", gateway.ErrSignatureInvalid)
	}
	signed := map[string]string{}
	for name, value := range params {
		if name != "sign" && name != "sign_type" {
			signed[name] = value
		}
	}
	authentic := false
	for _, key := range g.trust.keys {
		authentic = authentic || verify(key, []byte(content(signed, true)), signature)
	}
	switch {
	case !authentic:
		return gateway.ErrSignatureInvalid
	case params["app_id"] != g.appID:
		return fmt.Errorf("%w: it is for app %q", gateway.ErrSignatureInvalid, params["app_id"])
	case params["msg_method"] == "" && params["seller_id"] != g.sellerID: // messages to an app have none
		return fmt.Errorf("%w: it is for seller %q", gateway.ErrSignatureInvalid, params["seller_id"])
	}
	return nil
}

// readNotification translates. A trade that was refunded in part is TRADE_SUCCESS as
// before, one that was refunded in whole TRADE_CLOSED like one that nobody
// paid: the sum of the refunds tells.
func readNotification(params map[string]string) (gateway.Notification, error) {
	n := gateway.Notification{ID: params["notify_id"], Type: params["trade_status"], Payment: params["out_trade_no"]}
	if n.ID == "" {
		return n, fmt.Errorf("no notify_id")
	}
	if params["msg_method"] != "" {
		return readMessage(params)
	}
	if params["notify_type"] != "trade_status_sync" {
		n.Type, n.Ignored = params["notify_type"], true
		return n, nil
	}
	if n.Payment == "" {
		return n, fmt.Errorf("no out_trade_no")
	}
	refunded, ok := int64(0), true
	if s := params["refund_fee"]; s != "" {
		refunded, ok = fromYuan(s)
	}
	amount, ok2 := fromYuan(params["total_amount"])
	if !ok || !ok2 {
		return n, fmt.Errorf("amount %q, refunded %q", params["total_amount"], params["refund_fee"])
	}
	switch status := params["trade_status"]; {
	case status == "WAIT_BUYER_PAY":
		n.Ignored = true
	case status == "TRADE_FINISHED", status == "TRADE_SUCCESS" && refunded == 0:
		n.Status, n.Amount, n.Currency = gateway.Paid, amount, currency
	case status == "TRADE_CLOSED" && refunded == 0 && params["gmt_payment"] == "":
		n.Status = gateway.Closed
	case status == "TRADE_SUCCESS", status == "TRADE_CLOSED":
		// Alipay tells the sum of all refunds so far, and the number of the last.
		n.Refund, n.RefundID, n.Refunded = params["out_biz_no"], params["out_biz_no"], gateway.RefundDone
		n.Amount, n.Currency = refunded, currency
	default:
		return n, fmt.Errorf("trade status %q", status)
	}
	return n, nil
}
