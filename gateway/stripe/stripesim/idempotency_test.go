package stripesim_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

var tenDollars = []string{"amount", "1000", "currency", "usd", "metadata[order_id]", "7"}

func (b *bench) keyed(key string, params ...string) answer {
	b.t.Helper()
	return b.do("POST", "/v1/payment_intents", key, params...)
}

func TestARepeatedKeyReplaysTheFirstAnswer(t *testing.T) {
	b := newBench(t)
	first, second := b.keyed("k", tenDollars...), b.keyed("k", tenDollars...)
	if first.raw != second.raw {
		t.Errorf("got %s, want %s", second.raw, first.raw)
	}
	if first.header.Get("Idempotent-Replayed") != "" || second.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got replayed %q and %q", first.header.Get("Idempotent-Replayed"), second.header.Get("Idempotent-Replayed"))
	}
	if got := second.header.Get("Original-Request"); got != first.header.Get("Request-Id") {
		t.Errorf("got original %s, want %s", got, first.header.Get("Request-Id"))
	}
	if n := len(b.sim.Books().Payments); n != 1 {
		t.Errorf("got %d payments, want 1", n)
	}
}

func TestAKeyBelongsToItsParametersAndPath(t *testing.T) {
	b := newBench(t)
	b.keyed("k", tenDollars...)
	for name, a := range map[string]answer{
		"other amount": b.keyed("k", "amount", "1001", "currency", "usd", "metadata[order_id]", "7"),
		"other path":   b.do("POST", "/v1/refunds", "k", "payment_intent", "pi_1"),
	} {
		if a.status != 400 || a.text("error", "type") != "idempotency_error" {
			t.Errorf("%s: got %d %s", name, a.status, a.raw)
		}
	}
}

func TestAKeyIsForgottenAfter24Hours(t *testing.T) {
	b := newBench(t)
	first := b.keyed("k", tenDollars...)
	b.clock.Advance(24*time.Hour - time.Second)
	if again := b.keyed("k", tenDollars...); again.text("id") != first.text("id") {
		t.Errorf("got %s, want %s", again.text("id"), first.text("id"))
	}
	b.clock.Advance(time.Second)
	if again := b.keyed("k", tenDollars...); again.text("id") == first.text("id") {
		t.Errorf("got %s again after 24 h", first.text("id"))
	}
}

func TestAReplayIsNotValidatedAgain(t *testing.T) {
	b := newBench(t)
	params := append([]string{"expires_at", fmt.Sprint(b.clock.Now().Add(time.Hour).Unix())}, sessionOf1234...)
	first := b.do("POST", "/v1/checkout/sessions", "k", params...)
	b.clock.Advance(50 * time.Minute)
	if again := b.do("POST", "/v1/checkout/sessions", "k", params...); again.raw != first.raw || again.status != 200 {
		t.Errorf("got %d %s, want the first answer", again.status, again.raw)
	}
}

func TestWhatStoppedACallBeforeItRanIsNotKept(t *testing.T) {
	b := newBench(t)
	b.want(b.keyed("k", "amount", "1000"), 400, "parameter_missing")
	for _, kind := range []stripesim.Kind{stripesim.RateLimited, stripesim.Unavailable, stripesim.KeyInUse} {
		b.sim.Inject(stripesim.Fault{Call: "intent.create", Kind: kind})
		if a := b.keyed("k", tenDollars...); a.status < 400 {
			t.Errorf("%s: got %d", kind, a.status)
		}
	}
	req, _ := http.NewRequest("POST", b.url+"/v1/payment_intents", strings.NewReader("amount=1000&currency=usd"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", "k")
	if a := b.send(req); a.status != 401 {
		t.Errorf("got %d, want 401", a.status)
	}
	if n := len(b.sim.Books().Payments); n != 0 {
		t.Errorf("got %d payments, want none", n)
	}
	if a := b.keyed("k", tenDollars...); a.status != 200 || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %d replayed %q, want a fresh 200", a.status, a.header.Get("Idempotent-Replayed"))
	}
}

func TestARefusalByTheStateOfThingsIsKept(t *testing.T) {
	b := newBench(t)
	id := b.intent()
	refund := func() answer { return b.do("POST", "/v1/refunds", "r", "payment_intent", id) }
	first := refund()
	b.want(first, 400, "<nil>")
	b.must(b.sim.Pay(id))
	if again := refund(); again.raw != first.raw || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the stored refusal", again.status, again.raw)
	}
}

func TestAStored500IsReplayedForEver(t *testing.T) {
	for kind, made := range map[stripesim.Kind]int{stripesim.Stored500: 0, stripesim.Stored500AfterEffect: 1} {
		b := newBench(t)
		b.sim.Inject(stripesim.Fault{Call: "intent.create", Kind: kind})
		for i := range 3 {
			a := b.keyed("k", tenDollars...)
			if replayed := a.header.Get("Idempotent-Replayed") == "true"; a.status != 500 || replayed != (i > 0) {
				t.Errorf("%s, call %d: got %d replayed %v", kind, i, a.status, replayed)
			}
		}
		if n := len(b.sim.Books().Payments); n != made {
			t.Errorf("%s: got %d payments, want %d", kind, n, made)
		}
	}
}

func TestAKeyLongerThan255IsRefused(t *testing.T) {
	b := newBench(t)
	b.want(b.keyed(strings.Repeat("k", 256), tenDollars...), 400, "<nil>")
	if a := b.keyed(strings.Repeat("k", 255), tenDollars...); a.status != 200 {
		t.Errorf("got %d, want 200", a.status)
	}
}

func TestAKeyIsInUseUntilTheSlowAnswerIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := stripesim.New(stripesim.Config{})
		call := func(ctx context.Context) *httptest.ResponseRecorder {
			req := httptest.NewRequestWithContext(ctx, "POST", "/v1/payment_intents", strings.NewReader("amount=1000&currency=usd"))
			req.SetBasicAuth(stripesim.DefaultSecretKey, "")
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			sim.ServeHTTP(w, req)
			return w
		}
		sim.Inject(stripesim.Fault{Kind: stripesim.SlowAnswer, Delay: time.Minute})
		ctx, hangUp := context.WithCancel(t.Context())
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- call(ctx) }()
		synctest.Wait()
		if w := call(t.Context()); w.Code != 409 || !strings.Contains(w.Body.String(), "idempotency_key_in_use") {
			t.Errorf("got %d %s, want 409", w.Code, w.Body)
		}
		hangUp()
		made := (<-first).Body.String()
		if w := call(t.Context()); w.Code != 200 || w.Body.String() != made {
			t.Errorf("got %d %s, want the first answer", w.Code, w.Body)
		}
	})
}
