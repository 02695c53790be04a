package holdfast

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestEndpointsAreOnTheInternetOverHTTPSAndNowhereElse(t *testing.T) {
	for _, url := range []string{
		"https://127.0.0.1/", "https://localhost/", "https://a.localhost/", "https://[::1]/", "https://0.0.0.0/", "https://[::]/", "https://[::ffff:127.0.0.1]/",
		"https://169.254.169.254/latest", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.0.1/", "https://100.64.0.1/",
		"https://[fc00::1]/", "https://[fe80::1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001::1]/", "https://224.0.0.1/", "https://[ff02::1]/",
		"https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/", "https://xn--/\u0000", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://intranet/",
		"file:///etc/passwd", "gopher://shop.example/", "ftp://shop.example/", "http://shop.example/", "https://user:pw@shop.example/", "https://shop.example:22/",
		"https://shop.example:25/", "https://shop.example:6379/", "https://shop.example/#here", "https:///path", "https:shop.example", "//shop.example", "", "https://" + strings.Repeat("a", maxHookURL),
	} {
		if err := (EndpointInput{URL: url, Types: []string{"*"}}).check(false); code(err) != CodeURLNotAllowed {
			t.Errorf("%q: got %v, want %s", url, err, CodeURLNotAllowed)
		}
	}
	for _, url := range []string{"https://shop.example/hooks?a=b", "https://shop.example:8443/", "https://xn--fiq228c.example/", "https://1.1.1.1/", "https://[2606:4700::1111]/"} {
		if err := (EndpointInput{URL: url, Types: []string{"*"}}).check(false); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, url := range []string{"http://169.254.169.254/", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://[::ffff:169.254.169.254]/"} {
		if err := (EndpointInput{URL: url, Types: []string{"*"}}).check(true); code(err) != CodeURLNotAllowed {
			t.Errorf("%q with private networks allowed: got %v", url, err)
		}
	}
}

func TestAddressesOffTheInternetAreRefused(t *testing.T) {
	for _, s := range []string{"0.1.2.3", "10.255.255.255", "100.127.255.255", "127.255.0.1", "169.254.0.1", "172.31.0.1", "192.168.255.1", "198.19.0.1", "224.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::1", "100::1", "2001::1", "2001:db8::1", "2002::1", "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1"} {
		if checkHookAddr(netip.MustParseAddr(s), false) == nil {
			t.Errorf("%s is let through", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "100.63.0.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"} {
		if err := checkHookAddr(netip.MustParseAddr(s), false); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// names is a DNS server that answers every question for an IPv4 address with
// to, and knows no IPv6.
func names(to [4]byte) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for { // over TCP, which net.Pipe looks like: two bytes of length, then the message
				head := make([]byte, 2)
				if _, err := readFull(server, head); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(head))
				if _, err := readFull(server, q); err != nil {
					return
				}
				end := 12 + bytes.IndexByte(q[12:], 0) + 5
				a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
				if q[end-3] == 1 { // A
					a[7] = 1
					a = append(append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), to[:]...)
				}
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

func readFull(c net.Conn, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = c.Read(b[n:])
		n += m
	}
	return n, err
}

// The name was public when it was saved, and is not when it is dialled.
func TestANameThatResolvesToAPrivateAddressIsNotDialled(t *testing.T) {
	var refused *addressRefused
	for _, to := range [][4]byte{{127, 0, 0, 1}, {169, 254, 169, 254}, {10, 0, 0, 1}} {
		_, err := hookClient(false, names(to)).Get("https://shop.example/hooks")
		if !errors.As(err, &refused) {
			t.Errorf("%v: got %v, want it refused", to, err)
		}
	}
	_, err := hookClient(true, names([4]byte{169, 254, 169, 254})).Get("http://shop.example/hooks")
	if !errors.As(err, &refused) {
		t.Errorf("metadata with private networks allowed: got %v, want it refused", err)
	}
	here := newReceiver(t) // the same name, where it is allowed
	_, port, _ := net.SplitHostPort(here.Listener.Addr().String())
	resp, err := hookClient(true, names([4]byte{127, 0, 0, 1})).Get("http://shop.example:" + port)
	if err != nil {
		t.Fatalf("the test's own names do not resolve: %v", err)
	}
	resp.Body.Close()
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	b := newBench(t, hooked)
	r := newReceiver(t)
	e, _ := b.endpoint(r.URL, "order.held")
	r.answer(http.StatusTemporaryRedirect)
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	if d := b.deliveries(e.ID)[0]; len(r.calls) != 1 || d.State != DeliveryPending || d.Status != 307 {
		t.Errorf("got %d calls and %+v", len(r.calls), d)
	}
}

func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	if tr := hookClient(false, nil).Transport.(*http.Transport); tr.Proxy != nil {
		t.Error("there is a proxy")
	}
}

func TestAnEndlessAnswerIsReadOnlyInPartAndKeptNowhere(t *testing.T) {
	b := newBench(t, hooked)
	const pages = 4096 // of 16 KiB: as good as endless
	cut := make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		page := bytes.Repeat([]byte{'a'}, 16<<10)
		for range pages {
			if _, err := w.Write(page); err != nil {
				cut <- true
				return
			}
		}
		cut <- false
	}))
	t.Cleanup(s.Close)
	e, _ := b.endpoint(s.URL, "order.held")
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	if d := b.deliveries(e.ID)[0]; d.State != DeliveryDelivered || d.Error != "" {
		t.Errorf("got %+v", d)
	}
	if !<-cut {
		t.Error("all of it was read")
	}
}

func TestAnEndpointThatNeverAnswersIsGivenUpInTime(t *testing.T) {
	b := newBench(t, hooked)
	b.hooks.client.Timeout = 20 * time.Millisecond
	r := newReceiver(t)
	r.hang = make(chan struct{})
	defer close(r.hang)
	e, _ := b.endpoint(r.URL+"/with-a-secret", "order.held")
	b.place("tee", 1)
	b.deliver(b.Holdfast)
	d := b.deliveries(e.ID)[0]
	if d.State != DeliveryPending || d.Error != "no answer in time" || strings.Contains(d.Error, "secret") {
		t.Errorf("got %+v", d)
	}
	if own := hookClient(false, nil).Timeout; own != hookTime {
		t.Errorf("got a timeout of %v, want %v", own, hookTime)
	}
}
