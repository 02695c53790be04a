package web

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// A buyer is a cookie: whoever has it has what was ordered with it. What is
// stored of it is a digest.
const (
	buyerCookie = "holdfast_buyer"
	buyerAge    = 30 * 24 * 60 * 60 // seconds
	buyerForm   = 26                // characters of rand.Text
)

// Limits of what can be held without paying.
const (
	maxOpen       = 3                // unpaid orders of one buyer
	lookedAt      = 20               // newest orders of a buyer in which unpaid ones are looked for
	maxPlaced     = 60               // orders of one address in a placedWindow
	placedWindow  = 10 * time.Minute //
	maxAddresses  = 4096             // that are counted apart; the rest share one count
	addressPrefix = 64               // bits of an IPv6 address that one subscriber has
)

// customer is the visitor as the shop's orders know him; "" = not known yet.
func (v *visit) customer() string {
	c, err := v.r.Cookie(buyerCookie)
	if err != nil || len(c.Value) != buyerForm {
		return ""
	}
	return v.customerOf(c.Value)
}

func (s *site) customerOf(cookie string) string {
	return "web-" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(s.core.MAC("buyer", cookie)))[:buyerForm]
}

// known is customer; whoever is new becomes known.
func (v *visit) known() string {
	if c := v.customer(); c != "" {
		return c
	}
	text := rand.Text()
	http.SetCookie(v.w, &http.Cookie{
		Name: buyerCookie, Value: text, Path: "/", MaxAge: buyerAge, HttpOnly: true, Secure: v.secure(), SameSite: http.SameSiteLaxMode,
	})
	return v.customerOf(text)
}

// address is whom a request is from (see httpapi.Proxies): one IPv4 address, or one
// IPv6 network.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	p, err := ip.WithZone("").Prefix(addressPrefix)
	if err != nil {
		return host
	}
	return p.String()
}

// unpaid says whether an order holds stock that is not paid for.
func unpaid(o holdfast.Order) bool {
	return o.State == "held" || o.State == "paying" || o.State == "closing"
}

// open counts the visitor's unpaid orders.
func (v *visit) open(ctx context.Context, customer string) (n int, err error) {
	orders, err := v.core.Orders(ctx, holdfast.OrderFilter{Customer: customer, Limit: lookedAt})
	for _, o := range orders {
		if unpaid(o) {
			n++
		}
	}
	return n, err
}

// door lets buyers in one after the other, so that nobody holds everything
// without paying for it.
type door struct {
	mu      sync.Mutex
	under   map[string]int // orders that are being placed, by customer
	placed  map[string]int // by address, since the window began
	windows time.Time      // end of the window
}

// enter says whether an address may place another order, and how many are
// being placed for the customer. Whoever is let in must leave.
func (d *door) enter(customer, address string, now time.Time) (under int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under == nil {
		d.under = map[string]int{}
	}
	if !now.Before(d.windows) {
		d.windows, d.placed = now.Add(placedWindow), map[string]int{}
	}
	if _, ok := d.placed[address]; !ok && len(d.placed) >= maxAddresses {
		address = ""
	}
	if d.placed[address] >= maxPlaced {
		return 0, false
	}
	d.placed[address]++
	d.under[customer]++
	return d.under[customer] - 1, true
}

func (d *door) leave(customer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under[customer]--; d.under[customer] <= 0 {
		delete(d.under, customer)
	}
}

// place orders for the visitor, unless he holds enough already.
func (v *visit) place(ctx context.Context, key holdfast.Key, in holdfast.OrderInput) (holdfast.Ticket, error) {
	under, ok := v.door.enter(in.Customer, address(v.r), time.Now())
	if !ok {
		return holdfast.Ticket{}, errTooMany
	}
	defer v.door.leave(in.Customer)
	open, err := v.open(ctx, in.Customer)
	if err != nil {
		return holdfast.Ticket{}, fmt.Errorf("web: orders of %s: %w", in.Customer, err)
	}
	if open+under >= maxOpen {
		// A repeat holds nothing more.
		if t, err := v.core.Ticket(ctx, key.Scope+"."+key.Value, 0); err == nil && t.State == holdfast.TicketHeld {
			return t, nil
		}
		return holdfast.Ticket{}, errTooMany
	}
	return v.core.PlaceQueued(ctx, key, in, lineWait)
}
