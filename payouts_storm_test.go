package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/internal/sqlstore/sqlstoretest"
	"github.com/holdfast-pay/holdfast/ledger"
)

var payoutSeeds = flag.Int("payout.seeds", 1, "seeds of TestMoneyLeavesOnceForWhatIsPaidAndNeverForWhatIsNot")

// A gateway that loses answers before and after the effect, answers late, forgets
// numbers, refuses, and takes back what it had paid, and a store that often does
// not say whether it wrote: whatever they do, each payout ends, and what we say
// of it is what happened to the money.
func TestMoneyLeavesOnceForWhatIsPaidAndNeverForWhatIsNot(t *testing.T) {
	const payouts, amount = 100, 7
	for seed := range *payoutSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newPayBench(t)
			b.out.luck(uint64(seed))
			b.fund("hot", payouts*amount)
			var all []Payout
			for i := range payouts {
				all = append(all, b.sent("hot", amount, func(in *PayoutInput) { in.Description = fmt.Sprint("habit ", i) }))
			}
			b.applier = &shaky{Applier: b.applier, luck: rand.New(rand.NewPCG(uint64(seed), 1))}
			for _, d := range stages {
				b.run()
				b.wait(d)
			}
			b.run()
			states, net := map[State]int{}, int64(0)
			for _, p := range all {
				p, err := b.Payout(ctx, p.ID)
				if err != nil {
					t.Fatal(err)
				}
				states[p.State]++
				left, out := b.out.net(p.ID)
				net += left
				want := map[State][2]int64{flow.PayoutPaid: {amount, 1}, flow.PayoutReturned: {0, 1}, flow.PayoutFailed: {0, 0}}
				if w, final := want[p.State]; !final || left != w[0] || int64(out) != w[1] {
					t.Errorf("seed %d, %s: it is %s, and %d left in %d payments", seed, p.Description, p.State, left, out)
				}
			}
			if len(states) != 3 {
				t.Errorf("the states are %v: the test has not shown all three ends", states)
			}
			b.has("hot", payouts*amount-net, 0, payouts*amount-net)
		})
	}
}

// shaky is an Applier that says of one entry in ten that it does not know, and
// wrote every other one of them.
type shaky struct {
	ledger.Applier
	mu   sync.Mutex
	luck *rand.Rand
}

func (s *shaky) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	s.mu.Lock()
	n := s.luck.IntN(20)
	s.mu.Unlock()
	if n == 0 {
		return nil, errLost
	}
	res, err := s.Applier.Apply(ctx, entries...)
	if n == 1 {
		return nil, errLost
	}
	return res, err
}

// stages are the steps of time of a story of payouts: quick at first, then days.
var stages = func() (out []time.Duration) {
	for _, s := range []struct {
		n int
		d time.Duration
	}{{5, time.Second}, {8, time.Minute}, {4, 10 * time.Minute}, {28, time.Hour}, {14, 24 * time.Hour}} {
		for range s.n {
			out = append(out, s.d)
		}
	}
	return out
}()

