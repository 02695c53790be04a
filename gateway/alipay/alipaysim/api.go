package alipaysim

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	maxRequest = 64 << 10 // bytes
	timeForm   = "2006-01-02 15:04:05"
)

var beijing = time.FixedZone("Asia/Shanghai", 8*60*60)

// endpoint is one row of the API.
type endpoint struct {
	method string
	name   string   // as faults call it
	params []string // of the biz_content
	handle func(*Sim, *call) (object, *apiError)
}

// call is one authorized, well-formed request.
type call struct {
	name   string
	method string
	biz    biz
	form   url.Values
	gbk    bool   // notifications will be in GBK
	base   string // of the pages
	now    time.Time
	plan   plan
}

func endpoints() []endpoint {
	ofTrade := []string{"out_trade_no", "trade_no"}
	return []endpoint{
		{"alipay.trade.precreate", "precreate", offerParams, (*Sim).precreate},
		{"alipay.trade.query", "query", ofTrade, (*Sim).query},
		{"alipay.trade.close", "close", ofTrade, (*Sim).closeTrade},
		{"alipay.trade.refund", "refund", append(ofTrade, "refund_amount", "out_request_no", "refund_reason"), (*Sim).refund},
		{"alipay.trade.fastpay.refund.query", "refund.query", append(ofTrade, "out_request_no"), (*Sim).queryRefund},
		{"alipay.fund.trans.uni.transfer", "transfer", transferParams, (*Sim).transfer},
		{"alipay.fund.trans.common.query", "transfer.query",
			[]string{"out_biz_no", "order_id", "pay_fund_order_id", "product_code", "biz_scene"}, (*Sim).queryTransfer},
		{"alipay.data.dataservice.bill.downloadurl.query", "bill", []string{"bill_type", "bill_date"}, (*Sim).billAddress},
	}
}

var commonParams = []string{
	"app_id", "method", "format", "charset", "sign_type", "sign", "timestamp", "version", "biz_content",
	"notify_url", "return_url", "app_cert_sn", "alipay_root_cert_sn", "alipay_sdk", // what called, and its version
}

// serve answers one API call, with its faults. A page or wap request may come
// as a form that the buyer's browser posts.
func (s *Sim) serve(w http.ResponseWriter, r *http.Request) {
	form, fail := readForm(w, r)
	if fail != nil {
		s.write(w, "", s.body("", fail.object(), fail.bare))
		return
	}
	method := form.Get("method")
	if buyers[method] != "" {
		s.welcome(w, r, form)
		return
	}
	i := slices.IndexFunc(endpoints(), func(e endpoint) bool { return e.method == method })
	if i < 0 {
		fail = invalid("method", "不存在的方法名")
	} else {
		fail = s.authorize(form)
	}
	if fail != nil {
		s.write(w, "", s.body("", fail.object(), fail.bare))
		return
	}
	c := &call{name: endpoints()[i].name, method: method, form: form, base: s.base(r)}
	c.gbk = !strings.EqualFold(r.URL.Query().Get("charset"), "utf-8")
	body := s.answer(c, endpoints()[i])
	if c.plan.slow > 0 {
		pause(r.Context(), c.plan.slow)
	}
	s.write(w, c.plan.after, body)
}

// answer runs the call and encodes what is answered.
func (s *Sim) answer(c *call, e endpoint) []byte {
	c.now = s.enter()
	defer s.mu.Unlock()
	c.plan = s.plan(c)
	system := errSystem
	if c.ofTransfers() {
		system = errFundSystem
	}
	switch c.plan.before {
	case Unavailable:
		return s.body(c.method, busy().object(), false)
	case SystemError:
		return s.body(c.method, system.object(), false)
	case LostRequest, LateRequest:
		if c.plan.before == LateRequest {
			late := call{name: c.name, method: c.method, form: c.form, gbk: c.gbk, base: c.base, now: c.now.Add(lateBy)}
			s.at(late.now, func() { s.run(&late, e) })
		}
		c.plan.after = LostAnswer
		return nil
	}
	o := s.run(c, e)
	switch c.plan.after {
	case SystemErrorAfterEffect:
		o = system.object()
	case ForgedAnswer:
		o = s.lie(c)
	}
	body := s.body(c.method, o, c.plan.after == Unsigned || c.plan.after == ForgedAnswer)
	if c.plan.after == Recoded {
		body = recode(body)
	}
	return body
}

func (c *call) ofTransfers() bool { return strings.HasPrefix(c.name, "transfer") }

