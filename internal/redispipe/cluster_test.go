package redispipe_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
	"github.com/holdfast-pay/holdfast/ledger"
)

// newCluster makes a cluster of three masters.
func newCluster(t *testing.T) []*redispipetest.Server {
	t.Helper()
	var nodes []*redispipetest.Server
	args := []string{"--cluster", "create"}
	for range 3 {
		node := redispipetest.New(t, "--cluster-enabled", "yes", "--cluster-port", redispipetest.FreePort(t), "--cluster-node-timeout", "2000")
		nodes = append(nodes, node)
		args = append(args, node.Addr())
	}
	if out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput(); err != nil {
		t.Fatalf("create a cluster: %v\n%s", err, out)
	}
	deadline := time.Now().Add(restored)
	for _, node := range nodes {
		for {
			text, err := node.Do("CLUSTER", "INFO").ToString()
			if err == nil && strings.Contains(text, "cluster_state:ok") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the cluster does not come up: %v\n%s", err, text)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nodes
}

// spread are assets whose counts are on three different masters.
func spread(t *testing.T, nodes []*redispipetest.Server) []string {
	t.Helper()
	const slots = 16384
	var assets []string
	seen := map[int64]bool{}
	for i := 0; len(assets) < 3; i++ {
		asset := fmt.Sprint("sku:", i)
		slot, err := nodes[0].Do("CLUSTER", "KEYSLOT", "{stock "+asset+"}").AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		if third := slot * 3 / slots; !seen[third] {
			seen[third] = true
			assets = append(assets, asset)
		}
	}
	return assets
}

func TestBundlesOverSeveralSlotsAreTakenAllOrNone(t *testing.T) {
	nodes := newCluster(t)
	assets := spread(t, nodes)
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			c := counter(open(t, nodes[0].URL()), space(), quick)
			const bundles, singles, buyers = 10, 5, 80
			set(t, c, assets[0], bundles+singles, 1)
			set(t, c, assets[1], bundles+singles, 1)
			set(t, c, assets[2], bundles, 1)
			var took, short, busy atomic.Int64
			var wg sync.WaitGroup
			for i := range buyers {
				wg.Go(func() {
					v, err := c.Take(t.Context(), taking(fmt.Sprint("bundle-", i), true, assets...))
					switch {
					case name == "Watch" && errors.Is(err, redispipe.ErrBusy):
						busy.Add(1)
					case err != nil:
						t.Error(err)
					case v[0].Fate == pipeline.Took:
						took.Add(1)
					case v[0].Fate == pipeline.Short:
						short.Add(1)
					}
				})
			}
			wg.Wait()
			if took.Load() > bundles || took.Load()+short.Load()+busy.Load() != buyers {
				t.Errorf("took %d, short %d, busy %d, want at most %d taken of %d", took.Load(), short.Load(), busy.Load(), bundles, buyers)
			}
			if name != "Lua" {
				return
			}
			// Those that lost a race for the last bundle have given back what they had
			// taken of the others, so that nothing but whole bundles is gone.
			for i := range bundles - took.Load() {
				if v := take(t, c, taking(fmt.Sprint("more-", i), true, assets...)); v.Fate != pipeline.Took {
					t.Errorf("bundle %d: got %+v, want taken", i, v)
				}
			}
			for _, asset := range assets[:2] {
				for i := range singles {
					if v := take(t, c, taking(fmt.Sprint("single-", i), true, asset)); v.Fate != pipeline.Took {
						t.Errorf("%s %d: got %+v, want taken", asset, i, v)
					}
				}
				if v := take(t, c, taking("one-more", true, asset)); v.Fate != pipeline.Short {
					t.Errorf("%s: got %+v, want short", asset, v)
				}
			}
		})
	}
}

// A part that an earlier call has taken is that call's: it may be on its way to
// the ledger.
func TestARefusedRepeatOverSeveralSlotsGivesNothingBack(t *testing.T) {
	nodes := newCluster(t)
	assets := spread(t, nodes)
	c := open(t, nodes[0].URL()).Counter(space(), quick)
	for _, asset := range assets {
		set(t, c, asset, 1, 1)
	}
	take(t, c, taking("first", true, assets[0], assets[1]))
	take(t, c, taking("other", true, assets[2]))
	if v := take(t, c, taking("first", true, assets...)); v.Fate != pipeline.Short || v.Key != key(assets[2]) {
		t.Errorf("got %+v, want short of %s", v, assets[2])
	}
	for _, asset := range assets {
		if v := take(t, c, taking("late", true, asset)); v.Fate != pipeline.Short {
			t.Errorf("%s: got %+v, want short", asset, v)
		}
	}
}

func TestAGateOnAClusterSellsExactlyWhatIsThereThoughAMasterDies(t *testing.T) {
	nodes := newCluster(t)
	assets := spread(t, nodes)
	const units, buyers = 30, 150
	s := &sale{T: t, store: ledger.NewMemory(time.Now)}
	s.inner = &counted{Applier: s.store}
	for _, a := range assets {
		s.store.Apply(t.Context(), ledger.Entry{ID: "restock-" + a, Ops: []ledger.Op{
			ledger.Move(ledger.Posting{From: "@supplier", To: "stock", Asset: ledger.Asset(a), Amount: units})}})
	}
	name := space()
	for range 2 {
		s.gates = append(s.gates, gate(t, s.inner, s.store, open(t, nodes[0].URL()).Counter(name, faultOptions)))
	}
	bundle := func(id string) ledger.Entry {
		return order(id, ledger.Asset(assets[0]), ledger.Asset(assets[1]), ledger.Asset(assets[2]))
	}
	var sold atomic.Int64
	var wg sync.WaitGroup
	for i := range buyers {
		wg.Go(func() {
			if i == buyers/2 {
				nodes[2].Kill()
			}
			if res := s.buy(s.gates[i%2], bundle(fmt.Sprint("buyer-", i))); !res.Refused() {
				sold.Add(1)
			}
		})
	}
	wg.Wait()
	deadline := time.Now().Add(restored)
	for i := 0; sold.Load() < units && time.Now().Before(deadline); i++ {
		if res := s.buy(s.gates[i%2], bundle(fmt.Sprint("next-", i))); !res.Refused() {
			sold.Add(1)
		}
	}
	if sold.Load() != units {
		t.Errorf("sold %d bundles of %d", sold.Load(), units)
	}
	for _, a := range assets {
		rows, err := s.store.Balances(t.Context(), ledger.BalanceQuery{Account: "stock", Asset: ledger.Asset(a)})
		if err != nil || len(rows) != 1 || rows[0].Held != units {
			t.Errorf("%s: got %+v, %v, want %d held", a, rows, err, units)
		}
	}
}
