package alipaysim

import (
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"
)

// The keys of the sandbox are for everybody, and good for nothing else.
var (
	// DefaultAppKey is the private key that a shop signs with. PEM.
	//go:embed keys/app.key.pem
	DefaultAppKey string

	// DefaultPublicKey is Alipay's, that a shop verifies with. PEM.
	//go:embed keys/alipay.pub.pem
	DefaultPublicKey string

	//go:embed keys/alipay.key.pem
	defaultKey string

	//go:embed keys/app.cert.pem
	defaultAppCert string
	//go:embed keys/root.cert.pem
	defaultRootCert string
	//go:embed keys/alipay.cert.pem
	defaultCert string
)

// DefaultCertificates are those of the default keys, for certificate mode.
func DefaultCertificates() *Certificates {
	return &Certificates{App: defaultAppCert, Root: defaultRootCert, Alipay: defaultCert}
}

type keys struct {
	own *rsa.PrivateKey
	app *rsa.PublicKey
	// Names of certificates; empty in public-key mode.
	appSN, rootSN, ownSN string
}

func readKeys(cfg Config) (k keys, err error) {
	if cfg.Key == "" {
		cfg.Key = defaultKey
	}
	if k.own, err = private(cfg.Key); err != nil {
		return k, fmt.Errorf("key: %w", err)
	}
	if k.app, err = public(cfg.AppKey); err != nil {
		return k, fmt.Errorf("app key: %w", err)
	}
	if cfg.Certificates == nil {
		return k, nil
	}
	for _, c := range []struct {
		text  string
		into  *string
		roots bool
	}{{cfg.Certificates.App, &k.appSN, false}, {cfg.Certificates.Root, &k.rootSN, true}, {cfg.Certificates.Alipay, &k.ownSN, false}} {
		if *c.into = names(c.text, c.roots); *c.into == "" {
			return k, errors.New("a certificate is unreadable")
		}
	}
	return k, nil
}

func private(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("not PEM")
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if k, ok := k.(*rsa.PrivateKey); ok {
		return k, nil
	}
	return nil, errors.New("not of RSA")
}

func public(text string) (*rsa.PublicKey, error) {
	if text == "" {
		k, err := private(DefaultAppKey)
		if err != nil {
			return nil, err
		}
		return &k.PublicKey, nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("not PEM")
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if k, ok := k.(*rsa.PublicKey); ok {
		return k, nil
	}
	return nil, errors.New("not of RSA")
}

// names are the serial names of certificates: the first's, or all roots' of RSA.
func names(text string, roots bool) string {
	var list []string
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return strings.Join(list, "_")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || roots && !strings.Contains(c.SignatureAlgorithm.String(), "RSA") {
			continue
		}
		sum := md5.Sum(append([]byte(c.Issuer.String()), c.SerialNumber.String()...))
		list = append(list, hex.EncodeToString(sum[:]))
		if !roots {
			return list[0]
		}
	}
}

func (k keys) sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	s, err := rsa.SignPKCS1v15(nil, k.own, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // a key that was read can sign
	}
	return base64.StdEncoding.EncodeToString(s)
}

func (k keys) signedByApp(text, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	return err == nil && rsa.VerifyPKCS1v15(k.app, crypto.SHA256, sum[:], raw) == nil
}

// requestText is what a request's signature is over.
func requestText(form url.Values) string {
	var list []string
	for name := range form {
		if name != "sign" && form.Get(name) != "" {
			list = append(list, name)
		}
	}
	sort.Strings(list)
	for i, name := range list {
		list[i] = name + "=" + form.Get(name)
	}
	return strings.Join(list, "&")
}
