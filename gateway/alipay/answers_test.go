package alipay_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// between changes answers on their way.
type between struct {
	next   http.RoundTripper
	change func(status int, body []byte) (int, []byte)
}

func (b between) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.StatusCode, body = b.change(resp.StatusCode, body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// A true answer about another trade is none about this one.
func TestAnAnswerAboutAnotherTradeIsNoAnswer(t *testing.T) {
	b := open(t, "precreate")
	paid := b.paid(t, "pay1")
	paid.Ref = ""
	var kept []byte
	replay := false
	b.Wire.Next = between{b.Wire.Next, func(status int, body []byte) (int, []byte) {
		if replay {
			return status, kept
		}
		kept = body
		return status, body
	}}
	if a := b.Gateway.Query(t.Context(), b.payment("pay2")); a.Outcome != gateway.Refused {
		t.Fatalf("one that is not there: got %s, want refused", a.Outcome)
	}
	replay = true
	if a := b.Gateway.Query(t.Context(), paid); a.Outcome != gateway.Unknown {
		t.Errorf("got %s %s, want unknown", a.Outcome, a.Code)
	}
}

func TestAnAnswerOfAnotherStatusIsNoAnswer(t *testing.T) {
	b := open(t, "precreate")
	p := b.paid(t, "pay1")
	b.Wire.Next = between{b.Wire.Next, func(_ int, body []byte) (int, []byte) { return http.StatusAccepted, body }}
	if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
		t.Errorf("got %s, want unknown", a.Outcome)
	}
}

func TestAnEndlessAnswerIsNoAnswer(t *testing.T) {
	b := open(t, "precreate")
	p := b.paid(t, "pay1")
	b.Wire.Next = between{b.Wire.Next, func(status int, body []byte) (int, []byte) {
		return status, append(body, bytes.Repeat([]byte(" "), 1<<20)...)
	}}
	if a := b.Gateway.Query(t.Context(), p); a.Outcome != gateway.Unknown {
		t.Errorf("got %s, want unknown", a.Outcome)
	}
}

// Clocks that differ by minutes neither release stock that can still be paid
// for, nor hold it for ever.
func TestTheClockThatIsBehindDecidesWhenAPaymentIsOver(t *testing.T) {
	for _, behind := range []time.Duration{6 * time.Minute, -6 * time.Minute} {
		b := open(t, "page")
		b.clock.behind = behind
		p := b.created(t, "pay1")
		closed := b.closeUntilKnown(t, p, 60)
		if closed.Outcome != gateway.Done || closed.Status != gateway.Closed {
			t.Errorf("%s behind: got %s %s (%v), want closed", behind, closed.Outcome, closed.Status, closed.Err)
		}
		if b.Pay(p) == nil {
			t.Errorf("%s behind: the buyer paid what was closed", behind)
		}
		if late := b.Now().Sub(p.ExpiresAt); late > 10*time.Minute {
			t.Errorf("%s behind: closed %s after the deadline", behind, late)
		}
	}
}
