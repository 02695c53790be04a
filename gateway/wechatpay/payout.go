package wechatpay

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-pay/holdfast/gateway"
)

var (
	_ gateway.Payer    = (*Gateway)(nil)
	_ gateway.Recaller = (*Gateway)(nil)
)

const (
	transfersPath = "/v3/fund-app/mch-transfer/transfer-bills"

	minPayout   = 10       // fen, the least that WeChat Pay transfers
	namedPayout = 2_000_00 // fen, from which on the receiver's name must be told
	maxName     = 64       // characters of a receiver's
	maxRemark   = 32       // characters
	maxReports  = 10       // of a scene
	maxReport   = 32       // characters of one
)

// TransferReport is one thing that a transfer's scene requires to be told, such
// as 活动名称 and the campaign's name. At most 32 characters each.
type TransferReport struct{ Type, Content string }

type transfer struct {
	AppID       string   `json:"appid"`
	OutBillNo   string   `json:"out_bill_no"`
	SceneID     string   `json:"transfer_scene_id"`
	OpenID      string   `json:"openid"`
	UserName    string   `json:"user_name,omitempty"` // encrypted
	Amount      int64    `json:"transfer_amount"`     // fen
	Remark      string   `json:"transfer_remark"`
	NotifyURL   string   `json:"notify_url"`
	SceneReport []report `json:"transfer_scene_report_infos"`
}

type report struct {
	Type    string `json:"info_type"`
	Content string `json:"info_content"`
}

// transferBill is a transfer as WeChat Pay tells it. Only the answer to its creation
// has package_info, only the others have the merchant and the amount.
type transferBill struct {
	MchID          string `json:"mch_id"`
	OutBillNo      string `json:"out_bill_no"`
	TransferBillNo string `json:"transfer_bill_no"`
	State          string `json:"state"`
	Amount         int64  `json:"transfer_amount"`
	FailReason     string `json:"fail_reason"`
	PackageInfo    string `json:"package_info"`
}

var openIDForm = regexp.MustCompile(`^[0-9A-Za-z_-]{6,64}$`)

// readReceiver reads a destination: an openid, and after a colon the name of
// whom it must be.
func readReceiver(p gateway.Payout) (openID, name string, unfit *gateway.Unfit) {
	openID, name, named := strings.Cut(p.Destination, ":")
	name = strings.TrimSpace(name)
	fault := func(detail string) *gateway.Unfit { return &gateway.Unfit{Field: "destination", Detail: detail} }
	switch {
	case !openIDForm.MatchString(openID):
		return "", "", fault(fmt.Sprintf("%q is no openid", openID))
	case named && name == "", utf8.RuneCountInString(name) > maxName:
		return "", "", fault(fmt.Sprintf("after openid: stands the receiver's real name, of at most %d characters", maxName))
	case name == "" && p.Amount >= namedPayout:
		return "", "", fault("from 2000.00 yuan on wechat pay wants the receiver's real name, as openid:NAME")
	}
	return openID, name, nil
}

// CheckPayout implements gateway.Payer.
func (g *Gateway) CheckPayout(p gateway.Payout) *gateway.Unfit {
	if g.scene == "" {
		return &gateway.Unfit{Field: "gateway", Detail: "wechat pay pays out for a scene that the merchant was granted: give it the scene's id"}
	}
	if p.Currency != currency {
		return &gateway.Unfit{Field: "currency", Detail: "wechat pay pays out CNY only"}
	}
	if p.Amount < minPayout || p.Amount > maxAmount {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("wechat pay pays out %d fen or more, and not %d", minPayout, p.Amount)}
	}
	_, _, unfit := readReceiver(p)
	return unfit
}

// Payout implements gateway.Payer. The receiver has 24 hours to confirm it with
// what is in Confirm; then it fails.
func (g *Gateway) Payout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	if unfit := g.CheckPayout(p); unfit != nil {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: unfit.Field + "_unsupported"}
	}
	made, err := g.transfer(ctx, p)
	if err == nil {
		return payoutAnswer(p, "create", made)
	}
	if !isFinal(err) && !speaksOfState(err) {
		return unknownPayout(p, "create", err)
	}
	// A refused call is no proof that an earlier one under this number was not
	// taken on.
	a := g.QueryPayout(ctx, p)
	switch {
	case a.Outcome != gateway.Refused:
		return a
	case isFinal(err):
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownPayout(p, "create", err)
}

// transfer creates the transfer, or finds the one that this call created before.
func (g *Gateway) transfer(ctx context.Context, p gateway.Payout) (made transferBill, err error) {
	openID, name, unfit := readReceiver(p)
	if unfit != nil {
		return made, fmt.Errorf("destination: %s", unfit.Detail)
	}
	if name != "" {
		if name, err = g.client.trusted.encrypt(name); err != nil {
			return made, err
		}
	}
	what := strings.TrimSpace(p.Description)
	if what == "" {
		what = p.ID
	}
	err = g.client.call(ctx, http.MethodPost, transfersPath, transfer{
		AppID: g.appID, OutBillNo: p.ID, SceneID: g.scene, OpenID: openID, UserName: name, Amount: p.Amount,
		Remark: characters(what, maxRemark), NotifyURL: g.notifyURL, SceneReport: g.reports,
	}, &made)
	return made, err
}

