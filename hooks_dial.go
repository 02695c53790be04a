package holdfast

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of one delivery's call.
const (
	hookTime    = 15 * time.Second // in all
	hookConnect = 5 * time.Second  // of it for the connection, and as much for TLS
	hookAnswer  = 64 << 10         // bytes of the answer's body that are read; nothing of it is kept
	hookHeader  = 16 << 10         // bytes of the answer's header
	maxHookURL  = 2048             // bytes
)

// hookPorts are those that endpoints may be on.
var hookPorts = []string{"", "443", "8443"}

// checkHookURL refuses an address before it is stored. What its name resolves
// to is checked when it is dialled: by then it may be something else.
func checkHookURL(s string, private bool) error {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxHookURL {
		return errors.New("it is not a URL")
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	switch {
	case u.Scheme != "https" && !(private && u.Scheme == "http"):
		return errors.New("https only")
	case u.User != nil || u.Fragment != "" || u.Opaque != "":
		return errors.New("no user and no fragment")
	case host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '%' }):
		return errors.New("the host is in plain ASCII; other names in their xn-- form")
	case !private && !slices.Contains(hookPorts, u.Port()):
		return errors.New("the port is 443 or 8443")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return checkHookAddr(ip, private)
	}
	label := host[strings.LastIndexByte(host, '.')+1:]
	if label == "" || label[0] >= '0' && label[0] <= '9' {
		return errors.New("the host is no number") // 2130706433, 0x7f000001, 127.1
	}
	if !private && (strings.EqualFold(label, "localhost") || !strings.Contains(host, ".")) {
		return errors.New("the host is of this machine or network")
	}
	return nil
}

// Networks that are never on the internet. The metadata services of clouds are
// refused even where private networks are allowed.
var (
	hookMetadata = networks("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32")
	hookPrivate  = networks("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	hookInternet6 = netip.MustParsePrefix("2000::/3") // nothing else of IPv6 is: not ::1, 64:ff9b::/96, fc00::/7, ff00::/8
)

func networks(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// checkHookAddr refuses an address that is not on the internet.
func checkHookAddr(ip netip.Addr, private bool) error {
	ip = ip.Unmap().WithZone("") // ::ffff:127.0.0.1 is 127.0.0.1
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	if slices.ContainsFunc(hookMetadata, within) {
		return fmt.Errorf("%s is link-local, or a cloud's metadata service", ip)
	}
	if private {
		return nil
	}
	if slices.ContainsFunc(hookPrivate, within) || ip.Is6() && !hookInternet6.Contains(ip) {
		return fmt.Errorf("%s is not on the internet", ip)
	}
	return nil
}

// hookClient calls endpoints. It checks the address that it connects to after
// the name was resolved, so that a name cannot be one thing when it is checked
// and another when it is used. It knows no proxy, follows no redirect and
// unpacks nothing.
func hookClient(private bool, resolver *net.Resolver) *http.Client {
	dialer := &net.Dialer{Timeout: hookConnect, Resolver: resolver, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if err := checkHookAddr(to.Addr(), private); err != nil {
			return &addressRefused{err}
		}
		return nil
	}}
	return &http.Client{
		Timeout:       hookTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, // that of the environment is not for these calls
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: hookConnect, MaxResponseHeaderBytes: hookHeader, DisableCompression: true,
			MaxIdleConns: MaxEndpoints, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
	}
}

// addressRefused is why a connection was not made.
type addressRefused struct{ err error }

func (e *addressRefused) Error() string { return "address not allowed: " + e.err.Error() }
