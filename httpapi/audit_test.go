package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestWhatAKeyChangesIsInTheAuditLogAndItsTrafficIsNot(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	s.order(oneTee)
	s.do(http.MethodPost, "/v1/items/tee/stock", `{"quantity":2,"reason":"delivery 7"}`).want(200, "")
	s.do(http.MethodPost, "/v1/keys", `{"name":"reader","scopes":["read"]}`).want(201, "")
	s.do(http.MethodPost, "/v1/items/tee/stock", `{"quantity":-999,"reason":"refused"}`).want(409, "stock_insufficient")
	log, err := s.core.Audit(t.Context(), holdfast.AuditFilter{})
	if err != nil || len(log) != 2 || log[0].Did != "apikey.created" || log[1].Did != "stock.adjusted" {
		t.Fatalf("got %+v %v, want a new key and an adjustment", log, err)
	}
	if log[1].Reason != "delivery 7" || log[1].By != log[0].By || log[1].By == "key/" || log[1].Name == "" || log[1].About != "tee" {
		t.Errorf("got %+v, want the key's id and name, and the reason", log[1])
	}
}
