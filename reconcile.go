package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of a reconciliation.
const (
	MaxStatement   = 64 << 20             // bytes of a statement
	fetchTimeout   = 2 * time.Minute      // for a statement's download
	bookBatch      = 500                  // lines that are booked in one call
	statementSlack = time.Hour            // what is booked here so late in a day may be on the gateway's next one
	day            = 24 * time.Hour       // no gateway's zone has summer time
	statementAge   = 400 * 24 * time.Hour // how far back a day may lie
)

// ReconcileInput names a statement.
type ReconcileInput struct {
	Gateway string // "" = the only one
	Day     string // YYYY-MM-DD, in the gateway's own zone
	File    []byte // the statement; nil = ask the gateway for it
}

// Difference is something on which a statement and the books do not agree.
// Amounts are minor units of Currency.
type Difference struct {
	Kind     string `json:"kind"`             // one of the Difference constants
	About    string `json:"about"`            // payment, refund, payout, ...
	Number   string `json:"number,omitempty"` // ours
	Ref      string `json:"ref,omitempty"`    // the gateway's
	Line     string `json:"line,omitempty"`   // of the statement
	Here     int64  `json:"here"`
	There    int64  `json:"there"`
	Currency string `json:"currency"`
	Detail   string `json:"detail"`
	Todo     string `json:"todo"` // for people
}

// Kinds of differences.
const (
	MissingHere   = "missing_here"  // on the statement, and not in the books
	MissingThere  = "missing_there" // in the books, and not on the statement
	OtherAmount   = "amount"
	OtherState    = "state"
	OtherFee      = "fee"     // the line has changed since it was booked
	Doubled       = "doubled" // the statement has it twice
	NotUnderstood = "unknown" // a kind of line that Holdfast does not book
)

// Sum compares the two sides in one currency, in minor units: what the gateway
// says our money there changed by, fees and settlements included, and what the
// books say of the same.
type Sum struct {
	Currency string `json:"currency"`
	There    int64  `json:"there"`
	Here     int64  `json:"here"`
}

// Reconciliation is what came out. There == Here in every Sum unless there are
// differences.
type Reconciliation struct {
	Gateway     string       `json:"gateway"`
	Day         string       `json:"day"`
	Lines       int          `json:"lines"`
	Matched     int          `json:"matched"`
	Booked      int          `json:"booked"` // of the matched: for the first time
	Sums        []Sum        `json:"sums"`
	Differences []Difference `json:"differences"`
}

// Reconcile holds a day's statement of a gateway against the books. Fees and
// settlements of lines that agree are booked, once: to reconcile a day again
// changes nothing, unless the statement or the books have changed. What does not
// agree is listed and left as it is.
func (h *Holdfast) Reconcile(ctx context.Context, in ReconcileInput, progress func(done, total int64)) (Reconciliation, error) {
	name, gw, err := h.gateway(in.Gateway)
	if err != nil {
		return Reconciliation{}, err
	}
	st, ok := gw.(gateway.Statements)
	if !ok {
		return Reconciliation{}, reject(CodeGatewayUnknown, "gateway %s has no statements", name)
	}
	begin, err := time.ParseInLocation(time.DateOnly, in.Day, st.Zone())
	if err != nil {
		return Reconciliation{}, reject(CodeInvalidField, "day: YYYY-MM-DD")
	}
	now, err := h.now(ctx)
	if err != nil {
		return Reconciliation{}, err
	}
	if end := begin.Add(day); end.After(now.Std()) || now.Std().Sub(end) > statementAge {
		return Reconciliation{}, reject(CodeInvalidField, "day: over, and not longer ago than %d days", statementAge/day)
	}
	lines, err := h.statement(ctx, st, begin, in.File)
	if err != nil {
		return Reconciliation{}, err
	}
	for _, l := range lines {
		if l.At.Before(begin.Add(-statementSlack)) || l.At.After(begin.Add(day+statementSlack)) {
			return Reconciliation{}, reject(CodeInvalidField, "the statement is of another day: line %s is of %s", l.ID, l.At.In(st.Zone()).Format(time.DateTime))
		}
	}
	r := reconciling{h: h, gateway: name, begin: Time(begin.UnixMilli()), sums: map[string]*Sum{}, amiss: map[string]bool{}, back: map[string]bool{},
		out: Reconciliation{Gateway: name, Day: in.Day, Lines: len(lines), Differences: []Difference{}}}
	if err := r.run(ctx, lines, progress); err != nil {
		return Reconciliation{}, fmt.Errorf("holdfast: reconcile %s %s: %w", name, in.Day, err)
	}
	return r.out, nil
}

