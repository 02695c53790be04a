package wechatpay

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const algorithm = "AEAD_AES_256_GCM"

// Parse implements gateway.Gateway. The body must be the bytes as received.
func (g *Gateway) Parse(header http.Header, body []byte, now time.Time) (gateway.Notification, error) {
	if err := g.client.trusted.verify(header, body, now); err != nil {
		return gateway.Notification{}, fmt.Errorf("wechatpay: notification: %w", err)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return gateway.Notification{}, fmt.Errorf("wechatpay: notification: %w: %w", gateway.ErrMalformed, err)
	}
	if e.ID == "" || e.EventType == "" {
		return gateway.Notification{}, fmt.Errorf("wechatpay: notification: %w: no id or type", gateway.ErrMalformed)
	}
	n, err := g.read(e)
	if err != nil {
		return gateway.Notification{}, fmt.Errorf("wechatpay: notification %.64q %.40q: %w: %w", e.ID, e.EventType, gateway.ErrMalformed, err)
	}
	return n, nil
}

// Acknowledge implements gateway.Gateway.
func (g *Gateway) Acknowledge(w http.ResponseWriter, ok bool) {
	if ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, `{"code":"FAIL","message":"not processed"}`) // who does not hear it sends again
}

type event struct {
	ID        string   `json:"id"`
	EventType string   `json:"event_type"`
	Resource  resource `json:"resource"`
}

type resource struct {
	Algorithm      string `json:"algorithm"`
	Ciphertext     string `json:"ciphertext"`
	AssociatedData string `json:"associated_data"`
	Nonce          string `json:"nonce"`
}

// read decrypts and translates. What it does not know changes nothing.
func (g *Gateway) read(e event) (gateway.Notification, error) {
	n := gateway.Notification{ID: e.ID, Type: e.EventType}
	translate := map[string]func(*Gateway, *gateway.Notification, []byte) error{
		"TRANSACTION.SUCCESS": (*Gateway).paid,
		"REFUND.SUCCESS":      (*Gateway).refunded,
		"REFUND.ABNORMAL":     (*Gateway).refunded,
		"REFUND.CLOSED":       (*Gateway).refunded,

		"MCHTRANSFER.BILL.FINISHED": (*Gateway).paidOut,
	}[e.EventType]
	if translate == nil {
		n.Ignored = true
		return n, nil
	}
	plain, err := e.Resource.open(g.apiv3)
	if err != nil {
		return n, err
	}
	return n, translate(g, &n, plain)
}

// open decrypts. A nonce of another length than 12 bytes is checked for here,
// since the cipher panics at it.
func (r resource) open(key []byte) ([]byte, error) {
	if r.Algorithm != algorithm {
		return nil, fmt.Errorf("encrypted by %.40q", r.Algorithm)
	}
	sealed, err := base64.StdEncoding.DecodeString(r.Ciphertext)
	if err != nil {
		return nil, errors.New("the ciphertext is not base64")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	if len(r.Nonce) != gcm.NonceSize() {
		return nil, fmt.Errorf("the nonce has %d bytes", len(r.Nonce))
	}
	plain, err := gcm.Open(nil, []byte(r.Nonce), sealed, []byte(r.AssociatedData))
	if err != nil {
		return nil, errors.New("it does not open with the APIv3 key")
	}
	return plain, nil
}

func (g *Gateway) paid(n *gateway.Notification, plain []byte) error {
	var t transaction
	if err := json.Unmarshal(plain, &t); err != nil {
		return err
	}
	if err := g.mine(t); err != nil {
		return err
	}
	status, err := t.status()
	if err != nil {
		return err
	}
	if status != gateway.Paid || t.OutTradeNo == "" {
		return fmt.Errorf("order %.64q is %.40q", t.OutTradeNo, t.TradeState)
	}
	n.Payment, n.Ref, n.Status = t.OutTradeNo, t.OutTradeNo, status
	n.Amount, n.Currency = t.Amount.Total, t.Amount.Currency
	return nil
}

func (g *Gateway) refunded(n *gateway.Notification, plain []byte) (err error) {
	var s refundState
	if err := json.Unmarshal(plain, &s); err != nil {
		return err
	}
	if s.MchID != g.client.mchid {
		return fmt.Errorf("it is of merchant %.64q", s.MchID)
	}
	if s.OutTradeNo == "" || s.OutRefundNo == "" {
		return errors.New("no order or no refund number")
	}
	n.Refunded, err = s.status(s.RefundStatus)
	n.Payment, n.Refund, n.RefundID = s.OutTradeNo, s.OutRefundNo, s.RefundID
	n.Amount, n.Currency = s.Amount.Refund, currency
	return err
}
