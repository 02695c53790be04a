package alipay_test

import (
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/alipay"
	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
)

// voice says about transfers, authentically, what no simulator would.
type voice struct {
	bench
	key *rsa.PrivateKey
	sn  string
}

func openVoice(t *testing.T) voice {
	t.Helper()
	ca := newAuthority(t, "Root")
	app, own := ca.issue("App", 2, keyOf(t, alipaysim.DefaultAppKey).Public()), ca.issue("Alipay", 3, ca.key.Public())
	block, _ := pem.Decode([]byte(own))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String()))
	return voice{openWith(t, "precreate", alipaysim.Config{}, func(o *alipay.Options) {
		o.PublicKey, o.Certificates = "", &alipay.Certificates{App: app, Root: ca.text, Alipay: []string{own}}
	}), ca.key, hex.EncodeToString(sum[:])}
}

// answers says one thing to a transfer, and another to its query.
func (v voice) answers(made, found string) {
	v.Wire.Every(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		name, node := "alipay_fund_trans_uni_transfer_response", made
		if callOf(r) == gatewaytest.CallQueryPayout {
			name, node = "alipay_fund_trans_common_query_response", found
		}
		sum := sha256.Sum256([]byte(node))
		raw, err := rsa.SignPKCS1v15(nil, v.key, crypto.SHA256, sum[:])
		if err != nil {
			return nil, err
		}
		return gatewaytest.Answers(200, `{"`+name+`":`+node+`,"alipay_cert_sn":"`+v.sn+`","sign":"`+base64.StdEncoding.EncodeToString(raw)+`"}`)(r, next)
	})
}

const (
	transferFound = `{"code":"10000","out_biz_no":"out0001","order_id":"2026","trans_amount":"19.90","status":"SUCCESS"}`
	noTransfer    = `{"code":"40004","sub_code":"ORDER_NOT_EXIST","out_biz_no":"out0001"}`
)

func (v voice) payout() gateway.Payout {
	return gateway.Payout{ID: "out0001", Destination: somebody, Amount: 1990, Currency: "CNY"}
}

func TestOnlyADefiniteRefusalOfATransferIsOne(t *testing.T) {
	v := openVoice(t)
	pays, p := v.Gateway.(gateway.Payer), v.payout()
	for made, want := range map[string]gateway.Outcome{
		`{"code":"40004","sub_code":"PAYER_BALANCE_NOT_ENOUGH"}`:   gateway.Refused,
		`{"code":"40004","sub_code":"PAYEE_NOT_EXIST"}`:            gateway.Refused,
		`{"code":"40004","sub_code":"EXCEED_LIMIT_SM_MIN_AMOUNT"}`: gateway.Refused,
		`{"code":"40004","sub_code":"SYSTEM_ERROR"}`:               gateway.Unknown,
		`{"code":"40004","sub_code":"PAYMENT_INFO_INCONSISTENCY"}`: gateway.Unknown,
		`{"code":"40004","sub_code":"PRODUCT_NOT_SIGN"}`:           gateway.Unknown,
		`{"code":"40004","sub_code":"NEVER_SEEN"}`:                 gateway.Unknown,
		`{"code":"40004","sub_msg":"PAYEE_NOT_EXIST"}`:             gateway.Unknown,
		`{"code":"20000","sub_code":"PAYEE_NOT_EXIST"}`:            gateway.Unknown,
		`{"code":"10000"}`: gateway.Unknown,
		`{}`:               gateway.Unknown,
	} {
		v.answers(made, noTransfer)
		if a := pays.Payout(t.Context(), p); a.Outcome != want {
			t.Errorf("%s: got %s %s, want %s", made, a.Outcome, a.Code, want)
		}
		// What a query finds was there before, whatever is said of another call.
		v.answers(made, transferFound)
		if a := pays.Payout(t.Context(), p); a.Outcome == gateway.Refused || a.Outcome == gateway.Done && a.Status != gateway.PayoutPaid {
			t.Errorf("%s: got %s %s of one that is paid", made, a.Outcome, a.Status)
		}
		v.answers(made, `{"code":"20000","sub_code":"aop.unknow-error"}`)
		if a := pays.Payout(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s, though nobody knows whether it is there", made, a.Outcome)
		}
	}
}

func TestATransferOfAnotherKindIsUnknown(t *testing.T) {
	v := openVoice(t)
	pays, p := v.Gateway.(gateway.Payer), v.payout()
	for status, want := range map[string]gateway.PayoutStatus{
		"SUCCESS": gateway.PayoutPaid, "WAIT_PAY": gateway.PayoutPending, "DEALING": gateway.PayoutPending,
		"FAIL": gateway.PayoutFailed, "CLOSED": gateway.PayoutFailed, "REFUND": gateway.PayoutReturned,
	} {
		v.answers("{}", strings.Replace(transferFound, "SUCCESS", status, 1))
		if a := pays.QueryPayout(t.Context(), p); a.Outcome != gateway.Done || a.Status != want || a.Ref != "2026" {
			t.Errorf("%s: got %+v, want %s", status, a, want)
		}
	}
	for name, change := range map[string][2]string{
		"of another number": {"out0001", "out0002"}, "in a new state": {"SUCCESS", "MAYBE"}, "in no state": {"SUCCESS", ""},
		"of less": {"19.90", "19.89"}, "of no amount": {"19.90", "many"}, "without a code": {"10000", ""},
	} {
		v.answers("{}", strings.Replace(transferFound, change[0], change[1], 1))
		if a := pays.QueryPayout(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s %s, want unknown", name, a.Outcome, a.Status)
		}
	}
}
