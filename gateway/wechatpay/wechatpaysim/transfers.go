package wechatpaysim

import (
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// States of a transfer.
const (
	transferAccepted   = "ACCEPTED"
	transferWaiting    = "WAIT_USER_CONFIRM"
	transferUnderWay   = "TRANSFERING" // so it is spelled
	transferDone       = "SUCCESS"
	transferFailed     = "FAIL"
	transferCanceling  = "CANCELING"
	transferCancelled  = "CANCELLED"
	confirmWithin      = 24 * time.Hour // from when it waits for its receiver
	transferDelay      = 10 * time.Minute
	transferShownFor   = 30 * 24 * time.Hour
	minTransfer        = 10       // fen
	namedTransfer      = 2_000_00 // fen; from here on with the receiver's name
	maxReports         = 10
	maxReport          = 32 // characters
	maxTransferRemark  = 32 // characters
	reasonLapsed       = "OVERDUE_CLOSE"
	reasonUnable       = "PAYEE_ACCOUNT_ABNORMAL"
	reasonAnothersName = "NAME_NOT_CORRECT"
)

// Receivers to whom no money can be transferred.
const (
	UnknownOpenID = "oNOBODY000000000000000000000"
	WrongName     = "王不符" // is not the name of anybody
)

// move is money of a transfer that left the account, as soon as it is asked for, or
// came back.
type move struct {
	t      *transfer
	at     time.Time
	amount int64 // fen, negative when it leaves
}

// transfer is money on its way from the merchant to a person, or there.
type transfer struct {
	number      string // out_bill_no
	id          string // transfer_bill_no
	fingerprint string // what a repeated create must be equal to
	asked       transferBody
	state       string
	reason      string
	pack        string // package_info, by which the receiver's phone finds it
	fate        Kind   // TransferPending, TransferFails
	created     time.Time
	updated     time.Time
}

type transferBody struct {
	AppID      string `json:"appid"`
	OutBillNo  string `json:"out_bill_no"`
	SceneID    string `json:"transfer_scene_id"`
	OpenID     string `json:"openid"`
	UserName   string `json:"user_name,omitempty"`
	Amount     *int64 `json:"transfer_amount"`
	Remark     string `json:"transfer_remark"`
	NotifyURL  string `json:"notify_url,omitempty"`
	Perception string `json:"user_recv_perception,omitempty"`
	Reports    []struct {
		Type    string `json:"info_type"`
		Content string `json:"info_content"`
	} `json:"transfer_scene_report_infos"`
	Style *struct {
		Type string `json:"type"`
	} `json:"user_recv_style,omitempty"`
}

var (
	billForm   = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)
	openIDForm = regexp.MustCompile(`^[0-9A-Za-z_-]{6,64}$`)
	scenes     = []string{"1000", "1002", "1004", "1005", "1006", "1009", "1010", "1011", "1013"}
)

func (b *transferBody) check() *apiError {
	switch {
	case b.AppID != AppID && b.AppID != MobileAppID:
		return refused(http.StatusBadRequest, "INVALID_REQUEST", "APPID不存在")
	case !billForm.MatchString(b.OutBillNo):
		return invalid("/out_bill_no", "商户单号为1至32个数字或字母")
	case !slices.Contains(scenes, b.SceneID):
		return refused(http.StatusBadRequest, "INVALID_REQUEST", "你尚未获取该转账场景")
	case !openIDForm.MatchString(b.OpenID):
		return invalid("/openid", "收款用户OpenID错误")
	case b.OpenID == UnknownOpenID:
		return refused(http.StatusBadRequest, "INVALID_REQUEST", "openid与商户appid不匹配")
	case b.Amount == nil || *b.Amount < minTransfer || *b.Amount > maxFen:
		return invalid("/transfer_amount", "转账金额为不小于10的整数，单位为分")
	case *b.Amount >= namedTransfer && b.UserName == "":
		return invalid("/user_name", "转账金额达到2000元时必须传入收款用户姓名")
	case b.Remark == "" || utf8.RuneCountInString(b.Remark) > maxTransferRemark:
		return invalid("/transfer_remark", "转账备注必填，最多32个字符")
	case b.NotifyURL != "" && !notifiable(b.NotifyURL):
		return invalid("/notify_url", "通知地址须为不带参数的https地址")
	case len(b.Reports) == 0 || len(b.Reports) > maxReports:
		return invalid("/transfer_scene_report_infos", "需传入转账场景报备信息，请检查")
	}
	for _, r := range b.Reports {
		if r.Type == "" || r.Content == "" || utf8.RuneCountInString(r.Content) > maxReport {
			return invalid("/transfer_scene_report_infos", "转账场景报备信息错误")
		}
	}
	return nil
}

// open decrypts the receiver's name, which every request hides anew.
func (s *Sim) open(text, keyID string) (string, *apiError) {
	if text == "" {
		return "", nil
	}
	for _, k := range append(s.published(), s.keys.public) {
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil || k.id != keyID {
			continue
		}
		if plain, err := rsa.DecryptOAEP(sha1.New(), nil, k.key, sealed, nil); err == nil {
			return string(plain), nil
		}
	}
	return "", invalid("/user_name", "敏感信息解密失败，请检查Wechatpay-Serial与加密所用公钥是否一致")
}

