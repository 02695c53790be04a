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
}

// alipayStand serves Alipay with the sandbox's own keys, which it gives to
// everybody who asks for them.
func alipayStand(f *pflag.FlagSet) opener {
	var cfg alipaysim.Config
	addr := f.String("alipay-addr", "127.0.0.1:12112", "the loopback `address` of Alipay; empty = none")
	f.StringVar(&cfg.AppID, "alipay-app-id", alipaysim.DefaultAppID, "the app's `number` that Alipay accepts")
	f.StringVar(&cfg.SellerID, "alipay-seller-id", alipaysim.DefaultSellerID, "the merchant's `number` that Alipay knows")
	return func(seed uint64, faults bool) (stand, error) {
		cfg.Seed = seed
		sim, err := alipaysim.New(cfg)
		if err != nil {
			return stand{}, err
		}
		if faults {
			sim.SetFaults(troubledAlipay)
		}
		return stand{"alipay", *addr, sim, func(url string) []detail {
			return []detail{
				{"api", "API", url + "/gateway.do"}, {"page", "Page", url + "/_sim/"},
				{"app_id", "App", cfg.AppID}, {"seller_id", "Seller", cfg.SellerID},
				{"private_key", "App's key", url + "/_sim/app.key.pem"}, {"public_key", "Alipay's key", url + "/_sim/alipay.pub.pem"},
			}
		}}, nil
	}
}
