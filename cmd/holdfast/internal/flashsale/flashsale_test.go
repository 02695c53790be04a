package flashsale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheSameSeedMakesTheSameCrowd(t *testing.T) {
	skus := []string{"a", "b"}
	if one, two := Crowd(7, 300, skus), Crowd(7, 300, skus); !reflect.DeepEqual(one, two) {
		t.Error("got two crowds from one seed")
	}
	if one, two := Crowd(7, 300, skus), Crowd(8, 300, skus); reflect.DeepEqual(one, two) {
		t.Error("got one crowd from two seeds")
	}
}

func TestTheCrowdHasEveryHabit(t *testing.T) {
	total, seen := 0, map[habit]int{}
	for _, s := range shares {
		total += s.percent
	}
	for _, b := range Crowd(1, 2000, []string{"a"}) {
		seen[b.habit]++
	}
	if total != 100 || len(seen) != len(shares) {
		t.Errorf("got %d percent and the habits %v, want 100 and all %d", total, seen, len(shares))
	}
}

func TestARoomLetsOutInOrderAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		var again, through [3]atomic.Bool
		for i := range 3 {
			go func() {
				again[i].Store(m.wait(t.Context()))
				through[i].Store(true)
			}()
			synctest.Wait()
		}
		m.letOut(2)
		synctest.Wait()
		if !again[0].Load() || !again[1].Load() || through[2].Load() {
			t.Error("want the first two let out, and the third to wait")
		}
		m.close()
		synctest.Wait()
		if !through[2].Load() || again[2].Load() {
			t.Error("want the third sent away")
		}
		if m.wait(t.Context()) {
			t.Error("a closed room let someone wait")
		}
	})
}

// api is a shop that sells one piece, or as many orders as it is asked for.
func api(t *testing.T, order func(w http.ResponseWriter, key string)) Sale {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", func(w http.ResponseWriter, r *http.Request) { order(w, r.Header.Get("Idempotency-Key")) })
	mux.HandleFunc("GET /v1/items/{sku}/stock", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"available":0,"held":0}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return Sale{API: srv.URL, Limit: time.Minute}
}

func problem(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": code})
}

func one(h habit) []Buyer {
	b := Crowd(1, 1, []string{"a"})
	b[0].habit, b[0].arrive = h, 0
	return b
}

func TestTwoOrdersForOneKeyAreNoticed(t *testing.T) {
	var n atomic.Int64
	s := api(t, func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"o%d","state":"held"}`, n.Add(1))
	})
	r := &sale{Sale: s, client: newClient(s.API, "")}
	if _, ok := r.order(t.Context(), one(doubleClick)[0], 0); !ok || len(r.broken) == 0 {
		t.Errorf("got %v, %q, want it noticed", ok, r.broken)
	}
}

func TestAnUnexpectedAnswerIsNoticed(t *testing.T) {
	s := api(t, func(w http.ResponseWriter, _ string) { problem(w, http.StatusBadRequest, "invalid_json") })
	s.Crowd = one(normal)
	if out := Run(t.Context(), s); len(out.Broken) == 0 {
		t.Errorf("got %+v, want the answer noticed", out)
	}
}

func TestWhoIsToldSoldOutForGoodLeaves(t *testing.T) {
	s := api(t, func(w http.ResponseWriter, _ string) { problem(w, http.StatusConflict, "sold_out") })
	s.Crowd = one(normal)
	out := Run(t.Context(), s)
	if out.Rejected != 1 || len(out.Broken) != 0 || len(out.Holds) != 0 {
		t.Errorf("got %+v, want one rejection and nothing else", out)
	}
}

func TestALostAnswerIsAskedAgainUnderTheSameKey(t *testing.T) {
	var keys [3]atomic.Value
	var n atomic.Int64
	s := api(t, func(w http.ResponseWriter, key string) {
		i := n.Add(1)
		keys[i-1].Store(key)
		switch i {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			problem(w, http.StatusServiceUnavailable, "overloaded")
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"o","state":"held"}`)
		}
	})
	s.Crowd = one(holdOnly)
	out := Run(t.Context(), s)
	if len(out.Holds) != 1 || keys[0].Load() != keys[1].Load() || keys[1].Load() != keys[2].Load() {
		t.Errorf("got %+v after %d requests, want one order under one key", out, n.Load())
	}
}

func TestASaleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := api(t, func(w http.ResponseWriter, _ string) { problem(w, http.StatusConflict, "sold_out") })
	s.Crowd = Crowd(1, 10, []string{"a"})
	if out := Run(ctx, s); out.Requests != 0 {
		t.Errorf("got %+v, want no request", out)
	}
}

func TestQuantiles(t *testing.T) {
	o := Outcome{}
	if o.Quantile(0.5) != 0 {
		t.Error("got a time without an order")
	}
	for i := range 100 {
		o.Holds = append(o.Holds, time.Duration(i))
	}
	if o.Quantile(0.5) != 50 || o.Quantile(0.99) != 99 || o.Quantile(1) != 99 {
		t.Errorf("got %d, %d, %d, want 50, 99, 99", o.Quantile(0.5), o.Quantile(0.99), o.Quantile(1))
	}
}