func (h *Holdfast) statement(ctx context.Context, st gateway.Statements, begin time.Time, file []byte) ([]gateway.StatementLine, error) {
	if file == nil {
		call, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		var err error
		file, err = st.FetchStatement(call, begin)
		if errors.Is(err, gateway.ErrNoStatement) {
			return nil, reject(CodeNotFound, "the gateway has no statement of that day, or none yet")
		}
		if err != nil {
			return nil, fmt.Errorf("holdfast: fetch the statement: %w", err)
		}
	}
	if len(file) > MaxStatement {
		return nil, reject(CodeInvalidField, "the statement has more than %d bytes", MaxStatement)
	}
	lines, err := st.ReadStatement(file)
	if err != nil {
		return nil, reject(CodeInvalidField, "the statement: %v", err)
	}
	return lines, nil
}

// reconciling is one run.
type reconciling struct {
	h       *Holdfast
	gateway string
	begin   Time
	out     Reconciliation
	sums    map[string]*Sum
	amiss   map[string]bool // what there is a difference about: kind/number
	back    map[string]bool // numbers of the payouts whose money came back on this statement
}

func (r *reconciling) run(ctx context.Context, lines []gateway.StatementLine, progress func(done, total int64)) error {
	for _, l := range lines {
		if l.Kind == gateway.PayoutBackLine {
			r.back[l.Number] = true
		}
	}
	done := 0
	for chunk := range slices.Chunk(lines, bookBatch) {
		if err := r.book(ctx, chunk); err != nil {
			return err
		}
		if done += len(chunk); progress != nil {
			progress(int64(done), int64(len(lines)))
		}
	}
	if err := r.missingThere(ctx); err != nil {
		return err
	}
	for _, s := range r.sums {
		r.out.Sums = append(r.out.Sums, *s)
	}
	slices.SortFunc(r.out.Sums, func(a, b Sum) int { return strings.Compare(a.Currency, b.Currency) })
	return nil
}

// book matches lines, and books those that agree.
func (r *reconciling) book(ctx context.Context, lines []gateway.StatementLine) error {
	var entries []ledger.Entry
	var agreed []gateway.StatementLine
	for _, l := range lines {
		r.sum(l.Currency).There += l.Amount - l.Fee
		b, diff, err := r.match(ctx, l)
		if err != nil {
			return err
		}
		if diff != nil {
			r.differ(l, *diff)
			continue
		}
		print, err := json.Marshal(l)
		if err != nil {
			return err
		}
		entries = append(entries, ledger.Entry{ID: "statement/" + r.gateway + "/" + l.ID, Fingerprint: print,
			Ops: b.Ops(), Records: []ledger.Record{b.Record()}})
		agreed = append(agreed, l)
	}
	if len(entries) == 0 {
		return nil
	}
	results, err := r.h.applyAll(ctx, entries)
	if err != nil {
		return err
	}
	for i, res := range results {
		l := agreed[i]
		switch res.Code {
		case ledger.OK:
			r.out.Matched++
			if !res.Replayed {
				r.out.Booked++
			}
			r.sum(l.Currency).Here += l.Amount - l.Fee
		case ledger.Stale:
			r.differ(l, Difference{Kind: Doubled, Detail: "another line of a statement is about the same " + string(l.Kind),
				Todo: "ask the gateway why it is on its statements twice"})
		case ledger.IDReused:
			r.differ(l, Difference{Kind: OtherFee, Detail: "the line was booked with other figures when the statement was read before",
				Todo: "compare the two files; correct the books by a transfer"})
		default:
			return fmt.Errorf("line %s: the ledger refused: %s %s", l.ID, res.Code, res.Detail)
		}
	}
	return nil
}

