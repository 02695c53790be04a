package wechatpay

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	defaultBaseURL = "https://api.mch.weixin.qq.com"
	// defaultTimeout bounds a call whose context has no deadline.
	defaultTimeout  = 30 * time.Second
	apiv3KeyBytes   = 32
	maxCertificates = 4
	minKeyBits      = 2048
	publicKeyPrefix = "PUB_KEY_ID_"
)

// Options says whose account it is. Keys and certificates are PEM.
//
// WeChat Pay signs in one of two modes, with the merchant's "WeChat Pay public
// key" or with a platform certificate; while a merchant changes over, and while
// a certificate is replaced, messages of both kinds arrive, each naming its
// key. Give both then: PublicKey, Certificates, or both are required.
type Options struct {
	MerchantID     string // mchid
	AppID          string // of the official account or mini program
	MobileAppID    string // of the mobile app, for method app; empty = AppID
	MerchantSerial string // serial number of the merchant's own API certificate, hexadecimal
	MerchantKey    []byte // private key of that certificate, PKCS #8 or PKCS #1
	APIv3Key       string // 32 bytes; decrypts notifications

	PublicKeyID  string   // PUB_KEY_ID_…
	PublicKey    []byte   // the WeChat Pay public key of that id
	Certificates [][]byte // platform certificates, at most 4; never the merchant's own

	// TransferScene is the id of the scene that payouts are made for, such as 1005;
	// empty = nothing is paid out. TransferReports is what the scene requires to be
	// told of each.
	TransferScene   string
	TransferReports []TransferReport

	NotifyURL  string           // where notifications go; https without a query (http on loopback only)
	BaseURL    string           // empty = https://api.mch.weixin.qq.com; http on loopback only
	HTTPClient *http.Client     // nil = a plain one; a Timeout of 0 becomes 30 s
	Now        func() time.Time // stamps requests, tells the age of answers; nil = time.Now
}

func (o Options) client() (client, error) {
	for _, required := range []struct{ name, value string }{
		{"merchant id", o.MerchantID}, {"app id", o.AppID}, {"merchant serial", o.MerchantSerial},
	} {
		if required.value == "" {
			return client{}, errors.New(required.name + " is missing")
		}
	}
	if len(o.APIv3Key) != apiv3KeyBytes {
		return client{}, fmt.Errorf("the APIv3 key has %d bytes and not %d", len(o.APIv3Key), apiv3KeyBytes)
	}
	if err := checkAddress("notify url", o.NotifyURL); err != nil {
		return client{}, err
	}
	base := strings.TrimSuffix(o.BaseURL, "/")
	if base == "" {
		base = defaultBaseURL
	}
	if err := checkAddress("base url", base); err != nil {
		return client{}, err
	}
	key, err := privateKey(o.MerchantKey)
	if err != nil {
		return client{}, err
	}
	keys, err := o.keys()
	if err != nil {
		return client{}, err
	}
	if err := o.checkTransfers(); err != nil {
		return client{}, err
	}
	c := client{
		http: o.plainClient(), base: base, mchid: o.MerchantID, serial: o.MerchantSerial, key: key, trusted: keys, now: o.Now,
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

func (o Options) checkTransfers() error {
	if o.TransferScene == "" && len(o.TransferReports) > 0 {
		return errors.New("transfer reports are given without a transfer scene")
	}
	if len(o.TransferReports) > maxReports {
		return fmt.Errorf("more than %d transfer reports", maxReports)
	}
	for _, r := range o.TransferReports {
		if r.Type == "" || r.Content == "" || utf8.RuneCountInString(r.Type) > maxReport || utf8.RuneCountInString(r.Content) > maxReport {
			return fmt.Errorf("transfer report %q has not 1 to %d characters on both sides", r.Type, maxReport)
		}
	}
	return nil
}

func (o Options) plainClient() *http.Client {
	c := http.Client{}
	if o.HTTPClient != nil {
		c = *o.HTTPClient
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// checkAddress: what goes there is money's business, so only https, or a
// simulator on this machine.
func checkAddress(name, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%s is not an http address", name)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s must have no query", name)
	}
	if u.Scheme == "https" {
		return nil
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%s must be https, or http on a loopback address", name)
}

// keys are those that WeChat Pay signs with, by the id that a message names.
func (o Options) keys() (keyring, error) {
	ring := keyring{keys: map[string]*rsa.PublicKey{}}
	if (o.PublicKeyID == "") != (len(o.PublicKey) == 0) {
		return ring, errors.New("public key and public key id go together")
	}
	if o.PublicKeyID != "" {
		if !strings.HasPrefix(o.PublicKeyID, publicKeyPrefix) {
			return ring, fmt.Errorf("public key id %q does not begin with %s", o.PublicKeyID, publicKeyPrefix)
		}
		key, err := publicKey(o.PublicKey)
		if err != nil {
			return ring, err
		}
		ring.keys[o.PublicKeyID], ring.asked = key, o.PublicKeyID
	}
	if len(o.Certificates) > maxCertificates {
		return ring, fmt.Errorf("more than %d platform certificates", maxCertificates)
	}
	var newest time.Time
	for _, text := range o.Certificates {
		cert, err := certificate(text)
		if err != nil {
			return ring, err
		}
		serial := serialOf(cert)
		if strings.EqualFold(serial, o.MerchantSerial) {
			return ring, fmt.Errorf("certificate %s is the merchant's own, and not one of the platform", serial)
		}
		ring.keys[serial] = cert.PublicKey.(*rsa.PublicKey)
		if o.PublicKeyID == "" && cert.NotBefore.After(newest) {
			newest, ring.asked = cert.NotBefore, serial
		}
	}
	if len(ring.keys) == 0 {
		return ring, errors.New("neither a public key nor a platform certificate is given")
	}
	return ring, nil
}

// privateKey reads the merchant's key. The parsers' own errors are about the
// key's bytes, and are not passed on.
func privateKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the merchant key is not PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("the merchant key is neither PKCS #8 nor PKCS #1")
		}
		key, _ = parsed.(*rsa.PrivateKey)
	}
	if key == nil || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("the merchant key is not an RSA key of at least %d bits", minKeyBits)
	}
	return key, nil
}

func publicKey(text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the public key is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("the public key is not an RSA key of at least %d bits", minKeyBits)
	}
	return key, nil
}

func certificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("a platform certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read a platform certificate: %w", err)
	}
	if key, ok := cert.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("platform certificate %s has no RSA key of at least %d bits", serialOf(cert), minKeyBits)
	}
	return cert, nil
}

// serialOf writes a serial number as WeChat Pay does.
func serialOf(c *x509.Certificate) string {
	return strings.ToUpper(fmt.Sprintf("%x", c.SerialNumber.Bytes()))
}
