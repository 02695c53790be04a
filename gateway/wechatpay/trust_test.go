package wechatpay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// The trap of every client that does not verify errors: a proxy's 4xx taken
// for WeChat Pay's word.
func TestAnUnsignedRefusalIsUnknown(t *testing.T) {
	b := open(t, "native")
	p := b.created(t, "pay0001")
	paid := b.paid(t, "pay0002")
	for _, c := range []struct {
		status int
		code   string
	}{
		{400, "ORDER_PAID"}, {400, "ORDER_CLOSED"}, {400, "ORDERCLOSED"}, {400, "PARAM_ERROR"}, {400, "INVALID_REQUEST"},
		{404, "ORDER_NOT_EXIST"}, {404, "RESOURCE_NOT_EXISTS"}, {403, "OUT_TRADE_NO_USED"}, {403, "NOT_ENOUGH"}, {200, "SUCCESS"}, {204, ""},
	} {
		b.Wire.Every(gatewaytest.Answers(c.status, `{"code":"`+c.code+`","message":"x","trade_state":"CLOSED","out_trade_no":"pay0001"}`))
		for what, a := range map[string]gateway.Answer{
			"create": b.Gateway.Create(t.Context(), b.payment("pay0003")), "query": b.Gateway.Query(t.Context(), p), "close": b.Gateway.Close(t.Context(), p),
		} {
			if a.Outcome != gateway.Unknown {
				t.Errorf("%d %s: %s: got %s %s, want unknown", c.status, c.code, what, a.Outcome, a.Status)
			}
		}
		r := b.refund(paid, "ref0001", 500)
		if a := b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%d %s: refund: got %s, want unknown", c.status, c.code, a.Outcome)
		}
		if a := b.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%d %s: query refund: got %s, want unknown", c.status, c.code, a.Outcome)
		}
	}
}

func TestAnAnswerThatWasTamperedWithIsUnknownAndTheEffectIsFoundLater(t *testing.T) {
	for _, kind := range []wechatpaysim.Kind{
		wechatpaysim.UnsignedAnswer, wechatpaysim.Reencoded, wechatpaysim.ProbeAnswer, wechatpaysim.SkewedAnswer,
		wechatpaysim.TornAnswer, wechatpaysim.BadGateway, wechatpaysim.LostAnswer, wechatpaysim.ErrorAfterEffect,
	} {
		b := open(t, "native")
		b.sim.Inject(wechatpaysim.Fault{Call: "native.create", Kind: kind})
		p := b.payment("pay0001")
		if a := b.Gateway.Create(t.Context(), p); a.Outcome != gateway.Unknown || a.Err == nil {
			t.Errorf("%s: create: got %s (%v), want unknown", kind, a.Outcome, a.Err)
		}
		p.Ref = b.Gateway.Query(t.Context(), p).Ref
		if err := b.Pay(p); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		b.sim.Inject(wechatpaysim.Fault{Call: "refund.create", Kind: kind})
		r := b.refund(p, "ref0001", 500)
		if a := b.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("%s: refund: got %s, want unknown", kind, a.Outcome)
		}
		if a := b.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Done || b.Books(p).Refunded != 500 {
			t.Errorf("%s: query refund: got %s (%v), books %+v", kind, a.Outcome, a.Err, b.Books(p))
		}
	}
}

func TestAClockThatIsWrongIsNamed(t *testing.T) {
	for _, off := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
		b := open(t, "native")
		p := b.paid(t, "pay0001")
		sent := b.Notify(true)
		o := b.options
		o.Now = func() time.Time { return b.Now().Add(off) }
		g := newGateway(t, o)
		if a := g.Query(t.Context(), p); a.Outcome != gateway.Unknown || !strings.Contains(fmt.Sprint(a.Err), "timestamp") {
			t.Errorf("off by %s: got %s (%v), want unknown because of the timestamp", off, a.Outcome, a.Err)
		}
		if _, err := g.Parse(sent[0].Header, sent[0].Body, o.Now()); err == nil || !strings.Contains(err.Error(), "timestamp") {
			t.Errorf("off by %s: got %v, want the timestamp", off, err)
		}
	}
}

func TestBothKeysAreGoodDuringASwitchAndAnUnknownOneIsNamed(t *testing.T) {
	b := open(t, "native")
	b.sim.SetFaults(wechatpaysim.Faults{KeySwitch: 0.5})
	p := b.created(t, "pay0001")
	for range 10 {
		if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Done {
			t.Errorf("got %s (%v), want done", a.Outcome, a.Err)
		}
	}
	b.sim.Rotate()
	b.sim.SetFaults(wechatpaysim.Faults{KeySwitch: 1})
	a := b.Gateway.Query(t.Context(), p)
	if a.Outcome != gateway.Unknown || !strings.Contains(fmt.Sprint(a.Err), "4B6C2D3E") {
		t.Errorf("after rotation: got %s (%v), want unknown and the serial", a.Outcome, a.Err)
	}
	o := b.options
	o.Certificates = append(o.Certificates, wechatpaysim.KeyFile(wechatpaysim.NextCertificateFile))
	if a := newGateway(t, o).Query(t.Context(), p); a.Outcome != gateway.Done {
		t.Errorf("with the next certificate: got %s (%v), want done", a.Outcome, a.Err)
	}
}