// Transfers, holds, commits, voids and payouts all at once never make or lose
// money, and no account falls below zero.
func TestAThousandMixedOperationsConserveMoney(t *testing.T) {
	const accounts, each, workers, operations = 5, 1000, 50, 1000
	b := newPayBench(t)
	for i := range accounts {
		b.fund(fmt.Sprint("a", i), each, Terms{Currency: "CNY", Ceiling: 2 * each, PerDay: each / 2})
	}
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			luck := rand.New(rand.NewPCG(uint64(w), 0))
			for range operations / workers {
				if err := b.anything(luck, accounts); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	b.run()
	sum := int64(0)
	for i := range accounts {
		a, err := b.Account(ctx, fmt.Sprint("a", i))
		if err != nil {
			t.Fatal(err)
		}
		m := a.Balances[0]
		if m.Available < 0 || m.Posted > 2*each {
			t.Errorf("%s has %+v, outside of its limits", a.ID, m)
		}
		sum += m.Posted
	}
	out := int64(0)
	for id := range b.out.sent {
		left, _ := b.out.net(id)
		out += left
	}
	fees, err := b.store.Balances(ctx, ledger.BalanceQuery{Account: flow.PayoutFees})
	if err != nil || len(fees) != 1 {
		t.Fatalf("got fees %+v %v", fees, err)
	}
	if sum+out+fees[0].Posted != accounts*each || out == 0 {
		t.Errorf("%d are here, %d have left and %d are fees, want %d together", sum, out, fees[0].Posted, accounts*each)
	}
}

// anything does one operation, which may be refused.
func (b *payBench) anything(luck *rand.Rand, accounts int) error {
	from := luck.IntN(accounts)
	in := TransferInput{From: fmt.Sprint("a", from), To: fmt.Sprint("a", (from+1+luck.IntN(accounts-1))%accounts),
		Currency: "CNY", Amount: 1 + luck.Int64N(200)}
	var err error
	switch luck.IntN(4) {
	case 0:
		_, err = b.Transfer(ctx, Key{}, in)
	case 1:
		_, err = b.RequestPayout(ctx, Key{}, PayoutInput{Account: in.From, Currency: "CNY", Amount: in.Amount, Fee: 1, Gateway: "out", Destination: "x"})
	default:
		var h Answer[WalletHold]
		if h, err = b.Hold(ctx, Key{}, HoldInput{TransferInput: in}); err != nil {
			break
		}
		switch luck.IntN(3) {
		case 0:
			_, err = b.VoidHold(ctx, Key{}, h.Value.ID)
		case 1:
			_, err = b.CommitHold(ctx, Key{}, h.Value.ID, 0, false)
		default:
			if _, err = b.CommitHold(ctx, Key{}, h.Value.ID, (in.Amount+1)/2, true); err == nil && in.Amount > 1 {
				_, err = b.VoidHold(ctx, Key{}, h.Value.ID)
			}
		}
	}
	var refused *Rejection
	if errors.As(err, &refused) && refused.Code != CodeInvalidField {
		return nil
	}
	return err
}

const (
	rivalStore = "HOLDFAST_TEST_RIVAL_STORE" // makes the test binary a process that asks for payouts
	rivalCount = 32
)

// TestRival is no test: it is the other process of the one below.
func TestRival(t *testing.T) {
	url := os.Getenv(rivalStore)
	if url == "" {
		t.Skip("this is the other process of TestTwoProcessesNeverOverdrawTogether")
	}
	h, err := Open(ctx, url, Options{Passive: true, Gateways: map[string]gateway.Gateway{"out": newSender(time.Now)}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(ctx)
	codes, mu, wait := map[string]int{}, sync.Mutex{}, sync.WaitGroup{}
	fmt.Println("ready")
	if _, err := fmt.Scanln(); err != nil {
		t.Fatal(err)
	}
	for range rivalCount {
		wait.Go(func() {
			_, err := h.RequestPayout(ctx, Key{}, PayoutInput{Account: "hot", Currency: "CNY", Amount: 60, Destination: "x"})
			mu.Lock()
			defer mu.Unlock()
			codes[code(err)]++
		})
	}
	wait.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(codes); err != nil {
		t.Fatal(err)
	}
}

// rival is a running TestRival: it waits for begin to be written to.
type rival struct {
	cmd   *exec.Cmd
	begin interface{ Write([]byte) (int, error) }
	said  *json.Decoder
}

func startRival(t *testing.T, url string) rival {
	t.Helper()
	r := rival{cmd: exec.Command(os.Args[0], "-test.run=^TestRival$")}
	r.cmd.Env = append(os.Environ(), rivalStore+"="+url)
	r.cmd.Stderr = os.Stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // it may be gone
	var ready string
	if _, err := fmt.Fscanln(out, &ready); err != nil || ready != "ready" {
		t.Fatalf("the other process said %q, %v", ready, err)
	}
	r.begin, r.said = in, json.NewDecoder(out)
	return r
}

func TestTwoProcessesNeverOverdrawTogether(t *testing.T) {
	for name, empty := range map[string]func(testing.TB) string{
		"SQLite":   func(t testing.TB) string { return "sqlite:" + t.(*testing.T).TempDir() + "/t.db" },
		"MySQL":    sqlstoretest.MySQL,
		"Postgres": sqlstoretest.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			url := empty(t)
			b := &payBench{bench: &bench{t: t, at: time.Now(), gw: newTill(), url: url}}
			b.Holdfast = b.open()
			defer b.Close(ctx)
			b.fund("hot", 100)
			rivals := []rival{startRival(t, url), startRival(t, url)}
			for _, r := range rivals {
				if _, err := r.begin.Write([]byte("\n")); err != nil {
					t.Fatal(err)
				}
			}
			codes := map[string]int{}
			for _, r := range rivals {
				got := map[string]int{}
				if err := r.said.Decode(&got); err != nil {
					t.Fatal(err)
				}
				_ = r.cmd.Wait() // what it said is what counts
				for code, n := range got {
					codes[code] += n
				}
			}
			if codes[""] != 1 || codes[CodeInsufficientFunds] != 2*rivalCount-1 {
				t.Errorf("got %v, want 1 held and %d refused", codes, 2*rivalCount-1)
			}
			b.has("hot", 100, 60, 40)
			if rep, err := b.Verify(ctx, nil); err != nil || !rep.OK() {
				t.Errorf("verify: %v %+v", err, rep.Problems)
			}
		})
	}
}
