package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxHops is how many proxies a request is followed back through.
const maxHops = 16

// Proxies are the networks of the reverse proxies whose X-Forwarded-For is
// believed. nil = nobody's.
type Proxies []netip.Prefix

// ParseProxies reads networks such as 10.0.0.0/8 or fd00::/8, and single addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var all Proxies
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			p, err = a.WithZone("").Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no network such as 10.0.0.0/8 and no address", text)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is an IPv4 network: write it as one", text)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%q is everybody: anybody could choose an address", text)
		}
		all = append(all, p)
	}
	return all, nil
}

// Behind lets h see, as RemoteAddr, the address of the client in front of the
// proxies instead of the nearest proxy's. It is the one place where a forwarded
// address becomes the address of a request: limits, and what gateways are told of a
// payer, follow.
func (p Proxies) Behind(h http.Handler) http.Handler {
	if len(p) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !p.has(peer.Addr()) {
			h.ServeHTTP(w, r) // what it says of others is not believed
			return
		}
		r = r.WithContext(r.Context()) // a copy
		r.RemoteAddr = netip.AddrPortFrom(p.client(peer.Addr(), r.Header["X-Forwarded-For"]), 0).String()
		h.ServeHTTP(w, r)
	})
}

func (p Proxies) has(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

// client is the last address, from the right, that a trusted proxy has seen. Each
// proxy adds at the right whom it got the request from, so that what is further
// left than the first address that is no proxy's may be made up.
func (p Proxies) client(proxy netip.Addr, lines []string) netip.Addr {
	hops := strings.Split(strings.Join(lines, ","), ",")
	slices.Reverse(hops)
	for _, hop := range hops[:min(len(hops), maxHops)] {
		a, ok := hopAddress(strings.TrimSpace(hop))
		if !ok {
			return proxy // it does not say
		}
		if proxy = a; !p.has(a) {
			return a
		}
	}
	return proxy
}

// hopAddress reads an address; some proxies add the port.
func hopAddress(hop string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddrPort(hop)
	return a.Addr().Unmap().WithZone(""), err == nil
}
