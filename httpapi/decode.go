package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of request bodies.
const (
	MaxBody    = 64 << 10  // bytes of an API request
	MaxWebhook = 256 << 10 // bytes of a gateway's notification
	MaxDepth   = 32        // objects and arrays within one another
)

// body is what a request says. missing lists the required members that are
// zero, as JSON pointers: absent, or said to be zero.
type body interface{ missing() []string }

var buffers = sync.Pool{New: func() any { return new([MaxBody]byte) }}

// readBody reads the whole of a body of at most limit bytes: into buf, if it
// fits. Its length is known, since chunked bodies are not taken.
func readBody(w http.ResponseWriter, r *http.Request, limit int, buf []byte) ([]byte, error) {
	if r.ContentLength > int64(limit) {
		w.Header().Set("Connection", "close")
		return nil, refuse(codeBodyTooLarge, "at most "+strconv.Itoa(limit)+" bytes")
	}
	if r.ContentLength > int64(len(buf)) {
		buf = make([]byte, r.ContentLength)
	}
	n, err := io.ReadFull(r.Body, buf[:r.ContentLength])
	switch {
	case err == nil:
		return buf[:n], nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuse(codeRequestTimeout, "the body did not come in time")
	default:
		w.Header().Set("Connection", "close")
		return nil, refuse(codeBodyIncomplete, "the body is shorter than its Content-Length")
	}
}

// strict is how bodies are read. What encoding/json would let pass (duplicate
// and unknown members, names in the wrong case, invalid UTF-8, data behind the
// document) is an error with this decoder; the functions add what it lets pass.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *int64) (err error) { *v, err = integer(d); return err }),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *string) (err error) { *v, err = str(d); return err }),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *text) error {
			s, err := str(d)
			if err == nil && cardNumber(s) {
				return refuse(codeCardData, "looks like a card number")
			}
			*v = text(s)
			return err
		}),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *party) error {
			s, err := str(d)
			if err == nil && issued(s) {
				return refuse(codeCardData, "is a card number")
			}
			*v = party(s)
			return err
		}),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *time.Time) error {
			s, err := str(d)
			if err != nil {
				return err
			}
			*v, err = moment(s)
			return err
		}),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *link) error {
			s, err := str(d)
			if no := (*refusal)(nil); errors.As(err, &no) {
				no.status = http.StatusBadRequest
			}
			*v = link(s)
			return err
		}),
	)),
)

const isNull = "is null; leave it out instead"

// integer reads an amount or a count. Every number that a client sends is an
// integer that JavaScript keeps exact, or it is refused.
func integer(d *jsontext.Decoder) (int64, error) {
	v, err := d.ReadValue()
	if err != nil {
		return 0, err
	}
	if v.Kind() == 'n' {
		return 0, refuse(codeMissingField, isNull)
	}
	if v.Kind() != '0' || bytes.ContainsAny(v, ".eE") {
		return 0, refuse(codeInvalidType, "must be an integer")
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n > ledger.MaxAmount || n < -ledger.MaxAmount || n == 0 && v[0] == '-' {
		return 0, refuse(holdfast.CodeAmountRange, "out of range")
	}
	return n, nil
}

func str(d *jsontext.Decoder) (string, error) {
	t, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	if t.Kind() == 'n' {
		return "", refuse(codeMissingField, isNull)
	}
	if t.Kind() != '"' {
		return "", refuse(codeInvalidType, "must be a string")
	}
	s := t.String()
	if !clean(s) {
		return "", refuse(codeInvalidCharacters, "holds control or invisible characters")
	}
	return s, nil
}

// decode reads one JSON document into v, or says what is wrong with it.
func decode(doc []byte, v body) error {
	if !utf8.Valid(doc) {
		return refuse(codeInvalidUTF8, "the body is not UTF-8")
	}
	if deep(doc) {
		return refuse(codeTooDeep, "more than "+strconv.Itoa(MaxDepth)+" levels")
	}
	if err := json.Unmarshal(doc, v, strict); err != nil {
		return explain(doc, err)
	}
	if bytes.Contains(doc, []byte("null")) {
		if at, ok := find(doc, func(_ string, k jsontext.Kind) bool { return k == 'n' }); ok {
			return &refusal{code: codeMissingField, detail: isNull, field: at}
		}
	}
	for _, field := range v.missing() {
		if _, ok := find(doc, func(at string, _ jsontext.Kind) bool { return at == field }); !ok {
			return &refusal{code: codeMissingField, detail: "is required", field: field}
		}
	}
	return nil
}

// deep counts brackets outside of strings; what is no JSON is found later.
func deep(doc []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// find looks for the first value that match accepts, of a valid document.
func find(doc []byte, match func(at string, k jsontext.Kind) bool) (string, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return "", false
		}
		kind, length := d.StackIndex(d.StackDepth())
		name := kind == '{' && length%2 == 1
		if at := string(d.StackPointer()); !name && match(at, t.Kind()) {
			return at, true
		}
	}
}

// explain turns a decoder's error into a refusal.
func explain(doc []byte, err error) error {
	var (
		no     *refusal
		form   *jsontext.SyntacticError
		member *json.SemanticError
	)
	at := ""
	if errors.As(err, &member) {
		at = string(member.JSONPointer)
	}
	if errors.As(err, &no) {
		no.field = at
		return no
	}
	if errors.As(err, &form) {
		return malformed(doc, form)
	}
	if errors.Is(err, json.ErrUnknownName) {
		return &refusal{code: codeUnknownField, detail: "is not a member of this request", field: at}
	}
	if member != nil && member.JSONKind == 'n' {
		return &refusal{code: codeMissingField, detail: isNull, field: at}
	}
	return &refusal{code: codeInvalidType, detail: "has the wrong type", field: at}
}

func malformed(doc []byte, err *jsontext.SyntacticError) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &refusal{code: codeDuplicateField, detail: "is there twice", field: string(err.JSONPointer)}
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	if d.SkipValue() == nil {
		return refuse(codeTrailingData, "the body goes on after the JSON document")
	}
	// A surrogate escape is well formed and still no character.
	off := min(max(int(err.ByteOffset), 0), len(doc))
	if escape := strings.ToLower(string(doc[off:min(off+4, len(doc))])); strings.HasPrefix(escape, `\ud`) {
		return refuse(codeInvalidUTF8, "half a surrogate pair")
	}
	return refuse(codeInvalidJSON, "the body is not JSON")
}
