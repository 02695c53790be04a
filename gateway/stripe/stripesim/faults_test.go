package stripesim_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestALostAnswerHasItsEffect(t *testing.T) {
	for _, kind := range []stripesim.Kind{stripesim.LostAnswer, stripesim.BadGateway, stripesim.TornAnswer} {
		b := newBench(t)
		b.sim.Inject(stripesim.Fault{Call: "intent.create", Kind: kind})
		first := b.keyed("k", tenDollars...)
		if first.err == nil {
			t.Errorf("%s: got a readable answer %d %s", kind, first.status, first.raw)
		}
		again := b.keyed("k", tenDollars...)
		if again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %d replayed %q", kind, again.status, again.header.Get("Idempotent-Replayed"))
		}
		if n := len(b.sim.Books().Payments); n != 1 {
			t.Errorf("%s: got %d payments, want 1", kind, n)
		}
	}
}

func TestAnInjectedFaultHitsOneMatchingCall(t *testing.T) {
	b := newBench(t)
	b.sim.Inject(stripesim.Fault{Call: "refund.create", Kind: stripesim.Unavailable})
	b.sim.Inject(stripesim.Fault{Call: "refund.create", Kind: stripesim.RateLimited})
	id := b.paidIntent()
	b.want(b.refund(id), 503, "<nil>")
	b.want(b.refund(id), 429, "rate_limit")
	if a := b.refund(id); a.status != 200 {
		t.Errorf("got %d %s, want 200", a.status, a.raw)
	}
}

func TestTheBuyerPaysJustBeforeTheClose(t *testing.T) {
	b := newBench(t)
	b.sim.SetFaults(stripesim.Faults{PaidBeforeClose: 1})
	cs := b.session()
	b.want(b.post("/v1/checkout/sessions/"+cs+"/expire"), 400, "<nil>")
	if a := b.get("/v1/checkout/sessions/" + cs); a.text("payment_status") != "paid" {
		t.Errorf("got %s, want paid", a.text("payment_status"))
	}
	pi := b.intent()
	a := b.post("/v1/payment_intents/" + pi + "/cancel")
	b.want(a, 400, "payment_intent_unexpected_state")
	if a.text("error", "payment_intent", "status") != "succeeded" {
		t.Errorf("got %s", a.raw)
	}
}

func TestTheDialAtOneAlwaysHappens(t *testing.T) {
	for name, c := range map[string]struct {
		faults stripesim.Faults
		ok     func(answer) bool
	}{
		"unavailable":  {stripesim.Faults{Unavailable: 1}, func(a answer) bool { return a.status == 503 }},
		"rate limited": {stripesim.Faults{RateLimited: 1}, func(a answer) bool { return a.status == 429 }},
		"key in use":   {stripesim.Faults{KeyInUse: 1}, func(a answer) bool { return a.status == 409 }},
		"stored 500":   {stripesim.Faults{Stored500: 1}, func(a answer) bool { return a.status == 500 }},
		"lost answer":  {stripesim.Faults{LostAnswer: 1}, func(a answer) bool { return a.err != nil }},
	} {
		b := newBench(t)
		b.sim.SetFaults(c.faults)
		if a := b.keyed("k", tenDollars...); !c.ok(a) {
			t.Errorf("%s: got %d %s", name, a.status, a.raw)
		}
		b.sim.SetFaults(stripesim.Faults{})
		if a := b.keyed("k2", tenDollars...); a.status != 200 {
			t.Errorf("%s: got %d after the dial was turned back", name, a.status)
		}
	}
}

func TestOneSeedGivesOneCourseOfFaults(t *testing.T) {
	course := func() []int {
		b := newBench(t)
		b.sim.SetFaults(stripesim.Faults{Unavailable: 0.2, Stored500: 0.3, LostAnswer: 0.2})
		var statuses []int
		for range 40 {
			statuses = append(statuses, b.post("/v1/payment_intents", tenDollars...).status)
		}
		return append(statuses, len(b.sim.Books().Payments))
	}
	one, two := course(), course()
	if !slices.Equal(one, two) {
		t.Errorf("got %v and %v", one, two)
	}
	for _, status := range []int{0, 200, 500, 503} {
		if !slices.Contains(one, status) {
			t.Errorf("no answer %d in %v", status, one)
		}
	}
}

func TestTheDialIsSetOverHTTP(t *testing.T) {
	b := newBench(t)
	put := func(body string) int {
		req, _ := http.NewRequest("PUT", b.url+"/_sim/faults", reader(body))
		return b.send(req).status
	}
	want := stripesim.Faults{LoseNotice: 0.5, SlowAnswer: 1500 * time.Millisecond, SearchLag: time.Minute}
	body, err := json.Marshal(want)
	b.must(err)
	if status := put(string(body)); status != 200 {
		t.Fatalf("got %d", status)
	}
	for _, bad := range []string{`{"lose_notice": 2}`, `{"lose_notice": -0.1}`, `{"loose_notice": 1}`, `{"slow_answer": "-1s"}`, `{"slow_answer": "soon"}`, `[]`, ``} {
		if status := put(bad); status != 400 {
			t.Errorf("%s: got %d, want 400", bad, status)
		}
	}
	var got stripesim.Faults
	b.must(json.Unmarshal([]byte(b.get("/_sim/faults").raw), &got))
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEveryFieldOfTheDialIsRead(t *testing.T) {
	var f stripesim.Faults
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Float64 {
			v.Field(i).SetFloat(0.25)
		} else {
			v.Field(i).SetInt(int64(time.Second))
		}
	}
	body, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got stripesim.Faults
	if err := json.Unmarshal(body, &got); err != nil || got != f {
		t.Errorf("got %+v %v, want %+v", got, err, f)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil || len(fields) != v.NumField() {
		t.Errorf("got %d JSON fields, want %d", len(fields), v.NumField())
	}
	for name, value := range fields {
		wrong := any(2)
		if _, isText := value.(string); isText {
			wrong = "-2s"
		}
		bad, _ := json.Marshal(map[string]any{name: wrong})
		if err := json.Unmarshal(bad, &got); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
