package stripesim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The statuses of a payment intent that are named more than once.
const (
	needsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	needsAction  = "requires_action"
	processing   = "processing"
	succeeded    = "succeeded"
	canceled     = "canceled"
)

// outcome is what becomes of one attempt to pay.
type outcome string

const (
	paid       outcome = "paid"
	declined   outcome = "generic_decline"
	noFunds    outcome = "insufficient_funds"
	underway   outcome = "processing"
	needsBuyer outcome = "requires_action"
)

const defaultCard = "pm_card_visa"

// methods are Stripe's test payment methods, and what happens with each.
var methods = map[string]outcome{
	defaultCard: paid, "pm_card_mastercard": paid, "pm_card_unionpay": paid,
	"pm_card_chargeDeclined": declined, "pm_card_visa_chargeDeclined": declined,
	"pm_card_chargeDeclinedInsufficientFunds": noFunds, "pm_card_visa_chargeDeclinedInsufficientFunds": noFunds,
	"pm_usBankAccount_processing":    underway,
	"pm_card_authenticationRequired": needsBuyer, "pm_card_threeDSecure2Required": needsBuyer,
}

var intentParams = []string{
	"amount", "currency", "description", "metadata[*]", "automatic_payment_methods[enabled]",
	"automatic_payment_methods[allow_redirects]", "payment_method_types[#]", "payment_method", "confirm", "return_url",
	"receipt_email", "expand[#]",
}

// intent is one payment intent.
type intent struct {
	id           string
	secret       string
	created      time.Time
	amount       int64
	currency     string
	status       string
	method       string // the payment method, once given
	methods      []string
	automatic    bool
	metadata     map[string]string
	description  string
	receiptEmail string
	session      *session // nil when it stands alone
	charge       *charge  // the latest
	lastError    *apiError
	canceledAt   time.Time
	cancelReason string
}

func (in *intent) ident() string    { return in.id }
func (in *intent) since() time.Time { return in.created }

func (in *intent) object() object {
	o := object{
		"id": in.id, "object": "payment_intent", "livemode": false, "created": in.created.Unix(), "status": in.status,
		"amount": in.amount, "amount_capturable": 0, "amount_received": in.received(), "currency": in.currency,
		"metadata": in.metadata, "description": text(in.description), "client_secret": in.secret,
		"payment_method": text(in.method), "payment_method_types": in.methods, "capture_method": "automatic_async",
		"confirmation_method": "automatic", "receipt_email": text(in.receiptEmail), "automatic_payment_methods": nil,
		"latest_charge": nil, "last_payment_error": nil, "next_action": nil, "customer": nil,
		"canceled_at": nil, "cancellation_reason": text(in.cancelReason),
	}
	if in.automatic {
		o["automatic_payment_methods"] = object{"enabled": true}
	}
	if in.charge != nil {
		o["latest_charge"] = in.charge.id
	}
	if in.lastError != nil {
		o["last_payment_error"] = in.lastError.object()
	}
	if in.status == needsAction {
		o["next_action"] = object{"type": "use_stripe_sdk"}
	}
	if in.status == canceled {
		o["canceled_at"] = in.canceledAt.Unix()
	}
	return o
}

func (in *intent) received() int64 {
	if in.status == succeeded {
		return in.amount
	}
	return 0
}

func (s *Sim) createIntent(c *call) (object, *apiError) {
	f := c.form
	in := &intent{created: c.now, status: needsMethod, currency: f.currency("currency"), metadata: f.metadata("metadata")}
	in.amount = f.amount("amount", in.currency)
	in.description, in.receiptEmail = f.text("description", 1000), f.text("receipt_email", 800)
	in.automatic = f.choice("automatic_payment_methods[enabled]", "true", "false") == "true"
	f.choice("automatic_payment_methods[allow_redirects]", "always", "never")
	f.url("return_url")
	if in.methods = f.list("payment_method_types"); len(in.methods) == 0 {
		in.methods = []string{"card"}
	} else if in.automatic = false; f.has("automatic_payment_methods[enabled]") {
		f.wrong("parameters_exclusive", "payment_method_types", "automatic_payment_methods and payment_method_types exclude each other.")
	}
	confirm := f.flag("confirm")
	in.method = knownMethod(f)
	if f.fail != nil {
		return nil, f.fail
	}
	if in.method != "" {
		in.status = needsConfirm
	}
	s.addIntent(in, c.origin())
	if confirm {
		return s.confirm(in, c)
	}
	return in.object(), nil
}

