package httpapi_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// askingTill pays out when its receiver has agreed, which he never does.
type askingTill struct {
	payTill
	recalled atomic.Bool
}

func (g *askingTill) Payout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return g.QueryPayout(ctx, p)
}

func (g *askingTill) QueryPayout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	if g.recalled.Load() {
		return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutFailed, Ref: "ref_" + p.ID, Code: "CANCELLED"}
	}
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutPending, Ref: "ref_" + p.ID, Confirm: "package"}
}

func (g *askingTill) RecallPayout(context.Context, gateway.Payout) gateway.PayoutAnswer {
	g.recalled.Store(true)
	return gateway.PayoutAnswer{Outcome: gateway.Accepted}
}

func TestASubmittedPayoutIsCancelledByItsGateway(t *testing.T) {
	s := openShopWith(t, httpapi.Options{}, holdfast.Options{Poll: 10 * time.Millisecond, Gateways: map[string]gateway.Gateway{"till": &askingTill{}}})
	s.do(http.MethodPost, "/v1/accounts", `{"id":"ann"}`).want(201, "")
	s.do(http.MethodPost, "/v1/accounts/ann/deposits", `{"currency":"EUR","amount":100,"reason":"a start"}`).want(201, "")
	var p, seen, last holdfast.Payout
	s.do(http.MethodPost, "/v1/payouts", sixty).want(201, "").into(&p)
	s.until(p.ID, "payout.submitted")
	for range 1000 { // until the answer of the first call is in
		if s.do(http.MethodGet, "/v1/payouts/"+p.ID, "").want(200, "").into(&seen); seen.Confirm != "" {
			break
		}
	}
	if seen.State != "submitted" || seen.Confirm != "package" {
		t.Errorf("got %s and %q, want it submitted, and what its receiver needs", seen.State, seen.Confirm)
	}
	s.do(http.MethodPost, "/v1/payouts/"+p.ID+"/cancel", "").want(200, "").into(&seen)
	if seen.State != "submitted" || seen.Recall != "wanted" {
		t.Errorf("got %s, recall %q, want it submitted, and wanted back", seen.State, seen.Recall)
	}
	s.until(p.ID, "payout.cancelled")
	s.has("ann", 100, 0, 100)
	s.do(http.MethodPost, "/v1/payouts/"+p.ID+"/cancel", "").want(200, "").into(&last)
	if last.State != "cancelled" || last.Confirm != "" {
		t.Errorf("got %s and %q to confirm, want it cancelled", last.State, last.Confirm)
	}
}
