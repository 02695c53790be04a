package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTheDemoKeepsEveryPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct {
		seed   int
		faults string
	}{{1, "on"}, {2, "on"}, {3, "off"}} {
		t.Run(fmt.Sprintf("seed %d faults %s", c.seed, c.faults), func(t *testing.T) {
			t.Parallel()
			r := do(t, "demo", "--once", "--json", "--buyers", "200", "--stock", "20", "--seed", fmt.Sprint(c.seed), "--faults", c.faults)
			if r.status != exitOK {
				t.Fatalf("got %v, want status 0", r)
			}
			var res result
			dec := json.NewDecoder(strings.NewReader(r.out))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&res); err != nil || dec.More() {
				t.Fatalf("got %q, want one object: %v", r.out, err)
			}
			if res.Sold != 20 || res.Rejected == 0 || !res.VerifyOK || int(res.Seed) != c.seed {
				t.Errorf("got %+v, want 20 sold, many rejected, and the seed", res)
			}
		})
	}
}

func TestTheDemoWantsAnEmptyStore(t *testing.T) {
	url := newStore(t)
	var done imported
	must(t, &done, "stock", "import", csv("own.csv"), "--db", url)
	if r := do(t, "demo", "--once", "--db", url); r.status != exitFailed || !strings.Contains(r.err, "not empty") {
		t.Errorf("got %v, want a refusal", r)
	}
}
