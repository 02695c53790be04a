package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// opener makes a simulator; faults: its dial begins turned up.
type opener func(seed uint64, faults bool) (stand, error)

// stand is the place of one simulator in the sandbox.
type stand struct {
	name    string // the gateway's
	addr    string // to listen on; empty = not served
	sim     simulated
	details func(url string) []detail // what its user must know
}

// simulated is a simulator: it is called, and it sends notifications.
type simulated interface {
	http.Handler
	Run(ctx context.Context)
}

// detail is one thing to know about a simulator: key in JSON, title for people.
type detail struct{ key, title, value string }

func (h *host) sandboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sandbox",
		Short: "Serve simulated gateways with a dial for faults",
		Long: "Serve simulated gateways that keep their books, send signed notifications and, by a dial, go wrong.\n" +
			"Point holdfast serve at them with its base URLs, or any client of theirs. No money moves.",
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	openers := []opener{stripeStand(f), alipayStand(f), wechatpayStand(f)}
	seed := f.Uint64("seed", 1, "what every random choice is made from")
	faults := f.Bool("faults", false, "begin with the dials turned up as the demo does")
	c.RunE = func(c *cobra.Command, _ []string) error {
		stands := make([]stand, len(openers))
		for i, open := range openers {
			var err error
			if stands[i], err = open(*seed, *faults); err != nil {
				return err
			}
			if addr := stands[i].addr; addr != "" && !loopback(addr) {
				return usagef("the sandbox asks nobody for a password, so it is for a loopback address, and %s is none", addr)
			}
		}
		return h.sandbox(c.Context(), stands)
	}
	return c
}

// sandboxBalance is what the sandbox's Stripe account can pay out at first, in
// cents of each currency.
const sandboxBalance = 1_000_000

func stripeStand(f *pflag.FlagSet) opener {
	cfg := stripesim.Config{}
	addr := f.String("addr", "127.0.0.1:12111", "the loopback `address` of Stripe; empty = none")
	f.StringVar(&cfg.WebhookURL, "webhook-url", "http://127.0.0.1:8080/webhooks/stripe", "`address` of Stripe's webhook; empty = none is sent")
	f.StringVar(&cfg.SecretKey, "secret-key", stripesim.DefaultSecretKey, "the API `key` that Stripe accepts")
	f.StringSliceVar(&cfg.WebhookSecrets, "webhook-secret", []string{stripesim.DefaultWebhookSecret}, "a `secret` that signs Stripe's webhooks; may be repeated")
	return func(seed uint64, faults bool) (stand, error) {
		cfg.Seed = seed
		sim := stripesim.New(cfg)
		for _, currency := range []string{"cny", "eur", "usd"} {
			if err := sim.TopUp(sandboxBalance, currency); err != nil {
				return stand{}, err
			}
		}
		if faults {
			sim.SetFaults(troubled)
		}
		return stand{"stripe", *addr, sim, func(url string) []detail {
			return []detail{
				{"api", "API", url}, {"page", "Page", url + "/_sim/"}, {"secret_key", "Key", cfg.SecretKey},
				{"webhook_url", "Webhooks", cfg.WebhookURL}, {"webhook_secrets", "Signed with", strings.Join(cfg.WebhookSecrets, ",")},
			}
		}}, nil
	}
}

// sandbox serves all stands until ctx ends or one of them fails.
func (h *host) sandbox(ctx context.Context, stands []stand) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answer, text := map[string]map[string]string{}, ""
	var serving []func() error
	for _, s := range stands {
		if s.addr == "" {
			continue
		}
		l, err := listen(ctx, s.addr)
		if err != nil {
			return err
		}
		defer l.Close()
		answer[s.name] = map[string]string{}
		text += s.name + "\n"
		for _, d := range s.details(address(l)) {
			answer[s.name][d.key] = d.value
			text += fmt.Sprintf("  %-14s %s\n", d.title, d.value)
		}
		serving = append(serving, func() error { return serveSim(ctx, l, s.sim) })
	}
	if err := h.show(answer, func(w io.Writer) { fmt.Fprint(w, text) }); err != nil {
		return err
	}
	var running sync.WaitGroup
	ended := make([]error, len(serving))
	for i, serve := range serving {
		running.Go(func() {
			ended[i] = serve()
			stop()
		})
	}
	running.Wait()
	return errors.Join(ended...)
}

// serveSim serves one simulator and lets it send, until ctx ends.
func serveSim(ctx context.Context, l net.Listener, sim simulated) error {
	ctx, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { sim.Run(ctx) })
	defer sending.Wait()
	defer stop()
	return serveHTTP(ctx, l, simServer(sim), func() {})
}

// simServer bounds what a client can make the simulator wait for.
func simServer(sim http.Handler) *http.Server {
	return &http.Server{Handler: sim, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
}
