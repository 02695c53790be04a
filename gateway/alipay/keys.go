package alipay

import (
	"bytes"
	"crypto/md5"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

const minKeyBits = 2048

// trust is how we know Alipay: by one public key, or by certificates.
type trust struct {
	appSN, rootSN string                    // empty in public-key mode
	keys          []*rsa.PublicKey          // any of them may have signed a notification
	bySN          map[string]*rsa.PublicKey // who signed an answer; nil in public-key mode
}

func newTrust(o Options, key *rsa.PrivateKey) (trust, error) {
	if (o.PublicKey != "") == (o.Certificates != nil) {
		return trust{}, errors.New("either alipay's public key or certificates are needed")
	}
	if o.Certificates != nil {
		return o.Certificates.trust(key, o.Now())
	}
	public, err := publicKey(o.PublicKey)
	if err != nil {
		return trust{}, fmt.Errorf("alipay's public key: %w", err)
	}
	if public.Equal(key.Public()) {
		return trust{}, errors.New("alipay's public key is the app's own: anyone with the app's key could sign for alipay")
	}
	return trust{keys: []*rsa.PublicKey{public}}, nil
}

func (c *Certificates) trust(key *rsa.PrivateKey, now time.Time) (trust, error) {
	app, err := certificates(c.App)
	if err != nil {
		return trust{}, fmt.Errorf("app certificate: %w", err)
	}
	if !key.PublicKey.Equal(app[0].PublicKey) {
		return trust{}, errors.New("app certificate: not of the private key")
	}
	roots, err := certificates(c.Root)
	if err != nil {
		return trust{}, fmt.Errorf("root certificate: %w", err)
	}
	t := trust{appSN: serial(app[0]), rootSN: rootSerial(roots), bySN: map[string]*rsa.PublicKey{}}
	if t.rootSN == "" {
		return trust{}, errors.New("root certificate: none is of RSA")
	}
	if len(c.Alipay) == 0 || len(c.Alipay) > maxCertificates {
		return trust{}, fmt.Errorf("alipay's certificates: there are %d, not 1 to %d", len(c.Alipay), maxCertificates)
	}
	for _, text := range c.Alipay {
		chain, err := certificates(text)
		if err != nil {
			return trust{}, fmt.Errorf("alipay's certificate: %w", err)
		}
		public, err := chained(chain, roots, now)
		if err != nil {
			return trust{}, fmt.Errorf("alipay's certificate %s: %w", serial(chain[0]), err)
		}
		t.keys = append(t.keys, public)
		t.bySN[serial(chain[0])] = public
	}
	return t, nil
}

// chained checks that the first of chain leads to a root, now. It does not use
// x509's own search: Alipay's authorities are not marked as authorities, and
// would be refused for that.
func chained(chain, roots []*x509.Certificate, now time.Time) (*rsa.PublicKey, error) {
	public, ok := chain[0].PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("not of RSA")
	}
	c, between := chain[0], chain[1:]
	for range maxChain {
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			return nil, fmt.Errorf("%s is valid from %s to %s only", c.Subject.CommonName, c.NotBefore.Format(time.DateOnly), c.NotAfter.Format(time.DateOnly))
		}
		if issuer(c, roots) != nil {
			return public, checkSize(public)
		}
		if c = issuer(c, between); c == nil {
			break
		}
	}
	return nil, errors.New("does not lead to a root certificate")
}

// issuer is who signed c, nil when it is none of them.
func issuer(c *x509.Certificate, of []*x509.Certificate) *x509.Certificate {
	for _, by := range of {
		denied := by.BasicConstraintsValid && !by.IsCA
		if !denied && bytes.Equal(c.RawIssuer, by.RawSubject) && by.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil {
			return by
		}
	}
	return nil
}

// maxChain is how many certificates of one text are read.
const maxChain = 16

// certificates reads PEM blocks. Those of other kinds of keys, which Alipay's
// root file has too, are left out.
func certificates(text string) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for rest := []byte(text); len(list) < maxChain; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no readable certificate")
	}
	return list, nil
}

// serial is the name by which Alipay calls a certificate. MD5 is its choice;
// nothing is proved by it.
func serial(c *x509.Certificate) string {
	sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String()))
	return hex.EncodeToString(sum[:])
}

func rootSerial(roots []*x509.Certificate) string {
	var names []string
	for _, c := range roots {
		switch c.SignatureAlgorithm {
		case x509.SHA1WithRSA, x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA:
			names = append(names, serial(c))
		}
	}
	return strings.Join(names, "_")
}

func privateKey(text string) (*rsa.PrivateKey, error) {
	der, err := keyBytes(text)
	if err != nil {
		return nil, err
	}
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k, checkSize(&k.PublicKey)
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("neither PKCS #1 nor PKCS #8")
	}
	k, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("not of RSA")
	}
	return k, checkSize(&k.PublicKey)
}

func publicKey(text string) (*rsa.PublicKey, error) {
	der, err := keyBytes(text)
	if err != nil {
		return nil, err
	}
	any, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("not a public key")
	}
	k, ok := any.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("not of RSA")
	}
	return k, checkSize(k)
}

func checkSize(k *rsa.PublicKey) error {
	if k.N.BitLen() < minKeyBits {
		return fmt.Errorf("%d bits, not %d or more", k.N.BitLen(), minKeyBits)
	}
	return nil
}

// keyBytes reads PEM or bare base64. Its errors do not repeat the text: it may
// be a private key.
func keyBytes(text string) ([]byte, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("missing")
	}
	if block, _ := pem.Decode([]byte(text)); block != nil {
		return block.Bytes, nil
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("neither PEM nor base64")
	}
	return der, nil
}
