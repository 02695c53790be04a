package httpapi

import (
	"crypto/sha256"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// idempotencyKey reads the client's key of a request.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header["Idempotency-Key"]
	if len(keys) == 0 {
		return "", refuse(codeKeyRequired, "send an Idempotency-Key, and the same one again if no answer comes")
	}
	if len(keys) > 1 || !word(keys[0], MinKey, MaxKey) {
		return "", refuse(codeKeyInvalid, "one Idempotency-Key of 16 to 128 letters, digits, - and _")
	}
	return keys[0], nil
}

// fingerprint is the digest of what a request asks for: its method, its path,
// and its body in canonical form (RFC 8785), so that neither the order of
// members nor white space make it another request. It destroys doc.
func fingerprint(r *http.Request, doc []byte) []byte {
	v := jsontext.Value(doc)
	if len(doc) > 0 {
		// It has been decoded, so it is valid and this can't fail.
		_ = v.Canonicalize()
	}
	h := sha256.New()
	_, _ = io.WriteString(h, r.Method+" "+r.URL.Path+"\n")
	_, _ = h.Write(v)
	return h.Sum(nil)
}