func TestProbesAndForgeriesAreRefused(t *testing.T) {
	b := open(t, "native")
	b.sim.SetFaults(wechatpaysim.Faults{ProbeNotice: 1, ForgeNotice: 1})
	b.paid(t, "pay0001")
	var good, bad int
	for _, d := range b.Notify(false) {
		_, err := b.Gateway.Parse(d.Header, d.Body, b.Now())
		switch {
		case err == nil:
			good++
		case strings.HasPrefix(d.Header.Get("Wechatpay-Signature"), "WECHATPAY/SIGNTEST/") == strings.Contains(err.Error(), "probe"):
			bad++
		}
	}
	if good != 1 || bad != 2 {
		t.Errorf("got %d authentic and %d refused, want 1 and 2", good, bad)
	}
}

func TestTheKeyFollowsNoRedirect(t *testing.T) {
	visits := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	b := open(t, "native")
	o := b.options
	o.BaseURL, o.HTTPClient = here.URL, nil
	if a := newGateway(t, o).Create(t.Context(), b.payment("pay0001")); a.Outcome != gateway.Unknown || visits != 0 {
		t.Errorf("got %s and %d requests followed, want unknown and none", a.Outcome, visits)
	}
}

func TestErrorsHoldNothingOfAnUnauthenticBody(t *testing.T) {
	b := open(t, "native")
	p := b.created(t, "pay0001")
	b.Wire.Every(gatewaytest.Answers(400, `{"code":"HIDDEN","message":"hidden"}`))
	a := b.Gateway.Query(t.Context(), p)
	if text := fmt.Sprint(a.Err, a.Code); strings.Contains(strings.ToLower(text), "hidden") || !strings.Contains(text, "pay0001") || !strings.Contains(text, "400") {
		t.Errorf("got %q, want the payment and the status and nothing of the body", text)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := vectorOptions()
	newGateway(t, good)
	for name, spoil := range map[string]func(*wechatpay.Options){
		"no merchant":                  func(o *wechatpay.Options) { o.MerchantID = "" },
		"no app":                       func(o *wechatpay.Options) { o.AppID = "" },
		"no serial":                    func(o *wechatpay.Options) { o.MerchantSerial = "" },
		"no key":                       func(o *wechatpay.Options) { o.MerchantKey = nil },
		"a public key for a private":   func(o *wechatpay.Options) { o.MerchantKey = o.PublicKey },
		"a short APIv3 key":            func(o *wechatpay.Options) { o.APIv3Key = "0123456789abcdef" },
		"nothing to verify with":       func(o *wechatpay.Options) { o.PublicKeyID, o.PublicKey, o.Certificates = "", nil, nil },
		"a key without id":             func(o *wechatpay.Options) { o.PublicKeyID = "" },
		"an id without key":            func(o *wechatpay.Options) { o.PublicKey = nil },
		"a serial for a key id":        func(o *wechatpay.Options) { o.PublicKeyID = "5157F09EFDC096DE15EBE81A47057A7232F1B8E1" },
		"a key for a certificate":      func(o *wechatpay.Options) { o.Certificates = [][]byte{o.PublicKey} },
		"the merchant's certificate":   func(o *wechatpay.Options) { o.MerchantSerial = "5157f09efdc096de15ebe81a47057a7232f1b8e1" },
		"five certificates":            func(o *wechatpay.Options) { c := o.Certificates[0]; o.Certificates = [][]byte{c, c, c, c, c} },
		"no notify url":                func(o *wechatpay.Options) { o.NotifyURL = "" },
		"a notify url with a query":    func(o *wechatpay.Options) { o.NotifyURL += "?a=1" },
		"a notify url in clear":        func(o *wechatpay.Options) { o.NotifyURL = "http://shop.example/n" },
		"a base url in clear":          func(o *wechatpay.Options) { o.BaseURL = "http://api.example" },
		"a base url that is not one":   func(o *wechatpay.Options) { o.BaseURL = "wechat" },
		"a base url of another scheme": func(o *wechatpay.Options) { o.BaseURL = "ftp://127.0.0.1" },
	} {
		o := good
		spoil(&o)
		if _, err := wechatpay.New(o); err == nil {
			t.Errorf("%s: want an error", name)
		} else if strings.Contains(err.Error(), "PRIVATE") || strings.Contains(err.Error(), o.APIv3Key) && o.APIv3Key != "" {
			t.Errorf("%s: the error holds a secret: %v", name, err)
		}
	}
}
