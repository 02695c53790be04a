package stripesim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	minSessionLife = 30 * time.Minute
	maxSessionLife = 24 * time.Hour
	maxLineItems   = 100
	maxQuantity    = 999_999
)

var sessionParams = []string{
	"mode", "success_url", "cancel_url", "client_reference_id", "customer_email", "expires_at", "locale",
	"line_items[#][quantity]", "line_items[#][price_data][currency]", "line_items[#][price_data][unit_amount]",
	"line_items[#][price_data][product_data][name]", "line_items[#][price_data][product_data][description]",
	"payment_intent_data[description]", "payment_intent_data[metadata][*]", "payment_method_types[#]",
	"metadata[*]", "expand[#]",
}

// session is one hosted checkout. Its payment intent exists only once a buyer
// has tried to pay.
type session struct {
	id            string
	created       time.Time
	expiresAt     time.Time
	status        string // open, complete, expired
	paymentStatus string // unpaid, paid
	amount        int64
	currency      string
	title         string // what the buyer buys, for the page
	metadata      map[string]string
	intentData    struct {
		description string
		metadata    map[string]string
	}
	intent        *intent
	url           string
	successURL    string
	cancelURL     string
	clientRef     string
	customerEmail string
	locale        string
	methods       []string
}

func (x *session) ident() string    { return x.id }
func (x *session) since() time.Time { return x.created }

func (x *session) object() object {
	o := object{
		"id": x.id, "object": "checkout.session", "livemode": false, "mode": "payment", "ui_mode": "hosted_page",
		"created": x.created.Unix(), "expires_at": x.expiresAt.Unix(), "status": x.status, "payment_status": x.paymentStatus,
		"amount_subtotal": x.amount, "amount_total": x.amount, "currency": x.currency, "metadata": x.metadata,
		"client_reference_id": text(x.clientRef), "customer_email": text(x.customerEmail), "locale": text(x.locale),
		"success_url": text(x.successURL), "cancel_url": text(x.cancelURL), "payment_method_types": x.methods,
		"payment_intent": nil, "customer": nil, "url": nil,
	}
	if x.intent != nil {
		o["payment_intent"] = x.intent.id
	}
	if x.status == "open" {
		o["url"] = x.url
	}
	return o
}

// text is null when empty, as Stripe writes absent strings.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (s *Sim) createSession(c *call) (object, *apiError) {
	x, f := &session{created: c.now, status: "open", paymentStatus: "unpaid"}, c.form
	f.need("mode")
	f.choice("mode", "payment")
	f.need("success_url")
	x.successURL, x.cancelURL = f.url("success_url"), f.url("cancel_url")
	x.clientRef = f.text("client_reference_id", 200)
	x.customerEmail, x.locale = f.text("customer_email", 800), f.text("locale", 10)
	x.metadata = f.metadata("metadata")
	x.intentData.metadata = f.metadata("payment_intent_data[metadata]")
	x.intentData.description = f.text("payment_intent_data[description]", maxTextLen)
	x.expiresAt = time.Unix(f.number("expires_at", 0, 1<<40, c.now.Add(maxSessionLife).Unix()), 0)
	// Both ends are whole seconds on the wire, so they are compared as such.
	if life := x.expiresAt.Sub(time.Unix(c.now.Unix(), 0)); life < minSessionLife || life > maxSessionLife {
		f.wrong("", "expires_at", "The `expires_at` timestamp must be at least 30 minutes and less than 24 hours from Checkout Session creation.")
	}
	if x.methods = f.list("payment_method_types"); len(x.methods) == 0 {
		x.methods = []string{"card"}
	}
	x.readItems(f)
	if f.fail != nil {
		return nil, f.fail
	}
	x.id = s.id("cs_test_", 58)
	x.url = c.base + "/pay/" + x.id
	s.sessions.add(x)
	s.at(x.expiresAt, func() { s.expire(x, x.expiresAt, origin{}) })
	return x.object(), nil
}

func (x *session) readItems(f *form) {
	items := f.indices("line_items")
	if len(items) == 0 {
		f.wrong("parameter_missing", "line_items", "Missing required param: line_items.")
	}
	if len(items) > maxLineItems {
		f.wrong("", "line_items", fmt.Sprintf("At most %d line items.", maxLineItems))
		return
	}
	var names []string
	for _, i := range items {
		at := fmt.Sprintf("line_items[%d]", i)
		currency := f.currency(at + "[price_data][currency]")
		unit := f.amount(at+"[price_data][unit_amount]", currency)
		f.need(at + "[quantity]")
		quantity := f.number(at+"[quantity]", 1, maxQuantity, 1)
		f.need(at + "[price_data][product_data][name]")
		names = append(names, f.text(at+"[price_data][product_data][name]", maxTextLen))
		if x.currency != "" && x.currency != currency {
			f.wrong("", at+"[price_data][currency]", "All line items must have the same currency.")
		}
		if f.fail != nil {
			return
		}
		x.currency = currency
		x.amount += unit * quantity
	}
	x.title = strings.Join(names, ", ")
	if x.amount > maxAmount {
		f.wrong("amount_too_large", "line_items", fmt.Sprintf("The total must be no more than %d.", maxAmount))
	}
}

func (s *Sim) retrieveSession(c *call) (object, *apiError) {
	return show(s.sessions.get(c.id, "checkout.session", "session"))
}

// expireSession ends an open session: after it no money can arrive.
func (s *Sim) expireSession(c *call) (object, *apiError) {
	x, fail := s.sessions.get(c.id, "checkout.session", "session")
	if fail != nil {
		return nil, fail
	}
	if x.status != "open" {
		return nil, refused("", "", "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of `"+x.status+"`.")
	}
	s.expire(x, c.now, c.origin())
	return x.object(), nil
}

// expire ends a session if it is open, and the intent that a declined buyer
// has left behind.
func (s *Sim) expire(x *session, now time.Time, by origin) {
	if x.status != "open" {
		return
	}
	x.status = "expired"
	if x.intent != nil {
		s.cancel(x.intent, "expired", now, by)
	}
	s.emit(now, by, "checkout.session.expired", x.object())
}

func (s *Sim) listSessions(c *call) (object, *apiError) {
	f := c.form
	status := ""
	if f.has("status") {
		status = f.choice("status", "open", "complete", "expired")
	}
	of := f.text("payment_intent", maxTextLen)
	return list(c, s.sessions, func(x *session) bool {
		return (status == "" || x.status == status) && (of == "" || x.intent != nil && x.intent.id == of)
	})
}

// landing is where the buyer's browser goes after paying.
func (x *session) landing() string {
	return strings.ReplaceAll(x.successURL, "{CHECKOUT_SESSION_ID}", x.id)
}

// attached returns the session's intent, making it at the first attempt.
func (s *Sim) attached(x *session, now time.Time, by origin) *intent {
	if x.intent == nil {
		x.intent = s.addIntent(&intent{
			created: now, amount: x.amount, currency: x.currency, status: needsMethod, methods: slices.Clone(x.methods),
			metadata: x.intentData.metadata, description: x.intentData.description, session: x,
		}, by)
	}
	return x.intent
}
