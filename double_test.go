package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/ledger"
)

// till is a gateway that does as it is told.
type till struct {
	mu       sync.Mutex
	status   map[string]gateway.Status       // payments
	amount   map[string]int64                // captured
	refunds  map[string]gateway.RefundStatus // by our number
	repaid   map[string]int64
	calls    []string
	silent   bool            // effects happen, answers are lost
	down     bool            // nothing happens
	before   func(do string) // runs in the middle of every call, outside the lock
	refuses  map[string]bool // calls that are refused for good
	pending  bool            // refunds are accepted and wait
	deadline map[string]time.Time
}

func newTill() *till {
	return &till{status: map[string]gateway.Status{}, amount: map[string]int64{}, refunds: map[string]gateway.RefundStatus{},
		repaid: map[string]int64{}, refuses: map[string]bool{}, deadline: map[string]time.Time{}}
}

func (g *till) Methods() []string { return []string{"page", "code"} }

func (g *till) Check(p gateway.Payment) *gateway.Unfit {
	if p.Amount > 1000 {
		return &gateway.Unfit{Field: "amount", Detail: "the till is small"}
	}
	return nil
}

var errTimeout = errors.New("timeout")

// call runs f unless the gateway is down, and may lose the answer.
func (g *till) call(do string, p gateway.Payment, f func() gateway.Answer) gateway.Answer {
	if g.before != nil {
		g.before(do)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, do+" "+p.ID)
	if g.down {
		return gateway.Answer{Outcome: gateway.Unknown, Err: errTimeout}
	}
	if g.refuses[do] {
		return gateway.Answer{Outcome: gateway.Refused, Code: "no"}
	}
	a := f()
	if g.silent {
		return gateway.Answer{Outcome: gateway.Unknown, Err: errTimeout}
	}
	return a
}

func (g *till) answer(p gateway.Payment) gateway.Answer {
	s, ok := g.status[p.ID]
	if !ok {
		return gateway.Answer{Outcome: gateway.Refused, Code: "unknown payment"}
	}
	return gateway.Answer{Outcome: gateway.Done, Status: s, Ref: "ref_" + p.ID, URL: "https://pay.test/" + p.ID,
		Amount: g.amount[p.ID], Currency: p.Currency}
}

func (g *till) Create(_ context.Context, p gateway.Payment) gateway.Answer {
	return g.call("create", p, func() gateway.Answer {
		if g.status[p.ID] == "" {
			g.status[p.ID], g.deadline[p.ID] = gateway.Open, p.ExpiresAt
		}
		return g.answer(p)
	})
}

func (g *till) Query(_ context.Context, p gateway.Payment) gateway.Answer {
	return g.call("query", p, func() gateway.Answer { return g.answer(p) })
}

func (g *till) Close(_ context.Context, p gateway.Payment) gateway.Answer {
	return g.call("close", p, func() gateway.Answer {
		if g.status[p.ID] != gateway.Paid {
			g.status[p.ID] = gateway.Closed
		}
		return g.answer(p)
	})
}

func (g *till) Refund(_ context.Context, r gateway.Refund) gateway.RefundAnswer {
	a := g.call("refund", gateway.Payment{ID: r.ID}, func() gateway.Answer {
		if g.refunds[r.ID] == "" {
			g.refunds[r.ID] = gateway.RefundDone
			if g.pending {
				g.refunds[r.ID] = gateway.RefundPending
			}
			g.repaid[r.Payment.ID] += r.Amount
		}
		return gateway.Answer{Outcome: gateway.Done}
	})
	return gateway.RefundAnswer{Outcome: a.Outcome, Status: g.refunded(r.ID), Ref: "re_" + r.ID, Code: a.Code, Err: a.Err}
}

func (g *till) refunded(id string) gateway.RefundStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refunds[id]
}

func (g *till) QueryRefund(_ context.Context, r gateway.Refund) gateway.RefundAnswer {
	a := g.call("look", gateway.Payment{ID: r.ID}, func() gateway.Answer { return gateway.Answer{Outcome: gateway.Done} })
	return gateway.RefundAnswer{Outcome: a.Outcome, Status: g.refunded(r.ID), Ref: "re_" + r.ID, Code: a.Code, Err: a.Err}
}

