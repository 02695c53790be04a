package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	signatureHeader = "Stripe-Signature"
	// tolerance is how far the time of sending may lie from ours, before or after.
	tolerance = 300 * time.Second
	// maxSignatures of one header are compared, maxHeader bytes of it are read.
	maxSignatures = 10
	maxHeader     = 4096
)

// Parse implements gateway.Gateway. The body must be the bytes as received.
// An event is read whatever its api_version: only fields that have been there
// in all of them are used.
func (g *Gateway) Parse(header http.Header, body []byte, now time.Time) (gateway.Notification, error) {
	if err := verify(header.Get(signatureHeader), body, g.secrets, now); err != nil {
		return gateway.Notification{}, fmt.Errorf("stripe: notification: %w", err)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return gateway.Notification{}, fmt.Errorf("stripe: notification: %w: %w", gateway.ErrMalformed, err)
	}
	if e.ID == "" || e.Type == "" {
		return gateway.Notification{}, fmt.Errorf("stripe: notification: %w: no id or type", gateway.ErrMalformed)
	}
	n, err := e.read()
	if err != nil {
		return gateway.Notification{}, fmt.Errorf("stripe: notification %s %s: %w", e.ID, e.Type, err)
	}
	return n, nil
}

// Acknowledge implements gateway.Gateway: any 2xx stops Stripe from sending
// again.
func (g *Gateway) Acknowledge(w http.ResponseWriter, ok bool) {
	if ok {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
}

// verify checks the signature first, so that a wrong time is only ever
// reported of an authentic message: it means that a clock is wrong.
func verify(header string, body []byte, secrets [][]byte, now time.Time) error {
	if header == "" {
		return gateway.ErrSignatureMissing
	}
	stamp, signatures, err := parseSignature(header)
	if err != nil {
		return err
	}
	authentic := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(stamp + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, s := range signatures {
			authentic = hmac.Equal(s, want) || authentic
		}
	}
	if !authentic {
		return gateway.ErrSignatureInvalid
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %q", gateway.ErrTimestamp, stamp)
	}
	age := now.Sub(time.Unix(seconds, 0))
	if age > tolerance || age < -tolerance {
		return fmt.Errorf("%w: sent %s before our time", gateway.ErrTimestamp, age)
	}
	return nil
}

// parseSignature reads t=…,v1=…[,v1=…]. Other schemes are skipped: v0 is not
// for live use, and accepting it would be a downgrade.
func parseSignature(header string) (stamp string, signatures [][]byte, err error) {
	if len(header) > maxHeader {
		return "", nil, fmt.Errorf("%w: header over %d bytes", gateway.ErrSignatureInvalid, maxHeader)
	}
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			if stamp != "" {
				return "", nil, fmt.Errorf("%w: two timestamps", gateway.ErrSignatureInvalid)
			}
			stamp = value
		case "v1":
			if s, err := hex.DecodeString(value); err == nil && len(signatures) < maxSignatures {
				signatures = append(signatures, s)
			}
		}
	}
	return stamp, signatures, nil
}

type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// object has the fields that we read of a session, an intent or a refund.
type object struct {
	ID             string            `json:"id"`
	Status         string            `json:"status"`
	PaymentStatus  string            `json:"payment_status"`
	Amount         int64             `json:"amount"`
	AmountTotal    int64             `json:"amount_total"`
	AmountReceived int64             `json:"amount_received"`
	AmountReversed int64             `json:"amount_reversed"`
	Currency       string            `json:"currency"`
	PaymentIntent  reference         `json:"payment_intent"`
	Metadata       map[string]string `json:"metadata"`
}

// reference is an id, or the object that has it.
type reference string

func (r *reference) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var o struct {
			ID string `json:"id"`
		}
		err := json.Unmarshal(data, &o)
		*r = reference(o.ID)
		return err
	}
	return json.Unmarshal(data, (*string)(r))
}

