package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// ware is what the clients of a bench ask for, one at a time and by name: pieces
// of SKUs, or minor units of accounts.
type ware struct {
	path     string // of the API
	gateways map[string]gateway.Gateway
	passive  bool // nothing is done with what was accepted

	// supply makes what is asked for by each of names, n times.
	supply func(ctx context.Context, core *holdfast.Holdfast, names []string, n int64) error
	ask    func(ctx context.Context, core *holdfast.Holdfast, key holdfast.Key, name string) error
	// body appends the body of the same request over HTTP.
	body func(to []byte, key, name string) []byte
	// audit reads what became of all that was supplied since, from the postings
	// and balances.
	audit func(ctx context.Context, books ledger.Reader, since int64) (map[string]level, error)
}

func wareOf(payouts bool) ware {
	if payouts {
		return ware{path: "/v1/payouts", gateways: map[string]gateway.Gateway{"bench": nowhere{}}, passive: true,
			supply: deposit, ask: payOut, body: appendPayout, audit: auditOf(flow.Bank, accountOf)}
	}
	return ware{path: "/v1/orders", supply: stockUp, ask: order, body: appendOrder, audit: auditOf(flow.Supplier, skuOf)}
}

func stockUp(ctx context.Context, core *holdfast.Holdfast, skus []string, stock int64) error {
	var items []holdfast.ItemInput
	for _, sku := range skus {
		items = append(items, holdfast.ItemInput{SKU: sku, Name: sku, Price: 100, Currency: "EUR", Stock: stock})
	}
	return core.PutItems(ctx, items, func() {})
}

func order(ctx context.Context, core *holdfast.Holdfast, key holdfast.Key, sku string) error {
	_, err := core.Place(ctx, key, onePiece(sku))
	return err
}

func onePiece(sku string) holdfast.OrderInput {
	return holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: sku, Quantity: 1}}}
}

func appendOrder(to []byte, _, sku string) []byte {
	return fmt.Appendf(to, `{"lines":[{"sku":%q,"quantity":1}]}`, sku)
}

// nowhere is a gateway that payouts can name. It is never asked to pay one: a
// bench of payouts ends where the money is held.
type nowhere struct {
	gateway.Gateway
	gateway.Payer
}

func (nowhere) CheckPayout(gateway.Payout) *gateway.Unfit { return nil }

const benchCurrency = "EUR"

func deposit(ctx context.Context, core *holdfast.Holdfast, accounts []string, n int64) error {
	for _, id := range accounts {
		if _, err := core.OpenAccount(ctx, holdfast.Key{}, holdfast.AccountInput{ID: id}); err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if _, err := core.Deposit(ctx, holdfast.Key{}, id, benchCurrency, n, "bench"); err != nil {
			return err
		}
	}
	return nil
}

func payOut(ctx context.Context, core *holdfast.Holdfast, key holdfast.Key, account string) error {
	_, err := core.RequestPayout(ctx, key, holdfast.PayoutInput{Account: account, Currency: benchCurrency, Amount: 1, Destination: key.Value})
	return err
}

// appendPayout asks for a receiver of its own, as a platform's users have them.
func appendPayout(to []byte, key, account string) []byte {
	return fmt.Appendf(to, `{"account":%q,"currency":%q,"amount":1,"destination":%q}`, account, benchCurrency, key)
}

// auditOf audits what came from an account of the ledger. of says of which ware
// an asset of an account is; "" = none.
func auditOf(source ledger.Account, of func(ledger.Key) string) func(context.Context, ledger.Reader, int64) (map[string]level, error) {
	return func(ctx context.Context, books ledger.Reader, since int64) (map[string]level, error) {
		all := map[string]level{}
		q := ledger.PostingQuery{After: since}
		for {
			page, err := books.Postings(ctx, q)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				if name := of(ledger.Key{Account: m.To, Asset: m.Asset}); name != "" && m.From == source {
					v := all[name]
					v.received += m.Amount
					all[name] = v
				}
				q.After = m.Seq
			}
		}
		var balances ledger.BalanceQuery
		for {
			page, err := books.Balances(ctx, balances)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				return all, nil
			}
			for _, b := range page {
				if name := of(b.Key); name != "" {
					v := all[name]
					v.held, v.available = v.held+b.Held, v.available+b.Available()
					all[name] = v
				}
				balances.After = b.Key
			}
		}
	}
}

func skuOf(k ledger.Key) string {
	sku, ok := strings.CutPrefix(string(k.Asset), string(flow.Pieces("")))
	if !ok || k.Account != flow.Stock {
		return ""
	}
	return sku
}

func accountOf(k ledger.Key) string {
	id, ok := strings.CutPrefix(string(k.Account), string(flow.Wallet("")))
	if !ok || k.Asset != benchCurrency {
		return ""
	}
	return id
}
