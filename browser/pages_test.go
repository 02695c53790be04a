package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// walk is a visitor's walk through the console of a busy shop.
type walk struct {
	*tab
	busy   *busy
	routes *http.ServeMux // of the console
	left   map[string]bool
}

// notPages show nothing: the scripts of pages ask them.
var notPages = []string{"GET /admin/figures", "GET /admin/live"}

func (s *busy) walk(t *testing.T, lang string) *walk {
	t.Helper()
	w := &walk{s.visitor(t, lang), s, http.NewServeMux(), map[string]bool{}}
	for _, route := range s.pages.(interface{ Routes() []string }).Routes() {
		if !strings.Contains(route, " /admin") {
			continue
		}
		w.routes.Handle(route, http.NotFoundHandler())
		if !slices.Contains(notPages, route) {
			w.left[route] = true
		}
	}
	return w
}

// been notes that somebody was at a page.
func (w *walk) been(method, path string) {
	_, route := w.routes.Handler(httptest.NewRequest(method, path, nil))
	delete(w.left, route)
}

// stop goes to a stop, does what is to be done there, and looks.
func (w *walk) stop(s stop) {
	w.Helper()
	fields := make([]string, len(s.fields))
	for i, f := range s.fields {
		fields[i] = w.busy.named(f)
	}
	if s.wrong != "" {
		w.busy.write(fmt.Sprintf(s.wrong, "+"))
		defer w.busy.write(fmt.Sprintf(s.wrong, "-"))
	}
	w.offline(s.refused) // the browser's console says it too
	if path := w.busy.named(s.path); path != "" {
		w.open(path)
		w.been(http.MethodGet, path)
		w.been(http.MethodGet, w.value(`location.pathname`)) // somewhere else, if nobody has signed in
	}
	if deed := w.busy.named(s.deed); deed != "" {
		w.deed(deed, fields...)
		w.been(http.MethodPost, deed)
	}
	w.sees(s.sees[w.lang])
	if s.until != "" {
		w.until(s.until)
	}
	if s.name != "" {
		w.audit(s.name)
	}
	w.sheet()
}

// sheet follows the link to the list as CSV, if there is one: its values are for
// programs.
func (w *walk) sheet() {
	w.Helper()
	const link = `document.querySelector("a.csv")`
	if w.value(`Boolean(`+link+`)`) == "false" {
		return
	}
	got := w.promised(`fetch(` + link + `.href).then(async r => [r.status, r.headers.get("content-type"), /^(?!.*"admin\.).*\r\n/s.test(await r.text())].join())`)
	if want := "200,text/csv; charset=utf-8,true"; got != want {
		w.Errorf("%s: got %s, want %s", w.value(link+`.href`), got, want)
	}
	w.been(http.MethodGet, w.value(`new URL(`+link+`.href).pathname`))
}

func TestEveryPageOfTheConsoleIsFitToBeSeen(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openBusy(t)
		w := s.walk(t, lang)
		for _, at := range console {
			w.stop(at)
		}
		vera := s.walk(t, lang) // whom anna has added
		vera.signIn("vera")
		vera.changesNothing()
		for _, at := range farewell {
			w.stop(at)
		}
		for route := range w.left {
			t.Errorf("nobody was at %s", route)
		}
	})
}

// changesNothing walks as a viewer: everything can be seen but keys and people,
// and nothing be done.
func (w *walk) changesNothing() {
	w.Helper()
	forbidden := 0
	for _, at := range console {
		path := w.busy.named(at.path)
		switch {
		case at.refused || at.deed != "" || !strings.HasPrefix(path, "/admin/"):
		case strings.HasPrefix(path, "/admin/keys"), strings.HasPrefix(path, "/admin/staff"):
			w.offline(true)
			w.open(path)
			w.sees(says{en: "Your role does not allow this", zh: "您的角色没有此权限"}[w.lang])
			if forbidden++; forbidden == 1 {
				w.audit("admin-forbidden")
			}
			w.offline(false)
		default:
			w.open(path)
			w.until(`document.querySelector(".work")`)
			if n := w.value(`document.querySelectorAll("main form[method=post]").length`); n != "0" {
				w.Errorf("%s offers a viewer %s changes", path, n)
			}
		}
	}
	if forbidden == 0 {
		w.Error("no page is forbidden")
	}
}

func TestThePastIsOneClickAway(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		s.staff("vera", holdfast.RoleViewer)
		s.later(time.Hour)
		b := s.visitor(t, lang)
		b.signIn("vera")
		b.open("/admin/items")
		b.click(`.is-available a`)
		b.until(`document.querySelector(".answer .big").textContent === "20" && document.body.dataset.online === "yes"`)
		_, err := s.core.Adjust(t.Context(), holdfast.Key{}, holdfast.Adjustment{SKU: "mug", Quantity: -5, Reason: "broken"})
		must(t, err)
		b.until(`document.querySelector(".answer .big").textContent === "15"`) // by itself
		b.click(`#moved tbody tr:last-child .is-at a`)
		b.until(`document.querySelector(".note.warn") && document.querySelector(".answer .big").textContent === "20"`)
		b.sees(says{en: "This is how it was at", zh: "这是当时的情况"}[lang])
	})
}

// empty are pages on which there is nothing yet, and what they say then.
var empty = []stop{
	at("empty-shop", "/shop/", "Nothing is on sale yet", "暂无商品"),
	at("empty-orders-of-mine", "/shop/orders", "No orders yet", "还没有订单"),
	at("empty-overview", "/admin/", "Nothing needs you right now.", "目前没有需要您处理的事项。"),
	at("empty-items", "/admin/items", "There is nothing to sell yet.", "还没有商品。"),
	at("", "/admin/sales", "There is no sale.", "还没有促销活动。"),
	at("", "/admin/orders", "Nobody has ordered anything yet.", "还没有订单。"),
	at("", "/admin/payments", "Nobody has tried to pay yet.", "还没有付款。"),
	at("", "/admin/refunds", "Nothing was refunded yet.", "还没有退款。"),
	at("", "/admin/payouts", "Nothing was paid out yet.", "还没有提现。"),
	at("", "/admin/accounts", "There is no account yet.", "还没有账户。"),
	at("", "/admin/tasks", "There is nothing to do at any gateway.", "没有需要调用网关的任务。"),
	at("", "/admin/notifications", "Every notification was about something", "所有通知都已找到对应内容。"),
	at("empty-webhooks", "/admin/webhooks", "Nobody is told yet.", "还没有接收地址"),
	at("", "/admin/keys", "There is no API key yet.", "还没有 API 密钥。"),
	at("empty-filter", "/admin/orders?state=paid", "Nothing matches.", "没有符合条件的内容"),
}

func TestWhereThereIsNothingYetAPageSaysWhatToDo(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t)
		s.staff("anna", holdfast.RoleAdmin)
		b := s.visitor(t, lang)
		b.signIn("anna")
		for _, at := range empty {
			b.open(at.path)
			b.sees(at.sees[lang])
			if at.name != "" {
				b.audit(at.name)
			}
		}
	})
}