// encrypt hides a text from everybody but WeChat Pay, in the one way that it
// knows. The key is that which requests name.
func (k keyring) encrypt(text string) (string, error) {
	sealed, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, k.keys[k.asked], []byte(text), nil)
	if err != nil {
		return "", fmt.Errorf("encrypt the receiver's name: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}

// QueryPayout implements gateway.Payer. What its receiver needs to confirm it is
// only in the answer to its creation; where that was lost, it is asked for again.
func (g *Gateway) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	var found transferBill
	err := g.client.call(ctx, http.MethodGet, transferPath(p.ID), nil, &found)
	if isNoTransfer(err) {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	if err == nil && (found.MchID != g.client.mchid || found.Amount != p.Amount) {
		err = fmt.Errorf("%w: it is of merchant %.64q, of %d fen", errUnreadable, found.MchID, found.Amount)
	}
	if err != nil {
		return unknownPayout(p, "query", err)
	}
	a := payoutAnswer(p, "query", found)
	if p.Ref == "" && found.State == stateWaiting && g.CheckPayout(p) == nil {
		if made, err := g.transfer(ctx, p); err == nil && made.TransferBillNo == found.TransferBillNo {
			return payoutAnswer(p, "query", made)
		}
	}
	return a
}

// RecallPayout implements gateway.Recaller.
func (g *Gateway) RecallPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	var told transferBill
	err := g.client.call(ctx, http.MethodPost, transferPath(p.ID)+"/cancel", nil, &told)
	switch e, ok := asAPI(err); {
	case err == nil && told.OutBillNo == p.ID:
		return gateway.PayoutAnswer{Outcome: gateway.Accepted, Ref: told.TransferBillNo, Code: told.State}
	case err == nil:
		err = fmt.Errorf("%w: it is of transfer %.64q", errUnreadable, told.OutBillNo)
	case ok && e.status == http.StatusBadRequest && isFinal(err):
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownPayout(p, "recall", err)
}

func transferPath(id string) string { return transfersPath + "/out-bill-no/" + url.PathEscape(id) }

// isNoTransfer says that WeChat Pay has no such transfer.
func isNoTransfer(err error) bool {
	e, ok := asAPI(err)
	return ok && e.status == http.StatusNotFound && e.is("NOTFOUND", "RESOURCENOTEXISTS")
}

const stateWaiting = "WAIT_USER_CONFIRM"

// payoutStates are WeChat Pay's words. Nothing that is paid comes back.
var payoutStates = map[string]gateway.PayoutStatus{
	"ACCEPTED":    gateway.PayoutPending,
	"PROCESSING":  gateway.PayoutPending,
	stateWaiting:  gateway.PayoutPending,
	"TRANSFERING": gateway.PayoutPending, // so it is spelled
	"CANCELING":   gateway.PayoutPending,
	"SUCCESS":     gateway.PayoutPaid,
	"FAIL":        gateway.PayoutFailed,
	"CANCELLED":   gateway.PayoutFailed,
}

func payoutAnswer(p gateway.Payout, what string, b transferBill) gateway.PayoutAnswer {
	status, ok := payoutStates[b.State]
	if !ok || b.OutBillNo != p.ID || b.TransferBillNo == "" {
		return unknownPayout(p, what, fmt.Errorf("%w: transfer %.64q is %.40q", errUnreadable, b.OutBillNo, b.State))
	}
	a := gateway.PayoutAnswer{Outcome: gateway.Done, Status: status, Ref: b.TransferBillNo, Code: clip(b.FailReason, maxShown)}
	if status == gateway.PayoutPending {
		a.Confirm = b.PackageInfo
	}
	if status == gateway.PayoutFailed && a.Code == "" {
		a.Code = b.State
	}
	return a
}

func (g *Gateway) paidOut(n *gateway.Notification, plain []byte) error {
	var b transferBill
	if err := json.Unmarshal(plain, &b); err != nil {
		return err
	}
	status, ok := payoutStates[b.State]
	switch {
	case b.MchID != g.client.mchid:
		return fmt.Errorf("it is of merchant %.64q", b.MchID)
	case !ok || b.OutBillNo == "" || b.Amount < 1 || b.Amount > maxAmount:
		return fmt.Errorf("transfer %.64q of %d fen is %.40q", b.OutBillNo, b.Amount, b.State)
	case status == gateway.PayoutPending:
		n.Ignored = true
	default:
		n.Payout, n.PayoutID, n.PaidOut = b.OutBillNo, b.TransferBillNo, status
		n.Amount, n.Currency = b.Amount, currency
	}
	return nil
}

func unknownPayout(p gateway.Payout, what string, err error) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("wechatpay: %s payout %s: %w", what, p.ID, err),
	}
}

// characters cuts a text to that many.
func characters(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
