package alipay_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

func (b bench) payment(id string) gateway.Payment {
	return gateway.Payment{
		ID: id, Order: "order-1", Method: b.Method, Amount: b.Amount, Currency: b.Currency,
		Description: "Tea", ReturnURL: "https://shop.example/back",
		CreatedAt: b.Now(), ExpiresAt: b.Now().Add(15 * time.Minute),
	}
}

func (b bench) created(t *testing.T, id string) gateway.Payment {
	t.Helper()
	p := b.payment(id)
	a := b.Gateway.Create(t.Context(), p)
	if a.Outcome != gateway.Done || a.Status != gateway.Open {
		t.Fatalf("create: got %s %s (%v), want done open", a.Outcome, a.Status, a.Err)
	}
	p.Ref = a.Ref
	return p
}

func (b bench) paid(t *testing.T, id string) gateway.Payment {
	t.Helper()
	p := b.created(t, id)
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (b bench) refund(p gateway.Payment, id string, amount int64) gateway.Refund {
	return gateway.Refund{ID: id, Payment: p, Amount: amount, Reason: "broken", CreatedAt: b.Now()}
}

// recorder keeps the forms that go through it.
type recorder struct {
	next http.RoundTripper
	sent []url.Values
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent = append(r.sent, formOf(req))
	return r.next.RoundTrip(req)
}

func record(b bench) *recorder {
	r := &recorder{next: b.Wire.Next}
	b.Wire.Next = r
	return r
}

func (r *recorder) methods() (list []string) {
	for _, f := range r.sent {
		list = append(list, strings.TrimPrefix(f.Get("method"), "alipay.trade."))
	}
	return list
}

func biz(t *testing.T, form url.Values) (m map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(form.Get("biz_content")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhereToPayIsMadeWithoutACall(t *testing.T) {
	for _, method := range []string{"page", "wap", "app"} {
		b := open(t, method)
		r := record(b)
		p := b.payment("pay1")
		first := b.Gateway.Create(t.Context(), p)
		b.Advance(5 * time.Minute)
		again := b.Gateway.Create(t.Context(), p)
		if len(r.sent) != 0 {
			t.Errorf("%s: made %d calls, want none", method, len(r.sent))
		}
		if first != again {
			t.Errorf("%s: repeated: got %+v, want %+v", method, again, first)
		}
		if (first.URL != "") == (method == "app") || (first.Secret != "") != (method == "app") {
			t.Errorf("%s: got url %q and secret %q", method, first.URL, first.Secret)
		}
	}
}

func TestAPaymentCarriesItsAmountAndAnAbsoluteDeadline(t *testing.T) {
	for _, c := range []struct {
		amount int64
		yuan   string
	}{{1, "0.01"}, {10, "0.10"}, {100, "1.00"}, {110, "1.10"}, {990, "9.90"}, {100_000_000_00, "100000000.00"}} {
		b := open(t, "precreate")
		r := record(b)
		p := b.payment("pay1")
		p.Amount, p.Description = c.amount, "Tea / milk = tea & milk"
		b.Gateway.Create(t.Context(), p)
		got := biz(t, r.sent[0])
		want := map[string]string{
			"out_trade_no": "pay1", "total_amount": c.yuan, "subject": "Tea   milk   tea   milk", "body": "order-1",
			"product_code": "FACE_TO_FACE_PAYMENT", "time_expire": "2026-03-01 17:15:00", // 09:15 UTC
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%d fen: %s: got %q, want %q", c.amount, name, got[name], value)
			}
		}
		if a := b.Gateway.Create(t.Context(), p); a.Outcome != gateway.Done {
			t.Errorf("%d fen: got %s (%s)", c.amount, a.Outcome, a.Code)
		}
	}
}

func TestWhatAlipayCannotTakeIsToldBeforehand(t *testing.T) {
	b := open(t, "page")
	for field, change := range map[string]func(*gateway.Payment){
		"method":   func(p *gateway.Payment) { p.Method = "shells" },
		"currency": func(p *gateway.Payment) { p.Currency = "EUR" },
		"amount":   func(p *gateway.Payment) { p.Amount = 100_000_000_01 },
	} {
		p := b.payment("pay1")
		change(&p)
		if u := b.Gateway.Check(p); u == nil || u.Field != field {
			t.Errorf("got %+v, want %s", u, field)
		}
		if a := b.Gateway.Create(t.Context(), p); a.Outcome != gateway.Refused {
			t.Errorf("%s: create: got %s, want refused", field, a.Outcome)
		}
	}
	p := b.payment("pay1")
	if u := b.Gateway.Check(p); u != nil {
		t.Errorf("got %+v, want nothing", u)
	}
	p.ExpiresAt = time.Time{}
	if a := b.Gateway.Create(t.Context(), p); a.Outcome != gateway.Refused {
		t.Errorf("without a deadline: got %s, want refused", a.Outcome)
	}
}

func TestAnAnswerWithoutItsSignatureIsNoAnswer(t *testing.T) {
	for _, kind := range []alipaysim.Kind{alipaysim.Unsigned, alipaysim.ForgedAnswer, alipaysim.Recoded} {
		b := open(t, "precreate")
		p := b.paid(t, "pay1")
		r := b.refund(p, "ref1", 500)
		for _, call := range []string{"query", "close", "query", "refund", "refund.query", "precreate"} {
			b.sim.Inject(alipaysim.Fault{Call: call, Kind: kind})
		}
		if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: query: got %s", kind, a.Outcome)
		}
		if a := b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: close: got %s", kind, a.Outcome)
		}
		if a := b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%s: refund: got %s", kind, a.Outcome)
		}
		if a := b.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%s: query refund: got %s", kind, a.Outcome)
		}
		if a := b.Gateway.Create(t.Context(), b.payment("pay2")); a.Outcome != gateway.Unknown {
			t.Errorf("%s: create: got %s", kind, a.Outcome)
		}
	}
}

