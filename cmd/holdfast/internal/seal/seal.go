// Package seal keeps secrets encrypted in files, so that a copy of a disk or of
// a configuration gives nothing away.
//
// A sealed secret is one line of text: AES-256-GCM under a master key that is
// kept elsewhere, with a random nonce of 96 bits. NIST SP 800-38D allows 2^32 of
// them for a key, far more than there are files. The name of the key stands in
// front and is authenticated too, so that keys can be replaced one after another.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Mark is how sealed text begins.
const Mark = "hfsealed:v1:"

// keySize is that of AES-256, in bytes.
const keySize = 32

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Errors of Open. None says anything of the secret.
var (
	ErrKeyUnknown = errors.New("it is sealed under another master key")
	ErrForged     = errors.New("it is damaged, or was not sealed under this master key")
)

// Keys are master keys. The first one seals; all of them open. They don't change.
type Keys []key

type key struct {
	id  string
	gcm cipher.AEAD
}

// New makes a master key, as Parse reads it.
func New(id string) (string, error) {
	if !idForm.MatchString(id) {
		return "", fmt.Errorf("a key's name is 1 to 32 of A-Z a-z 0-9 _ -")
	}
	b := make([]byte, keySize)
	rand.Read(b) // never fails
	return id + ":" + base64.StdEncoding.EncodeToString(b), nil
}

// Parse reads master keys of the form NAME:BASE64, by commas or lines.
func Parse(text string) (Keys, error) {
	var keys Keys
	for n, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' }) {
		id, value, _ := strings.Cut(one, ":")
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(raw) != keySize || !idForm.MatchString(id) {
			return nil, fmt.Errorf("master key %d is not NAME:BASE64 of %d bytes", n+1, keySize)
		}
		if keys.find(id) != nil {
			return nil, fmt.Errorf("two master keys are called %s", id)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, err
		}
		gcm, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key{id, gcm})
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no master key")
	}
	return keys, nil
}

func (k Keys) find(id string) *key {
	for i := range k {
		if k[i].id == id {
			return &k[i]
		}
	}
	return nil
}

// Seal encrypts secret under the first key.
func (k Keys) Seal(secret string) string {
	head := Mark + k[0].id + ":"
	return head + base64.StdEncoding.EncodeToString(k[0].gcm.Seal(nil, nil, []byte(secret), []byte(head)))
}

// Open decrypts what Seal has made, under whichever of the keys it was.
func (k Keys) Open(sealed string) (string, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(sealed), Mark)
	if !ok {
		return "", errors.New("it is not sealed")
	}
	id, text, _ := strings.Cut(rest, ":")
	by := k.find(id)
	if by == nil {
		return "", fmt.Errorf("%w: %q", ErrKeyUnknown, id)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", ErrForged
	}
	secret, err := by.gcm.Open(nil, nil, raw, []byte(Mark+id+":"))
	if err != nil {
		return "", ErrForged
	}
	return string(secret), nil
}

// Fresh says that sealed is under the first key.
func (k Keys) Fresh(sealed string) bool {
	return strings.HasPrefix(strings.TrimSpace(sealed), Mark+k[0].id+":")
}

// Sealed says that text is a sealed secret, good or not.
func Sealed(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), Mark) }
