package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	sdk "github.com/stripe/stripe-go/v86"
)

// maxStatement is how many lines of one day are read.
const maxStatement = 200_000

var _ gateway.Statements = (*Gateway)(nil)

// Stripe has no file of a day; its statement is the list of balance transactions
// of the day, as its API and its command line tool write it with the sources
// expanded: https://docs.stripe.com/api/balance_transactions.
type statement struct {
	Data    []transaction `json:"data"`
	HasMore bool          `json:"has_more,omitempty"`
}

// transaction is a line. A refund's failure has the refund as its source.
type transaction struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Amount   int64  `json:"amount"`
	Fee      int64  `json:"fee"`
	Currency string `json:"currency"`
	Created  int64  `json:"created"`
	Source   source `json:"source"`
}

type source struct {
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Transfer *source           `json:"transfer,omitempty"` // of a reversal
}

// payout is our number of a payout.
func (s source) payout() string {
	if s.Transfer != nil {
		return s.Transfer.Metadata[metaPayout]
	}
	return s.Metadata[metaPayout]
}

// UnmarshalJSON also takes a source that is not expanded, or is none.
func (s *source) UnmarshalJSON(b []byte) error {
	var id *string
	if err := json.Unmarshal(b, &id); err == nil {
		if id != nil {
			s.ID = *id
		}
		return nil
	}
	type expanded source
	return json.Unmarshal(b, (*expanded)(s))
}

// Zone implements gateway.Statements: Stripe's days are those of UTC.
func (g *Gateway) Zone() *time.Location { return time.UTC }

// FetchStatement implements gateway.Statements.
func (g *Gateway) FetchStatement(ctx context.Context, day time.Time) ([]byte, error) {
	params := &sdk.BalanceTransactionListParams{CreatedRange: &sdk.RangeQueryParams{
		GreaterThanOrEqual: day.Unix(), LesserThan: day.AddDate(0, 0, 1).Unix(),
	}}
	params.Limit = sdk.Int64(maxPage)
	params.AddExpand("data.source")
	out := statement{Data: []transaction{}}
	list := g.client.V1BalanceTransactions.List(ctx, params)
	for t, err := range list.All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("stripe: list the balance transactions of %s: %w", day.Format(time.DateOnly), err)
		}
		if len(out.Data) == maxStatement {
			return nil, fmt.Errorf("stripe: %s has more than %d balance transactions", day.Format(time.DateOnly), maxStatement)
		}
		of, err := g.sourceOf(ctx, t.Source)
		if err != nil {
			return nil, fmt.Errorf("stripe: source of balance transaction %s: %w", t.ID, readable(err))
		}
		out.Data = append(out.Data, transaction{t.ID, string(t.Type), t.Amount, t.Fee, string(t.Currency), t.Created, of})
	}
	if list.Meta().URL == "" {
		return nil, fmt.Errorf("stripe: list the balance transactions of %s: %w: not a list", day.Format(time.DateOnly), errUnreadable)
	}
	return json.Marshal(out)
}

// sourceOf asks once more for a reversal: the number is its transfer's.
func (g *Gateway) sourceOf(ctx context.Context, s *sdk.BalanceTransactionSource) (source, error) {
	if s == nil {
		return source{}, nil
	}
	out := source{ID: s.ID}
	switch {
	case s.Charge != nil:
		out.Metadata = s.Charge.Metadata
	case s.Refund != nil:
		out.Metadata = s.Refund.Metadata
	case s.Payout != nil:
		out.Metadata = s.Payout.Metadata
	case s.Transfer != nil:
		out.Metadata = s.Transfer.Metadata
	case s.TransferReversal != nil && s.TransferReversal.Transfer != nil:
		of, err := g.client.V1Transfers.Retrieve(ctx, s.TransferReversal.Transfer.ID, &sdk.TransferRetrieveParams{})
		if err != nil {
			return out, err
		}
		out.Transfer = &source{ID: of.ID, Metadata: of.Metadata}
	}
	return out, nil
}

// ReadStatement implements gateway.Statements.
func (g *Gateway) ReadStatement(file []byte) ([]gateway.StatementLine, error) {
	var in statement
	if err := json.Unmarshal(file, &in); err != nil {
		return nil, fmt.Errorf("stripe: statement: %w", err)
	}
	if in.Data == nil {
		return nil, fmt.Errorf("stripe: statement: no list of balance transactions")
	}
	if in.HasMore {
		return nil, fmt.Errorf("stripe: statement: only the first page of a list")
	}
	lines := make([]gateway.StatementLine, len(in.Data))
	for i, t := range in.Data {
		var err error
		if lines[i], err = t.line(); err != nil {
			return nil, fmt.Errorf("stripe: statement: line %d: %w", i+1, err)
		}
	}
	return lines, nil
}

func (t transaction) line() (gateway.StatementLine, error) {
	amount, currency, good := signed(t.Amount, t.Currency)
	fee, _, goodFee := signed(t.Fee, t.Currency)
	if t.ID == "" || t.Created <= 0 || !good || !goodFee {
		return gateway.StatementLine{}, fmt.Errorf("%w: transaction %.40q of %d %.8q", errUnreadable, t.ID, t.Amount, t.Currency)
	}
	l := gateway.StatementLine{ID: t.ID, Kind: gateway.OtherLine, Ref: t.Source.ID, Amount: amount, Fee: fee, Currency: currency,
		At: time.Unix(t.Created, 0).UTC(), Text: fmt.Sprintf("%s %s %d %s", t.ID, t.Type, t.Amount, t.Currency)}
	switch t.Type {
	case "charge", "payment":
		l.Kind, l.Number = gateway.PaymentLine, t.Source.Metadata[metaPayment]
	case "refund", "payment_refund":
		l.Kind, l.Number = gateway.RefundLine, t.Source.Metadata[metaRefund]
	case "refund_failure", "payment_failure_refund":
		l.Kind, l.Number = gateway.RefundBackLine, t.Source.Metadata[metaRefund]
	case "payout", "transfer":
		l.Kind, l.Number = gateway.PayoutLine, t.Source.payout()
	case "payout_failure", "payout_cancel", "transfer_refund", "transfer_failure", "transfer_cancel":
		l.Kind, l.Number = gateway.PayoutBackLine, t.Source.payout()
	}
	if strings.HasPrefix(t.Type, "payout") && l.Number == "" {
		l.Kind = gateway.SettledLine // Stripe's own, to our bank
	}
	return l, nil
}

// signed is fromWire for amounts that may be negative.
func signed(amount int64, currency string) (int64, string, bool) {
	if amount < -maxAmount {
		return 0, "", false
	}
	sign := int64(1)
	if amount < 0 {
		sign, amount = -1, -amount
	}
	amount, currency, good := fromWire(amount, currency)
	return sign * amount, currency, good
}
