package wechatpaysim

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Detail codes, the numbers at the end of a Request-Id.
const (
	detailNone       = "0"
	detailPaid       = "268449538" // the order is paid
	detailOtherOrder = "268498688" // the number was used with other parameters
	detailField      = "270924358" // a field is unknown or wrong
)

// apiError is an answer other than 2xx, or the 202 that says nothing is certain.
type apiError struct {
	status  int
	code    string
	message string
	detail  string // at the end of the Request-Id
	field   string // JSON pointer of the field at fault
}

func refused(status int, code, message string) *apiError {
	return &apiError{status: status, code: code, message: message, detail: detailNone}
}

// invalid says that a field is wrong, whatever the state of things.
func invalid(field, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, code: "PARAM_ERROR", message: message, detail: detailField, field: field}
}

func signError(message string) *apiError {
	return refused(http.StatusUnauthorized, "SIGN_ERROR", message)
}

func systemError() *apiError {
	return refused(http.StatusInternalServerError, "SYSTEM_ERROR", "系统异常，请稍后重试")
}

// body is the error's JSON. Older parts of WeChat Pay spell codes without
// underscores.
func (e *apiError) body(old bool) []byte {
	code := e.code
	if old {
		code = strings.ReplaceAll(code, "_", "")
	}
	o := object{"code": code, "message": e.message}
	if e.field != "" {
		o["detail"] = object{"location": "body", "field": e.field, "issue": e.message}
	}
	return encode(o)
}

// object is the wire form of a thing.
type object map[string]any

// encode writes JSON. What the simulator writes holds nothing that JSON cannot say.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("wechatpaysim: encode: " + err.Error())
	}
	return b
}
