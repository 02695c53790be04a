package httpapi

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

// Limits of stream tokens.
const (
	tokenLife = 5 * time.Minute // to begin a stream
	maxToken  = 4 << 10         // bytes
)

const streamToken = "stream_token" // the parameter

// streamGrant is what a stream token says: who may listen to what.
//
// A browser's EventSource and WebSocket send no headers, so something has to
// stand in the URL, and URLs end up in logs. An API key or a client secret must
// not. A token shows no more than its topics, to read only, and lets nobody in
// after five minutes. It is signed, not stored, so every process knows it.
type streamGrant struct {
	Caller string   `json:"caller"`
	Buyer  bool     `json:"buyer,omitempty"`
	Topics []string `json:"topics"` // none = every event
	Until  int64    `json:"until"`  // Unix ms
}

type pushToken struct {
	Token     string        `json:"token" doc:"Send it as stream_token"`
	ExpiresAt holdfast.Time `json:"expires_at" doc:"A stream that has begun lasts longer"`
}

func (a *API) push(after, resume *huma.Param) {
	topic := &huma.Param{Name: "topic", In: "query", Description: "May be repeated; absent = every event", Schema: &huma.Schema{Type: huma.TypeArray, Items: stringSchema()}}
	token := &huma.Param{Name: streamToken, In: "query", Description: "Instead of a header and of topic, for EventSource and WebSocket in a browser", Schema: stringSchema()}
	a.stream(route{
		method: http.MethodGet, path: "/v1/push", name: "push", tag: "Events", scope: holdfast.ScopeRead, push: true,
		summary: "Hear of orders, stock, sales and tickets as they change",
		about: "order/{id}, sale/{id}, item/{sku}, payout/{id}, account/{id}, transfer/{id} and hold/{id} give what happened; stock/{sku} and ticket/{ticket} what is, at once and whenever it changes. " +
			"Server sent events, or a WebSocket if the request asks for an upgrade, with the same JSON: id, type, topic, at, data. " +
			"Going on behind an id misses nothing, on any server of the shop. A stream ends after an hour or so; come back. " +
			"With the client_secret of an order or a ticket its own topic may be heard, alone.",
		query: []*huma.Param{topic, after, token}, header: []*huma.Param{resume},
	}, func(c *call) []string { return c.who.topics })
	handle(a, route{
		method: http.MethodPost, path: "/v1/push/tokens", name: "createPushToken", tag: "Events", scope: holdfast.ScopeRead, push: true,
		summary: "Let a browser listen",
		about:   "For five minutes, the token begins streams of the topics and opens nothing else. It is not stored, so there is no Idempotency-Key.",
		query:   []*huma.Param{topic}, status: http.StatusCreated,
	}, createPushToken)
}

func createPushToken(ctx context.Context, c *call, _ *none) (pushToken, error) {
	now, err := c.api.core.Ledger().Now(ctx)
	if err != nil {
		return pushToken{}, err
	}
	g := streamGrant{c.who.id, c.who.buyer, c.who.topics, now + tokenLife.Milliseconds()}
	if err := c.api.core.CheckTopics(ctx, g.Topics); err != nil {
		return pushToken{}, err
	}
	doc, err := json.Marshal(g)
	if err != nil {
		return pushToken{}, err
	}
	text := base64.RawURLEncoding.EncodeToString(doc)
	token := text + "." + base64.RawURLEncoding.EncodeToString(c.api.core.MAC(streamToken, text))
	if len(token) > maxToken {
		return pushToken{}, refuse(holdfast.CodeTooManyItems, "the topics are too long for a token")
	}
	return pushToken{token, holdfast.Time(g.Until)}, nil
}

// identifyToken lets in who has a stream token.
func (a *API) identifyToken(ctx context.Context, r *http.Request, q map[string][]string) (caller, error) {
	text, mac, _ := strings.Cut(q[streamToken][0], ".")
	sum, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || !hmac.Equal(sum, a.core.MAC(streamToken, text)) {
		return caller{}, a.failed(r, streamToken, refuse(codeStreamToken, "the stream token is not one"))
	}
	if len(q["topic"]) > 0 {
		return caller{}, refuse(codeInvalidParameter, "the topics are in the stream token")
	}
	now, err := a.core.Ledger().Now(ctx)
	if err != nil {
		return caller{}, err
	}
	var g streamGrant
	doc, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(doc, &g)
	}
	if err != nil || now >= g.Until {
		return caller{}, refuse(codeStreamToken, "the stream token is over: get a new one")
	}
	return caller{id: g.Caller, buyer: g.Buyer, topics: g.Topics}, nil
}

// identifyListener lets in the buyer's page whose secret opens the one topic.
func (a *API) identifyListener(r *http.Request, topics []string, secret string) (caller, error) {
	if len(topics) != 1 {
		return caller{}, refuse(codeForbiddenScope, "a client secret opens its own topic, alone")
	}
	kind, id, _ := strings.Cut(topics[0], "/")
	if kind == holdfast.TopicOrder && a.core.CheckClientSecret(id, secret) ||
		kind == holdfast.TopicTicket && a.core.CheckTicketSecret(id, secret) {
		return caller{id: kind + ":" + id, buyer: true, topics: topics}, nil
	}
	return caller{}, a.failed(r, topics[0], errNotFound)
}

func kindOf(topic string) string {
	kind, _, _ := strings.Cut(topic, "/")
	return kind
}

// topicsAsked are the topics of a request, each once.
func topicsAsked(q map[string][]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(q["topic"])))
}
