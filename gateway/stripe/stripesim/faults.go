package stripesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
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
	SearchLag       time.Duration `json:"search_lag"`        // exactly how much later search finds a new payment intent
}

// durations names the duration fields for JSON, which has no such type.
func (f *Faults) durations() map[string]*time.Duration {
	return map[string]*time.Duration{
		"delay_notice": &f.DelayNotice, "slow_answer": &f.SlowAnswer, "search_lag": &f.SearchLag,
	}
}

// probabilities names the other fields, to check them.
func (f *Faults) probabilities() map[string]float64 {
	return map[string]float64{
		"lose_notice": f.LoseNotice, "duplicate_notice": f.DuplicateNotice, "reorder_notice": f.ReorderNotice,
		"forge_notice": f.ForgeNotice, "two_events": f.TwoEvents, "lost_answer": f.LostAnswer,
		"stored_500": f.Stored500, "unavailable": f.Unavailable, "rate_limited": f.RateLimited,
		"key_in_use": f.KeyInUse, "paid_before_close": f.PaidBeforeClose, "refund_pending": f.RefundPending,
	}
}

// faultsWire shadows the duration fields with strings.
type faultsWire struct {
	*faultsPlain
	DelayNotice string `json:"delay_notice"`
	SlowAnswer  string `json:"slow_answer"`
	SearchLag   string `json:"search_lag"`
}

type faultsPlain Faults

// MarshalJSON writes durations as strings.
func (f Faults) MarshalJSON() ([]byte, error) {
	p := faultsPlain(f)
	return json.Marshal(faultsWire{&p, f.DelayNotice.String(), f.SlowAnswer.String(), f.SearchLag.String()})
}

// UnmarshalJSON reads what MarshalJSON writes. Absent fields become zero;
// unknown fields and values out of range are errors.
func (f *Faults) UnmarshalJSON(b []byte) error {
	var read Faults
	w := faultsWire{faultsPlain: (*faultsPlain)(&read)}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	text := map[string]string{"delay_notice": w.DelayNotice, "slow_answer": w.SlowAnswer, "search_lag": w.SearchLag}
	for name, into := range read.durations() {
		if text[name] == "" {
			continue
		}
		d, err := time.ParseDuration(text[name])
		if err != nil {
			return fmt.Errorf("read faults: %s: %w", name, err)
		}
		if d < 0 {
			return fmt.Errorf("read faults: %s is negative", name)
		}
		*into = d
	}
	for name, p := range read.probabilities() {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("read faults: %s is not within 0 to 1", name)
		}
	}
	*f = read
	return nil
}

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
)

// Fault is one fault for one call.
type Fault struct {
	// Call is the endpoint's name: checkout.create, .retrieve, .list, .expire;
	// intent.create, .retrieve, .update, .confirm, .cancel, .list, .search;
	// refund.create, .retrieve, .list; balance.list; event.list, .retrieve.
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
	case s.chance(f.Unavailable):
		p.before = Unavailable
	case s.chance(f.RateLimited):
		p.before = RateLimited
	case c.key != "" && s.chance(f.KeyInUse):
		p.before = KeyInUse
	case post && s.chance(f.Stored500):
		p.stored = pick(s.luck, Stored500, Stored500AfterEffect)
	case s.chance(f.LostAnswer):
		p.after = pick(s.luck, LostAnswer, BadGateway, TornAnswer)
	}
	p.slow = s.upTo(f.SlowAnswer)
	p.paid = s.chance(f.PaidBeforeClose)
	p.pending = s.chance(f.RefundPending)
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
	}
	return plan{after: f.Kind}
}

// chance draws nothing at 0, so that a dial at rest leaves the seed's other
// choices as they were.
func (s *Sim) chance(p float64) bool { return p > 0 && s.luck.Float64() < p }

func (s *Sim) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(s.luck.Int64N(int64(d)))
}

func pick(r *rand.Rand, of ...Kind) Kind { return of[r.IntN(len(of))] }
