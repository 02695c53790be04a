package wechatpay_test

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// voice says, authentically, what no simulator would.
type voice struct {
	bench
	key *rsa.PrivateKey
}

func openVoice(t *testing.T) voice {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return voice{openWith(t, "native", wechatpaysim.Config{}, func(o *wechatpay.Options) { o.PublicKey = public }), key}
}

func (v voice) sign(h http.Header, body string) {
	at := fmt.Sprint(v.Now().Unix())
	digest := sha256.Sum256([]byte(at + "\nn\n" + body + "\n"))
	raw, err := rsa.SignPKCS1v15(nil, v.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	h.Set("Wechatpay-Timestamp", at)
	h.Set("Wechatpay-Nonce", "n")
	h.Set("Wechatpay-Serial", wechatpaysim.PublicKeyID)
	h.Set("Wechatpay-Signature", base64.StdEncoding.EncodeToString(raw))
}

func (v voice) says(status int, body string) {
	v.Wire.Every(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := gatewaytest.Answers(status, body)(r, next)
		v.sign(resp.Header, body)
		return resp, err
	})
}

func (v voice) notifies(kind, plain string) (gateway.Notification, error) {
	block, err := aes.NewCipher([]byte(wechatpaysim.APIv3Key))
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(map[string]any{"id": "1", "event_type": kind, "resource": map[string]string{
		"algorithm": "AEAD_AES_256_GCM", "nonce": "123456789012", "associated_data": "x",
		"ciphertext": base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte("123456789012"), []byte(plain), []byte("x"))),
	}})
	if err != nil {
		panic(err)
	}
	h := http.Header{}
	v.sign(h, string(body))
	return v.Gateway.Parse(h, body, v.Now())
}

const orderPaid = `{"mchid":"1900000001","appid":"wx0000000000000001","out_trade_no":"pay0001","trade_state":"SUCCESS","amount":{"total":990,"currency":"CNY"}}`

const refundMade = `{"mchid":"1900000001","out_trade_no":"pay0001","out_refund_no":"ref0001","refund_id":"5030","status":"SUCCESS","refund_status":"SUCCESS","amount":{"refund":500,"total":990,"currency":"CNY"}}`

// spoilt are changes after which an authentic answer is not one to believe.
var spoilt = map[string]map[string][2]string{
	orderPaid: {
		"of another merchant": {"1900000001", "1900000002"}, "of another app": {"wx0000000000000001", "wx9"},
		"in no state": {"SUCCESS", ""}, "in a new state": {"SUCCESS", "MAYBE"}, "of nothing": {"990", "0"}, "of less": {"990", "-1"},
		"of a fraction": {"990", "990.5"}, "of a text": {"990", `"990"`}, "of too much": {"990", "9007199254740992"}, "in dollars": {"CNY", "USD"},
		"in nothing": {`,"currency":"CNY"`, ""}, "of another number": {"pay0001", "pay0002"}, "torn": {"}}", ""},
	},
	refundMade: {
		"in no state": {`"SUCCESS"`, `""`}, "in a new state": {`"SUCCESS"`, `"MAYBE"`}, "of nothing": {"500", "0"}, "of less": {"500", "-1"},
		"without id": {"5030", ""}, "in dollars": {"CNY", "USD"}, "of another payment": {"pay0001", "pay0002"}, "of another refund": {"ref0001", "ref0002"},
		"torn": {"}}", ""},
	},
}

