package stripe_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// sent is a request as it went out.
type sent struct {
	method, path, key string
	form              url.Values
}

// recorder keeps what goes through it. It serves one caller at a time.
type recorder struct {
	next http.RoundTripper
	sent []sent
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sent{method: req.Method, path: req.URL.Path, key: req.Header.Get("Idempotency-Key")}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		s.form, err = url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	r.sent = append(r.sent, s)
	return r.next.RoundTrip(req)
}

func (r *recorder) posts(path string) []sent {
	var found []sent
	for _, s := range r.sent {
		if s.method == http.MethodPost && s.path == path {
			found = append(found, s)
		}
	}
	return found
}

func record(b bench) *recorder {
	r := &recorder{next: b.Wire.Next}
	b.Wire.Next = r
	return r
}

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

func TestRepeatedCallsAreTheSameToTheByte(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		r := record(b)
		p := b.payment("pay1")
		b.Gateway.Create(t.Context(), p)
		b.Advance(20 * time.Minute)
		a := b.Gateway.Create(t.Context(), p)
		path := map[string]string{"checkout": "/v1/checkout/sessions", "intent": "/v1/payment_intents"}[method]
		wantSame(t, method, r.posts(path), "hf-payment-pay1")

		p.Ref = a.Ref
		if err := b.Pay(p); err != nil {
			t.Fatal(err)
		}
		refund := b.refund(p, "pay1", 500) // the same number as the payment's
		b.Gateway.Refund(t.Context(), refund)
		b.Advance(20 * time.Minute)
		b.Gateway.Refund(t.Context(), refund)
		wantSame(t, method, r.posts("/v1/refunds"), "hf-refund-pay1")
	}
}

func wantSame(t *testing.T, method string, calls []sent, key string) {
	t.Helper()
	if len(calls) != 2 {
		t.Fatalf("%s: got %d calls, want 2", method, len(calls))
	}
	if calls[0].key != key || calls[1].key != key {
		t.Errorf("%s: got keys %q and %q, want %q", method, calls[0].key, calls[1].key, key)
	}
	if a, b := calls[0].form.Encode(), calls[1].form.Encode(); a != b {
		t.Errorf("%s: got\n%s\nand\n%s", method, a, b)
	}
}

// A kept answer to a close would repeat what was true at the first.
func TestClosesAreNotKept(t *testing.T) {
	b := open(t, "intent")
	r := record(b)
	p := b.paid(t, "pay1")
	b.Gateway.Close(t.Context(), p)
	b.Gateway.Close(t.Context(), p)
	calls := r.posts("/v1/payment_intents/" + p.Ref + "/cancel")
	if len(calls) != 2 || calls[0].key == calls[1].key {
		t.Errorf("got %+v, want two calls with keys of their own", calls)
	}
}

func TestBothObjectsOfACheckoutCarryOurNumber(t *testing.T) {
	b := open(t, "checkout")
	b.paid(t, "pay1")
	books := b.sim.Books()
	for _, metadata := range []map[string]string{books.Sessions[0].Metadata, books.Payments[0].Metadata} {
		if metadata["payment_id"] != "pay1" || metadata["order_id"] != "order-1" {
			t.Errorf("got %v", metadata)
		}
	}
}

func TestASessionExpiresWithinStripesBounds(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{
		{15 * time.Minute, 40 * time.Minute}, // of 30 at least, with room for a late first call
		{time.Hour, time.Hour},
		{72 * time.Hour, 24*time.Hour - 10*time.Minute},
	} {
		b := open(t, "checkout")
		r := record(b)
		p := b.payment("pay1")
		p.ExpiresAt = p.CreatedAt.Add(c.deadline)
		a := b.Gateway.Create(t.Context(), p)
		got := r.posts("/v1/checkout/sessions")[0].form.Get("expires_at")
		if want := strconv.FormatInt(p.CreatedAt.Add(c.want).Unix(), 10); got != want || a.Outcome != gateway.Done {
			t.Errorf("deadline after %s: got %s (%s), want %s", c.deadline, got, a.Code, want)
		}
	}
}

func TestAKeyIsNotUsedAfter23Hours(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		sent int
	}{{23*time.Hour - time.Second, 1}, {23 * time.Hour, 0}, {30 * time.Hour, 0}} {
		b := open(t, "intent")
		p := b.paid(t, "pay1")
		unsent, refund := b.payment("pay2"), b.refund(p, "ref1", 500)
		r := record(b)
		b.Advance(c.age)
		a := b.Gateway.Create(t.Context(), unsent)
		ra := b.Gateway.Refund(t.Context(), refund)
		if got := len(r.posts("/v1/payment_intents")); got != c.sent {
			t.Errorf("after %s: %d creates, want %d", c.age, got, c.sent)
		}
		if got := len(r.posts("/v1/refunds")); got != c.sent {
			t.Errorf("after %s: %d refunds, want %d", c.age, got, c.sent)
		}
		if c.sent == 0 && (a.Outcome != gateway.Unknown || ra.Outcome != gateway.Unknown) {
			t.Errorf("after %s: got %s and %s, want unknown", c.age, a.Outcome, ra.Outcome)
		}
		if c.sent == 0 && b.Gateway.Query(t.Context(), unsent).Outcome != gateway.Refused {
			t.Errorf("after %s: query of what was never sent: want refused", c.age)
		}
	}
}

