package alipaysim_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

func TestALostAnswerHasItsEffect(t *testing.T) {
	for _, kind := range []alipaysim.Kind{
		alipaysim.LostAnswer, alipaysim.BadGateway, alipaysim.TornAnswer, alipaysim.SystemErrorAfterEffect,
		alipaysim.Unsigned, alipaysim.ForgedAnswer, alipaysim.Recoded,
	} {
		b := newBench(t)
		b.paid("pay1")
		b.sim.Inject(alipaysim.Fault{Call: "refund", Kind: kind})
		a := b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "5")
		if a.err == nil && a.code() == "10000" && a.signed && kind != alipaysim.Recoded {
			t.Errorf("%s: got %s", kind, a.raw)
		}
		if got := b.trade("pay1").Refunded; got != 500 {
			t.Errorf("%s: refunded %d, want 500", kind, got)
		}
	}
}

func TestAFailureBeforeTheCallHasNoEffect(t *testing.T) {
	for kind, code := range map[alipaysim.Kind]string{
		alipaysim.Unavailable: "aop.unknow-error", alipaysim.SystemError: "ACQ.SYSTEM_ERROR", alipaysim.BalanceShort: "ACQ.SELLER_BALANCE_NOT_ENOUGH",
	} {
		b := newBench(t)
		b.paid("pay1")
		b.sim.Inject(alipaysim.Fault{Call: "refund", Kind: kind})
		a := b.call("refund", "out_trade_no", "pay1", "out_request_no", "r1", "refund_amount", "5")
		b.want(string(kind), a, code)
		if got := b.trade("pay1").Refunded; !a.signed || got != 0 {
			t.Errorf("%s: signed %v, refunded %d", kind, a.signed, got)
		}
	}
}

func TestARecodedAnswerIsTheSameToAJSONParserOnly(t *testing.T) {
	b := newBench(t)
	b.sim.Inject(alipaysim.Fault{Call: "precreate", Kind: alipaysim.Recoded})
	a := b.call("precreate", offer("pay1")...)
	if again := b.call("precreate", offer("pay1")...); a.node["qr_code"] != again.node["qr_code"] || !strings.Contains(again.raw, `:\/\/`) || strings.Contains(a.raw, `\/`) {
		t.Errorf("got %s and %s", a.raw, again.raw)
	}
}

func TestOneSeedGivesOneCourseOfFaults(t *testing.T) {
	course := func() (codes []string) {
		b := newBench(t)
		b.sim.SetFaults(alipaysim.Faults{Unavailable: 0.2, SystemError: 0.2, LostAnswer: 0.2})
		for range 40 {
			codes = append(codes, b.call("query", "out_trade_no", "pay1").code())
		}
		return codes
	}
	one := course()
	if two := course(); !slices.Equal(one, two) {
		t.Errorf("got %v and %v", one, two)
	}
	for _, code := range []string{"", "aop.unknow-error", "ACQ.SYSTEM_ERROR", "ACQ.TRADE_NOT_EXIST"} {
		if !slices.Contains(one, code) {
			t.Errorf("no answer %q in %v", code, one)
		}
	}
}

func TestTheDialIsSetOverHTTP(t *testing.T) {
	b := newBench(t)
	put := func(body string) int {
		req, err := http.NewRequest(http.MethodPut, b.url+"/_sim/faults", strings.NewReader(body))
		b.must(err)
		res, err := http.DefaultClient.Do(req)
		b.must(err)
		res.Body.Close()
		return res.StatusCode
	}
	if status := put(`{"unavailable": 1, "slow_answer": "1ms"}`); status != 200 {
		t.Fatalf("got %d", status)
	}
	b.want("query", b.call("query", "out_trade_no", "pay1"), "aop.unknow-error")
	for _, bad := range []string{`{"unavailable": 2}`, `{"unavailable": "1s"}`, `{"slow_answer": "-1s"}`, `{"slow": "1s"}`, `[]`, ``} {
		if status := put(bad); status != 400 {
			t.Errorf("%s: got %d, want 400", bad, status)
		}
	}
	res, err := http.Get(b.url + "/_sim/faults")
	b.must(err)
	defer res.Body.Close()
	var f alipaysim.Faults
	b.must(json.NewDecoder(res.Body).Decode(&f))
	if f.Unavailable != 1 {
		t.Errorf("got %+v", f)
	}
}
