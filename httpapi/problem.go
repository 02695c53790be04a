package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/holdfast-pay/holdfast"
)

// Problem is the body of every refusal: RFC 9457, with a code for programs.
type Problem struct {
	Type      string        `json:"type" doc:"Always about:blank: programs read code"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail" doc:"For people; may change"`
	Code      string        `json:"code" doc:"For programs; stable"`
	RequestID string        `json:"request_id" doc:"What to tell the operator"`
	Errors    []FieldError  `json:"errors,omitempty"`
	SKU       string        `json:"sku,omitempty" doc:"The line at fault"`
	Available *int64        `json:"available,omitempty" doc:"Pieces left: with sold_out of the item, with customer_limit for the customer. Minor units left: with insufficient_funds, balance_ceiling, daily_limit and payout_limit"`
	OpensAt   holdfast.Time `json:"opens_at,omitzero" doc:"With sale_not_open"`
}

// FieldError is what is wrong with one member of the body.
type FieldError struct {
	Field  string `json:"field" doc:"JSON pointer, RFC 6901"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// statusOf is the one place where a code becomes an HTTP status.
var statusOf = map[string]int{
	holdfast.CodeSoldOut:           http.StatusConflict,
	holdfast.CodeNotFound:          http.StatusNotFound,
	holdfast.CodeSKUUnknown:        http.StatusUnprocessableEntity,
	holdfast.CodeInvalidState:      http.StatusConflict,
	holdfast.CodeKeyReused:         http.StatusUnprocessableEntity,
	holdfast.CodeOrderExists:       http.StatusConflict,
	holdfast.CodeStale:             http.StatusPreconditionFailed,
	holdfast.CodeAmountRange:       http.StatusUnprocessableEntity,
	holdfast.CodeTotalOverflow:     http.StatusUnprocessableEntity,
	holdfast.CodeSplitsExceed:      http.StatusUnprocessableEntity,
	holdfast.CodeCurrencyInvalid:   http.StatusUnprocessableEntity,
	holdfast.CodeCurrencyMismatch:  http.StatusUnprocessableEntity,
	holdfast.CodeInvalidID:         http.StatusBadRequest,
	holdfast.CodeInvalidField:      http.StatusUnprocessableEntity,
	holdfast.CodeTooManyItems:      http.StatusUnprocessableEntity,
	holdfast.CodeHoldRange:         http.StatusUnprocessableEntity,
	holdfast.CodeGatewayUnknown:    http.StatusUnprocessableEntity,
	holdfast.CodeMethodUnknown:     http.StatusUnprocessableEntity,
	holdfast.CodePaymentUnfit:      http.StatusUnprocessableEntity,
	holdfast.CodePayoutUnfit:       http.StatusUnprocessableEntity,
	holdfast.CodeRefundExceeds:     http.StatusUnprocessableEntity,
	holdfast.CodeRestockExceeds:    http.StatusUnprocessableEntity,
	holdfast.CodeStockInsufficient: http.StatusConflict,
	holdfast.CodeOverloaded:        http.StatusServiceUnavailable,
	holdfast.CodeSaleNotOpen:       http.StatusConflict,
	holdfast.CodeSaleClosed:        http.StatusConflict,
	holdfast.CodeSaleOverlaps:      http.StatusConflict,
	holdfast.CodeCustomerRequired:  http.StatusUnprocessableEntity,
	holdfast.CodeCustomerLimit:     http.StatusTooManyRequests,
	holdfast.CodeInvalidTime:       http.StatusBadRequest,
	holdfast.CodeURLNotAllowed:     http.StatusUnprocessableEntity,
	holdfast.CodeSealerRequired:    http.StatusConflict,

	holdfast.CodeAccountUnknown:    http.StatusUnprocessableEntity,
	holdfast.CodeAccountExists:     http.StatusConflict,
	holdfast.CodeAccountFrozen:     http.StatusConflict,
	holdfast.CodeInsufficientFunds: http.StatusConflict,
	holdfast.CodeCeiling:           http.StatusConflict,
	holdfast.CodeLimits:            http.StatusConflict,
	holdfast.CodeHoldFinal:         http.StatusConflict,
	holdfast.CodeExceedsHold:       http.StatusUnprocessableEntity,
	holdfast.CodePayoutLimit:       http.StatusConflict,
	holdfast.CodeDailyLimit:        http.StatusConflict,
	holdfast.CodeSelfApproval:      http.StatusForbidden,

	codeInvalidPath:        http.StatusBadRequest,
	codeInvalidHost:        http.StatusMisdirectedRequest,
	codeForeignOrigin:      http.StatusForbidden,
	codeChunked:            http.StatusBadRequest,
	codeTooManyHeaders:     http.StatusRequestHeaderFieldsTooLarge,
	codeMethodNotAllowed:   http.StatusMethodNotAllowed,
	codeMediaType:          http.StatusUnsupportedMediaType,
	codeBodyTooLarge:       http.StatusRequestEntityTooLarge,
	codeBodyIncomplete:     http.StatusBadRequest,
	codeRequestTimeout:     http.StatusRequestTimeout,
	codeInvalidJSON:        http.StatusBadRequest,
	codeInvalidUTF8:        http.StatusBadRequest,
	codeTrailingData:       http.StatusBadRequest,
	codeTooDeep:            http.StatusBadRequest,
	codeDuplicateField:     http.StatusBadRequest,
	codeUnknownField:       http.StatusBadRequest,
	codeMissingField:       http.StatusBadRequest,
	codeInvalidType:        http.StatusBadRequest,
	codeInvalidCharacters:  http.StatusUnprocessableEntity,
	codeCardData:           http.StatusUnprocessableEntity,
	codeReturnURL:          http.StatusUnprocessableEntity,
	codeInvalidParameter:   http.StatusBadRequest,
	codeInvalidSort:        http.StatusBadRequest,
	codeInvalidCursor:      http.StatusBadRequest,
	codeLimitRange:         http.StatusUnprocessableEntity,
	codeKeyRequired:        http.StatusBadRequest,
	codeKeyInvalid:         http.StatusBadRequest,
	codeUnauthenticated:    http.StatusUnauthorized,
	codeCredentialsInURL:   http.StatusBadRequest,
	codeForbiddenScope:     http.StatusForbidden,
	codeTooManyFailures:    http.StatusTooManyRequests,
	codeTooManyStreams:     http.StatusTooManyRequests,
	codeStreamToken:        http.StatusUnauthorized,
	codeSignatureMissing:   http.StatusUnauthorized,
	codeSignatureInvalid:   http.StatusUnauthorized,
	codeTimestamp:          http.StatusUnauthorized,
	codeMalformedWebhook:   http.StatusBadRequest,
	codeWebhookUnavailable: http.StatusServiceUnavailable,
	codeOutcomeUnknown:     http.StatusServiceUnavailable,
	codeInternal:           http.StatusInternalServerError,
}

// The codes that HTTP adds to those of the core.
const (
	codeInvalidPath        = "invalid_path"
	codeInvalidHost        = "misdirected_request"
	codeForeignOrigin      = "foreign_origin"
	codeChunked            = "chunked_not_accepted"
	codeTooManyHeaders     = "too_many_headers"
	codeMethodNotAllowed   = "method_not_allowed"
	codeMediaType          = "unsupported_media_type"
	codeBodyTooLarge       = "body_too_large"
	codeBodyIncomplete     = "body_incomplete"
	codeRequestTimeout     = "request_timeout"
	codeInvalidJSON        = "invalid_json"
	codeInvalidUTF8        = "invalid_utf8"
	codeTrailingData       = "trailing_data"
	codeTooDeep            = "too_deep"
	codeDuplicateField     = "duplicate_field"
	codeUnknownField       = "unknown_field"
	codeMissingField       = "missing_field"
	codeInvalidType        = "invalid_type"
	codeInvalidCharacters  = "invalid_characters"
	codeCardData           = "card_data_not_accepted"
	codeReturnURL          = "return_url_not_allowed"
	codeInvalidParameter   = "invalid_parameter"
	codeInvalidSort        = "invalid_sort"
	codeInvalidCursor      = "invalid_cursor"
	codeLimitRange         = "limit_out_of_range"
	codeKeyRequired        = "idempotency_key_required"
	codeKeyInvalid         = "idempotency_key_invalid"
	codeUnauthenticated    = "unauthenticated"
	codeCredentialsInURL   = "credentials_in_url"
	codeForbiddenScope     = "forbidden_scope"
	codeTooManyFailures    = "too_many_failed_attempts"
	codeTooManyStreams     = "too_many_streams"
	codeStreamToken        = "stream_token_invalid"
	codeSignatureMissing   = "signature_missing"
	codeSignatureInvalid   = "signature_invalid"
	codeTimestamp          = "timestamp_out_of_range"
	codeMalformedWebhook   = "malformed_notification"
	codeWebhookUnavailable = "notification_not_processed"
	codeOutcomeUnknown     = "outcome_unknown"
	codeInternal           = "internal"
)

// Retry-After is a random number of seconds, so that the clients that were
// turned away together do not come back together.
const (
	minRetrySeconds = 1
	maxRetrySeconds = 4
)

// refusal is the error of a request that this package turns away.
type refusal struct {
	code   string
	detail string
	field  string // JSON pointer of the member at fault; "" = none
	status int    // 0 = statusOf[code]
	retry  int    // seconds; 0 = no Retry-After
}

func (r *refusal) Error() string { return r.code + ": " + r.detail }

func refuse(code, detail string) *refusal { return &refusal{code: code, detail: detail} }

// fail answers a request that can't be served and, when only an operator can
// help, logs why. Nothing of the cause reaches the client.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var (
		p  = Problem{RequestID: w.Header().Get("Request-Id")}
		no *refusal
		rj *holdfast.Rejection
	)
	switch {
	case errors.As(err, &no):
		p.Code, p.Detail, p.Status = no.code, no.detail, no.status
		if no.field != "" {
			p.Errors = []FieldError{{Field: no.field, Code: no.code, Detail: no.detail}}
		}
		if no.retry > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(no.retry))
		}
	case errors.As(err, &rj):
		p.Code, p.Detail, p.SKU, p.OpensAt = rj.Code, rj.Detail, rj.SKU, rj.OpensAt
		p.Available = available(rj)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p.Code, p.Detail = codeOutcomeUnknown, "took too long; ask again with the same Idempotency-Key"
	default:
		p.Code, p.Detail = codeInternal, "see the log for this request_id"
		if errors.Is(err, holdfast.ErrUnavailable) {
			p.Code, p.Detail = codeOutcomeUnknown, "the database does not answer; ask again with the same Idempotency-Key"
		}
		a.log.ErrorContext(r.Context(), "request failed", "request_id", p.RequestID, "method", r.Method, "route", r.Pattern, "err", err)
	}
	if p.Status == 0 {
		p.Status = statusOf[p.Code]
	}
	if p.Status == 0 {
		p.Status = http.StatusUnprocessableEntity
	}
	writeProblem(w, p)
}

func writeProblem(w http.ResponseWriter, p Problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	h := w.Header()
	if p.Status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.Itoa(minRetrySeconds+rand.IntN(maxRetrySeconds-minRetrySeconds+1)))
	}
	if p.Code == codeUnauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	// The client is gone if this fails, and nobody is left to be told.
	_ = json.NewEncoder(w).Encode(p)
}
