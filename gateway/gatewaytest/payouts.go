package gatewaytest

import (
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
)

const (
	// Pending: a payout can be under way for a while after it was taken on.
	Pending Ability = "pending"
	// Return: money can come back after it was paid.
	Return Ability = "return"
	// Recall: a payout that is under way can be taken back.
	Recall Ability = "recall"
	// Notices: what becomes of a payout is notified.
	Notices Ability = "notices"
)

// LateBy is when a call arrives that PayoutHarness.Late has delayed.
const LateBy = 10 * time.Minute

// PayoutHarness is one adapter that pays out, the simulator it talks to, and a
// clock that both read. Everything is new for each case, and the simulator has
// money enough for ten payouts of Amount.
type PayoutHarness struct {
	Gateway  gateway.Gateway // a gateway.Payer, too
	Stranger gateway.Gateway // the same, trusting other secrets than the simulator's
	Wire     *Wire           // what Gateway's requests go through; it knows CallPayout, CallQueryPayout and CallRecall

	Destination string
	Currency    string
	Amount      int64            // minor units, at least 100
	Unfit       []gateway.Payout // that CheckPayout has to find fault with, as changes to a payout: zero fields stay as they are

	Now     func() time.Time
	Advance func(time.Duration)

	// Short leaves the simulator without money.
	Short func()
	// Late has the answer of the next payout lost, and the call arrive LateBy later.
	Late func()
	// Books is what the gateway itself has written down under our number.
	Books func(gateway.Payout) PayoutBooks

	// Pay and Fail are what becomes of a payout that is under way (Pending); Pay is
	// also what makes it paid where Pending is lacking, and then may be nil.
	Pay, Fail func(gateway.Payout) error
	// Bounce brings back the money of a payout that was paid (Return).
	Bounce func(gateway.Payout) error
	// Notify makes the gateway send what is due now, answers each with
	// Acknowledge(ok) of Gateway, and returns them in their order (Notices).
	Notify func(ok bool) []Delivery

	// Lacks gives the reason for every ability that the gateway has not.
	Lacks map[Ability]string
}

// PayoutBooks is the gateway's side of one payout.
type PayoutBooks struct {
	Taken int   // how often it was taken on under our number
	Out   int64 // minor units that are under way, or have arrived, and have not come back
}

type payoutCase struct {
	claim string
	needs Ability
	run   func(*testing.T, PayoutHarness)
}

