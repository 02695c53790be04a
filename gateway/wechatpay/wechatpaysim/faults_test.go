package wechatpaysim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

func TestAPaymentIsNotifiedOnTheSchedule(t *testing.T) {
	b := newBench(t)
	b.receiverAnswers(500, `{"code":"FAIL","message":"x"}`)
	b.paid("HF0001")
	first := b.deliver()
	if len(first) != 1 || first[0].Event != "TRANSACTION.SUCCESS" || first[0].authentic != nil || first[0].Plain["out_trade_no"] != "HF0001" {
		t.Fatalf("got %+v, want one authentic notification", first)
	}
	sent := 1
	for _, delay := range []time.Duration{
		15 * time.Second, 15 * time.Second, 30 * time.Second, 3 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		30 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour, 6 * time.Hour, 6 * time.Hour,
	} {
		b.clock.Advance(delay - time.Second)
		if early := b.deliver(); len(early) != 0 {
			t.Errorf("after %s less a second: got %d, want none", delay, len(early))
		}
		b.clock.Advance(time.Second)
		again := b.deliver()
		if len(again) != 1 || again[0].ID != first[0].ID || again[0].authentic != nil {
			t.Fatalf("after %s: got %+v, want the same again", delay, again)
		}
		sent++
	}
	b.clock.Advance(48 * time.Hour)
	if late := b.deliver(); len(late) != 0 || sent != 16 {
		t.Errorf("after %d: got %d more, want none after 16", sent, len(late))
	}
}

func TestOnlyAProperReplyEndsANotification(t *testing.T) {
	for _, c := range []struct {
		status int
		reply  string
		ends   bool
	}{
		{204, "", true}, {200, "", true}, {200, `{"code":"SUCCESS","message":""}`, true}, {200, `{"code":"FAIL","message":"x"}`, false},
		{201, "", false}, {302, "", false}, {401, "", false}, {500, "", false},
	} {
		b := newBench(t)
		b.receiverAnswers(c.status, c.reply)
		b.paid("HF0001")
		b.deliver()
		if _, more := b.sim.NextDelivery(); more == c.ends {
			t.Errorf("%d %q: another comes: %v, want %v", c.status, c.reply, more, !c.ends)
		}
	}
}

func TestRefundsAreNotifiedAsWhatTheyBecame(t *testing.T) {
	for kind, want := range map[wechatpaysim.Kind]string{
		"": "SUCCESS", wechatpaysim.RefundAbnormal: "ABNORMAL", wechatpaysim.RefundClosed: "CLOSED", wechatpaysim.RefundPending: "SUCCESS",
	} {
		b := newBench(t)
		b.paid("HF0001")
		b.deliver()
		b.sim.Inject(wechatpaysim.Fault{Call: "refund.create", Kind: kind})
		b.want(b.refund("HF0001", "RF1", 330), 200, "")
		if kind == wechatpaysim.RefundPending {
			if early := b.deliver(); len(early) != 0 {
				t.Errorf("pending: got %d notifications at once", len(early))
			}
			b.clock.Advance(30 * time.Second)
		}
		got := b.deliver()
		if len(got) != 1 || got[0].Event != "REFUND."+want || got[0].Plain["refund_status"] != want || got[0].Plain["out_refund_no"] != "RF1" {
			t.Errorf("%s: got %+v, want REFUND.%s", kind, got, want)
		}
	}
}

