package alipay

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signType is the only kind of signature that is made or accepted here: a
// message does not get to choose a weaker one.
const signType = "RSA2"

// charset of what we send, and so of what is answered.
const charset = "utf-8"

// beijing is the zone of all of Alipay's times, the whole year.
var beijing = time.FixedZone("Asia/Shanghai", 8*60*60)

const timeForm = "2006-01-02 15:04:05"

func toBeijing(t time.Time) string { return t.In(beijing).Format(timeForm) }

// content is what is signed: name=value joined with &, by the bytes of the
// names, the values neither encoded nor trimmed. Of a request the empty values
// are left out; of a notification they are signed too.
func content(params map[string]string, empty bool) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if params[name] == "" && !empty {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name + "=" + params[name])
	}
	return b.String()
}

func sign(key *rsa.PrivateKey, content string) (string, error) {
	sum := sha256.Sum256([]byte(content))
	s, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(s), nil
}

func verify(key *rsa.PublicKey, content []byte, signature []byte) bool {
	sum := sha256.Sum256(content)
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
}

// request signs one request. more are parameters beside the common ones; the
// empty ones are left out.
func (g *Gateway) request(method string, biz any, at time.Time, more map[string]string) (url.Values, error) {
	doc, err := compact(biz)
	if err != nil {
		return nil, err
	}
	params := map[string]string{
		"app_id": g.appID, "method": method, "format": "JSON", "charset": charset, "sign_type": signType,
		"timestamp": toBeijing(at), "version": "1.0", "biz_content": doc,
		"app_cert_sn": g.trust.appSN, "alipay_root_cert_sn": g.trust.rootSN,
	}
	maps.Copy(params, more)
	signature, err := sign(g.key, content(params, false))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	form := url.Values{"sign": {signature}}
	for name, value := range params {
		if value != "" {
			form.Set(name, value)
		}
	}
	return form, nil
}

func compact(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("encode biz_content: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
