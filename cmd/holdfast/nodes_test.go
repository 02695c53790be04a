package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
)

const (
	nodeCount = 3
	nodesSeed = 7
)

// cluster is several nodes on one store, and the gateway that all of them use.
type cluster struct {
	sim  *stripesim.Sim
	env  []string
	args [nodeCount][]string
	node [nodeCount]*process
}

// startCluster starts all nodes. Notifications go to one node after another, as
// through a load balancer that does not look who is there.
func startCluster(t *testing.T, ctx context.Context, store string) *cluster {
	t.Helper()
	c := &cluster{sim: stripesim.New(stripesim.Config{Seed: nodesSeed})}
	c.sim.SetFaults(troubledALittle)
	gate := httptest.NewServer(c.sim)
	t.Cleanup(gate.Close)
	var addresses [nodeCount]string
	for i := range addresses {
		addresses[i] = freeAddress(t)
	}
	balancer := httptest.NewServer(spread(addresses))
	t.Cleanup(balancer.Close)
	c.sim.SetWebhookURL(balancer.URL + "/webhooks/stripe")
	ctx, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { c.sim.Run(ctx) })
	t.Cleanup(func() {
		stop()
		sending.Wait()
	})
	c.env = gatewayEnv(gate.URL)
	for i, addr := range addresses {
		c.args[i] = []string{"--db", store, "--addr", addr, "--hold-for", "2s", "--pay-for", "3s", "--poll", "500ms", "--call-for", "2s"}
		c.start(t, i)
	}
	return c
}

func (c *cluster) start(t *testing.T, i int) {
	t.Helper()
	c.node[i] = start(t, c.env, c.args[i]...)
}

// end ends a node as an update does.
func (c *cluster) end(t *testing.T, i int) {
	t.Helper()
	c.node[i].signal(t, syscall.SIGTERM)
	if got := c.node[i].ended(); got.ExitStatus() != exitOK {
		t.Errorf("node %d ended with %v, want exit status 0", i, got)
	}
}

func gatewayEnv(url string) []string {
	return []string{
		"HOLDFAST_STRIPE_SECRET_KEY=" + stripesim.DefaultSecretKey,
		"HOLDFAST_STRIPE_WEBHOOK_SECRETS=" + stripesim.DefaultWebhookSecret,
		"HOLDFAST_STRIPE_BASE_URL=" + url,
	}
}

// spread hands each request to the next address.
func spread(addresses [nodeCount]string) http.Handler {
	var n atomic.Int64
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: addresses[n.Add(1)%nodeCount]})
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusBadGateway)
	}}
}

// Buyers ask all nodes at once while these are restarted one by one, and one is
// killed. What a node leaves unanswered is answered by another under the same
// key; what one has answered, the others repeat byte for byte; and each payment
// is made once at the gateway, though every node looks for tasks.
func TestNodesThatAreRestartedOneByOneLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(testing.TB) string{"MySQL": sqlstoretest.MySQL, "Postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := empty(t)
			must(t, &struct{}{}, "migrate", "--db", store)
			key := stockAndKey(t, store)
			c := startCluster(t, t.Context(), store)
			luck := rand.New(rand.NewPCG(nodesSeed, 0))
			var all []*shopper
			for round, happen := range []func(){
				func() {
					for i := range c.node {
						c.end(t, i)
						c.start(t, i)
					}
				},
				func() {
					c.node[0].signal(t, syscall.SIGKILL)
					c.node[0].ended()
				},
			} {
				shoppers := crowd(luck, "", key, round, c.sim)
				for j, s := range shoppers {
					s.url = c.node[j%nodeCount].url
				}
				shopUntil(t.Context(), shoppers, int64(20+luck.IntN(60)), happen)
				for j, s := range shoppers {
					s.url = c.node[1+j%(nodeCount-1)].url // the first may be gone
					s.settle(t)
				}
				all = append(all, shoppers...)
			}
			c.start(t, 0)
			for j, s := range all {
				s.url = c.node[j%nodeCount].url
				s.replay(t)
			}
			requests, unknown := count(all)
			t.Logf("%d requests, %d of them unanswered and asked again at another node", requests, unknown)
			if unknown == 0 {
				t.Error("every request was answered: the test has shown nothing")
			}
			awaitRest(t, c.node[0], key)
			for i := range c.node {
				c.end(t, i)
			}
			auditAfterCrashes(t, store, c.sim, all)
			wantOneSessionEach(t, c.sim.Books())
		})
	}
}

// wantOneSessionEach asserts that every payment was created once at the gateway
// and none is still open there.
func wantOneSessionEach(t *testing.T, b stripesim.Books) {
	t.Helper()
	made := map[string]int{}
	for _, s := range b.Sessions {
		id := s.Metadata["payment_id"]
		if made[id]++; id == "" || made[id] > 1 {
			t.Errorf("payment %q was made %d times", id, made[id])
		}
		if s.Status == "open" {
			t.Errorf("payment %q is still open at the gateway", id)
		}
	}
	if len(made) == 0 {
		t.Error("no payment was made: the test has shown nothing")
	}
}