func TestTheDialGoesWrongWithNotifications(t *testing.T) {
	b := newBench(t)
	b.sim.SetFaults(wechatpaysim.Faults{DuplicateNotice: 1, ForgeNotice: 1, ProbeNotice: 1})
	b.paid("HF0001")
	var authentic, probes, forged int
	ids := map[string]int{}
	for _, n := range b.deliver() {
		switch {
		case n.authentic == nil:
			authentic++
			ids[n.ID]++
		case strings.HasPrefix(n.Header.Get("Wechatpay-Signature"), "WECHATPAY/SIGNTEST/"):
			probes++
		default:
			forged++
		}
	}
	if authentic != 2 || len(ids) != 1 || probes != 1 || forged != 1 {
		t.Errorf("got %d authentic with ids %v, %d probes, %d forged; want 2 with one id, 1, 1", authentic, ids, probes, forged)
	}
	if got := b.sim.Books().Fooled; got != 2 {
		t.Errorf("fooled: got %d, want the probe and the forgery, which this receiver acknowledged", got)
	}

	b.sim.SetFaults(wechatpaysim.Faults{LoseNotice: 1})
	b.paid("HF0002")
	if got := b.deliver(); len(got) != 0 {
		t.Errorf("lost: got %d, want none at first", len(got))
	}
	b.clock.Advance(15 * time.Second)
	if got := b.deliver(); len(got) != 1 {
		t.Errorf("lost: got %d, want the repeat", len(got))
	}

	b.sim.SetFaults(wechatpaysim.Faults{SkewedNotice: 1, KeySwitch: 1})
	b.paid("HF0003")
	for _, n := range b.deliver() {
		if n.Header.Get("Wechatpay-Serial") == wechatpaysim.PublicKeyID || n.authentic != nil {
			t.Errorf("switched: got %s, %v; want a certificate", n.Header.Get("Wechatpay-Serial"), n.authentic)
		}
		at, err := strconv.ParseInt(n.Header.Get("Wechatpay-Timestamp"), 10, 64)
		if off := time.Unix(at, 0).Sub(b.clock.Now()); err != nil || off.Abs() != 6*time.Minute {
			t.Errorf("skewed: got %s off, %v; want six minutes", off, err)
		}
	}
}

