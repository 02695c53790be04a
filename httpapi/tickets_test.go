package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// openQueue is a shop with a line, and what makes the line stand still until go
// is called: somebody else is writing.
func openQueue(t *testing.T) (s *shop, halt func() (proceed func())) {
	t.Helper()
	s = openShopWith(t, httpapi.Options{}, holdfast.Options{Preset: "queued"})
	db, err := driver.Open("file:" + s.file)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	run := func(statement string) {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Error(err)
		}
	}
	return s, func() func() {
		run("BEGIN IMMEDIATE")
		return func() { run("ROLLBACK") }
	}
}

// queue is keyed without waiting.
func (s *shop) queue(key, body string) answer {
	s.t.Helper()
	return s.send(http.MethodPost, "/v1/orders", body, "Authorization: Bearer "+s.key, "Idempotency-Key: "+key,
		"Content-Type: application/json", "Prefer: respond-async")
}

type ticketSeen struct {
	Ticket       string          `json:"ticket"`
	ClientSecret string          `json:"client_secret"`
	State        string          `json:"state"`
	Position     int64           `json:"position"`
	Order        json.RawMessage `json:"order"`
	Refusal      httpapi.Problem `json:"refusal"`
}

// ticket asks for a ticket, patiently.
func (s *shop) ticket(id string, headers ...string) (t ticketSeen) {
	s.t.Helper()
	s.do(http.MethodGet, "/v1/tickets/"+id, "", append(headers, "Prefer: wait=15")...).want(200, "").into(&t)
	return t
}

// position asks until the ticket is in the line.
func (s *shop) position(id string) int64 {
	s.t.Helper()
	for {
		var t ticketSeen
		s.do(http.MethodGet, "/v1/tickets/"+id, "").want(200, "").into(&t)
		if t.State != "waiting" {
			s.t.Fatalf("got %+v, want waiting", t)
		}
		if t.Position > 0 {
			return t.Position
		}
	}
}

func TestWhoDoesNotWaitGetsATicket(t *testing.T) {
	s, halt := openQueue(t)
	proceed := halt()
	var first, again ticketSeen
	a := s.queue(firstKey, oneTee).want(202, "")
	a.into(&first)
	if first.State != "waiting" || a.header.Get("Location") != "/v1/tickets/"+first.Ticket || a.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("got %v %s", a.header, a.body)
	}
	s.queue(firstKey, oneTee).want(202, "").into(&again) // a double click
	if again.Ticket != first.Ticket || again.ClientSecret != first.ClientSecret {
		t.Errorf("got %+v, want the ticket of %+v", again, first)
	}
	s.queue(firstKey, line("2")).want(422, "idempotency_key_reused")
	if got := s.position(first.Ticket); got != 1 {
		t.Errorf("got position %d, want 1", got)
	}
	s.queue(secondKey, oneTee).want(202, "").into(&again)
	if got := s.position(again.Ticket); got != 2 {
		t.Errorf("got position %d, want 2", got)
	}
	proceed()
	s.ticket(again.Ticket)
	held := s.ticket(first.Ticket)
	if held.State != "held" {
		t.Fatalf("got %+v, want held", held)
	}
	placed := s.queue(firstKey, oneTee).want(201, "")
	if placed.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(bytes.TrimSpace(placed.body), held.Order) {
		t.Errorf("got %s, want %s", placed.body, held.Order)
	}
	if got := s.available(); got != openingStock-2 {
		t.Errorf("got %d available, want %d", got, openingStock-2)
	}
}

func TestWhoWaitsGetsTheOrder(t *testing.T) {
	s, _ := openQueue(t)
	a := s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "")
	if a.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a replay")
	}
	b := s.do(http.MethodPost, "/v1/orders", oneTee, "Prefer: wait=100").want(201, "")
	if got := b.header.Get("Preference-Applied"); got != "wait=15" {
		t.Errorf("got Preference-Applied %q, want wait=15", got)
	}
	for _, nonsense := range []string{"wait", "wait=-1", "wait=x", "return=minimal", "handling=lenient, wait=1e9"} {
		c := s.do(http.MethodPost, "/v1/orders", oneTee, "Prefer: "+nonsense).want(201, "")
		if got := c.header.Get("Preference-Applied"); got != "" {
			t.Errorf("%s: got Preference-Applied %q, want none", nonsense, got)
		}
	}
}

func TestATicketSaysWhyItWasRefused(t *testing.T) {
	s, halt := openQueue(t)
	proceed := halt()
	var all, late ticketSeen
	s.queue(firstKey, line("100")).want(202, "").into(&all)
	s.queue(secondKey, oneTee).want(202, "").into(&late)
	proceed()
	if got := s.ticket(all.Ticket); got.State != "held" {
		t.Errorf("got %+v, want held", got)
	}
	got := s.ticket(late.Ticket)
	if got.State != "refused" || got.Refusal.Code != "sold_out" || got.Refusal.SKU != "tee" || *got.Refusal.Available != 0 {
		t.Errorf("got %+v, want refused as sold_out", got)
	}
	var p httpapi.Problem
	s.queue(secondKey, oneTee).want(409, "sold_out").into(&p)
	if p.Detail != got.Refusal.Detail {
		t.Errorf("got %q, want %q", got.Refusal.Detail, p.Detail)
	}
}