func TestAnAuthenticAnswerOfAnotherKindIsUnknown(t *testing.T) {
	v := openVoice(t)
	p := v.payment("pay0001")
	r := v.refund(p, "ref0001", 500)
	v.says(200, orderPaid)
	if a := v.Gateway.Query(t.Context(), p); a.Status != gateway.Paid || a.Amount != 990 {
		t.Fatalf("unspoilt: got %+v", a)
	}
	for name, change := range spoilt[orderPaid] {
		v.says(200, strings.ReplaceAll(orderPaid, change[0], change[1]))
		if a := v.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("an order %s: got %s %s, want unknown", name, a.Outcome, a.Status)
		}
	}
	v.says(200, refundMade)
	if a := v.Gateway.Refund(t.Context(), r); a.Status != gateway.RefundDone || a.Amount != 500 {
		t.Fatalf("unspoilt: got %+v", a)
	}
	for name, change := range spoilt[refundMade] {
		v.says(200, strings.ReplaceAll(refundMade, change[0], change[1]))
		if a := v.Gateway.Refund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("a refund %s: got %s %s, want unknown", name, a.Outcome, a.Status)
		}
		if a := v.Gateway.QueryRefund(t.Context(), r); a.Outcome != gateway.Unknown {
			t.Errorf("a refund %s: query: got %s %s, want unknown", name, a.Outcome, a.Status)
		}
	}
	for status, body := range map[int]string{
		200: `{"prepay_id":"wx1"}`, 201: `{"code_url":"weixin://x"}`, 202: `{"code":"USERPAYING"}`, 204: "", 302: "", 404: `{}`,
		500: `{"code":"ORDER_NOT_EXIST"}`, 403: `{"code":"NO_AUTH"}`, 400: `{"code":"NEVER_SEEN"}`,
	} {
		v.says(status, body)
		if a := v.Gateway.Create(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("create: %d %s: got %s %s, want unknown", status, body, a.Outcome, a.Status)
		}
		if a := v.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("query: %d %s: got %s %s, want unknown", status, body, a.Outcome, a.Status)
		}
		p.Ref = p.ID
		if a := v.Gateway.Close(t.Context(), p); status != 204 && a.Outcome != gateway.Unknown {
			t.Errorf("close: %d %s: got %s %s, want unknown", status, body, a.Outcome, a.Status)
		}
		p.Ref = ""
	}
}

func TestAnEndlessAnswerIsUnknown(t *testing.T) {
	v := openVoice(t)
	v.says(200, orderPaid+strings.Repeat(" ", 1<<20))
	if a := v.Gateway.Query(t.Context(), v.payment("pay0001")); a.Outcome != gateway.Unknown || a.Code != "unreadable" {
		t.Errorf("got %s %s, want unknown", a.Outcome, a.Status)
	}
}

func TestAnAuthenticNotificationOfAnotherKindIsMalformed(t *testing.T) {
	v := openVoice(t)
	if n, err := v.notifies("TRANSACTION.SUCCESS", orderPaid); err != nil || n.Amount != 990 {
		t.Fatalf("unspoilt: got %+v, %v", n, err)
	}
	if n, err := v.notifies("REFUND.SUCCESS", refundMade); err != nil || n.Amount != 500 {
		t.Fatalf("unspoilt: got %+v, %v", n, err)
	}
	for plain, kind := range map[string]string{orderPaid: "TRANSACTION.SUCCESS", refundMade: "REFUND.SUCCESS"} {
		for name, change := range spoilt[plain] {
			if strings.Contains(name, "another number") || strings.Contains(name, "another payment") || strings.Contains(name, "another refund") {
				continue // it is of that one, then
			}
			if n, err := v.notifies(kind, strings.ReplaceAll(plain, change[0], change[1])); err == nil {
				t.Errorf("%s %s: got %+v, want an error", kind, name, n)
			}
		}
	}
	if n, err := v.notifies("REFUND.SUCCESS", strings.ReplaceAll(refundMade, "1900000001", "1900000002")); err == nil {
		t.Errorf("another merchant's refund: got %+v, want an error", n)
	}
	if n, err := v.notifies("TRANSACTION.SUCCESS", strings.ReplaceAll(orderPaid, "SUCCESS", "NOTPAY")); err == nil {
		t.Errorf("an unpaid order: got %+v, want an error", n)
	}
	if n, err := v.notifies("COUPON.USE", "{}"); err != nil || !n.Ignored {
		t.Errorf("another kind: got %+v, %v, want it ignored", n, err)
	}
}
