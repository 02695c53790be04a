package wechatpaysim

import (
	"net/http"
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
	DuplicateNotice float64       `json:"duplicate_notice"` // the same notification is sent a second time
	ReorderNotice   float64       `json:"reorder_notice"`   // held back, so that later ones overtake it
	ForgeNotice     float64       `json:"forge_notice"`     // a forger sends one besides, signed by a key that is not WeChat Pay's
	ProbeNotice     float64       `json:"probe_notice"`     // WeChat Pay sends a SIGNTEST probe besides, which must be refused
	SkewedNotice    float64       `json:"skewed_notice"`    // the first attempt is stamped six minutes off, before or after

	LostAnswer       float64       `json:"lost_answer"`        // the effect happens; the connection is cut, or 502, or half a body
	ErrorAfterEffect float64       `json:"error_after_effect"` // the effect happens; signed 500 SYSTEM_ERROR
	Unavailable      float64       `json:"unavailable"`        // signed 500 SYSTEM_ERROR before any effect
	RateLimited      float64       `json:"rate_limited"`       // signed 429 FREQUENCY_LIMITED before any effect
	UnsignedRefusal  float64       `json:"unsigned_refusal"`   // a proxy's 400 or 404 with one of WeChat Pay's codes, unsigned, before any effect
	UnsignedAnswer   float64       `json:"unsigned_answer"`    // the effect happens; the answer has no signature
	ReencodedAnswer  float64       `json:"reencoded_answer"`   // the effect happens; the body was written anew after it was signed
	ProbeAnswer      float64       `json:"probe_answer"`       // the effect happens; the answer has a SIGNTEST signature
	SkewedAnswer     float64       `json:"skewed_answer"`      // the effect happens; the answer is stamped six minutes off
	SlowAnswer       time.Duration `json:"slow_answer"`        // the answer comes up to this long after the effect

	PaidBeforeClose  float64 `json:"paid_before_close"` // the buyer pays just before a close
	CloseTooEarly    float64 `json:"close_too_early"`   // an order of less than five minutes is not closed
	UserPaying       float64 `json:"user_paying"`       // 202 USERPAYING to a close, state USERPAYING to a query
	OldCodes         float64 `json:"old_codes"`         // older behaviour: codes without underscores, a second close is ORDERCLOSED
	Coupon           float64 `json:"coupon"`            // the buyer pays less than the price, a coupon the rest
	RefundPending    float64 `json:"refund_pending"`    // a refund is being processed for 30 seconds
	RefundAbnormal   float64 `json:"refund_abnormal"`   // a refund that was taken on becomes ABNORMAL
	RefundClosed     float64 `json:"refund_closed"`     // a refund that was taken on becomes CLOSED
	NotEnough        float64 `json:"not_enough"`        // 403 NOT_ENOUGH to a refund: the merchant's balance is short
	LostRequest      float64 `json:"lost_request"`      // the connection is cut before any effect
	LateTransfer     float64 `json:"late_transfer"`     // the connection is cut, and the transfer arrives at WeChat Pay ten minutes later
	TransferAccepted float64 `json:"transfer_accepted"` // ACCEPTED for ten minutes before it waits for its receiver
	TransferPending  float64 `json:"transfer_pending"`  // TRANSFERING, or CANCELING, for ten minutes after the receiver, or the merchant, has decided
	TransferFails    float64 `json:"transfer_fails"`    // FAIL when the receiver has confirmed
	KeySwitch        float64 `json:"key_switch"`        // signed by the other kind of key: certificate or public key
}

// MarshalJSON implements json.Marshaler.
func (f Faults) MarshalJSON() ([]byte, error) { return dial.Marshal(f) }

// UnmarshalJSON implements json.Unmarshaler. Absent fields become zero; unknown
// fields and values out of range are errors.
func (f *Faults) UnmarshalJSON(b []byte) error { return dial.Unmarshal(b, f) }

// Kind is one thing that can go wrong with one API call.
type Kind string

