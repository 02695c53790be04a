package holdfast

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Endpoint is an address of the shop's to which events are delivered, in the
// form of Standard Webhooks.
type Endpoint struct {
	ID          string        `json:"id"`
	Version     int64         `json:"version"`
	URL         string        `json:"url"`
	Types       []string      `json:"types"` // of events: "order.paid", "order.*" or "*"
	Description string        `json:"description,omitempty"`
	State       EndpointState `json:"state"`
	Reason      string        `json:"reason,omitempty"` // why it was disabled
	CreatedAt   Time          `json:"created_at"`
	ChangedAt   Time          `json:"changed_at"`
}

// EndpointState says whether an endpoint is delivered to.
type EndpointState string

const (
	EndpointEnabled  EndpointState = "enabled"
	EndpointDisabled EndpointState = "disabled" // what happens meanwhile is delivered once it is enabled
	EndpointDeleted  EndpointState = "deleted"
)

// EndpointInput is what a caller says of an endpoint.
type EndpointInput struct {
	URL         string   // https, without user, fragment or another port than 443 and 8443; not of a private network
	Types       []string // 1..MaxEndpointTypes
	Description string   // at most MaxText characters
	IfMatch     int64    // the version that is replaced; 0 = whichever
}

// Limits of endpoints.
const (
	MaxEndpoints     = 100 // that are not deleted
	MaxEndpointTypes = 50
	maxSecrets       = 3              // that sign at once
	secretOverlap    = 24 * time.Hour // for which a replaced secret goes on signing
	secretBytes      = 32             // of a secret
)

const (
	kindEndpoint = "endpoint"
	kindCursor   = "cursor" // of an endpoint: what of the feed has been taken for delivery
)

// Sealer keeps the secrets of endpoints unreadable in the store.
type Sealer interface {
	Seal(secret string) string
	Open(sealed string) (string, error)
}

// endpoint is an Endpoint as it is stored.
type endpoint struct {
	Endpoint
	Secrets []sealedSecret `json:"secrets"` // the newest first
}

type sealedSecret struct {
	Sealed string `json:"sealed"`
	Until  Time   `json:"until,omitzero"` // when it ends; 0 = it is the one
}

func (e endpoint) record() (ledger.Record, error) {
	body, err := marshalled(e, kindEndpoint, e.ID)
	return ledger.Record{Kind: kindEndpoint, ID: e.ID, Version: e.Version, State: string(e.State), Body: body}, err
}

// cursor is how far an endpoint has come. Its version is the fence between
// processes: whoever writes the next one has taken the events in between.
type cursor struct {
	Endpoint string `json:"endpoint"`
	Version  int64  `json:"version"`
	At       int64  `json:"at"`    // of the last event that was looked at
	Count    int64  `json:"count"` // of deliveries that were begun
}

func (c cursor) record() (ledger.Record, error) {
	body, err := marshalled(c, kindCursor, c.Endpoint)
	return ledger.Record{Kind: kindCursor, ID: c.Endpoint, Version: c.Version, Body: body}, err
}

var typeForm = regexp.MustCompile(`^(\*|[a-z_]{1,40}\.(\*|[a-z_]{1,40}))$`)

func (in EndpointInput) check(private bool) error {
	if err := checkHookURL(in.URL, private); err != nil {
		return reject(CodeURLNotAllowed, "url: %v", err)
	}
	if len(in.Types) == 0 || len(in.Types) > MaxEndpointTypes {
		return reject(CodeTooManyItems, "types: 1 to %d", MaxEndpointTypes)
	}
	for _, t := range in.Types {
		if !typeForm.MatchString(t) {
			return reject(CodeInvalidField, "types: such as order.paid, order.* or *")
		}
	}
	if !text(in.Description) {
		return reject(CodeInvalidField, "description: at most %d characters", MaxText)
	}
	return nil
}

// wants says whether events of this type are delivered.
func (e Endpoint) wants(kind string) bool {
	group, _, _ := strings.Cut(kind, ".")
	return slices.ContainsFunc(e.Types, func(t string) bool { return t == kind || t == "*" || t == group+".*" })
}

// newSecret makes a signing secret, plain and sealed.
func (h *Holdfast) newSecret() (plain string, s sealedSecret, err error) {
	if h.o.Sealer == nil {
		return "", s, reject(CodeSealerRequired, "this server has no master key to keep signing secrets under")
	}
	raw := make([]byte, secretBytes)
	rand.Read(raw) // never fails
	plain = "whsec_" + base64.StdEncoding.EncodeToString(raw)
	return plain, sealedSecret{Sealed: h.o.Sealer.Seal(plain)}, nil
}

