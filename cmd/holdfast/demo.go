package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/flashsale"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

// Bounds of a demo.
const (
	maxBuyers   = 100_000
	saleFor     = 45 * time.Second // how long buyers wait for pieces that may come back
	settleFor   = 45 * time.Second // how long everything that is under way may take to end
	settleEvery = 200 * time.Millisecond
)

// demo is how a demo was asked to run.
type demo struct {
	buyers, stock int
	seed          uint64
	faults        string
	gateway       string
	db, addr      string
	redis         string
	once          bool
}

func (h *host) demoCommand() *cobra.Command {
	d := &demo{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a flash sale against troubled gateways and audit it",
		Long: `Run a flash sale through the real HTTP API: far more buyers than pieces, a good
part of whom misbehave, and simulated gateways that lose answers, send their
notices late, twice, reordered or forged, and fail. Then recompute from the
journal and from the gateways' books whether every promise was kept.

The clock of the shop and the gateways goes 30 times as fast as yours meanwhile.

It needs nothing but this program, and stays up afterwards to be looked at,
unless --once is given.`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.IntVar(&d.buyers, "buyers", 2000, "how many buyers come")
	f.IntVar(&d.stock, "stock", 100, "how many pieces there are")
	f.Uint64Var(&d.seed, "seed", 0, "what every random choice is made from; 0 = another one each time")
	f.StringVar(&d.faults, "faults", "on", "on or off")
	f.StringVar(&d.gateway, "gateway", mixed, "alipay, wechatpay, stripe, or mixed: each buyer takes one of the three, and some change their mind")
	f.StringVar(&d.db, "db", "", "an empty `store` to use and to keep; none = a temporary one")
	f.StringVar(&d.redis, "redis", "", "let buyers queue in this Redis, redis://HOST:PORT; none = they don't queue")
	f.StringVar(&d.addr, "addr", "127.0.0.1:0", "the loopback `address` of the API; port 0 = a free one")
	f.BoolVar(&d.once, "once", false, "end after the audit; exit status 1 if a promise was broken")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := d.check(); err != nil {
			return err
		}
		return h.demo(c.Context(), d)
	}
	return c
}

func (d *demo) check() error {
	if d.buyers < 1 || d.buyers > maxBuyers {
		return usagef("--buyers is not within 1 to %d", maxBuyers)
	}
	if d.stock < 1 || d.stock > maxBuyers {
		return usagef("--stock is not within 1 to %d", maxBuyers)
	}
	if d.faults != "on" && d.faults != "off" {
		return usagef("--faults is neither on nor off")
	}
	if boothNames(d.gateway) == nil {
		return usagef("--gateway is not alipay, wechatpay, stripe or mixed")
	}
	if !loopback(d.addr) {
		return usagef("a demo is for a loopback address, and %s is none", d.addr)
	}
	return nil
}

func (h *host) demo(ctx context.Context, d *demo) error {
	if d.seed == 0 {
		d.seed = rand.Uint64N(1 << 32)
	}
	if d.db == "" {
		dir, err := os.MkdirTemp("", "holdfast-demo-")
		if err != nil {
			return fmt.Errorf("make a temporary store: %w", err)
		}
		defer os.RemoveAll(dir)
		d.db = "sqlite:" + filepath.Join(dir, "demo.db")
	}
	shop, err := openShop(ctx, d)
	if err != nil {
		return err
	}
	return errors.Join(h.flashSale(ctx, d, shop), shop.close(ctx))
}

// flashSale runs the sale, waits until all is quiet, audits and tells.
func (h *host) flashSale(ctx context.Context, d *demo, s *shop) error {
	crowd := flashsale.Crowd(d.seed, d.buyers, s.skus, s.ways())
	b := h.progress("flash sale", int64(d.buyers))
	seen := flashsale.Run(ctx, flashsale.Sale{
		API: s.api, Key: s.key, Seed: d.seed, Crowd: crowd, Limit: saleFor, Served: b.set,
		Until: s.clock.until,
	})
	b.end()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("demo: %w", context.Cause(ctx))
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	res, problems, err := h.result(ctx, d, s, crowd, seen)
	if err != nil {
		return err
	}
	if err := h.show(res, func(w io.Writer) {
		showDemo(w, res)
		fmt.Fprintf(w, "The same again: holdfast demo --gateway %s --buyers %d --stock %d --seed %d\n", d.gateway, d.buyers, d.stock, d.seed)
	}); err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(h.err, "problem:", p)
	}
	if !d.once {
		if err := s.reopen(ctx); err != nil {
			return err
		}
		if !h.json {
			token, err := s.core.FirstRun(ctx)
			if err != nil {
				return err
			}
			fmt.Fprint(h.out, s.invitation(d))
			fmt.Fprintf(h.out, "The console is at %s/admin/ ; add yourself there with this token: %s\n", s.api, token)
		}
		<-ctx.Done()
		return nil
	}
	if len(problems) > 0 {
		return fmt.Errorf("demo with seed %d: %d problems", d.seed, len(problems))
	}
	return nil
}

