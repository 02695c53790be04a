package main

import (
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/spf13/pflag"
)

// troubledAlipay is Alipay on a bad day.
var troubledAlipay = alipaysim.Faults{
	DelayNotice: 300 * time.Millisecond, LoseNotice: 0.1, DuplicateNotice: 0.2, ReorderNotice: 0.1, ForgeNotice: 0.1, GBKNotice: 0.1,
	LostAnswer: 0.05, Unavailable: 0.05, SystemError: 0.04, Unsigned: 0.03, ForgedAnswer: 0.03, Recoded: 0.03,
	SlowAnswer: 100 * time.Millisecond, PaidBeforeClose: 0.3, RefundLag: time.Second,
	LostRequest: 0.03, LateTransfer: 0.05, TransferPending: 0.2, TransferFails: 0.1, TransferReturned: 0.05,
}

// alipayStand serves Alipay with the sandbox's own keys, which it gives to
// everybody who asks for them.
func alipayStand(f *pflag.FlagSet) opener {
	var cfg alipaysim.Config
	addr := f.String("alipay-addr", "127.0.0.1:12112", "the loopback `address` of Alipay; empty = none")
	f.StringVar(&cfg.AppID, "alipay-app-id", alipaysim.DefaultAppID, "the app's `number` that Alipay accepts")
	f.StringVar(&cfg.SellerID, "alipay-seller-id", alipaysim.DefaultSellerID, "the merchant's `number` that Alipay knows")
	f.StringVar(&cfg.AppURL, "alipay-app-url", "", "`address` of the app, where Alipay sends messages about transfers; empty = none are sent")
	certified := f.Bool("alipay-certificates", false, "Alipay and the app know each other by certificates, without which it pays out nothing")
	return func(seed uint64, faults bool) (stand, error) {
		cfg.Seed = seed
		if *certified {
			cfg.Certificates = alipaysim.DefaultCertificates()
		}
		sim, err := alipaysim.New(cfg)
		if err != nil {
			return stand{}, err
		}
		if faults {
			sim.SetFaults(troubledAlipay)
		}
		return stand{"alipay", *addr, sim, func(url string) []detail {
			all := []detail{
				{"api", "API", url + "/gateway.do"}, {"page", "Page", url + "/_sim/"},
				{"app_id", "App", cfg.AppID}, {"seller_id", "Seller", cfg.SellerID},
				{"private_key", "App's key", url + "/_sim/app.key.pem"},
			}
			if !*certified {
				return append(all, detail{"public_key", "Alipay's key", url + "/_sim/alipay.pub.pem"})
			}
			return append(all, detail{"app_cert", "App's certificate", url + "/_sim/app.cert.pem"},
				detail{"root_cert", "Root", url + "/_sim/root.cert.pem"}, detail{"alipay_cert", "Alipay's", url + "/_sim/alipay.cert.pem"})
		}}, nil
	}
}