// CreateEndpoint makes an endpoint that hears what happens from now on, once for
// key. Its signing secret is given here and never again: it is "" when the endpoint
// had been made before.
func (h *Holdfast) CreateEndpoint(ctx context.Context, key Key, in EndpointInput) (e Endpoint, secret string, err error) {
	if a, ok, err := replayed[Endpoint](ctx, h, key); ok || err != nil {
		return a.Value, "", err
	}
	if err := in.check(h.o.PrivateEndpoints); err != nil {
		return e, "", err
	}
	secret, sealed, err := h.newSecret()
	if err != nil {
		return e, "", err
	}
	all, err := h.Endpoints(ctx)
	if err != nil {
		return e, "", err
	}
	if len(all) >= MaxEndpoints {
		return e, "", reject(CodeTooManyItems, "at most %d endpoints", MaxEndpoints)
	}
	now, err := h.now(ctx)
	if err != nil {
		return e, "", err
	}
	head, err := h.store.Head(ctx)
	if err != nil {
		return e, "", fmt.Errorf("holdfast: create endpoint: %w", err)
	}
	id, err := newID()
	if err != nil {
		return e, "", err
	}
	c := cursor{Endpoint: id, Version: 1, At: head.Events}
	a, err := put(ctx, h, key, func() (ledger.Entry, Endpoint, error) {
		made := endpoint{Endpoint{ID: id, URL: in.URL, Types: in.Types, Description: in.Description, State: EndpointEnabled, CreatedAt: now}, []sealedSecret{sealed}}
		return endpointEntry(made, now, "endpoint.created", c)
	})
	if a.Replayed {
		secret = ""
	}
	h.work.ringHooks()
	return a.Value, secret, err
}

// endpointEntry writes the next version of an endpoint, and its cursor if that
// has changed too.
func endpointEntry(e endpoint, now Time, event string, cursors ...cursor) (ledger.Entry, Endpoint, error) {
	e.Version++
	e.ChangedAt = now
	r, err := e.record()
	if err != nil {
		return ledger.Entry{}, e.Endpoint, err
	}
	body, err := marshalled(e.Endpoint, kindEndpoint, e.ID)
	entry := ledger.Entry{Records: []ledger.Record{r}, Events: []ledger.Event{{Type: event, Subject: e.ID, Body: body}}}
	for _, c := range cursors {
		r, err = c.record()
		entry.Records = append(entry.Records, r)
	}
	return entry, e.Endpoint, err
}

// changeEndpoint writes what change makes of an endpoint; an event of "" changes
// nothing.
func (h *Holdfast) changeEndpoint(ctx context.Context, id string, change func(e *endpoint, now Time) (event string, err error)) (Endpoint, error) {
	now, err := h.now(ctx)
	if err != nil {
		return Endpoint{}, err
	}
	for range maxConflict {
		e, err := h.endpoint(ctx, id)
		if err != nil {
			return Endpoint{}, err
		}
		event, err := change(&e, now)
		if err != nil || event == "" {
			return e.Endpoint, err
		}
		entry, changed, err := endpointEntry(e, now, event)
		if err != nil {
			return changed, err
		}
		_, ok, err := h.fresh(ctx, entry)
		if err != nil {
			return changed, err
		}
		if ok {
			h.work.ringHooks()
			return changed, nil
		}
	}
	return Endpoint{}, fmt.Errorf("holdfast: endpoint %s: %d conflicts", id, maxConflict)
}

// UpdateEndpoint replaces what was said of an endpoint.
func (h *Holdfast) UpdateEndpoint(ctx context.Context, id string, in EndpointInput) (Endpoint, error) {
	if err := in.check(h.o.PrivateEndpoints); err != nil {
		return Endpoint{}, err
	}
	return h.changeEndpoint(ctx, id, func(e *endpoint, _ Time) (string, error) {
		if in.IfMatch != 0 && in.IfMatch != e.Version {
			return "", reject(CodeStale, "endpoint %s is at version %d", id, e.Version)
		}
		e.URL, e.Types, e.Description = in.URL, in.Types, in.Description
		return "endpoint.updated", nil
	})
}

// EnableEndpoint delivers to an endpoint again: what had not been delivered, and
// what happened since it was disabled.
func (h *Holdfast) EnableEndpoint(ctx context.Context, id string) (Endpoint, error) {
	return h.setEndpoint(ctx, id, EndpointEnabled, "")
}

// DisableEndpoint stops deliveries to an endpoint. reason is for people.
func (h *Holdfast) DisableEndpoint(ctx context.Context, id, reason string) (Endpoint, error) {
	if !text(reason) {
		return Endpoint{}, reject(CodeInvalidField, "reason: at most %d characters", MaxText)
	}
	return h.setEndpoint(ctx, id, EndpointDisabled, reason)
}