func TestAnUnknownAgeSendsNothing(t *testing.T) {
	b := open(t, "intent")
	p := b.paid(t, "pay1")
	r := record(b)
	unsent := b.payment("pay2")
	unsent.CreatedAt = time.Time{}
	refund := b.refund(p, "ref1", 500)
	refund.CreatedAt = time.Time{}
	a, ra := b.Gateway.Create(t.Context(), unsent), b.Gateway.Refund(t.Context(), refund)
	if a.Outcome != gateway.Unknown || ra.Outcome != gateway.Unknown {
		t.Errorf("got %s and %s, want unknown", a.Outcome, ra.Outcome)
	}
	if n := len(r.posts("/v1/payment_intents")) + len(r.posts("/v1/refunds")); n != 0 {
		t.Errorf("%d calls were sent, want none", n)
	}
}

func TestAKeptFailureIsResolvedByReading(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		b.sim.Inject(stripesim.Fault{Call: method + ".create", Kind: stripesim.Stored500AfterEffect})
		p := b.created(t, "pay1")
		if err := b.Pay(p); err != nil {
			t.Fatal(err)
		}
		b.sim.Inject(stripesim.Fault{Call: "refund.create", Kind: stripesim.Stored500AfterEffect})
		if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref1", 500)); a.Outcome != gateway.Done {
			t.Errorf("%s: refund: got %s (%v), want done", method, a.Outcome, a.Err)
		}
		if got := b.Books(p).Refunded; got != 500 {
			t.Errorf("%s: refunded %d, want 500", method, got)
		}
	}
}

// A failure that is kept and had no effect is over once it is replayed and
// nothing is in the lists: then, and not before, the next key is taken.
func TestAKeptFailureWithoutEffectUsesUpItsKey(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		b.sim.Inject(stripesim.Fault{Call: method + ".create", Kind: stripesim.Stored500})
		if a := b.Gateway.Create(t.Context(), b.payment("pay1")); a.Outcome != gateway.Unknown {
			t.Errorf("%s: first answer: got %s, want unknown", method, a.Outcome)
		}
		b.sim.Inject(stripesim.Fault{Call: method + ".list", Kind: stripesim.Unavailable})
		if a := b.Gateway.Create(t.Context(), b.payment("pay1")); a.Outcome != gateway.Unknown {
			t.Errorf("%s: nothing is known of the list: got %s, want unknown", method, a.Outcome)
		}
		p := b.created(t, "pay1")
		if err := b.Pay(p); err != nil {
			t.Fatal(err)
		}
		b.sim.Inject(stripesim.Fault{Call: "refund.create", Kind: stripesim.Stored500})
		for i, want := range []gateway.Outcome{gateway.Unknown, gateway.Done, gateway.Done} {
			if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref2", 500)); a.Outcome != want {
				t.Errorf("%s: refund %d: got %s (%v), want %s", method, i, a.Outcome, a.Err, want)
			}
		}
		if got := b.Books(p); got.Refunded != 500 || got.Payments != 1 {
			t.Errorf("%s: got %+v, want one payment and 500 refunded", method, got)
		}
		b.sim.Inject(stripesim.Fault{Call: method + ".create", Kind: stripesim.Stored500})
		unanswered := b.payment("pay3")
		b.Gateway.Create(t.Context(), unanswered)
		if a := b.Gateway.Close(t.Context(), unanswered); a.Outcome != gateway.Done || a.Status != gateway.Closed {
			t.Errorf("%s: close: got %+v, want closed", method, a)
		}
	}
}

func TestAnAmountStripeCannotCarryIsRefusedWithoutACall(t *testing.T) {
	b := open(t, "checkout")
	p := b.paid(t, "pay1")
	r := record(b)
	bad := b.payment("pay2")
	bad.Amount, bad.Currency = 5121, "KWD"
	if a := b.Gateway.Create(t.Context(), bad); a.Outcome != gateway.Refused || a.Code == "" {
		t.Errorf("create: got %s %q, want refused with a code", a.Outcome, a.Code)
	}
	p.Currency = "KWD"
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref1", 5121)); a.Outcome != gateway.Refused || a.Code == "" {
		t.Errorf("refund: got %s %q, want refused with a code", a.Outcome, a.Code)
	}
	if len(r.sent) != 0 {
		t.Errorf("%d calls were sent, want none", len(r.sent))
	}
}

