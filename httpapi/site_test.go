package httpapi_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-pay/holdfast/httpapi"
)

func TestPagesAreBehindTheSameDoor(t *testing.T) {
	s := openShop(t, httpapi.Options{Hosts: []string{"shop.example"}, Pages: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a page")
	})})
	for _, c := range []struct {
		line   string
		header []string
		status int
		page   bool
	}{
		{"GET /shop/ HTTP/1.1", nil, 200, true},
		{"POST /shop/buy HTTP/1.1", []string{"Content-Length: 0", "Origin: http://shop.example"}, 200, true},
		{"POST /shop/buy HTTP/1.1", []string{"Content-Length: 0", "Origin: https://evil.example"}, 403, false},
		{"POST /shop/buy HTTP/1.1", []string{"Content-Length: 0", "Origin: null"}, 403, false},
		{"GET /shop/../v1/orders HTTP/1.1", nil, 400, false},
		{"GET /v1/nothing HTTP/1.1", nil, 404, false},
		{"POST /healthz HTTP/1.1", []string{"Content-Length: 0"}, 405, false},
	} {
		if a := s.raw(t, s.head(c.line, c.header...)); a.status != c.status || (string(a.body) == "a page") != c.page {
			t.Errorf("%s %v: got %d %s", c.line, c.header, a.status, a.body)
		}
	}
	const rebound = "GET /shop/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	if a := s.raw(t, rebound); a.status != 421 {
		t.Errorf("for another host: got %d, want 421", a.status)
	}
}
