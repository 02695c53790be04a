package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestAnOrdersMoneyIsSplitAndTakenBack(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, id := range []string{"ann", "bob"} {
		s.do(http.MethodPost, "/v1/accounts", `{"id":"`+id+`"}`).want(201, "")
	}
	o := s.order(`{"lines":[{"sku":"tee","quantity":1}],"splits":[{"account":"ann","amount":1200}]}`)
	path := "/v1/orders/" + o.ID
	var held holdfast.Order
	s.do(http.MethodGet, path, "").want(200, "").into(&held)
	if want := []holdfast.Split{{Account: "ann", Amount: 1200}}; !slices.Equal(held.Splits, want) {
		t.Errorf("got %+v, want %+v", held.Splits, want)
	}
	payment := s.do(http.MethodPost, path+"/payments", "{}").want(201, "").str("id")
	s.gateway.set(gateway.Paid)
	s.do(http.MethodPost, "/v1/payments/"+payment+"/refresh", "").want(200, "")
	s.has("ann", 1200, 0, 1200)
	s.do(http.MethodPost, "/v1/transfers", `{"from":"ann","to":"bob","amount":1000,"currency":"EUR"}`).want(201, "")

	var r holdfast.Refund
	s.do(http.MethodPost, path+"/refunds", `{"amount":1000}`).want(201, "").into(&r)
	if want := []holdfast.SplitPart{{Account: "ann", Amount: 800, Receivable: 600}}; !slices.Equal(r.Splits, want) {
		t.Errorf("got %+v, want %+v", r.Splits, want)
	}
	s.until(o.ID, "refund.done")
	var d holdfast.AccountDetail
	s.do(http.MethodGet, "/v1/accounts/ann", "").want(200, "").into(&d)
	if want := (holdfast.WalletBalance{Currency: "EUR", Receivable: 600}); len(d.Balances) != 1 || d.Balances[0] != want {
		t.Errorf("got %+v, want %+v", d.Balances, want)
	}
	a := s.send(http.MethodGet, path, "", "Client-Secret: "+o.ClientSecret).want(200, "")
	if strings.Contains(string(a.body), "ann") || !strings.Contains(string(s.do(http.MethodGet, path, "").body), "ann") {
		t.Errorf("what the buyer sees: %s", a.body)
	}
}

func TestSplitsThatCannotBeMeantSayWhere(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	s.do(http.MethodPost, "/v1/accounts", `{"id":"ann"}`).want(201, "")
	for splits, want := range map[string]struct {
		status int
		code   string
	}{
		`[{"account":"ann"}]`:                                         {400, "missing_field"},
		`[{"amount":1}]`:                                              {400, "missing_field"},
		`[{"account":"ann","amount":1.5}]`:                            {400, "invalid_type"},
		`[{"account":"ann","share":1}]`:                               {400, "unknown_field"},
		`[{"account":"@bank","amount":1}]`:                            {400, "invalid_id"},
		`[{"account":"bob","amount":1}]`:                              {422, "account_unknown"},
		`[{"account":"ann","amount":-1}]`:                             {422, "amount_out_of_range"},
		`[{"account":"ann","amount":1501}]`:                           {422, "splits_exceed_total"},
		`[{"account":"ann","amount":1},{"account":"ann","amount":1}]`: {422, "invalid_field"},
		`[` + strings.Repeat(`{"account":"ann","amount":1},`, 20) + `{"account":"ann","amount":1}]`: {422, "too_many_items"},
	} {
		s.do(http.MethodPost, "/v1/orders", `{"lines":[{"sku":"tee","quantity":1}],"splits":`+splits+`}`).want(want.status, want.code)
	}
	if got := s.available(); got != openingStock {
		t.Errorf("got %d available, want %d", got, openingStock)
	}
}
