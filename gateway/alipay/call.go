package alipay

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAnswer is how many bytes of an answer are read; more is unreadable.
const maxAnswer = 1 << 20

var (
	errUnsigned   = errors.New("the answer has no valid signature")
	errUnreadable = errors.New("unreadable answer")
	errStillOpen  = errors.New("still open after closing")
	errMayCome    = errors.New("the buyer may still come, until its deadline")
	errNoRefund   = errors.New("answered as if made, and not to be found")
)

// failure is an authentic answer that is not a success.
type failure struct {
	code, sub, msg string
	at             time.Time // by Alipay's clock; zero when it did not say
}

func (f *failure) Error() string { return fmt.Sprintf("%s %s: %s", f.code, f.sub, f.msg) }

// answer has the fields that we read of any answer.
type answer struct {
	Code         string  `json:"code"`
	SubCode      string  `json:"sub_code"`
	SubMsg       string  `json:"sub_msg"`
	OutTradeNo   string  `json:"out_trade_no"`
	TradeStatus  string  `json:"trade_status"`
	TotalAmount  decimal `json:"total_amount"`
	SendPayDate  string  `json:"send_pay_date"`
	QRCode       string  `json:"qr_code"`
	FundChange   string  `json:"fund_change"`
	OutRequestNo string  `json:"out_request_no"`
	RefundAmount decimal `json:"refund_amount"`
	RefundStatus string  `json:"refund_status"`
	BillURL      string  `json:"bill_download_url"`
	OutBizNo     string  `json:"out_biz_no"` // of transfers, like what follows
	OrderID      string  `json:"order_id"`
	ProductCode  string  `json:"product_code"`
	Status       string  `json:"status"`
	TransAmount  decimal `json:"trans_amount"`
	ErrorCode    string  `json:"error_code"`
}

// decimal is an amount's text, whether it came as a string or as a number.
type decimal string

func (d *decimal) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(d))
	}
	*d = decimal(b)
	return nil
}

// call makes one call about the trade of our number and returns its authentic
// answer. A *failure is authentic too; any other error says nothing of what
// happened.
func (g *Gateway) call(ctx context.Context, method, number string, biz any, more map[string]string) (answer, error) {
	form, err := g.request(method, biz, g.now(), more)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.baseURL+"?charset="+charset, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset="+charset)
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer{}, err
	}
	if resp.StatusCode != http.StatusOK || len(body) > maxAnswer {
		return answer{}, fmt.Errorf("%w: http %d, %d bytes", errUnreadable, resp.StatusCode, len(body))
	}
	a, err := g.read(method, number, body)
	if f := (*failure)(nil); errors.As(err, &f) {
		f.at, _ = http.ParseTime(resp.Header.Get("Date"))
	}
	return a, err
}

// read verifies an answer and reads it.
func (g *Gateway) read(method, number string, body []byte) (answer, error) {
	node, err := g.authentic(method, body)
	if err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(node, &a); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if a.OutTradeNo != "" && a.OutTradeNo != number {
		return answer{}, fmt.Errorf("%w: it is of trade %q", errUnreadable, a.OutTradeNo)
	}
	switch a.Code {
	case codeSuccess:
		return a, nil
	case "":
		return answer{}, fmt.Errorf("%w: no code", errUnreadable)
	}
	return answer{}, &failure{code: a.Code, sub: a.SubCode, msg: a.SubMsg}
}

// authentic returns the signed part of an answer: the bytes of the one member
// that is named after the method, exactly as they came.
func (g *Gateway) authentic(method string, body []byte) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	node := members[strings.ReplaceAll(method, ".", "_")+"_response"]
	if node == nil {
		node = members["error_response"]
	}
	if node == nil {
		return nil, fmt.Errorf("%w: no member for %s", errUnreadable, method)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(text(members["sign"]))
	if err != nil || len(signature) == 0 {
		return nil, fmt.Errorf("%w%s", errUnsigned, hint(node))
	}
	key, err := g.trust.signer(text(members["alipay_cert_sn"]))
	if err != nil {
		return nil, err
	}
	if !verify(key, node, signature) {
		return nil, errUnsigned
	}
	return node, nil
}

// signer is the key that an answer must be signed with.
func (t trust) signer(sn string) (key *rsa.PublicKey, err error) {
	if t.bySN == nil {
		return t.keys[0], nil
	}
	if key = t.bySN[sn]; key == nil {
		return nil, fmt.Errorf("%w: by certificate %q, which is not configured", errUnsigned, sn)
	}
	return key, nil
}

// hint repeats what an unsigned answer claims, for people: it is most often a
// key that Alipay does not know.
func hint(node json.RawMessage) string {
	var a answer
	if json.Unmarshal(node, &a) != nil || a.Code == "" {
		return ""
	}
	return fmt.Sprintf(": it claims %s %s", clip(a.Code, maxHint), clip(a.SubCode, maxHint))
}

const maxHint = 64 // characters

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func clip(s string, characters int) string {
	if r := []rune(s); len(r) > characters {
		return string(r[:characters])
	}
	return s
}

// isAnswer says that err is what Alipay said, and not that it could not be heard.
func isAnswer(err error) bool {
	var f *failure
	return errors.As(err, &f)
}
