package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// counter is a shop without a network, on the clock of a synctest bubble: time
// stands still while it answers, so that nothing happens beside.
type counter struct {
	*testing.T
	core *holdfast.Holdfast
	api  *httpapi.API
	key  string
}

func atTheCounter(t *testing.T, preset string, stock int64, tell func(*counter)) {
	t.Helper()
	url := "sqlite:" + t.TempDir() + "/shop.db"
	synctest.Test(t, func(t *testing.T) {
		core, err := holdfast.Open(t.Context(), url, holdfast.Options{Preset: preset, Passive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := core.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		c := &counter{T: t, core: core, api: httpapi.New(core, httpapi.Options{})}
		c.stock(stock)
		tell(c)
	})
}

// stock puts tees on sale, and makes a key.
func (c *counter) stock(pieces int64) {
	c.Helper()
	plain, _, err := c.core.CreateKey(c.Context(), holdfast.Key{}, "test", []string{holdfast.ScopeWrite}, 0)
	if err != nil {
		c.Fatal(err)
	}
	c.key = plain
	_, err = c.core.PutItem(c.Context(), holdfast.Key{}, holdfast.ItemInput{SKU: "tee", Name: "Tee", Price: 1500, Currency: "EUR", Stock: pieces})
	if err != nil {
		c.Fatal(err)
	}
}

// order orders one tee under a key.
func (c *counter) order(key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader(oneTee))
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "key-of-the-rush-"+key)
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	return w
}

func (c *counter) want(key string, status int, in string) *httptest.ResponseRecorder {
	c.Helper()
	w := c.order(key)
	if w.Code != status || !strings.Contains(w.Body.String(), in) {
		c.Fatalf("%s: got %d %s, want %d with %s", key, w.Code, w.Body, status, in)
	}
	return w
}

// rush is many who come too late, until the gate knows; the last of them is just gone.
func (c *counter) rush(name string) {
	c.Helper()
	for i := range 5 {
		c.want(fmt.Sprint(name, "-early-", i), 409, "sold_out")
		time.Sleep(150 * time.Millisecond)
	}
	c.want(name+"-early", 409, "sold_out")
}

func TestSoldOutCostsTheStoreNothing(t *testing.T) {
	for _, preset := range []string{"gated", "queued"} {
		t.Run(preset, func(t *testing.T) {
			atTheCounter(t, preset, 3, func(c *counter) {
				time.Sleep(time.Minute) // it has to know for long enough who was accepted
				for i := range 3 {
					c.want(fmt.Sprint("buyer-", i), 201, `"held"`)
				}
				c.rush("a")
				before := c.core.Stats()
				for i := range 1000 {
					c.want(fmt.Sprint("late-", i), 409, "sold_out")
				}
				after := c.core.Stats()
				if q, tx := after.Queries-before.Queries, after.Transactions-before.Transactions; q != 0 || tx != 0 {
					t.Errorf("1000 answers cost %d queries and %d transactions, want none", q, tx)
				}
				if n := after.Gate.SoldOut - before.Gate.SoldOut; n != 1000 {
					t.Errorf("the gate answered %d from its own memory, want 1000", n)
				}
				for i := range 3 {
					c.replays(fmt.Sprint("buyer-", i))
				}
			})
		})
	}
}

// replays says that a repeat gets its order.
func (c *counter) replays(key string) {
	c.Helper()
	if w := c.want(key, 201, `"held"`); w.Header().Get("Idempotent-Replayed") != "true" {
		c.Errorf("%s: got %v", key, w.Header())
	}
}

func TestARepeatThatAnotherProcessAcceptedIsKnownInTheRush(t *testing.T) {
	path := t.TempDir() + "/shop.db"
	synctest.Test(t, func(t *testing.T) {
		open := func(key string) *counter {
			core, err := holdfast.Open(t.Context(), "sqlite:"+path, holdfast.Options{Preset: "queued", Passive: true})
			if err != nil {
				t.Fatal(err)
			}
			return &counter{t, core, httpapi.New(core, httpapi.Options{}), key}
		}
		a := open("")
		defer a.core.Close(context.Background())
		a.stock(2)
		b := open(a.key)
		defer b.core.Close(context.Background())
		time.Sleep(time.Minute)
		a.want("here", 201, `"held"`)
		b.want("there", 201, `"held"`)
		for i := range 400 { // all of it in one rush
			a.want(fmt.Sprint("late-", i), 409, "sold_out")
			time.Sleep(90 * time.Millisecond)
			if i > 20 && i%7 == 0 { // once the gate answers by itself
				a.replays("here")
				a.replays("there")
			}
		}
	})
}

func TestAnOldRepeatIsKnownWhenThereIsNoRush(t *testing.T) {
	atTheCounter(t, "queued", 1, func(c *counter) {
		c.want("buyer", 201, `"held"`)
		time.Sleep(10 * time.Minute)
		c.rush("a")
		time.Sleep(time.Second)
		c.replays("buyer")
	})
}
