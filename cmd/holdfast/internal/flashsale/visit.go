package flashsale

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	maxOrders  = 8                      // of one buyer, one after another
	maxTurns   = 1000                   // times that one buyer asks for an order
	askFirst   = 200 * time.Millisecond // how soon a buyer looks at the order again
	askSlowest = time.Second            // how slowly in the end
	maxAsks    = 90                     // looks at one order or payment
	maxClicks  = 5                      // of a double click
	thinkFor   = 1500 * time.Millisecond
)

// order and payment are what a buyer needs of the API's answers.
type order struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	ExpiresAt time.Time `json:"expires_at"`
}

type payment struct {
	ID    string `json:"id"`
	State string `json:"state"`
	URL   string `json:"url"`
}

// visit is a buyer's whole evening. Who is willing comes back until served or
// until there is nothing left.
func (r *sale) visit(ctx context.Context, b Buyer) {
	if !sleep(ctx, b.arrive) {
		return
	}
	for orders, turns := 0, 0; orders < maxOrders && turns < maxTurns; turns++ {
		o, ok := r.order(ctx, b, turns)
		if ok {
			orders++
		}
		if ok && r.proceed(ctx, b, o) || !b.Willing() {
			return
		}
		if !ok && !r.rooms[b.SKU].wait(ctx) {
			return
		}
	}
}

