package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	sdk "github.com/stripe/stripe-go/v86"
)

var (
	errAbsent     = errors.New("not found")
	errUnreadable = errors.New("unreadable answer")
	errStillOpen  = errors.New("still open after closing")
	errKeyOld     = errors.New("not sent: stripe may have forgotten its key")
)

// Codes of our own, beside Stripe's.
const (
	codeMethod     = "method_unknown"
	codeAmount     = "amount_unsupported"
	codeAbsent     = "not_found"
	codeUnpaid     = "not_paid"
	codeUnreadable = "unreadable"
	codeKeyOld     = "key_too_old"
	codePartlyBack = "partly_reversed"
)

// isFinal says that Stripe read the call and will never do it. What is not
// listed here is not final: 401 and 403 mean that our configuration is wrong,
// 409 and 429 that it did not get to it, 5xx that it does not know itself.
func isFinal(err error) bool {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.HTTPStatusCode {
	case http.StatusPaymentRequired:
		return e.Type == sdk.ErrorTypeCard
	case http.StatusBadRequest, http.StatusNotFound:
		return e.Type == sdk.ErrorTypeInvalidRequest && !speaksOfState(e.Code)
	}
	return false
}

// speaksOfState tells the codes that say what an object or a key is at, which
// is no verdict on the call.
func speaksOfState(c sdk.ErrorCode) bool {
	switch c {
	case sdk.ErrorCodePaymentIntentUnexpectedState, sdk.ErrorCodeIdempotencyKeyInUse, sdk.ErrorCodeLockTimeout:
		return true
	}
	return false
}

// isKept says that asking again under the same key will only repeat this
// answer, though it does not tell what happened.
func isKept(err error) bool {
	var e *sdk.Error
	return errors.As(err, &e) && (e.HTTPStatusCode >= 500 || e.Type == sdk.ErrorTypeIdempotency)
}

// isSpent says that the key has nothing more to give: its call is over and was
// a failure of Stripe's, which is repeated for as long as the key is kept.
func isSpent(err error) bool {
	var e *sdk.Error
	return errors.As(err, &e) && e.HTTPStatusCode >= 500 && replayed(e.LastResponse)
}

// isAbsent says that Stripe has no such object.
func isAbsent(err error) bool {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e.HTTPStatusCode == http.StatusNotFound && e.Code == sdk.ErrorCodeResourceMissing
	}
	return errors.Is(err, errAbsent)
}

func code(err error) string {
	var e *sdk.Error
	switch {
	case errors.As(err, &e) && e.DeclineCode != "":
		return string(e.DeclineCode)
	case errors.As(err, &e) && e.Code != "":
		return string(e.Code)
	case errors.As(err, &e):
		return fmt.Sprintf("http_%d", e.HTTPStatusCode)
	case errors.Is(err, errUnreadable):
		return codeUnreadable
	case errors.Is(err, errKeyOld):
		return codeKeyOld
	}
	return ""
}

// readable turns the SDK's error into one for a log. The SDK's own text holds
// the whole answer, client secrets included.
func readable(err error) error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return fmt.Errorf("http %d %s %s: %s (request %s)",
			e.HTTPStatusCode, e.Type, e.Code, clip(e.Msg, maxDescription), e.RequestID)
	}
	var transport *url.Error
	for _, known := range []error{errAbsent, errUnreadable, errStillOpen, errKeyOld, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.As(err, &transport) {
		return err
	}
	return errUnreadable
}
