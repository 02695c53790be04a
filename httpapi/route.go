package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-pay/holdfast"
)

// route is everything that is known of an endpoint besides what it does. The
// OpenAPI document is made of it.
type route struct {
	method, path string
	name         string // operationId
	tag          string
	summary      string
	about        string
	scope        string // that an API key needs; "" = no key is needed
	// order finds the order behind the path's {id}, whose secret a buyer's page
	// may use instead of an API key. nil = not for buyers.
	order  func(ctx context.Context, core *holdfast.Holdfast, id string) (string, error)
	ticket bool          // the path's {ticket} has a secret too
	push   bool          // its topics may be heard with a secret, or a stream token
	keyed  bool          // needs an Idempotency-Key
	quiet  bool          // traffic, which is in the journal under its key's id and not in the audit log
	query  []*huma.Param // everything else in the query is refused
	header []*huma.Param
	status int         // of success; 0 = 200
	also   []int       // other statuses of success
	other  map[int]any // other statuses of success with another answer: one like it
	ids    []string    // the names in the path
}

// call is one request on its way through a handler.
type call struct {
	api      *API
	w        http.ResponseWriter
	r        *http.Request
	who      caller
	key      holdfast.Key // of a keyed route
	query    url.Values
	status   int  // of the answer
	other    any  // the answer, if it is not what the handler returns; nil = it is
	replayed bool // the answer was given before
}

func (c *call) id(name string) string { return c.r.PathValue(name) }

// none is the body of a request or of an answer that has none.
type none struct{}

func (*none) missing() []string { return nil }

// input is a pointer to a body type.
type input[In any] interface {
	*In
	body
}

// handle adds an endpoint. f decides; an error it returns is a *refusal, a
// *holdfast.Rejection, or an unknown outcome.
func handle[In, Out any, P input[In]](a *API, rt route, f func(ctx context.Context, c *call, in P) (Out, error)) {
	rt.prepare()
	a.describe(&rt, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	silent := reflect.TypeFor[Out]() == reflect.TypeFor[none]()
	a.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := bounded(r)
		defer cancel()
		c := call{api: a, w: w, r: r, status: rt.status}
		if err := c.admit(ctx, &rt); err != nil {
			a.fail(w, r, err)
			return
		}
		in := P(new(In))
		if err := c.read(&rt, in); err != nil {
			a.fail(w, r, err)
			return
		}
		out, err := f(c.signed(ctx, &rt), &c, in)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if silent {
			w.WriteHeader(c.status)
			return
		}
		if c.other != nil {
			c.answer(c.other)
			return
		}
		c.answer(out)
	})
}

// signed puts what an API key changes into the audit log.
func (c *call) signed(ctx context.Context, rt *route) context.Context {
	if c.who.key.ID == "" || rt.quiet || rt.method == http.MethodGet {
		return ctx
	}
	return holdfast.By(ctx, holdfast.Actor{ID: "key/" + c.who.key.ID, Name: c.who.key.Name})
}

func (rt *route) prepare() {
	if rt.status == 0 {
		rt.status = http.StatusOK
	}
	for segment := range strings.SplitSeq(rt.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			rt.ids = append(rt.ids, strings.TrimSuffix(name, "}"))
		}
	}
}

// admit checks everything but the body.
func (c *call) admit(ctx context.Context, rt *route) (err error) {
	for _, name := range rt.ids {
		value := c.r.PathValue(name)
		if name == "ticket" && !ticketForm(value) {
			return refuse(holdfast.CodeInvalidID, "a ticket is an API key's id, a dot, and an Idempotency-Key")
		}
		if name != "ticket" && !word(value, 1, MaxID) {
			return refuse(holdfast.CodeInvalidID, name+" is 1 to 64 letters, digits, - and _")
		}
	}
	if c.who, err = c.api.identify(ctx, c.r, rt); err != nil {
		return err
	}
	if err := c.parameters(rt); err != nil {
		return err
	}
	if !rt.keyed {
		return nil
	}
	c.key.Scope = c.who.id
	c.key.Value, err = idempotencyKey(c.r)
	return err
}

// parameters reads the query.
func (c *call) parameters(rt *route) error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return refuse(codeInvalidParameter, "the query is malformed")
	}
	for name, values := range q {
		p := parameter(rt.query, name)
		if p == nil || len(values) != 1 && p.Schema.Type != huma.TypeArray || slices.ContainsFunc(values, func(v string) bool { return !clean(v) }) {
			return refuse(codeInvalidParameter, "unknown, repeated or unreadable parameter")
		}
		if len(p.Schema.Enum) > 0 && !contains(p.Schema.Enum, values[0]) {
			if name == "sort" {
				return refuse(codeInvalidSort, "this order is not offered")
			}
			return refuse(codeInvalidParameter, name+" has no such value")
		}
	}
	c.query = q
	return nil
}

func parameter(all []*huma.Param, name string) *huma.Param {
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func contains(enum []any, s string) bool {
	for _, e := range enum {
		if e == s {
			return true
		}
	}
	return false
}

// read reads the body into in, and what the request is recognised by.
func (c *call) read(rt *route, in body) error {
	if rt.method == http.MethodGet || rt.method == http.MethodDelete {
		return nil
	}
	_, empty := in.(*none)
	if c.r.ContentLength == 0 && empty {
		if rt.keyed {
			c.key.Print = fingerprint(c.r, nil)
		}
		return nil
	}
	if !jsonBody(c.r) {
		return refuse(codeMediaType, "send application/json, not encoded")
	}
	buf := buffers.Get().(*[MaxBody]byte)
	defer buffers.Put(buf)
	doc, err := readBody(c.w, c.r, MaxBody, buf[:])
	if err != nil {
		return err
	}
	if err := decode(doc, in); err != nil {
		return err
	}
	if rt.keyed {
		c.key.Print = fingerprint(c.r, doc)
	}
	return nil
}

func jsonBody(r *http.Request) bool {
	types := r.Header["Content-Type"]
	if len(types) != 1 || r.Header["Content-Encoding"] != nil {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return len(params) == 0 || ok && len(params) == 1 && strings.EqualFold(charset, "utf-8")
}

var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooled = 64 << 10 // bytes of an answer's buffer that is kept

// answer sends out as JSON.
func (c *call) answer(out any) {
	buf := answers.Get().(*bytes.Buffer)
	buf.Reset()
	if err := json.NewEncoder(buf).Encode(out); err != nil {
		c.api.fail(c.w, c.r, err)
		return
	}
	h := c.w.Header()
	if c.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	c.w.WriteHeader(c.status)
	// The client is gone if this fails; with its Idempotency-Key it gets the
	// same answer again.
	_, _ = c.w.Write(buf.Bytes())
	if buf.Cap() <= maxPooled {
		answers.Put(buf)
	}
}

// answered notes whether an answer was a replay.
func answered[T any](c *call, a holdfast.Answer[T]) T {
	c.replayed = a.Replayed
	return a.Value
}
