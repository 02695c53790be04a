package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Verify recomputes everything from the journal (ledger.Verify), and then holds
// every order against the ledger: its state against its holds, its amounts
// against its payments, refunds and splits, what is due to buyers against the balances,
// the clearing accounts and what customers have used of their allowances against
// all of it, and the sales against their calendars. Wallets are held against the
// transfers, holds, payouts, splits and limits that explain them. progress may be nil.
func (h *Holdfast) Verify(ctx context.Context, progress func(done, total int64)) (ledger.Report, error) {
	var rep ledger.Report
	err := h.store.Snapshot(ctx, func(r ledger.Reader) (err error) {
		if rep, err = ledger.Verify(ctx, r, progress); err != nil {
			return err
		}
		v := orderVerifier{r: r, rep: &rep, due: map[string]int64{}, want: map[ledger.Key]int64{}, over: map[ledger.Key]bool{}}
		return v.run(ctx)
	})
	if err != nil {
		return rep, fmt.Errorf("holdfast: verify: %w", err)
	}
	return rep, nil
}

type orderVerifier struct {
	r        ledger.Reader
	rep      *ledger.Report
	payments map[string][]Payment // by order
	refunds  map[string][]Refund
	holds    map[string]ledger.Hold
	due      map[string]int64     // what each order's buyer must get back
	want     map[ledger.Key]int64 // what the documents say of clearing accounts, allowances and wallets
	over     map[ledger.Key]bool  // rooms of accounts that got more than their ceiling
}

func (v *orderVerifier) run(ctx context.Context) error {
	var err error
	if v.payments, err = byOrder[Payment](ctx, v.r, flow.KindPayment); err != nil {
		return err
	}
	if v.refunds, err = byOrder[Refund](ctx, v.r, flow.KindRefund); err != nil {
		return err
	}
	v.holds = map[string]ledger.Hold{}
	for after := ""; ; {
		page, err := v.r.Holds(ctx, ledger.HoldQuery{After: after})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, hold := range page {
			v.holds[hold.ID] = hold
		}
		after = page[len(page)-1].ID
	}
	if err := eachRecord(ctx, v.r, flow.KindOrder, func(r ledger.Record) error {
		var o Order
		if err := flow.Decode(r, &o); err != nil {
			return err
		}
		v.order(r, o)
		return nil
	}); err != nil {
		return err
	}
	if err := v.sales(ctx); err != nil {
		return err
	}
	if err := v.statements(ctx); err != nil {
		return err
	}
	if err := v.wallets(ctx); err != nil {
		return err
	}
	return v.balances(ctx)
}

// statements collects what was booked from the gateways' statements.
func (v *orderVerifier) statements(ctx context.Context) error {
	return eachRecord(ctx, v.r, flow.KindBooked, func(r ledger.Record) error {
		var b flow.Booked
		if err := flow.Decode(r, &b); err != nil {
			return err
		}
		v.want[ledger.Key{Account: flow.Clearing(b.Gateway), Asset: ledger.Asset(b.Currency)}] += b.Cleared()
		v.want[ledger.Key{Account: flow.Fees(b.Gateway), Asset: ledger.Asset(b.Currency)}] -= b.Fee
		return nil
	})
}

// holdStates are what an order's holds may be in each of its states. Money that
// came late buys goods without a hold, or none.
func holdStates(o Order) []ledger.HoldState {
	switch o.State {
	case flow.Held, flow.Paying, flow.Closing:
		return []ledger.HoldState{ledger.Held}
	case flow.Expired, flow.Cancelled, flow.Refunding:
		return []ledger.HoldState{ledger.Expired, ledger.Voided}
	}
	if o.PaidAt == 0 {
		return []ledger.HoldState{ledger.Expired, ledger.Voided}
	}
	return []ledger.HoldState{ledger.Committed, ledger.Expired}
}

func (v *orderVerifier) order(r ledger.Record, o Order) {
	if r.State != string(o.State) || r.Version != o.Version || r.ID != o.ID {
		v.rep.Found(0, "order", "%s: the record's attributes are not the document's", r.ID)
	}
	for i, l := range o.Lines {
		v.hold(o, flow.HoldID(o.ID, i), flow.Pieces(l.SKU), l.Quantity)
		if l.PerCustomer == 0 {
			continue
		}
		v.hold(o, flow.AllowanceID(o.ID, i), flow.Limit(l.Sale), l.Quantity)
		if o.PaidAt != 0 {
			v.want[ledger.Key{Account: flow.Used(o.Customer), Asset: flow.Limit(l.Sale)}] += l.Quantity - l.Restocked
		}
	}
	v.splits(o)
	var refunded, refunding, late int64
	broken := map[string]int64{} // of a payment whose late money the gateway did not repay
	for _, f := range v.refunds[o.ID] {
		under := f.State == flow.RefundRequested || f.State == flow.RefundAccepted
		if f.Late {
			delete(broken, f.Payment)
		}
		switch {
		case f.Late && under:
			late += f.Amount
		case f.Late && f.State != flow.RefundDone:
			broken[f.Payment] = f.Amount
		case under:
			refunding += f.Amount
		case f.State == flow.RefundDone && !f.Late:
			refunded += f.Amount
		}
		if f.State == flow.RefundDone {
			v.clear(v.payments[o.ID], f.Payment, -f.Amount)
		}
	}
	for _, n := range broken {
		late += n
	}
	if refunded != o.Refunded || refunding != o.Refunding {
		v.rep.Found(0, "order", "%s: refunded %d and refunding %d, its refunds say %d and %d", o.ID, o.Refunded, o.Refunding, refunded, refunding)
	}
	v.due[o.ID] = late + refunding
	collected := 0
	for _, p := range v.payments[o.ID] {
		if p.State != flow.AttemptPaid {
			continue
		}
		v.clear(v.payments[o.ID], p.ID, p.Amount)
		if !p.Surplus && o.PaidAt != 0 {
			collected++
		}
	}
	if want := min(o.Paid, 1); int64(collected) != want || (o.Paid != 0 && o.Paid != o.Total) {
		v.rep.Found(0, "order", "%s: paid %d of %d through %d payments", o.ID, o.Paid, o.Total, collected)
	}
}

