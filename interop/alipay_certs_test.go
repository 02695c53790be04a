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

func issuePapers(t *testing.T) papers {
	t.Helper()
	issuer, app, own := newKey(t), newKey(t), newKey(t)
	curve := try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).or(t)
	root, rootText := certify(t, "Root", issuer, nil, issuer)
	_, curveText := certify(t, "Root of another kind", curve, nil, curve) // no SDK counts it
	p := papers{appKey: framed("PRIVATE KEY", try(x509.MarshalPKCS8PrivateKey(app)).or(t)), root: rootText + curveText}
	_, p.app = certify(t, "App", app, root, issuer)
	_, p.alipay = certify(t, "Alipay", own, root, issuer)
	p.sim = try(alipaysim.New(alipaysim.Config{
		AppKey:       framed("PUBLIC KEY", try(x509.MarshalPKIXPublicKey(app.Public())).or(t)),
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

func TestSmartwalleTrustsByCertificate(t *testing.T) {
	p, mail := issuePapers(t), newMailbox(t)
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
	s := smartwalle{t, newBuyer(t, at), sdk, p.sim, mail}
	s.pay(s.precreate("order-1"))
	s.wantState("order-1", alipay.TradeStatusSuccess)
	for _, n := range mail.collect(t, p.sim) {
		believeForm(t, n, func(form url.Values) error {
			_, err := sdk.DecodeNotification(t.Context(), form)
			return err
		})
	}
}

func TestGopayTrustsByCertificateOfAlipay(t *testing.T) {
	p := issuePapers(t)
	at := serve(t, p.sim)
	sdk := try(gopayalipay.NewClient(alipaysim.DefaultAppID, p.appKey, true)).or(t)
	sdk.SetHttpClient(xhttp.NewClient().SetTransport(detour{at}).SetTimeout(callTimeout))
	if err := sdk.SetCertSnByContent([]byte(p.app), []byte(p.root), []byte(p.alipay)); err != nil {
		t.Fatal(err)
	}
	sdk.AutoVerifySign([]byte(p.alipay))
	s := gopayAlipay{t, newBuyer(t, at), sdk, p.sim, nil}
	s.pay(s.precreate("order-1"))
	s.wantState("order-1", "TRADE_SUCCESS")

	sdk.SetAppCertSN("0123456789abcdef0123456789abcdef")
	if _, err := sdk.TradeQuery(t.Context(), gopay.BodyMap{"out_trade_no": "order-1"}); err == nil {
		t.Error("an app with another certificate was let in")
	}
}
