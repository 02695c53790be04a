package alipay_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
)

// A key takes long to make, so there is one more, for everybody.
var stranger = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func strangersKey(t *testing.T) string {
	t.Helper()
	k, err := stranger()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func keyOf(t *testing.T, text string) *rsa.PrivateKey {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*rsa.PrivateKey)
}

// authority issues certificates.
type authority struct {
	t    *testing.T
	key  *rsa.PrivateKey
	cert *x509.Certificate
	text string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	k, err := stranger()
	if err != nil {
		t.Fatal(err)
	}
	return authorityOf(t, name, k)
}

func authorityOf(t *testing.T, name string, k *rsa.PrivateKey) authority {
	t.Helper()
	a := authority{t: t, key: k}
	form := template(name, 1)
	form.IsCA, form.BasicConstraintsValid, form.KeyUsage = true, true, x509.KeyUsageCertSign
	a.text = a.make(form, form, k.Public())
	block, _ := pem.Decode([]byte(a.text))
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a authority) issue(name string, serial int64, public crypto.PublicKey) string {
	a.t.Helper()
	return a.make(template(name, serial), a.cert, public)
}

func (a authority) make(form, parent *x509.Certificate, public crypto.PublicKey) string {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, form, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func template(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Test"}},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		SignatureAlgorithm: x509.SHA256WithRSA,
	}
}

func publicOf(t *testing.T, private string) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(keyOf(t, private).Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func parsePublic(t *testing.T, text string) crypto.PublicKey {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// certificateMode is a bench whose two sides know each other by certificates.
func certificateMode(t *testing.T, change func(*alipay.Options)) bench {
	t.Helper()
	ca := newAuthority(t, "Root")
	app := ca.issue("App", 2, keyOf(t, alipaysim.DefaultAppKey).Public())
	own := ca.issue("Alipay", 3, parsePublic(t, alipaysim.DefaultPublicKey))
	return openWith(t, "precreate", alipaysim.Config{Certificates: &alipaysim.Certificates{App: app, Root: ca.text, Alipay: own}},
		func(o *alipay.Options) {
			o.PublicKey = ""
			o.Certificates = &alipay.Certificates{App: app, Root: ca.text, Alipay: []string{own}}
			if change != nil {
				change(o)
			}
		})
}

func TestCertificateModeKeepsTheContract(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Harness { return certificateMode(t, nil).Harness })
}

func TestAnAnswerByAnotherCertificateIsNoAnswer(t *testing.T) {
	b := certificateMode(t, func(o *alipay.Options) {
		// The next one, of the same key but another name.
		ca := newAuthority(t, "Next root")
		o.Certificates.Root += ca.text
		o.Certificates.Alipay = []string{ca.issue("Alipay", 4, parsePublic(t, alipaysim.DefaultPublicKey))}
	})
	if a := b.Gateway.Query(t.Context(), b.payment("pay1")); a.Outcome != gateway.Unknown {
		t.Errorf("got %s, want unknown", a.Outcome)
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	good := certificateMode(t, nil).options
	namesake := authorityOf(t, "Root", keyOf(t, alipaysim.DefaultAppKey))
	other, own := newAuthority(t, "Other"), parsePublic(t, alipaysim.DefaultPublicKey)
	for name, change := range map[string]func(*alipay.Certificates){
		"no app's":          func(c *alipay.Certificates) { c.App = "" },
		"another's app":     func(c *alipay.Certificates) { c.App = c.Alipay[0] },
		"no root":           func(c *alipay.Certificates) { c.Root = "" },
		"another root":      func(c *alipay.Certificates) { c.Root = other.text },
		"none of alipay":    func(c *alipay.Certificates) { c.Alipay = nil },
		"not of that root":  func(c *alipay.Certificates) { c.Alipay = []string{other.issue("Alipay", 3, own)} },
		"by a namesake":     func(c *alipay.Certificates) { c.Alipay = []string{namesake.issue("Alipay", 3, own)} },
		"by somebody's app": func(c *alipay.Certificates) { c.Root = c.App },
	} {
		o, c := good, *good.Certificates
		change(&c)
		o.Certificates = &c
		if _, err := alipay.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	o := good
	o.Now = func() time.Time { return time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC) }
	if _, err := alipay.New(o); err == nil {
		t.Error("an expired certificate was accepted")
	}
}
