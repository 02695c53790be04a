package httpapi_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// payTill is a till that pays out whatever it is asked to.
type payTill struct{ till }

func (*payTill) Payout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: gateway.PayoutPaid, Ref: "ref_" + p.ID}
}

func (g *payTill) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }

func (g *payTill) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	return g.Payout(ctx, p)
}

// openBank is a shop whose till pays out, with 100 EUR on the account ann and
// none on bob.
func openBank(t *testing.T, limits string) *shop {
	s := openShopWith(t, httpapi.Options{}, holdfast.Options{Gateways: map[string]gateway.Gateway{"till": &payTill{}}})
	s.do(http.MethodPost, "/v1/accounts", `{"id":"ann","name":"Ann"`+limits+`}`).want(201, "")
	s.do(http.MethodPost, "/v1/accounts", `{"id":"bob"}`).want(201, "")
	s.do(http.MethodPost, "/v1/accounts/ann/deposits", `{"currency":"EUR","amount":100,"reason":"a start"}`).want(201, "")
	return s
}

func (s *shop) has(account string, posted, held, available int64) {
	s.t.Helper()
	var d holdfast.AccountDetail
	s.do(http.MethodGet, "/v1/accounts/"+account, "").want(200, "").into(&d)
	want := holdfast.WalletBalance{Currency: "EUR", Posted: posted, Held: held, Available: available}
	if len(d.Balances) != 1 || d.Balances[0] != want {
		s.t.Errorf("%s has %+v, want %+v", account, d.Balances, want)
	}
}

const sixty = `{"account":"ann","amount":60,"currency":"EUR","destination":"bank of bob"}`

func TestAPayoutIsHeldThenPaid(t *testing.T) {
	s := openBank(t, "")
	key := rand.Text()
	var p, again, seen holdfast.Payout
	s.keyed(key, http.MethodPost, "/v1/payouts", sixty).want(201, "").into(&p)
	if p.State != "held" || p.RequestedBy == "" {
		t.Errorf("got %+v, want it held, and who asked for it", p)
	}
	s.until(p.ID, "payout.paid")
	second := s.keyed(key, http.MethodPost, "/v1/payouts", sixty).want(201, "")
	if second.into(&again); again != p || second.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %+v again, want %+v replayed", again, p)
	}
	s.do(http.MethodGet, "/v1/payouts/"+p.ID, "").want(200, "").into(&seen)
	if seen.State != "paid" || seen.Ref != "ref_"+p.ID {
		t.Errorf("got %+v, want it paid", seen)
	}
	s.has("ann", 40, 0, 40)
	var no httpapi.Problem
	s.do(http.MethodPost, "/v1/payouts", sixty).want(409, "insufficient_funds").into(&no)
	if no.Available == nil || *no.Available != 40 {
		t.Errorf("got %+v, want 40 available", no)
	}
	var list struct{ Items []holdfast.Payout }
	s.do(http.MethodGet, "/v1/payouts?account=ann&state=paid&limit=1", "").want(200, "").into(&list)
	if len(list.Items) != 1 || list.Items[0].ID != p.ID {
		t.Errorf("got %+v, want the payout", list.Items)
	}
	s.do(http.MethodPost, "/v1/payouts/"+p.ID+"/cancel", "").want(409, "invalid_state")
	s.do(http.MethodGet, "/v1/payouts/nothing", "").want(404, "not_found")
}

func TestALargePayoutWaitsForAnotherKey(t *testing.T) {
	s := openBank(t, `,"limits":[{"currency":"EUR","approve_above":50}]`)
	var p holdfast.Payout
	s.do(http.MethodPost, "/v1/payouts", sixty).want(202, "").into(&p)
	if p.State != "pending_approval" {
		t.Errorf("got %+v, want it to wait", p)
	}
	s.has("ann", 100, 60, 40)
	approve := "/v1/payouts/" + p.ID + "/approve"
	s.do(http.MethodPost, approve, "").want(403, "self_approval")
	first := s.key
	s.key = s.newKey(holdfast.ScopeWrite)
	s.do(http.MethodPost, approve, "").want(403, "forbidden_scope")
	s.key = s.newKey(holdfast.ScopeAdmin)
	s.do(http.MethodPost, approve, "").want(200, "").into(&p)
	if p.ApprovedBy == "" || p.ApprovedBy == p.RequestedBy {
		t.Errorf("got %+v, want two persons", p)
	}
	s.until(p.ID, "payout.paid")
	s.key = first
	s.has("ann", 40, 0, 40)
}