// The kinds are the fields of Faults, where they are described.
const (
	LostAnswer       Kind = "lost_answer"
	BadGateway       Kind = "bad_gateway" // of LostAnswer: a proxy's 502
	TornAnswer       Kind = "torn_answer" // of LostAnswer: half of the body
	ErrorAfterEffect Kind = "error_after_effect"
	Unavailable      Kind = "unavailable"
	RateLimited      Kind = "rate_limited"
	UnsignedRefusal  Kind = "unsigned_refusal"
	UnsignedAnswer   Kind = "unsigned_answer"
	Reencoded        Kind = "reencoded_answer"
	ProbeAnswer      Kind = "probe_answer"
	SkewedAnswer     Kind = "skewed_answer"
	PaidBeforeClose  Kind = "paid_before_close"
	CloseTooEarly    Kind = "close_too_early"
	UserPaying       Kind = "user_paying"
	OldCodes         Kind = "old_codes"
	RefundPending    Kind = "refund_pending"
	RefundAbnormal   Kind = "refund_abnormal"
	RefundClosed     Kind = "refund_closed"
	NotEnough        Kind = "not_enough"
	LostRequest      Kind = "lost_request"
	LateRequest      Kind = "late_request" // of LateTransfer
	TransferAccepted Kind = "transfer_accepted"
	TransferPending  Kind = "transfer_pending"
	TransferFails    Kind = "transfer_fails"
	KeySwitch        Kind = "key_switch"
)

const lateBy = 10 * time.Minute // of LateRequest

// skew is how far the clock of a skewed message is off.
const skew = 6 * time.Minute

// Fault is one fault for one call.
type Fault struct {
	// Call is the endpoint's name: native.create, jsapi.create, h5.create,
	// app.create, order.query, order.find, order.close, refund.create,
	// refund.query, transfer.create, transfer.query, transfer.find,
	// transfer.cancel, certificates, bill.create, funds.create, bill.download.
	// Empty means any.
	Call string
	Kind Kind
}

// SetFaults turns the dial for all later calls and notifications.
func (s *Sim) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Inject adds a one-shot fault: the next authentic call of that name gets it,
// in the order of injection, and the dial is not asked then.
func (s *Sim) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.injected = append(s.injected, f)
}

// plan is what will go wrong with one call.
type plan struct {
	kind     Kind          // on the way: at most one
	ahead    time.Duration // of SkewedAnswer
	slow     time.Duration
	switched bool // KeySwitch
	old      bool // OldCodes
	paid     bool // PaidBeforeClose
	early    bool // CloseTooEarly
	paying   bool // UserPaying
	short    bool // NotEnough
	fate     Kind // RefundPending, RefundAbnormal, RefundClosed; TransferAccepted, TransferPending, TransferFails
}

// plan decides the faults of one call, from the injected ones or else the dial.
func (s *Sim) plan(c *call) plan {
	for i, f := range s.injected {
		if f.Call == c.name || f.Call == "" {
			s.injected = slices.Delete(s.injected, i, i+1)
			return planOf(f.Kind)
		}
	}
	f, l := s.faults, s.luck
	p := plan{kind: s.wayward()}
	if c.name == "transfer.create" && l.Chance(f.LateTransfer) {
		p.kind = LateRequest
	}
	if p.kind == SkewedAnswer {
		p.ahead = dial.Pick(l, -skew, skew)
	}
	p.slow = l.UpTo(f.SlowAnswer)
	p.switched, p.old = l.Chance(f.KeySwitch), l.Chance(f.OldCodes)
	p.paid, p.early, p.paying = l.Chance(f.PaidBeforeClose), l.Chance(f.CloseTooEarly), l.Chance(f.UserPaying)
	p.short = l.Chance(f.NotEnough)
	p.fate = s.fate(c.name)
	return p
}

