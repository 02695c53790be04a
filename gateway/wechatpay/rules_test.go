package wechatpay_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// recorder keeps the bodies that go through it. It serves one caller at a time.
type recorder struct {
	next http.RoundTripper
	sent map[string][]string // by path
}

func record(b bench) *recorder {
	r := &recorder{next: b.Wire.Next, sent: map[string][]string{}}
	b.Wire.Next = r
	return r
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.sent[req.URL.Path] = append(r.sent[req.URL.Path], string(body))
	return r.next.RoundTrip(req)
}

func (b bench) payment(id string) gateway.Payment {
	return gateway.Payment{
		ID: id, Order: "order-1", Method: b.Method, Amount: b.Amount, Currency: b.Currency, Payer: b.Payer,
		Description: "Tea", ReturnURL: "https://shop.example/back?a=1&b=2",
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

func TestEveryMethodGivesWhatItsBuyerNeeds(t *testing.T) {
	for method, want := range map[string]struct{ url, secret string }{
		"native": {url: "weixin://wxpay/bizpayurl?pr="},
		"h5":     {url: "/cgi-bin/mmpayweb-bin/checkmweb?prepay_id=wx"},
		"jsapi":  {secret: `"package":"prepay_id=wx`},
		"app":    {secret: `"appid":"` + wechatpaysim.MobileAppID + `"`},
	} {
		b := open(t, method)
		a := b.Gateway.Create(t.Context(), b.payment("pay0001"))
		if a.Outcome != gateway.Done || a.Ref != "pay0001" {
			t.Errorf("%s: got %s %q (%v), want done and our number", method, a.Outcome, a.Ref, a.Err)
		}
		if !strings.Contains(a.URL, want.url) || (want.url == "") != (a.URL == "") {
			t.Errorf("%s: url: got %q, want %q in it", method, a.URL, want.url)
		}
		if !strings.Contains(a.Secret, want.secret) || (want.secret == "") != (a.Secret == "") {
			t.Errorf("%s: secret: got %q, want %q in it", method, a.Secret, want.secret)
		}
		if method == "h5" && !strings.HasSuffix(a.URL, "&redirect_url=https%3A%2F%2Fshop.example%2Fback%3Fa%3D1%26b%3D2") {
			t.Errorf("h5: got %q, want the way back in it", a.URL)
		}
	}
}

func TestRepeatedCallsAreTheSameToTheByte(t *testing.T) {
	for _, method := range methods {
		b := open(t, method)
		r := record(b)
		p := b.paid(t, "pay0001")
		b.Advance(20 * time.Minute)
		p.Ref = ""
		b.Gateway.Create(t.Context(), p)
		refund := b.refund(p, "ref0001", 500)
		b.Gateway.Refund(t.Context(), refund)
		b.Advance(20 * time.Minute)
		b.Gateway.Refund(t.Context(), refund)
		for _, path := range []string{"/v3/pay/transactions/" + method, "/v3/refund/domestic/refunds"} {
			if sent := r.sent[path]; len(sent) != 2 || sent[0] != sent[1] {
				t.Errorf("%s: %s: got %q, want the same twice", method, path, sent)
			}
		}
	}
}

func TestAnOrderEndsAtTheDeadlineWithinTheBounds(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{
		{5 * time.Second, 3 * time.Minute}, // of 1 at least, with room for a late first call
		{15 * time.Minute, 15 * time.Minute},
		{30 * 24 * time.Hour, 7*24*time.Hour - 2*time.Minute},
	} {
		b := open(t, "native")
		r := record(b)
		p := b.payment("pay0001")
		p.ExpiresAt = p.CreatedAt.Add(c.deadline)
		a := b.Gateway.Create(t.Context(), p)
		var sent struct {
			Time_Expire string
		}
		if err := json.Unmarshal([]byte(r.sent["/v3/pay/transactions/native"][0]), &sent); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, sent.Time_Expire)
		if want := p.CreatedAt.Add(c.want); err != nil || !at.Equal(want) || !strings.HasSuffix(sent.Time_Expire, "+08:00") || a.Outcome != gateway.Done {
			t.Errorf("deadline after %s: got %s (%s), want %s", c.deadline, sent.Time_Expire, a.Code, want)
		}
	}
}

func TestWhatWeChatPayRefusesForGoodIsRefused(t *testing.T) {
	b := open(t, "jsapi")
	long := b.payment("pay0001")
	long.Payer = strings.Repeat("o", 200)
	if a := b.Gateway.Create(t.Context(), long); a.Outcome != gateway.Refused || a.Code != "PARAM_ERROR" {
		t.Errorf("create: got %s %s (%v), want refused", a.Outcome, a.Code, a.Err)
	}
	p := b.paid(t, "pay0002")
	b.sim.Inject(wechatpaysim.Fault{Call: "refund.create", Kind: wechatpaysim.NotEnough})
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref0001", 500)); a.Outcome != gateway.Refused || a.Code != "NOT_ENOUGH" {
		t.Errorf("refund: got %s %s (%v), want refused", a.Outcome, a.Code, a.Err)
	}
	o := b.options
	o.MerchantSerial = "00"
	if a := newGateway(t, o).Create(t.Context(), b.payment("pay0003")); a.Outcome != gateway.Unknown || a.Code != "SIGN_ERROR" {
		t.Errorf("a wrong serial: got %s %s, want unknown: it is an alarm and no refusal", a.Outcome, a.Code)
	}
	o = b.options
	o.AppID = "wx9"
	if a := newGateway(t, o).Create(t.Context(), b.payment("pay0003")); a.Outcome != gateway.Unknown || a.Code != "APPID_MCHID_NOT_MATCH" {
		t.Errorf("a wrong app: got %s %s, want unknown", a.Outcome, a.Code)
	}
}

