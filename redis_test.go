package holdfast

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
)

var redisRounds = flag.Int("redis.rounds", 1, "sales in which Redis is treated badly, of each kind")

const (
	rushUnits  = 60
	rushBuyers = 400
	rushAtOnce = 48
	patience   = 30 * time.Second // of a buyer, and until what is left is sold
)

// rush is a sale over Redis.
type rush struct {
	*testing.T
	shops    []*Holdfast // on one store and one Redis
	answered atomic.Int64
}

// newRush opens n processes' worth of shops on one store.
func newRush(t *testing.T, n int, store, preset string, redis *redispipetest.Server) *rush {
	t.Helper()
	s := &rush{T: t}
	for range n {
		h, err := Open(t.Context(), store, Options{Preset: preset, Redis: redis.URL()})
		if err != nil {
			t.Fatal(err)
		}
		s.shops = append(s.shops, h)
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	s.put("tee", rushUnits)
	return s
}

func (s *rush) put(sku string, stock int64) {
	s.Helper()
	if _, err := s.shops[0].PutItem(s.Context(), Key{}, ItemInput{SKU: sku, Name: sku, Price: 100, Currency: "CNY", Stock: stock}); err != nil {
		s.Fatal(err)
	}
}

// buy asks until there is a final answer, as every client must.
func (s *rush) buy(i int, key string) (order string) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for n := i; ; n++ {
		a, err := s.shops[n%len(s.shops)].Place(s.Context(), Key{Scope: "k", Value: key, Print: []byte(key)}, OrderInput{Lines: []LineInput{{"tee", 1}}})
		var r *Rejection
		switch {
		case err == nil:
			return a.Value.ID
		case errors.As(err, &r) && r.Code == CodeSoldOut:
			return ""
		case errors.As(err, &r) && r.Code != CodeOverloaded || time.Now().After(deadline):
			s.Errorf("%s: %v", key, err)
			return ""
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// storm lets buyers come, a few at a time; some ask twice. It returns how many
// have got one.
func (s *rush) storm() int {
	s.Helper()
	var sold atomic.Int64
	var wg sync.WaitGroup
	line := make(chan int)
	for range rushAtOnce {
		wg.Go(func() {
			for i := range line {
				key := fmt.Sprint("buyer-", i)
				order := s.buy(i, key)
				if i%5 == 0 {
					if again := s.buy(i+1, key); order != "" && again != order {
						s.Errorf("%s was told %q, then %q", key, order, again)
					} else {
						order = again
					}
				}
				if order != "" {
					sold.Add(1)
				}
				s.answered.Add(1)
			}
		})
	}
	for i := range rushBuyers {
		line <- i
	}
	close(line)
	wg.Wait()
	return int(sold.Load())
}

// sellOut lets one buyer after another come until n more are sold, and asserts
// that then all are, none twice.
func (s *rush) sellOut(name string, n int) (last string) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for i := 0; n > 0 && time.Now().Before(deadline); i++ {
		order := s.buy(i, fmt.Sprint(name, "-", i))
		if order == "" {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		last = order
		n--
	}
	if n > 0 {
		s.Errorf("%s: %d units are not sold", name, n)
	}
	level, err := s.shops[0].Stock(s.Context(), "tee")
	if err != nil || level.Held != rushUnits || level.Available != 0 {
		s.Errorf("got %+v, %v, want %d held and none left", level, err, rushUnits)
	}
	rep, err := s.shops[0].Verify(s.Context(), nil)
	if err != nil || !rep.OK() {
		s.Errorf("verify: %+v, %v", rep.Problems, err)
	}
	return last
}

const outage = time.Second // that buyers notice

// redisFaults are what happens to Redis in the middle of a sale.
var redisFaults = map[string]func(r *redispipetest.Server){
	"Flushed": func(r *redispipetest.Server) { r.Do("FLUSHALL") },
	"Gone":    func(r *redispipetest.Server) { r.Kill() },
	"Restarted": func(r *redispipetest.Server) { // with its append-only file
		r.Kill()
		r.Start()
	},
	"Rewound": func(r *redispipetest.Server) { // to what was saved early in the sale, as when an old replica is promoted
		r.Kill()
		r.Start()
	},
	"Hung": func(r *redispipetest.Server) {
		resume := r.Hang()
		time.AfterFunc(outage, resume)
	},
	"Paused": func(r *redispipetest.Server) { r.Do("CLIENT", "PAUSE", fmt.Sprint(outage.Milliseconds()), "ALL") },
}

func TestWhateverHappensToRedisEveryUnitIsSoldOnceAndEveryBuyerAnswered(t *testing.T) {
	for _, preset := range []string{"gated", "queued"} {
		for name, fault := range redisFaults {
			t.Run(preset+"/"+name, func(t *testing.T) {
				t.Parallel()
				for round := range *redisRounds {
					treatBadly(t, preset, name, fault, int64(round))
				}
			})
		}
	}
}

func treatBadly(t *testing.T, preset, name string, fault func(r *redispipetest.Server), round int64) {
	var args []string
	if name == "Restarted" {
		args = []string{"--appendonly", "yes"}
	}
	r := redispipetest.New(t, args...)
	s := newRush(t, 1, "sqlite:"+t.TempDir()+"/t.db", preset, r)
	early := 1 + round*7%20
	reached := func(n int64) {
		for s.answered.Load() < n {
			time.Sleep(100 * time.Microsecond)
		}
	}
	sold := make(chan int, 1)
	go func() { sold <- s.storm() }()
	reached(early)
	if name == "Rewound" {
		r.Do("SAVE")
	}
	reached(early + 15)
	fault(r)
	n := <-sold
	if n > rushUnits {
		t.Errorf("%d buyers were told that they have one of %d", n, rushUnits)
	}
	last := s.sellOut("next", rushUnits-n)
	if last == "" {
		return
	}
	// The stages go on: what comes back goes to whoever comes next.
	if _, err := s.shops[0].Cancel(t.Context(), Key{}, last); err != nil {
		t.Errorf("cancel: %v", err)
	}
	s.sellOut("returned", 1)
}

func TestTwoProcessesOnOneRedisShareTheLineAndTheCounter(t *testing.T) {
	for store, open := range map[string]func(testing.TB) string{"MySQL": sqlstoretest.MySQL, "Postgres": sqlstoretest.Postgres} {
		for _, preset := range []string{"gated", "queued"} {
			t.Run(store+"/"+preset, func(t *testing.T) {
				t.Parallel()
				r := redispipetest.New(t)
				s := newRush(t, 2, open(t), preset, r)
				n := s.storm()
				if n > rushUnits {
					t.Errorf("%d buyers were told that they have one of %d", n, rushUnits)
				}
				s.sellOut("next", rushUnits-n)
				if keys, err := r.Do("KEYS", "holdfast:"+s.shops[0].store.ID()+":*count").AsStrSlice(); err != nil || len(keys) != 1 {
					t.Errorf("got keys %q, %v, want one counter", keys, err)
				}
				if preset == "queued" {
					s.sharesTheLine()
				}
			})
		}
	}
}

// sharesTheLine asserts that what one process has placed, the other finds.
func (s *rush) sharesTheLine() {
	s.Helper()
	s.put("mug", 1)
	key := Key{Scope: "k", Value: "mug"}
	if _, err := s.shops[0].Place(s.Context(), key, OrderInput{Lines: []LineInput{{"mug", 1}}}); err != nil {
		s.Errorf("place: %v", err)
	}
	ticket, err := s.shops[1].queue.Look(s.Context(), key.entry())
	if err != nil || ticket.State != pipeline.PlaceDecided || ticket.Result.Refused() {
		s.Errorf("got %+v, %v, want its outcome", ticket, err)
	}
}

func TestARedisThatIsNotFitIsRefusedAndSaysWhatToDo(t *testing.T) {
	r := redispipetest.New(t)
	store := "sqlite:" + t.TempDir() + "/t.db"
	for _, c := range []struct{ set, want string }{{"allkeys-lru", "CONFIG SET maxmemory-policy noeviction"}, {"noeviction", ""}} {
		r.Do("CONFIG", "SET", "maxmemory-policy", c.set)
		h, err := Open(t.Context(), store, Options{Preset: "queued", Redis: r.URL()})
		if c.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		} else if !errors.Is(err, redispipe.ErrUnfit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want advice: %s", c.set, err, c.want)
		}
	}
	for _, preset := range []string{"", "batched", "conditional", "optimistic", "pessimistic"} {
		if _, err := Open(t.Context(), store, Options{Preset: preset, Redis: r.URL()}); err == nil || !strings.Contains(err.Error(), "gated and queued") {
			t.Errorf("preset %q with Redis: got %v, want a refusal", preset, err)
		}
	}
}
