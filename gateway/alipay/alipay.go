// Package alipay is the gateway to Alipay, over its open platform's gateway.do.
//
// Four methods: "page" and "wap" send the buyer's browser to Alipay from a
// computer or a phone, "app" hands a signed text to the Alipay app, and
// "precreate" gives the address that a QR code for scanning is made from.
//
// # What exists, and when
//
// The first three are signed here and make no call: Alipay hears of a payment
// when the buyer comes to pay it, and of a precreated one when he scans it.
// So "there is no such trade" does not mean that no money can come. Every
// payment carries the absolute time after which Alipay takes no money for it,
// and only when that time is past, with a margin for clocks that differ, does
// the answer of Close become Closed; until then it is Unknown.
//
// # What repeating means here
//
// Our numbers are Alipay's keys for as long as it keeps its books, so every
// call may be repeated at any time. A refund's number belongs to one amount:
// used again it moves nothing and looks like success, and what it once did is
// read from the refund query.
//
// # Paying out
//
// The receiver of a transfer is "user_id:2088…", "open_id:…" or
// "logon_id:PHONE OR EMAIL:NAME", each with ":NAME" behind it if Alipay is to
// pay nobody of another name. It needs certificate mode. What becomes of a
// transfer is asked for; the message alipay.fund.trans.order.changed, if the app
// subscribes to it with the address of notifications, only says it sooner.
//
// # What is believed
//
// Only what Alipay signed, over the bytes as they came, and with RSA2
// (SHA-256) alone. An error without a signature is no answer.
package alipay

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const defaultURL = "https://openapi.alipay.com/gateway.do"

// defaultTimeout bounds a call whose context has no deadline.
const defaultTimeout = 30 * time.Second

// Options says whose account it is. AppID, SellerID, PrivateKey and one of
// PublicKey and Certificates are required. Keys and certificates are PEM; keys
// may also be bare base64, as Alipay's own tool writes them.
type Options struct {
	AppID      string // of the app that is signed for, 20…
	SellerID   string // the merchant's own number, 2088…; notifications of others are refused
	PrivateKey string // the app's, RSA of 2048 bits or more, PKCS #1 or #8

	PublicKey    string        // Alipay's, in public-key mode
	Certificates *Certificates // in certificate mode

	NotifyURL  string           // where Alipay sends notifications; empty = none are sent
	BaseURL    string           // empty = https://openapi.alipay.com/gateway.do
	HTTPClient *http.Client     // nil = a plain one; a Timeout of 0 becomes 30 s
	Now        func() time.Time // tells whether a payment's deadline is past; nil = time.Now
}

// Certificates are those of certificate mode. All are PEM.
type Certificates struct {
	App  string // the app's own, of PrivateKey
	Root string // Alipay's roots, one after another
	// Alipay are 1 to 4 of Alipay's own, each the certificate and then those
	// between it and the root, so that one can be replaced without losing what
	// is on its way.
	Alipay []string
}

const maxCertificates = 4

// Gateway is a gateway.Gateway. It is safe for concurrent use.
type Gateway struct {
	appID, sellerID string
	key             *rsa.PrivateKey
	trust           trust
	notifyURL       string
	baseURL         string
	client          *http.Client
	now             func() time.Time
}

var _ gateway.Gateway = (*Gateway)(nil)

// New checks the options and makes no call.
func New(o Options) (*Gateway, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BaseURL == "" {
		o.BaseURL = defaultURL
	}
	g, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("alipay: options: %w", err)
	}
	return g, nil
}

var (
	appForm    = regexp.MustCompile(`^[0-9]{8,32}$`)
	sellerForm = regexp.MustCompile(`^2088[0-9]{12}$`)
)

func open(o Options) (*Gateway, error) {
	if !appForm.MatchString(o.AppID) {
		return nil, errors.New("app id is not 8 to 32 digits")
	}
	if !sellerForm.MatchString(o.SellerID) {
		return nil, errors.New("seller id is not 2088 and 12 more digits")
	}
	if err := checkAddress(o.BaseURL); err != nil {
		return nil, fmt.Errorf("base url: %w", err)
	}
	if u, err := url.Parse(o.NotifyURL); o.NotifyURL != "" && (err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http")) {
		return nil, errors.New("notify url is not an http address")
	}
	key, err := privateKey(o.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	t, err := newTrust(o, key)
	if err != nil {
		return nil, err
	}
	client := http.Client{}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	if client.Timeout == 0 {
		client.Timeout = defaultTimeout
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Gateway{
		appID: o.AppID, sellerID: o.SellerID, key: key, trust: t,
		notifyURL: o.NotifyURL, baseURL: o.BaseURL, client: &client, now: o.Now,
	}, nil
}

// checkAddress wants https, except to this machine: what buyers order is
// nobody else's business.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("not an http address")
	}
	if u.RawQuery != "" {
		return errors.New("has a query")
	}
	ip := net.ParseIP(u.Hostname())
	if local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); u.Scheme == "http" && !local {
		return errors.New("http is for this machine only")
	}
	return nil
}

// Methods implements gateway.Gateway.
func (g *Gateway) Methods() []string {
	return []string{methodPage, methodWap, methodApp, methodPrecreate}
}

// Check implements gateway.Gateway.
func (g *Gateway) Check(p gateway.Payment) *gateway.Unfit {
	if !slices.Contains(g.Methods(), p.Method) {
		return &gateway.Unfit{Field: "method", Detail: fmt.Sprintf("method %q is not one of %v", p.Method, g.Methods())}
	}
	if p.Currency != currency {
		return &gateway.Unfit{Field: "currency", Detail: "alipay takes CNY, not " + p.Currency}
	}
	if p.Amount < 1 || p.Amount > maxAmount {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("alipay takes 0.01 to %s yuan", toYuan(maxAmount))}
	}
	return nil
}
