package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheDemoKeepsEveryPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct {
		gateway       string
		seed          int
		faults        string
		buyers, stock int
	}{{mixed, 1, "on", 150, 15}, {"alipay", 2, "on", 20, 2}, {"wechatpay", 3, "on", 20, 2}, {"stripe", 4, "on", 20, 2}, {mixed, 5, "off", 50, 5}} {
		t.Run(fmt.Sprintf("%s seed %d faults %s", c.gateway, c.seed, c.faults), func(t *testing.T) {
			t.Parallel()
			r := do(t, "demo", "--once", "--json", "--gateway", c.gateway, "--buyers", fmt.Sprint(c.buyers),
				"--stock", fmt.Sprint(c.stock), "--seed", fmt.Sprint(c.seed), "--faults", c.faults)
			if r.status != exitOK {
				t.Fatalf("got %v, want status 0", r)
			}
			var res result
			dec := json.NewDecoder(strings.NewReader(r.out))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&res); err != nil || dec.More() {
				t.Fatalf("got %q, want one object: %v", r.out, err)
			}
			if res.Sold != int64(c.stock) || res.Rejected == 0 || !res.VerifyOK || int(res.Seed) != c.seed {
				t.Errorf("got %+v, want %d sold, many rejected, and the seed", res, c.stock)
			}
		})
	}
}

func TestTheDemoKnowsItsGateways(t *testing.T) {
	if r := do(t, "demo", "--once", "--gateway", "paypal"); r.status != exitUsage || !strings.Contains(r.err, "--gateway") {
		t.Errorf("got %v, want status %d and why", r, exitUsage)
	}
}

func TestAPacedClockIsQuickerAndNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPaced(30)
		start := c.now()
		time.Sleep(2 * time.Second)
		if got := c.now().Sub(start); got != time.Minute {
			t.Errorf("got %v after 2 s, want a minute", got)
		}
		if got := c.until(start.Add(2 * time.Minute)); got != 2*time.Second {
			t.Errorf("got %v until the next minute is over, want 2 s", got)
		}
		c.set(1)
		time.Sleep(2 * time.Second)
		if got := c.now().Sub(start); got != time.Minute+2*time.Second {
			t.Errorf("got %v when it goes as ours again, want 2 s more than a minute", got)
		}
	})
}

func TestTheDemoWantsAnEmptyStore(t *testing.T) {
	url := newStore(t)
	var done imported
	must(t, &done, "stock", "import", csv("own.csv"), "--db", url)
	if r := do(t, "demo", "--once", "--db", url); r.status != exitFailed || !strings.Contains(r.err, "not empty") {
		t.Errorf("got %v, want a refusal", r)
	}
}
