package alipay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-pay/holdfast/gateway"
)

var _ gateway.Payer = (*Gateway)(nil)

// minPayout is 0.10 yuan in fen, the least that Alipay transfers.
const minPayout = 10

const maxName = 64 // characters of a receiver's

// What every transfer from our balance to a person is called.
const (
	transferProduct = "TRANS_ACCOUNT_NO_PWD"
	transferScene   = "DIRECT_TRANSFER"
)

type transfer struct {
	OutBizNo    string   `json:"out_biz_no"`
	TransAmount string   `json:"trans_amount"`
	ProductCode string   `json:"product_code"`
	BizScene    string   `json:"biz_scene"`
	OrderTitle  string   `json:"order_title"`
	Remark      string   `json:"remark"`
	Payee       receiver `json:"payee_info"`
}

type receiver struct {
	Identity string `json:"identity"`
	Type     string `json:"identity_type"`
	Name     string `json:"name,omitempty"`
}

type transferQuery struct {
	ProductCode string `json:"product_code"`
	BizScene    string `json:"biz_scene"`
	OutBizNo    string `json:"out_biz_no"`
}

// receivers are the ways to name one, by the word before the colon.
var receivers = map[string]struct {
	kind  string
	form  *regexp.Regexp
	named bool // the name must be there too
}{
	"user_id":  {"ALIPAY_USER_ID", regexp.MustCompile(`^2088[0-9]{12}$`), false},
	"logon_id": {"ALIPAY_LOGON_ID", regexp.MustCompile(`^([0-9+-]{5,32}|[^@\s:]{1,64}@[^@\s:]{1,64})$`), true},
	"open_id":  {"OPEN_ID", regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`), false},
}

// readReceiver reads a destination. Where a name stands, Alipay pays nobody of
// another name.
func readReceiver(destination string) (receiver, error) {
	parts := strings.SplitN(destination, ":", 3)
	way, ok := receivers[parts[0]]
	if !ok || len(parts) < 2 {
		return receiver{}, errors.New("not user_id:2088…, logon_id:PHONE OR EMAIL:NAME or open_id:…")
	}
	r := receiver{Identity: parts[1], Type: way.kind}
	if !way.form.MatchString(r.Identity) {
		return r, fmt.Errorf("%q is no %s", r.Identity, parts[0])
	}
	if len(parts) == 3 {
		r.Name = strings.TrimSpace(parts[2])
	}
	if r.Name == "" && (way.named || len(parts) == 3) {
		return r, fmt.Errorf("the receiver's real name is missing after %s:%s", parts[0], r.Identity)
	}
	if utf8.RuneCountInString(r.Name) > maxName {
		return r, fmt.Errorf("the receiver's name has more than %d characters", maxName)
	}
	return r, nil
}

// CheckPayout implements gateway.Payer. Alipay lets money go only where both
// sides know each other by certificates.
func (g *Gateway) CheckPayout(p gateway.Payout) *gateway.Unfit {
	if g.trust.bySN == nil {
		return &gateway.Unfit{Field: "gateway", Detail: "alipay pays out in certificate mode only: give it the app's, the root's and alipay's certificates"}
	}
	if p.Currency != currency {
		return &gateway.Unfit{Field: "currency", Detail: "alipay pays out CNY, not " + p.Currency}
	}
	if p.Amount < minPayout || p.Amount > maxAmount {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("alipay pays out %s to %s yuan", toYuan(minPayout), toYuan(maxAmount))}
	}
	if _, err := readReceiver(p.Destination); err != nil {
		return &gateway.Unfit{Field: "destination", Detail: err.Error()}
	}
	return nil
}

// Payout implements gateway.Payer.
func (g *Gateway) Payout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	if unfit := g.CheckPayout(p); unfit != nil {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: unfit.Field + codeUnfit}
	}
	to, err := readReceiver(p.Destination)
	if err != nil {
		return unknownPayout(p, "create", err)
	}
	what := subject(gateway.Payment{ID: p.ID, Description: p.Description})
	a, err := g.call(ctx, "alipay.fund.trans.uni.transfer", p.ID, transfer{
		OutBizNo: p.ID, TransAmount: toYuan(p.Amount), ProductCode: transferProduct, BizScene: transferScene,
		OrderTitle: what, Remark: what, Payee: to,
	}, nil)
	if err == nil {
		return payoutAnswer(p, "create", a)
	}
	if !isAnswer(err) {
		return unknownPayout(p, "create", err)
	}
	// What is refused now may have been done by an earlier call: the transfer
	// itself can tell.
	found := g.QueryPayout(ctx, p)
	switch {
	case found.Outcome != gateway.Refused:
		return found
	case isFinal(err, finalOfPayout):
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownPayout(p, "create", err)
}

// QueryPayout implements gateway.Payer.
func (g *Gateway) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	a, err := g.call(ctx, "alipay.fund.trans.common.query", p.ID, transferQuery{transferProduct, transferScene, p.ID}, nil)
	if isFinal(err, []string{subNoOrder}) {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	if err != nil {
		return unknownPayout(p, "query", err)
	}
	return payoutAnswer(p, "query", a)
}

// payoutStatuses are Alipay's words. One that came back is REFUND, whether it
// had arrived before or not.
var payoutStatuses = map[string]gateway.PayoutStatus{
	"WAIT_PAY": gateway.PayoutPending,
	"DEALING":  gateway.PayoutPending,
	"SUCCESS":  gateway.PayoutPaid,
	"FAIL":     gateway.PayoutFailed,
	"CLOSED":   gateway.PayoutFailed,
	"REFUND":   gateway.PayoutReturned,
}

// payoutAnswer reads what Alipay says of a transfer. The first answer has no
// amount.
func payoutAnswer(p gateway.Payout, what string, a answer) gateway.PayoutAnswer {
	status, ok := payoutStatuses[a.Status]
	switch {
	case a.OutBizNo != p.ID:
		return unknownPayout(p, what, fmt.Errorf("%w: it is of transfer %q", errUnreadable, clip(a.OutBizNo, maxHint)))
	case !ok:
		return unknownPayout(p, what, fmt.Errorf("%w: transfer status %q", errUnreadable, clip(a.Status, maxHint)))
	}
	if a.TransAmount != "" {
		if amount, ok := fromYuan(string(a.TransAmount)); !ok || amount != p.Amount {
			return unknownPayout(p, what, fmt.Errorf("%w: it is of %q yuan, not of %s", errUnreadable, a.TransAmount, toYuan(p.Amount)))
		}
	}
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: status, Ref: a.OrderID, Code: a.ErrorCode}
}

func unknownPayout(p gateway.Payout, what string, err error) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("alipay: %s payout %s: %w", what, p.ID, err),
	}
}

const msgTransfer = "alipay.fund.trans.order.changed"

// readMessage reads what Alipay sends to an app's own address, of which only
// the transfers are ours to know.
func readMessage(params map[string]string) (gateway.Notification, error) {
	n := gateway.Notification{ID: params["notify_id"], Type: params["msg_method"], Ignored: true}
	if n.Type != msgTransfer {
		return n, nil
	}
	var a answer
	if err := json.Unmarshal([]byte(params["biz_content"]), &a); err != nil {
		return n, fmt.Errorf("biz_content: %w", err)
	}
	status, ok := payoutStatuses[a.Status]
	if a.ProductCode != transferProduct || ok && status == gateway.PayoutPending {
		return n, nil
	}
	amount, ok2 := fromYuan(string(a.TransAmount))
	if !ok || !ok2 || a.OutBizNo == "" {
		return n, fmt.Errorf("transfer %q of %q yuan is %q", clip(a.OutBizNo, maxHint), a.TransAmount, clip(a.Status, maxHint))
	}
	n.Ignored, n.Payout, n.PayoutID, n.PaidOut = false, a.OutBizNo, a.OrderID, status
	n.Amount, n.Currency = amount, currency
	return n, nil
}
