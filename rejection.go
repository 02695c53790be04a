package holdfast

import (
	"fmt"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/sqlstore"
)

// Rejection is the error of a request that had no effect and, as it stands,
// never will. Any other error means that the outcome is unknown: ask again
// with the same Key.
type Rejection struct {
	Code      string // stable, for programs: one of the Code constants
	Detail    string // for people
	SKU       string // the line at fault, if one is
	Available int64  // pieces left, with CodeSoldOut of the SKU, with CodeCustomerLimit for the customer
	OpensAt   Time   // with CodeSaleNotOpen
}

func (r *Rejection) Error() string { return r.Code + ": " + r.Detail }

// ErrUnavailable is an error whose cause is that the database does not answer:
// asking again will do, with the same Key.
var ErrUnavailable = sqlstore.ErrAway

// The codes of rejections.
const (
	CodeSoldOut           = "sold_out"
	CodeNotFound          = "not_found"
	CodeSKUUnknown        = "sku_unknown"
	CodeInvalidState      = flow.InvalidState
	CodeKeyReused         = "idempotency_key_reused"
	CodeOrderExists       = "order_already_exists" // the reference is taken
	CodeStale             = "stale"                // somebody else wrote meanwhile
	CodeAmountRange       = "amount_out_of_range"
	CodeTotalOverflow     = flow.TotalOverflow
	CodeSplitsExceed      = flow.SplitsExceed // the splits are more than the total
	CodeCurrencyInvalid   = "currency_invalid"
	CodeCurrencyMismatch  = "currency_mismatch"
	CodeInvalidID         = "invalid_id"
	CodeInvalidField      = "invalid_field"
	CodeTooManyItems      = "too_many_items"
	CodeHoldRange         = "hold_out_of_range"
	CodeGatewayUnknown    = "gateway_unknown"
	CodeMethodUnknown     = "method_unknown"
	CodePaymentUnfit      = "payment_not_possible" // the gateway would surely refuse it
	CodeRefundExceeds     = flow.ExceedsCapture
	CodeRestockExceeds    = flow.ExceedsSold
	CodeStockInsufficient = "stock_insufficient" // less stock than an adjustment takes
	CodeOverloaded        = "overloaded"         // nothing was done; come back later
	CodeSaleNotOpen       = "sale_not_open"
	CodeSaleClosed        = "sale_closed"
	CodeSaleOverlaps      = "sale_overlaps"     // another sale of the SKU
	CodeCustomerRequired  = "customer_required" // the sale has a limit for each customer
	CodeCustomerLimit     = "customer_limit"
	CodeInvalidTime       = "invalid_time"
	CodeURLNotAllowed     = "url_not_allowed"
	CodeSealerRequired    = "master_key_required" // nothing can be sealed here

	CodeAccountUnknown    = "account_unknown"
	CodeAccountExists     = "account_already_exists"
	CodeAccountFrozen     = "account_frozen"
	CodeInsufficientFunds = "insufficient_funds"
	CodeCeiling           = "balance_ceiling" // the account would have more than it may
	CodeLimits            = flow.InvalidTerms
	CodeHoldFinal         = flow.HoldOver
	CodeExceedsHold       = flow.ExceedsHold
	CodePayoutUnfit       = "payout_not_possible" // the gateway would surely refuse it
	CodePayoutLimit       = "payout_limit"
	CodeDailyLimit        = "daily_limit"
	CodeSelfApproval      = flow.SelfApproval
)

func reject(code, format string, args ...any) *Rejection {
	return &Rejection{Code: code, Detail: fmt.Sprintf(format, args...)}
}
