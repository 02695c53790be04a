package alipaysim_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/alipay/alipaysim"
)

// bench is a simulator on loopback, a clock, and a merchant's receiver.
type bench struct {
	t   *testing.T
	sim *alipaysim.Sim
	url string
	key *rsa.PrivateKey

	mu    sync.Mutex
	now   time.Time
	reply string // of the receiver
	got   []notice
	hook  string
}

// notice is what arrived: its form as it was sent, and decoded.
type notice struct {
	contentType, body string
	form              url.Values
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchWith(t, nil)
}

// benchWith is in certificate mode when there are papers.
func benchWith(t *testing.T, papers *alipaysim.Certificates) *bench {
	t.Helper()
	block, _ := pem.Decode([]byte(alipaysim.DefaultAppKey))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, key: key.(*rsa.PrivateKey), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), reply: "success"}
	receiver := httptest.NewServer(http.HandlerFunc(b.receive))
	t.Cleanup(receiver.Close)
	b.hook = receiver.URL
	if b.sim, err = alipaysim.New(alipaysim.Config{Now: b.clock, Seed: 7, Certificates: papers, AppURL: b.hook}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.sim)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, notice{r.Header.Get("Content-Type"), string(body), form})
	_, _ = io.WriteString(w, b.reply)
}

// deliver sends what is due and returns what arrived since the last time.
func (b *bench) deliver() []notice {
	b.sim.Deliver(b.t.Context())
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.got
	b.got = nil
	return got
}

// biz alternates names and values.
func biz(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// form is a signed request; change edits it before it is signed.
func (b *bench) form(method string, content map[string]string, change func(url.Values)) url.Values {
	b.t.Helper()
	doc, err := json.Marshal(content)
	if err != nil {
		b.t.Fatal(err)
	}
	f := url.Values{
		"app_id": {alipaysim.DefaultAppID}, "method": {method}, "format": {"JSON"}, "charset": {"utf-8"}, "sign_type": {"RSA2"},
		"timestamp": {"2026-03-01 17:00:00"}, "version": {"1.0"}, "biz_content": {string(doc)}, "notify_url": {b.hook},
	}
	if change != nil {
		change(f)
	}
	f.Set("sign", b.sign(f))
	return f
}

func (b *bench) sign(f url.Values) string {
	b.t.Helper()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name != "sign" && f.Get(name) != "" {
			parts = append(parts, name+"="+f.Get(name))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "&")))
	s, err := rsa.SignPKCS1v15(nil, b.key, crypto.SHA256, sum[:])
	if err != nil {
		b.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(s)
}

// answer is what came back; err is set when it could not be read.
type answer struct {
	raw    string
	node   map[string]string
	signed bool
	err    error
}

func (a answer) code() string {
	if a.node["sub_code"] != "" {
		return a.node["sub_code"]
	}
	return a.node["code"]
}

func (b *bench) send(f url.Values) (a answer) {
	b.t.Helper()
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(b.request(f))
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	var members map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	if err != nil {
		return answer{raw: string(raw), err: err}
	}
	a.raw, a.signed = string(raw), members["sign"] != nil
	for name, node := range members {
		if strings.HasSuffix(name, "_response") {
			a.err = json.Unmarshal(node, &a.node)
		}
	}
	return a
}

func (b *bench) request(f url.Values) *http.Request {
	req, err := http.NewRequest(http.MethodPost, b.url+"/gateway.do?charset=utf-8", strings.NewReader(f.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

func (b *bench) call(method string, pairs ...string) answer {
	b.t.Helper()
	return b.send(b.form("alipay.trade."+method, biz(pairs...), nil))
}

func (b *bench) want(what string, a answer, code string) {
	b.t.Helper()
	if a.err != nil || a.code() != code {
		b.t.Errorf("%s: got %s (%v), want %s: %s", what, a.code(), a.err, code, a.raw)
	}
}

// offer is the content of a payment of 19.90 with a deadline in 15 minutes.
func offer(number string, more ...string) []string {
	return append([]string{
		"out_trade_no", number, "total_amount", "19.90", "subject", "茶杯", "product_code", "FACE_TO_FACE_PAYMENT",
		"time_expire", "2026-03-01 17:15:00",
	}, more...)
}

// precreated makes a payment that waits to be scanned.
func (b *bench) precreated(number string) string {
	b.t.Helper()
	a := b.call("precreate", offer(number)...)
	b.want("precreate", a, "10000")
	return a.node["qr_code"]
}

func (b *bench) paid(number string) {
	b.t.Helper()
	b.precreated(number)
	b.must(b.sim.Pay(number))
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) trade(number string) alipaysim.Trade {
	b.t.Helper()
	for _, t := range b.sim.Books().Trades {
		if t.Number == number {
			return t
		}
	}
	b.t.Fatalf("no trade %s", number)
	return alipaysim.Trade{}
}

func TestTheSameSeedAndCallsGiveTheSameNumbers(t *testing.T) {
	no := func(faults alipaysim.Faults) string {
		b := newBench(t)
		b.sim.SetFaults(faults)
		b.paid("pay1")
		return b.trade("pay1").No
	}
	calm := no(alipaysim.Faults{})
	if again := no(alipaysim.Faults{}); again != calm {
		t.Errorf("got %s and %s", calm, again)
	}
	if wild := no(alipaysim.Faults{DelayNotice: time.Minute, LoseNotice: 0.5}); wild != calm {
		t.Errorf("faults changed %s to %s", calm, wild)
	}
}

func TestManyBuyersAtOncePayOnce(t *testing.T) {
	b := newBench(t)
	b.precreated("pay1")
	took := make(chan bool, 16)
	var all sync.WaitGroup
	for range cap(took) {
		all.Go(func() {
			took <- b.sim.Pay("pay1") == nil
			b.call("close", "out_trade_no", "pay1")
		})
	}
	all.Wait()
	close(took)
	n := 0
	for ok := range took {
		if ok {
			n++
		}
	}
	if got := b.trade("pay1").Captured; n > 1 || got != int64(n)*1990 {
		t.Errorf("%d buyers paid, and %d were captured", n, got)
	}
}

func TestAKeyThatCannotBeReadIsToldAtOnce(t *testing.T) {
	for _, cfg := range []alipaysim.Config{{Key: "key"}, {AppKey: "key"}, {Certificates: &alipaysim.Certificates{}}} {
		if _, err := alipaysim.New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		} else if fmt.Sprint(err) == "" {
			t.Error("no reason")
		}
	}
}
