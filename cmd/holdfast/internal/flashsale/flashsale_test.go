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

var twoWays = []Way{{Gateway: "till", Method: "page"}, {Gateway: "till", Method: "code"}}

func TestTheSameSeedMakesTheSameCrowd(t *testing.T) {
	skus := []string{"a", "b"}
	if one, two := Crowd(7, 300, skus, twoWays), Crowd(7, 300, skus, twoWays); !reflect.DeepEqual(one, two) {
		t.Error("got two crowds from one seed")
	}
	if one, two := Crowd(7, 300, skus, twoWays), Crowd(8, 300, skus, twoWays); reflect.DeepEqual(one, two) {
		t.Error("got one crowd from two seeds")
	}
}

func TestTheCrowdHasEveryHabit(t *testing.T) {
	total, seen := 0, map[habit]int{}
	for _, s := range shares {
		total += s.percent
	}
	for _, b := range Crowd(1, 2000, []string{"a"}, twoWays) {
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
	return Sale{API: srv.URL, Limit: time.Minute, Until: time.Until}
}

func problem(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": code})
}

func one(h habit) []Buyer {
	b := Crowd(1, 1, []string{"a"}, twoWays)
	b[0].habit, b[0].arrive = h, 0
	return b
}

// A buyer who changes his mind asks for the other way, waits until the first is
// closed, and pays on the page of the second.
func TestWhoChangesHisMindPaysInTheOtherWay(t *testing.T) {
	var asked []string
	var looks, paid atomic.Int64
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	mux.HandleFunc("POST /v1/orders/o/payments", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Gateway, Method string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if asked = append(asked, in.Method); len(asked) == 1 {
			fmt.Fprintf(w, `{"id":"p1","state":"open","url":"%s/page"}`, srv.URL)
			return
		}
		fmt.Fprint(w, `{"id":"p2","state":"waiting"}`)
	})
	mux.HandleFunc("GET /v1/payments/p2", func(w http.ResponseWriter, _ *http.Request) {
		state := "waiting"
		if looks.Add(1) == 2 {
			state = "open"
		}
		fmt.Fprintf(w, `{"id":"p2","state":%q,"url":"weixin://code?pr=1"}`, state)
	})
	mux.HandleFunc("GET /page", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /scan", func(w http.ResponseWriter, r *http.Request) {
		if code := r.FormValue("code"); code != "weixin://code?pr=1" {
			t.Errorf("scanned %q", code)
		}
		http.Redirect(w, r, "/pay", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /pay", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		paid.Add(1)
		http.Redirect(w, r, r.URL.Query().Get("redirect_url"), http.StatusSeeOther)
	})
	mux.HandleFunc("GET /v1/orders/o", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"o","state":"paid"}`) })
	r := &sale{Sale: Sale{API: srv.URL}, client: newClient(srv.URL, "")}
	b := one(switchWay)[0]
	b.way, b.other = Way{Gateway: "till", Method: "page"}, Way{Gateway: "till", Method: "code", Phone: srv.URL}
	if !r.proceed(t.Context(), b, order{ID: "o"}) || paid.Load() != 1 || !reflect.DeepEqual(asked, []string{"page", "code"}) || len(r.broken) > 0 {
		t.Errorf("asked for %v, paid %d times, %q", asked, paid.Load(), r.broken)
	}
}

// A page that the gateway does not show any more takes no money, and is no mistake.
func TestAPageThatIsOverTakesNoMoney(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(srv.Close)
	page, err := newClient(srv.URL, "").open(t.Context(), srv.URL+"/gone", Way{})
	if page != "" || err != nil {
		t.Errorf("got %q, %v, want no page and no error", page, err)
	}
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
	s.Crowd = Crowd(1, 10, []string{"a"}, twoWays)
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
