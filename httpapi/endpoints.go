package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

type endpointBody struct {
	URL         string   `json:"url" maxLength:"2048" doc:"https, port 443 or 8443, not of a private network"`
	Types       []string `json:"types" minItems:"1" maxItems:"50" doc:"Of events: order.paid, order.*, or *"`
	Description text     `json:"description,omitempty" maxLength:"500"`
	IfMatch     int64    `json:"if_match,omitempty" doc:"The version that is replaced"`
}

func (b *endpointBody) missing() (fields []string) {
	if b.URL == "" {
		fields = append(fields, "/url")
	}
	if len(b.Types) == 0 {
		fields = append(fields, "/types")
	}
	return fields
}

func (b *endpointBody) input() holdfast.EndpointInput {
	return holdfast.EndpointInput{URL: b.URL, Types: b.Types, Description: string(b.Description), IfMatch: b.IfMatch}
}

// newEndpoint is an endpoint at the only moment at which its secret can be read.
type newEndpoint struct {
	holdfast.Endpoint
	Secret string `json:"secret" doc:"Shown once. Verify webhook-signature with it, as Standard Webhooks says"`
}

type newSecret struct {
	Secret string `json:"secret" doc:"Shown once. The one before it goes on signing beside it for a day"`
}

type endpointList struct {
	Items []holdfast.Endpoint `json:"items"`
}

type deliveryList struct {
	Items []holdfast.Delivery `json:"items"`
}

type sinceBody struct {
	Since time.Time `json:"since" doc:"RFC 3339 in UTC"`
}

func (b *sinceBody) missing() []string {
	if b.Since.IsZero() {
		return []string{"/since"}
	}
	return nil
}

// once says why a route has no Idempotency-Key.
const once = " The secret is shown once, so there is nothing to replay and no Idempotency-Key."

func (a *API) endpoints() {
	at := func(method, path, name, summary string) route {
		return route{method: method, path: "/v1/webhook-endpoints" + path, name: name, tag: "Webhook endpoints", scope: holdfast.ScopeAdmin, summary: summary}
	}
	create := at(http.MethodPost, "", "createEndpoint", "Have events delivered to an address")
	create.status, create.about = http.StatusCreated,
		"Each event is delivered at least once, in any order, under a webhook-id that is the same on every try and replay. "+
			"Anything but a 2xx within 15 seconds is tried again for 76 hours; 410 disables the endpoint."+once
	handle(a, create, func(ctx context.Context, c *call, b *endpointBody) (newEndpoint, error) {
		e, secret, err := a.core.CreateEndpoint(ctx, holdfast.Key{}, b.input())
		return newEndpoint{e, secret}, err
	})
	handle(a, at(http.MethodGet, "", "listEndpoints", "List webhook endpoints"), func(ctx context.Context, _ *call, _ *none) (endpointList, error) {
		all, err := a.core.Endpoints(ctx)
		return endpointList{list(all)}, err
	})
	handle(a, at(http.MethodGet, "/{id}", "getEndpoint", "Read a webhook endpoint"), func(ctx context.Context, c *call, _ *none) (holdfast.Endpoint, error) {
		return a.core.Endpoint(ctx, c.id("id"))
	})
	handle(a, at(http.MethodPost, "/{id}", "updateEndpoint", "Replace address, types and description"), func(ctx context.Context, c *call, b *endpointBody) (holdfast.Endpoint, error) {
		return a.core.UpdateEndpoint(ctx, c.id("id"), b.input())
	})
	remove := at(http.MethodDelete, "/{id}", "deleteEndpoint", "End a webhook endpoint")
	remove.status = http.StatusNoContent
	handle(a, remove, func(ctx context.Context, c *call, _ *none) (none, error) {
		return none{}, a.core.DeleteEndpoint(ctx, c.id("id"))
	})
	handle(a, at(http.MethodPost, "/{id}/enable", "enableEndpoint", "Deliver again, from where it stopped"), func(ctx context.Context, c *call, _ *none) (holdfast.Endpoint, error) {
		return a.core.EnableEndpoint(ctx, c.id("id"))
	})
	handle(a, at(http.MethodPost, "/{id}/disable", "disableEndpoint", "Stop delivering"), func(ctx context.Context, c *call, _ *none) (holdfast.Endpoint, error) {
		return a.core.DisableEndpoint(ctx, c.id("id"), "by API key "+c.who.id)
	})
	rotate := at(http.MethodPost, "/{id}/rotate", "rotateEndpointSecret", "Replace the signing secret")
	rotate.about = "Deliveries are signed with both for a day." + once
	handle(a, rotate, func(ctx context.Context, c *call, _ *none) (newSecret, error) {
		secret, err := a.core.RotateEndpointSecret(ctx, c.id("id"))
		return newSecret{secret}, err
	})
	a.deliveries(at)
}

func (a *API) deliveries(at func(method, path, name, summary string) route) {
	log := at(http.MethodGet, "/{id}/deliveries", "listDeliveries", "Read the log of deliveries, the newest first")
	log.about = "The last 500; a pending one is never dropped from it."
	log.query = []*huma.Param{{Name: "state", In: "query", Schema: enumSchema("pending", "delivered", "failed")}}
	handle(a, log, func(ctx context.Context, c *call, _ *none) (deliveryList, error) {
		all, err := a.core.Deliveries(ctx, c.id("id"), holdfast.DeliveryState(c.query.Get("state")))
		return deliveryList{list(all)}, err
	})
	one := at(http.MethodPost, "/{id}/events/{event}/replay", "replayDelivery", "Deliver an event again")
	one.about, one.status = "Under the webhook-id it had, so a receiver that has it knows.", http.StatusAccepted
	handle(a, one, func(ctx context.Context, c *call, _ *none) (none, error) {
		event, err := strconv.ParseInt(c.id("event"), 10, 64)
		if err != nil || event < 1 {
			return none{}, errNotFound
		}
		return none{}, a.core.ReplayDelivery(ctx, holdfast.Key{}, c.id("id"), event)
	})
	all := at(http.MethodPost, "/{id}/replay", "replaySince", "Deliver again what has happened since a moment")
	all.status = http.StatusAccepted
	handle(a, all, func(ctx context.Context, c *call, b *sinceBody) (none, error) {
		return none{}, a.core.ReplaySince(ctx, c.id("id"), b.Since)
	})
}
