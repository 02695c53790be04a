package wechatpay

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var (
	errUnauthentic = errors.New("answer is not authentic")
	errUnreadable  = errors.New("unreadable answer")
)

// apiError is an authentic answer that is not the one hoped for.
type apiError struct {
	status  int
	request string // WeChat Pay's id of the request
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("http %d %s: %s (request %s)", e.status, clip(e.Code, maxShown), clip(e.Message, maxShown), clip(e.request, maxShown))
}

// maxShown is how many bytes of a text of WeChat Pay's get into an error.
const maxShown = 200

// is compares the code with others. WeChat Pay writes the same code with and
// without underscores, by age of the interface.
func (e *apiError) is(codes ...string) bool {
	plain := strings.ReplaceAll(e.Code, "_", "")
	for _, c := range codes {
		if plain == c {
			return true
		}
	}
	return false
}

func asAPI(err error) (*apiError, bool) {
	var e *apiError
	ok := errors.As(err, &e)
	return e, ok
}

// isFinal says that WeChat Pay read the call and will never do it as it
// stands. What is not listed is not final: 401 and most of 403 mean that our
// configuration is wrong, 429 that it did not get to it, 5xx that it does not
// know itself, and a code that nobody knows can mean anything.
func isFinal(err error) bool {
	e, ok := asAPI(err)
	return ok && e.status >= 400 && e.status < 500 &&
		e.is("PARAMERROR", "INVALIDREQUEST", "OPENIDMISMATCH", "TRADEERROR", "NOTENOUGH", "USERACCOUNTABNORMAL", "RESOURCENOTEXISTS", "ORDERNOTEXIST")
}

// speaksOfState tells the codes that say what an order or a number is at,
// which is no verdict on the call.
func speaksOfState(err error) bool {
	e, ok := asAPI(err)
	return ok && e.is("ORDERPAID", "ORDERCLOSED", "OUTTRADENOUSED", "USERPAYING")
}

// isAbsent says that WeChat Pay has no such order or refund.
func isAbsent(err error) bool {
	e, ok := asAPI(err)
	return ok && e.status == http.StatusNotFound && e.is("ORDERNOTEXIST", "RESOURCENOTEXISTS")
}

// code is WeChat Pay's own, or our word for an answer without one.
func code(err error) string {
	e, ok := asAPI(err)
	switch {
	case ok && e.Code != "":
		return clip(e.Code, maxShown)
	case ok:
		return fmt.Sprintf("http_%d", e.status)
	case errors.Is(err, errUnauthentic):
		return "unauthentic"
	case errors.Is(err, errUnreadable):
		return "unreadable"
	}
	return ""
}

// clip cuts a text to that many bytes, at the end of a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
