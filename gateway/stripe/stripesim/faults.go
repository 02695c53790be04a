package stripesim

import (
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

// Faults is the dial: how often each thing goes wrong. Probabilities are 0 to
// 1, durations are maxima of an even distribution; the zero value is a
// faultless gateway. As JSON the durations are strings such as "1.5s".
type Faults struct {
	DelayNotice     time.Duration `json:"delay_notice"`     // a delivery starts up to this late
	LoseNotice      float64       `json:"lose_notice"`      // the first attempt gets lost; the schedule repeats it
	DuplicateNotice float64       `json:"duplicate_notice"` // the same event is delivered a second time
	ReorderNotice   float64       `json:"reorder_notice"`   // held back, so that later events overtake it
	ForgeNotice     float64       `json:"forge_notice"`     // a forger sends "paid" besides, signed with a wrong secret
	TwoEvents       float64       `json:"two_events"`       // two Event objects with different ids for one change

	LostAnswer      float64       `json:"lost_answer"`       // the effect happens; the connection is cut, or 502, or half a body
	Stored500       float64       `json:"stored_500"`        // 500, replayed under its key; the effect may or may not have happened
	Unavailable     float64       `json:"unavailable"`       // 503 before any effect, not stored
	RateLimited     float64       `json:"rate_limited"`      // 429 before any effect, not stored
	KeyInUse        float64       `json:"key_in_use"`        // 409 idempotency_key_in_use, on calls with a key
	SlowAnswer      time.Duration `json:"slow_answer"`       // the answer comes up to this long after the effect
	PaidBeforeClose float64       `json:"paid_before_close"` // the buyer pays just before an expire or cancel
	RefundPending   float64       `json:"refund_pending"`    // a refund stays pending for 30 seconds
	LostCall        float64       `json:"lost_call"`         // a POST never arrives; the connection is cut
	LateCall        float64       `json:"late_call"`         // a POST arrives 10 minutes later; the connection is cut
	BalanceShort    float64       `json:"balance_short"`     // a transfer or payout finds no money, and moves none
	PayoutFails     float64       `json:"payout_fails"`      // a payout under way fails
	PaidBack        float64       `json:"paid_back"`         // a payout that was paid fails, and a transfer is reversed, 3 days later
	SearchLag       time.Duration `json:"search_lag"`        // exactly how much later search finds a new payment intent
}

// MarshalJSON implements json.Marshaler.
func (f Faults) MarshalJSON() ([]byte, error) { return dial.Marshal(f) }

// UnmarshalJSON implements json.Unmarshaler. Absent fields become zero; unknown
// fields and values out of range are errors.
func (f *Faults) UnmarshalJSON(b []byte) error { return dial.Unmarshal(b, f) }

// Kind is one thing that can go wrong with one API call.
type Kind string

const (
	// LostAnswer: the effect happens, then the connection is cut. On a kept
	// connection Go's own client then repeats a call with an Idempotency-Key by
	// itself; disable keep-alives where the loss should be seen.
	LostAnswer Kind = "lost_answer"
	// BadGateway: the effect happens, then a proxy answers 502 with HTML.
	BadGateway Kind = "bad_gateway"
	// TornAnswer: the effect happens, then half of the JSON arrives with its usual status.
	TornAnswer Kind = "torn_answer"
	// Stored500: no effect; the 500 is stored under the key and replayed.
	Stored500 Kind = "stored_500"
	// Stored500AfterEffect is Stored500 with the effect.
	Stored500AfterEffect Kind = "stored_500_after_effect"
	// Unavailable: 503 before any effect, not stored.
	Unavailable Kind = "unavailable"
	// RateLimited: 429 before any effect, not stored.
	RateLimited Kind = "rate_limited"
	// KeyInUse: 409 idempotency_key_in_use, without effect, not stored.
	KeyInUse Kind = "key_in_use"
	// SlowAnswer: the effect happens, the answer waits for Fault.Delay; the key is in use meanwhile.
	SlowAnswer Kind = "slow_answer"
	// PaidBeforeClose: on checkout.expire and intent.cancel the buyer pays first.
	PaidBeforeClose Kind = "paid_before_close"
	// RefundPending: on refund.create the refund stays pending for 30 seconds.
	RefundPending Kind = "refund_pending"
	// LostCall: no effect; the connection is cut.
	LostCall Kind = "lost_call"
	// LateCall: the connection is cut, and the call has its effect 10 minutes later,
	// unless one with its key came before.
	LateCall Kind = "late_call"
	// BalanceShort: on transfer.create and payout.create there is no money.
	BalanceShort Kind = "balance_short"
	// PayoutFails: on payout.create: it fails when it should have arrived.
	PayoutFails Kind = "payout_fails"
	// PaidBack: on transfer.create and payout.create: 3 days after it was paid the money comes back.
	PaidBack Kind = "paid_back"
)

// Fault is one fault for one call.
type Fault struct {
	// Call is the endpoint's name: checkout.create, .retrieve, .list, .expire;
	// intent.create, .retrieve, .update, .confirm, .cancel, .list, .search;
	// refund.create, .retrieve, .list; transfer.create, .retrieve, .list, .reverse;
	// payout.create, .retrieve, .list, .cancel; balance.retrieve, .list;
	// event.list, .retrieve.
	// Empty means any.
	Call  string
	Kind  Kind
	Delay time.Duration // for SlowAnswer
}

// SetFaults turns the dial for all later calls and events.
func (s *Sim) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Inject adds a one-shot fault: the next authorized, well-formed call of that
// name gets it, in the order of injection, and the dial is not asked then.
func (s *Sim) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected = append(s.injected, f)
}

