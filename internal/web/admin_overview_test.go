package web

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
)

func TestWhatWaitsIsAddedUpByCurrency(t *testing.T) {
	rows := []holdfast.Refund{{Amount: 1990, Currency: "USD"}, {Amount: 500, Currency: "CNY"}, {Amount: 10, Currency: "USD"}}
	n, err := worth(refundWorth)(rows, nil)()
	if err != nil || n.Count != 3 || len(n.Sums) != 2 || n.Sums[0] != moneyOf(500, "CNY") || n.Sums[1] != moneyOf(2000, "USD") {
		t.Errorf("got %+v, %v", n, err)
	}
	unknown := errors.New("no answer")
	if _, err := worth(refundWorth)(nil, unknown)(); err != unknown {
		t.Errorf("got %v, want %v", err, unknown)
	}
	c := openConsole(t) // with a payout of 5.00 CNY
	_, err = c.core.RequestPayout(t.Context(), holdfast.Key{}, holdfast.PayoutInput{Account: "seller", Currency: "CNY", Amount: 734, Destination: "x", By: "staff/operator"})
	c.must(err)
	c.signIn("viewer")
	if body := c.get("/admin/").Body.String(); !strings.Contains(body, "12.34") {
		t.Errorf("two payouts that wait are not added up:\n%s", body)
	}
}
