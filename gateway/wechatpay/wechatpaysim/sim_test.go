package wechatpaysim_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
)

// clock is a clock that tests move by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// notice is one request that the receiver got.
type notice struct {
	ID, Event string
	Header    http.Header
	Plain     map[string]any
	authentic error
}

// bench is a simulator on loopback, a clock, and a merchant of its own make.
type bench struct {
	t     *testing.T
	clock *clock
	sim   *wechatpaysim.Sim
	url   string
	hook  string
	key   *rsa.PrivateKey
	skew  time.Duration // of the merchant's clock

	mu      sync.Mutex
	status  int // that the receiver answers
	reply   string
	notices []notice
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}, status: http.StatusNoContent}
	receiver := httptest.NewServer(http.HandlerFunc(b.receive))
	t.Cleanup(receiver.Close)
	b.hook = receiver.URL + "/n"
	b.sim = wechatpaysim.New(wechatpaysim.Config{Now: b.clock.Now, Seed: 7})
	api := httptest.NewServer(b.sim)
	t.Cleanup(api.Close)
	b.url = api.URL
	block, _ := pem.Decode(wechatpaysim.KeyFile(wechatpaysim.MerchantKeyFile))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	b.key = key.(*rsa.PrivateKey)
	return b
}

func (b *bench) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var e struct {
		ID        string
		EventType string `json:"event_type"`
		Resource  sealed
	}
	_ = json.Unmarshal(body, &e)
	n := notice{ID: e.ID, Event: e.EventType, Header: r.Header, authentic: b.verify(r.Header, body)}
	plain, err := e.Resource.open()
	if err != nil || json.Unmarshal(plain, &n.Plain) != nil {
		b.t.Errorf("a notification that does not open: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices = append(b.notices, n)
	w.WriteHeader(b.status)
	io.WriteString(w, b.reply)
}

func (b *bench) receiverAnswers(status int, reply string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.reply = status, reply
}

// deliver sends what is due and returns what arrived since the last time.
func (b *bench) deliver() []notice {
	b.sim.Deliver(context.Background())
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.notices
	b.notices = nil
	return got
}

type sealed struct {
	Algorithm, Ciphertext, Nonce string
	AssociatedData               string `json:"associated_data"`
}

func (s sealed) open() ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(s.Ciphertext)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher([]byte(wechatpaysim.APIv3Key))
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, []byte(s.Nonce), raw, []byte(s.AssociatedData))
}

// verify checks a signature by the rules, with the keys that merchants have.
func (b *bench) verify(h http.Header, body []byte) error {
	var key *rsa.PublicKey
	switch serial := h.Get("Wechatpay-Serial"); serial {
	case wechatpaysim.PublicKeyID:
		block, _ := pem.Decode(wechatpaysim.KeyFile(wechatpaysim.PublicKeyFile))
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return err
		}
		key = parsed.(*rsa.PublicKey)
	case "":
		return errors.New("no signature")
	default:
		for _, name := range []string{wechatpaysim.CertificateFile, wechatpaysim.NextCertificateFile} {
			block, _ := pem.Decode(wechatpaysim.KeyFile(name))
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return err
			}
			if strings.EqualFold(cert.SerialNumber.Text(16), serial) {
				key = cert.PublicKey.(*rsa.PublicKey)
			}
		}
	}
	raw, err := base64.StdEncoding.DecodeString(h.Get("Wechatpay-Signature"))
	if err != nil || key == nil {
		return fmt.Errorf("unreadable signature of %q", h.Get("Wechatpay-Serial"))
	}
	digest := sha256.Sum256([]byte(h.Get("Wechatpay-Timestamp") + "\n" + h.Get("Wechatpay-Nonce") + "\n" + string(body) + "\n"))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], raw)
}

// answer is one API answer; err is set when none could be read.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
	signed error
	err    error
}

func (a answer) code() string { s, _ := a.body["code"].(string); return s }

// edit changes a request after it was signed.
type edit func(*http.Request)

func (b *bench) call(method, path, body string, edits ...edit) answer {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	at := strconv.FormatInt(b.clock.Now().Add(b.skew).Unix(), 10)
	digest := sha256.Sum256([]byte(method + "\n" + path + "\n" + at + "\nNONCE1\n" + body + "\n"))
	raw, err := rsa.SignPKCS1v15(nil, b.key, crypto.SHA256, digest[:])
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", fmt.Sprintf(`WECHATPAY2-SHA256-RSA2048 mchid="%s",nonce_str="NONCE1",timestamp="%s",serial_no="%s",signature="%s"`,
		wechatpaysim.MerchantID, at, wechatpaysim.MerchantSerial, base64.StdEncoding.EncodeToString(raw)))
	req.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edits {
		e(req)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, header: res.Header, raw: string(text), signed: b.verify(res.Header, text), err: err}
	_ = json.Unmarshal(text, &a.body) // bills and torn answers are not JSON
	return a
}

func (b *bench) want(a answer, status int, code string) answer {
	b.t.Helper()
	if a.err != nil || a.status != status || a.code() != code || a.signed != nil {
		b.t.Errorf("got %d %s, signed: %v, %v; want %d %q, signed", a.status, a.raw, a.signed, a.err, status, code)
	}
	return a
}

func (b *bench) native(number, more string) answer {
	b.t.Helper()
	return b.call("POST", "/v3/pay/transactions/native", b.order(number, more))
}

func (b *bench) order(number, more string) string {
	return fmt.Sprintf(`{"appid":"%s","mchid":"%s","description":"Tea, hot","out_trade_no":"%s","notify_url":"%s","amount":{"total":990,"currency":"CNY"}%s}`,
		wechatpaysim.AppID, wechatpaysim.MerchantID, number, b.hook, more)
}

func (b *bench) query(number string) answer {
	b.t.Helper()
	return b.call("GET", "/v3/pay/transactions/out-trade-no/"+number+"?mchid="+wechatpaysim.MerchantID, "")
}

func (b *bench) close(number string) answer {
	b.t.Helper()
	return b.call("POST", "/v3/pay/transactions/out-trade-no/"+number+"/close", `{"mchid":"`+wechatpaysim.MerchantID+`"}`)
}

func (b *bench) refund(number, refund string, amount int) answer {
	b.t.Helper()
	return b.call("POST", "/v3/refund/domestic/refunds", fmt.Sprintf(
		`{"out_trade_no":"%s","out_refund_no":"%s","notify_url":"%s","amount":{"refund":%d,"total":990,"currency":"CNY"}}`, number, refund, b.hook, amount))
}

func (b *bench) paid(number string) {
	b.t.Helper()
	b.want(b.native(number, ""), 200, "")
	if err := b.sim.Pay(number); err != nil {
		b.t.Fatal(err)
	}
}
