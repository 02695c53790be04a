package flashsale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxConns    = 128                    // connections that all buyers share
	callFor     = 20 * time.Second       // one try
	maxTries    = 20                     // of one request
	firstPause  = 50 * time.Millisecond  // before the second try; doubled for each further one
	longest     = 800 * time.Millisecond // pause
	maxBody     = 1 << 20                // bytes of an answer
	maxHops     = 5                      // from an address to a payment page
	thanksPage  = "https://shop.example/thanks"
	contentType = "application/json"
)

// client talks to the API as a shop's own server does.
type client struct {
	http     *http.Client
	base     string
	key      string
	answered atomic.Int64 // requests that were answered
}

func newClient(base, key string) *client {
	return &client{base: base, key: key, http: &http.Client{
		Timeout:       callFor,
		Transport:     &http.Transport{MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxConns},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what the API said. Code is empty when it did as it was asked.
type answer struct {
	status int
	Code   string `json:"code"`
	Detail string `json:"detail"`
	body   []byte
}

func (a answer) ok() bool { return a.status/100 == 2 }

// final says whether asking again could bring another answer.
func (a answer) final() bool {
	return a.status < 500 && a.status != http.StatusTooManyRequests
}

func (a answer) read(into any) error {
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("read answer %d: %w", a.status, err)
	}
	return nil
}

// until asks until there is a final answer. What got lost on the way is asked
// again under the same key, which is what the key is for.
func (c *client) until(ctx context.Context, method, path, idempotency string, in any) (answer, error) {
	pause := firstPause
	for try := 1; ; try++ {
		a, err := c.once(ctx, method, path, idempotency, in)
		if err == nil && a.final() {
			return a, nil
		}
		if try == maxTries {
			return a, fmt.Errorf("%s %s: no final answer in %d tries: %d %s: %w", method, path, try, a.status, a.Code, err)
		}
		if !sleep(ctx, pause/2+rand.N(pause)) {
			return a, fmt.Errorf("%s %s: %w", method, path, ctx.Err())
		}
		pause = min(2*pause, longest)
	}
}

func (c *client) once(ctx context.Context, method, path, idempotency string, in any) (answer, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if in != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if idempotency != "" {
		req.Header.Set("Idempotency-Key", idempotency)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return answer{}, err
	}
	c.answered.Add(1)
	a := answer{status: res.StatusCode, body: b}
	if !a.ok() {
		if err := a.read(&a); err != nil {
			return a, err
		}
	}
	return a, nil
}

// open leads a buyer to the page where he pays; "" when the gateway shows him
// none, as it is over. A code is scanned with his phone.
func (c *client) open(ctx context.Context, address string, w Way) (page string, err error) {
	scanned := strings.HasPrefix(address, "weixin:")
	if scanned {
		address = w.Phone + "/scan?" + url.Values{"code": {address}}.Encode()
	}
	for range maxHops {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		res, err := c.http.Do(req)
		if err != nil {
			return "", err
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxBody)) // so that the connection can be used again
		res.Body.Close()
		next, moved := res.Location()
		switch {
		case moved == nil:
			address = next.String()
		case res.StatusCode == http.StatusBadRequest:
			return "", nil
		case res.StatusCode != http.StatusOK:
			return "", errors.New("the gateway's page answered " + res.Status)
		case scanned: // a phone has no shop to go back to
			return address + "?" + url.Values{"redirect_url": {thanksPage}}.Encode(), nil
		default:
			return address, nil
		}
	}
	return "", errors.New("the gateway's page is nowhere")
}

// press presses a button of the gateway's page. It says whether the page sent
// the buyer back to the shop, as it does when the money was taken.
func (c *client) press(ctx context.Context, page, action string) (bool, error) {
	form := url.Values{"action": {action}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, page, strings.NewReader(form))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxBody)) // so that the connection can be used again
	if res.StatusCode != http.StatusSeeOther {
		return false, errors.New("the gateway's page answered " + res.Status)
	}
	return strings.HasPrefix(res.Header.Get("Location"), thanksPage), nil
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
