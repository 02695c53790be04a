package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

// How long a request may wait for the line. What a client that knows nothing of
// lines expects is an order: so it waits a while by itself.
const (
	MaxWait     = 15 * time.Second // less than requestTime
	defaultWait = 5 * time.Second  // of an order; reading a ticket waits only if asked to
)

// waiting is the answer to an order that is in the line.
type waiting struct {
	Ticket       string `json:"ticket"`
	ClientSecret string `json:"client_secret" doc:"Lets the buyer's page read this ticket: send it as Client-Secret"`
	State        string `json:"state" enum:"waiting"`
	Position     int64  `json:"position" doc:"1 = next; 0 = not known yet"`
	ETA          int64  `json:"eta_ms" doc:"An estimate, in milliseconds; 0 = not known yet"`
}

func (a *API) waiting(t holdfast.Ticket) waiting {
	return waiting{t.ID, a.core.TicketSecret(t.ID), string(t.State), t.Position, t.ETA.Milliseconds()}
}

// ticket is where an order is.
type ticket struct {
	Ticket   string        `json:"ticket"`
	State    string        `json:"state" enum:"waiting,held,refused,unknown"`
	Position int64         `json:"position,omitempty" doc:"With waiting: 1 = next; absent = not known yet"`
	ETA      int64         `json:"eta_ms,omitempty" doc:"With waiting: an estimate, in milliseconds; absent = not known yet"`
	Order    *placed       `json:"order,omitempty" doc:"With held: the order as it was held, and its client_secret; what became of it since, the order says"`
	Refusal  *orderRefusal `json:"refusal,omitempty" doc:"With refused"`
}

// orderRefusal is why an order was not placed: what the problem would have said.
type orderRefusal struct {
	Code      string        `json:"code"`
	Detail    string        `json:"detail"`
	SKU       string        `json:"sku,omitempty"`
	Available *int64        `json:"available,omitempty" doc:"Pieces left: with sold_out of the item, with customer_limit for the customer"`
	OpensAt   holdfast.Time `json:"opens_at,omitzero" doc:"With sale_not_open"`
}

func (a *API) tickets() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/tickets/{ticket}", name: "getTicket", tag: "Orders", scope: holdfast.ScopeRead, ticket: true,
		summary: "Ask where an order in the line is",
		about: "The ticket is that of the 202, or what it is made of: the id of the API key, a dot, and the Idempotency-Key of the order. " +
			"held is found for as long as the order is; refused is remembered for a while. " +
			"unknown: it waits nowhere and there is no order; place it again with the same Idempotency-Key. With Prefer: wait=N the answer comes with the decision.",
		header: []*huma.Param{preferHeader()},
	}, getTicket)
}

func getTicket(ctx context.Context, c *call, _ *none) (ticket, error) {
	t, err := c.api.core.Ticket(ctx, c.id("ticket"), c.patience(0))
	if err != nil {
		return ticket{}, err
	}
	out := ticket{Ticket: t.ID, State: string(t.State), Position: t.Position, ETA: t.ETA.Milliseconds()}
	if t.Order != nil {
		p := c.api.placed(forBuyer(c, *t.Order))
		out.Order = &p
	}
	if r := t.Refusal; r != nil {
		out.Refusal = &orderRefusal{Code: r.Code, Detail: r.Detail, SKU: r.SKU, OpensAt: r.OpensAt, Available: available(r)}
	}
	return out, nil
}

// available is what is left, where a rejection says so.
func available(r *holdfast.Rejection) *int64 {
	switch r.Code {
	case holdfast.CodeSoldOut, holdfast.CodeCustomerLimit,
		holdfast.CodeInsufficientFunds, holdfast.CodeCeiling, holdfast.CodeDailyLimit, holdfast.CodePayoutLimit:
		return &r.Available
	}
	return nil
}

func preferHeader() *huma.Param {
	return &huma.Param{
		Name: "Prefer", In: "header", Schema: stringSchema(),
		Description: "wait=N: wait N seconds for the decision, 15 at most; respond-async: do not wait. RFC 7240; Preference-Applied says what was done",
	}
}

// patience is how long the client prefers to wait, otherwise otherwise. What it
// can't mean is ignored, as RFC 7240 asks.
func (c *call) patience(otherwise time.Duration) time.Duration {
	for _, header := range c.r.Header["Prefer"] {
		for preference := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
			if strings.EqualFold(name, "respond-async") {
				c.w.Header().Set("Preference-Applied", "respond-async")
				return 0
			}
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if !strings.EqualFold(strings.TrimSpace(name), "wait") || err != nil {
				continue
			}
			wait := min(time.Duration(n)*time.Second, MaxWait)
			c.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
			return wait
		}
	}
	return otherwise
}

// ticketForm says whether s can be a ticket: an API key's id and an
// Idempotency-Key.
func ticketForm(s string) bool {
	scope, key, _ := strings.Cut(s, ".")
	return word(scope, 1, MaxID) && word(key, MinKey, MaxKey)
}
