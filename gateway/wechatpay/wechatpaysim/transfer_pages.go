package wechatpaysim

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

// transferPage is what a receiver's phone shows.
type transferPage struct {
	Lang, Number, Remark, Amount, State, Message string
	Waiting                                      bool
	Until                                        time.Time
	T                                            map[string]string
}

// openTransfer is the phone that was given a package_info: what a page inside
// WeChat hands over with requestMerchantTransfer.
func (s *Sim) openTransfer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	i := slices.IndexFunc(s.sent, func(t *transfer) bool { return t.pack == r.URL.Query().Get("package") })
	number := ""
	if i >= 0 {
		number = s.sent[i].number
	}
	s.mu.Unlock()
	if number == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "/transfer/"+url.PathEscape(number)+"?lang="+dial.Language(r), http.StatusSeeOther)
}

func (s *Sim) transferPage(number, lang string) (transferPage, bool) {
	s.enter()
	defer s.mu.Unlock()
	t := s.transfers[number]
	if t == nil {
		return transferPage{}, false
	}
	p := transferPage{
		Lang: lang, T: words[lang], Number: number, Remark: t.asked.Remark, Amount: money(*t.asked.Amount), State: t.state,
		Waiting: t.state == transferWaiting, Message: words[lang][t.state],
	}
	if p.Waiting {
		p.Until = t.updated.Add(confirmWithin).In(beijing)
	}
	return p, true
}

func (s *Sim) showTransferPage(w http.ResponseWriter, r *http.Request) {
	p, ok := s.transferPage(r.PathValue("id"), dial.Language(r))
	if !ok {
		http.NotFound(w, r)
		return
	}
	dial.Render(w, pages, "transfer.html", p)
}

// doTransferPage is the receiver pressing a button. What cannot be done is shown
// on the page, which tells the truth.
func (s *Sim) doTransferPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPageBody)
	number := r.PathValue("id")
	switch r.PostFormValue("action") {
	case "confirm":
		_ = s.ConfirmTransfer(number)
	case "lapse":
		_ = s.LapseTransfer(number)
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, "/transfer/"+url.PathEscape(number)+"?lang="+dial.Language(r), http.StatusSeeOther)
}
