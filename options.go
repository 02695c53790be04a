package holdfast

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/sqlstore"
)

// Options are everything that Open can be told. The zero value works.
type Options struct {
	// Gateways take the money, by the name that requests and webhooks use.
	Gateways map[string]gateway.Gateway
	// Preset is how entries reach the store: "batched" (the default) commits
	// everything that waits in one transaction; "conditional", "optimistic",
	// "pessimistic" and "lockrow" give each entry its own and differ in how they
	// lock; "gated" counts in front of conditional what may still be taken, so that
	// what is sold out never reaches the store; "queued" puts a first-come-first-served queue
	// between such a gate and group commit.
	Preset string
	// Redis lets many processes on one store share the counter of "gated" and the
	// queue of "queued": redis://USER:PASSWORD@HOST:PORT, or any node of a Redis
	// Cluster. It holds no truth: what is lost there costs speed only. "" = each
	// process has its own. The other presets have nothing to keep there.
	Redis string
	// HoldFor is how long an order holds its stock before it is paid, unless the
	// item or the order says otherwise. 0 = 15 minutes.
	HoldFor time.Duration
	// PayFor is how long a payment attempt may take, from its start. The hold is
	// extended to the attempt's end. 0 = 15 minutes.
	PayFor time.Duration
	// Pin is how long an order may hold its stock in all, however often it is
	// extended, and however long a gateway can't be reached. 0 = 24 hours.
	Pin time.Duration
	// Poll is how often a gateway is asked about an open payment or refund when
	// it sends no notification. 0 = 30 seconds.
	Poll time.Duration
	// CallFor is how long one call to a gateway may take. Twice as long after a
	// process died in a call, another one takes the task over. 0 = 20 seconds.
	CallFor time.Duration
	// Sweep is how often overdue orders and tasks are looked for. 0 = 1 second.
	Sweep time.Duration
	// Workers is how many tasks run at once. 0 = 32: they mostly wait.
	Workers int
	// Sealer keeps the signing secrets of webhook endpoints. nil = no endpoint can
	// be made, and none is delivered to.
	Sealer Sealer
	// PrivateEndpoints lets webhook endpoints be on this machine and in private
	// networks, on any port, and without TLS: for tests and demos. Link-local
	// addresses and the metadata services of clouds are refused all the same.
	PrivateEndpoints bool
	// Passive starts no background work: this process only answers. Another one
	// on the same store has to run tasks and expire orders.
	Passive bool
	// Clock is where time comes from. nil = the database's, where it has one of its
	// own, and time.Now for what only this process sees.
	Clock func() time.Time
	// Logger receives what a person may have to act on. nil = discarded.
	Logger *slog.Logger
	// AllowUnsafeDurability lets a store run that may lose what it acknowledged.
	AllowUnsafeDurability bool
}

// Bounds of a hold, for orders and items.
const (
	MinHold = 30 * time.Second
	MaxHold = 24 * time.Hour
)

// presets are the compositions of design: a locking strategy, and the stages
// around the store, from the inside out.
var presets = map[string]preset{
	"batched":     {strategy: sqlstore.Conditional, batch: true},
	"conditional": {strategy: sqlstore.Conditional},
	"optimistic":  {strategy: sqlstore.Optimistic},
	"pessimistic": {strategy: sqlstore.Pessimistic},
	"lockrow":     {strategy: sqlstore.LockRow},
	"gated":       {strategy: sqlstore.Conditional, gate: true},
	"queued":      {strategy: sqlstore.Conditional, batch: true, queue: true, gate: true},
}

type preset struct {
	strategy           sqlstore.Strategy
	batch, queue, gate bool
}

// complete fills in the defaults and refuses what can't be meant.
func (o Options) complete() (Options, error) {
	if o.Preset == "" {
		o.Preset = "batched"
	}
	if _, ok := presets[o.Preset]; !ok {
		return o, fmt.Errorf("holdfast: unknown preset %q", o.Preset)
	}
	if o.Redis != "" && !presets[o.Preset].gate {
		return o, fmt.Errorf("holdfast: preset %q keeps nothing in Redis; gated and queued do", o.Preset)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"HoldFor", &o.HoldFor, 15 * time.Minute},
		{"PayFor", &o.PayFor, 15 * time.Minute},
		{"Pin", &o.Pin, 24 * time.Hour},
		{"Poll", &o.Poll, 30 * time.Second},
		{"CallFor", &o.CallFor, 20 * time.Second},
		{"Sweep", &o.Sweep, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
		if *d.value < 0 {
			return o, fmt.Errorf("holdfast: %s is negative", d.name)
		}
	}
	if o.Pin < o.HoldFor {
		return o, fmt.Errorf("holdfast: Pin %v is shorter than HoldFor %v", o.Pin, o.HoldFor)
	}
	if o.Workers == 0 {
		o.Workers = 32
	}
	if o.Workers < 0 {
		return o, fmt.Errorf("holdfast: %d workers", o.Workers)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