func TestTheLineKeepsTheLimitOfEachCustomer(t *testing.T) {
	s, halt := openQueue(t)
	s.do(http.MethodPost, "/v1/sales", `{"sku":"tee","opens_at":"2020-01-01T00:00:00Z","closes_at":"2120-01-01T00:00:00Z","price":100,"per_customer":1}`).want(201, "")
	const ann = `{"lines":[{"sku":"tee","quantity":1}],"customer":"ann"}`
	proceed := halt()
	var first, second, greedy ticketSeen
	s.queue(firstKey, ann).want(202, "").into(&first)
	s.queue(secondKey, ann).want(202, "").into(&second)
	s.queue("third-key-0123456789", `{"lines":[{"sku":"tee","quantity":2}],"customer":"bob"}`).want(202, "").into(&greedy)
	proceed()
	if got := s.ticket(greedy.Ticket); got.State != "refused" || got.Refusal.Code != "customer_limit" || *got.Refusal.Available != 1 {
		t.Errorf("got %+v, want refused as customer_limit with 1 left", got)
	}
	if got := s.ticket(first.Ticket); got.State != "held" {
		t.Errorf("got %+v, want held", got)
	}
	got := s.ticket(second.Ticket)
	if got.State != "refused" || got.Refusal.Code != "customer_limit" || *got.Refusal.Available != 0 {
		t.Errorf("got %+v, want refused as customer_limit", got)
	}
	s.queue(secondKey, ann).want(429, "customer_limit")
}

func TestATicketIsTheBuyersAndTheShops(t *testing.T) {
	s, halt := openQueue(t)
	reader := s.newKey(holdfast.ScopeRead)
	proceed := halt()
	var mine ticketSeen
	s.queue(firstKey, `{"lines":[{"sku":"tee","quantity":1}],"metadata":{"note":"internal"}}`).want(202, "").into(&mine)
	path := "/v1/tickets/" + mine.Ticket
	s.send(http.MethodGet, path, "", "Client-Secret: "+mine.ClientSecret).want(200, "")
	s.send(http.MethodGet, path, "", "Client-Secret: hft_wrong").want(404, "not_found")
	s.send(http.MethodGet, path+"x", "", "Client-Secret: "+mine.ClientSecret).want(404, "not_found")
	s.send(http.MethodGet, path, "").want(401, "unauthenticated")
	s.send(http.MethodGet, path, "", "Authorization: Bearer "+reader).want(200, "")
	s.send(http.MethodGet, "/v1/orders/x", "", "Client-Secret: "+mine.ClientSecret).want(404, "not_found")
	for _, bad := range []string{"x", "x.y", "." + firstKey, "x." + firstKey + ".y", "x." + strings.Repeat("y", 129)} {
		s.do(http.MethodGet, "/v1/tickets/"+bad, "").want(400, "invalid_id")
	}
	proceed()
	if got := s.ticket(mine.Ticket); got.State != "held" {
		t.Errorf("got %+v, want held", got)
	}
	a := s.send(http.MethodGet, path, "", "Client-Secret: "+mine.ClientSecret).want(200, "")
	if bytes.Contains(a.body, []byte("internal")) {
		t.Errorf("the buyer sees metadata: %s", a.body)
	}
	var seen struct {
		Order struct {
			ID           string `json:"id"`
			ClientSecret string `json:"client_secret"`
		} `json:"order"`
	}
	a.into(&seen)
	s.send(http.MethodGet, "/v1/orders/"+seen.Order.ID, "", "Client-Secret: "+seen.Order.ClientSecret).want(200, "")
}

func TestATicketIsFoundByEveryProcessAndWithoutALine(t *testing.T) {
	s, _ := openQueue(t)
	id := s.keyed(firstKey, http.MethodPost, "/v1/orders", oneTee).want(201, "").str("id")
	keys, err := s.core.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ticket := keys[0].ID + "." + firstKey
	pay := keys[0].ID + "." + secondKey
	s.keyed(secondKey, http.MethodPost, "/v1/orders/"+id+"/cancel", "").want(200, "")
	other, err := holdfast.Open(t.Context(), "sqlite:"+s.file, holdfast.Options{Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for name, core := range map[string]*holdfast.Holdfast{"the same": s.core, "another": other} {
		for want, ticket := range map[holdfast.TicketState]string{
			holdfast.TicketHeld: ticket, holdfast.TicketUnknown: pay, // the key of something else
		} {
			got, err := core.Ticket(t.Context(), ticket, 0)
			if err != nil || got.State != want {
				t.Errorf("%s process: got %+v, %v, want %s", name, got, err, want)
			}
		}
	}
	if got := s.ticket(keys[0].ID + ".never-seen-0123456789"); got.State != "unknown" {
		t.Errorf("got %+v, want unknown", got)
	}
}