// match finds what a line is about. A difference says why it can't be booked.
func (r *reconciling) match(ctx context.Context, l gateway.StatementLine) (flow.Booked, *Difference, error) {
	b := flow.Booked{Gateway: r.gateway, Day: r.out.Day, Line: l.ID, Kind: string(l.Kind), Amount: l.Amount, Fee: l.Fee, Currency: l.Currency}
	switch l.Kind {
	case gateway.PaymentLine:
		p, err := found[Payment](ctx, r.h, flow.KindPayment, l)
		if err != nil || p == nil || p.Gateway != r.gateway {
			return b, unknownLine(l, "the gateway took money for something that is not here"), err
		}
		b.Number = p.ID
		return b, differs(l, p.ID, p.Amount, p.Currency, p.State == flow.AttemptPaid, "the payment is "+string(p.State)+" here",
			"ask the gateway again: refresh payment "+p.ID), nil
	case gateway.RefundLine, gateway.RefundBackLine:
		f, err := found[Refund](ctx, r.h, flow.KindRefund, l)
		if err != nil || f == nil {
			return b, unknownLine(l, "the gateway repaid something that was not asked for here"), err
		}
		b.Number = f.ID
		want, amount := flow.RefundDone, -f.Amount
		if l.Kind == gateway.RefundBackLine {
			want, amount = flow.RefundFailed, f.Amount
		}
		gone := f.State == flow.RefundFailed && l.Kind == gateway.RefundLine // it went, and came back: two lines
		return b, differs(l, f.ID, amount, f.Currency, f.State == want || gone, "the refund is "+string(f.State)+" here",
			"look at the refund at the gateway; its task asks again until it is final"), nil
	case gateway.PayoutLine, gateway.PayoutBackLine:
		p, diff, err := r.matchPayout(ctx, l)
		if p != nil {
			b.Number = p.ID
		}
		return b, diff, err
	case gateway.SettledLine:
		b.Settled = true
		return b, nil, nil
	}
	return b, &Difference{Kind: NotUnderstood, Detail: "a line of a kind that is not booked by itself", Todo: "book it by a transfer"}, nil
}

// found finds a document by our number, or else by the gateway's id; nil = it is
// not here.
func found[T any](ctx context.Context, h *Holdfast, kind string, l gateway.StatementLine) (*T, error) {
	q := ledger.RecordQuery{Kind: kind, ID: l.Number, Limit: 1}
	if l.Number == "" {
		q.Ref = l.Ref
	}
	if q.ID == "" && q.Ref == "" {
		return nil, nil
	}
	rs, err := h.store.Records(ctx, q)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	var v T
	return &v, flow.Decode(rs[0], &v)
}

func unknownLine(l gateway.StatementLine, why string) *Difference {
	return &Difference{Kind: MissingHere, Detail: why, Todo: "if it is this shop's, find out who made it; then book it by a transfer"}
}

func differs(l gateway.StatementLine, number string, amount int64, currency string, booked bool, state, todo string) *Difference {
	here := int64(0)
	if booked && l.Currency == currency {
		here = amount
	}
	switch {
	case l.Amount != amount || l.Currency != currency:
		return &Difference{Kind: OtherAmount, Number: number, Here: here, Detail: fmt.Sprintf("%d %s here, %d %s there", amount, currency, l.Amount, l.Currency),
			Todo: "ask the gateway which is right"}
	case !booked:
		return &Difference{Kind: OtherState, Number: number, Detail: state, Todo: todo}
	}
	return nil
}

func (r *reconciling) differ(l gateway.StatementLine, d Difference) {
	d.About, d.Ref, d.Line, d.There, d.Currency = string(l.Kind), l.Ref, l.ID, l.Amount, l.Currency
	if d.Number == "" {
		d.Number = l.Number
	}
	r.amiss[d.About+"/"+d.Number] = true
	r.sum(l.Currency).Here += d.Here
	r.out.Differences = append(r.out.Differences, d)
}

func (r *reconciling) sum(currency string) *Sum {
	if r.sums[currency] == nil {
		r.sums[currency] = &Sum{Currency: currency}
	}
	return r.sums[currency]
}
