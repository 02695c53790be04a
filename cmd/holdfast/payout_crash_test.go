package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

var (
	payoutRounds = flag.Int("payout.rounds", 2, "how often TestAKilledServerPaysNothingTwice kills the server")
	payoutCount  = flag.Int("payout.count", 60, "how many payouts it asks for in all")
)

const (
	payoutClients = 8
	payoutAmount  = 250             // cents of each
	payoutRest    = 3 * time.Minute // for all of them to end: a dead worker's lease, and some tries
)

// payee asks for payouts, and remembers what it was answered.
type payee struct {
	*shopper
	payouts []*asked
}

// The server is killed at random instants while it pays out through a gateway
// that loses calls and answers: every payout that was asked for is paid in the end,
// and was sent once. (What is refused after a lost answer stays unknown for a day.)
func TestAKilledServerPaysNothingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // it waits for most of its time
	luck := rand.New(rand.NewPCG(*crashSeed, 3))
	sim := stripesim.New(stripesim.Config{Seed: *crashSeed})
	if err := sim.TopUp(int64(*payoutCount)*payoutAmount*2, "eur"); err != nil {
		t.Fatal(err)
	}
	sim.SetFaults(stripesim.Faults{LostAnswer: 0.1, LostCall: 0.05, Unavailable: 0.05,
		DelayNotice: 100 * time.Millisecond, DuplicateNotice: 0.2, TwoEvents: 0.1, SlowAnswer: 100 * time.Millisecond})
	gate := httptest.NewServer(sim)
	defer gate.Close()
	url, addr := newStore(t), freeAddress(t)
	sim.SetWebhookURL("http://" + addr + "/webhooks/stripe")
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { sim.Run(ctx) })
	defer sending.Wait()
	defer stop()

	key := accountAndKey(t, url)
	args := []string{"--db", url, "--addr", addr, "--poll", "500ms", "--call-for", "2s"}
	p := start(t, gatewayEnv(gate.URL), args...)
	var all []*payee
	for round := range *payoutRounds {
		payees := make([]*payee, payoutClients)
		for i := range payees {
			payees[i] = &payee{shopper: &shopper{url: p.url, key: key, name: fmt.Sprintf("payee-%d-%d", round, i)}}
		}
		each := *payoutCount / *payoutRounds
		payUntilKilled(ctx, p, payees, each, 1+luck.IntN(each))
		p = start(t, gatewayEnv(gate.URL), args...)
		for _, y := range payees {
			y.settle(t)
		}
		all = append(all, payees...)
	}
	awaitNone(t, p, key, payoutRest, "payouts", "held", "submitted", "unknown")
	p.signal(t, syscall.SIGTERM)
	if got := p.ended(); got.ExitStatus() != exitOK {
		t.Errorf("the last server ended with %v, want exit status 0", got)
	}
	auditPayouts(t, url, sim, all)
}

// accountAndKey opens the account that pays, with money for all.
func accountAndKey(t *testing.T, url string) string {
	t.Helper()
	var made struct{ Key string }
	must(t, &made, "keys", "create", "--name", "payouts", "--db", url)
	err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		if _, err := core.OpenAccount(t.Context(), holdfast.Key{}, holdfast.AccountInput{ID: "hot"}); err != nil {
			return err
		}
		_, err := core.Deposit(t.Context(), holdfast.Key{}, "hot", "EUR", int64(*payoutCount)*payoutAmount, "a start")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Key
}

// payUntilKilled asks for n payouts, and kills the server after so many answers.
func payUntilKilled(ctx context.Context, p *process, payees []*payee, n, answers int) {
	var left, answered atomic.Int64
	left.Store(int64(n))
	var paying sync.WaitGroup
	for _, y := range payees {
		paying.Go(func() {
			for left.Add(-1) >= 0 {
				y.ask(ctx)
				if answered.Add(1) == int64(answers) {
					_ = p.cmd.Process.Kill() // kill -9
				}
			}
		})
	}
	paying.Wait()
	p.ended()
}

func (y *payee) ask(ctx context.Context) {
	a := &asked{path: "/v1/payouts", key: fmt.Sprintf("%s-request-%d", y.name, len(y.payouts)),
		body: fmt.Sprintf(`{"account":"hot","amount":%d,"currency":"EUR","destination":"acct_1Seller"}`, payoutAmount)}
	y.payouts = append(y.payouts, a)
	if status, answer, err := y.send(ctx, http.MethodPost, a); err == nil && certain(status) {
		a.status, a.answer = status, answer
	}
}

// settle asks again for what was not answered.
func (y *payee) settle(t *testing.T) {
	t.Helper()
	for _, a := range y.payouts {
		if a.status == 0 {
			y.unknown++
			a.status, a.answer = y.repeat(t, a)
		}
		if a.status != http.StatusCreated {
			t.Errorf("%s: got %d %s, want a payout", a.key, a.status, a.answer)
		}
	}
}

func auditPayouts(t *testing.T, url string, sim *stripesim.Sim, all []*payee) {
	t.Helper()
	sent, sum := map[string]int{}, int64(0)
	for _, x := range sim.Books().Transfers {
		sent[x.Metadata["payout_id"]]++
		sum += x.Amount
	}
	err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		states, unknown, n := map[holdfast.State]int{}, 0, 0
		for _, y := range all {
			unknown += y.unknown
			for _, a := range y.payouts {
				var was holdfast.Payout
				if err := json.Unmarshal(a.answer, &was); err != nil {
					return err
				}
				p, err := core.Payout(t.Context(), was.ID)
				if err != nil {
					return err
				}
				n++
				states[p.State]++
				if sent[p.ID] != 1 {
					t.Errorf("payout %s is %s, and was sent %d times", p.ID, p.State, sent[p.ID])
				}
			}
		}
		t.Logf("%d kills, %d payouts %v, %d of them unanswered when the server died", *payoutRounds, n, states, unknown)
		if n == 0 || states[flow.PayoutPaid] != n {
			t.Errorf("of %d payouts the states are %v, want all of them paid", n, states)
		}
		if unknown == 0 {
			t.Error("no request was under way at any kill: the test has shown nothing")
		}
		left, err := core.Ledger().Balances(t.Context(), ledger.BalanceQuery{Account: flow.Clearing("stripe")})
		if err != nil || len(left) != 1 || left[0].Posted != sum || len(sent) != n {
			t.Errorf("the clearing account has %+v (%v), the gateway has sent %d in %d transfers", left, err, sum, len(sent))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := do(t, "verify", "--db", url); r.status != exitOK {
		t.Errorf("got %v, want a clean verify", r)
	}
}
