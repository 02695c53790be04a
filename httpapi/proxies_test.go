package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheClientIsTheLastHopThatIsNoProxyOfOurs(t *testing.T) {
	const proxy, outside = "10.0.0.1:5000", "192.0.2.7:5000"
	for name, c := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"nobody between":               {outside, nil, "192.0.2.7"},
		"made up by a client":          {outside, []string{"198.51.100.1"}, "192.0.2.7"},
		"one proxy":                    {proxy, []string{"198.51.100.1"}, "198.51.100.1"},
		"made up, through a proxy":     {proxy, []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		"made up as a proxy's":         {proxy, []string{"10.0.0.9, 198.51.100.1"}, "198.51.100.1"},
		"two proxies":                  {proxy, []string{"203.0.113.9, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"two lines":                    {proxy, []string{"203.0.113.9", "198.51.100.1,10.0.0.2"}, "198.51.100.1"},
		"proxies only":                 {proxy, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a proxy that says nothing":    {proxy, nil, "10.0.0.1"},
		"an empty line":                {proxy, []string{""}, "10.0.0.1"},
		"unknown":                      {proxy, []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"garbage before a proxy":       {proxy, []string{"<script>, 10.0.0.2"}, "10.0.0.2"},
		"IPv6":                         {"[fd00::1]:5000", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		"IPv6 in brackets":             {proxy, []string{"[2001:db8:1:2:3::4]"}, "2001:db8:1:2::/64"},
		"IPv6 with a port":             {proxy, []string{"[2001:db8:1:2:3::4]:99"}, "2001:db8:1:2::/64"},
		"IPv4 with a port":             {proxy, []string{"198.51.100.1:99"}, "198.51.100.1"},
		"IPv4 as IPv6":                 {"[::ffff:10.0.0.1]:5000", []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		"more hops than are looked at": {proxy, []string{"198.51.100.1" + strings.Repeat(", 10.0.0.2", maxHops)}, "10.0.0.2"},
	} {
		proxies, err := ParseProxies([]string{"10.0.0.0/8", "fd00::1"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		h := proxies.Behind(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = address(r) }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.lines
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want || r.RemoteAddr != c.peer {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestNetworksThatCannotBeMeantAreRefused(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0/8", "proxy.example", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "10.0.0.0/8 "} {
		if got, err := ParseProxies([]string{"10.0.0.1", bad}); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func TestWithoutProxiesNoHeaderIsBelieved(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	Proxies(nil).Behind(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := address(r); got != "127.0.0.1" {
			t.Errorf("got %s", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}
