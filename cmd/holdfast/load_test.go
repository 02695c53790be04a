package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestZipfOrdersTheFirstSKUsMostAndEvenAllTheSame(t *testing.T) {
	skus := names("s", 10)
	for _, c := range []struct {
		spread string
		least  int // of 1000 orders, for the first SKU
		most   int
	}{{spreadEven, 100, 100}, {spreadZipf, 300, 900}} {
		b := &benching{spread: c.spread}
		pick, first := b.pick(skus, 0), 0
		for range 1000 {
			if pick() == skus[0] {
				first++
			}
		}
		if first < c.least || first > c.most {
			t.Errorf("%s: the first SKU got %d of 1000, want %d to %d", c.spread, first, c.least, c.most)
		}
	}
}

// slow answers after a second.
func slow(_ context.Context, _ string, _ []string, fates []placed) {
	time.Sleep(time.Second)
	fates[0] = placeHeld
}

// With 10 requests a second and one client that takes a second for each, nine of
// ten find nobody free: none may be left out of the count.
func TestAtARateNoRequestIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &benching{bulk: 1, rate: 10}
		l := b.drive(t.Context(), []placer{slow}, []string{"tee"}, 100*time.Second, func() {})
		due := l.orders + l.notStarted
		if due < 800 || due > 1200 || l.orders < 85 || l.orders > 100 {
			t.Errorf("got %d started of %d due, want about 91 of 1000", l.orders, due)
		}
	})
}

func TestTheTimeOfALateRequestBeginsWhenItWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(slow, func() string { return "tee" }, 1)
		due := make(chan time.Time, 1)
		due <- time.Now().Add(-time.Minute)
		close(due)
		c.askWhenDue(t.Context(), due)
		if want := time.Minute + time.Second; len(c.seen.times) != 1 || c.seen.times[0] != want {
			t.Errorf("got %v, want %v", c.seen.times, want)
		}
	})
}

func TestAClientWithoutAnswersGivesUp(t *testing.T) {
	asked := 0
	c := newClient(func(context.Context, string, []string, []placed) { asked++ }, func() string { return "tee" }, 1)
	c.keepAsking(t.Context(), time.Now().Add(time.Hour))
	if asked != maxBenchErrors || c.seen.unanswered != maxBenchErrors {
		t.Errorf("asked %d times, %d unanswered, want %d", asked, c.seen.unanswered, maxBenchErrors)
	}
}

func TestKeysNeverRepeat(t *testing.T) {
	seen := map[string]bool{}
	keep := func(_ context.Context, key string, _ []string, fates []placed) {
		seen[key] = true
		fates[0] = placeHeld
	}
	for range 2 {
		c := newClient(keep, func() string { return "tee" }, 1)
		for range 100 {
			c.ask(t.Context(), time.Now())
		}
	}
	if len(seen) != 200 {
		t.Errorf("got %d keys, want 200", len(seen))
	}
}

func TestAnAuditCountsEveryPiece(t *testing.T) {
	for _, c := range []struct {
		name                           string
		books                          level
		told                           int64
		oversold, undersold, unanswerd int64
	}{
		{"agreed", level{10, 4, 6}, 4, 0, 0, 0},
		{"more held than there were", level{10, 12, 0}, 12, 2, 0, 0},
		{"a piece is gone", level{10, 4, 5}, 4, 0, 1, 0},
		{"a client was told yes, and there is no hold", level{10, 4, 6}, 5, 0, 0, 1},
		{"a hold that no client knows of", level{10, 4, 6}, 3, 0, 0, 1},
	} {
		var got contender
		got.audit(map[string]level{"tee": c.books}, []string{"tee"}, map[string]int64{"tee": c.told})
		if got.Oversold != c.oversold || got.Undersold != c.undersold || got.Unanswered != c.unanswerd {
			t.Errorf("%s: got %d, %d, %d", c.name, got.Oversold, got.Undersold, got.Unanswered)
		}
	}
}

func TestTheAnswerToManyOrdersIsReadInTheirOrder(t *testing.T) {
	answer := `{"orders":[{"order":{"id":"a"}},{"refusal":{"code":"sold_out","detail":"x"}},{"refusal":{"code":"sku_unknown"}},{"order":{"id":"b"}}]}`
	got := make([]placed, 5)
	readFates([]byte(answer), got)
	for i, want := range []placed{placeHeld, placeSoldOut, placeUnknown, placeHeld, placeUnknown} {
		if got[i] != want {
			t.Errorf("order %d: got %v, want %v", i, got[i], want)
		}
	}
}
