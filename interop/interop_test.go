// Package interop lets SDKs that others have written drive the simulators. An
// SDK that pays, asks, closes, repays and believes a notification proves that
// a simulator is on the wire format. It is a module of its own, so that no SDK
// becomes part of the product.
package interop

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// callTimeout bounds every request; all are to this machine.
const callTimeout = 10 * time.Second

// notice is one notification, as it came.
type notice struct {
	header http.Header
	body   []byte
}

// request is the notice on its way to a handler, with another body.
func (n notice) request(body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header = n.header.Clone()
	return r
}

// mailbox is where a merchant is notified. It acknowledges all it gets, in the
// words of Alipay, which the others take as well.
type mailbox struct {
	url string

	mu      sync.Mutex
	notices []notice
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off
		}
		m.mu.Lock()
		m.notices = append(m.notices, notice{r.Header, body})
		m.mu.Unlock()
		io.WriteString(w, "success")
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// collect lets a simulator send what it has, and takes it out.
func (m *mailbox) collect(t *testing.T, sim interface{ Deliver(context.Context) int }) []notice {
	t.Helper()
	sent := sim.Deliver(t.Context())
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.notices) != sent || sent == 0 {
		t.Fatalf("got %d notices of %d that were sent, want all and some", len(m.notices), sent)
	}
	notices := m.notices
	m.notices = nil
	return notices
}

func serve(t *testing.T, h http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return address(t, server.URL)
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	return try(url.Parse(text)).or(t)
}

// detour sends every request to one place, for SDKs that know one address.
type detour struct{ to *url.URL }

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = d.to.Scheme, d.to.Host, ""
	return http.DefaultTransport.RoundTrip(r)
}

// buyer is a browser in which every address leads to one simulator.
type buyer struct {
	t       *testing.T
	browser *http.Client
}

func newBuyer(t *testing.T, sim *url.URL) buyer {
	return buyer{t, &http.Client{
		Transport: detour{sim}, Timeout: callTimeout,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Hostname() == "shop.example" {
				return http.ErrUseLastResponse // it needs no visit
			}
			return nil
		},
	}}
}

// visit opens the page of a payment and returns where it is and what it says.
func (b buyer) visit(at string) (*url.URL, string) {
	b.t.Helper()
	res := try(b.browser.Get(at)).or(b.t)
	return res.Request.URL, b.read(res)
}

// pay opens the page and presses its button. It fails where there is none.
func (b buyer) pay(at string) {
	b.t.Helper()
	page, text := b.visit(at)
	if !payable(text) {
		b.t.Fatalf("%s has no button to pay:\n%s", page, content(text))
	}
	b.read(try(b.browser.PostForm(page.String(), url.Values{"action": {"pay"}})).or(b.t))
	if _, text := b.visit(page.String()); payable(text) {
		b.t.Fatalf("%s still wants to be paid:\n%s", page, content(text))
	}
}

// payable says whether a page has the button.
func payable(page string) bool { return strings.Contains(page, `name="action" value="pay"`) }

// content is what is on a page, without its style.
func content(page string) string {
	if _, main, ok := strings.Cut(page, "<main"); ok {
		return main
	}
	return page
}

func (b buyer) read(res *http.Response) string {
	b.t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusBadRequest {
		b.t.Fatalf("%s: got %d %v\n%s", res.Request.URL, res.StatusCode, err, content(string(text)))
	}
	return string(text)
}

// believe holds an SDK's verifier to its word: it must take the notice as it
// came, and refuse it with any one byte of the body changed.
func believe(t *testing.T, n notice, verify func(*http.Request) error) {
	t.Helper()
	if err := verify(n.request(n.body)); err != nil {
		t.Errorf("refused %s: %v", n.body, err)
	}
	for i := range n.body {
		changed := bytes.Clone(n.body)
		changed[i] ^= 1
		if verify(n.request(changed)) == nil {
			t.Errorf("believed with byte %d changed: %s", i, changed)
		}
	}
}

// believeForm is believe for a form: each of its signed values is changed in turn.
func believeForm(t *testing.T, n notice, verify func(url.Values) error) {
	t.Helper()
	form := func() url.Values { return try(url.ParseQuery(string(n.body))).or(t) }
	if err := verify(form()); err != nil {
		t.Errorf("refused %s: %v", n.body, err)
	}
	for name := range form() {
		changed := form()
		value := []byte(changed.Get(name))
		if len(value) == 0 || name == "sign_type" { // which is not signed
			continue
		}
		value[0] ^= 1
		changed.Set(name, string(value))
		if verify(changed) == nil {
			t.Errorf("believed with %s = %q", name, value)
		}
	}
}

// answer is what a call returned.
type answer[T any] struct {
	value T
	err   error
}

// try takes what a call returned: try(call()).or(t) is its value, or the end
// of the test.
func try[T any](value T, err error) answer[T] { return answer[T]{value, err} }

func (a answer[T]) or(t *testing.T) T {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.value
}
