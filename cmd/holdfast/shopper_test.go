package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

// shopper orders, pays and cancels, and remembers every request and answer.
type shopper struct {
	url, key, name string
	sim            *stripesim.Sim
	luck           *rand.Rand
	asked          []*asked
	orders         int
	unknown        int    // requests that were not answered when the server died
	broken         []byte // an answer of 500: no crash and no database that is away is one
}

// asked is one request. It is repeated as it is.
type asked struct {
	path, key, body string
	status          int // 0 = never answered
	answer          []byte
}

func shopperName(seed uint64, round, i int) string {
	return fmt.Sprintf("shopper-%d-%d-%d", seed, round, i)
}

const (
	askFor      = 30 * time.Second // one request
	maxRepeats  = 50               // of one request that is not answered for certain
	repeatAfter = 100 * time.Millisecond
)

// send sends a request once.
func (s *shopper) send(ctx context.Context, method string, a *asked) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+a.path, bytes.NewReader([]byte(a.body)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		req.Header.Set("Idempotency-Key", a.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusInternalServerError {
		s.broken = b
	}
	return res.StatusCode, b, err
}

func certain(status int) bool {
	return status != 0 && status < 500 && status != http.StatusTooManyRequests
}

// post sends a new request and remembers it; nil = it was not answered.
func (s *shopper) post(ctx context.Context, path, body string) *asked {
	a := &asked{path: path, body: body, key: fmt.Sprintf("%s-request-%d", s.name, len(s.asked))}
	s.asked = append(s.asked, a)
	status, answer, err := s.send(ctx, http.MethodPost, a)
	if err != nil || !certain(status) {
		return nil
	}
	a.status, a.answer = status, answer
	return a
}

// shop goes on until the server no longer answers. It tells of every answer.
func (s *shopper) shop(ctx context.Context, answered chan<- struct{}) {
	tell := func(a *asked) bool {
		if a == nil {
			return false
		}
		select {
		case answered <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for ctx.Err() == nil {
		sku := "much"
		if s.luck.IntN(4) == 0 {
			sku = "little"
		}
		s.orders++
		body := fmt.Sprintf(`{"lines":[{"sku":%q,"quantity":1}],"customer":"%s-%d"}`, sku, s.name, s.orders)
		a := s.post(ctx, "/v1/orders", body)
		if !tell(a) {
			return
		}
		if a.status != http.StatusCreated {
			continue
		}
		var order struct{ ID string }
		_ = json.Unmarshal(a.answer, &order) // a wrong answer is found by settle
		if s.luck.IntN(3) == 0 {
			continue // never paid
		}
		a = s.post(ctx, "/v1/orders/"+order.ID+"/payments", `{"return_url":"https://shop.example/"}`)
		if !tell(a) {
			return
		}
		var payment struct{ Ref string }
		_ = json.Unmarshal(a.answer, &payment)
		switch s.luck.IntN(4) {
		case 0:
			if !tell(s.post(ctx, "/v1/orders/"+order.ID+"/cancel", "")) {
				return
			}
		case 1: // never paid
		default:
			_ = s.sim.Pay(payment.Ref) // it may have been closed
		}
	}
}

// settle, after a restart, finds out what became of what was not answered, and
// that all that was answered is there.
func (s *shopper) settle(t *testing.T) {
	t.Helper()
	for _, a := range s.asked {
		if a.status == 0 {
			s.unknown++
			a.status, a.answer = s.repeat(t, a)
		}
		if a.path != "/v1/orders" {
			continue
		}
		if a.status != http.StatusCreated && a.status != http.StatusConflict {
			t.Errorf("%s: got %d %s, want an order, or sold out", a.key, a.status, a.answer)
			continue
		}
		if a.status == http.StatusCreated {
			var order struct{ ID, State string }
			if err := json.Unmarshal(a.answer, &order); err != nil {
				t.Errorf("%s: %v", a.key, err)
			}
			s.get(t, "/v1/orders/"+order.ID, &order)
		}
	}
	if s.broken != nil {
		t.Errorf("the server said 500: %s", s.broken)
	}
}

// repeat asks again under the same key until the answer is certain.
func (s *shopper) repeat(t *testing.T, a *asked) (int, []byte) {
	t.Helper()
	tick := time.NewTicker(repeatAfter)
	defer tick.Stop()
	var status int
	var answer []byte
	var err error
	for range maxRepeats {
		status, answer, err = s.send(t.Context(), http.MethodPost, a)
		if err == nil && certain(status) {
			return status, answer
		}
		<-tick.C
	}
	t.Errorf("%s %s: no certain answer in %d tries: %d, %v", a.path, a.key, maxRepeats, status, err)
	return status, answer
}

// replay asks everything again that had an effect: the answers are the same bytes.
func (s *shopper) replay(t *testing.T) {
	t.Helper()
	for _, a := range s.asked {
		if a.status/100 != 2 {
			continue // refusals are not kept: what was sold out may have come back
		}
		status, answer := s.repeat(t, a)
		if status != a.status || !bytes.Equal(answer, a.answer) {
			t.Errorf("%s %s: got %d %s, want what was answered first: %d %s", a.path, a.key, status, answer, a.status, a.answer)
		}
	}
}

func (s *shopper) get(t *testing.T, path string, into any) {
	t.Helper()
	status, b, err := s.send(t.Context(), http.MethodGet, &asked{path: path})
	tick := time.NewTicker(repeatAfter)
	defer tick.Stop()
	for try := 1; try < maxRepeats && (err != nil || !certain(status)); try++ { // the database may be starting
		<-tick.C
		status, b, err = s.send(t.Context(), http.MethodGet, &asked{path: path})
	}
	if err != nil || status != http.StatusOK {
		t.Errorf("GET %s: got %d %s, %v, want 200", path, status, b, err)
		return
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Errorf("GET %s: %v", path, err)
	}
}

// once checks that no request has made two orders.
func (s *shopper) once(t *testing.T, core *holdfast.Holdfast) {
	t.Helper()
	for n := range s.orders {
		customer := fmt.Sprintf("%s-%d", s.name, n+1)
		list, err := core.Orders(t.Context(), holdfast.OrderFilter{Customer: customer})
		if err != nil || len(list) > 1 {
			t.Errorf("%s asked for one order and has %d: %v", customer, len(list), err)
		}
	}
}