// run does what is asked.
func (s *Sim) run(c *call, e endpoint) (o object) {
	var fail *apiError
	if c.biz, fail = readBiz(c.form.Get("biz_content"), e.params); fail == nil {
		o, fail = e.handle(s, c)
	} else if c.ofTransfers() {
		fail = wrong(fail.subMsg)
	}
	if fail == nil {
		return append(object{{"code", "10000"}, {"msg", "Success"}}, o...)
	}
	return append(fail.object(), c.numbers()...)
}

// numbers are the merchant's numbers, which refusals repeat.
func (c *call) numbers() (o object) {
	for _, name := range []string{"out_trade_no", "out_biz_no"} {
		if n := c.biz[name]; n != "" {
			o = append(o, field{name, n})
		}
	}
	return o
}

// lie is what somebody on the way would like to be believed.
func (s *Sim) lie(c *call) object {
	lies := []*apiError{errNotExist, errStatus, errOver, parameter("subject")}
	if c.ofTransfers() {
		lies = []*apiError{errNoOrder, errNoMoney}
	}
	lie := lies[s.luck.IntN(len(lies))]
	return append(lie.object(), c.numbers()...)
}

// body wraps and signs an answer's node.
func (s *Sim) body(method string, o object, bare bool) []byte {
	node := o.encode()
	name := "error_response"
	if method != "" {
		name = strings.ReplaceAll(method, ".", "_") + "_response"
	}
	if bare {
		return []byte(`{"` + name + `":` + node + `}`)
	}
	sign := `"sign":"` + s.keys.sign(node) + `"`
	if s.keys.ownSN != "" {
		sign = `"alipay_cert_sn":"` + s.keys.ownSN + `",` + sign
	}
	return []byte(`{"` + name + `":` + node + `,` + sign + `}`)
}

// write sends an answer, or loses it.
func (s *Sim) write(w http.ResponseWriter, after Kind, body []byte) {
	w.Header().Set("Content-Type", "text/html;charset=utf-8") // so it is
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	switch after {
	case LostAnswer:
		panic(http.ErrAbortHandler)
	case BadGateway:
		w.WriteHeader(http.StatusBadGateway)
		body = []byte("<html><body>502 Bad Gateway</body></html>")
	case TornAnswer:
		body = body[:len(body)/2]
	}
	// What is left of errors here is a caller that has gone.
	_, _ = w.Write(body)
}

// readForm reads a request's parameters; those of the address count too.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *apiError) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return nil, invalid("parameter", "请求过大")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, invalid("parameter", "不是表单")
	}
	for name, values := range r.URL.Query() {
		if form.Get(name) == "" {
			form[name] = values
		}
	}
	return form, nil
}

// authorize does everything that comes before a call runs.
func (s *Sim) authorize(form url.Values) *apiError {
	for _, name := range []string{"app_id", "method", "charset", "sign_type", "sign", "timestamp", "version", "biz_content"} {
		if form.Get(name) == "" {
			return missing(strings.ReplaceAll(name, "_", "-"))
		}
	}
	for name, values := range form {
		if len(values) > 1 || !slices.Contains(commonParams, name) {
			return invalid("parameter", name)
		}
	}
	_, err := time.ParseInLocation(timeForm, form.Get("timestamp"), beijing)
	switch {
	case form.Get("app_id") != s.appID:
		return invalid("app-id", "无效的AppID参数")
	case form.Get("sign_type") != "RSA2":
		return invalid("signature-type", "无效签名类型")
	case !strings.EqualFold(form.Get("charset"), "utf-8"):
		return invalid("charset", "字符集错误")
	case form.Get("format") != "" && !strings.EqualFold(form.Get("format"), "json"):
		return invalid("format", "无效的数据格式")
	case form.Get("version") != "1.0":
		return invalid("version", "版本错误")
	case err != nil:
		return invalid("timestamp", "非法的时间戳参数")
	case form.Get("app_cert_sn") != s.keys.appSN:
		return invalid("app-cert-sn", "应用公钥证书SN不匹配")
	case form.Get("alipay_root_cert_sn") != s.keys.rootSN:
		return invalid("alipay-root-cert-sn", "支付宝根证书SN不匹配")
	case !s.keys.signedByApp(requestText(form), form.Get("sign")):
		return invalid("signature", "验签出错")
	}
	return nil
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

// object is an answer's node; its order is kept.
type object []field

type field struct{ name, value string }

// encode writes JSON as Alipay does: slashes escaped, other characters not.
func (o object) encode() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(f.name) + ":" + quote(f.value))
	}
	return b.String() + "}"
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string can always be encoded.
	_ = enc.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "/", `\/`)
}

// recode is what a proxy does that reads JSON and writes it again.
func recode(body []byte) []byte {
	var tree any
	if json.Unmarshal(body, &tree) != nil {
		return body
	}
	again, err := json.MarshalIndent(tree, "", " ")
	if err != nil {
		return body
	}
	return again
}
