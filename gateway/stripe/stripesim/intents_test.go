package stripesim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

func TestConfirmGoesTheWayOfItsMethod(t *testing.T) {
	b := newBench(t)
	for method, c := range map[string]struct {
		status       int
		intent, code string
	}{
		"pm_card_visa":                            {200, "succeeded", "<nil>"},
		"pm_usBankAccount_processing":             {200, "processing", "<nil>"},
		"pm_card_threeDSecure2Required":           {200, "requires_action", "<nil>"},
		"pm_card_chargeDeclined":                  {402, "requires_payment_method", "generic_decline"},
		"pm_card_chargeDeclinedInsufficientFunds": {402, "requires_payment_method", "insufficient_funds"},
	} {
		id := b.intent()
		a := b.post("/v1/payment_intents/"+id+"/confirm", "payment_method", method)
		if a.status != c.status || a.text("error", "decline_code") != c.code {
			t.Errorf("%s: got %d %s", method, a.status, a.raw)
		}
		if c.status == 402 && (a.text("error", "type") != "card_error" || a.text("error", "payment_intent", "id") != id) {
			t.Errorf("%s: got %s", method, a.raw)
		}
		if got := b.get("/v1/payment_intents/" + id).text("status"); got != c.intent {
			t.Errorf("%s: got %s, want %s", method, got, c.intent)
		}
	}
}

func TestCreateMayConfirmAtOnce(t *testing.T) {
	b := newBench(t)
	good := b.post("/v1/payment_intents", "amount", "1000", "currency", "usd", "confirm", "true", "payment_method", "pm_card_visa")
	if good.status != 200 || good.text("status") != "succeeded" || good.text("amount_received") != "1000" {
		t.Errorf("got %d %s", good.status, good.raw)
	}
	bad := b.post("/v1/payment_intents", "amount", "1000", "currency", "usd", "confirm", "true", "payment_method", "pm_card_chargeDeclined")
	b.want(bad, 402, "card_declined")
	if id := bad.text("error", "payment_intent", "id"); b.get("/v1/payment_intents/"+id).status != 200 {
		t.Errorf("the declined intent %s does not exist", id)
	}
	b.want(b.post("/v1/payment_intents", "amount", "1000", "currency", "usd", "confirm", "true"), 400, "payment_intent_unexpected_state")
}

func TestADeclinedIntentStaysPayable(t *testing.T) {
	b := newBench(t)
	id := b.intent()
	b.post("/v1/payment_intents/"+id+"/confirm", "payment_method", "pm_card_chargeDeclined")
	if a := b.get("/v1/payment_intents/" + id); a.text("last_payment_error", "code") != "card_declined" || a.at("payment_method") != nil {
		t.Errorf("got %s", a.raw)
	}
	b.must(b.sim.Pay(id))
	if a := b.get("/v1/payment_intents/" + id); a.text("status") != "succeeded" || a.at("last_payment_error") != nil {
		t.Errorf("got %s", a.raw)
	}
}

func TestCancelDependsOnTheStatus(t *testing.T) {
	b := newBench(t)
	confirm := func(method string) func(string) {
		return func(id string) { b.post("/v1/payment_intents/"+id+"/confirm", "payment_method", method) }
	}
	for name, c := range map[string]struct {
		before func(string)
		status int
		intent string
	}{
		"requires_payment_method": {func(string) {}, 200, "canceled"},
		"declined":                {confirm("pm_card_chargeDeclined"), 200, "canceled"},
		"requires_action":         {confirm("pm_card_threeDSecure2Required"), 200, "canceled"},
		"processing":              {confirm("pm_usBankAccount_processing"), 400, "processing"},
		"succeeded":               {confirm("pm_card_visa"), 400, "succeeded"},
		"canceled":                {func(id string) { b.post("/v1/payment_intents/" + id + "/cancel") }, 400, "canceled"},
	} {
		id := b.intent()
		c.before(id)
		a := b.post("/v1/payment_intents/" + id + "/cancel")
		if a.status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, a.status, a.raw, c.status)
		}
		if c.status == 400 && (a.text("error", "code") != "payment_intent_unexpected_state" || a.text("error", "payment_intent", "status") != c.intent) {
			t.Errorf("%s: got %s", name, a.raw)
		}
		if got := b.payment(id).Status; got != c.intent {
			t.Errorf("%s: got %s, want %s", name, got, c.intent)
		}
	}
}

