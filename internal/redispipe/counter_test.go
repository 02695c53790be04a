package redispipe_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe"
	"github.com/holdfast-pay/holdfast/ledger"
)

// quick lets a counter refuse as soon as it has been set.
var quick = pipeline.CounterOptions{Recall: 1, Fresh: time.Hour}

// counters are all ways to count in Redis.
var counters = map[string]func(r *redispipe.Redis, space string, o pipeline.CounterOptions) pipeline.Counter{
	"Lua": func(r *redispipe.Redis, space string, o pipeline.CounterOptions) pipeline.Counter {
		return r.Counter(space, o)
	},
	"Watch": func(r *redispipe.Redis, space string, o pipeline.CounterOptions) pipeline.Counter {
		return r.Watching(space, o)
	},
}

func each(t *testing.T, o pipeline.CounterOptions, check func(t *testing.T, c pipeline.Counter)) {
	r := shared(t)
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) { check(t, counter(r, space(), o)) })
	}
}

// everyCounter also checks the one in process, which keeps the same contract.
func everyCounter(t *testing.T, o pipeline.CounterOptions, check func(t *testing.T, c pipeline.Counter)) {
	t.Run("Local", func(t *testing.T) { check(t, pipeline.NewLocalCounter(o)) })
	each(t, o, check)
}

func key(asset string) ledger.Key { return ledger.Key{Account: "stock", Asset: ledger.Asset(asset)} }

func taking(op string, firm bool, assets ...string) pipeline.Taking {
	t := pipeline.Taking{Op: op, Firm: firm}
	for _, a := range assets {
		t.Wants = append(t.Wants, pipeline.Want{Key: key(a), Amount: 1})
	}
	return t
}

func take(t *testing.T, c pipeline.Counter, tk pipeline.Taking) pipeline.Verdict {
	t.Helper()
	v, err := c.Take(t.Context(), tk)
	if err != nil {
		t.Fatalf("take %q: %v", tk.Op, err)
	}
	return v[0]
}

func set(t *testing.T, c pipeline.Counter, asset string, available, line int64) pipeline.Left {
	t.Helper()
	l, err := c.Set(t.Context(), pipeline.Level{Key: key(asset), Available: available, Seq: line})
	if err != nil {
		t.Fatalf("set %s: %v", asset, err)
	}
	return l[0]
}

func settle(t *testing.T, c pipeline.Counter, op, asset string, line int64) {
	t.Helper()
	if err := c.Settle(t.Context(), pipeline.Settlement{Op: op, Key: key(asset), Seq: line}); err != nil {
		t.Fatalf("settle %q: %v", op, err)
	}
}

// The counter in process is the model: whatever is asked in whatever order, the
// one in Redis gives the same answers.
func TestRedisCountsAsTheProcessDoes(t *testing.T) {
	each(t, quick, func(t *testing.T, c pipeline.Counter) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			model := pipeline.NewLocalCounter(quick)
			assets := []string{fmt.Sprintf("a-%d", round), fmt.Sprintf("b%%{}-%d", round)}
			same := func(what string, got, want any, err error) {
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					rt.Fatalf("%s: got %v, %v, want %v", what, got, err, want)
				}
			}
			line := int64(1)
			level := func() (levels []pipeline.Level) {
				for _, a := range assets {
					levels = append(levels, pipeline.Level{Key: key(a), Seq: line, Available: rapid.Int64Range(0, 4).Draw(rt, "available")})
				}
				return levels
			}
			first := level()
			if _, err := c.Set(t.Context(), first...); err != nil {
				rt.Fatal(err)
			}
			model.Set(t.Context(), first...)
			for range rapid.IntRange(1, 25).Draw(rt, "steps") {
				op := fmt.Sprintf("op-%d", rapid.IntRange(1, 6).Draw(rt, "op"))
				asset := rapid.SampledFrom(assets).Draw(rt, "asset")
				switch rapid.IntRange(0, 5).Draw(rt, "step") {
				case 0, 1, 2:
					tk := taking(op, rapid.Bool().Draw(rt, "firm"), asset)
					if rapid.Bool().Draw(rt, "both") {
						tk = taking(op, tk.Firm, assets...)
					}
					want, _ := model.Take(t.Context(), tk)
					got, err := c.Take(t.Context(), tk)
					same(fmt.Sprint("take ", tk), got, want, err)
				case 3:
					model.Give(t.Context(), op, []ledger.Key{key(asset)})
					same("give "+op, "", "", c.Give(t.Context(), op, []ledger.Key{key(asset)}))
				case 4:
					s := pipeline.Settlement{Op: op, Key: key(asset), Seq: line + rapid.Int64Range(-1, 2).Draw(rt, "line")}
					model.Settle(t.Context(), s)
					same(fmt.Sprint("settle ", s), "", "", c.Settle(t.Context(), s))
				case 5:
					line += rapid.Int64Range(-1, 2).Draw(rt, "lines")
					levels := level()
					want, _ := model.Set(t.Context(), levels...)
					got, err := c.Set(t.Context(), levels...)
					for i := range got { // by two clocks
						got[i].Reach, want[i].Reach = 0, 0
					}
					same(fmt.Sprint("set ", levels), got, want, err)
				}
			}
		})
	})
}

