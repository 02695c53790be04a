package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

type keyBody struct {
	Name      text     `json:"name" maxLength:"500"`
	Scopes    []string `json:"scopes" enum:"read,write,admin" minItems:"1"`
	ExpiresIn *int64   `json:"expires_in_seconds,omitempty" minimum:"1" maximum:"315360000" doc:"Absent = it does not expire"`
}

func (b *keyBody) missing() (fields []string) {
	if b.Name == "" {
		fields = append(fields, "/name")
	}
	if len(b.Scopes) == 0 {
		fields = append(fields, "/scopes")
	}
	return fields
}

const maxKeyTime = 10 * 365 * 24 * time.Hour // of an API key that expires

// newKey is an API key at the only moment at which it can be read.
type newKey struct {
	holdfast.APIKey
	Key string `json:"key" doc:"Shown once: only its digest is kept"`
}

type keyList struct {
	Items []holdfast.APIKey `json:"items"`
}

// report is what Verify found.
type report struct {
	OK bool `json:"ok"`
	ledger.Report
}

// health is what a load balancer and an operator may know without a key.
type health struct {
	Status     string `json:"status" enum:"ok"`
	Store      string `json:"store"`
	Durability string `json:"durability" doc:"full, or what is weaker"`
}

type readiness struct {
	Ready bool `json:"ready"`
}

func (a *API) admin() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/keys", name: "createKey", tag: "Administration", scope: holdfast.ScopeAdmin,
		summary: "Create an API key",
		about:   "The key is shown once and can't be shown again, so there is nothing to replay and no Idempotency-Key: if the answer is lost, list the keys, revoke this one and create another.",
		status:  http.StatusCreated,
	}, createKey)
	handle(a, route{
		method: http.MethodGet, path: "/v1/keys", name: "listKeys", tag: "Administration", scope: holdfast.ScopeAdmin,
		summary: "List API keys",
	}, func(ctx context.Context, _ *call, _ *none) (keyList, error) {
		keys, err := a.core.Keys(ctx)
		return keyList{list(keys)}, err
	})
	handle(a, route{
		method: http.MethodDelete, path: "/v1/keys/{id}", name: "revokeKey", tag: "Administration", scope: holdfast.ScopeAdmin,
		summary: "Revoke an API key", status: http.StatusNoContent,
	}, func(ctx context.Context, c *call, _ *none) (none, error) {
		return none{}, a.core.RevokeKey(ctx, c.id("id"))
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/verify", name: "verify", tag: "Administration", scope: holdfast.ScopeAdmin,
		summary: "Recompute every balance, hold and document from the journal", about: "Changes nothing, and needs no Idempotency-Key.",
	}, func(ctx context.Context, _ *call, _ *none) (report, error) {
		r, err := a.core.Verify(ctx, nil)
		r.Problems = list(r.Problems)
		return report{r.OK(), r}, err
	})
	handle(a, route{
		method: http.MethodPost, path: "/v1/reconciliations", name: "reconcile", tag: "Administration", scope: holdfast.ScopeAdmin,
		summary: "Hold a gateway's statement of a day against the books",
		about: "Fetches the statement from the gateway, books fees and settlements of lines that agree, once, and lists every difference with what to do. " +
			"To do it again changes nothing, so it needs no Idempotency-Key. For a statement from a file, or a long one, there is the command holdfast reconcile.",
	}, func(ctx context.Context, _ *call, b *reconcileBody) (holdfast.Reconciliation, error) {
		return a.core.Reconcile(ctx, holdfast.ReconcileInput{Gateway: b.Gateway, Day: b.Day}, nil)
	})
	handle(a, route{
		method: http.MethodGet, path: "/healthz", name: "health", tag: "Operation",
		summary: "Is it alive, and how durable is it?",
	}, func(ctx context.Context, _ *call, _ *none) (health, error) {
		h, err := a.core.Health(ctx)
		return health{"ok", h.Store, h.Durability}, err
	})
	handle(a, route{
		method: http.MethodGet, path: "/readyz", name: "ready", tag: "Operation",
		summary: "Should new work be sent here?", also: []int{http.StatusServiceUnavailable},
	}, func(ctx context.Context, c *call, _ *none) (readiness, error) {
		_, err := a.core.Health(ctx)
		if err != nil || a.draining.Load() {
			c.status = http.StatusServiceUnavailable
		}
		return readiness{c.status == http.StatusOK}, nil
	})
}

type reconcileBody struct {
	Gateway string `json:"gateway,omitempty" doc:"Absent = the only one"`
	Day     string `json:"day" format:"date" doc:"In the gateway's own zone: Stripe's days are UTC, those of Alipay and WeChat Pay Beijing's"`
}

func (b *reconcileBody) missing() []string {
	if b.Day == "" {
		return []string{"/day"}
	}
	return nil
}

func createKey(ctx context.Context, c *call, b *keyBody) (newKey, error) {
	var ttl time.Duration
	if b.ExpiresIn != nil {
		if *b.ExpiresIn < 1 || *b.ExpiresIn > int64(maxKeyTime/time.Second) {
			return newKey{}, &refusal{code: holdfast.CodeInvalidField, detail: "must be 1 second to ten years", field: "/expires_in_seconds"}
		}
		ttl = time.Duration(*b.ExpiresIn) * time.Second
	}
	for _, s := range b.Scopes {
		if s != holdfast.ScopeRead && s != holdfast.ScopeWrite && s != holdfast.ScopeAdmin {
			return newKey{}, &refusal{code: holdfast.CodeInvalidField, detail: "scopes are read, write and admin", field: "/scopes"}
		}
	}
	plain, k, err := c.api.core.CreateKey(ctx, holdfast.Key{}, string(b.Name), b.Scopes, ttl)
	return newKey{k, plain}, err
}
