package wechatpaysim

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
		"title": "Pay", "simulated": "Simulated WeChat Pay. No money moves.", "otherLang": "zh", "otherName": "中文",
		"pay": "Pay", "decline": "Fail to pay", "back": "Back to the shop", "expires": "Expires",
		"open": "Waiting for your payment.", "paid": "Paid. Thank you.", "closed": "The order is closed. You have not been charged.",
		"expired": "The order has expired. You have not been charged.", "stale": "This code has expired. Ask the shop for a new one.",
		"declined": "The payment failed. You can try again.",
		"simTitle": "WeChat Pay simulator", "dial": "Faults", "dialHelp": "Probabilities from 0 to 1, durations such as 1.5s. For all later calls.",
		"apply": "Apply", "orders": "Orders", "scan": "Scan", "scanHelp": "What the QR code says, weixin://wxpay/bizpayurl?pr=…",
		"closeRefund": "Close", "breakRefund": "Make abnormal", "repairRefund": "Deal with it", "rotate": "Take the next certificate", "keys": "The merchant's keys",
		"fooled":    "Forged notifications and probes that were acknowledged",
		"transfers": "Transfers", "receive": "Receive", "lapse": "Let the day pass",
		transferAccepted: "The money is on its way to you.", transferWaiting: "Receive it within 24 hours, or it goes back.",
		transferUnderWay: "It is being transferred.", transferFailed: "You have not received it.", transferCanceling: "The sender takes it back.",
		transferCancelled: "The sender has taken it back.", transferDone: "You have received it.",
	},
	"zh": {
		"title": "付款", "simulated": "模拟微信支付，不会发生真实扣款。", "otherLang": "en", "otherName": "English",
		"pay": "支付", "decline": "支付失败", "back": "返回商店", "expires": "截止时间",
		"open": "等待您付款。", "paid": "已支付，谢谢。", "closed": "订单已关闭，未向您扣款。",
		"expired": "订单已过期，未向您扣款。", "stale": "二维码已过期，请向商家获取新的二维码。",
		"declined": "支付失败，可以再试一次。",
		"simTitle": "微信支付模拟器", "dial": "故障", "dialHelp": "概率为 0 到 1，时长例如 1.5s，对之后的所有调用生效。",
		"apply": "应用", "orders": "订单", "scan": "扫码", "scanHelp": "二维码内容，weixin://wxpay/bizpayurl?pr=…",
		"closeRefund": "关闭", "breakRefund": "设为异常", "repairRefund": "处理异常", "rotate": "启用新平台证书", "keys": "商户密钥",
		"fooled":    "被误认的伪造通知和探测通知",
		"transfers": "转账", "receive": "收款", "lapse": "超时未收",
		transferAccepted: "转账已受理。", transferWaiting: "请在24小时内收款，超时将退还。",
		transferUnderWay: "转账中。", transferFailed: "未收到款项。", transferCanceling: "付款方正在撤销转账。",
		transferCancelled: "付款方已撤销转账。", transferDone: "已收款。",
	},
}

// A phone that scans a code sees /pay/ with what stands after pr= in it, or
// with the order's number.
func (s *Sim) routePages(mux *http.ServeMux) {
	mux.HandleFunc("GET /scan", scan)
	mux.HandleFunc("GET /pay/{id}", s.showPay)
	mux.HandleFunc("POST /pay/{id}", s.doPay)
	mux.HandleFunc("GET /transfer", s.openTransfer)
	mux.HandleFunc("GET /transfer/{id}", s.showTransferPage)
	mux.HandleFunc("POST /transfer/{id}", s.doTransferPage)
	mux.HandleFunc("GET /cgi-bin/mmpayweb-bin/checkmweb", s.showH5)
}

// scan is the phone's camera: it follows the text of a code.
func scan(w http.ResponseWriter, r *http.Request) {
	u, err := url.Parse(strings.TrimSpace(r.URL.Query().Get("code")))
	if err != nil || u.Query().Get("pr") == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "/pay/"+url.PathEscape(u.Query().Get("pr")), http.StatusSeeOther)
}

// showH5 is where an h5_url leads, with the redirect_url that the shop added.
func (s *Sim) showH5(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := s.numberOf(func(o *order) bool { return o.prepayID == q.Get("prepay_id") && o.code == q.Get("package") })
	if number == "" {
		http.NotFound(w, r)
		return
	}
	target := "/pay/" + url.PathEscape(number)
	if back := q.Get("redirect_url"); back != "" {
		target += "?redirect_url=" + url.QueryEscape(back)
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

func (s *Sim) numberOf(match func(*order) bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.booked {
		if match(o) {
			return o.number
		}
	}
	return ""
}

// payPage is what a buyer sees of an order.
type payPage struct {
	Lang, ID, Title, Amount, State, Message, Back string
	Payable                                       bool
	Expires                                       time.Time
	T                                             map[string]string
}

func (s *Sim) payPage(r *http.Request) (payPage, bool) {
	lang, id := dial.Language(r), r.PathValue("id")
	now := s.enter()
	defer s.mu.Unlock()
	o := s.orders[id]
	for _, each := range s.booked {
		if o == nil && each.code == id && each.trade == "NATIVE" {
			o = each
		}
	}
	if o == nil {
		return payPage{}, false
	}
	p := payPage{
		Lang: lang, T: words[lang], ID: o.number, Title: o.asked.Description, Amount: money(o.total()),
		State: o.unpayable(now), Expires: o.expires.In(beijing), Back: webAddress(r.URL.Query().Get("redirect_url")),
	}
	if p.State == "" {
		p.Payable, p.State = true, "open"
		if o.declined {
			p.State = "declined"
		}
	}
	p.Message = p.T[p.State]
	return p, true
}

// webAddress lets nothing through but an address of the web.
func webAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return text
}

func (s *Sim) showPay(w http.ResponseWriter, r *http.Request) {
	p, ok := s.payPage(r)
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
	p, ok := s.payPage(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	target := "/pay/" + url.PathEscape(p.ID) + "?lang=" + p.Lang
	if p.Back != "" {
		target += "&redirect_url=" + url.QueryEscape(p.Back)
	}
	switch r.PostFormValue("action") {
	case "pay":
		if err := s.Pay(p.ID); err == nil && p.Back != "" {
			target = p.Back
		}
	case "decline":
		_ = s.Decline(p.ID)
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}
