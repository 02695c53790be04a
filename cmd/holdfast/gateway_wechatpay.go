package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay/wechatpaysim"
	"github.com/spf13/pflag"
)

// wechatpayFlags say how WeChat Pay is reached.
type wechatpayFlags struct {
	o                              wechatpay.Options
	keyFile, apiv3File, publicFile string
	certificates, reports          []string
}

func (w *wechatpayFlags) add(h *host, f *pflag.FlagSet) {
	text := func(to *string, flag, name, about string) {
		f.StringVar(to, flag, h.or(name, ""), about+"; "+name)
	}
	text(&w.o.MerchantID, "wechatpay-mchid", "HOLDFAST_WECHATPAY_MCHID", "WeChat Pay's `number` of the merchant")
	text(&w.o.AppID, "wechatpay-appid", "HOLDFAST_WECHATPAY_APPID", "`appid` of the official account or mini program")
	text(&w.o.MobileAppID, "wechatpay-mobile-appid", "HOLDFAST_WECHATPAY_MOBILE_APPID", "`appid` of the mobile app, if it is another")
	text(&w.o.MerchantSerial, "wechatpay-serial", "HOLDFAST_WECHATPAY_SERIAL", "serial `number` of the merchant's API certificate")
	text(&w.o.PublicKeyID, "wechatpay-public-key-id", "HOLDFAST_WECHATPAY_PUBLIC_KEY_ID", "`id` of the WeChat Pay public key, PUB_KEY_ID_...")
	text(&w.o.BaseURL, "wechatpay-base-url", "HOLDFAST_WECHATPAY_BASE_URL", "`address` of WeChat Pay's API if it is not the real one")
	text(&w.o.NotifyURL, "wechatpay-notify-url", "HOLDFAST_WECHATPAY_NOTIFY_URL", "public `address` of /webhooks/wechatpay here")
	text(&w.o.TransferScene, "wechatpay-transfer-scene", "HOLDFAST_WECHATPAY_TRANSFER_SCENE", "`id` of the scene that payouts are made for, such as 1005; none = nothing is paid out")
	f.StringSliceVar(&w.reports, "wechatpay-transfer-report", fields(h.or("HOLDFAST_WECHATPAY_TRANSFER_REPORTS", "")),
		"`type=content` that the scene requires to be told of each payout; may be repeated; HOLDFAST_WECHATPAY_TRANSFER_REPORTS, by commas")
	f.StringVar(&w.keyFile, "wechatpay-key-file", "", "`file` with the merchant's private key; HOLDFAST_WECHATPAY_KEY or ..._FILE")
	f.StringVar(&w.apiv3File, "wechatpay-apiv3-key-file", "", "`file` with the APIv3 key; HOLDFAST_WECHATPAY_APIV3_KEY or ..._FILE")
	f.StringVar(&w.publicFile, "wechatpay-public-key-file", "", "`file` with the WeChat Pay public key; HOLDFAST_WECHATPAY_PUBLIC_KEY or ..._FILE")
	f.StringSliceVar(&w.certificates, "wechatpay-certificate-file", fields(h.or("HOLDFAST_WECHATPAY_CERTIFICATE_FILES", "")),
		"`file` with a platform certificate; may be repeated; HOLDFAST_WECHATPAY_CERTIFICATE_FILES, by commas")
}

// wechatpay is nil when nothing of it is configured.
func (h *host) wechatpay(w wechatpayFlags) (*wechatpay.Gateway, error) {
	o := w.o
	for _, s := range []struct {
		name, file string
		to         func(string)
	}{
		{"HOLDFAST_WECHATPAY_KEY", w.keyFile, func(s string) { o.MerchantKey = []byte(s) }},
		{"HOLDFAST_WECHATPAY_APIV3_KEY", w.apiv3File, func(s string) { o.APIv3Key = s }},
		{"HOLDFAST_WECHATPAY_PUBLIC_KEY", w.publicFile, func(s string) { o.PublicKey = []byte(s) }},
	} {
		value, err := h.secret(s.name, s.file)
		if err != nil {
			return nil, err
		}
		s.to(value)
	}
	if o.MerchantID == "" && len(o.MerchantKey) == 0 && o.APIv3Key == "" {
		return nil, nil
	}
	for _, r := range w.reports {
		kind, content, ok := strings.Cut(r, "=")
		if !ok {
			return nil, usagef("--wechatpay-transfer-report %s is not type=content", r)
		}
		o.TransferReports = append(o.TransferReports, wechatpay.TransferReport{Type: kind, Content: content})
	}
	for _, file := range w.certificates {
		text, err := readSecret(file)
		if err != nil {
			return nil, fmt.Errorf("read a platform certificate: %w", err)
		}
		o.Certificates = append(o.Certificates, []byte(text))
	}
	return wechatpay.New(o)
}

// troubledWechatpay is WeChat Pay on a bad day.
var troubledWechatpay = wechatpaysim.Faults{
	DelayNotice: 300 * time.Millisecond, LoseNotice: 0.1, DuplicateNotice: 0.2, ReorderNotice: 0.1, ForgeNotice: 0.1, ProbeNotice: 0.1, SkewedNotice: 0.05,
	LostAnswer: 0.05, ErrorAfterEffect: 0.03, Unavailable: 0.05, RateLimited: 0.02, UnsignedRefusal: 0.05, UnsignedAnswer: 0.02,
	ReencodedAnswer: 0.02, ProbeAnswer: 0.02, SkewedAnswer: 0.02, SlowAnswer: 100 * time.Millisecond,
	PaidBeforeClose: 0.3, CloseTooEarly: 0.1, UserPaying: 0.05, OldCodes: 0.3, Coupon: 0.2,
	LostRequest: 0.03, LateTransfer: 0.05, TransferAccepted: 0.2, TransferPending: 0.2, TransferFails: 0.1,
}

// wechatpayStand serves WeChat Pay to its one merchant, whose keys it gives to
// everybody who asks for them.
func wechatpayStand(f *pflag.FlagSet) opener {
	addr := f.String("wechatpay-addr", "127.0.0.1:12113", "the loopback `address` of WeChat Pay; empty = none")
	byCert := f.Bool("wechatpay-by-certificate", false, "WeChat Pay signs by platform certificate, as for merchants without a public key of it")
	return func(seed uint64, faults bool) (stand, error) {
		sim := wechatpaysim.New(wechatpaysim.Config{Seed: seed, ByCert: *byCert})
		if faults {
			sim.SetFaults(troubledWechatpay)
		}
		return stand{"wechatpay", *addr, sim, func(url string) []detail {
			keys := url + "/_sim/keys/"
			return []detail{
				{"api", "API", url}, {"page", "Page", url + "/_sim/"},
				{"mchid", "Merchant", wechatpaysim.MerchantID}, {"appid", "App", wechatpaysim.AppID},
				{"serial", "Serial", wechatpaysim.MerchantSerial}, {"private_key", "Merchant's key", keys + wechatpaysim.MerchantKeyFile},
				{"apiv3_key", "APIv3 key", wechatpaysim.APIv3Key}, {"public_key_id", "Public key id", wechatpaysim.PublicKeyID},
				{"public_key", "Public key", keys + wechatpaysim.PublicKeyFile}, {"certificate", "Certificate", keys + wechatpaysim.CertificateFile},
			}
		}}, nil
	}
}
