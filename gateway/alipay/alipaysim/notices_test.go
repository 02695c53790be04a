package alipaysim_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// authentic verifies a notification as a merchant does.
func authentic(t *testing.T, form url.Values) bool {
	t.Helper()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if name != "sign" && name != "sign_type" {
			parts = append(parts, name+"="+form.Get(name))
		}
	}
	block, _ := pem.Decode([]byte(alipaysim.DefaultPublicKey))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(form.Get("sign"))
	sum := sha256.Sum256([]byte(strings.Join(parts, "&")))
	return err == nil && form.Get("sign_type") == "RSA2" && rsa.VerifyPKCS1v15(key.(*rsa.PublicKey), crypto.SHA256, sum[:], signature) == nil
}

func states(notices []notice) (list []string) {
	for _, n := range notices {
		list = append(list, n.form.Get("trade_status"))
	}
	return list
}

func TestEveryChangeIsNotified(t *testing.T) {
	b := newBench(t)
	b.paid("pay1")
	b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "9.90")
	b.call("refund", "out_trade_no", "pay1", "out_request_no", "r2", "refund_amount", "10")
	got := b.deliver()
	if want := []string{"WAIT_BUYER_PAY", "TRADE_SUCCESS", "TRADE_SUCCESS", "TRADE_CLOSED"}; !slices.Equal(states(got), want) {
		t.Fatalf("got %v, want %v", states(got), want)
	}
	for i, n := range got {
		if !authentic(t, n.form) || n.contentType != "application/x-www-form-urlencoded; text/html; charset=utf-8" {
			t.Errorf("notification %d: %s, authentic %v", i, n.contentType, authentic(t, n.form))
		}
	}
	for i, want := range []struct{ refunded, number string }{{"", ""}, {"", ""}, {"9.90", "r1"}, {"19.90", "r2"}} {
		if f := got[i].form; f.Get("refund_fee") != want.refunded || f.Get("out_biz_no") != want.number {
			t.Errorf("notification %d: refund %s of %s, want %+v", i, f.Get("out_biz_no"), f.Get("refund_fee"), want)
		}
	}
}

func TestATimedOutTradeSaysThatNothingWasRefunded(t *testing.T) {
	b := newBench(t)
	b.precreated("pay1")
	b.must(b.sim.Visit("pay1"))
	b.advance(15 * time.Minute)
	got := b.deliver()
	if f := got[1].form; f.Get("trade_status") != "TRADE_CLOSED" || f.Get("refund_fee") != "0.00" || f.Get("gmt_payment") != "" {
		t.Errorf("got %v", f)
	}
}

func TestNotificationsComeEightTimesIn25Hours(t *testing.T) {
	for _, reply := range []string{"fail", "SUCCESS", "success\n", ""} {
		b := newBench(t)
		b.reply = reply
		b.paid("pay1")
		b.deliver() // of the scan, too
		id := ""
		for i, wait := range []time.Duration{4, 10, 10, 60, 120, 360, 900} {
			b.advance(wait*time.Minute - time.Second)
			if n := len(b.deliver()); n != 0 {
				t.Errorf("%q: attempt %d came early", reply, i+2)
			}
			b.advance(time.Second)
			got := b.deliver()
			if len(got) != 2 {
				t.Fatalf("%q: attempt %d: got %d, want 2", reply, i+2, len(got))
			}
			if f := got[1].form; id != "" && f.Get("notify_id") != id || !authentic(t, f) {
				t.Errorf("%q: attempt %d has another id or signature", reply, i+2)
			}
			id = got[1].form.Get("notify_id")
		}
		b.advance(100 * time.Hour)
		if n := len(b.deliver()); n != 0 {
			t.Errorf("%q: a ninth attempt", reply)
		}
	}
}

func TestTheDialReachesNotifications(t *testing.T) {
	b := newBench(t)
	b.sim.SetFaults(alipaysim.Faults{LoseNotice: 1})
	b.paid("pay1")
	if n := len(b.deliver()); n != 0 {
		t.Errorf("lost: %d came", n)
	}
	b.advance(4 * time.Minute)
	if n := len(b.deliver()); n != 2 {
		t.Errorf("lost: %d came the second time, want 2", n)
	}

	b.sim.SetFaults(alipaysim.Faults{DuplicateNotice: 1})
	b.paid("pay2")
	got := b.deliver()
	if want := []string{"WAIT_BUYER_PAY", "WAIT_BUYER_PAY", "TRADE_SUCCESS", "TRADE_SUCCESS"}; !slices.Equal(states(got), want) {
		t.Errorf("duplicate: got %v", states(got))
	} else if got[2].form.Get("notify_id") != got[3].form.Get("notify_id") {
		t.Error("a duplicate has another id")
	}

	b.sim.SetFaults(alipaysim.Faults{ForgeNotice: 1})
	forged := 0
	for _, id := range []string{"pay3", "pay4", "pay5"} {
		b.precreated(id)
		b.must(b.sim.Visit(id))
		for _, n := range b.deliver() {
			if !authentic(t, n.form) && n.form.Get("trade_status") == "TRADE_SUCCESS" {
				forged++
			}
		}
	}
	if forged != 3 {
		t.Errorf("forged: got %d, want 3", forged)
	}

	b.sim.SetFaults(alipaysim.Faults{GBKNotice: 1})
	b.paid("pay6")
	for _, n := range b.deliver() {
		if f := n.form; f.Get("charset") != "GBK" || f.Get("subject") != "\xb2\xe8\xb1\xad" || !authentic(t, f) {
			t.Errorf("GBK: got %s", n.body)
		}
	}

	b.sim.SetFaults(alipaysim.Faults{DelayNotice: time.Minute})
	b.paid("pay7")
	if at, ok := b.sim.NextDelivery(); !ok || !at.After(b.clock()) {
		t.Errorf("delay: next at %v, %v", at, ok)
	}
}

// A request whose address does not name the charset is notified in GBK.
func TestWithoutTheCharsetInTheAddressNotificationsAreGBK(t *testing.T) {
	b := newBench(t)
	req := b.request(b.form("alipay.trade.precreate", biz(offer("pay1")...), nil))
	req.URL.RawQuery = ""
	res, err := http.DefaultTransport.RoundTrip(req)
	b.must(err)
	res.Body.Close()
	b.must(b.sim.Pay("pay1"))
	for _, n := range b.deliver() {
		if n.form.Get("charset") != "GBK" {
			t.Errorf("got %s", n.body)
		}
	}
}