// RunPayouts holds the payer that open makes to the contract.
func RunPayouts(t *testing.T, open func(t *testing.T) PayoutHarness) {
	t.Helper()
	for _, cases := range [][]payoutCase{payouts, payoutEnds, payoutNotices} {
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

func (h PayoutHarness) able(t *testing.T, a Ability) bool {
	t.Helper()
	_, recalls := h.Gateway.(gateway.Recaller)
	has := map[Ability]bool{
		Pending: h.Pay != nil && h.Fail != nil,
		Return:  h.Bounce != nil,
		Recall:  recalls && h.Lacks[Recall] == "",
		Notices: h.Notify != nil,
	}[a]
	if has == (h.Lacks[a] != "") {
		t.Fatalf("ability %q: given %v, lacking because %q", a, has, h.Lacks[a])
	}
	return has
}

var payouts = []payoutCase{
	{"APayoutIsTakenOnOnce", "", payOnce},
	{"RepeatingAPayoutSendsNothingTwice", "", payTwice},
	{"ALostAnswerIsFoundOutByItsNumber", "", payLost},
	{"WhatIsSentAgainAfterALostAnswerIsTheSamePayout", "", payLostAndAgain},
	{"ACallThatNeverArrivedIsUnknownAndThenNotThere", "", payUnreachable},
	{"ACallThatArrivesLateIsOnePayout", "", payLate},
	{"ACallThatIsOvertakenByItsRepetitionIsOnePayout", "", payOvertaken},
	{"RepeatingAPayoutAfterTwoDaysSendsNothingTwice", "", payAfterTwoDays},
	{"AnUnknownNumberIsRefusedByAQuery", "", queryNeverSent},
	{"ABalanceThatIsShortIsARefusalWithoutEffect", "", payShort},
	{"AnyOtherFailureOfAPayoutIsUnknown", "", payFailures},
	{"WhatCanBeToldWithoutACallIsUnfit", "", payUnfit},
	{"TwoNumbersAreTwoPayouts", "", payTwoNumbers},
}

// payout is a new one, as it would be stored now.
func (h PayoutHarness) payout() gateway.Payout {
	return gateway.Payout{
		ID: "out0001", Destination: h.Destination, Amount: h.Amount, Currency: h.Currency,
		Description: "March 三月", CreatedAt: h.Now(),
	}
}

func (h PayoutHarness) payer() gateway.Payer { return h.Gateway.(gateway.Payer) }

// sent is a payout that was taken on, with its Ref.
func (h PayoutHarness) sent(t *testing.T) gateway.Payout {
	t.Helper()
	p := h.payout()
	p.Ref = h.send(t, p).Ref
	return p
}

// paid is a payout that has arrived.
func (h PayoutHarness) paid(t *testing.T) gateway.Payout {
	t.Helper()
	p := h.sent(t)
	if h.Pay != nil {
		if err := h.Pay(p); err != nil {
			t.Fatalf("pay %s: %v", p.ID, err)
		}
	}
	h.wantPayout(t, p, gateway.PayoutPaid)
	return p
}

func (h PayoutHarness) send(t *testing.T, p gateway.Payout) gateway.PayoutAnswer {
	t.Helper()
	a := h.payer().Payout(t.Context(), p)
	taken := a.Outcome == gateway.Accepted ||
		a.Outcome == gateway.Done && (a.Status == gateway.PayoutPaid || a.Status == gateway.PayoutPending)
	if !taken {
		t.Fatalf("payout %s: got %s %s (%s, %v), want it taken on", p.ID, a.Outcome, a.Status, a.Code, a.Err)
	}
	return a
}

func payOnce(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
	a := h.payer().QueryPayout(t.Context(), p)
	if a.Outcome != gateway.Done || a.Ref == "" || (p.Ref != "" && a.Ref != p.Ref) {
		t.Errorf("query: got %s of %q (%v), want it done, of %q", a.Outcome, a.Ref, a.Err, p.Ref)
	}
}

func payTwice(t *testing.T, h PayoutHarness) {
	p := h.payout()
	first := h.send(t, p)
	if again := h.send(t, p); again.Ref != first.Ref {
		t.Errorf("ref: got %q, want %q", again.Ref, first.Ref)
	}
	p.Ref = first.Ref
	h.send(t, p)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

// lose sends a payout through a fault.
func (h PayoutHarness) lose(t *testing.T, f Fault) gateway.Payout {
	t.Helper()
	p := h.payout()
	h.Wire.Once(CallPayout, f)
	wantPayoutOutcome(t, "payout", h.payer().Payout(t.Context(), p), gateway.Unknown)
	if h.Wire.Pending(CallPayout) {
		t.Fatal("the adapter made no call that the wire knows as payout")
	}
	return p
}

func payLost(t *testing.T, h PayoutHarness) {
	p := h.lose(t, Lost)
	if a := h.payer().QueryPayout(t.Context(), p); a.Outcome != gateway.Done || a.Ref == "" {
		t.Errorf("query: got %s (%s, %v), want what became of it", a.Outcome, a.Code, a.Err)
	}
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func payLostAndAgain(t *testing.T, h PayoutHarness) {
	p := h.lose(t, Lost)
	h.Advance(22 * time.Hour)
	h.send(t, p)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func payUnreachable(t *testing.T, h PayoutHarness) {
	p := h.lose(t, Unreachable)
	h.wantPayoutBooks(t, p, PayoutBooks{})
	wantPayoutOutcome(t, "query", h.payer().QueryPayout(t.Context(), p), gateway.Refused)
	h.send(t, p)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

// late is a payout whose call is still on its way.
func (h PayoutHarness) late(t *testing.T) gateway.Payout {
	t.Helper()
	p := h.payout()
	h.Late()
	wantPayoutOutcome(t, "payout", h.payer().Payout(t.Context(), p), gateway.Unknown)
	h.wantPayoutBooks(t, p, PayoutBooks{})
	wantPayoutOutcome(t, "query while it is on its way", h.payer().QueryPayout(t.Context(), p), gateway.Refused)
	return p
}

func payLate(t *testing.T, h PayoutHarness) {
	p := h.late(t)
	h.Advance(LateBy)
	if a := h.payer().QueryPayout(t.Context(), p); a.Outcome != gateway.Done {
		t.Errorf("query: got %s (%s, %v), want what became of it", a.Outcome, a.Code, a.Err)
	}
	h.send(t, p)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func payOvertaken(t *testing.T, h PayoutHarness) {
	p := h.late(t)
	p.Ref = h.send(t, p).Ref
	h.Advance(LateBy)
	h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
}

func payAfterTwoDays(t *testing.T, h PayoutHarness) {
	p := h.lose(t, Lost)
	h.Advance(48 * time.Hour)
	if a := h.payer().Payout(t.Context(), p); a.Outcome == gateway.Refused {
		t.Errorf("payout after two days: got refused (%s), although it was made", a.Code)
	}
	if got := h.Books(p).Taken; got != 1 {
		t.Errorf("it was taken on %d times, want once", got)
	}
}

func queryNeverSent(t *testing.T, h PayoutHarness) {
	h.sent(t)
	p := h.payout()
	p.ID = "out0002"
	wantPayoutOutcome(t, "query", h.payer().QueryPayout(t.Context(), p), gateway.Refused)
}

func payShort(t *testing.T, h PayoutHarness) {
	h.Short()
	p := h.payout()
	a := h.payer().Payout(t.Context(), p)
	wantPayoutOutcome(t, "payout", a, gateway.Refused)
	if a.Code == "" {
		t.Error("refused without a code")
	}
	h.wantPayoutBooks(t, p, PayoutBooks{})
}

// payFailures: none of these may claim to know, and none of them loses sight of
// the payouts that there are.
func payFailures(t *testing.T, h PayoutHarness) {
	p := h.sent(t)
	fresh, forgotten := h.payout(), p
	fresh.ID, forgotten.Ref = "out0002", ""
	for name, f := range map[string]Fault{
		"unreachable": Unreachable, "lost": Lost, "server error": Answers(500, `{"error":{"type":"api_error"}}`),
		"unavailable": Answers(503, "<html>try later</html>"), "rate limit": Answers(429, "{}"), "no permission": Answers(401, "{}"),
		"a page": Answers(200, "<html>log in</html>"), "empty": Answers(200, ""), "nothing": Answers(200, "{}"),
		"another shape": Answers(200, `[{"id":1}]`), "another server": Answers(404, "404 page not found"), "redirect": Answers(302, ""),
	} {
		h.Wire.Every(f)
		wantPayoutOutcome(t, name+": payout", h.payer().Payout(t.Context(), fresh), gateway.Unknown)
		wantPayoutOutcome(t, name+": query", h.payer().QueryPayout(t.Context(), p), gateway.Unknown)
		wantPayoutOutcome(t, name+": query without ref", h.payer().QueryPayout(t.Context(), forgotten), gateway.Unknown)
		if r, ok := h.Gateway.(gateway.Recaller); ok && h.Lacks[Recall] == "" {
			wantPayoutOutcome(t, name+": recall", r.RecallPayout(t.Context(), p), gateway.Unknown)
		}
		h.Wire.Every(nil)
	}
	h.send(t, fresh)
	h.wantPayoutBooks(t, fresh, PayoutBooks{Taken: 1, Out: fresh.Amount})
}

func payUnfit(t *testing.T, h PayoutHarness) {
	if u := h.payer().CheckPayout(h.payout()); u != nil {
		t.Errorf("an ordinary payout: got %+v", *u)
	}
	bad := append([]gateway.Payout{{Amount: -1}, {Amount: 1 << 53}, {Destination: " "}}, h.Unfit...)
	for _, change := range bad {
		p := h.payout()
		if change.Destination != "" {
			p.Destination = change.Destination
		}
		if change.Amount != 0 {
			p.Amount = change.Amount
		}
		if change.Currency != "" {
			p.Currency = change.Currency
		}
		if u := h.payer().CheckPayout(p); u == nil || u.Field == "" || u.Detail == "" {
			t.Errorf("%d %s to %q: got %+v, want what is wrong with it", p.Amount, p.Currency, p.Destination, u)
		}
		wantPayoutOutcome(t, "an unfit payout", h.payer().Payout(t.Context(), p), gateway.Refused)
		h.wantPayoutBooks(t, p, PayoutBooks{})
	}
}

func payTwoNumbers(t *testing.T, h PayoutHarness) {
	one, two := h.payout(), h.payout()
	two.ID = "out0002"
	if a, b := h.send(t, one), h.send(t, two); a.Ref == b.Ref && a.Ref != "" {
		t.Errorf("both have the ref %q", a.Ref)
	}
	for _, p := range []gateway.Payout{one, two} {
		h.wantPayoutBooks(t, p, PayoutBooks{Taken: 1, Out: p.Amount})
	}
}

func (h PayoutHarness) wantPayout(t *testing.T, p gateway.Payout, want ...gateway.PayoutStatus) {
	t.Helper()
	without := p
	without.Ref = ""
	for _, p := range []gateway.Payout{p, without} {
		a := h.payer().QueryPayout(t.Context(), p)
		good := false
		for _, s := range want {
			good = good || a.Status == s
		}
		if a.Outcome != gateway.Done || !good {
			t.Fatalf("query of %q: got %s %s (%s, %v), want done %v", p.Ref, a.Outcome, a.Status, a.Code, a.Err, want)
		}
	}
}

func (h PayoutHarness) wantPayoutBooks(t *testing.T, p gateway.Payout, want PayoutBooks) {
	t.Helper()
	if got := h.Books(p); got != want {
		t.Errorf("books of %s: got %+v, want %+v", p.ID, got, want)
	}
}

func wantPayoutOutcome(t *testing.T, what string, a gateway.PayoutAnswer, want gateway.Outcome) {
	t.Helper()
	if a.Outcome != want {
		t.Errorf("%s: got %s %s (%s, %v), want %s", what, a.Outcome, a.Status, a.Code, a.Err, want)
	}
	if a.Outcome == gateway.Unknown && a.Err == nil {
		t.Errorf("%s: unknown without a reason", what)
	}
}
