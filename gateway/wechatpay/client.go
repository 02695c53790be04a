package wechatpay

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	scheme = "WECHATPAY2-SHA256-RSA2048"
	// maxAnswer is how many bytes of an answer are read; more is unreadable.
	maxAnswer  = 1 << 20
	nonceBytes = 16
)

// client signs what goes out and believes what is signed.
type client struct {
	http    *http.Client
	base    string
	mchid   string
	serial  string // of the merchant's certificate
	key     *rsa.PrivateKey
	trusted keyring
	now     func() time.Time
}

// call makes one call and reads its answer into out; nil means that no body is
// expected. An *apiError is an authentic refusal, any other error says that
// nothing is known.
func (c client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
	}
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read the answer with status %d: %w", resp.StatusCode, err)
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("%w: over %d bytes", errUnreadable, maxAnswer)
	}
	if err := c.trusted.verify(resp.Header, answer, c.now()); err != nil {
		return fmt.Errorf("%w (status %d): %w", errUnauthentic, resp.StatusCode, err)
	}
	return read(resp, answer, out)
}

// read tells an answer from a refusal. 202 is one of those: it says that the
// buyer is paying just now.
func read(resp *http.Response, answer []byte, out any) error {
	want := http.StatusOK
	if out == nil {
		want = http.StatusNoContent
	}
	if resp.StatusCode != want {
		e := &apiError{status: resp.StatusCode, request: resp.Header.Get("Request-Id")}
		// A refusal without a readable code is one that nothing follows from.
		_ = json.Unmarshal(answer, e)
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return nil
}

func (c client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	nonce, stamp := newNonce(), c.stamp()
	signature, err := c.sign(method, req.URL.RequestURI(), stamp, nonce, string(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", fmt.Sprintf(`%s mchid="%s",nonce_str="%s",timestamp="%s",serial_no="%s",signature="%s"`,
		scheme, c.mchid, nonce, stamp, c.serial, signature))
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "holdfast")
	req.Header.Set("Wechatpay-Serial", c.trusted.asked)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (c client) stamp() string { return strconv.FormatInt(c.now().Unix(), 10) }

// sign signs lines, each ended by a line feed.
func (c client) sign(lines ...string) (string, error) {
	digest := sha256.Sum256(message(lines...))
	signature, err := rsa.SignPKCS1v15(nil, c.key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

func message(lines ...string) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func newNonce() string {
	b := make([]byte, nonceBytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}
