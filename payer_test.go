package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

// sender is a gateway that pays out, as badly as a real one may. What it does
// with a number is drawn from the number and its seed.
type sender struct {
	*till
	mu       sync.Mutex
	clock    func() time.Time
	sent     map[string]*sending
	draw     func(what string, p gateway.Payout) string // what a call does
	payments int                                        // calls of Payout
}

// sending is what the gateway knows of a number.
type sending struct {
	status   gateway.PayoutStatus
	amount   int64
	out      int       // how often money left
	back     int       // how often it came back
	keyAt    time.Time // when the number was last used: it is forgotten after a day
	arrives  time.Time // a call that is still on its way
	settles  time.Time // when what is pending is decided
	to       gateway.PayoutStatus
	returned time.Time // when what was paid comes back; zero = never
}

const keysKept = 24 * time.Hour

func newSender(clock func() time.Time) *sender {
	return &sender{till: newTill(), clock: clock, sent: map[string]*sending{},
		draw: func(string, gateway.Payout) string { return "paid" }}
}

var errLost = errors.New("the answer was lost")

func (g *sender) CheckPayout(p gateway.Payout) *gateway.Unfit {
	if p.Destination == "nowhere" {
		return &gateway.Unfit{Field: "destination", Detail: "there is no such place"}
	}
	return nil
}

func (g *sender) Payout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.payments++
	now := g.clock()
	s := g.settle(p.ID)
	if s != nil && now.Sub(s.keyAt) < keysKept {
		return g.known(s, g.draw("again", p))
	}
	do := g.draw("payout", p)
	if s = g.settle(p.ID); s != nil && s.status != "" && now.Sub(s.keyAt) < keysKept { // meanwhile
		return g.known(s, do)
	}
	switch do {
	case "refused":
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "balance_short"}
	case "lost_before":
		return gateway.PayoutAnswer{Outcome: gateway.Unknown, Err: errLost}
	case "late":
		if s == nil {
			g.sent[p.ID] = &sending{amount: p.Amount, arrives: now.Add(10 * time.Minute)}
		}
		return gateway.PayoutAnswer{Outcome: gateway.Unknown, Err: errLost}
	}
	if s == nil {
		s = &sending{}
		g.sent[p.ID] = s
	}
	s.keyAt, s.arrives, s.amount, s.status = now, time.Time{}, p.Amount, gateway.PayoutPaid
	switch do {
	case "pending_paid", "pending_failed":
		s.status, s.settles, s.to = gateway.PayoutPending, now.Add(time.Hour), gateway.PayoutPaid
		if do == "pending_failed" {
			s.to = gateway.PayoutFailed
		}
	default:
		s.out++
		if do == "paid_returned" {
			s.returned = now.Add(72 * time.Hour)
		}
	}
	return g.known(s, do)
}

// known answers about s, unless the answer is lost.
func (g *sender) known(s *sending, do string) gateway.PayoutAnswer {
	if do == "lost_after" || do == "lost" {
		return gateway.PayoutAnswer{Outcome: gateway.Unknown, Err: errLost}
	}
	if s.status == gateway.PayoutPending && do == "accepted" {
		return gateway.PayoutAnswer{Outcome: gateway.Accepted}
	}
	if s.status == "" { // a call on its way that this one has overtaken
		s.status, s.arrives, s.keyAt = gateway.PayoutPaid, time.Time{}, g.clock()
		s.out++
	}
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: s.status, Ref: "ref"}
}

// settle lets happen to a number what its time has come for.
func (g *sender) settle(id string) *sending {
	s, now := g.sent[id], g.clock()
	if s == nil {
		return nil
	}
	if !s.arrives.IsZero() && !now.Before(s.arrives) {
		s.status, s.keyAt, s.arrives = gateway.PayoutPaid, s.arrives, time.Time{}
		s.out++
	}
	if !s.settles.IsZero() && !now.Before(s.settles) {
		s.status, s.settles = s.to, time.Time{}
		if s.to == gateway.PayoutPaid {
			s.out++
		}
	}
	if !s.returned.IsZero() && !now.Before(s.returned) {
		s.status, s.returned = gateway.PayoutReturned, time.Time{}
		s.back++
	}
	return s
}

