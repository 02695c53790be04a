package holdfast

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// bookkeeper is a till with statements.
type bookkeeper struct {
	*till
	lines []gateway.StatementLine // nil = there is no statement
}

func (k *bookkeeper) Zone() *time.Location { return time.FixedZone("Beijing", 8*3600) }

func (k *bookkeeper) FetchStatement(context.Context, time.Time) ([]byte, error) {
	if k.lines == nil {
		return nil, gateway.ErrNoStatement
	}
	return json.Marshal(k.lines)
}

func (k *bookkeeper) ReadStatement(file []byte) (lines []gateway.StatementLine, err error) {
	return lines, json.Unmarshal(file, &lines)
}

// ledgers is a bench whose till has statements; the day is over in Beijing.
func ledgers(t *testing.T) (*bench, *bookkeeper) {
	k := &bookkeeper{}
	b := newBench(t, func(o *Options) {
		k.till = o.Gateways["till"].(*till)
		o.Gateways = map[string]gateway.Gateway{"till": k}
	})
	return b, k
}

// sells has an order paid, at 17:00 in Beijing, and gives its line.
func (b *bench) sells(n int64) gateway.StatementLine {
	b.t.Helper()
	o := b.place("tee", n)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 100*n)
	b.notify(gateway.Notification{ID: "n" + p.ID, Payment: p.ID, Status: gateway.Paid, Amount: 100 * n, Currency: "CNY"})
	b.is(o.ID, flow.Paid)
	return gateway.StatementLine{ID: "L" + p.ID, Kind: gateway.PaymentLine, Number: p.ID, Ref: "ref_" + p.ID, Amount: 100 * n, Fee: n, Currency: "CNY", At: b.now()}
}

func (b *bench) reconcile(want ...string) Reconciliation {
	b.t.Helper()
	if b.now().Day() == 1 {
		b.wait(24 * time.Hour)
	}
	r, err := b.Reconcile(context.Background(), ReconcileInput{Day: "2026-03-01"}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, d := range r.Differences {
		if d.Detail == "" || d.Todo == "" {
			b.t.Errorf("%+v does not say what to do", d)
		}
		got = append(got, d.Kind+" "+d.About)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("got differences %q, want %q", got, want)
	}
	for _, s := range r.Sums {
		if len(want) == 0 && s.Here != s.There {
			b.t.Errorf("no differences, and %d here is not %d there", s.Here, s.There)
		}
	}
	return r
}

// clearing is what the books say is at the gateway.
func (b *bench) clearing() int64 {
	bs, err := b.store.Balances(context.Background(), ledger.BalanceQuery{Account: flow.Clearing("till"), Asset: "CNY"})
	if err != nil || len(bs) != 1 {
		b.t.Fatalf("got %v, %v", bs, err)
	}
	return -bs[0].Posted
}

// The clearing account equals the statement to the cent: payments, a refund,
// fees and what was paid out.
func TestAStatementThatAgreesIsBookedOnce(t *testing.T) {
	b, k := ledgers(t)
	one, two := b.sells(1), b.sells(2)
	p, _ := b.Payment(ctx, two.Number)
	f, err := b.Refund(ctx, Key{}, RefundInput{Order: p.Order, Amount: 50})
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	refund := gateway.StatementLine{ID: "LR", Kind: gateway.RefundLine, Ref: "re_" + f.Value.ID, Number: f.Value.ID, Amount: -50, Currency: "CNY", At: b.now()}
	settled := gateway.StatementLine{ID: "LS", Kind: gateway.SettledLine, Amount: -200, Currency: "CNY", At: b.now()}
	k.lines = []gateway.StatementLine{one, two, refund, settled}
	if r := b.reconcile(); r.Matched != 4 || r.Booked != 4 || r.Sums[0].There != 100+200-50-200-3 {
		t.Errorf("got %+v", r)
	}
	if got := b.clearing(); got != 47 {
		t.Errorf("the clearing account has %d, want what the statement leaves, 47", got)
	}
	before, _ := b.store.Head(ctx)
	if r := b.reconcile(); r.Matched != 4 || r.Booked != 0 {
		t.Errorf("again: got %+v, want nothing new", r)
	}
	if after, _ := b.store.Head(ctx); after != before {
		t.Error("to reconcile again has changed the books")
	}
}

func TestEveryKindOfDifferenceIsListedAndNothingOfItIsBooked(t *testing.T) {
	b, k := ledgers(t)
	line := b.sells(1)
	before := b.clearing()
	for _, c := range []struct {
		name  string
		lines []gateway.StatementLine
		want  []string
	}{
		{"not on it", []gateway.StatementLine{}, []string{"missing_there payment"}},
		{"another amount", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Amount = 99 })}, []string{"amount payment"}},
		{"another currency", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Currency = "USD" })}, []string{"amount payment"}},
		{"somebody else's", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Number = "elsep01" })},
			[]string{"missing_here payment", "missing_there payment"}},
		{"without a number", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Number, l.Ref = "", "" })},
			[]string{"missing_here payment", "missing_there payment"}},
		{"a refund that nobody asked for", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Kind, l.Amount = gateway.RefundLine, -100 })},
			[]string{"missing_here refund", "missing_there payment"}},
		{"a kind that is not booked", []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Kind = gateway.OtherLine })},
			[]string{"unknown other", "missing_there payment"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t, k.lines = t, c.lines
			b.reconcile(c.want...)
			if got := b.clearing(); got != before {
				t.Errorf("the clearing account went from %d to %d", before, got)
			}
		})
	}
	b.t = t
	k.lines = []gateway.StatementLine{line}
	b.reconcile() // once it is right, it is booked
	k.lines = []gateway.StatementLine{line, with(line, func(l *gateway.StatementLine) { l.ID = "twice" })}
	b.reconcile("doubled payment")
	k.lines = []gateway.StatementLine{with(line, func(l *gateway.StatementLine) { l.Fee = 2 })}
	b.reconcile("fee payment")
	if got := b.clearing(); got != before-1 {
		t.Errorf("the clearing account has %d, want %d less the fee of the first reading", got, before)
	}
}

