package main

import (
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
	"github.com/spf13/pflag"
)

// gatewayFlags say which gateways there are and how they are reached. There
// is no flag for a secret itself: every user of a machine can read the command
// lines of all its processes.
type gatewayFlags struct {
	stripeKeyFile, stripeWebhookFile, stripeBaseURL string

	alipay    *alipayFlags
	wechatpay wechatpayFlags
}

func (h *host) gatewayFlags(f *pflag.FlagSet) *gatewayFlags {
	g := &gatewayFlags{alipay: h.alipayFlags(f)}
	f.StringVar(&g.stripeKeyFile, "stripe-secret-key-file", "", "`file` with Stripe's secret key; HOLDFAST_STRIPE_SECRET_KEY or ..._FILE")
	f.StringVar(&g.stripeWebhookFile, "stripe-webhook-secrets-file", "", "`file` with the webhook's signing secrets, by commas; HOLDFAST_STRIPE_WEBHOOK_SECRETS or ..._FILE")
	f.StringVar(&g.stripeBaseURL, "stripe-base-url", h.or("HOLDFAST_STRIPE_BASE_URL", ""), "`address` of Stripe's API if it is not the real one; HOLDFAST_STRIPE_BASE_URL")
	g.wechatpay.add(h, f)
	return g
}

// gateways is the one list of gateways. One that has no key is left out.
func (h *host) gateways(f *gatewayFlags) (map[string]gateway.Gateway, error) {
	list := map[string]gateway.Gateway{}
	s, err := h.stripe(f)
	if err != nil {
		return nil, err
	}
	if s != nil {
		list["stripe"] = s
	}
	w, err := h.wechatpay(f.wechatpay)
	if err != nil {
		return nil, err
	}
	if w != nil {
		list["wechatpay"] = w
	}
	a, err := h.alipay(f.alipay)
	if err != nil {
		return nil, err
	}
	if a != nil {
		list["alipay"] = a
	}
	return list, nil
}

func (h *host) stripe(f *gatewayFlags) (*stripe.Gateway, error) {
	key, err := h.secret("HOLDFAST_STRIPE_SECRET_KEY", f.stripeKeyFile)
	if err != nil {
		return nil, err
	}
	signing, err := h.secret("HOLDFAST_STRIPE_WEBHOOK_SECRETS", f.stripeWebhookFile)
	if err != nil {
		return nil, err
	}
	if key == "" && signing == "" {
		return nil, nil
	}
	return stripe.New(stripe.Options{SecretKey: key, WebhookSecrets: fields(signing), BaseURL: f.stripeBaseURL})
}