// A success says nothing of a refund unless the money moved now, or the refund
// can be found.
func TestARepeatedRefundIsBelievedWhenItIsFound(t *testing.T) {
	b := open(t, "page")
	p := b.paid(t, "pay1")
	refund := b.refund(p, "ref1", 500)
	b.Gateway.Refund(t.Context(), refund)
	b.sim.SetFaults(alipaysim.Faults{RefundLag: time.Hour})
	if a := b.Gateway.Refund(t.Context(), refund); a.Outcome != gateway.Unknown {
		t.Errorf("not to be found yet: got %s, want unknown", a.Outcome)
	}
	b.sim.SetFaults(alipaysim.Faults{})
	other := refund
	other.Amount = 600
	if a := b.Gateway.Refund(t.Context(), other); a.Outcome != gateway.Unknown {
		t.Errorf("the number with another amount: got %s %d, want unknown", a.Outcome, a.Amount)
	}
	r := record(b)
	if a := b.Gateway.Refund(t.Context(), refund); a.Outcome != gateway.Done || a.Status != gateway.RefundDone {
		t.Errorf("found: got %s %s (%v), want done", a.Outcome, a.Status, a.Err)
	}
	if got := r.methods(); !slices.Equal(got, []string{"refund", "fastpay.refund.query"}) {
		t.Errorf("got calls %v", got)
	}
	if got := b.Books(p).Refunded; got != 500 {
		t.Errorf("refunded %d, want 500", got)
	}
}

func TestARefundThatTheSellerCannotPayIsRefused(t *testing.T) {
	b := open(t, "page")
	p := b.paid(t, "pay1")
	b.sim.Inject(alipaysim.Fault{Call: "refund", Kind: alipaysim.BalanceShort})
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref1", 500)); a.Outcome != gateway.Refused || a.Code != "ACQ.SELLER_BALANCE_NOT_ENOUGH" {
		t.Errorf("got %s %s", a.Outcome, a.Code)
	}
}

func TestAFullyRefundedPaymentIsStillPaid(t *testing.T) {
	b := open(t, "page")
	p := b.paid(t, "pay1")
	b.Notify(true)
	b.Gateway.Refund(t.Context(), b.refund(p, "ref1", p.Amount))
	if a := b.Gateway.Query(t.Context(), p); a.Status != gateway.Paid || a.Amount != p.Amount {
		t.Errorf("query: got %s %d, want paid %d", a.Status, a.Amount, p.Amount)
	}
	sent := b.Notify(true)
	if len(sent) != 1 {
		t.Fatalf("got %d notifications, want 1", len(sent))
	}
	n, err := b.Gateway.Parse(sent[0].Header, sent[0].Body, b.Now())
	if err != nil || n.Status != "" || n.Refund != "ref1" || n.Refunded != gateway.RefundDone || n.Type != "TRADE_CLOSED" {
		t.Errorf("got %+v, %v; want the refund", n, err)
	}
}

func TestATimedOutPaymentIsNotifiedAsClosed(t *testing.T) {
	b := open(t, "page")
	p := b.created(t, "pay1")
	if err := b.Visit(p); err != nil {
		t.Fatal(err)
	}
	b.Advance(16 * time.Minute)
	sent := b.Notify(true)
	if len(sent) != 1 {
		t.Fatalf("got %d notifications, want 1", len(sent))
	}
	if n, err := b.Gateway.Parse(sent[0].Header, sent[0].Body, b.Now()); err != nil || n.Status != gateway.Closed || n.Payment != p.ID {
		t.Errorf("got %+v, %v; want closed", n, err)
	}
}

