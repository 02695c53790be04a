package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/spf13/cobra"
)

func (h *host) sandboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sandbox",
		Short: "Serve a simulated Stripe with a dial for faults",
		Long: "Serve a simulated Stripe that keeps its books, sends signed webhooks and, by a dial, goes wrong.\n" +
			"Point holdfast serve at it with HOLDFAST_STRIPE_BASE_URL, or any Stripe SDK. No money moves.",
		Args: cobra.NoArgs,
	}
	var cfg stripesim.Config
	f := c.Flags()
	addr := f.String("addr", "127.0.0.1:12111", "the loopback `address` to listen on")
	f.StringVar(&cfg.WebhookURL, "webhook-url", "http://127.0.0.1:8080/webhooks/stripe", "`address` of the webhook; empty = none is sent")
	f.StringVar(&cfg.SecretKey, "secret-key", stripesim.DefaultSecretKey, "the API `key` that it accepts")
	f.StringSliceVar(&cfg.WebhookSecrets, "webhook-secret", []string{stripesim.DefaultWebhookSecret}, "a `secret` that signs webhooks; may be repeated")
	f.Uint64Var(&cfg.Seed, "seed", 1, "what every random choice is made from")
	faults := f.Bool("faults", false, "begin with the dial turned up as the demo does")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !loopback(*addr) {
			return usagef("the sandbox asks nobody for a password, so it is for a loopback address, and %s is none", *addr)
		}
		sim := stripesim.New(cfg)
		if *faults {
			sim.SetFaults(troubled)
		}
		return h.sandbox(c.Context(), *addr, sim, cfg)
	}
	return c
}

func (h *host) sandbox(ctx context.Context, addr string, sim *stripesim.Sim, cfg stripesim.Config) error {
	l, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	defer l.Close()
	url := address(l)
	answer := struct {
		API           string   `json:"api"`
		Page          string   `json:"page"`
		SecretKey     string   `json:"secret_key"`
		WebhookURL    string   `json:"webhook_url"`
		WebhookSecret []string `json:"webhook_secrets"`
	}{url, url + "/_sim/", cfg.SecretKey, cfg.WebhookURL, cfg.WebhookSecrets}
	err = h.show(answer, func(w io.Writer) {
		fmt.Fprintf(w, "API        %s\nPage       %s\nKey        %s\nWebhooks   %s, signed with %s\n",
			answer.API, answer.Page, answer.SecretKey, answer.WebhookURL, strings.Join(answer.WebhookSecret, " and "))
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { sim.Run(ctx) })
	defer sending.Wait()
	defer stop()
	return serveHTTP(ctx, l, simServer(sim), func() {})
}

// simServer bounds what a client can make the simulator wait for.
func simServer(sim *stripesim.Sim) *http.Server {
	return &http.Server{Handler: sim, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
}