func TestANumberUsedWithOtherParametersIsResolvedByReading(t *testing.T) {
	b := open(t, "native")
	p := b.created(t, "pay0001")
	changed := p
	changed.Description = "More tea"
	if a := b.Gateway.Create(t.Context(), changed); a.Outcome != gateway.Done || a.Status != gateway.Open {
		t.Errorf("open: got %s %s (%v), want done open", a.Outcome, a.Status, a.Err)
	}
	if err := b.Pay(p); err != nil {
		t.Fatal(err)
	}
	for _, again := range []gateway.Payment{p, changed} {
		if a := b.Gateway.Create(t.Context(), again); a.Status != gateway.Paid || a.Amount != p.Amount {
			t.Errorf("paid: got %s %s %d, want paid", a.Outcome, a.Status, a.Amount)
		}
	}
	r := b.refund(p, "ref0001", 500)
	b.Gateway.Refund(t.Context(), r)
	r.Amount = 600
	if a := b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Done || a.Amount != 500 || b.Books(p).Refunded != 500 {
		t.Errorf("refund: got %s %d (%v), want the first one, of 500", a.Outcome, a.Amount, a.Err)
	}
}

func TestACloseThatIsNotYetIsUnknown(t *testing.T) {
	for _, kind := range []wechatpaysim.Kind{wechatpaysim.UserPaying, wechatpaysim.CloseTooEarly} {
		b := open(t, "native")
		p := b.created(t, "pay0001")
		b.sim.Inject(wechatpaysim.Fault{Call: "order.close", Kind: kind})
		if a := b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown || a.Err == nil {
			t.Errorf("%s: got %s %s, want unknown", kind, a.Outcome, a.Status)
		}
		if err := b.Pay(p); err != nil {
			t.Errorf("%s: the order is no longer open: %v", kind, err)
		}
	}
}

func TestOlderCodesMeanTheSame(t *testing.T) {
	b := open(t, "native")
	b.sim.SetFaults(wechatpaysim.Faults{OldCodes: 1})
	paid, closed := b.paid(t, "pay0001"), b.created(t, "pay0002")
	for range 2 {
		if a := b.Gateway.Close(t.Context(), paid); a.Status != gateway.Paid {
			t.Errorf("paid: got %s %s (%v)", a.Outcome, a.Status, a.Err)
		}
		if a := b.Gateway.Close(t.Context(), closed); a.Status != gateway.Closed {
			t.Errorf("closed: got %s %s (%v)", a.Outcome, a.Status, a.Err)
		}
	}
	if a := b.Gateway.Query(t.Context(), b.payment("pay0003")); a.Outcome != gateway.Refused {
		t.Errorf("absent: got %s (%v)", a.Outcome, a.Err)
	}
}

// A refused create is no proof that an earlier one, whose answer was lost, made
// nothing.
func TestClosingAfterTheOrdersOwnEndFindsOutWhetherThereIsOne(t *testing.T) {
	b := open(t, "native")
	lost, never := b.payment("pay0001"), b.payment("pay0002")
	b.Wire.Once(gatewaytest.CallCreate, gatewaytest.Lost)
	b.Gateway.Create(t.Context(), lost)
	b.Advance(time.Hour)
	for _, p := range []gateway.Payment{lost, never} {
		if a := b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Done || a.Status != gateway.Closed {
			t.Errorf("%s: got %s %s (%v), want closed", p.ID, a.Outcome, a.Status, a.Err)
		}
	}
	if a := b.Gateway.Query(t.Context(), lost); a.Status != gateway.Closed {
		t.Errorf("at wechat pay: got %s %s, want closed", a.Outcome, a.Status)
	}
}

