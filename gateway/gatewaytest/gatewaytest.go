// Package gatewaytest is the suite that every gateway passes, run against a
// simulator of the gateway's published protocol.
//
// It holds an adapter to the contract of package gateway and to nothing of one
// vendor's. What the network does wrong is done by Wire, in front of the
// simulator, so that every adapter meets the same failures.
package gatewaytest

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// Ability names what a gateway may be unable to do by its nature.
type Ability string

const (
	// Decline: a try to pay can fail and leave the payment open.
	Decline Ability = "decline"
	// FailRefund: a refund can fail after it was taken on.
	FailRefund Ability = "fail refund"
	// Freshness: a notification tells when it was sent, and is refused later.
	Freshness Ability = "freshness"
	// Unsigned: the signature of a notification can be taken off.
	Unsigned Ability = "unsigned"
)

// Harness is one adapter, the simulator it talks to, and a clock that both
// read. Everything is new for each case.
type Harness struct {
	Gateway  gateway.Gateway
	Stranger gateway.Gateway // the same, trusting other secrets than the simulator's
	Wire     *Wire           // what Gateway's requests go through

	// Local says that Create makes no call: where to pay is made up here.
	Local bool
	// Visit is the buyer coming to where he pays the payment, and not paying. It
	// is set for a gateway that hears of a payment only then; nil = it knows of
	// it as soon as Create was answered.
	Visit func(gateway.Payment) error

	Method   string // of the payments made
	Currency string
	Amount   int64  // minor units, at least 100 and a multiple of 10
	Payer    string // of the payments made; empty where the method need not know

	Now     func() time.Time
	Advance func(time.Duration)

	// Pay is the buyer coming and paying the payment with that Ref; an error
	// when the gateway does not let him.
	Pay func(gateway.Payment) error
	// Books is what the gateway itself has written down under our number.
	Books func(gateway.Payment) Books
	// Notify makes the gateway send what is due now, answers each with
	// Acknowledge(ok) of Gateway, and returns them in their order.
	Notify func(ok bool) []Delivery

	// For abilities; nil only when Lacks says why.
	Decline    func(gateway.Payment) error
	FailRefund func(gateway.Refund) error
	Unsigned   func(Delivery) Delivery
	Tolerance  time.Duration // a notification may be that old, or that early

	// Lacks gives the reason for every ability that the gateway has not.
	// Its cases are skipped with it.
	Lacks map[Ability]string
}

// Books is the gateway's side of one payment.
type Books struct {
	Payments int   // how many it holds under our number that took money
	Captured int64 // minor units
	Refunded int64 // minor units that are repaid or will be
}

// Delivery is one notification as it came off the wire.
type Delivery struct {
	Header http.Header
	Body   []byte
}

type testCase struct {
	claim string
	needs Ability // "" for what every gateway can do
	run   func(*testing.T, Harness)
}

// Run holds the gateway that open makes to the contract.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, cases := range [][]testCase{payments, closings, refunds, notifications, failures} {
		for _, c := range cases {
			t.Run(c.claim, func(t *testing.T) {
				h := open(t)
				if c.needs != "" && !h.able(t, c.needs) {
					t.Skipf("not applicable: %s", h.Lacks[c.needs])
				}
				c.run(t, h)
			})
		}
	}
}

func (h Harness) able(t *testing.T, a Ability) bool {
	t.Helper()
	has := map[Ability]bool{
		Decline:    h.Decline != nil,
		FailRefund: h.FailRefund != nil,
		Freshness:  h.Tolerance > 0,
		Unsigned:   h.Unsigned != nil,
	}[a]
	if has == (h.Lacks[a] != "") {
		t.Fatalf("ability %q: given %v, lacking because %q", a, has, h.Lacks[a])
	}
	return has
}

// payment is a new attempt, as it would be stored now.
func (h Harness) payment() gateway.Payment {
	return gateway.Payment{
		ID:          "pay0001",
		Order:       "order-1",
		Method:      h.Method,
		Amount:      h.Amount,
		Currency:    h.Currency,
		Description: "Two tea cups 茶杯",
		Payer:       h.Payer,
		ReturnURL:   "https://shop.example/return",
		CreatedAt:   h.Now(),
		ExpiresAt:   h.Now().Add(15 * time.Minute),
	}
}

func (h Harness) refund(p gateway.Payment, id string, amount int64) gateway.Refund {
	return gateway.Refund{ID: id, Payment: p, Amount: amount, Reason: "came broken", CreatedAt: h.Now()}
}

// offered opens a payment and keeps its Ref.
func (h Harness) offered(t *testing.T) gateway.Payment {
	t.Helper()
	p := h.payment()
	a := h.Gateway.Create(t.Context(), p)
	wantStatus(t, "create", a, gateway.Open)
	p.Ref = a.Ref
	return p
}

// created opens a payment that the gateway knows of, and keeps its Ref.
func (h Harness) created(t *testing.T) gateway.Payment {
	t.Helper()
	p := h.offered(t)
	h.visit(t, p)
	return p
}

// lost opens a payment that the gateway knows of, and loses the answer.
func (h Harness) lost(t *testing.T) gateway.Payment {
	t.Helper()
	p := h.payment()
	if !h.Local {
		h.Wire.Once(CallCreate, Lost)
	}
	h.Gateway.Create(t.Context(), p)
	h.visit(t, p)
	return p
}

func (h Harness) visit(t *testing.T, p gateway.Payment) {
	t.Helper()
	if h.Visit == nil {
		return
	}
	if err := h.Visit(p); err != nil {
		t.Fatalf("the buyer cannot come to pay %s: %v", p.ID, err)
	}
}

// paid opens a payment and has it paid.
func (h Harness) paid(t *testing.T) gateway.Payment {
	t.Helper()
	p := h.created(t)
	h.pay(t, p)
	return p
}

func (h Harness) pay(t *testing.T, p gateway.Payment) {
	t.Helper()
	if err := h.Pay(p); err != nil {
		t.Fatalf("the buyer cannot pay %s: %v", p.ID, err)
	}
}

func wantStatus(t *testing.T, what string, a gateway.Answer, want gateway.Status) {
	t.Helper()
	if a.Outcome != gateway.Done || a.Status != want {
		t.Fatalf("%s: got %s %s (%s, %v), want done %s", what, a.Outcome, a.Status, a.Code, a.Err, want)
	}
}

func wantOutcome(t *testing.T, what string, a gateway.Answer, want gateway.Outcome) {
	t.Helper()
	if a.Outcome != want {
		t.Errorf("%s: got %s %s (%s, %v), want %s", what, a.Outcome, a.Status, a.Code, a.Err, want)
	}
	if a.Outcome == gateway.Unknown && a.Err == nil {
		t.Errorf("%s: unknown without a reason", what)
	}
}

func wantBooks(t *testing.T, h Harness, p gateway.Payment, want Books) {
	t.Helper()
	if got := h.Books(p); got != want {
		t.Errorf("books: got %+v, want %+v", got, want)
	}
}