// Each fault is seen as what it is by a client that verifies.
func TestEachFaultOfACallIsWhatItSays(t *testing.T) {
	for kind, want := range map[wechatpaysim.Kind]struct {
		status int // 0: no answer
		signed bool
		effect bool
	}{
		wechatpaysim.LostAnswer:       {0, false, true},
		wechatpaysim.BadGateway:       {502, false, true},
		wechatpaysim.TornAnswer:       {200, false, true},
		wechatpaysim.ErrorAfterEffect: {500, true, true},
		wechatpaysim.Unavailable:      {500, true, false},
		wechatpaysim.RateLimited:      {429, true, false},
		wechatpaysim.UnsignedRefusal:  {404, false, false},
		wechatpaysim.UnsignedAnswer:   {200, false, true},
		wechatpaysim.Reencoded:        {200, false, true},
		wechatpaysim.ProbeAnswer:      {200, false, true},
		wechatpaysim.SkewedAnswer:     {200, true, true},
	} {
		b := newBench(t)
		b.sim.Inject(wechatpaysim.Fault{Call: "native.create", Kind: kind})
		a := b.native("HF0001", "")
		if a.status != want.status || (a.signed == nil && a.err == nil) != want.signed {
			t.Errorf("%s: got %d, signed: %v, %v; want %d, signed %v", kind, a.status, a.signed, a.err, want.status, want.signed)
		}
		if effect := len(b.sim.Books().Orders) == 1; effect != want.effect {
			t.Errorf("%s: effect: got %v, want %v", kind, effect, want.effect)
		}
		b.want(b.native("HF0001", ""), 200, "") // only once
	}
	b := newBench(t)
	b.want(b.native("HF0001", ""), 200, "")
	for kind, want := range map[wechatpaysim.Kind]struct {
		status int
		code   string
	}{
		wechatpaysim.UserPaying: {202, "USERPAYING"}, wechatpaysim.CloseTooEarly: {403, "RULE_LIMIT"},
	} {
		b.sim.Inject(wechatpaysim.Fault{Call: "order.close", Kind: kind})
		b.want(b.close("HF0001"), want.status, want.code)
	}
	b.sim.Inject(wechatpaysim.Fault{Call: "order.close", Kind: wechatpaysim.PaidBeforeClose})
	b.want(b.close("HF0001"), 400, "ORDER_PAID")
	b.sim.Inject(wechatpaysim.Fault{Call: "order.close", Kind: wechatpaysim.OldCodes})
	b.want(b.close("HF0001"), 400, "ORDERPAID")
	b.sim.Inject(wechatpaysim.Fault{Call: "refund.create", Kind: wechatpaysim.NotEnough})
	b.want(b.refund("HF0001", "RF1", 330), 403, "NOT_ENOUGH")
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func() string {
		b := newBench(t)
		b.sim.SetFaults(wechatpaysim.Faults{Unavailable: 0.5, Coupon: 0.5})
		for _, number := range []string{"HF0001", "HF0002", "HF0003", "HF0004", "HF0005"} {
			b.native(number, "")
			_ = b.sim.Pay(number) // it may not be there
		}
		text, err := json.Marshal(b.sim.Books())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if one, two := run(), run(); one != two {
		t.Errorf("got %s and %s", one, two)
	}
}

func TestTheDialIsReadStrictly(t *testing.T) {
	server := httptest.NewServer(wechatpaysim.New(wechatpaysim.Config{}))
	defer server.Close()
	put := func(body string) int {
		req, err := http.NewRequest(http.MethodPut, server.URL+"/_sim/faults", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for body, want := range map[string]int{
		`{"lost_answer":0.5,"slow_answer":"1s"}`: 200, `{"lost_answer":2}`: 400, `{"lost":0.5}`: 400, `{"slow_answer":1}`: 400, `x`: 400,
	} {
		if got := put(body); got != want {
			t.Errorf("%s: got %d, want %d", body, got, want)
		}
	}
}

func TestABuyerPaysOnThePage(t *testing.T) {
	b := newBench(t)
	code, _ := b.want(b.native("HF0001", ""), 200, "").body["code_url"].(string)
	page := read(t, b.url+"/scan?code="+url.QueryEscape(code))
	for _, want := range []string{"¥9.90", "Tea, hot", `value="pay"`, "HF0001"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	press := func(number, action, query string) string {
		res, err := http.PostForm(b.url+"/pay/"+number+query, url.Values{"action": {action}})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if page = press("HF0001", "decline", "?lang=zh"); !strings.Contains(page, "支付失败，可以再试一次") {
		t.Errorf("declined: got\n%s", page)
	}
	if page = press("HF0001", "pay", ""); !strings.Contains(page, "Paid. Thank you.") || strings.Contains(page, `value="pay"`) {
		t.Errorf("paid: got\n%s", page)
	}
	if o := b.sim.Books().Orders[0]; o.Captured != 990 {
		t.Errorf("got %+v, want it paid", o)
	}
	if control := read(t, b.url+"/_sim/?lang=zh"); !strings.Contains(control, "微信支付模拟器") || !strings.Contains(control, "HF0001") || !strings.Contains(control, "unsigned_refusal") {
		t.Errorf("the control page: got\n%s", control)
	}
}

func TestTheWayBackFromAPageIsAnAddressOfTheWeb(t *testing.T) {
	b := newBench(t)
	scene := `,"scene_info":{"payer_client_ip":"203.0.113.7","h5_info":{"type":"Wap"}}`
	a := b.want(b.call("POST", "/v3/pay/transactions/h5", b.order("HF0001", scene)), 200, "")
	h5, _ := a.body["h5_url"].(string)
	for back, kept := range map[string]bool{"https://shop.example/back?a=1": true, "javascript:alert(1)": false, "//shop.example": false} {
		page := read(t, h5+"&redirect_url="+url.QueryEscape(back))
		if got := strings.Contains(page, "Back to the shop"); got != kept || strings.Contains(page, "javascript:") {
			t.Errorf("%s: kept %v, want %v", back, got, kept)
		}
	}
	b.clock.Advance(5 * time.Minute)
	if page := read(t, h5); !strings.Contains(page, "This code has expired") {
		t.Errorf("after five minutes: got\n%s", page)
	}
}

func read(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d, %v, want a page", address, res.StatusCode, err)
	}
	return string(text)
}
