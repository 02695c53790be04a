package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

var (
	crashRounds = flag.Int("crash.rounds", 3, "how often TestAKilledServerLosesNothing kills the server")
	crashSeed   = flag.Uint64("crash.seed", 1, "what its random choices are made from")
)

const (
	crashClients = 8
	crashRest    = time.Minute // for everything that is under way to end, after the last round
	crashPoll    = 100 * time.Millisecond
)

// troubledALittle is a gateway that lets most things through.
var troubledALittle = stripesim.Faults{
	DelayNotice: 200 * time.Millisecond, LoseNotice: 0.1, DuplicateNotice: 0.1, ForgeNotice: 0.05, TwoEvents: 0.1,
	LostAnswer: 0.03, Unavailable: 0.03, PaidBeforeClose: 0.2,
}

// The server is killed at random instants under load. Whatever it has
// acknowledged must be there afterwards, byte for byte; whatever it had not,
// is found out by asking again under the same key; and in the end every order
// is final, and the books agree with the gateway's.
func TestAKilledServerLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	luck := rand.New(rand.NewPCG(*crashSeed, 0))
	url := newStore(t)
	key := stockAndKey(t, url)
	sim := stripesim.New(stripesim.Config{Seed: *crashSeed})
	sim.SetFaults(troubledALittle)
	gate := httptest.NewServer(sim)
	defer gate.Close()
	addr := freeAddress(t)
	sim.SetWebhookURL("http://" + addr + "/webhooks/stripe")
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { sim.Run(ctx) })
	defer sending.Wait()
	defer stop()

	env := gatewayEnv(gate.URL)
	args := []string{"--db", url, "--addr", addr, "--hold-for", "2s", "--pay-for", "3s", "--poll", "500ms", "--call-for", "2s"}
	var all []*shopper
	p := start(t, env, args...)
	for round := range *crashRounds {
		shoppers := crowd(luck, p.url, key, round, sim)
		shopUntilKilled(ctx, p, shoppers, int64(10+luck.IntN(150)))
		p = start(t, env, args...)
		for _, s := range shoppers {
			s.settle(t)
		}
		all = append(all, shoppers...)
	}
	for _, s := range all {
		s.replay(t)
	}
	requests, unknown := count(all)
	t.Logf("%d kills, %d requests, %d of them unanswered when the server died", *crashRounds, requests, unknown)
	if unknown == 0 {
		t.Error("no request was under way at any kill: the test has shown nothing")
	}
	awaitRest(t, p, key)
	p.signal(t, syscall.SIGTERM)
	if got := p.ended(); got.ExitStatus() != exitOK {
		t.Errorf("the last server ended with %v, want exit status 0", got)
	}
	auditAfterCrashes(t, url, sim, all)
}

func count(all []*shopper) (requests, unknown int) {
	for _, s := range all {
		requests += len(s.asked)
		unknown += s.unknown
	}
	return requests, unknown
}

func stockAndKey(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stock.csv")
	// The second one runs out.
	text := "sku,name,price,currency,quantity\nmuch,Much,10.00,EUR,1000000\nlittle,Little,20.00,EUR,15\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var done imported
	must(t, &done, "stock", "import", path, "--db", url)
	var made struct{ Key string }
	must(t, &made, "keys", "create", "--name", "crash", "--db", url)
	return made.Key
}

// freeAddress is one that every server of the test can have, one after another.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func crowd(luck *rand.Rand, url, key string, round int, sim *stripesim.Sim) []*shopper {
	list := make([]*shopper, crashClients)
	for i := range list {
		list[i] = &shopper{
			url: url, key: key, name: shopperName(*crashSeed, round, i), sim: sim,
			luck: rand.New(rand.NewPCG(luck.Uint64(), 0)),
		}
	}
	return list
}

// shopUntilKilled lets everybody shop and kills the server after so many answers.
func shopUntilKilled(ctx context.Context, p *process, shoppers []*shopper, answers int64) {
	shopUntil(ctx, shoppers, answers, func() { _ = p.cmd.Process.Kill() }) // kill -9
	p.ended()
}

// shopUntil lets everybody shop, lets something happen after so many answers
// while they go on, and then sends everybody home.
func shopUntil(ctx context.Context, shoppers []*shopper, answers int64, happen func()) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan struct{})
	var shopping sync.WaitGroup
	for _, s := range shoppers {
		shopping.Go(func() { s.shop(ctx, answered) })
	}
	for range answers {
		<-answered
	}
	shopping.Go(func() {
		for {
			select {
			case <-answered:
			case <-ctx.Done():
				return
			}
		}
	})
	happen()
	stop()
	shopping.Wait()
}

// awaitRest waits until no order waits for anything.
func awaitRest(t *testing.T, p *process, key string) {
	t.Helper()
	awaitNone(t, p, key, crashRest, "orders", "held", "paying", "closing", "refunding")
}

// awaitNone waits until none of what is listed at a path is in one of the states.
func awaitNone(t *testing.T, p *process, key string, most time.Duration, path string, states ...string) {
	t.Helper()
	tick := time.NewTicker(crashPoll)
	defer tick.Stop()
	s := shopper{url: p.url, key: key}
	for range int(most / crashPoll) {
		open := 0
		for _, state := range states {
			var page struct{ Items []struct{ ID string } }
			s.get(t, "/v1/"+path+"?limit=1&state="+state, &page)
			open += len(page.Items)
		}
		if open == 0 {
			return
		}
		<-tick.C
	}
	t.Errorf("%s are still open after %v", path, most)
}

func auditAfterCrashes(t *testing.T, url string, sim *stripesim.Sim, all []*shopper) {
	err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		v, err := audit.Check(t.Context(), core.Ledger(), audit.Books{"stripe": stripeCharges(sim.Books())}, nil)
		if err != nil {
			return err
		}
		if !v.OK() {
			t.Errorf("the audit found %+v", v)
		}
		if v.Sold == 0 {
			t.Error("nothing was sold: the test has shown nothing")
		}
		for _, s := range all {
			s.once(t, core)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := do(t, "verify", "--db", url); r.status != exitOK {
		t.Errorf("got %v, want a clean verify", r)
	}
}
