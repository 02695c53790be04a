package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/spf13/pflag"
)

// alipayFlags name a shop's account at Alipay. Keys are never flags themselves.
type alipayFlags struct {
	appID, sellerID, baseURL, notifyURL string
	keyFile, publicKeyFile              string
	appCert, rootCert                   string
	certs                               []string
}

func (h *host) alipayFlags(f *pflag.FlagSet) *alipayFlags {
	a := &alipayFlags{}
	f.StringVar(&a.appID, "alipay-app-id", h.or("HOLDFAST_ALIPAY_APP_ID", ""), "the app's `number` at Alipay; HOLDFAST_ALIPAY_APP_ID")
	f.StringVar(&a.sellerID, "alipay-seller-id", h.or("HOLDFAST_ALIPAY_SELLER_ID", ""), "the merchant's own `number`, 2088...; HOLDFAST_ALIPAY_SELLER_ID")
	f.StringVar(&a.keyFile, "alipay-private-key-file", "", "`file` with the app's private key; HOLDFAST_ALIPAY_PRIVATE_KEY or ..._FILE")
	f.StringVar(&a.publicKeyFile, "alipay-public-key-file", "", "`file` with Alipay's public key, without certificates; HOLDFAST_ALIPAY_PUBLIC_KEY or ..._FILE")
	f.StringVar(&a.appCert, "alipay-app-cert-file", h.or("HOLDFAST_ALIPAY_APP_CERT_FILE", ""), "`file` with the app's certificate, with certificates; HOLDFAST_ALIPAY_APP_CERT_FILE")
	f.StringVar(&a.rootCert, "alipay-root-cert-file", h.or("HOLDFAST_ALIPAY_ROOT_CERT_FILE", ""), "`file` with Alipay's root certificates; HOLDFAST_ALIPAY_ROOT_CERT_FILE")
	f.StringSliceVar(&a.certs, "alipay-cert-file", fields(h.or("HOLDFAST_ALIPAY_CERT_FILES", "")), "`file` with Alipay's certificate; may be repeated; HOLDFAST_ALIPAY_CERT_FILES, by commas")
	f.StringVar(&a.notifyURL, "alipay-notify-url", h.or("HOLDFAST_ALIPAY_NOTIFY_URL", ""), "`address` of /webhooks/alipay as Alipay sees it; HOLDFAST_ALIPAY_NOTIFY_URL")
	f.StringVar(&a.baseURL, "alipay-base-url", h.or("HOLDFAST_ALIPAY_BASE_URL", ""), "`address` of Alipay's gateway.do if it is not the real one; HOLDFAST_ALIPAY_BASE_URL")
	return a
}

// alipay is nil when nothing of an account at Alipay is given.
func (h *host) alipay(f *alipayFlags) (*alipay.Gateway, error) {
	key, err := h.secret("HOLDFAST_ALIPAY_PRIVATE_KEY", f.keyFile)
	if err != nil {
		return nil, err
	}
	public, err := h.secret("HOLDFAST_ALIPAY_PUBLIC_KEY", f.publicKeyFile)
	if err != nil {
		return nil, err
	}
	if key == "" && public == "" && f.appID == "" && f.sellerID == "" {
		return nil, nil
	}
	o := alipay.Options{
		AppID: f.appID, SellerID: f.sellerID, PrivateKey: key, PublicKey: public, NotifyURL: f.notifyURL, BaseURL: f.baseURL,
	}
	if f.appCert != "" || f.rootCert != "" || len(f.certs) > 0 {
		if o.Certificates, err = f.certificates(); err != nil {
			return nil, err
		}
	}
	return alipay.New(o)
}

func (f *alipayFlags) certificates() (*alipay.Certificates, error) {
	c := &alipay.Certificates{Alipay: make([]string, len(f.certs))}
	files := map[*string]string{&c.App: f.appCert, &c.Root: f.rootCert}
	for i, name := range f.certs {
		files[&c.Alipay[i]] = name
	}
	for into, name := range files {
		if name == "" {
			return nil, usagef("alipay with certificates needs the app's, the root's and alipay's")
		}
		text, err := readSecret(name)
		if err != nil {
			return nil, fmt.Errorf("read certificate %s: %w", name, err)
		}
		*into = text
	}
	return c, nil
}

// fields are the parts of a list by commas.
func fields(list string) (parts []string) {
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	return parts
}
