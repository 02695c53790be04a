package stripesim

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxBodyBytes       = 256 << 10
	maxParams          = 1000 // in one request
	maxAmount          = 99_999_999
	maxMetadataKeys    = 50
	maxMetadataKeyLen  = 40  // characters
	maxMetadataTextLen = 500 // characters
	maxTextLen         = 5000
	maxURLLen          = 5000
)

// form is one request's parameters by their bracketed names. Its readers
// remember the first thing that is wrong in fail and answer a zero value, so
// that an endpoint reads everything and then looks at fail once.
type form struct {
	values map[string]string
	fail   *apiError
}

// readForm takes the parameters out of a POST's body or a GET's query.
func readForm(w http.ResponseWriter, r *http.Request) (*form, *apiError) {
	raw := r.URL.RawQuery
	if r.Method == http.MethodPost {
		if raw != "" {
			return nil, invalid("", "", "Parameters of a POST belong in its body, not in the query.")
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if err != nil {
			return nil, &apiError{status: 413, typ: invalidRequest, message: "The request body is too large or was cut off.", unexecuted: true}
		}
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); len(body) > 0 && kind != "application/x-www-form-urlencoded" {
			return nil, invalid("", "", "Invalid request: the body must be application/x-www-form-urlencoded.")
		}
		raw = string(body)
	}
	parsed, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("", "", "Invalid request: the parameters are not form-encoded.")
	}
	return newForm(parsed)
}

func newForm(parsed url.Values) (*form, *apiError) {
	f := &form{values: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		if values := parsed[name]; len(values) == 1 && !strings.HasSuffix(name, "[]") {
			f.values[name] = values[0]
			continue
		}
		list, isList := strings.CutSuffix(name, "[]")
		if !isList {
			return nil, invalid("", name, "The parameter "+name+" is given more than once.")
		}
		for i, v := range parsed[name] {
			f.values[fmt.Sprintf("%s[%d]", list, i)] = v
		}
	}
	if len(f.values) > maxParams {
		return nil, invalid("", "", fmt.Sprintf("More than %d parameters.", maxParams))
	}
	return f, nil
}

var index = regexp.MustCompile(`\[\d+\]`)

// allow refuses every parameter that no pattern names. In a pattern [#] stands
// for an index and a final [*] for one key of the caller's choice.
func (f *form) allow(patterns []string) *apiError {
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		shape := index.ReplaceAllString(name, "[#]")
		known := slices.ContainsFunc(patterns, func(p string) bool {
			prefix, open := strings.CutSuffix(p, "*]")
			if !open {
				return p == shape
			}
			key, ok := strings.CutPrefix(name, prefix)
			key, closed := strings.CutSuffix(key, "]")
			return ok && closed && key != "" && !strings.ContainsAny(key, "[]")
		})
		if !known {
			return invalid("parameter_unknown", name, "Received unknown parameter: "+name)
		}
		if f.values[name] == "" && !strings.Contains(name, "metadata[") {
			return invalid("parameter_invalid_empty", name, "You passed an empty string for '"+name+"'.")
		}
	}
	return nil
}

func (f *form) wrong(code, param, message string) {
	if f.fail == nil {
		f.fail = invalid(code, param, message)
	}
}

func (f *form) has(name string) bool { _, ok := f.values[name]; return ok }

func (f *form) text(name string, max int) string {
	v := f.values[name]
	if len([]rune(v)) > max {
		f.wrong("", name, fmt.Sprintf("Invalid string: %s is longer than %d characters.", name, max))
	}
	return v
}

func (f *form) need(name string) {
	if !f.has(name) {
		f.wrong("parameter_missing", name, "Missing required param: "+name+".")
	}
}

// choice reads one of the given words; the first is the default.
func (f *form) choice(name string, words ...string) string {
	v, ok := f.values[name]
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, v) {
		f.wrong("", name, fmt.Sprintf("Invalid %s: must be one of %s.", name, strings.Join(words, ", ")))
	}
	return v
}

func (f *form) flag(name string) bool { return f.choice(name, "false", "true") == "true" }

// number reads a decimal integer; absent is otherwise.
func (f *form) number(name string, least, most, otherwise int64) int64 {
	v, ok := f.values[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || strings.HasPrefix(v, "+") {
		f.wrong("parameter_invalid_integer", name, "Invalid integer: "+v)
		return 0
	}
	if n < least || n > most {
		f.wrong("parameter_invalid_integer", name, fmt.Sprintf("Invalid integer: %s must be between %d and %d.", name, least, most))
	}
	return n
}

// amount reads minor units, and answers as Stripe does when they are too many.
func (f *form) amount(name, currency string) int64 {
	f.need(name)
	n := f.number(name, 1, 1<<53-1, 0)
	if n > maxAmount {
		f.wrong("amount_too_large", name, fmt.Sprintf("Amount must be no more than %d.", maxAmount))
	}
	if step := smallestStep(currency); n%step != 0 {
		f.wrong("", name, fmt.Sprintf("Invalid amount: in %s it must be a multiple of %d.", currency, step))
	}
	return n
}

func (f *form) currency(name string) string {
	f.need(name)
	v := f.values[name]
	if !knownCurrency(v) {
		f.wrong("", name, "Invalid currency: "+v+".")
	}
	return v
}

func (f *form) url(name string) string {
	v := f.text(name, maxURLLen)
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		f.wrong("url_invalid", name, "Not a valid URL")
	}
	return v
}

// metadata reads name[key]=text pairs; an empty text says nothing.
func (f *form) metadata(name string) map[string]string {
	m := f.changes(name)
	maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
	return m
}

// changes reads metadata of an update, where an empty text removes its key.
func (f *form) changes(name string) map[string]string {
	m := map[string]string{}
	for full := range f.values {
		key, ok := strings.CutPrefix(full, name+"[")
		if !ok {
			continue
		}
		key = strings.TrimSuffix(key, "]")
		if len([]rune(key)) > maxMetadataKeyLen {
			f.wrong("", full, fmt.Sprintf("Metadata keys can be at most %d characters.", maxMetadataKeyLen))
		}
		m[key] = f.text(full, maxMetadataTextLen)
	}
	if len(m) > maxMetadataKeys {
		f.wrong("", name, fmt.Sprintf("Metadata can have at most %d keys.", maxMetadataKeys))
	}
	return m
}

// list reads name[0], name[1] and so on, whatever their indices.
func (f *form) list(name string) []string {
	var values []string
	for _, i := range f.indices(name) {
		values = append(values, f.values[fmt.Sprintf("%s[%d]", name, i)])
	}
	return values
}

func (f *form) indices(name string) []int {
	seen := map[int]bool{}
	for full := range f.values {
		rest, ok := strings.CutPrefix(full, name+"[")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); err == nil {
			seen[i] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// encode is the same for the same parameters in any order.
func (f *form) encode() string {
	v := url.Values{}
	for name, text := range f.values {
		v.Set(name, text)
	}
	return v.Encode()
}
