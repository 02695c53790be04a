package wechatpay

import (
	"bytes"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

func readVector(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func vectorClient(t *testing.T) client {
	t.Helper()
	text, err := os.ReadFile("testdata/merchant.key.pem")
	if err != nil {
		t.Fatal(err)
	}
	key, err := privateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return client{
		base: "https://api.mch.weixin.qq.com", mchid: "1900000001", serial: "3775B6A45ACD588826D15E583A95F5DD00000001", key: key,
		now: func() time.Time { return time.Unix(1767323045, 0) },
	}
}

// PKCS #1 v1.5 gives one signature for one message, so that ours must be the
// vector's to the byte.
func TestRequestsAreSignedAsTheVectorsAre(t *testing.T) {
	var v struct {
		Cases []struct {
			Name, Method, URI, Timestamp, Nonce, Body, Signature, Authorization string
		}
		Invoke struct {
			App, JSAPI struct{ Message, Signature string }
		}
	}
	readVector(t, "testdata/wechat_request.json", &v)
	if len(v.Cases) != 5 {
		t.Fatalf("got %d cases, want 5", len(v.Cases))
	}
	c := vectorClient(t)
	for _, want := range v.Cases {
		got, err := c.sign(want.Method, want.URI, want.Timestamp, want.Nonce, want.Body)
		if err != nil || got != want.Signature {
			t.Errorf("%s: got %s, %v, want %s", want.Name, got, err, want.Signature)
		}
		req, err := c.request(t.Context(), want.Method, want.URI, []byte(want.Body))
		if err != nil {
			t.Fatal(err)
		}
		changing := regexp.MustCompile(`(nonce_str|signature)="[^"]*"`)
		header := changing.ReplaceAllString(req.Header.Get("Authorization"), `$1=""`)
		if wanted := changing.ReplaceAllString(want.Authorization, `$1=""`); header != wanted {
			t.Errorf("%s: got %s, want %s", want.Name, header, wanted)
		}
	}
	for _, want := range []struct{ Message, Signature string }{v.Invoke.App, v.Invoke.JSAPI} {
		got, err := c.sign(strings.Split(strings.TrimSuffix(want.Message, "\n"), "\n")...)
		if err != nil || got != want.Signature {
			t.Errorf("%q: got %s, %v, want %s", want.Message, got, err, want.Signature)
		}
	}
}

// What a page or an app gets must be signed over what it gets.
func TestThePageAndTheAppGetWhatIsSigned(t *testing.T) {
	g := &Gateway{client: vectorClient(t), appID: "wx0000000000000001", mobileAppID: "wx0000000000000002"}
	const prepay = "wx201410272009395522657a690389285100"
	for name, of := range map[string]struct {
		make func(string) (string, error)
		sign string
		line []string
		want map[string]string
	}{
		"page": {g.invokePage, "paySign", []string{"appId", "timeStamp", "nonceStr", "package"},
			map[string]string{"appId": "wx0000000000000001", "package": "prepay_id=" + prepay, "signType": "RSA"}},
		"app": {g.invokeApp, "sign", []string{"appid", "timestamp", "noncestr", "prepayid"},
			map[string]string{"appid": "wx0000000000000002", "partnerid": "1900000001", "prepayid": prepay, "package": "Sign=WXPay"}},
	} {
		text, err := of.make(prepay)
		var got map[string]string
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range of.want {
			if got[k] != v {
				t.Errorf("%s: %s: got %q, want %q", name, k, got[k], v)
			}
		}
		var lines []string
		for _, l := range of.line {
			lines = append(lines, got[l])
		}
		if want, err := g.client.sign(lines...); err != nil || got[of.sign] != want {
			t.Errorf("%s: the signature is not over %q", name, lines)
		}
	}
}

func TestPublicVectorsOfTheCryptographyAgree(t *testing.T) {
	folder := os.Getenv("HOLDFAST_VECTORS")
	if folder == "" {
		t.Skip("HOLDFAST_VECTORS names no folder")
	}
	var a struct{ Key, Ciphertext, Plaintext, Nonce, Associated_Data string }
	readVector(t, filepath.Join(folder, "wechatpay_go_aes.json"), &a)
	sealed := resource{algorithm, a.Ciphertext, a.Associated_Data, a.Nonce}
	if got, err := sealed.open([]byte(a.Key)); err != nil || string(got) != a.Plaintext {
		t.Errorf("got %q, %v, want %q", got, err, a.Plaintext)
	}
	var n struct {
		Body, Plaintext string
		APIv3_Key       string
	}
	readVector(t, filepath.Join(folder, "wechatpay_go_notify.json"), &n)
	var e event
	if err := json.Unmarshal([]byte(n.Body), &e); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Resource.open([]byte(n.APIv3_Key)); err != nil || !bytes.Equal(got, []byte(n.Plaintext)) {
		t.Errorf("got %q, %v, want %q", got, err, n.Plaintext)
	}
}

func vectorRing(t testing.TB) keyring {
	t.Helper()
	text, err := os.ReadFile("testdata/gateway.pub.pem")
	if err != nil {
		t.Fatal(err)
	}
	key, err := publicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	const id = "PUB_KEY_ID_0119000000012026010200000000000000"
	return keyring{keys: map[string]*rsa.PublicKey{id: key}, asked: id}
}

func FuzzSignature(f *testing.F) {
	ring := vectorRing(f)
	f.Add("WECHATPAY/SIGNTEST/AAAA", "1767323046", ring.asked, "nonce", []byte("{}"))
	f.Add("AAAA", "-1", "", "", []byte{})
	f.Fuzz(func(t *testing.T, signature, stamp, serial, nonce string, body []byte) {
		h := http.Header{
			"Wechatpay-Signature": {signature}, "Wechatpay-Timestamp": {stamp}, "Wechatpay-Serial": {serial}, "Wechatpay-Nonce": {nonce},
		}
		if ring.verify(h, body, time.Unix(1767323047, 0)) == nil {
			t.Errorf("%q is taken for a signature", signature)
		}
	})
}

// FuzzNotification reads what was validly signed, whatever it says.
func FuzzNotification(f *testing.F) {
	g := &Gateway{client: client{mchid: "1900000001"}, apiv3: []byte("0123456789abcdef0123456789abcdef"), appID: "wx0000000000000001"}
	f.Add([]byte(`{"id":"1","event_type":"TRANSACTION.SUCCESS","resource":{"algorithm":"AEAD_AES_256_GCM","nonce":"abc","ciphertext":""}}`), []byte(`{}`))
	f.Add([]byte(`{"id":"1","event_type":"REFUND.CLOSED","resource":{"nonce":"123456789012"}}`), []byte(`{"mchid":"1900000001","amount":{"refund":-1}}`))
	f.Fuzz(func(t *testing.T, body, plain []byte) {
		var e event
		if json.Unmarshal(body, &e) == nil {
			_, _ = g.read(e)
		}
		var n gateway.Notification
		if g.paid(&n, plain) == nil && (n.Amount < 1 || n.Payment == "" || n.Status != gateway.Paid) {
			t.Errorf("%s: got %+v", plain, n)
		}
		n = gateway.Notification{}
		if g.refunded(&n, plain) == nil && (n.Amount < 1 || n.Refund == "" || n.Refunded == "") {
			t.Errorf("%s: got %+v", plain, n)
		}
	})
}

// FuzzStatement: a file that anybody may hand in is read or refused.
func FuzzStatement(f *testing.F) {
	head := strings.Join([]string{colTime, colTransaction, colNumber, colState, colCurrency, colSettled, colRefundID, colRefundNo, colRefunded, colFee}, ",")
	f.Add(head + "\n`2026-03-01 17:00:00,`4200,`pay1,`SUCCESS,`CNY,`9.90,`0,`0,`0.00,`0.06000\n总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额\n`1,`9.90,`0.00,`0.00,`0.06000\n")
	f.Add("\ufeff" + head + "\n总交易单数,\n`")
	f.Add("记账时间,微信支付业务单号,资金流水单号,业务名称,业务类型,收支类型,收支金额（元）,账户结余（元）,资金变更提交申请人,备注,业务凭证号\n" +
		"`2026-03-01 17:00:00,`1330,`1900,`商家转账,`商家转账,`支出,`0.02,`0.17,`system,`三月,`out1\n资金流水总笔数,收入笔数,收入金额,支出笔数,支出金额\n`1.0,`0.0,`0.00,`1.0,`0.02\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := readBills(text)
		for _, l := range lines {
			if err == nil && (l.ID == "" && l.Kind != gateway.RefundLine || l.At.IsZero()) {
				t.Errorf("%q: got %+v", text, l)
			}
		}
	})
}