func TestMoneyMovesBetweenAccountsOverHTTP(t *testing.T) {
	s := openBank(t, "")
	body := `{"from":"ann","to":"bob","currency":"EUR","amount":%d%s}`
	s.do(http.MethodPost, "/v1/transfers", fmt.Sprintf(body, 10, `,"reason":"lunch"`)).want(201, "")
	s.do(http.MethodPost, "/v1/transfers", fmt.Sprintf(body, 91, "")).want(409, "insufficient_funds")
	hold := s.do(http.MethodPost, "/v1/holds", fmt.Sprintf(body, 50, `,"hold_seconds":60`)).want(201, "").str("id")
	s.has("ann", 90, 50, 40)
	s.do(http.MethodPost, "/v1/holds/"+hold+"/extend", `{"hold_seconds":3600}`).want(200, "")
	s.do(http.MethodPost, "/v1/holds/"+hold+"/commit", `{"amount":51}`).want(422, "exceeds_hold")
	s.do(http.MethodPost, "/v1/holds/"+hold+"/commit", `{"amount":20,"keep":true}`).want(200, "")
	s.do(http.MethodPost, "/v1/holds/"+hold+"/void", "").want(200, "")
	s.do(http.MethodPost, "/v1/holds/"+hold+"/commit", `{}`).want(409, "hold_final")
	if got := s.do(http.MethodGet, "/v1/holds/"+hold, "").want(200, "").str("state"); got != "voided" {
		t.Errorf("got %s, want voided", got)
	}
	s.has("ann", 70, 0, 70)
	s.has("bob", 30, 0, 30)
	bulk := `{"transfers":[` + fmt.Sprintf(body, 70, "") + "," + fmt.Sprintf(body, 1, "") + `]%s}`
	s.do(http.MethodPost, "/v1/transfers/bulk", fmt.Sprintf(bulk, `,"together":true`)).want(409, "insufficient_funds")
	var many struct{ Transfers []holdfast.BulkTransfer }
	s.do(http.MethodPost, "/v1/transfers/bulk", fmt.Sprintf(bulk, "")).want(200, "").into(&many)
	if len(many.Transfers) != 2 || many.Transfers[0].Transfer == nil || many.Transfers[1].Code != "insufficient_funds" {
		t.Fatalf("got %+v, want the first and not the second", many)
	}
	s.do(http.MethodGet, "/v1/transfers/"+many.Transfers[0].Transfer.ID, "").want(200, "")

	var all []holdfast.StatementLine
	for cursor := ""; ; {
		var p struct {
			Items []holdfast.StatementLine
			Next  string `json:"next_cursor"`
		}
		s.do(http.MethodGet, "/v1/accounts/ann/statement?currency=EUR&limit=2"+cursor, "").want(200, "").into(&p)
		if all = append(all, p.Items...); p.Next == "" {
			break
		}
		cursor = "&cursor=" + p.Next
	}
	if len(all) != 4 || all[3].Balance != 0 || all[3].Amount != -70 {
		t.Errorf("got %+v, want 4 lines that end with nothing", all)
	}
	s.do(http.MethodGet, "/v1/accounts/ann/statement", "").want(422, "currency_invalid")
	s.do(http.MethodGet, "/v1/accounts/bob/statement?currency=EUR&cursor=AAAA", "").want(400, "invalid_cursor")
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if got := string(s.do(http.MethodGet, "/v1/accounts/bob/balances?at="+at, "").want(200, "").body); !strings.Contains(got, `"posted":100`) {
		t.Errorf("got %s, want 100", got)
	}
	s.do(http.MethodGet, "/v1/accounts/bob/balances", "").want(400, "invalid_time")
}

func TestLimitsAreForAdministratorsAndAFreezeIsForAll(t *testing.T) {
	s := openBank(t, "")
	admin := s.key
	s.key = s.newKey(holdfast.ScopeWrite)
	s.do(http.MethodPost, "/v1/accounts/ann/limits", `{"limits":[]}`).want(403, "forbidden_scope")
	s.do(http.MethodPost, "/v1/accounts/ann/deposits", `{"currency":"EUR","amount":1,"reason":"x"}`).want(403, "forbidden_scope")
	s.do(http.MethodPost, "/v1/accounts/ann/freeze", `{"reason":"odd payouts"}`).want(200, "")
	s.do(http.MethodPost, "/v1/payouts", sixty).want(409, "account_frozen")
	s.do(http.MethodPost, "/v1/accounts/ann/unfreeze", `{"reason":"checked"}`).want(403, "forbidden_scope")
	s.key = admin
	s.do(http.MethodPost, "/v1/accounts/ann/unfreeze", `{"reason":"checked"}`).want(200, "")
	limits := `{"limits":[{"currency":"EUR","floor":%d,"per_payout":50,"per_day":70}]}`
	s.do(http.MethodPost, "/v1/accounts/ann/limits", fmt.Sprintf(limits, 10), `If-Match: "v1"`).want(412, "stale")
	s.do(http.MethodPost, "/v1/accounts/ann/limits", fmt.Sprintf(limits, 10), `If-Match: "v3"`).want(200, "")
	s.do(http.MethodPost, "/v1/accounts/ann/limits", fmt.Sprintf(limits, 101)).want(409, "insufficient_funds")
	s.has("ann", 100, 0, 90)
	s.do(http.MethodPost, "/v1/payouts", sixty).want(409, "payout_limit")
	fifty := strings.Replace(sixty, "60", "50", 1)
	s.do(http.MethodPost, "/v1/payouts", fifty).want(201, "")
	s.do(http.MethodPost, "/v1/payouts", strings.Replace(sixty, "60", "21", 1)).want(409, "daily_limit")
}

