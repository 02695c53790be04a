package stripesim

import "encoding/json"

const (
	invalidRequest = "invalid_request_error"
	stateCode      = "payment_intent_unexpected_state"
)

// apiError is an answer other than 2xx.
type apiError struct {
	status      int
	typ         string
	code        string
	declineCode string
	message     string
	param       string
	charge      string
	intent      *intent
	// unexecuted: the endpoint did not begin to run, so the answer is not kept
	// under the idempotency key.
	unexecuted bool
}

// refused says that the state of things does not allow it.
func refused(code, param, message string) *apiError {
	return &apiError{status: 400, typ: invalidRequest, code: code, param: param, message: message}
}

// invalid says that a parameter is wrong, whatever the state of things.
func invalid(code, param, message string) *apiError {
	e := refused(code, param, message)
	e.unexecuted = true
	return e
}

func unauthorized(message string) *apiError {
	return &apiError{status: 401, typ: invalidRequest, message: message, unexecuted: true}
}

func internalError() *apiError {
	return &apiError{status: 500, typ: "api_error", message: "An unknown error occurred."}
}

// turnedAway is the answer to a call that the plan stops before it starts; nil
// when it does not.
func turnedAway(before Kind) *apiError {
	switch before {
	case Unavailable:
		return &apiError{status: 503, typ: "api_error", message: "The service is temporarily unavailable.", unexecuted: true}
	case RateLimited:
		return &apiError{status: 429, typ: invalidRequest, code: "rate_limit", message: "Request rate limit exceeded.", unexecuted: true}
	case KeyInUse:
		return keyInUse()
	}
	return nil
}

func (e *apiError) object() object {
	o := object{"type": e.typ, "message": e.message}
	for k, v := range map[string]string{"code": e.code, "decline_code": e.declineCode, "param": e.param, "charge": e.charge} {
		if v != "" {
			o[k] = v
		}
	}
	if e.intent != nil {
		o["payment_intent"] = e.intent.object()
	}
	return o
}

func (e *apiError) reply() reply {
	return reply{status: e.status, body: encode(object{"error": e.object()})}
}

// encode writes an object as Stripe does, indented. Objects hold nothing that
// JSON cannot say.
func encode(o object) []byte {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic("stripesim: encode an object: " + err.Error())
	}
	return append(b, '\n')
}
