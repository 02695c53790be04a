package holdfast

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
)

// disburser is a sender with statements.
type disburser struct {
	*sender
	gateway.Statements
}

// newDisburseBench has an account of 100 and a gateway out with statements.
func newDisburseBench(t *testing.T) (*payBench, *bookkeeper) {
	k := &bookkeeper{}
	b := newPayBench(t, func(o *Options) { o.Gateways["out"] = disburser{o.Gateways["out"].(*sender), k} })
	b.fund("ann", 100)
	return b, k
}

// settleDay reconciles out for a day of March 2026, once it is over.
func (b *payBench) settleDay(day string, want ...string) Reconciliation {
	b.t.Helper()
	r, err := b.Reconcile(ctx, ReconcileInput{Gateway: "out", Day: day}, nil)
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
		b.t.Errorf("%s: got differences %q, want %q", day, got, want)
	}
	return r
}

func lineOf(p Payout, kind gateway.StatementKind, at time.Time) gateway.StatementLine {
	l := gateway.StatementLine{ID: string(kind) + p.ID, Kind: kind, Number: p.ID, Ref: "ref", Amount: -p.Amount, Currency: p.Currency, At: at}
	if kind == gateway.PayoutBackLine {
		l.Amount = p.Amount
	}
	return l
}

func TestAPaidPayoutAndItsReturnAreTwoLines(t *testing.T) {
	b, k := newDisburseBench(t)
	b.out.draw = func(what string, _ gateway.Payout) string {
		return map[string]string{"payout": "paid_returned"}[what]
	}
	p := b.sent("ann", 60)
	b.run()
	first := lineOf(p, gateway.PayoutLine, b.now())
	first.Fee = 1
	for range 3 {
		b.wait(24 * time.Hour)
		b.run()
	}
	b.payoutIs(p.ID, flow.PayoutReturned)
	back := lineOf(p, gateway.PayoutBackLine, b.now())
	b.wait(24 * time.Hour)

	k.lines = []gateway.StatementLine{}
	b.settleDay("2026-03-01", "missing_there payout")
	k.lines = []gateway.StatementLine{first}
	if r := b.settleDay("2026-03-01"); r.Booked != 1 || r.Sums[0].Here != -61 || r.Sums[0].There != -61 {
		t.Errorf("got %+v, want one line booked, of 61", r)
	}
	returned := back.At.In(k.Zone()).Format(time.DateOnly)
	k.lines = []gateway.StatementLine{}
	b.settleDay(returned, "missing_there payout_returned")
	k.lines = []gateway.StatementLine{with(back, func(l *gateway.StatementLine) { l.Amount-- })}
	b.settleDay(returned, "amount payout_returned")
	k.lines = []gateway.StatementLine{back}
	b.settleDay(returned)
	if r := b.settleDay(returned); r.Booked != 0 {
		t.Errorf("it was booked again: %+v", r)
	}
}

// A gateway writes a payout down when it takes it on, days before it is paid.
func TestAPayoutUnderWayIsOnTheStatementOfItsDay(t *testing.T) {
	b, k := newDisburseBench(t)
	b.out.draw = func(what string, _ gateway.Payout) string {
		return map[string]string{"payout": "pending_paid"}[what]
	}
	p := b.sent("ann", 60)
	b.run()
	b.out.mu.Lock()
	b.out.sent[p.ID].settles = b.now().Add(30 * time.Hour)
	b.out.mu.Unlock()
	k.lines = []gateway.StatementLine{lineOf(p, gateway.PayoutLine, b.now())}
	b.wait(24 * time.Hour)
	b.settleDay("2026-03-01")
	b.wait(24 * time.Hour)
	b.run()
	b.payoutIs(p.ID, flow.PayoutPaid)
	b.wait(24 * time.Hour)
	k.lines = []gateway.StatementLine{}
	b.settleDay("2026-03-03") // its posting is of that day, its line is not
}

func TestTheLinesOfAFailedPayoutAreRightTogether(t *testing.T) {
	b, k := newDisburseBench(t)
	b.out.draw = func(what string, _ gateway.Payout) string {
		return map[string]string{"payout": "pending_failed"}[what]
	}
	p := b.sent("ann", 60)
	b.run()
	went, came := lineOf(p, gateway.PayoutLine, b.now()), lineOf(p, gateway.PayoutBackLine, b.now())
	for range 10 {
		b.wait(time.Hour / 2)
		b.run()
	}
	b.payoutIs(p.ID, flow.PayoutFailed)
	b.wait(24 * time.Hour)
	k.lines = []gateway.StatementLine{went}
	b.settleDay("2026-03-01", "state payout") // the money has left, and is free here
	k.lines = []gateway.StatementLine{went, came}
	if r := b.settleDay("2026-03-01"); r.Sums[0].Here != 0 || r.Sums[0].There != 0 {
		t.Errorf("got %+v, want nothing in the end", r.Sums)
	}
	k.lines = []gateway.StatementLine{went} // on two days
	b.settleDay("2026-03-01")
}

func TestAPayoutLineThatIsNotOursIsNotBooked(t *testing.T) {
	b, k := newDisburseBench(t)
	p := b.sent("ann", 60)
	b.run()
	good := lineOf(p, gateway.PayoutLine, b.now())
	b.wait(24 * time.Hour)
	for want, change := range map[string]func(*gateway.StatementLine){
		"missing_here payout":        func(l *gateway.StatementLine) { l.Number = "nobody" },
		"amount payout":              func(l *gateway.StatementLine) { l.Amount = -61 },
		"state payout_returned":      func(l *gateway.StatementLine) { l.Kind, l.Amount = gateway.PayoutBackLine, 60 },
		"missing_here payout (none)": func(l *gateway.StatementLine) { l.Number = "" },
	} {
		k.lines = []gateway.StatementLine{with(good, change)}
		r, err := b.Reconcile(ctx, ReconcileInput{Gateway: "out", Day: "2026-03-01"}, nil)
		if err != nil || r.Booked != 0 || len(r.Differences) == 0 || r.Differences[0].Kind+" "+r.Differences[0].About != want[:len(r.Differences[0].Kind+r.Differences[0].About)+1] {
			t.Errorf("%s: got %+v, %v", want, r, err)
		}
	}
}
