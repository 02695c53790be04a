package wechatpay_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/gatewaytest"
)

const (
	transferAsked = `{"mch_id":"1900000001","out_bill_no":"out0001","transfer_bill_no":"1330","appid":"wx0000000000000001","state":"SUCCESS","transfer_amount":1990}`
	notFound      = `{"code":"NOT_FOUND"}`
)

// answers says one thing to a creation, and another to a query.
func (v voice) answers(status int, created string, asked int, found string) {
	v.Wire.Every(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		status, body := status, created
		if r.Method == http.MethodGet {
			status, body = asked, found
		}
		resp, err := gatewaytest.Answers(status, body)(r, next)
		v.sign(resp.Header, body)
		return resp, err
	})
}

func TestOnlyADefiniteRefusalOfATransferIsOne(t *testing.T) {
	v := openVoice(t)
	p := newPayout("out0001", 1990, somebody)
	for created, want := range map[string]struct {
		status int
		gateway.Outcome
	}{
		`{"code":"PARAM_ERROR"}`: {400, gateway.Refused}, `{"code":"INVALID_REQUEST"}`: {400, gateway.Refused}, `{"code":"NOT_ENOUGH"}`: {403, gateway.Refused},
		`{"code":"NEVER_SEEN"}`: {400, gateway.Unknown}, `{"code":"NO_AUTH"}`: {403, gateway.Unknown}, `{"code":"SIGN_ERROR"}`: {401, gateway.Unknown},
		`{"code":"FREQUENCY_LIMITED"}`: {429, gateway.Unknown}, `{"code":"SYSTEM_ERROR"}`: {500, gateway.Unknown}, notFound: {404, gateway.Unknown},
		`{"code":"USERPAYING"}`: {202, gateway.Unknown}, `{}`: {200, gateway.Unknown}, ``: {204, gateway.Unknown}, `{"code":"PARAM_ERROR","message":""}`: {503, gateway.Unknown},
	} {
		v.answers(want.status, created, 404, notFound)
		if a := pays(v.bench).Payout(t.Context(), p); a.Outcome != want.Outcome {
			t.Errorf("%d %s: got %s %s, want %s", want.status, created, a.Outcome, a.Code, want.Outcome)
		}
		// What a query finds was there before, whatever is said of another call.
		v.answers(want.status, created, 200, transferAsked)
		if a := pays(v.bench).Payout(t.Context(), p); a.Outcome == gateway.Refused || a.Outcome == gateway.Done && a.Status != gateway.PayoutPaid {
			t.Errorf("%d %s: got %s %s of one that is paid", want.status, created, a.Outcome, a.Status)
		}
		v.answers(want.status, created, 500, `{"code":"SYSTEM_ERROR"}`)
		if a := pays(v.bench).Payout(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%d %s: got %s, though nobody knows whether it is there", want.status, created, a.Outcome)
		}
	}
}

func TestATransferOfAnotherKindIsUnknown(t *testing.T) {
	v := openVoice(t)
	p := newPayout("out0001", 1990, somebody)
	v.says(200, transferAsked)
	if a := pays(v.bench).QueryPayout(t.Context(), p); a.Status != gateway.PayoutPaid || a.Ref != "1330" {
		t.Fatalf("unspoilt: got %+v", a)
	}
	for name, change := range map[string][2]string{
		"of another merchant": {"1900000001", "1900000002"}, "of another number": {"out0001", "out0002"}, "in a new state": {"SUCCESS", "MAYBE"},
		"in no state": {"SUCCESS", ""}, "of less": {"1990", "1989"}, "of a text": {"1990", `"1990"`}, "without id": {"1330", ""}, "torn": {"}", ""},
	} {
		body := strings.ReplaceAll(transferAsked, change[0], change[1])
		v.says(200, body)
		if a := pays(v.bench).QueryPayout(t.Context(), p); a.Outcome != gateway.Unknown {
			t.Errorf("%s: got %s %s, want unknown", name, a.Outcome, a.Status)
		}
		if n, err := v.notifies("MCHTRANSFER.BILL.FINISHED", body); err == nil && !strings.Contains(name, "number") && !strings.Contains(name, "less") && !strings.Contains(name, "id") {
			t.Errorf("%s: got %+v, want an error", name, n)
		}
	}
	if n, err := v.notifies("MCHTRANSFER.BILL.FINISHED", transferAsked); err != nil || n.Payout != "out0001" || n.PaidOut != gateway.PayoutPaid || n.Amount != 1990 {
		t.Errorf("unspoilt: got %+v, %v", n, err)
	}
}
