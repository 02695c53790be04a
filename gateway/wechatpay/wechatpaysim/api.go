package wechatpaysim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	scheme          = "WECHATPAY2-SHA256-RSA2048"
	signatureWindow = 5 * time.Minute
	maxNonce        = 64
	maxBody         = 64 << 10 // bytes of a request
)

// endpoint is one row of the API.
type endpoint struct {
	name    string
	pattern string
	query   []string // what the query may hold
	handle  func(*Sim, *call) (any, *apiError)
	bare    bool // answered without a signature, as downloads are
}

// call is one authentic request.
type call struct {
	name  string
	id    string // of the thing in the path
	query map[string]string
	body  []byte
	asked string // the key that the answer should be signed with
	base  string // of the pages
	now   time.Time
	plan  plan
}

// endpoints is the whole API.
func endpoints() []endpoint {
	byNumber := []string{"mchid"}
	return []endpoint{
		{"native.create", "POST /v3/pay/transactions/native", nil, prepay("NATIVE"), false},
		{"jsapi.create", "POST /v3/pay/transactions/jsapi", nil, prepay("JSAPI"), false},
		{"h5.create", "POST /v3/pay/transactions/h5", nil, prepay("MWEB"), false},
		{"app.create", "POST /v3/pay/transactions/app", nil, prepay("APP"), false},
		{"order.query", "GET /v3/pay/transactions/out-trade-no/{id}", byNumber, (*Sim).queryOrder, false},
		{"order.find", "GET /v3/pay/transactions/id/{id}", byNumber, (*Sim).findOrder, false},
		{"order.close", "POST /v3/pay/transactions/out-trade-no/{id}/close", nil, (*Sim).closeOrder, false},
		{"refund.create", "POST /v3/refund/domestic/refunds", nil, (*Sim).createRefund, false},
		{"refund.query", "GET /v3/refund/domestic/refunds/{id}", nil, (*Sim).queryRefund, false},
		{"transfer.create", "POST /v3/fund-app/mch-transfer/transfer-bills", nil, (*Sim).createTransfer, false},
		{"transfer.query", "GET /v3/fund-app/mch-transfer/transfer-bills/out-bill-no/{id}", nil, (*Sim).queryTransfer, false},
		{"transfer.find", "GET /v3/fund-app/mch-transfer/transfer-bills/transfer-bill-no/{id}", nil, (*Sim).findTransfer, false},
		{"transfer.cancel", "POST /v3/fund-app/mch-transfer/transfer-bills/out-bill-no/{id}/cancel", nil, (*Sim).cancelTransfer, false},
		{"certificates", "GET /v3/certificates", nil, (*Sim).downloadCertificates, false},
		{"bill.create", "GET /v3/bill/tradebill", []string{"bill_date", "bill_type"}, (*Sim).createBill, false},
		{"funds.create", "GET /v3/bill/fundflowbill", []string{"bill_date", "account_type"}, (*Sim).createFunds, false},
		{"bill.download", "GET /v3/billdownload/file", []string{"token"}, (*Sim).downloadBill, true},
	}
}

func (s *Sim) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, e) })
	}
	mux.HandleFunc("/v3/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, &call{now: s.now()}, nil, refused(http.StatusNotFound, "NOT_FOUND", "请求的资源不存在"), false)
	})
	s.routePages(mux)
	s.routeControl(mux)
	return http.NewCrossOriginProtection().Handler(mux)
}

// serve answers one API call, with its faults.
func (s *Sim) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	c := &call{name: e.name, id: r.PathValue("id"), asked: r.Header.Get("Wechatpay-Serial"), base: s.base(r)}
	fail := s.receive(w, r, e, c)
	var out any
	if fail == nil {
		out, fail = s.execute(c, e)
	}
	if c.plan.slow > 0 {
		pause(r.Context(), c.plan.slow)
	}
	s.answer(w, r, c, out, fail, e.bare)
}

// receive verifies and reads a request. now is the time of the whole call.
func (s *Sim) receive(w http.ResponseWriter, r *http.Request, e endpoint, c *call) *apiError {
	c.now = s.now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return invalid("", "请求体过大或不可读")
	}
	if fail := s.verifyRequest(r, body, c.now); fail != nil {
		return fail
	}
	if !strings.Contains(r.Header.Get("Accept"), "application/json") && !strings.Contains(r.Header.Get("Accept"), "*/*") && !e.bare {
		return invalid("", "HTTP头Accept必须包含application/json")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(body) > 0 && (err != nil || kind != "application/json") {
		return invalid("", "HTTP头Content-Type必须为application/json")
	}
	c.body, c.query = body, map[string]string{}
	for name, values := range r.URL.Query() {
		if len(values) != 1 || !slices.Contains(e.query, name) {
			return invalid("/"+name, "查询参数"+name+"不支持")
		}
		c.query[name] = values[0]
	}
	return nil
}

// execute runs the endpoint once, within the faults of its plan.
func (s *Sim) execute(c *call, e endpoint) (any, *apiError) {
	c.now = s.enter()
	defer s.mu.Unlock()
	c.plan = s.plan(c)
	if c.plan.kind == LateRequest {
		late := *c
		late.plan, late.now = plan{}, c.now.Add(lateBy)
		s.at(late.now, func() { _, _ = e.handle(s, &late) }) // there is nobody left to answer
	}
	if fail := turnedAway(c); fail != nil {
		return nil, fail
	}
	out, fail := e.handle(s, c)
	if c.plan.kind == ErrorAfterEffect {
		return nil, systemError()
	}
	return out, fail
}

// answer writes and signs, or does what the plan says instead.
func (s *Sim) answer(w http.ResponseWriter, r *http.Request, c *call, out any, fail *apiError, bare bool) {
	status, body, detail := http.StatusOK, []byte(nil), detailNone
	switch {
	case fail != nil:
		status, body, detail = fail.status, fail.body(c.plan.old), fail.detail
	case out == nil:
		status = http.StatusNoContent
	default:
		if text, ok := out.(string); ok {
			body = []byte(text)
		} else {
			body = encode(out)
		}
	}
	switch c.plan.kind {
	case LostAnswer, LostRequest, LateRequest:
		panic(http.ErrAbortHandler)
	case BadGateway:
		http.Error(w, "<html><body>502 Bad Gateway</body></html>", http.StatusBadGateway)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	s.mu.Lock()
	h.Set("Request-Id", s.id(36, hexes)+"-"+detail)
	k := s.seal(c)
	s.mu.Unlock()
	if !bare || fail != nil {
		c.plan.seal(h, k, body)
	}
	switch c.plan.kind {
	case TornAnswer:
		body = body[:len(body)/2]
	case Reencoded:
		body = reencode(body)
	}
	w.WriteHeader(status)
	w.Write(body)
}

// reencode is what a proxy does that reads JSON and writes it again.
func reencode(body []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, body, "", " ") != nil {
		return body // there is none
	}
	return b.Bytes()
}

// readBody reads a JSON object into a struct, strictly: what the struct does
// not know is refused.
func readBody(body []byte, into any) *apiError {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return invalid("", "请求体不是一个JSON对象")
		}
		return nil
	}
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return invalid("/"+strings.ReplaceAll(mistyped.Field, ".", "/"), "输入源的字段类型错误")
	}
	return invalid("", "请求体错误: "+err.Error())
}

func (s *Sim) base(r *http.Request) string {
	if s.baseURL != "" {
		return s.baseURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// pause waits on the real clock, or until the caller has gone.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