// fate chooses what becomes of a refund or a transfer; "" = the best.
func (s *Sim) fate(call string) Kind {
	f, l := s.faults, s.luck
	fates := []struct {
		p    float64
		kind Kind
	}{{f.RefundAbnormal, RefundAbnormal}, {f.RefundClosed, RefundClosed}, {f.RefundPending, RefundPending}}
	if call == "transfer.create" {
		fates[0].p, fates[0].kind = f.TransferAccepted, TransferAccepted
		fates[1].p, fates[1].kind = f.TransferPending, TransferPending
		fates[2].p, fates[2].kind = f.TransferFails, TransferFails
	}
	for _, may := range fates {
		if l.Chance(may.p) {
			return may.kind
		}
	}
	return ""
}

// wayward chooses what happens to a call on its way; "" for nothing.
func (s *Sim) wayward() Kind {
	f, l := s.faults, s.luck
	for _, may := range []struct {
		p    float64
		kind []Kind
	}{
		{f.LostRequest, []Kind{LostRequest}},
		{f.Unavailable, []Kind{Unavailable}},
		{f.RateLimited, []Kind{RateLimited}},
		{f.UnsignedRefusal, []Kind{UnsignedRefusal}},
		{f.LostAnswer, []Kind{LostAnswer, BadGateway, TornAnswer}},
		{f.ErrorAfterEffect, []Kind{ErrorAfterEffect}},
		{f.UnsignedAnswer, []Kind{UnsignedAnswer}},
		{f.ReencodedAnswer, []Kind{Reencoded}},
		{f.ProbeAnswer, []Kind{ProbeAnswer}},
		{f.SkewedAnswer, []Kind{SkewedAnswer}},
	} {
		if l.Chance(may.p) {
			return dial.Pick(l, may.kind...)
		}
	}
	return ""
}

func planOf(k Kind) plan {
	switch k {
	case PaidBeforeClose:
		return plan{paid: true}
	case CloseTooEarly:
		return plan{early: true}
	case UserPaying:
		return plan{paying: true}
	case OldCodes:
		return plan{old: true}
	case NotEnough:
		return plan{short: true}
	case KeySwitch:
		return plan{switched: true}
	case RefundPending, RefundAbnormal, RefundClosed, TransferAccepted, TransferPending, TransferFails:
		return plan{fate: k}
	case SkewedAnswer:
		return plan{kind: k, ahead: -skew}
	}
	return plan{kind: k}
}

// turnedAway is the answer to a call that does not get to its endpoint; nil
// when it does.
func turnedAway(c *call) *apiError {
	switch c.plan.kind {
	case Unavailable, LostRequest, LateRequest:
		return systemError()
	case RateLimited:
		return refused(http.StatusTooManyRequests, "FREQUENCY_LIMITED", "频率超限")
	case UnsignedRefusal: // the code that would do the most harm if it were believed
		switch c.name {
		case "order.close":
			return refused(http.StatusBadRequest, "ORDER_CLOSED", "订单已关闭")
		case "refund.create", "refund.query":
			return refused(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "退款单不存在")
		case "transfer.create":
			return refused(http.StatusForbidden, "NOT_ENOUGH", "资金不足，请充值后原单重试")
		case "transfer.query", "transfer.find":
			return errNoTransfer()
		case "transfer.cancel":
			return refused(http.StatusBadRequest, "INVALID_REQUEST", "当前单据状态不支持撤销")
		}
		return refused(http.StatusNotFound, "ORDER_NOT_EXIST", "订单不存在")
	}
	return nil
}

// seal is the signature of the answer to c.
func (s *Sim) seal(c *call) seal {
	return seal{
		by: s.signerFor(c.asked, c.plan.switched), at: c.now.Add(c.plan.ahead), nonce: s.id(32, letters), probe: c.plan.kind == ProbeAnswer,
	}
}

func (p plan) seal(h http.Header, k seal, body []byte) {
	if p.kind != UnsignedAnswer && p.kind != UnsignedRefusal {
		k.sign(h, body)
	}
}