// result is what --json prints. Pieces: stock, sold, oversold, undersold;
// orders: double_charged, paid_without_goods, refunded; the rest says it.
type result struct {
	Buyers           int     `json:"buyers"`
	Stock            int     `json:"stock"`
	Sold             int64   `json:"sold"`
	Oversold         int64   `json:"oversold"`
	Undersold        int64   `json:"undersold"`
	DoubleCharged    int64   `json:"double_charged"`
	PaidWithoutGoods int64   `json:"paid_without_goods"`
	Stuck            int64   `json:"stuck"`
	Refunded         int64   `json:"refunded"`
	Rejected         int64   `json:"rejected"` // orders answered with sold_out
	RequestsPerS     float64 `json:"requests_per_s"`
	HoldP50          float64 `json:"hold_p50_ms"`
	HoldP99          float64 `json:"hold_p99_ms"`
	VerifyOK         bool    `json:"verify_ok"` // Verify, and the gateways' books agree with the clearing accounts
	Seed             uint64  `json:"seed"`
}

// result audits. Only rejected, requests_per_s and the times are the crowd's
// word; all else is recomputed.
func (h *host) result(ctx context.Context, d *demo, s *shop, crowd []flashsale.Buyer, seen flashsale.Outcome) (result, []string, error) {
	v, err := s.audit(ctx, crowd)
	if err != nil {
		return result{}, nil, err
	}
	rep, err := h.verify(ctx, s.core)
	if err != nil {
		return result{}, nil, err
	}
	problems := append(v.Problems, seen.Broken...)
	for _, p := range rep.Problems {
		problems = append(problems, fmt.Sprintf("journal line %d: %s: %s", p.Seq, p.What, p.Detail))
	}
	return result{
		Buyers: d.buyers, Stock: d.stock, Sold: v.Sold, Oversold: v.Oversold, Undersold: v.Undersold,
		DoubleCharged: v.DoubleCharged, PaidWithoutGoods: v.PaidWithoutGoods, Stuck: v.Stuck, Refunded: v.Refunded,
		Rejected: seen.Rejected, RequestsPerS: tenth(float64(seen.Requests) / seen.Elapsed.Seconds()),
		HoldP50: milliseconds(seen.Quantile(0.5)), HoldP99: milliseconds(seen.Quantile(0.99)),
		VerifyOK: rep.OK() && v.Disagreements == 0, Seed: d.seed,
	}, problems, nil
}

func tenth(f float64) float64 { return float64(int64(f*10+0.5)) / 10 }

func milliseconds(d time.Duration) float64 { return tenth(float64(d.Microseconds()) / 1000) }

func showDemo(w io.Writer, r result) {
	verified := "yes"
	if !r.VerifyOK {
		verified = "NO"
	}
	rows(w, table.Row{"what happened", ""},
		table.Row{"buyers", r.Buyers},
		table.Row{"pieces in stock", r.Stock},
		table.Row{"pieces sold", r.Sold},
		table.Row{"oversold", r.Oversold},
		table.Row{"undersold", r.Undersold},
		table.Row{"charged twice", r.DoubleCharged},
		table.Row{"paid and got nothing", r.PaidWithoutGoods},
		table.Row{"stuck", r.Stuck},
		table.Row{"late money sent back", r.Refunded},
		table.Row{"told sold out", r.Rejected},
		table.Row{"requests a second", r.RequestsPerS},
		table.Row{"held within, half of them", fmt.Sprintf("%.1f ms", r.HoldP50)},
		table.Row{"held within, 99 of 100", fmt.Sprintf("%.1f ms", r.HoldP99)},
		table.Row{"journal and gateways agree", verified},
	)
}

// invitation says what can be looked at while the demo stays up.
func (s *shop) invitation(d *demo) string {
	curl := fmt.Sprintf("curl -s -H 'Authorization: Bearer %s'", s.key)
	lines := []string{"", "Shop               " + s.api + "/shop/", "API docs           " + s.api + "/docs"}
	for _, b := range s.booths {
		lines = append(lines, fmt.Sprintf("%-18s %s/_sim/", "Gateway "+b.name, b.url))
	}
	first := s.booths[0].ways[0]
	return strings.Join(append(lines,
		"Store              "+d.db,
		"",
		"Why is what is there?  "+curl+" '"+s.api+"/v1/items/"+s.skus[0]+"/stock/explain'",
		"The last orders        "+curl+" '"+s.api+"/v1/orders?limit=3'",
		"What happened, live    "+curl+" -N "+s.api+"/v1/events",
		"Order a mug            "+curl+" -H 'Content-Type: application/json' -H \"Idempotency-Key: try-$(date +%s)-mug-order\" \\",
		"                         -d '{\"lines\":[{\"sku\":\""+tryItem+"\",\"quantity\":1}]}' "+s.api+"/v1/orders",
		"Pay for it (its ID),   "+curl+" -H 'Content-Type: application/json' -H \"Idempotency-Key: try-$(date +%s)-mug-money\" \\",
		"then open its \"url\"     -d '{\"gateway\":\""+first.Gateway+"\",\"return_url\":\""+s.api+"/docs\"}' "+s.api+"/v1/orders/ID/payments",
		"",
		"Ctrl-C ends it.",
		"",
	), "\n")
}
