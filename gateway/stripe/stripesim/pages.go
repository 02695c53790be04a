package stripesim

import (
	"embed"
	"net/http"
	"net/url"
	"strings"
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
		"title": "Pay", "simulated": "Simulated payment page. No money moves.", "otherLang": "zh", "otherName": "中文",
		"pay": "Pay", "decline": "Decline", "back": "Back to the shop", "expires": "Expires",
		"open": "Waiting for your payment.", "paid": "Paid. Thank you.", "expired": "This payment has expired. You have not been charged.",
		"processing": "Your bank is processing the payment.", "declined": "Your card was declined. You can try again.",
		"failed":   "The payment did not succeed. You have not been charged.",
		"simTitle": "Stripe simulator", "dial": "Faults", "dialHelp": "Probabilities from 0 to 1, durations such as 1.5s. For all later calls.",
		"apply": "Apply", "sessions": "Checkout sessions", "payments": "Payments", "failRefund": "Fail",
		"out": "Transfers and payouts", "balance": "Balance", "topUp": "Top up", "arrive": "Arrives", "reverse": "Reverse",
	},
	"zh": {
		"title": "付款", "simulated": "模拟付款页面，不会发生真实扣款。", "otherLang": "en", "otherName": "English",
		"pay": "支付", "decline": "拒绝", "back": "返回商店", "expires": "截止时间",
		"open": "等待您付款。", "paid": "已支付，谢谢。", "expired": "该付款已过期，未向您扣款。",
		"processing": "银行正在处理这笔付款。", "declined": "您的银行卡被拒绝，可以再试一次。",
		"failed":   "付款未成功，未向您扣款。",
		"simTitle": "Stripe 模拟器", "dial": "故障", "dialHelp": "概率为 0 到 1，时长例如 1.5s，对之后的所有调用生效。",
		"apply": "应用", "sessions": "结账会话", "payments": "付款", "failRefund": "使其失败",
		"out": "转账与出款", "balance": "余额", "topUp": "充值", "arrive": "到账", "reverse": "撤回",
	},
}

func (s *Sim) routePages(mux *http.ServeMux) {
	mux.HandleFunc("GET /pay/{id}", s.showPay)
	mux.HandleFunc("POST /pay/{id}", s.doPay)
}

// payPage is what a buyer sees of a session or an intent.
type payPage struct {
	Lang, ID, Title, Amount, State, Message string
	Payable, Back                           bool
	Expires                                 time.Time
	T                                       map[string]string
	landing, cancelURL                      string
}

func (s *Sim) payPage(id, lang string) (payPage, bool) {
	s.enter()
	defer s.mu.Unlock()
	x, in := s.sessions.byID[id], s.intents.byID[id]
	if in != nil {
		x = in.session
	}
	p := payPage{Lang: lang, T: words[lang], ID: id}
	switch {
	case x != nil:
		in = x.intent
		p.Title, p.Amount = x.title, money(x.amount, x.currency)
		p.landing, p.cancelURL, p.Back = x.landing(), x.cancelURL, x.cancelURL != ""
		p.State = x.state()
		if p.State == "open" {
			p.Expires = x.expiresAt.UTC()
		}
	case in != nil:
		p.Title, p.Amount = in.description, money(in.amount, in.currency)
		p.State = in.state()
	default:
		return p, false
	}
	p.Payable = p.State == "open"
	if p.Payable && in != nil && in.lastError != nil {
		p.State = "declined"
	}
	p.Message = p.T[p.State]
	return p, true
}

func (x *session) state() string {
	if x.status == "complete" {
		if st := x.intent.state(); st != "open" {
			return st
		}
		return "failed"
	}
	return x.status
}

// state is the word of the page for an intent.
func (in *intent) state() string {
	switch in.status {
	case succeeded:
		return "paid"
	case canceled:
		return "expired"
	case processing:
		return processing
	}
	return "open"
}

func (s *Sim) showPay(w http.ResponseWriter, r *http.Request) {
	p, ok := s.payPage(r.PathValue("id"), dial.Language(r))
	if !ok {
		http.NotFound(w, r)
		return
	}
	dial.Render(w, pages, "pay.html", p)
}

// doPay is the buyer pressing a button. What cannot be done is shown on the
// page, which tells the truth.
func (s *Sim) doPay(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPageBody)
	id, action := r.PathValue("id"), r.PostFormValue("action")
	p, ok := s.payPage(id, dial.Language(r))
	if !ok {
		http.NotFound(w, r)
		return
	}
	target := "/pay/" + url.PathEscape(id) + "?lang=" + p.Lang
	switch action {
	case "pay":
		if err := s.Pay(id); err == nil && p.landing != "" {
			target = p.landing
		}
	case "decline":
		_ = s.Decline(id)
	case "back":
		if p.Back {
			target = strings.ReplaceAll(p.cancelURL, "{CHECKOUT_SESSION_ID}", id)
		}
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}