func TestTheKronaIsSentWithTwoDecimalsAndComesBackWithNone(t *testing.T) {
	b := open(t, "checkout")
	b.Currency, b.Amount = "ISK", 1990
	p := b.paid(t, "pay1")
	if got := b.sim.Books().Payments[0].Captured; got != 199000 {
		t.Errorf("captured at stripe: got %d, want 199000", got)
	}
	if a := b.Gateway.Query(t.Context(), p); a.Amount != 1990 || a.Currency != "ISK" {
		t.Errorf("query: got %d %s, want 1990 ISK", a.Amount, a.Currency)
	}
	if a := b.Gateway.Refund(t.Context(), b.refund(p, "ref1", 990)); a.Amount != 990 {
		t.Errorf("refund: got %d, want 990 (%v)", a.Amount, a.Err)
	}
	if got := b.sim.Books().Payments[0].Refunded; got != 99000 {
		t.Errorf("refunded at stripe: got %d, want 99000", got)
	}
}

func TestASlowMethodStaysOpenUntilItsMoneyCame(t *testing.T) {
	for _, method := range []string{"checkout", "intent"} {
		b := open(t, method)
		p := b.created(t, "pay1")
		if err := b.sim.Pay(p.Ref, stripesim.Async()); err != nil {
			t.Fatal(err)
		}
		if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Done || a.Status != gateway.Open {
			t.Errorf("%s: query: got %s %s, want done open", method, a.Outcome, a.Status)
		}
		if a := b.Gateway.Close(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: close: got %s %s, want unknown", method, a.Outcome, a.Status)
		}
		if err := b.Pay(p); err != nil {
			t.Fatal(err)
		}
		if a := b.Gateway.Close(t.Context(), p); a.Status != gateway.Paid || a.Amount != p.Amount {
			t.Errorf("%s: close: got %s %s %d, want paid", method, a.Outcome, a.Status, a.Amount)
		}
	}
}

func TestASlowMethodThatFailedClosesItsSession(t *testing.T) {
	b := open(t, "checkout")
	p := b.created(t, "pay1")
	if err := b.sim.Pay(p.Ref, stripesim.Async()); err != nil {
		t.Fatal(err)
	}
	if err := b.Decline(p); err != nil {
		t.Fatal(err)
	}
	if a := b.Gateway.Close(t.Context(), p); a.Status != gateway.Closed {
		t.Errorf("got %s %s, want closed", a.Outcome, a.Status)
	}
	if b.Pay(p) == nil {
		t.Error("the buyer paid what was closed")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{"whsec_x"}, BaseURL: "http://127.0.0.1:1"}
	if _, err := stripe.New(good); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, spoil := range map[string]func(*stripe.Options){
		"no key":                func(o *stripe.Options) { o.SecretKey = "" },
		"no secret":             func(o *stripe.Options) { o.WebhookSecrets = nil },
		"an empty secret":       func(o *stripe.Options) { o.WebhookSecrets = []string{"whsec_x", ""} },
		"five secrets":          func(o *stripe.Options) { o.WebhookSecrets = strings.Split("a,b,c,d,e", ",") },
		"no address":            func(o *stripe.Options) { o.BaseURL = "stripe" },
		"another scheme":        func(o *stripe.Options) { o.BaseURL = "ftp://127.0.0.1" },
		"a live key in clear":   func(o *stripe.Options) { o.SecretKey = "sk_live_x" },
		"a live restricted key": func(o *stripe.Options) { o.SecretKey = "rk_live_x" },
	} {
		o := good
		spoil(&o)
		if _, err := stripe.New(o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestCheckTellsWhatNeedsNoCall(t *testing.T) {
	b := open(t, "checkout")
	r := record(b)
	for _, c := range []struct {
		field  string
		change func(*gateway.Payment)
	}{
		{"", func(*gateway.Payment) {}},
		{"amount", func(p *gateway.Payment) { p.Amount, p.Currency = 5121, "KWD" }},
		{"method", func(p *gateway.Payment) { p.Method = "cash" }},
		{"return_url", func(p *gateway.Payment) { p.ReturnURL = "" }},
		{"", func(p *gateway.Payment) { p.Method, p.ReturnURL = "intent", "" }},
	} {
		p := b.payment("pay1")
		c.change(&p)
		got := ""
		if unfit := b.Gateway.Check(p); unfit != nil {
			got = unfit.Field
		}
		if got != c.field {
			t.Errorf("%+v: got %q, want %q", p, got, c.field)
		}
	}
	if n := len(r.sent); n != 0 {
		t.Errorf("%d calls were sent, want none", n)
	}
}