// plan is what will go wrong with one call.
type plan struct {
	before  Kind // Unavailable, RateLimited, KeyInUse: instead of the call
	stored  Kind // Stored500 or Stored500AfterEffect
	after   Kind // LostAnswer, BadGateway, TornAnswer: instead of the answer
	paid    bool // PaidBeforeClose
	pending bool // RefundPending
	cut     bool // LostCall or LateCall: the caller hears nothing
	late    bool // LateCall
	short   bool // BalanceShort
	fails   bool // PayoutFails
	bounces bool // PaidBack
	slow    time.Duration
}

// plan decides the faults of one call, from the injected ones or else the dial.
func (s *Sim) plan(c *call) plan {
	for i, f := range s.injected {
		if f.Call == c.name || f.Call == "" {
			s.injected = slices.Delete(s.injected, i, i+1)
			return planOf(f)
		}
	}
	f, p := s.faults, plan{}
	switch post := c.method == "POST"; {
	case s.luck.Chance(f.Unavailable):
		p.before = Unavailable
	case s.luck.Chance(f.RateLimited):
		p.before = RateLimited
	case c.key != "" && s.luck.Chance(f.KeyInUse):
		p.before = KeyInUse
	case post && s.luck.Chance(f.Stored500):
		p.stored = dial.Pick(s.luck, Stored500, Stored500AfterEffect)
	case post && s.luck.Chance(f.LostCall):
		p.cut = true
	case post && s.luck.Chance(f.LateCall):
		p.cut, p.late = true, true
	case s.luck.Chance(f.LostAnswer):
		p.after = dial.Pick(s.luck, LostAnswer, BadGateway, TornAnswer)
	}
	p.slow = s.luck.UpTo(f.SlowAnswer)
	p.paid = s.luck.Chance(f.PaidBeforeClose)
	p.pending = s.luck.Chance(f.RefundPending)
	p.short, p.fails, p.bounces = s.luck.Chance(f.BalanceShort), s.luck.Chance(f.PayoutFails), s.luck.Chance(f.PaidBack)
	return p
}

func planOf(f Fault) plan {
	switch f.Kind {
	case Unavailable, RateLimited, KeyInUse:
		return plan{before: f.Kind}
	case Stored500, Stored500AfterEffect:
		return plan{stored: f.Kind}
	case SlowAnswer:
		return plan{slow: f.Delay}
	case PaidBeforeClose:
		return plan{paid: true}
	case RefundPending:
		return plan{pending: true}
	case LostCall, LateCall:
		return plan{cut: true, late: f.Kind == LateCall}
	case BalanceShort:
		return plan{short: true}
	case PayoutFails:
		return plan{fails: true}
	case PaidBack:
		return plan{bounces: true}
	}
	return plan{after: f.Kind}
}
