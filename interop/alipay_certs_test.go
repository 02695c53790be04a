package interop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-pay/gopay"
	gopayalipay "github.com/go-pay/gopay/alipay"
	"github.com/go-pay/gopay/pkg/xhttp"
	"github.com/smartwalle/alipay/v3"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// papers are what certificate mode needs, and the simulator that has them.
type papers struct {
	appKey            string // private
	app, root, alipay string // certificates
	sim               *alipaysim.Sim
}

// issuePapers makes them. Messages about transfers go to app.
func issuePapers(t *testing.T, app string) papers {
	t.Helper()
	issuer, appKey, own := newKey(t), newKey(t), newKey(t)
	curve := try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).or(t)
	root, rootText := certify(t, "Root", issuer, nil, issuer)
	_, curveText := certify(t, "Root of another kind", curve, nil, curve) // no SDK counts it
	p := papers{appKey: framed("PRIVATE KEY", try(x509.MarshalPKCS8PrivateKey(appKey)).or(t)), root: rootText + curveText}
	_, p.app = certify(t, "App", appKey, root, issuer)
	_, p.alipay = certify(t, "Alipay", own, root, issuer)
	p.sim = try(alipaysim.New(alipaysim.Config{
		AppURL:       app,
		AppKey:       framed("PUBLIC KEY", try(x509.MarshalPKIXPublicKey(appKey.Public())).or(t)),
		Key:          framed("PRIVATE KEY", try(x509.MarshalPKCS8PrivateKey(own)).or(t)),
		Certificates: &alipaysim.Certificates{App: p.app, Root: p.root, Alipay: p.alipay},
	})).or(t)
	return p
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	return try(rsa.GenerateKey(rand.Reader, 2048)).or(t)
}

// certify makes a certificate for key, signed by issuer; by itself when there
// is no parent.
func certify(t *testing.T, name string, key crypto.Signer, parent *x509.Certificate, issuer crypto.Signer) (*x509.Certificate, string) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: try(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))).or(t),
		Subject:      pkix.Name{CommonName: name, Organization: []string{"Sandbox"}, Country: []string{"CN"}},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: parent == nil,
	}
	if parent == nil {
		parent = c
	}
	der := try(x509.CreateCertificate(rand.Reader, c, parent, key.Public(), issuer)).or(t)
	return try(x509.ParseCertificate(der)).or(t), framed("CERTIFICATE", der)
}

func framed(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func certifiedSmartwalle(t *testing.T, mail *mailbox) smartwalle {
	t.Helper()
	p := issuePapers(t, mail.url)
	at := serve(t, p.sim)
	sdk := try(alipay.New(alipaysim.DefaultAppID, p.appKey, true,
		alipay.WithProductionGateway(at.String()+"/gateway.do"), alipay.WithHTTPClient(&http.Client{Timeout: callTimeout}))).or(t)
	for _, load := range []func() error{
		func() error { return sdk.LoadAppCertPublicKey(p.app) },
		func() error { return sdk.LoadAliPayRootCert(p.root) },
		func() error { return sdk.LoadAlipayCertPublicKey(p.alipay) },
	} {
		if err := load(); err != nil {
			t.Fatal(err)
		}
	}
	return smartwalle{t, newBuyer(t, at), sdk, p.sim, mail}
}

func certifiedGopay(t *testing.T, mail *mailbox) (gopayAlipay, papers) {
	t.Helper()
	p := issuePapers(t, mail.url)
	at := serve(t, p.sim)
	sdk := try(gopayalipay.NewClient(alipaysim.DefaultAppID, p.appKey, true)).or(t)
	sdk.SetHttpClient(xhttp.NewClient().SetTransport(detour{at}).SetTimeout(callTimeout))
	if err := sdk.SetCertSnByContent([]byte(p.app), []byte(p.root), []byte(p.alipay)); err != nil {
		t.Fatal(err)
	}
	sdk.AutoVerifySign([]byte(p.alipay))
	return gopayAlipay{t, newBuyer(t, at), sdk, p.sim, mail}, p
}

func TestSmartwalleTrustsByCertificate(t *testing.T) {
	mail := newMailbox(t)
	s := certifiedSmartwalle(t, mail)
	s.pay(s.precreate("order-1"))
	s.wantState("order-1", alipay.TradeStatusSuccess)
	for _, n := range mail.collect(t, s.sim) {
		believeForm(t, n, func(form url.Values) error {
			_, err := s.sdk.DecodeNotification(t.Context(), form)
			return err
		})
	}
}

func TestGopayTrustsByCertificateOfAlipay(t *testing.T) {
	s, _ := certifiedGopay(t, newMailbox(t))
	s.pay(s.precreate("order-1"))
	s.wantState("order-1", "TRADE_SUCCESS")

	s.sdk.SetAppCertSN("0123456789abcdef0123456789abcdef")
	if _, err := s.sdk.TradeQuery(t.Context(), gopay.BodyMap{"out_trade_no": "order-1"}); err == nil {
		t.Error("an app with another certificate was let in")
	}
}