func (s *Sim) createTransfer(c *call) (any, *apiError) {
	var b transferBody
	if fail := readBody(c.body, &b); fail != nil {
		return nil, fail
	}
	if fail := b.check(); fail != nil {
		return nil, fail
	}
	var fail *apiError
	if b.UserName, fail = s.open(b.UserName, c.asked); fail != nil {
		return nil, fail
	}
	fingerprint := string(encode(b))
	if t := s.transfers[b.OutBillNo]; t != nil {
		if t.fingerprint != fingerprint {
			return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "单号已存在但信息不一致，请查单后比较确认")
		}
		return t.made(), nil
	}
	if c.plan.short {
		return nil, refused(http.StatusForbidden, "NOT_ENOUGH", "资金不足，请充值后原单重试")
	}
	t := &transfer{
		number: b.OutBillNo, id: "1330" + s.id(32, digits), fingerprint: fingerprint, asked: b, state: transferAccepted,
		pack: s.id(42, letters) + "==", fate: c.plan.fate, created: c.now, updated: c.now,
	}
	s.transfers[t.number] = t
	s.moves = append(s.moves, move{t, c.now, -*b.Amount})
	s.sent = append(s.sent, t)
	switch {
	case b.UserName == WrongName:
		s.become(t, transferFailed, reasonAnothersName, c.now)
	case t.fate == TransferAccepted:
		later := c.now.Add(transferDelay)
		s.at(later, func() { s.await(t, later) })
	default:
		s.await(t, c.now)
	}
	return t.made(), nil
}

// await lets a transfer wait for its receiver, who has a day.
func (s *Sim) await(t *transfer, now time.Time) {
	if t.state != transferAccepted {
		return
	}
	t.state, t.updated = transferWaiting, now
	end := now.Add(confirmWithin)
	s.at(end, func() {
		if t.state == transferWaiting {
			s.become(t, transferFailed, reasonLapsed, end)
		}
	})
}

// become is the end of a transfer, of which the merchant is notified.
func (s *Sim) become(t *transfer, state, reason string, now time.Time) {
	t.state, t.reason, t.updated = state, reason, now
	if state != transferDone {
		s.moves = append(s.moves, move{t, now, *t.asked.Amount})
	}
	if t.asked.NotifyURL != "" {
		s.emit(now, t.asked.NotifyURL, "MCHTRANSFER.BILL.FINISHED", "mch_payment", t.object())
	}
}

// made is the answer to a create call, and alone has what the phone needs.
func (t *transfer) made() object {
	o := object{"out_bill_no": t.number, "transfer_bill_no": t.id, "create_time": stamp(t.created), "state": t.state}
	if t.state == transferWaiting || t.state == transferUnderWay {
		o["package_info"] = t.pack
	}
	if t.reason != "" {
		o["fail_reason"] = t.reason
	}
	return o
}

// object is the transfer as a query or a notification tells it.
func (t *transfer) object() object {
	o := object{
		"mch_id": MerchantID, "out_bill_no": t.number, "transfer_bill_no": t.id, "appid": t.asked.AppID, "state": t.state,
		"transfer_amount": *t.asked.Amount, "transfer_remark": t.asked.Remark, "openid": t.asked.OpenID,
		"create_time": stamp(t.created), "update_time": stamp(t.updated),
	}
	if t.reason != "" {
		o["fail_reason"] = t.reason
	}
	return o
}

func (s *Sim) queryTransfer(c *call) (any, *apiError) {
	return showTransfer(c, s.transfers[c.id])
}

func (s *Sim) findTransfer(c *call) (any, *apiError) {
	for _, t := range s.sent {
		if t.id == c.id {
			return showTransfer(c, t)
		}
	}
	return showTransfer(c, nil)
}

func showTransfer(c *call, t *transfer) (any, *apiError) {
	if t == nil || c.now.Sub(t.created) > transferShownFor {
		return nil, errNoTransfer()
	}
	return t.object(), nil
}

func errNoTransfer() *apiError { return refused(http.StatusNotFound, "NOT_FOUND", "记录不存在") }

// cancelTransfer takes on the merchant's wish, until the receiver has confirmed.
func (s *Sim) cancelTransfer(c *call) (any, *apiError) {
	t := s.transfers[c.id]
	if t == nil {
		return nil, errNoTransfer()
	}
	switch t.state {
	case transferAccepted, transferWaiting:
		t.state, t.updated = transferCanceling, c.now
		end := c.now
		if t.fate == TransferPending {
			end = end.Add(transferDelay)
		}
		s.at(end, func() { s.become(t, transferCancelled, "", end) })
	case transferCanceling, transferCancelled:
	default:
		return nil, refused(http.StatusBadRequest, "INVALID_REQUEST", "当前单据状态不支持撤销")
	}
	return object{"out_bill_no": t.number, "transfer_bill_no": t.id, "state": t.state, "update_time": stamp(t.updated)}, nil
}

// ConfirmTransfer is the receiver agreeing on his phone. It fails, without
// effect, when the transfer does not wait for him.
func (s *Sim) ConfirmTransfer(number string) error {
	return s.decideTransfer(number, func(t *transfer, now time.Time) {
		switch t.fate {
		case TransferFails:
			s.become(t, transferFailed, reasonUnable, now)
		case TransferPending:
			t.state, t.updated = transferUnderWay, now
			end := now.Add(transferDelay)
			s.at(end, func() { s.become(t, transferDone, "", end) })
		default:
			s.become(t, transferDone, "", now)
		}
	})
}

// LapseTransfer is the receiver's day being over without his having confirmed.
func (s *Sim) LapseTransfer(number string) error {
	return s.decideTransfer(number, func(t *transfer, now time.Time) { s.become(t, transferFailed, reasonLapsed, now) })
}

func (s *Sim) decideTransfer(number string, decide func(*transfer, time.Time)) error {
	now := s.enter()
	defer s.mu.Unlock()
	t := s.transfers[number]
	if t == nil {
		return fmt.Errorf("transfer %s: there is none", number)
	}
	if t.state != transferWaiting {
		return fmt.Errorf("transfer %s: it is %s", number, t.state)
	}
	decide(t, now)
	return nil
}
