package flow

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/states.md anew")

var (
	orderStates   = []State{Held, Paying, Closing, Expired, Cancelled, Paid, Fulfilled, PartlyRefunded, Refunding, Refunded}
	paymentStates = []State{Requested, Waiting, Open, AttemptClosed, Declined, AttemptPaid}
	refundStates  = []State{RefundRequested, RefundAccepted, RefundDone, RefundRefused, RefundFailed}

	payoutStates = []State{PayoutRequested, PayoutPending, PayoutHeld, PayoutSubmitted, PayoutUnknown, PayoutPaid, PayoutFailed, PayoutReturned, PayoutCancelled}

	orderEvents   = []On{Pay, Cancel, Due, GiveUp, money, noMoney, Fulfil, Repaid, moneyBack, moneyStays, moneyAgain}
	paymentEvents = []On{Opened, Refused, MoneyCame, ClosedThere, start, close_}
	refundEvents  = []On{RefundTaken, RefundMade, RefundDenied, RefundBroke}
	payoutEvents  = []On{Request, Approve, Cancel, Send, PayoutTaken, PayoutMade, PayoutBroke, PayoutBack, NotThere, Recalled, OtherPayout, NoAnswer}
)

const statesFile = "../../docs/states.md"

func TestStatesDocumentIsFresh(t *testing.T) {
	got := statesDocument()
	if *rewrite {
		if err := os.WriteFile(statesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/states.md is stale: go test ./internal/flow -run States -rewrite")
	}
}

func statesDocument() string {
	var b strings.Builder
	b.WriteString("# What an order, a payment, a refund and a payout do next\n\n")
	b.WriteString("Generated from the tables in internal/flow by `go test ./internal/flow -run States -rewrite`. Do not edit.\n\n")
	b.WriteString("A cell lists where an event leads from a state, and what is done. `refused` = the command has no effect;\n")
	b.WriteString("`-` = the fact changes nothing. Where a cell has several lines, the first whose condition holds is taken.\n")
	machine(&b, "Order", orderRows, orderStates, orderEvents)
	machine(&b, "Payment", paymentRows, paymentStates, paymentEvents)
	machine(&b, "Refund", refundRows, refundStates, refundEvents)
	machine(&b, "Payout", payoutRows, payoutStates, payoutEvents)
	return b.String()
}

func machine(b *strings.Builder, name string, rows []row, states []State, events []On) {
	fmt.Fprintf(b, "\n## %s\n\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", name, states[0])
	for _, r := range rows {
		if r.to != r.from {
			fmt.Fprintf(b, "    %s --> %s: %s%s\n", r.from, r.to, r.on, when(r, " if "))
		}
	}
	b.WriteString("```\n")
	for _, s := range states {
		fmt.Fprintf(b, "\n**%s**\n\n| event | leads to | does |\n|---|---|---|\n", s)
		for _, e := range events {
			cells := cellsOf(rows, s, e)
			for _, r := range cells {
				fmt.Fprintf(b, "| %s | %s%s | %s |\n", e, r.to, when(r, ", if "), r.do.says)
			}
			if len(cells) == 0 || cells[len(cells)-1].if_ != nil {
				fmt.Fprintf(b, "| %s | %s | |\n", e, map[bool]string{true: "refused", false: "-"}[commands[e]])
			}
		}
	}
}

func when(r row, prefix string) string {
	if r.if_ == nil {
		return ""
	}
	return prefix + r.if_.says
}

func cellsOf(rows []row, s State, on On) []row {
	var out []row
	for _, r := range rows {
		if r.from == s && r.on == on {
			out = append(out, r)
		}
	}
	return out
}

// Every row names a state and an event of its machine, and none stands behind
// one that always fits.
func TestTablesAreWellFormed(t *testing.T) {
	for _, m := range []struct {
		name   string
		rows   []row
		states []State
		events []On
	}{{"order", orderRows, orderStates, orderEvents}, {"payment", paymentRows, paymentStates, paymentEvents}, {"refund", refundRows, refundStates, refundEvents}, {"payout", payoutRows, payoutStates, payoutEvents}} {
		always := map[string]bool{}
		for _, r := range m.rows {
			if !slices.Contains(m.states, r.from) || !slices.Contains(m.states, r.to) || !slices.Contains(m.events, r.on) {
				t.Errorf("%s: %s --%s--> %s: unknown state or event", m.name, r.from, r.on, r.to)
			}
			cell := string(r.from) + "/" + string(r.on)
			if always[cell] {
				t.Errorf("%s: a row of %s can never be reached", m.name, cell)
			}
			always[cell] = r.if_ == nil
		}
	}
}

// Every state answers every event that can come from outside: with a change,
// with a refusal if it is a command, or with nothing if it is a fact.
func TestEveryStateAnswersEveryEvent(t *testing.T) {
	for _, s := range orderStates {
		for _, ps := range paymentStates {
			for _, rs := range refundStates {
				for _, on := range []On{Pay, Cancel, Fulfil, Repaid, Due, GiveUp, Opened, Refused, MoneyCame, ClosedThere, RefundTaken, RefundMade, RefundDenied, RefundBroke} {
					c := caseIn(s, ps, rs)
					id := c.Payments[0].ID
					if slices.Contains(refundEvents, on) {
						id = c.Refunds[0].ID
					}
					before := fmt.Sprintf("%+v", c)
					ch, refusal := Step(c, Event{On: on, ID: id, Amount: 100, Currency: "CNY", Gateway: "stripe", Method: "checkout", PayFor: 1000000}, 5000)
					if after := fmt.Sprintf("%+v", c); after != before {
						t.Fatalf("%s/%s/%s %s: Step changed its argument", s, ps, rs, on)
					}
					if refusal != nil && !commands[on] {
						t.Errorf("%s/%s/%s: the fact %s was refused: %v", s, ps, rs, on, refusal)
					}
					if refusal != nil && !ch.Empty() {
						t.Errorf("%s/%s/%s: %s was refused and changed something", s, ps, rs, on)
					}
					if refusal == nil && !ch.Empty() && ch.Case.Order.Version != c.Order.Version+1 {
						t.Errorf("%s/%s/%s: %s changed something and not the order's version", s, ps, rs, on)
					}
					if refusal == nil && ch.Empty() && len(ch.Ops)+len(ch.Events) > 0 {
						t.Errorf("%s/%s/%s: %s has ops or events and no changed document", s, ps, rs, on)
					}
				}
			}
		}
	}
}

// caseIn is an order of 100 with one payment and one refund of 40.
func caseIn(s, payment, refund State) Case {
	o := Order{ID: "o", Version: 3, State: s, Currency: "CNY", Total: 100, Attempts: 1, Refunds: 1, Payment: "op01",
		Lines: []Line{{SKU: "tee", Quantity: 1, Price: 100, Late: []Late{Retake, Repay}}}, CreatedAt: 1000, ExpiresAt: 2000, CapAt: 9000}
	switch s {
	case Paid, Fulfilled, PartlyRefunded, Refunded:
		o.Paid, o.PaidAt, o.Refunding, o.Refunded = 100, 1500, 40, 40
	}
	return Case{
		Order:    o,
		Payments: []Payment{{ID: "op01", Order: "o", Version: 1, State: payment, Gateway: "stripe", Method: "checkout", Amount: 100, Currency: "CNY"}},
		Refunds:  []Refund{{ID: "or01", Order: "o", Version: 1, Payment: "op01", State: refund, Amount: 40, Currency: "CNY"}},
	}
}