func (g *till) Parse(_ http.Header, body []byte, _ time.Time) (n gateway.Notification, err error) {
	if err := json.Unmarshal(body, &n); err != nil {
		return n, gateway.ErrSignatureInvalid
	}
	return n, nil
}

func (g *till) Acknowledge(w http.ResponseWriter, ok bool) {
	if !ok {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// pay is the buyer's money.
func (g *till) pay(payment string, amount int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status[payment], g.amount[payment] = gateway.Paid, amount
}

func (g *till) count(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, c := range g.calls {
		if c == call {
			n++
		}
	}
	return n
}

// bench is a store with a till and a clock that stands still. Nothing happens
// in the background: run does what is due.
type bench struct {
	*Holdfast
	t   *testing.T
	mu  sync.Mutex
	at  time.Time
	gw  *till
	url string
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	return newBenchOn(t, "sqlite:"+t.TempDir()+"/t.db", change...)
}

// newBenchOn is newBench on an empty store.
func newBenchOn(t *testing.T, url string, change ...func(*Options)) *bench {
	b := &bench{t: t, at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), gw: newTill(), url: url}
	b.Holdfast = b.open(change...)
	t.Cleanup(func() {
		rep, err := b.Verify(context.Background(), nil)
		if err != nil || !rep.OK() {
			t.Errorf("verify: %v %+v", err, rep.Problems)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	b.item("tee", 3)
	return b
}

func (b *bench) open(change ...func(*Options)) *Holdfast {
	o := Options{Gateways: map[string]gateway.Gateway{"till": b.gw}, Passive: true, Clock: b.now}
	for _, f := range change {
		f(&o)
	}
	h, err := Open(context.Background(), b.url, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) wait(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

// run does everything that is due now, until nothing is.
func (b *bench) run() {
	b.t.Helper()
	ctx := context.Background()
	for range 20 {
		before, _ := b.store.Head(ctx)
		if _, err := b.work.sweepOrders(ctx); err != nil {
			b.t.Fatal(err)
		}
		if err := b.work.sweepParked(ctx); err != nil {
			b.t.Fatal(err)
		}
		if err := b.work.dispatch(ctx); err != nil {
			b.t.Fatal(err)
		}
		b.work.tasks.Wait()
		if after, _ := b.store.Head(ctx); after == before {
			return
		}
	}
	b.t.Fatal("never came to rest")
}

func (b *bench) item(sku string, stock int64, late ...Late) {
	b.t.Helper()
	_, err := b.PutItem(context.Background(), Key{}, ItemInput{SKU: sku, Name: sku, Price: 100, Currency: "CNY", Stock: stock, Late: late})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) place(sku string, n int64) Order {
	b.t.Helper()
	a, err := b.Place(context.Background(), Key{}, OrderInput{Lines: []LineInput{{sku, n}}})
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Value
}

// start begins a payment and lets the gateway open it.
func (b *bench) start(order string) Payment {
	b.t.Helper()
	a, err := b.Pay(context.Background(), Key{}, PayInput{Order: order, Wait: time.Nanosecond})
	if err != nil {
		b.t.Fatal(err)
	}
	b.run()
	p, err := b.Payment(context.Background(), a.Value.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) notify(n gateway.Notification) {
	b.t.Helper()
	body, _ := json.Marshal(n)
	if err := b.Notify(context.Background(), "till", nil, body); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) is(order string, want State) OrderDetail {
	b.t.Helper()
	d, err := b.Detail(context.Background(), order)
	if err != nil {
		b.t.Fatal(err)
	}
	if d.State != want {
		b.t.Fatalf("the order is %s, want %s", d.State, want)
	}
	return d
}

func (b *bench) available(sku string, want int64) {
	b.t.Helper()
	s, err := b.Stock(context.Background(), sku)
	if err != nil || s.Available != want {
		b.t.Errorf("%s has %d available, want %d (%v)", sku, s.Available, want, err)
	}
}

func code(err error) string {
	var r *Rejection
	if errors.As(err, &r) {
		return r.Code
	}
	if err != nil {
		return "unknown: " + err.Error()
	}
	return ""
}

func (b *bench) events(subject string) []string {
	es, err := b.store.Events(context.Background(), ledger.EventQuery{Subject: subject})
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Type)
	}
	return slices.Clip(out)
}
