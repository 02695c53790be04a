package wechatpay

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	// tolerance is how far the time of signing may lie from ours, before or after.
	tolerance = 300 * time.Second
	// probePrefix begins a signature with which WeChat Pay tries out whether a
	// merchant verifies at all. It must fail, and is no attack.
	probePrefix = "WECHATPAY/SIGNTEST/"
)

// keyring holds the keys that WeChat Pay signs with, by id. A message names its
// key; another is never tried in its place.
type keyring struct {
	keys  map[string]*rsa.PublicKey
	asked string // the id that answers are asked to be signed with
}

// verify checks the signature before the time, so that a wrong time is only
// ever reported of an authentic message: it means that a clock is wrong.
func (k keyring) verify(header http.Header, body []byte, now time.Time) error {
	signature := header.Get("Wechatpay-Signature")
	if signature == "" {
		return gateway.ErrSignatureMissing
	}
	if strings.HasPrefix(signature, probePrefix) {
		return fmt.Errorf("%w: a probe of wechat pay, which is meant to fail", gateway.ErrSignatureInvalid)
	}
	if kind := header.Get("Wechatpay-Signature-Type"); kind != "" && kind != scheme {
		return fmt.Errorf("%w: of type %.40q", gateway.ErrSignatureInvalid, kind)
	}
	key, ok := k.keys[header.Get("Wechatpay-Serial")]
	if !ok {
		return fmt.Errorf("%w: by key %.80q, which is not configured", gateway.ErrSignatureInvalid, header.Get("Wechatpay-Serial"))
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return fmt.Errorf("%w: not base64", gateway.ErrSignatureInvalid)
	}
	stamp := header.Get("Wechatpay-Timestamp")
	digest := sha256.Sum256(message(stamp, header.Get("Wechatpay-Nonce"), string(body)))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], raw) != nil {
		return gateway.ErrSignatureInvalid
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40q", gateway.ErrTimestamp, stamp)
	}
	age := now.Sub(time.Unix(seconds, 0))
	if age > tolerance || age < -tolerance {
		return fmt.Errorf("%w: signed %s before our time", gateway.ErrTimestamp, age)
	}
	return nil
}