func (g *sender) QueryPayout(_ context.Context, p gateway.Payout) gateway.PayoutAnswer {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.settle(p.ID)
	if g.draw("query", p) == "lost" {
		return gateway.PayoutAnswer{Outcome: gateway.Unknown, Err: errLost}
	}
	if s == nil || s.status == "" {
		return gateway.PayoutAnswer{Outcome: gateway.Refused, Code: "unknown number"}
	}
	return gateway.PayoutAnswer{Outcome: gateway.Done, Status: s.status, Ref: "ref"}
}

// net is how much money a number has taken out, and how often it went.
func (g *sender) net(id string) (left int64, out int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.settle(id)
	if s == nil {
		return 0, 0
	}
	return int64(s.out-s.back) * s.amount, s.out
}

// luck makes draw choose at random, but the same for the same seed: each payout
// has a habit of its own, by its description.
func (g *sender) luck(seed uint64) {
	source := map[string]*rand.Rand{}
	g.draw = func(what string, p gateway.Payout) string {
		r := source[p.Description]
		if r == nil {
			r = rand.New(rand.NewPCG(seed, hashOf(p.Description)))
			source[p.Description] = r
		}
		bad := r.IntN(100)
		switch what {
		case "query":
			if outage := r.IntN(3); bad < 40 || (outage == 0 && hashOf(p.Description)%5 == 0) {
				return "lost"
			}
			return ""
		case "again":
			return []string{"lost", "accepted", ""}[r.IntN(3)]
		}
		return []string{"paid", "paid_returned", "pending_paid", "pending_failed", "refused", "lost_before", "lost_before", "lost_after", "late"}[r.IntN(9)]
	}
}

func hashOf(s string) (h uint64) {
	for _, c := range s {
		h = h*31 + uint64(c)
	}
	return h
}

// payBench is a bench with a gateway that pays out, and an account with money.
type payBench struct {
	*bench
	out *sender
}

func newPayBench(t *testing.T, change ...func(*Options)) *payBench {
	p := &payBench{}
	p.bench = newBench(t, append([]func(*Options){func(o *Options) {
		p.out = newSender(o.Clock)
		o.Gateways["out"] = p.out
	}}, change...)...)
	return p
}

// fund opens an account with some CNY.
func (b *payBench) fund(id string, amount int64, terms ...Terms) {
	b.t.Helper()
	if _, err := b.OpenAccount(ctx, Key{}, AccountInput{ID: id, Terms: terms}); err != nil {
		b.t.Fatal(err)
	}
	if amount > 0 {
		if _, err := b.Deposit(ctx, Key{}, id, "CNY", amount, "test"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// has asserts an account's balance in CNY.
func (b *payBench) has(id string, posted, held, available int64) {
	b.t.Helper()
	a, err := b.Account(ctx, id)
	if err != nil {
		b.t.Fatal(err)
	}
	got := WalletBalance{Currency: "CNY"}
	for _, x := range a.Balances {
		if x.Currency == "CNY" {
			got = x
		}
	}
	if want := (WalletBalance{Currency: "CNY", Posted: posted, Held: held, Available: available}); got != want {
		b.t.Errorf("%s has %+v, want %+v", id, got, want)
	}
}

// payout asks for one of n CNY to bob; why is the refusal's code.
func (b *payBench) payout(account string, n int64, more ...func(*PayoutInput)) (p Payout, why string) {
	in := PayoutInput{Account: account, Currency: "CNY", Amount: n, Gateway: "out", Destination: "bob", By: "ann"}
	for _, f := range more {
		f(&in)
	}
	a, err := b.RequestPayout(ctx, Key{}, in)
	return a.Value, code(err)
}

// sent is a payout that was accepted.
func (b *payBench) sent(account string, n int64, more ...func(*PayoutInput)) Payout {
	b.t.Helper()
	p, why := b.payout(account, n, more...)
	if why != "" {
		b.t.Fatalf("a payout of %d from %s: %s", n, account, why)
	}
	return p
}

func (b *payBench) payoutIs(id string, want State) Payout {
	b.t.Helper()
	p, err := b.Payout(ctx, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if p.State != want {
		b.t.Errorf("the payout is %s, want %s: %+v", p.State, want, p)
	}
	return p
}