// DeleteEndpoint ends an endpoint.
func (h *Holdfast) DeleteEndpoint(ctx context.Context, id string) error {
	_, err := h.setEndpoint(ctx, id, EndpointDeleted, "")
	return err
}

func (h *Holdfast) setEndpoint(ctx context.Context, id string, state EndpointState, reason string) (Endpoint, error) {
	return h.changeEndpoint(ctx, id, func(e *endpoint, _ Time) (string, error) {
		if e.State == state {
			return "", nil
		}
		if e.State, e.Reason = state, reason; state == EndpointDeleted {
			e.Secrets = nil
		}
		return "endpoint." + string(state), nil
	})
}

// RotateEndpointSecret makes a new signing secret, shown here and never again.
// Those before it go on signing beside it for a day.
func (h *Holdfast) RotateEndpointSecret(ctx context.Context, id string) (secret string, err error) {
	secret, sealed, err := h.newSecret()
	if err != nil {
		return "", err
	}
	_, err = h.changeEndpoint(ctx, id, func(e *endpoint, now Time) (string, error) {
		kept := []sealedSecret{sealed}
		for _, s := range e.Secrets {
			if s.Until == 0 {
				s.Until = now.Add(secretOverlap)
			}
			if now < s.Until && len(kept) < maxSecrets {
				kept = append(kept, s)
			}
		}
		e.Secrets = kept
		return "endpoint.secret_rotated", nil
	})
	return secret, err
}

// Endpoint finds one endpoint.
func (h *Holdfast) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	e, err := h.endpoint(ctx, id)
	return e.Endpoint, err
}

func (h *Holdfast) endpoint(ctx context.Context, id string) (endpoint, error) {
	e, err := document[endpoint](ctx, h, kindEndpoint, id)
	if err == nil && e.State == EndpointDeleted {
		err = reject(CodeNotFound, "no endpoint %s", id)
	}
	return e, err
}

// Endpoints lists all endpoints, the oldest first.
func (h *Holdfast) Endpoints(ctx context.Context) (all []Endpoint, err error) {
	for _, state := range []EndpointState{EndpointEnabled, EndpointDisabled} {
		found, err := h.endpointsIn(ctx, state)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			all = append(all, e.Endpoint)
		}
	}
	slices.SortFunc(all, func(a, b Endpoint) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func (h *Holdfast) endpointsIn(ctx context.Context, state EndpointState) ([]endpoint, error) {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindEndpoint, State: string(state)})
	if err != nil {
		return nil, fmt.Errorf("holdfast: list endpoints: %w", err)
	}
	return documents[endpoint](rs)
}

// ReplaySince delivers again what has happened since a moment, under the ids it
// had. What is under way goes on.
func (h *Holdfast) ReplaySince(ctx context.Context, id string, since time.Time) error {
	if _, err := h.endpoint(ctx, id); err != nil {
		return err
	}
	head, err := h.store.Head(ctx)
	if err != nil {
		return fmt.Errorf("holdfast: replay to %s: %w", id, err)
	}
	first, end := int64(0), head.Events // events up to first are earlier; the one after end is not
	for first < end {
		middle := first + (end-first)/2
		rows, err := h.store.Events(ctx, ledger.EventQuery{After: middle, Limit: 1})
		if err != nil {
			return fmt.Errorf("holdfast: replay to %s: %w", id, err)
		}
		if len(rows) == 0 || rows[0].At >= since.UnixMilli() {
			end = middle
		} else {
			first = middle + 1
		}
	}
	_, err = put(ctx, h, Key{}, func() (e ledger.Entry, c cursor, err error) {
		if c, err = document[cursor](ctx, h, kindCursor, id); err != nil {
			return e, c, err
		}
		c.At = min(c.At, first)
		c.Version++
		r, err := c.record()
		e.Records = []ledger.Record{r}
		return e, c, err
	})
	h.work.ringHooks()
	return err
}

// signing are the secrets that sign at now, the newest first.
func (h *Holdfast) signing(e endpoint, now Time) (secrets [][]byte, err error) {
	if h.o.Sealer == nil {
		return nil, fmt.Errorf("holdfast: endpoint %s: there is no master key", e.ID)
	}
	for _, s := range e.Secrets {
		if s.Until != 0 && now >= s.Until {
			continue
		}
		plain, err := h.o.Sealer.Open(s.Sealed)
		if err != nil {
			return nil, fmt.Errorf("holdfast: open the secret of endpoint %s: %w", e.ID, err)
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(plain, "whsec_"))
		if err != nil {
			return nil, fmt.Errorf("holdfast: secret of endpoint %s is malformed", e.ID)
		}
		secrets = append(secrets, raw)
	}
	return secrets, nil
}