// read translates the event. What it does not know changes nothing.
func (e event) read() (gateway.Notification, error) {
	n := gateway.Notification{ID: e.ID, Type: e.Type}
	translate := translation(e.Type)
	if translate == nil {
		n.Ignored = true
		return n, nil
	}
	var o object
	if err := json.Unmarshal(e.Data.Object, &o); err != nil {
		return n, fmt.Errorf("%w: %w", gateway.ErrMalformed, err)
	}
	if o.ID == "" {
		return n, fmt.Errorf("%w: object without id", gateway.ErrMalformed)
	}
	n.Payment = o.Metadata[metaPayment]
	if err := translate(&n, o); err != nil {
		return n, fmt.Errorf("%w: %s: %w", gateway.ErrMalformed, o.ID, err)
	}
	return n, nil
}

func translation(eventType string) func(*gateway.Notification, object) error {
	switch eventType {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded":
		return sessionPaid
	case "checkout.session.expired", "checkout.session.async_payment_failed":
		return sessionClosed
	case "payment_intent.succeeded":
		return intentPaid
	case "payment_intent.canceled":
		return intentClosed
	case "refund.created", "refund.updated", "refund.failed":
		return refunded
	case "payout.paid", "payout.failed", "payout.canceled":
		return paidOut
	case "transfer.created", "transfer.reversed":
		return transferred
	}
	return nil
}

// sessionPaid: a session is completed unpaid when its method takes days.
func sessionPaid(n *gateway.Notification, o object) (err error) {
	n.Ref = o.ID
	if o.PaymentStatus != "paid" {
		n.Ignored = true
		return nil
	}
	n.Status = gateway.Paid
	n.Amount, n.Currency, err = money(o.AmountTotal, o.Currency)
	return err
}

func sessionClosed(n *gateway.Notification, o object) error {
	n.Ref, n.Status = o.ID, gateway.Closed
	return nil
}

// intentPaid leaves Ref empty for a Checkout Session's intent: that payment's
// id is the session's, which the intent does not tell.
func intentPaid(n *gateway.Notification, o object) (err error) {
	if o.Metadata[metaMethod] != methodCheckout {
		n.Ref = o.ID
	}
	n.Status = gateway.Paid
	n.Amount, n.Currency, err = money(o.AmountReceived, o.Currency)
	return err
}

// intentClosed says nothing of a Checkout Session: while that is open, it can
// make another intent.
func intentClosed(n *gateway.Notification, o object) error {
	if o.Metadata[metaMethod] == methodCheckout {
		n.Ignored = true
		return nil
	}
	n.Ref, n.Status = o.ID, gateway.Closed
	return nil
}

// refunded reads the status out of the refund: refund.updated has each of them,
// and a refund can fail after it was done.
func refunded(n *gateway.Notification, o object) (err error) {
	status, ok := refundStatus(o.Status)
	if !ok {
		return fmt.Errorf("refund status %q", o.Status)
	}
	n.Refund, n.RefundID, n.Refunded = o.Metadata[metaRefund], o.ID, status
	if n.Payment == "" {
		n.Ref = string(o.PaymentIntent) // not made by us
	}
	n.Amount, n.Currency, err = money(o.Amount, o.Currency)
	return err
}

// paidOut is of a payout to a bank; those without our number are Stripe's own,
// which settle the balance.
func paidOut(n *gateway.Notification, o object) (err error) {
	status, ok := payoutStatus(o.Status)
	if !ok {
		return fmt.Errorf("payout status %q", o.Status)
	}
	n.Payout, n.PayoutID, n.PaidOut = o.Metadata[metaPayout], o.ID, status
	n.Ignored = n.Payout == ""
	n.Amount, n.Currency, err = money(o.Amount, o.Currency)
	return err
}

// transferred is of a transfer to a connected account. Of one that was reversed
// in part the amount says how much came back.
func transferred(n *gateway.Notification, o object) (err error) {
	n.Payout, n.PayoutID, n.PaidOut = o.Metadata[metaPayout], o.ID, gateway.PayoutPaid
	n.Ignored = n.Payout == ""
	amount := o.Amount
	if o.AmountReversed > 0 {
		n.PaidOut, amount = gateway.PayoutReturned, o.AmountReversed
	}
	n.Amount, n.Currency, err = money(amount, o.Currency)
	return err
}

func money(amount int64, currency string) (int64, string, error) {
	ours, upper, ok := fromWire(amount, currency)
	if !ok {
		return 0, "", fmt.Errorf("amount %d %q", amount, currency)
	}
	return ours, upper, nil
}
