package browser

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-pay/holdfast"
)

const secretWord = "correct horse battery"

// fill types into a form's fields: css and value, by turns.
func (b *tab) fill(fields ...string) {
	b.Helper()
	for i := 0; i < len(fields); i += 2 {
		b.until(fmt.Sprintf(`document.querySelector(%q)`, fields[i]))
		b.do(chromedp.SetValue(chromedp.CSS(fields[i]), fields[i+1]))
	}
}

// staff adds a person who can sign in.
func (s *shop) staff(name string, role holdfast.Role) {
	s.Helper()
	_, err := s.core.PutStaff(s.Context(), holdfast.Key{}, holdfast.StaffInput{Name: name, Password: secretWord, Role: role})
	must(s.T, err)
}

func (b *tab) signIn(name string) {
	b.Helper()
	b.open("/admin/sign-in")
	b.fill("[name=name]", name, "[name=password]", secretWord)
	b.click(".door button")
	b.until(`location.pathname === "/admin/"`)
}

// deed sends a form: fields are name and value, by turns. It is unfolded first, if
// it is folded.
func (b *tab) deed(action string, fields ...string) {
	b.Helper()
	css := fmt.Sprintf(`form[action=%q]`, action)
	b.until(fmt.Sprintf(`document.querySelector(%q)`, css))
	if folded := fmt.Sprintf(`details:not([open]):has(%s) summary`, css); b.value(fmt.Sprintf(`Boolean(document.querySelector(%q))`, folded)) == "true" {
		b.click(folded)
	}
	for i := 0; i < len(fields); i += 2 {
		b.fill(fmt.Sprintf(`%s [name=%q]`, css, fields[i]), fields[i+1])
	}
	b.click(css + " button")
}

func TestAWebhookIsDeliveredAgainFromTheConsole(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		heard := make(chan string, 10) // webhook-id of every delivery
		l := s.listen()
		srv := s.serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header.Get("Webhook-Id") }))
		defer srv.Close()
		e, _, err := s.core.CreateEndpoint(t.Context(), holdfast.Key{}, holdfast.EndpointInput{URL: "http://" + l.Addr().String() + "/hook", Types: []string{"order.*"}})
		must(t, err)
		_, err = s.core.Place(t.Context(), holdfast.Key{}, holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: "mug", Quantity: 1}}})
		must(t, err)
		first := <-heard
		b := s.visitor(t, lang)
		s.staff("anna", holdfast.RoleOperator)
		b.signIn("anna")
		b.open("/admin/webhooks/" + e.ID)
		b.sees(says{en: "delivered", zh: "已送达"}[lang])
		b.click(`.is-event a`)
		b.deed("/admin/webhooks/"+e.ID+"/replay", "reason", "the shop was down")
		b.sees(says{en: "The event is delivered again.", zh: "事件正在重新投递。"}[lang])
		select {
		case again := <-heard:
			if again != first {
				t.Errorf("delivered again as %s, want %s", again, first)
			}
		case <-time.After(patience):
			t.Error("nothing was delivered again")
		}
	})
}

func TestTheConsoleIsRunWithTheKeyboard(t *testing.T) {
	inBoth(t, func(t *testing.T, lang string) {
		s := openShop(t, mug)
		s.staff("anna", holdfast.RoleOperator)
		b := s.visitor(t, lang)
		b.open("/admin/items/mug")
		b.tabTo("[name=name]", "anna")
		b.tabTo("[name=password]", secretWord+kb.Enter)
		b.until(`document.querySelector(".deed")`)
		b.tabTo(".skip", kb.Enter)
		b.tabTo(".deed summary", kb.Enter)
		b.tabTo("[name=quantity]", "-3")
		b.tabTo("[name=reason]", "broken in transit")
		b.tabTo(".deed form button", kb.Enter)
		b.sees(says{en: "The stock was adjusted.", zh: "库存已调整。"}[lang])
		b.tabTo("#moved tr:first-child .is-at a", kb.Enter)
		b.sees(says{en: "This is how it was at", zh: "这是当时的情况"}[lang])
		b.tabTo(".me summary", kb.Enter)
		b.tabTo(".me button", kb.Enter)
		b.until(`document.querySelector(".door")`)
	})
}