func TestMoneyThatCannotBeMeantIsRefused(t *testing.T) {
	s := openBank(t, "")
	payout := func(old, new string) string { return strings.Replace(sixty, old, new, 1) }
	transfer := func(from, to string) string {
		return fmt.Sprintf(`{"from":%q,"to":%q,"currency":"EUR","amount":1}`, from, to)
	}
	for _, c := range []struct {
		row, path, body string
		status          int
		code            string
	}{
		{"1", "payouts", payout("60", "0"), 422, "amount_out_of_range"},
		{"2", "payouts", payout("60", "-1"), 422, "amount_out_of_range"},
		{"3", "payouts", payout("60", "9007199254740992"), 422, "amount_out_of_range"},
		{"5", "payouts", payout("60", "1.5"), 400, "invalid_type"},
		{"6", "payouts", payout("60", "null"), 400, "missing_field"},
		{"8", "payouts", payout("EUR", "eur"), 422, "currency_invalid"},
		{"13 state", "payouts", payout("}", `,"state":"paid"}`), 400, "unknown_field"},
		{"13 id", "payouts", payout("}", `,"id":"mine"}`), 400, "unknown_field"},
		{"13 by", "payouts", payout("}", `,"requested_by":"eve"}`), 400, "unknown_field"},
		{"20", "payouts", payout("ann", "ａｎｎ"), 400, "invalid_id"},
		{"94", "payouts", payout("bank of bob", "4111 1111 1111 1111"), 422, "card_data_not_accepted"},
		{"no such account", "payouts", payout("ann", "eve"), 422, "account_unknown"},
		{"no such gateway", "payouts", payout("}", `,"gateway":"stripe"}`), 422, "gateway_unknown"},
		{"fee", "payouts", payout("}", `,"fee":-1}`), 422, "amount_out_of_range"},
		{"clearing account", "transfers", transfer("@till", "ann"), 400, "invalid_id"},
		{"bank", "transfers", transfer("@bank", "ann"), 400, "invalid_id"},
		{"ledger name", "transfers", transfer("wallet/bob", "ann"), 400, "invalid_id"},
		{"stock", "transfers", transfer("ann", "stock"), 422, "account_unknown"},
		{"itself", "transfers", transfer("ann", "ann"), 422, "invalid_field"},
		{"sku", "transfers", strings.Replace(transfer("ann", "bob"), "EUR", "sku:tee", 1), 422, "currency_invalid"},
		{"92", "holds", strings.Replace(transfer("ann", "bob"), "}", `,"hold_seconds":0}`, 1), 422, "hold_out_of_range"},
		{"taken", "accounts", `{"id":"ann"}`, 409, "account_already_exists"},
		{"twice", "accounts", `{"limits":[{"currency":"EUR"},{"currency":"EUR"}]}`, 422, "invalid_field"},
		{"no currency", "accounts", `{"limits":[{"floor":1}]}`, 400, "missing_field"},
		{"below its floor", "accounts", `{"limits":[{"currency":"EUR","floor":1}]}`, 409, "insufficient_funds"},
		{"credit too large", "accounts", `{"limits":[{"currency":"EUR","floor":-9007199254740992}]}`, 422, "amount_out_of_range"},
		{"many", "transfers/bulk", `{"transfers":[` + strings.TrimSuffix(strings.Repeat(transfer("ann", "bob")+",", 101), ",") + `]}`, 422, "too_many_items"},
		{"none", "transfers/bulk", `{"transfers":[]}`, 422, "too_many_items"},
	} {
		t.Run(c.row, func(t *testing.T) {
			a := s.do(http.MethodPost, "/v1/"+c.path, c.body)
			a.t = t
			a.want(c.status, c.code)
		})
	}
	s.has("ann", 100, 0, 100)
	// A user id of Alipay's may have the digits of a card.
	s.do(http.MethodPost, "/v1/payouts", payout("bank of bob", "2088102146225102")).want(201, "")
	if rep, err := s.core.Verify(t.Context(), nil); err != nil || !rep.OK() {
		t.Errorf("verify: %v %+v", err, rep.Problems)
	}
}