func (v *orderVerifier) hold(o Order, id string, asset ledger.Asset, amount int64) {
	hold := v.holds[id]
	if !slices.Contains(holdStates(o), hold.State) || hold.Amount != amount || hold.Asset != asset {
		v.rep.Found(0, "order", "%s is %s, its hold %s of %d %s is %s of %d %s", o.ID, o.State, id, amount, asset, hold.State, hold.Amount, hold.Asset)
	}
}

// sales holds every sale against the calendar that keeps it from overlapping,
// and collects what customers were given.
func (v *orderVerifier) sales(ctx context.Context) error {
	stored := map[string]string{} // sales, as they are written
	if err := eachRecord(ctx, v.r, flow.KindSale, func(r ledger.Record) error {
		var s Sale
		if err := flow.Decode(r, &s); err != nil {
			return err
		}
		stored[r.ID] = string(s.Record().Body)
		return nil
	}); err != nil {
		return err
	}
	if err := eachRecord(ctx, v.r, flow.KindCalendar, func(r ledger.Record) error {
		var c flow.Calendar
		if err := flow.Decode(r, &c); err != nil {
			return err
		}
		for i, s := range c.Sales {
			if s.SKU != r.ID || stored[s.ID] != string(s.Record().Body) || (i > 0 && s.OpensAt < c.Sales[i-1].ClosesAt) {
				v.rep.Found(0, "sale", "%s: the calendar of %s does not agree with it, or two sales overlap", s.ID, r.ID)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return eachRecord(ctx, v.r, flow.KindAllowance, func(r ledger.Record) error {
		var a flow.Given
		if err := flow.Decode(r, &a); err != nil {
			return err
		}
		v.want[ledger.Key{Account: flow.Limits, Asset: flow.Limit(a.Sale)}] -= a.Granted
		return nil
	})
}

func (v *orderVerifier) clear(ps []Payment, id string, amount int64) {
	for _, p := range ps {
		if p.ID == id {
			v.want[ledger.Key{Account: flow.Clearing(p.Gateway), Asset: ledger.Asset(p.Currency)}] -= amount
		}
	}
}

// balances compares what the documents say with the ledger.
func (v *orderVerifier) balances(ctx context.Context) error {
	for after := (ledger.Key{}); ; {
		page, err := v.r.Balances(ctx, ledger.BalanceQuery{After: after})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, b := range page {
			if order, ok := strings.CutPrefix(string(b.Account), "refunds-due/"); ok {
				if b.Posted != v.due[order] {
					v.rep.Found(0, "refunds due", "order %s: %d %s is due, its refunds say %d", order, b.Posted, b.Asset, v.due[order])
				}
				delete(v.due, order)
			}
			want, ok := v.want[b.Key]
			if (ok || explained(b.Account)) && b.Posted != want {
				v.rep.Found(0, "balance", "%s %s is %d, the documents say %d", b.Account, b.Asset, b.Posted, want)
			}
			delete(v.want, b.Key)
		}
		after = page[len(page)-1].Key
	}
	for order, n := range v.due {
		if n != 0 {
			v.rep.Found(0, "refunds due", "order %s: nothing is booked, its refunds say %d", order, n)
		}
	}
	for k, n := range v.want {
		if n != 0 {
			v.rep.Found(0, "balance", "%s %s: nothing is booked, the documents say %d", k.Account, k.Asset, n)
		}
	}
	return nil
}

// eachRecord visits all records of a kind.
func eachRecord(ctx context.Context, r ledger.Reader, kind string, visit func(ledger.Record) error) error {
	q := ledger.RecordQuery{Kind: kind}
	for {
		page, err := r.Records(ctx, q)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, rec := range page {
			if err := visit(rec); err != nil {
				return err
			}
		}
		q.After = page[len(page)-1].Key()
	}
}

// byOrder reads all documents of a kind, oldest first within their order.
func byOrder[T any](ctx context.Context, r ledger.Reader, kind string) (map[string][]T, error) {
	out := map[string][]T{}
	err := eachRecord(ctx, r, kind, func(rec ledger.Record) error {
		var v T
		if err := flow.Decode(rec, &v); err != nil {
			return err
		}
		out[rec.Owner] = append(out[rec.Owner], v)
		return nil
	})
	return out, err
}
