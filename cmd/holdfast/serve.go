package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/metrics"
	"github.com/holdfast-pay/holdfast/httpapi"
	"github.com/holdfast-pay/holdfast/internal/web"
	"github.com/spf13/cobra"
)

// serving is how serve was asked to run.
type serving struct {
	db, addr string
	url      string // where browsers reach it
	shop     bool
	open     bool
	hosts    []string
	returns  []string
	proxies  httpapi.Proxies
	core     holdfast.Options
	gateways *gatewayFlags
}

func (h *host) serveCommand() *cobra.Command {
	s := &serving{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API and do the work behind it",
		Long: "Serve the HTTP API and do the work behind it: expire holds, call gateways, take their notifications.\n" +
			"SIGTERM or SIGINT ends it within 25 seconds and loses nothing; a second one ends it at once and loses nothing either.",
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	db := h.storeFlag(c)
	f.StringVar(&s.addr, "addr", h.or("HOLDFAST_ADDR", "127.0.0.1:8080"), "the `address` to listen on; HOLDFAST_ADDR")
	f.StringVar(&s.url, "url", h.or("HOLDFAST_URL", ""), "the `address` at which browsers reach this server, to which gateways send buyers back; none = that of a loopback --addr; HOLDFAST_URL")
	f.BoolVar(&s.shop, "shop", false, "serve a shop for everybody under /shop/, and its cashier under /pay/")
	f.BoolVar(&s.open, "open", false, "ask nobody for an API key; only on a loopback address")
	f.StringSliceVar(&s.hosts, "host", nil, "a `name` under which the API may be called; may be repeated; none = any")
	f.StringSliceVar(&s.returns, "return-url", nil, "an `origin` to which buyers may be sent back; may be repeated; none = any over https")
	proxies := f.StringSlice("trusted-proxies", nil, "the `networks` of reverse proxies, such as 10.0.0.0/8, whose X-Forwarded-For says who the client is; none = nobody's")
	f.StringVar(&s.core.Preset, "preset", "batched", "how the store is written: batched, conditional, optimistic, pessimistic, lockrow, gated or queued")
	f.StringVar(&s.core.Redis, "redis", "", "a Redis, redis://HOST:PORT, in which the gated and queued of many processes count and queue together; HOLDFAST_REDIS")
	s.core.Redis = h.or("HOLDFAST_REDIS", "") // not as the default that --help shows
	f.DurationVar(&s.core.HoldFor, "hold-for", 15*time.Minute, "how long an unpaid order holds its stock, unless its item says otherwise")
	f.DurationVar(&s.core.PayFor, "pay-for", 15*time.Minute, "how long a payment attempt may take")
	f.DurationVar(&s.core.Poll, "poll", 30*time.Second, "how often a gateway that sends nothing is asked")
	f.DurationVar(&s.core.CallFor, "call-for", 20*time.Second, "how long one call to a gateway may take; after twice as long the tasks of a process that died are taken over")
	f.BoolVar(&s.core.PrivateEndpoints, "private-endpoints", false, "let webhook endpoints be on this machine and in private networks, on any port, and without TLS")
	f.BoolVar(&s.core.AllowUnsafeDurability, "allow-unsafe-durability", false, "run on a store that may lose what it acknowledged")
	s.gateways = h.gatewayFlags(f)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if s.open && !loopback(s.addr) {
			return usagef("--open is for a loopback address, and %s is none", s.addr)
		}
		if s.url != "" && !siteURL(s.url) {
			return usagef("--url is not of the form https://shop.example")
		}
		var err error
		if s.proxies, err = httpapi.ParseProxies(*proxies); err != nil {
			return usagef("--trusted-proxies: %v", err)
		}
		s.db = *db
		return h.serve(c.Context(), s)
	}
	return c
}

func (h *host) serve(ctx context.Context, s *serving) error {
	log := h.logger()
	list, err := h.gateways(s.gateways)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		log.Warn("no gateway is configured: orders can be held, not paid")
	}
	s.core.Gateways, s.core.Logger = list, log
	if s.core.Sealer, err = h.sealer(); err != nil {
		return err
	}
	l, err := listen(ctx, s.addr)
	if err != nil {
		return err
	}
	defer l.Close()
	core, err := holdfast.Open(ctx, s.db, s.core)
	if err != nil {
		return err
	}
	return errors.Join(h.serveStore(ctx, s, core, l, log), closeStore(ctx, core))
}

func (h *host) serveStore(ctx context.Context, s *serving, core *holdfast.Holdfast, l net.Listener, log *slog.Logger) error {
	keys, err := core.Keys(ctx)
	if err != nil {
		return err
	}
	figures := metrics.New(core, version().Version)
	if s.url == "" && loopback(s.addr) {
		s.url = address(l)
	}
	api := faces(core, httpapi.Options{
		Version: version().Version, Open: s.open, Hosts: s.hosts, ReturnURLs: s.returns, Logger: log, Metrics: figures.Handler(),
	}, web.Options{URL: s.url, Shop: s.shop, Admin: true})
	token, err := core.FirstRun(ctx)
	if err != nil {
		return err
	}
	if err := h.announce(s, l, len(keys) == 0 && !s.open, token); err != nil {
		return err
	}
	defer log.Info("stopped")
	return serveHTTP(ctx, l, httpapi.Server(s.proxies.Behind(figures.Watch(api)), log), func() {
		log.Info("stopping", "within", requestsFor+closeFor)
		api.Drain()
	})
}

// siteURL says whether s is the address of a whole site: no path, no rest.
func siteURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && s == u.Scheme+"://"+u.Host
}

// announce says where everything is. With the token, the first person can be added
// who may sign in to the console; "" = there has been somebody.
func (h *host) announce(s *serving, l net.Listener, keyless bool, token string) error {
	at := address(l)
	answer := struct {
		API      string `json:"api"`
		Docs     string `json:"docs"`
		Shop     string `json:"shop,omitempty"`
		Console  string `json:"console"`
		FirstRun string `json:"first_run_token,omitempty"`
		Webhooks string `json:"webhooks"`
		Store    string `json:"store"`
		Keyless  bool   `json:"keyless,omitempty"` // there is no API key yet
	}{at + "/v1", at + "/docs", "", at + "/admin/", token, at + "/webhooks/", shown(s.db), keyless}
	if s.shop {
		answer.Shop = at + "/shop/"
	}
	return h.show(answer, func(w io.Writer) {
		fmt.Fprintf(w, "API       %s\nDocs      %s\nWebhooks  %s{gateway}\nStore     %s\n", answer.API, answer.Docs, answer.Webhooks, answer.Store)
		if answer.Shop != "" {
			fmt.Fprintf(w, "Shop      %s\n", answer.Shop)
		}
		fmt.Fprintf(w, "Console   %s\n", answer.Console)
		if token != "" {
			fmt.Fprintf(w, "Nobody can sign in to the console yet. Add the first person there within an hour, with this token: %s\n", token)
		}
		if keyless {
			fmt.Fprintf(w, "There is no API key yet. Make one with: holdfast keys create --db %s --name first --scope admin\n", answer.Store)
		}
	})
}
