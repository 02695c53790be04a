package holdfast

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Scopes of API keys. Each includes those before it.
const (
	ScopeRead  = "read"
	ScopeWrite = "write" // items, orders, payments, refunds
	ScopeAdmin = "admin" // keys, verify
)

var scopes = []string{ScopeRead, ScopeWrite, ScopeAdmin}

// APIKey is what is known of a key. The key itself is shown once, at creation:
// only its SHA-256 is stored, which is enough for 256 random bits.
type APIKey struct {
	ID        string   `json:"id"`
	Version   int64    `json:"version"`
	Name      string   `json:"name"`
	Prefix    string   `json:"prefix"` // the first characters of the key, for people
	Scopes    []string `json:"scopes"`
	CreatedAt Time     `json:"created_at"`
	ExpiresAt Time     `json:"expires_at,omitzero"`
	RevokedAt Time     `json:"revoked_at,omitzero"`
}

// Allows says whether the key may do what scope names.
func (k APIKey) Allows(scope string) bool {
	need := slices.Index(scopes, scope)
	return slices.ContainsFunc(k.Scopes, func(s string) bool { return slices.Index(scopes, s) >= need })
}

const (
	kindKey    = "apikey"
	keyLetters = 52 // of 256 random bits
	keyPrefix  = 8  // of them are shown
	// authMaxAge is how long a revoked key may still work on another node.
	authMaxAge   = 5 * time.Second
	authMaxCount = 10_000
)

// CreateKey makes an API key, once for key. ttl 0 = it does not expire. The API key
// itself is given here and never again: plain is "" when it had been made before.
func (h *Holdfast) CreateKey(ctx context.Context, key Key, name string, allowed []string, ttl time.Duration) (plain string, k APIKey, err error) {
	if name == "" || !text(name) || ttl < 0 || len(allowed) == 0 {
		return "", k, reject(CodeInvalidField, "a key has a name of 1 to %d characters and a scope", MaxText)
	}
	for _, s := range allowed {
		if !slices.Contains(scopes, s) {
			return "", k, reject(CodeInvalidField, "scope: one of %v", scopes)
		}
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails; see its documentation
	plain = "hf_" + letters(secret[:])
	now, err := h.now(ctx)
	if err != nil {
		return "", k, err
	}
	k = APIKey{Version: 1, Name: name, Prefix: plain[:len("hf_")+keyPrefix], Scopes: allowed, CreatedAt: now}
	if ttl > 0 {
		k.ExpiresAt = now.Add(ttl)
	}
	if k.ID, err = newID(); err != nil {
		return "", k, err
	}
	a, err := put(ctx, h, key, func() (ledger.Entry, APIKey, error) {
		r, err := k.record(digest(plain))
		return ledger.Entry{Records: []ledger.Record{r}}, k, err
	})
	if a.Replayed {
		plain = ""
	}
	return plain, a.Value, err
}

func (k APIKey) record(hash string) (ledger.Record, error) {
	body, err := marshalled(k, kindKey, k.ID)
	return ledger.Record{Kind: kindKey, ID: hash, Version: k.Version, Ref: k.ID, Body: body}, err
}

func digest(plain string) string {
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}

// Keys lists the API keys, at most one page of them.
func (h *Holdfast) Keys(ctx context.Context) ([]APIKey, error) {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindKey})
	if err != nil {
		return nil, fmt.Errorf("holdfast: list keys: %w", err)
	}
	keys, err := documents[APIKey](rs)
	slices.SortFunc(keys, func(a, b APIKey) int { return int(a.CreatedAt - b.CreatedAt) })
	return keys, err
}

// RevokeKey ends a key. Revoking it again changes nothing.
func (h *Holdfast) RevokeKey(ctx context.Context, id string) error {
	rs, err := h.store.Records(ctx, ledger.RecordQuery{Kind: kindKey, Ref: id, Limit: 1})
	if err != nil {
		return fmt.Errorf("holdfast: find key %s: %w", id, err)
	}
	if len(rs) == 0 || id == "" {
		return reject(CodeNotFound, "no key %s", id)
	}
	var k APIKey
	if err := flow.Decode(rs[0], &k); err != nil {
		return err
	}
	if k.RevokedAt != 0 {
		return nil
	}
	if k.RevokedAt, err = h.now(ctx); err != nil {
		return err
	}
	k.Version++
	r, err := k.record(rs[0].ID)
	if err != nil {
		return err
	}
	defer h.auth.forget(rs[0].ID)
	return h.putRecords(ctx, Key{}, r)
}

// Authenticate finds the key behind what a client sent. false = unknown,
// expired or revoked; all three take the same time.
func (h *Holdfast) Authenticate(ctx context.Context, plain string) (APIKey, bool, error) {
	hash := digest(plain)
	k, err := h.auth.get(h.o.Clock(), hash, func() (APIKey, error) { return document[APIKey](ctx, h, kindKey, hash) })
	var r *Rejection
	if errors.As(err, &r) {
		return APIKey{}, false, nil
	}
	if err != nil {
		return APIKey{}, false, err
	}
	now, err := h.now(ctx)
	if err != nil {
		return APIKey{}, false, err
	}
	if k.RevokedAt != 0 || (k.ExpiresAt != 0 && now >= k.ExpiresAt) {
		return APIKey{}, false, nil
	}
	return k, true, nil
}
