package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

var (
	_ gateway.Payer    = (*Gateway)(nil)
	_ gateway.Recaller = (*Gateway)(nil)
)

// metaPayout is our number on what a payout has become at Stripe.
const metaPayout = "payout_id"

// ourBank is the destination that stands for the account's default bank account.
const ourBank = "bank"

// Where a payout can go. To a connected account it is a Transfer, which has
// happened as soon as it was made, and comes back by a reversal. To a bank
// account or debit card of our own it is a Payout, which takes days.
var (
	connected = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,64}$`)
	external  = regexp.MustCompile(`^(ba|card)_[A-Za-z0-9]{1,64}$`)
)

var errNoDestination = errors.New("not acct_…, ba_…, card_… or " + ourBank)

// CheckPayout implements gateway.Payer. Stripe's least amounts depend on the
// country of the bank, and are left to Stripe.
func (g *Gateway) CheckPayout(p gateway.Payout) *gateway.Unfit {
	if p.Destination != ourBank && !connected.MatchString(p.Destination) && !external.MatchString(p.Destination) {
		return &gateway.Unfit{Field: "destination", Detail: errNoDestination.Error()}
	}
	if _, ok := toWire(p.Amount, p.Currency); !ok {
		return &gateway.Unfit{Field: "amount", Detail: fmt.Sprintf("stripe can't carry %d minor units of %s", p.Amount, p.Currency)}
	}
	return nil
}

// Payout implements gateway.Payer. It makes one call, under one key for ever:
// what Stripe's answer does not tell, QueryPayout finds out. 23 hours after
// CreatedAt it only looks.
func (g *Gateway) Payout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	if unfit := g.CheckPayout(p); unfit != nil {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "unfit_" + unfit.Field}
	}
	if !g.fresh(p.CreatedAt) {
		a := g.QueryPayout(ctx, p)
		if a.Outcome == gateway.Refused {
			return unknownPayout(p, "create", errKeyOld)
		}
		return a
	}
	s, err := g.outlet(p).send(ctx, p)
	switch {
	case err == nil && s.replayed: // what was true at the first call of the key
		p.Ref = s.ref
		return g.QueryPayout(ctx, p)
	case err == nil:
		return payoutAnswer(p, s)
	case isFinal(err):
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: code(err)}
	}
	return unknownPayout(p, "create", err)
}

// QueryPayout implements gateway.Payer. Without Ref it reads the list of what
// was made for that destination; where that is too long to be read, the outcome
// is Unknown and not Refused.
func (g *Gateway) QueryPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	look := g.outlet(p).find
	if p.Ref != "" {
		look = g.outlet(p).get
	}
	s, err := look(ctx, p)
	if isAbsent(err) {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: codeAbsent}
	}
	if err != nil {
		return unknownPayout(p, "query", err)
	}
	return payoutAnswer(p, s)
}

// RecallPayout implements gateway.Recaller, for what goes to a bank and has not
// been handed to it. A transfer has happened: only its receiver's account can
// give it back.
func (g *Gateway) RecallPayout(ctx context.Context, p gateway.Payout) gateway.PayoutAnswer {
	if connected.MatchString(p.Destination) {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "transfer_is_final"}
	}
	if p.Ref == "" {
		a := g.QueryPayout(ctx, p)
		if a.Outcome != gateway.Done {
			return a
		}
		p.Ref = a.Ref
	}
	o, err := g.cancel(ctx, p.Ref)
	switch {
	case err == nil && o.ID == p.Ref:
		return gateway.PayoutAnswer{Outcome: gateway.Accepted, Ref: p.Ref}
	case err == nil:
		return unknownPayout(p, "cancel", errUnreadable)
	case isFinal(err):
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Ref: p.Ref, Code: code(err)}
	}
	return unknownPayout(p, "cancel", err)
}

// cancel stands in for V1Payouts.Cancel, which in v86.1.1 has the path of top-ups.
func (g *Gateway) cancel(ctx context.Context, ref string) (*sdk.Payout, error) {
	params, o := &sdk.PayoutCancelParams{}, &sdk.Payout{}
	params.Context = ctx
	return o, g.api.Call(http.MethodPost, sdk.FormatURLPath("/v1/payouts/%s/cancel", ref), g.key, params, o)
}

// outlet is one of the two objects that stand for a payout.
type outlet interface {
	send(ctx context.Context, p gateway.Payout) (paying, error)
	get(ctx context.Context, p gateway.Payout) (paying, error)
	// find looks for our number; errAbsent means that there is none.
	find(ctx context.Context, p gateway.Payout) (paying, error)
}

func (g *Gateway) outlet(p gateway.Payout) outlet {
	if connected.MatchString(p.Destination) {
		return toAccount{g.client}
	}
	return toBank{g.client}
}

// paying is what an object says of its payout.
type paying struct {
	payout   string // our number
	ref      string
	amount   int64
	currency string // upper case
	status   gateway.PayoutStatus
	code     string
	replayed bool
}

// payoutAnswer is Done, unless the object is not the one that was asked for.
func payoutAnswer(p gateway.Payout, s paying) gateway.PayoutAnswer {
	if s.payout != p.ID || s.amount != p.Amount || s.currency != p.Currency {
		return unknownPayout(p, "read", fmt.Errorf("%w: %.64q is payout %.64q, of %d %.8q", errUnreadable, s.ref, s.payout, s.amount, s.currency))
	}
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: s.status, Ref: s.ref, Code: s.code}
}

func unknownPayout(p gateway.Payout, what string, err error) gateway.PayoutAnswer {
	return gateway.PayoutAnswer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("stripe: %s payout %s: %w", what, p.ID, readable(err)),
	}
}

// toAccount is a Transfer. Our number is its transfer_group as well, by which a
// list can be asked for.
type toAccount struct{ client *sdk.Client }

func (k toAccount) send(ctx context.Context, p gateway.Payout) (paying, error) {
	amount, _ := toWire(p.Amount, p.Currency)
	params := &sdk.TransferCreateParams{
		Amount: sdk.Int64(amount), Currency: wireCurrency(p.Currency), Destination: sdk.String(p.Destination),
		Description: described(p), TransferGroup: sdk.String(p.ID), Metadata: map[string]string{metaPayout: p.ID},
	}
	params.SetIdempotencyKey(key("payout", p.ID, 0))
	return readTransfer(k.client.V1Transfers.Create(ctx, params))
}

func (k toAccount) get(ctx context.Context, p gateway.Payout) (paying, error) {
	return readTransfer(k.client.V1Transfers.Retrieve(ctx, p.Ref, &sdk.TransferRetrieveParams{}))
}

func (k toAccount) find(ctx context.Context, p gateway.Payout) (paying, error) {
	params := &sdk.TransferListParams{TransferGroup: sdk.String(p.ID)}
	params.Limit = sdk.Int64(maxPage)
	return readTransfer(first(ctx, k.client.V1Transfers.List(ctx, params), func(o *sdk.Transfer) bool {
		return o.Metadata[metaPayout] == p.ID
	}))
}

func readTransfer(o *sdk.Transfer, err error) (paying, error) {
	if err != nil {
		return paying{}, err
	}
	s := paying{payout: o.Metadata[metaPayout], ref: o.ID, status: gateway.PayoutPaid, replayed: replayed(o.LastResponse)}
	switch {
	case o.Reversed:
		s.status = gateway.PayoutReturned
	case o.AmountReversed > 0:
		s.code = codePartlyBack
	}
	s.amount, s.currency, err = payable(o.Amount, o.Currency)
	return s, err
}

// toBank is a Payout. Stripe can't list them by what they carry, only by where
// they go and when.
type toBank struct{ client *sdk.Client }

func (k toBank) send(ctx context.Context, p gateway.Payout) (paying, error) {
	amount, _ := toWire(p.Amount, p.Currency)
	params := &sdk.PayoutCreateParams{
		Amount: sdk.Int64(amount), Currency: wireCurrency(p.Currency), Destination: account(p),
		Description: described(p), Metadata: map[string]string{metaPayout: p.ID},
	}
	params.SetIdempotencyKey(key("payout", p.ID, 0))
	return readPayout(k.client.V1Payouts.Create(ctx, params))
}

func (k toBank) get(ctx context.Context, p gateway.Payout) (paying, error) {
	return readPayout(k.client.V1Payouts.Retrieve(ctx, p.Ref, &sdk.PayoutRetrieveParams{}))
}

func (k toBank) find(ctx context.Context, p gateway.Payout) (paying, error) {
	params := &sdk.PayoutListParams{Destination: account(p), CreatedRange: window(p.CreatedAt)}
	params.Limit = sdk.Int64(maxPage)
	return readPayout(first(ctx, k.client.V1Payouts.List(ctx, params), func(o *sdk.Payout) bool {
		return o.Metadata[metaPayout] == p.ID
	}))
}

// account is nil for the default bank account, whose id is not known here.
func account(p gateway.Payout) *string {
	if p.Destination == ourBank {
		return nil
	}
	return sdk.String(p.Destination)
}

func readPayout(o *sdk.Payout, err error) (paying, error) {
	if err != nil {
		return paying{}, err
	}
	s := paying{payout: o.Metadata[metaPayout], ref: o.ID, code: string(o.FailureCode), replayed: replayed(o.LastResponse)}
	var known bool
	if s.status, known = payoutStatus(string(o.Status)); !known {
		return s, fmt.Errorf("%w: payout %.64q is %.32q", errUnreadable, o.ID, o.Status)
	}
	s.amount, s.currency, err = payable(o.Amount, o.Currency)
	return s, err
}

// payoutStatus: what failed may have been paid before. The caller knows.
func payoutStatus(word string) (gateway.PayoutStatus, bool) {
	switch sdk.PayoutStatus(word) {
	case sdk.PayoutStatusPending, sdk.PayoutStatusInTransit:
		return gateway.PayoutPending, true
	case sdk.PayoutStatusPaid:
		return gateway.PayoutPaid, true
	case sdk.PayoutStatusFailed, sdk.PayoutStatusCanceled:
		return gateway.PayoutFailed, true
	}
	return "", false
}

func payable(amount int64, currency sdk.Currency) (int64, string, error) {
	ours, upper, err := money(amount, string(currency))
	if err != nil {
		return 0, "", fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return ours, upper, nil
}

// described is nil for a payout without a text: Stripe refuses an empty one.
func described(p gateway.Payout) *string {
	if text := strings.TrimSpace(p.Description); text != "" {
		return sdk.String(clip(text, maxDescription))
	}
	return nil
}
