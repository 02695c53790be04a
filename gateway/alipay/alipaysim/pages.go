package alipaysim

import (
	"embed"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

const maxPageBody = 4 << 10 // bytes of a buyer's form

//go:embed pages/*.html
var pageFiles embed.FS

var pages = dial.Pages(pageFiles, "pages/*.html")

// words of the pages, by language.
var words = map[string]map[string]string{
	"en": {
		"title": "Pay", "simulated": "Simulated Alipay page. No money moves.", "otherLang": "zh", "otherName": "中文",
		"pay": "Pay", "decline": "Pay without enough money", "back": "Back to the shop", "until": "Until",
		waiting: "Waiting for your payment.", success: "Paid. Thank you.", finished: "Paid. Thank you.",
		closed: "This payment is closed. You have not been charged.", "repaid": "Paid, and all of it repaid.",
		"declined": "Your balance is too low. You can try again.", "refused": "Alipay refuses this payment.",
		"simTitle": "Alipay simulator", "dial": "Faults", "dialHelp": "Probabilities from 0 to 1, durations such as 1.5s. For all later calls.",
		"apply": "Apply", "trades": "Trades", "transfers": "Transfers", "settle": "Let it arrive", "fail": "Let it fail", "return": "Let it come back",
	},
	"zh": {
		"title": "付款", "simulated": "模拟支付宝页面，不会发生真实扣款。", "otherLang": "en", "otherName": "English",
		"pay": "支付", "decline": "余额不足时支付", "back": "返回商店", "until": "截止时间",
		waiting: "等待您付款。", success: "已支付，谢谢。", finished: "已支付，谢谢。",
		closed: "该交易已关闭，未向您扣款。", "repaid": "已支付，并已全额退款。",
		"declined": "余额不足，可以再试一次。", "refused": "支付宝拒绝了这笔付款。",
		"simTitle": "支付宝模拟器", "dial": "故障", "dialHelp": "概率为 0 到 1，时长例如 1.5s，对之后的所有调用生效。",
		"apply": "应用", "trades": "交易", "transfers": "转账", "settle": "设为成功", "fail": "设为失败", "return": "设为退票",
	},
}

// payPage is what a buyer sees of a trade.
type payPage struct {
	Lang, Number, Title, Amount, State, Message string
	Payable                                     bool
	Back                                        string // where the shop wants him; empty = nowhere
	Until                                       time.Time
	T                                           map[string]string
}

func (s *Sim) payPage(number, lang string) (payPage, bool) {
	now := s.enter()
	defer s.mu.Unlock()
	t := s.trades[number]
	if t == nil {
		return payPage{}, false
	}
	p := payPage{
		Lang: lang, T: words[lang], Number: number, Title: t.subject, Amount: "¥" + yuan(t.amount),
		State: t.status, Payable: t.status == waiting,
	}
	if p.Payable {
		p.Until = t.expires.In(beijing)
	}
	if t.status == closed && !t.paid.IsZero() {
		p.State = "repaid"
	}
	if !t.paid.IsZero() {
		p.Back = s.landing(t, now)
	}
	p.Message = p.T[p.State]
	return p, true
}

func (s *Sim) showPay(w http.ResponseWriter, r *http.Request) {
	p, ok := s.payPage(r.PathValue("number"), dial.Language(r))
	if !ok {
		http.NotFound(w, r)
		return
	}
	if p.Payable && r.URL.Query().Has("declined") {
		p.State, p.Message = "declined", p.T["declined"]
	}
	dial.Render(w, pages, "pay.html", p)
}

// doPay is the buyer pressing a button. What cannot be done is shown on the
// page, which tells the truth.
func (s *Sim) doPay(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPageBody)
	number, lang := r.PathValue("number"), dial.Language(r)
	target := "/pay/" + url.PathEscape(number) + "?lang=" + lang
	switch r.PostFormValue("action") {
	case "pay":
		// A page that could not be paid says so when it is shown again.
		_ = s.Pay(number)
		if p, ok := s.payPage(number, lang); ok && p.Back != "" {
			target = p.Back
		}
	case "decline":
		if s.Decline(number) == nil {
			target += "&declined"
		}
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// refuse is the page of a payment that Alipay does not open.
func refuse(w http.ResponseWriter, r *http.Request, fail *apiError) {
	lang := dial.Language(r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusBadRequest)
	dial.Render(w, pages, "refused.html", map[string]any{
		"Lang": lang, "T": words[lang], "Code": fail.sub, "Detail": fail.subMsg,
	})
}