func TestTheLastUnitGoesToOneAndHisRepeatsAreKnown(t *testing.T) {
	everyCounter(t, quick, func(t *testing.T, c pipeline.Counter) {
		set(t, c, "tee", 1, 1)
		if v := take(t, c, taking("first", true, "tee")); v.Fate != pipeline.Took {
			t.Errorf("got %+v, want taken", v)
		}
		for range 3 {
			if v := take(t, c, taking("first", true, "tee")); v.Fate != pipeline.Repeated {
				t.Errorf("got %+v, want a repeat", v)
			}
			if v := take(t, c, taking("late", true, "tee")); v != (pipeline.Verdict{Fate: pipeline.Short, Key: key("tee")}) {
				t.Errorf("got %+v, want refused with 0 left", v)
			}
		}
	})
}

func TestAStormOfTwoProcessesTakesExactlyWhatIsThere(t *testing.T) {
	r := shared(t)
	for name, counter := range counters {
		t.Run(name, func(t *testing.T) {
			const units, buyers = 20, 100
			shop := space()
			both := []pipeline.Counter{counter(r, shop, quick), counter(r, shop, quick)}
			set(t, both[0], "tee", units, 1)
			var took, short, busy atomic.Int64
			var wg sync.WaitGroup
			for i := range buyers {
				wg.Go(func() {
					v, err := both[i%2].Take(t.Context(), taking(fmt.Sprint("buyer-", i), true, "tee"))
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
			if took.Load() != units || took.Load()+short.Load()+busy.Load() != buyers {
				t.Errorf("took %d, short %d, busy %d, want %d taken of %d", took.Load(), short.Load(), busy.Load(), units, buyers)
			}
		})
	}
}

func TestSeveralKeysAreTakenAllOrNone(t *testing.T) {
	everyCounter(t, quick, func(t *testing.T, c pipeline.Counter) {
		set(t, c, "tee", 3, 1)
		set(t, c, "mug", 1, 1)
		if v := take(t, c, taking("both", true, "mug", "tee")); v.Fate != pipeline.Took {
			t.Errorf("got %+v, want taken", v)
		}
		if v := take(t, c, taking("none", true, "mug", "tee")); v.Fate != pipeline.Short || v.Key != key("mug") {
			t.Errorf("got %+v, want short of mugs", v)
		}
		if l := set(t, c, "tee", 3, 1); l.Amount != 3 { // one is doubtful
			t.Errorf("%d tees are left, want 3 with what is doubtful", l.Amount)
		}
		settle(t, c, "both", "tee", 2)
		if l := set(t, c, "tee", 3, 1); l.Amount != 2 {
			t.Errorf("%d tees are left, want 2: the refused one has taken one", l.Amount)
		}
	})
}

func TestGivingBackTwiceGivesOnce(t *testing.T) {
	everyCounter(t, quick, func(t *testing.T, c pipeline.Counter) {
		set(t, c, "tee", 1, 1)
		take(t, c, taking("first", true, "tee"))
		for range 3 {
			if err := c.Give(t.Context(), "first", []ledger.Key{key("tee")}); err != nil {
				t.Fatal(err)
			}
		}
		if v := take(t, c, taking("second", true, "tee")); v.Fate != pipeline.Took {
			t.Errorf("got %+v, want taken", v)
		}
		if v := take(t, c, taking("third", true, "tee")); v.Fate != pipeline.Short {
			t.Errorf("got %+v, want short", v)
		}
	})
}

func TestWhatNobodyHasSetForLongIsNotRefused(t *testing.T) {
	everyCounter(t, pipeline.CounterOptions{Recall: 1, Fresh: time.Millisecond}, func(t *testing.T, c pipeline.Counter) {
		set(t, c, "tee", 0, 1)
		time.Sleep(20 * time.Millisecond) // on the server's clock
		if v := take(t, c, taking("late", true, "tee")); v.Fate != pipeline.Doubted {
			t.Errorf("got %+v, want let through", v)
		}
	})
	everyCounter(t, pipeline.CounterOptions{}, func(t *testing.T, c pipeline.Counter) {
		if l := set(t, c, "tee", 0, 1); l.Sure {
			t.Errorf("a counter that remembers nothing is sure")
		}
		if v := take(t, c, taking("late", true, "tee")); v.Fate != pipeline.Doubted {
			t.Errorf("got %+v, want let through", v)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	o := quick
	o.MaxMemory = 3
	everyCounter(t, o, func(t *testing.T, c pipeline.Counter) {
		set(t, c, "tee", 10, 1)
		for i := range 5 {
			take(t, c, taking(fmt.Sprint("op-", i), true, "tee"))
			time.Sleep(2 * time.Millisecond) // on the server's clock
		}
		set(t, c, "tee", 10, 1)
		for i, want := range []pipeline.Fate{pipeline.Took, pipeline.Took, pipeline.Repeated, pipeline.Repeated, pipeline.Repeated} {
			if v := take(t, c, taking(fmt.Sprint("op-", i), false, "tee")); v.Fate != want {
				t.Errorf("op-%d: got %+v, want %v", i, v, want)
			}
		}
	})
}

func TestTakenListsEveryOperationPageByPage(t *testing.T) {
	everyCounter(t, quick, func(t *testing.T, c pipeline.Counter) {
		const ops = pipeline.MaxTaken + 200
		set(t, c, "tee", ops, 1)
		for from := 0; from < ops; from += 25 {
			var takings []pipeline.Taking
			for i := range 25 {
				takings = append(takings, taking(fmt.Sprint("op-", from+i), true, "tee"))
			}
			if _, err := c.Take(t.Context(), takings...); err != nil {
				t.Fatal(err)
			}
		}
		seen, pages := map[string]bool{}, 0
		for cursor, more := int64(0), true; more; pages++ {
			var got []string
			var err error
			if got, cursor, more, err = c.Taken(t.Context(), key("tee"), cursor); err != nil {
				t.Fatal(err)
			}
			for _, op := range got {
				seen[op] = true
			}
		}
		if len(seen) != ops || pages < 2 {
			t.Errorf("got %d operations on %d pages, want %d: %v", len(seen), pages, ops, slices.Sorted(maps.Keys(seen))[:3])
		}
	})
}

// The figures are per taking, of 256 callers of one key.
func BenchmarkTake(b *testing.B) {
	url := os.Getenv("HOLDFAST_TEST_REDIS")
	if url == "" {
		b.Skip("HOLDFAST_TEST_REDIS is not set")
	}
	r, err := redispipe.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for name, counter := range counters {
		b.Run(name, func(b *testing.B) {
			c := counter(r, space(), quick)
			if _, err := c.Set(b.Context(), pipeline.Level{Key: key("tee"), Available: ledger.MaxAmount, Seq: 1}); err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			b.SetParallelism(128)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Take(b.Context(), taking(fmt.Sprint("op-", n.Add(1)), true, "tee")); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