func knownMethod(f *form) string {
	m := f.text("payment_method", maxTextLen)
	if _, ok := methods[m]; m != "" && !ok {
		f.wrong("resource_missing", "payment_method", "No such PaymentMethod: '"+m+"'")
	}
	return m
}

func (s *Sim) addIntent(in *intent, by origin) *intent {
	in.id = s.id("pi_", 24)
	in.secret = s.id(in.id+"_secret_", 25)
	s.intents.add(in)
	s.emit(in.created, by, "payment_intent.created", in.object())
	return in
}

func (s *Sim) retrieveIntent(c *call) (object, *apiError) {
	in, fail := s.intents.get(c.id, "payment_intent", "intent")
	if secret := c.form.text("client_secret", maxTextLen); fail == nil && secret != "" && secret != in.secret {
		return nil, refused("resource_missing", "client_secret", "The client_secret does not belong to this PaymentIntent.")
	}
	return show(in, fail)
}

func (s *Sim) updateIntent(c *call) (object, *apiError) {
	in, fail := s.intents.get(c.id, "payment_intent", "intent")
	if fail != nil {
		return nil, fail
	}
	changes := c.form.changes("metadata")
	description := c.form.text("description", 1000)
	if c.form.fail != nil {
		return nil, c.form.fail
	}
	merged := maps.Clone(in.metadata)
	maps.Copy(merged, changes)
	maps.DeleteFunc(merged, func(_, v string) bool { return v == "" })
	if len(merged) > maxMetadataKeys {
		return nil, invalid("", "metadata", "Metadata has too many keys.")
	}
	in.metadata = merged
	if c.form.has("description") {
		in.description = description
	}
	return in.object(), nil
}

func (s *Sim) confirmIntent(c *call) (object, *apiError) {
	in, fail := s.intents.get(c.id, "payment_intent", "intent")
	if fail != nil {
		return nil, fail
	}
	m := knownMethod(c.form)
	c.form.url("return_url")
	if c.form.fail != nil {
		return nil, c.form.fail
	}
	if in.session != nil {
		return nil, ofCheckout()
	}
	if !slices.Contains([]string{needsMethod, needsConfirm, needsAction}, in.status) {
		return nil, in.unexpected("You cannot confirm this PaymentIntent because it has a status of " + in.status + ".")
	}
	if m != "" {
		in.method = m
	}
	return s.confirm(in, c)
}

// confirm tries to pay with the intent's method.
func (s *Sim) confirm(in *intent, c *call) (object, *apiError) {
	if in.method == "" {
		return nil, in.unexpected("You cannot confirm this PaymentIntent because it's missing a payment method.")
	}
	s.conclude(in, methods[in.method], c.now, c.origin())
	if in.lastError != nil && in.status == needsMethod {
		fail := *in.lastError
		fail.intent = in
		return nil, &fail
	}
	return in.object(), nil
}

func ofCheckout() *apiError {
	return refused("", "", "You cannot perform this action on PaymentIntents created by Checkout.")
}

func (in *intent) unexpected(message string) *apiError {
	fail := refused(stateCode, "", message)
	fail.intent = in
	return fail
}

func (s *Sim) cancelIntent(c *call) (object, *apiError) {
	in, fail := s.intents.get(c.id, "payment_intent", "intent")
	if fail != nil {
		return nil, fail
	}
	reason := c.form.choice("cancellation_reason", "", "duplicate", "fraudulent", "requested_by_customer", "abandoned")
	if c.form.fail != nil {
		return nil, c.form.fail
	}
	if in.session != nil {
		return nil, ofCheckout()
	}
	cancelable := []string{needsMethod, needsConfirm, needsAction}
	if !slices.Contains(cancelable, in.status) {
		return nil, in.unexpected("You cannot cancel this PaymentIntent because it has a status of " + in.status +
			". Only a PaymentIntent with one of the following statuses may be canceled: " + strings.Join(cancelable, ", ") + ".")
	}
	s.cancel(in, reason, c.now, c.origin())
	return in.object(), nil
}

func (s *Sim) cancel(in *intent, reason string, now time.Time, by origin) {
	in.status, in.cancelReason, in.canceledAt = canceled, reason, now
	s.emit(now, by, "payment_intent.canceled", in.object())
}

func (s *Sim) listIntents(c *call) (object, *apiError) {
	return list(c, s.intents, func(*intent) bool { return true })
}
