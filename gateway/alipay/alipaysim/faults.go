package alipaysim

import (
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/gateway/dial"
)

// Faults is the dial: how often each thing goes wrong. Probabilities are 0 to
// 1, durations are maxima of an even distribution; the zero value is a
// faultless gateway. As JSON the durations are strings such as "1.5s".
type Faults struct {
	DelayNotice     time.Duration `json:"delay_notice"`     // a notification starts up to this late
	LoseNotice      float64       `json:"lose_notice"`      // the first attempt gets lost; the schedule repeats it
	DuplicateNotice float64       `json:"duplicate_notice"` // it is delivered a second time
	ReorderNotice   float64       `json:"reorder_notice"`   // held back, so that later ones overtake it
	ForgeNotice     float64       `json:"forge_notice"`     // a forger sends "paid" besides, in one of three ways
	GBKNotice       float64       `json:"gbk_notice"`       // it is in GBK, though the request said utf-8

	LostAnswer   float64       `json:"lost_answer"`   // the effect happens; the connection is cut, or 502, or half a body
	Unavailable  float64       `json:"unavailable"`   // 20000 before any effect
	SystemError  float64       `json:"system_error"`  // 40004 ACQ.SYSTEM_ERROR; the effect may or may not have happened
	Unsigned     float64       `json:"unsigned"`      // the effect happens; the answer has no signature
	ForgedAnswer float64       `json:"forged_answer"` // the effect happens; the answer is somebody's lie, without a signature
	Recoded      float64       `json:"recoded"`       // the effect happens; the answer was read and written again on its way
	SlowAnswer   time.Duration `json:"slow_answer"`   // the answer comes up to this long after the effect

	PaidBeforeClose float64       `json:"paid_before_close"` // the buyer pays just before a close
	BalanceShort    float64       `json:"balance_short"`     // a refund or a transfer is refused: the seller has not enough
	RefundLag       time.Duration `json:"refund_lag"`        // exactly how much later the refund query finds a refund

	LostRequest      float64 `json:"lost_request"`      // the connection is cut before any effect
	LateTransfer     float64 `json:"late_transfer"`     // the connection is cut, and the transfer arrives at Alipay ten minutes later
	TransferPending  float64 `json:"transfer_pending"`  // DEALING for ten minutes, then SUCCESS
	TransferFails    float64 `json:"transfer_fails"`    // DEALING for ten minutes, then FAIL
	TransferReturned float64 `json:"transfer_returned"` // SUCCESS, and REFUND three days later
}

// MarshalJSON implements json.Marshaler.
func (f Faults) MarshalJSON() ([]byte, error) { return dial.Marshal(f) }

// UnmarshalJSON implements json.Unmarshaler. Absent fields become zero; unknown
// fields and values out of range are errors.
func (f *Faults) UnmarshalJSON(b []byte) error { return dial.Unmarshal(b, f) }

// Kind is one thing that can go wrong with one API call.
type Kind string

const (
	// LostAnswer: the effect happens, then the connection is cut.
	LostAnswer Kind = "lost_answer"
	// BadGateway: the effect happens, then a proxy answers 502 with HTML.
	BadGateway Kind = "bad_gateway"
	// TornAnswer: the effect happens, then half of the answer arrives.
	TornAnswer Kind = "torn_answer"
	// Unavailable: 20000 before any effect.
	Unavailable Kind = "unavailable"
	// SystemError: 40004 ACQ.SYSTEM_ERROR before any effect.
	SystemError Kind = "system_error"
	// SystemErrorAfterEffect is SystemError with the effect.
	SystemErrorAfterEffect Kind = "system_error_after_effect"
	// Unsigned: the effect happens, the answer has no signature.
	Unsigned Kind = "unsigned"
	// ForgedAnswer: the effect happens, the answer is a lie without a signature.
	ForgedAnswer Kind = "forged_answer"
	// Recoded: the effect happens, the answer was read and written again.
	Recoded Kind = "recoded"
	// SlowAnswer: the effect happens, the answer waits for Fault.Delay.
	SlowAnswer Kind = "slow_answer"
	// PaidBeforeClose: on close the buyer pays first.
	PaidBeforeClose Kind = "paid_before_close"
	// BalanceShort: on refund or transfer the seller has not enough.
	BalanceShort Kind = "balance_short"
	// LostRequest: the connection is cut before any effect.
	LostRequest Kind = "lost_request"
	// LateRequest: the connection is cut, and the effect happens ten minutes later.
	LateRequest Kind = "late_request"

	// What becomes of a transfer: see Faults.
	TransferPending  Kind = "transfer_pending"
	TransferFails    Kind = "transfer_fails"
	TransferReturned Kind = "transfer_returned"
)

const lateBy = 10 * time.Minute // of LateRequest

// Fault is one fault for one call.
type Fault struct {
	// Call is precreate, query, close, refund, refund.query, transfer,
	// transfer.query or bill. Empty means any.
	Call  string
	Kind  Kind
	Delay time.Duration // for SlowAnswer
}

// SetFaults turns the dial for all later calls and notifications.
func (s *Sim) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Inject makes f happen to the next call that it fits, once. It goes before
// the dial.
func (s *Sim) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected = append(s.injected, f)
}

// plan is what will go wrong with one call.
type plan struct {
	before Kind // instead of the call
	after  Kind // instead of the answer
	paid   bool // PaidBeforeClose
	poor   bool // BalanceShort
	fate   Kind // of a transfer
	slow   time.Duration
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
	switch {
	case s.luck.Chance(f.LostRequest):
		p.before = LostRequest
	case c.name == "transfer" && s.luck.Chance(f.LateTransfer):
		p.before = LateRequest
	case s.luck.Chance(f.Unavailable):
		p.before = Unavailable
	case s.luck.Chance(f.SystemError):
		p = planOf(Fault{Kind: dial.Pick(s.luck, SystemError, SystemErrorAfterEffect)})
	case s.luck.Chance(f.LostAnswer):
		p.after = dial.Pick(s.luck, LostAnswer, BadGateway, TornAnswer)
	case s.luck.Chance(f.Unsigned):
		p.after = Unsigned
	case s.luck.Chance(f.ForgedAnswer):
		p.after = ForgedAnswer
	case s.luck.Chance(f.Recoded):
		p.after = Recoded
	}
	p.slow = s.luck.UpTo(f.SlowAnswer)
	p.paid = s.luck.Chance(f.PaidBeforeClose)
	p.poor = s.luck.Chance(f.BalanceShort)
	if c.name == "transfer" {
		p.fate = s.fate()
	}
	return p
}

// fate chooses what becomes of a transfer; "" = it arrives at once.
func (s *Sim) fate() Kind {
	f := s.faults
	switch {
	case s.luck.Chance(f.TransferPending):
		return TransferPending
	case s.luck.Chance(f.TransferFails):
		return TransferFails
	case s.luck.Chance(f.TransferReturned):
		return TransferReturned
	}
	return ""
}

func planOf(f Fault) plan {
	switch f.Kind {
	case Unavailable, SystemError, LostRequest, LateRequest:
		return plan{before: f.Kind}
	case TransferPending, TransferFails, TransferReturned:
		return plan{fate: f.Kind}
	case SlowAnswer:
		return plan{slow: f.Delay}
	case PaidBeforeClose:
		return plan{paid: true}
	case BalanceShort:
		return plan{poor: true}
	}
	return plan{after: f.Kind}
}
