package stripe_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/stripe"
)

// FuzzSignature looks for headers that are believed without a secret of ours.
func FuzzSignature(f *testing.F) {
	at := time.Unix(1767323046, 0)
	f.Add(sign("whsec_of_somebody_else", `{"id":"evt_1","type":"x"}`, at), []byte(`{"id":"evt_1","type":"x"}`))
	f.Add("t=1767323046,v1=", []byte(""))
	f.Add("t=1767323046,v0=00ff,v1=7e1f,v1=", []byte(""))
	f.Add("t=,t=,v1=zz,,=", []byte("{"))
	g, err := stripe.New(stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret, "whsec_before"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		n, err := g.Parse(http.Header{"Stripe-Signature": {header}}, body, at)
		if !errors.Is(err, gateway.ErrSignatureMissing) && !errors.Is(err, gateway.ErrSignatureInvalid) {
			t.Errorf("%q with %q is taken for authentic: %+v, %v", body, header, n, err)
		}
	})
}

// FuzzNotification reads what was validly signed, whatever it says.
func FuzzNotification(f *testing.F) {
	for _, s := range []string{
		`{"id":"evt_1","type":"checkout.session.completed","data":{"object":{"id":"cs_1","payment_status":"paid","amount_total":990,"currency":"cny","metadata":{"payment_id":"p"}}}}`,
		`{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":9007199254740992,"currency":"mga"}}}`,
		`{"id":"evt_1","type":"refund.updated","data":{"object":{"id":"re_1","status":"failed","amount":-1,"currency":"isk","payment_intent":{"id":7}}}}`,
		`{"id":"evt_1","type":"checkout.session.expired","data":{"object":null}}`,
		`{"id":"evt_1","type":"invoice.paid"}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	at := time.Unix(1767323046, 0)
	g, err := stripe.New(stripe.Options{SecretKey: "sk_test_x", WebhookSecrets: []string{webhookSecret}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		mac := hmac.New(sha256.New, []byte(webhookSecret))
		mac.Write(append([]byte("1767323046."), body...))
		n, err := g.Parse(http.Header{"Stripe-Signature": {"t=1767323046,v1=" + hex.EncodeToString(mac.Sum(nil))}}, body, at)
		if err != nil {
			if !errors.Is(err, gateway.ErrMalformed) {
				t.Errorf("%q: %v, want %v", body, err, gateway.ErrMalformed)
			}
			return
		}
		if n.ID == "" || n.Type == "" || n.Amount < 0 || n.Amount > 1<<53-1 {
			t.Errorf("%q was read as %+v", body, n)
		}
		about := 0
		for _, said := range []bool{n.Status != "", n.Refunded != "", n.PaidOut != ""} {
			if said {
				about++
			}
		}
		if n.Ignored == (about == 1) || about > 1 {
			t.Errorf("%q is about %d things: %+v", body, about, n)
		}
		if (n.Status == gateway.Paid || n.Refunded != "") && len(n.Currency) != 3 {
			t.Errorf("%q is of money in %q", body, n.Currency)
		}
	})
}