func TestNotificationsInGBKAreRead(t *testing.T) {
	b := open(t, "page")
	b.sim.SetFaults(alipaysim.Faults{GBKNotice: 1})
	p := b.payment("pay1")
	p.Description = "茶杯"
	b.Gateway.Create(t.Context(), p)
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	d := b.Notify(true)[0]
	if !strings.Contains(string(d.Body), "charset=GBK") || !strings.Contains(string(d.Body), url.QueryEscape("\xb2\xe8\xb1\xad")) {
		t.Fatalf("not in GBK: %s", d.Body)
	}
	if n, err := b.Gateway.Parse(d.Header, d.Body, b.Now()); err != nil || n.Status != gateway.Paid {
		t.Errorf("got %+v, %v; want paid", n, err)
	}
}

func TestForgedNotificationsAreRefused(t *testing.T) {
	b := open(t, "page")
	b.sim.SetFaults(alipaysim.Faults{ForgeNotice: 1})
	forged := 0
	for _, id := range []string{"pay1", "pay2", "pay3", "pay4", "pay5", "pay6"} {
		b.paid(t, id)
		for _, d := range b.Notify(true) {
			if _, err := b.Gateway.Parse(d.Header, d.Body, b.Now()); err != nil {
				forged++
			}
		}
	}
	if forged != 6 {
		t.Errorf("%d of 6 forged notifications were refused", forged)
	}
}

func TestOnlyTheWordStopsAlipay(t *testing.T) {
	b := open(t, "page")
	b.paid(t, "pay1")
	for i, want := range []int{1, 1, 1, 1, 1, 1, 1, 1, 0} {
		if got := len(b.Notify(false)); got != want {
			t.Errorf("attempt %d: got %d, want %d", i+1, got, want)
		}
		b.Advance(15 * time.Hour)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := open(t, "page").options
	for name, change := range map[string]func(*alipay.Options){
		"no app":           func(o *alipay.Options) { o.AppID = "" },
		"no seller":        func(o *alipay.Options) { o.SellerID = "2089000000000002" },
		"no key":           func(o *alipay.Options) { o.PrivateKey = "" },
		"no public key":    func(o *alipay.Options) { o.PublicKey = "" },
		"a key that isn't": func(o *alipay.Options) { o.PrivateKey = "not a key" },
		"both modes":       func(o *alipay.Options) { o.Certificates = &alipay.Certificates{} },
		"our own key":      func(o *alipay.Options) { o.PublicKey = publicOf(t, alipaysim.DefaultAppKey) },
		"plain http":       func(o *alipay.Options) { o.BaseURL = "http://openapi.example/gateway.do" },
		"a notify word":    func(o *alipay.Options) { o.NotifyURL = "notify" },
	} {
		o := good
		change(&o)
		if _, err := alipay.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "not a key") {
			t.Errorf("%s: the error repeats the key: %v", name, err)
		}
	}
}

// Parsers differ in which of two they take, so neither may be believed.
func TestAParameterThatComesTwiceIsRefusedWhicheverIsSigned(t *testing.T) {
	b := open(t, "page")
	b.paid(t, "pay1")
	body := string(b.Notify(true)[0].Body)
	if _, err := b.Gateway.Parse(nil, []byte(body), b.Now()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"total_amount=0.01&" + body, body + "&total_amount=0.01", body + "&app_id=" + alipaysim.DefaultAppID} {
		if _, err := b.Gateway.Parse(nil, []byte(bad), b.Now()); !errors.Is(err, gateway.ErrSignatureInvalid) {
			t.Errorf("got %v, want %v", err, gateway.ErrSignatureInvalid)
		}
	}
}

func TestASignatureHasOneSpelling(t *testing.T) {
	b := open(t, "page")
	b.paid(t, "pay1")
	form, err := url.ParseQuery(string(b.Notify(true)[0].Body))
	if err != nil {
		t.Fatal(err)
	}
	sign := form.Get("sign")
	last := sign[len(sign)-3] // of it, four bits are of no meaning
	form.Set("sign", sign[:len(sign)-3]+string(last+1)+"==")
	if _, err := b.Gateway.Parse(nil, []byte(form.Encode()), b.Now()); !errors.Is(err, gateway.ErrSignatureInvalid) {
		t.Errorf("got %v, want %v", err, gateway.ErrSignatureInvalid)
	}
}