func TestACouponChangesNothingForTheMerchant(t *testing.T) {
	b := open(t, "native")
	b.sim.SetFaults(wechatpaysim.Faults{Coupon: 1})
	p := b.paid(t, "pay0001")
	if o := b.sim.Books().Orders[0]; o.PayerTotal >= o.Total {
		t.Fatalf("got %d of %d paid by the buyer, want less", o.PayerTotal, o.Total)
	}
	if a := b.Gateway.Query(t.Context(), p); a.Status != gateway.Paid || a.Amount != p.Amount {
		t.Errorf("query: got %s %d, want paid %d", a.Status, a.Amount, p.Amount)
	}
	d := b.Notify(true)[0]
	if n, err := b.Gateway.Parse(d.Header, d.Body, b.Now()); err != nil || n.Amount != p.Amount {
		t.Errorf("notification: got %d (%v), want %d", n.Amount, err, p.Amount)
	}
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref0001", p.Amount)); a.Amount != p.Amount {
		t.Errorf("refund: got %d (%v), want %d", a.Amount, a.Err, p.Amount)
	}
}

func TestAnAbnormalRefundIsSeenAndUnderWayUntilAPersonHasDealtWithIt(t *testing.T) {
	b := open(t, "native")
	p := b.paid(t, "pay0001")
	b.Notify(true)
	b.sim.Inject(wechatpaysim.Fault{Call: "refund.create", Kind: wechatpaysim.RefundAbnormal})
	r := b.refund(p, "ref0001", p.Amount)
	if a := b.Gateway.Refund(t.Context(), r); a.Status != gateway.RefundPending {
		t.Errorf("refund: got %s %s, want pending", a.Outcome, a.Status)
	}
	if a := b.Gateway.QueryRefund(t.Context(), r); a.Status != gateway.RefundPending || a.Code != "ABNORMAL" {
		t.Errorf("query: got %s %s %s, want pending ABNORMAL", a.Outcome, a.Status, a.Code)
	}
	d := b.Notify(true)[0]
	if n, err := b.Gateway.Parse(d.Header, d.Body, b.Now()); err != nil || n.Refunded != gateway.RefundPending || n.Type != "REFUND.ABNORMAL" {
		t.Errorf("notification: got %+v, %v", n, err)
	}
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref0002", p.Amount)); a.Outcome != gateway.Refused {
		t.Errorf("a second number: got %s, want refused", a.Outcome)
	}
	if err := b.sim.RepairRefund("ref0001"); err != nil {
		t.Fatal(err)
	}
	if a := b.Gateway.QueryRefund(t.Context(), r); a.Status != gateway.RefundDone || a.Code != "" {
		t.Errorf("dealt with: got %s %s, want done", a.Status, a.Code)
	}
}

func TestRepliesAreThoseOfTheProtocol(t *testing.T) {
	g := newGateway(t, vectorOptions())
	yes, no := httptest.NewRecorder(), httptest.NewRecorder()
	g.Acknowledge(yes, true)
	g.Acknowledge(no, false)
	if yes.Code != http.StatusNoContent || yes.Body.Len() != 0 {
		t.Errorf("ok: got %d %q, want 204 and nothing", yes.Code, yes.Body)
	}
	var said struct{ Code, Message string }
	if err := json.Unmarshal(no.Body.Bytes(), &said); err != nil || no.Code < 400 || said.Code != "FAIL" || said.Message == "" {
		t.Errorf("not ok: got %d %q, want FAIL", no.Code, no.Body)
	}
}

func TestCheckTellsWhatNeedsNoCall(t *testing.T) {
	b := open(t, "native")
	r := record(b)
	for _, c := range []struct {
		field  string
		change func(*gateway.Payment)
	}{
		{"", func(*gateway.Payment) {}},
		{"method", func(p *gateway.Payment) { p.Method = "cash" }},
		{"currency", func(p *gateway.Payment) { p.Currency = "EUR" }},
		{"amount", func(p *gateway.Payment) { p.Amount = 0 }},
		{"payer", func(p *gateway.Payment) { p.Method = "jsapi" }},
		{"payer", func(p *gateway.Payment) { p.Method = "h5" }},
		{"", func(p *gateway.Payment) { p.Method, p.Payer = "h5", "203.0.113.7" }},
	} {
		p := b.payment("pay0001")
		c.change(&p)
		got := ""
		if unfit := b.Gateway.Check(p); unfit != nil {
			got = unfit.Field
		}
		if got != c.field {
			t.Errorf("%+v: got %q, want %q", p, got, c.field)
		}
		if a := b.Gateway.Create(t.Context(), p); c.field != "" && a.Outcome != gateway.Refused {
			t.Errorf("%+v: create: got %s, want refused", p, a.Outcome)
		}
	}
	if n := len(r.sent["/v3/pay/transactions/jsapi"]); n != 0 {
		t.Errorf("%d calls were sent, want none", n)
	}
}