// key names a request of a buyer: the same one asked again has the same key.
func (r *sale) key(b Buyer, what string, n int) string {
	return fmt.Sprintf("sale-%016x-%s-%s-%d", r.Seed, b.ID, what, n)
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// order tries to get one piece; false when it is sold out.
func (r *sale) order(ctx context.Context, b Buyer, n int) (order, bool) {
	in := struct {
		Lines    []line `json:"lines"`
		Customer string `json:"customer"`
	}{[]line{{b.SKU, 1}}, b.ID}
	key := r.key(b, "order", n)
	ask := func() (order, bool) {
		start := time.Now()
		a, err := r.until(ctx, http.MethodPost, "/v1/orders", key, in)
		var o order
		switch {
		case err != nil:
			r.bad("%s orders: %v", b.ID, err)
		case a.Code == "sold_out":
			r.rejected.Add(1)
		case !a.ok():
			r.bad("%s orders: answer %d %s %s", b.ID, a.status, a.Code, a.Detail)
		default:
			if err := a.read(&o); err != nil {
				r.bad("%s orders: %v", b.ID, err)
				return o, false
			}
			r.held(time.Since(start))
			return o, true
		}
		return o, false
	}
	switch b.habit {
	case doubleClick:
		return r.click(b, ask)
	case retry:
		// Too short to be answered, most of the time, and maybe long enough to
		// have an effect.
		hasty, cancel := context.WithTimeout(ctx, time.Duration(b.rng.Int64N(int64(10*time.Millisecond)))+time.Millisecond)
		_, _ = r.once(hasty, http.MethodPost, "/v1/orders", key, in)
		cancel()
	}
	return ask()
}

// click asks several times at once, under one key: all that is had must be one order.
func (r *sale) click(b Buyer, ask func() (order, bool)) (order, bool) {
	var (
		mu    sync.Mutex
		first order
		had   bool
		all   sync.WaitGroup
	)
	for range 2 + b.rng.IntN(maxClicks-1) {
		all.Go(func() {
			o, ok := ask()
			mu.Lock()
			defer mu.Unlock()
			if ok && had && o.ID != first.ID {
				r.bad("%s clicked several times and has the orders %s and %s", b.ID, first.ID, o.ID)
			}
			if ok && !had {
				first, had = o, true
			}
		})
	}
	all.Wait()
	return first, had
}

// proceed does with an order what is the buyer's habit. It says whether the
// buyer got what it came for, or does not want it any more.
func (r *sale) proceed(ctx context.Context, b Buyer, o order) bool {
	if b.habit == holdOnly {
		return true
	}
	if !sleep(ctx, time.Duration(b.rng.Int64N(int64(thinkFor)))) {
		return true
	}
	if b.habit == cancelEarly {
		r.cancel(ctx, b, o)
		return true
	}
	p, ok := r.pay(ctx, b, o, b.way)
	page := ""
	if ok && b.looks() {
		page = r.look(ctx, b, p, b.way)
	}
	switch b.habit {
	case startOnly:
		return true
	case cancelPaying:
		r.cancel(ctx, b, o)
		return true
	case switchWay:
		if ok && b.other != b.way {
			if p, ok = r.pay(ctx, b, o, b.other); ok {
				page = r.look(ctx, b, p, b.other)
			}
		}
	}
	if !ok || page == "" {
		return r.settled(ctx, b, o) == "paid"
	}
	taken := r.spend(ctx, b, o, page)
	state := r.settled(ctx, b, o)
	if taken && state != "paid" && state != "refunded" {
		r.bad("%s paid for order %s, and it is %q", b.ID, o.ID, state)
	}
	return state == "paid"
}

// looks says whether the buyer opens the page. Who goes away may have gone before.
func (b Buyer) looks() bool {
	return b.habit != startOnly && b.habit != cancelPaying && b.habit != switchWay || b.rng.IntN(2) == 0
}

// look opens the page of a payment; "" when there is none any more.
func (r *sale) look(ctx context.Context, b Buyer, p payment, w Way) (page string) {
	page, err := r.open(ctx, p.URL, w)
	if err != nil {
		r.bad("%s opens the page of payment %s: %v", b.ID, p.ID, err)
	}
	return page
}

// spend is the buyer before the page, by his habit. It says whether the page
// took the money.
func (r *sale) spend(ctx context.Context, b Buyer, o order, page string) bool {
	switch b.habit {
	case payLate:
		// The deadline moved when the attempt began.
		if a, err := r.until(ctx, http.MethodGet, "/v1/orders/"+o.ID, "", nil); err == nil && a.ok() {
			_ = a.read(&o) // an old deadline is late as well
		}
		sleep(ctx, r.Until(o.ExpiresAt))
	case decline:
		if _, err := r.press(ctx, page, "decline"); err != nil {
			r.bad("%s is declined: %v", b.ID, err)
		}
	}
	taken, err := r.press(ctx, page, "pay")
	if err != nil {
		r.bad("%s pays: %v", b.ID, err)
	}
	return taken
}

// pay starts to pay and waits for the address of the page; false when there
// will be none. Another way than the one before is open when that is closed.
func (r *sale) pay(ctx context.Context, b Buyer, o order, w Way) (payment, bool) {
	var p payment
	in := struct {
		Gateway   string `json:"gateway"`
		Method    string `json:"method"`
		Payer     string `json:"payer,omitempty"`
		ReturnURL string `json:"return_url"`
	}{w.Gateway, w.Method, w.Payer, thanksPage}
	key := r.key(b, o.ID+"-"+w.Gateway+"-"+w.Method, 0)
	a, err := r.until(ctx, http.MethodPost, "/v1/orders/"+o.ID+"/payments", key, in)
	if err != nil {
		r.bad("%s starts to pay: %v", b.ID, err)
		return p, false
	}
	if a.Code == "invalid_state" { // the time was over
		return p, false
	}
	for range maxAsks {
		if err == nil && !a.ok() {
			r.bad("%s starts to pay for %s: answer %d %s %s", b.ID, o.ID, a.status, a.Code, a.Detail)
			return p, false
		}
		if err == nil {
			err = a.read(&p)
		}
		if err != nil {
			r.bad("%s starts to pay: %v", b.ID, err)
			return p, false
		}
		if p.State != "requested" && p.State != "waiting" {
			return p, p.State == "open"
		}
		if !sleep(ctx, askFirst) {
			return p, false
		}
		a, err = r.until(ctx, http.MethodGet, "/v1/payments/"+p.ID, "", nil)
	}
	return p, false
}

func (r *sale) cancel(ctx context.Context, b Buyer, o order) {
	a, err := r.until(ctx, http.MethodPost, "/v1/orders/"+o.ID+"/cancel", r.key(b, o.ID+"-cancel", 0), nil)
	if err != nil {
		r.bad("%s cancels: %v", b.ID, err)
		return
	}
	if !a.ok() && a.Code != "invalid_state" { // expired, or paid in spite of it
		r.bad("%s cancels %s: answer %d %s %s", b.ID, o.ID, a.status, a.Code, a.Detail)
	}
}

// settled waits until the order has come to an end, and says which.
func (r *sale) settled(ctx context.Context, b Buyer, o order) string {
	pause := askFirst
	for range maxAsks {
		a, err := r.until(ctx, http.MethodGet, "/v1/orders/"+o.ID, "", nil)
		if err == nil && a.ok() {
			err = a.read(&o)
		}
		if err != nil || !a.ok() {
			r.bad("%s looks at %s: answer %d %s: %v", b.ID, o.ID, a.status, a.Code, err)
			return o.State
		}
		switch o.State {
		case "held", "paying", "closing", "refunding":
		default:
			return o.State
		}
		if !sleep(ctx, pause) {
			return o.State
		}
		pause = min(pause*5/4, askSlowest)
	}
	return o.State
}