func with(l gateway.StatementLine, change func(*gateway.StatementLine)) gateway.StatementLine {
	change(&l)
	return l
}

// The gateway took the money and its notification was lost: the statement says
// so, and after a look at the gateway the books agree.
func TestMoneyThatWasNeverHeardOfIsOnTheStatement(t *testing.T) {
	b, k := ledgers(t)
	o := b.place("tee", 1)
	p := b.start(o.ID)
	b.gw.pay(p.ID, 100)
	k.lines = []gateway.StatementLine{{ID: "L", Kind: gateway.PaymentLine, Ref: "ref_" + p.ID, Amount: 100, Currency: "CNY", At: b.now()}}
	b.wait(24 * time.Hour)
	b.reconcile("state payment")
	if _, err := b.Refresh(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	b.reconcile()
}

// What is booked a few minutes before midnight may be on the next day's
// statement: it is missed on that one, and not on both.
func TestWhatIsBookedBeforeMidnightIsMissedOnTheNextDay(t *testing.T) {
	b, k := ledgers(t)
	b.wait(6*time.Hour + 50*time.Minute) // 23:50 in Beijing
	b.sells(1)
	k.lines = []gateway.StatementLine{}
	b.wait(48 * time.Hour)
	b.reconcile()
	r, err := b.Reconcile(ctx, ReconcileInput{Day: "2026-03-02"}, nil)
	if err != nil || len(r.Differences) != 1 || r.Differences[0].Kind != MissingThere {
		t.Errorf("got %+v, %v, want it missed on the second day", r.Differences, err)
	}
}

// A refund that came back has two lines, perhaps on two statements.
func TestARefundThatCameBackIsTwoLines(t *testing.T) {
	b, k := ledgers(t)
	line := b.sells(1)
	p, _ := b.Payment(ctx, line.Number)
	f, err := b.Refund(ctx, Key{}, RefundInput{Order: p.Order})
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.notify(gateway.Notification{ID: "broke", Refund: f.Value.ID, Refunded: gateway.RefundFailed, Amount: 100, Currency: "CNY"})
	b.is(p.Order, flow.Paid)
	went := gateway.StatementLine{ID: "LR", Kind: gateway.RefundLine, Number: f.Value.ID, Amount: -100, Currency: "CNY", At: b.now()}
	came := gateway.StatementLine{ID: "LB", Kind: gateway.RefundBackLine, Number: f.Value.ID, Amount: 100, Currency: "CNY", At: b.now()}
	k.lines = []gateway.StatementLine{line, went}
	b.reconcile("missing_there refund_returned")
	k.lines = append(k.lines, came)
	b.reconcile()
}

func TestWhatIsNoStatementOfThatDayChangesNothing(t *testing.T) {
	b, k := ledgers(t)
	line := b.sells(1)
	for _, c := range []struct {
		name, day, file, want string
	}{
		{"no day", "yesterday", "[]", CodeInvalidField},
		{"a day that is not over", "2026-03-01", "[]", CodeInvalidField},
		{"a day long ago", "2024-03-01", "[]", CodeInvalidField},
		{"no statement", "2026-02-27", "", CodeNotFound},
		{"not of the form", "2026-02-27", "no,form", CodeInvalidField},
		{"another day's", "2026-02-27", string(must(json.Marshal([]gateway.StatementLine{line}))), CodeInvalidField},
	} {
		k.lines = nil
		in := ReconcileInput{Day: c.day}
		if c.file != "" {
			in.File = []byte(c.file)
		}
		before, _ := b.store.Head(ctx)
		if _, err := b.Reconcile(ctx, in, nil); code(err) != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if after, _ := b.store.Head(ctx); after != before {
			t.Errorf("%s changed something", c.name)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
