package alipay

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

func file(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decode[T any](t *testing.T, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(file(t, "testdata", name)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// vectorGateway is of the keys, app and seller of the vectors.
func vectorGateway(t *testing.T) *Gateway {
	t.Helper()
	g, err := New(Options{
		AppID: "2021000000000001", SellerID: "2088000000000002",
		PrivateKey: file(t, "testdata", "merchant.key.pem"), PublicKey: file(t, "testdata", "gateway.pub.pem"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNotificationVectors(t *testing.T) {
	v := decode[struct {
		Cases []struct {
			Name        string
			ContentType string `json:"content_type"`
			Body        string
			Signed      string `json:"signed_content_base64"`
			Accept      bool
		}
	}](t, "alipay_notify.json")
	g := vectorGateway(t)
	accepted := 0
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			n, err := g.Parse(http.Header{"Content-Type": {c.ContentType}}, []byte(c.Body), time.Time{})
			ours := err == nil && (n.Status != gateway.Paid || n.Payment == "HF-1001" && n.Amount == 990 && n.Currency == "CNY")
			if ours != c.Accept {
				t.Errorf("got %+v, %v; want accepted %v", n, err, c.Accept)
			}
			if err != nil {
				if !errors.Is(err, gateway.ErrSignatureInvalid) && !errors.Is(err, gateway.ErrSignatureMissing) {
					t.Errorf("got %v, want it not authentic", err)
				}
				return
			}
			accepted++
			params, err := parameters(c.Body)
			if err != nil {
				t.Fatal(err)
			}
			delete(params, "sign")
			delete(params, "sign_type")
			if got := base64.StdEncoding.EncodeToString([]byte(content(params, true))); got != c.Signed {
				t.Errorf("signed content: got %q", content(params, true))
			}
		})
	}
	if len(v.Cases) < 27 || accepted < 13 {
		t.Errorf("got %d cases, %d accepted", len(v.Cases), accepted)
	}
}

func TestAPartialRefundIsNotASecondPayment(t *testing.T) {
	v := decode[struct{ Cases []struct{ Name, Body string } }](t, "alipay_notify.json")
	for _, c := range v.Cases {
		if !strings.HasPrefix(c.Name, "partial refund") {
			continue
		}
		n, err := vectorGateway(t).Parse(nil, []byte(c.Body), time.Time{})
		if err != nil || n.Status != "" || n.Refunded != gateway.RefundDone || n.Refund == "" {
			t.Errorf("got %+v, %v; want a refund", n, err)
		}
		return
	}
	t.Error("no such vector")
}

func TestRequestVectors(t *testing.T) {
	v := decode[struct {
		Cases []struct {
			Name, SignContent, Sign string
			Params                  map[string]string
		}
	}](t, "alipay_request.json")
	key, err := privateKey(file(t, "testdata", "merchant.key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Cases {
		if got := content(c.Params, false); got != c.SignContent {
			t.Errorf("%s: got %s, want %s", c.Name, got, c.SignContent)
		}
		if got, err := sign(key, c.SignContent); err != nil || got != c.Sign {
			t.Errorf("%s: got %s, %v; want %s", c.Name, got, err, c.Sign)
		}
	}
	if len(v.Cases) < 5 {
		t.Errorf("got %d cases", len(v.Cases))
	}
}

func TestResponseVectors(t *testing.T) {
	v := decode[struct {
		Cases []struct {
			Name, Method, Body, Outcome string
			Valid                       bool
		}
	}](t, "alipay_response.json")
	g := vectorGateway(t)
	for _, c := range v.Cases {
		a, err := g.read(c.Method, "HF-1001", []byte(c.Body))
		var f *failure
		authentic := err == nil || errors.As(err, &f)
		if authentic != c.Valid {
			t.Errorf("%s: got %v, want authentic %v", c.Name, err, c.Valid)
		}
		final := isFinal(err, finalOfCreate) || isFinal(err, finalOfRefund)
		switch c.Outcome {
		case "waiting":
			if st := state(gateway.Payment{ID: "HF-1001"}, a); st.Status != gateway.Open {
				t.Errorf("%s: got %+v, want open", c.Name, st)
			}
		case "not-created":
			if !isAbsent(err) || final {
				t.Errorf("%s: got %v, want absent", c.Name, err)
			}
		default:
			if err == nil || isAbsent(err) || final {
				t.Errorf("%s: got %v, want unknown", c.Name, err)
			}
		}
	}
	if len(v.Cases) < 9 {
		t.Errorf("got %d cases", len(v.Cases))
	}
}

// publicVectors is a folder of vectors that are not ours to copy.
func publicVectors(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HOLDFAST_VECTORS")
	if dir == "" {
		t.Skip("HOLDFAST_VECTORS names no folder")
	}
	return dir
}

func TestARealAnswerIsVerified(t *testing.T) {
	dir := publicVectors(t)
	der, err := keyBytes(file(t, dir, "gopay_sync_pub.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := publicKey(base64.StdEncoding.EncodeToString(der))
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{trust: trust{keys: []*rsa.PublicKey{key}}}
	node, signature := strings.TrimSpace(file(t, dir, "gopay_sync_content.txt")), strings.TrimSpace(file(t, dir, "gopay_sync_sign.b64"))
	body := `{"alipay_trade_query_response":` + node + `,"sign":"` + signature + `"}`
	if _, err := g.authentic("alipay.trade.query", []byte(body)); err != nil {
		t.Error(err)
	}
	if _, err := g.authentic("alipay.trade.query", []byte(strings.Replace(body, "0.01", "0.02", 1))); !errors.Is(err, errUnsigned) {
		t.Errorf("a changed answer: got %v, want %v", err, errUnsigned)
	}
}

func TestRealCertificatesHaveTheirNames(t *testing.T) {
	dir := publicVectors(t)
	want := map[string]string{}
	if err := json.Unmarshal([]byte(file(t, dir, "alipay_cert_sn.json")), &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alipayRootCert.crt", "alipayPublicCert.crt", "appPublicCert.crt"} {
		list, err := certificates(file(t, dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := serial(list[0])
		if name == "alipayRootCert.crt" {
			got = rootSerial(list)
		}
		if got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
	}
	roots, err := certificates(file(t, dir, "alipayRootCert.crt"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := certificates(file(t, dir, "alipayPublicCert.crt"))
	if err != nil {
		t.Fatal(err)
	}
	// The root of these is in no file: they are of Alipay's own test system.
	early := chain[0].NotBefore.Add(time.Hour)
	if _, err := chained(chain[:1], chain[1:], early); err != nil {
		t.Errorf("by its own authority: %v", err)
	}
	if _, err := chained(chain, roots, early); err == nil {
		t.Error("a chain without a root was trusted")
	}
	if _, err := chained(chain[:1], chain[1:], chain[0].NotAfter.Add(time.Hour)); err == nil {
		t.Error("an expired certificate was trusted")
	}
}
