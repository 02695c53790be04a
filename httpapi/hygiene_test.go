package httpapi_test

import (
	"bufio"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/httpapi"
)

// raw sends bytes as they are and reads one answer.
func (s *shop) raw(t *testing.T, request string) answer {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{t, resp.StatusCode, resp.Header, body}
}

func (s *shop) head(line string, headers ...string) string {
	all := append([]string{line, "Host: shop.example", "Authorization: Bearer " + s.key}, headers...)
	return strings.Join(all, "\r\n") + "\r\n\r\n"
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	s := openShop(t, httpapi.Options{Hosts: []string{"shop.example"}})
	manyHeaders := make([]string, 0, 200)
	for range 200 {
		manyHeaders = append(manyHeaders, "X-"+rand.Text()+": 1")
	}
	for _, c := range []struct {
		row, request string
		status       int
		code         string // "" = net/http answers by itself
	}{
		{"27 2 MB header", s.head("GET /healthz HTTP/1.1", "X-Big: "+strings.Repeat("a", 2<<20)), 431, ""},
		{"27 200 headers", s.head("GET /healthz HTTP/1.1", manyHeaders...), 431, "too_many_headers"},
		{"28 CL and TE", s.head("POST /v1/orders HTTP/1.1", "Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "chunked_not_accepted"},
		{"28 TE", s.head("POST /v1/orders HTTP/1.1", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "chunked_not_accepted"},
		{"28 two CL", s.head("POST /v1/orders HTTP/1.1", "Content-Length: 4", "Content-Length: 5") + "abcd", 400, ""},
		{"28 two Host", s.head("GET /healthz HTTP/1.1", "Host: evil.example"), 400, ""},
		{"28 no Host", "GET /healthz HTTP/1.1\r\n\r\n", 400, ""},
		{"29 absolute form", s.head("GET http://evil.example/healthz HTTP/1.1"), 421, "misdirected_request"},
		{"29 other host", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "misdirected_request"},
		{"29 own host and port", "GET /healthz HTTP/1.1\r\nHost: shop.example:8080\r\n\r\n", 200, ""},
		{"30 TRACE", s.head("TRACE /v1/orders HTTP/1.1"), 405, "method_not_allowed"},
		{"30 CONNECT", s.head("CONNECT /v1/orders HTTP/1.1"), 405, "method_not_allowed"},
		{"30 CONNECT authority", "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n", 405, "method_not_allowed"},
		{"30 FOO", s.head("FOO /v1/orders HTTP/1.1"), 405, "method_not_allowed"},
		{"30 GET on POST", s.head("GET /v1/verify HTTP/1.1"), 405, "method_not_allowed"},
		{"33 override", s.head("GET /v1/keys/abc HTTP/1.1", "X-HTTP-Method-Override: DELETE"), 405, "method_not_allowed"},
		{"34 encoded slash", s.head("GET /v1/orders/..%2f..%2fadmin HTTP/1.1"), 400, "invalid_path"},
		{"34 encoded slash alone", s.head("GET /v1/orders/a%2Fb HTTP/1.1"), 400, "invalid_path"},
		{"34 encoded dots", s.head("GET /v1/orders/%2e%2e/items HTTP/1.1"), 400, "invalid_path"},
		{"34 dots", s.head("GET /v1/orders/../items HTTP/1.1"), 400, "invalid_path"},
		{"34 double slash", s.head("GET //v1/orders HTTP/1.1"), 400, "invalid_path"},
		{"34 NUL", s.head("GET /v1/orders/a%00b HTTP/1.1"), 400, "invalid_path"},
		{"34 backslash", s.head(`GET /v1/orders/..\admin HTTP/1.1`), 400, "invalid_path"},
		{"34 encoded backslash", s.head(`GET /v1/orders/..%5cadmin HTTP/1.1`), 400, "invalid_path"},
		{"35 static traversal", s.head("GET /docs/../../etc/passwd HTTP/1.1"), 400, "invalid_path"},
		{"35 .git", s.head("GET /.git/config HTTP/1.1"), 404, "not_found"},
		{"35 backup", s.head("GET /docs/backup.sql HTTP/1.1"), 404, "not_found"},
		{"97 pprof", s.head("GET /debug/pprof/ HTTP/1.1"), 404, "not_found"},
		{"97 metrics", s.head("GET /metrics HTTP/1.1"), 404, "not_found"},
		{"20 confusable id", s.head("GET /v1/orders/%D0%B0bc HTTP/1.1"), 400, "invalid_id"},
		{"20 trailing space", s.head("GET /v1/orders/abc%20 HTTP/1.1"), 400, "invalid_path"},
		{"21 id of 65", s.head("GET /v1/orders/" + strings.Repeat("a", 65) + " HTTP/1.1"), 400, "invalid_id"},
		{"86 foreign origin", s.head("GET /v1/events HTTP/1.1", "Origin: https://evil.example"), 403, "foreign_origin"},
		{"82 null origin", s.head("POST /v1/verify HTTP/1.1", "Content-Length: 0", "Origin: null"), 403, "foreign_origin"},
		{"own origin", s.head("GET /v1/items HTTP/1.1", "Origin: https://shop.example"), 200, ""},
	} {
		t.Run(c.row, func(t *testing.T) {
			a := s.raw(t, c.request)
			if a.status != c.status {
				t.Fatalf("got %d, want %d: %s", a.status, c.status, a.body)
			}
			if c.code != "" && a.code() != c.code {
				t.Errorf("got %q, want %q", a.code(), c.code)
			}
			if a.status == 405 && c.request[:7] != "CONNECT" && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if strings.Contains(string(a.body), "evil") {
				t.Errorf("what was sent comes back: %s", a.body)
			}
		})
	}
}

func TestPreflightGivesNoPermission(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, method := range []string{http.MethodOptions, http.MethodHead} {
		a := s.send(method, "/v1/orders", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST")
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s answers with %s", method, name)
			}
		}
		if method == http.MethodOptions && (a.status != 204 || a.header.Get("Allow") != "GET, POST, HEAD, OPTIONS") {
			t.Errorf("got %d, Allow %q", a.status, a.header.Get("Allow"))
		}
	}
}

func TestForwardedHeadersAreNotBelieved(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	// Row 32: if the address were taken from the header, each would be another one.
	var last answer
	for range 11 {
		last = s.send(http.MethodGet, "/v1/items", "", "X-Forwarded-For: "+rand.Text(), "X-Real-IP: "+rand.Text(), "X-User-ID: admin")
	}
	last.want(429, "too_many_failed_attempts")
}

func TestStalledRequestsAreClosed(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the server's own deadlines")
	}
	s := openShop(t, httpapi.Options{})
	t.Run("25 body stalls", func(t *testing.T) {
		t.Parallel()
		s.raw(t, s.head("POST /v1/orders HTTP/1.1", "Idempotency-Key: "+rand.Text(), "Content-Type: application/json", "Content-Length: 100")+"{").want(408, "request_timeout")
	})
	t.Run("26 slow headers", func(t *testing.T) {
		t.Parallel()
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("the server did not close: %v", err)
		}
	})
	t.Run("25 body ends early", func(t *testing.T) {
		t.Parallel()
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		request := s.head("POST /v1/orders HTTP/1.1", "Idempotency-Key: "+rand.Text(), "Content-Type: application/json", "Content-Length: 100") + oneTee
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("got %d, want 400", resp.StatusCode)
		}
	})
	if got := s.log.String(); got != "" {
		t.Errorf("clients' faults were logged: %s", got)
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	for _, path := range []string{"/healthz", "/v1/items", "/docs", "/openapi.json", "/nothing", "//"} {
		a := s.send(http.MethodGet, path, "")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", path, name, got, want)
			}
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "http") {
			t.Errorf("%s: got policy %q", path, policy)
		}
		if a.header.Get("Request-Id") == "" {
			t.Errorf("%s: no Request-Id", path)
		}
	}
}

func TestReaderOfTheDocumentNeedsNobodyElse(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	page := s.send(http.MethodGet, "/docs", "")
	if page.status != 200 || strings.Contains(string(page.body), "//") {
		t.Errorf("the page refers to other hosts: %s", page.body)
	}
	script := s.send(http.MethodGet, "/docs/rapidoc-min.js", "")
	if script.status != 200 || len(script.body) < 500_000 || !strings.HasPrefix(script.header.Get("Content-Type"), "text/javascript") {
		t.Errorf("got %d, %d bytes of %s", script.status, len(script.body), script.header.Get("Content-Type"))
	}
}

func TestPanicSaysNothing(t *testing.T) {
	s := openShop(t, httpapi.Options{})
	s.gateway.breaks(errPanic)
	a := s.send(http.MethodPost, "/webhooks/till", "{}").want(500, "internal")
	if strings.Contains(string(a.body), "secret") {
		t.Errorf("got %s", a.body)
	}
	if log := s.log.String(); !strings.Contains(log, a.header.Get("Request-Id")) || !strings.Contains(log, "shop_test.go") {
		t.Errorf("the log does not say where: %s", log)
	}
	s.gateway.breaks(nil)
	s.send(http.MethodGet, "/healthz", "").want(200, "")
}