func TestACancelledIntentTakesNoMoney(t *testing.T) {
	b := newBench(t)
	id := b.intent()
	b.post("/v1/payment_intents/"+id+"/cancel", "cancellation_reason", "abandoned")
	if err := b.sim.Pay(id); err == nil {
		t.Errorf("a cancelled intent was paid")
	}
	b.want(b.post("/v1/payment_intents/"+id+"/confirm", "payment_method", "pm_card_visa"), 400, "payment_intent_unexpected_state")
	if got := types(b.deliver()); got != "payment_intent.created payment_intent.canceled" {
		t.Errorf("got %s", got)
	}
}

func TestUpdateChangesMetadataOnly(t *testing.T) {
	b := newBench(t)
	id := b.intent("metadata[a]", "1", "metadata[b]", "2", "metadata[none]", "")
	if got := b.get("/v1/payment_intents/" + id).text("metadata"); got != "map[a:1 b:2]" {
		t.Errorf("got %s", got)
	}
	a := b.post("/v1/payment_intents/"+id, "metadata[b]", "", "metadata[c]", "3", "description", "tee")
	if a.text("metadata") != "map[a:1 c:3]" || a.text("description") != "tee" {
		t.Errorf("got %s", a.raw)
	}
	b.want(b.post("/v1/payment_intents/"+id, "amount", "1"), 400, "parameter_unknown")
}

func TestSearchFindsByMetadata(t *testing.T) {
	b := newBench(t)
	one, two := b.intent("metadata[payment_id]", "p1"), b.intent("metadata[payment_id]", "p2", "metadata[order_id]", "o")
	b.must(b.sim.Pay(two))
	for query, want := range map[string]string{
		"metadata['payment_id']:'p1'":                              one,
		`metadata["payment_id"]:"p2"`:                              two,
		"metadata['payment_id']:'p3'":                              "",
		"status:'succeeded'":                                       two,
		"metadata['payment_id']:'p2' AND status:'succeeded'":       two,
		"metadata['payment_id']:'p1' AND status:'succeeded'":       "",
		"metadata['payment_id']:'p2' AND metadata['order_id']:'o'": two,
	} {
		if got := strings.Join(b.get("/v1/payment_intents/search", "query", query).ids(), " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	b.want(b.get("/v1/payment_intents/search", "query", "payment_id=p1"), 400, "<nil>")
	page := b.get("/v1/payment_intents/search", "query", "currency:'usd'", "limit", "1")
	rest := b.get("/v1/payment_intents/search", "query", "currency:'usd'", "limit", "1", "page", page.text("next_page"))
	if page.ids()[0] != two || rest.ids()[0] != one || page.at("has_more") != true || rest.at("has_more") != false {
		t.Errorf("got %s then %s", page.raw, rest.raw)
	}
}

func TestSearchMayLagBehind(t *testing.T) {
	b := newBench(t)
	b.sim.SetFaults(stripesim.Faults{SearchLag: time.Minute})
	b.intent("metadata[payment_id]", "p1")
	find := func() int {
		return len(b.get("/v1/payment_intents/search", "query", "metadata['payment_id']:'p1'").ids())
	}
	if n := find(); n != 0 {
		t.Errorf("got %d at once, want 0", n)
	}
	b.clock.Advance(time.Minute)
	if n := find(); n != 1 {
		t.Errorf("got %d after the lag, want 1", n)
	}
}

func TestAClientSecretMustFit(t *testing.T) {
	b := newBench(t)
	id := b.intent()
	secret := b.get("/v1/payment_intents/" + id).text("client_secret")
	if a := b.get("/v1/payment_intents/"+id, "client_secret", secret); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	b.want(b.get("/v1/payment_intents/"+id, "client_secret", secret+"x"), 400, "resource_missing")
}
