package holdfast

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// walletParts begin the names of the accounts that only documents about wallets
// and payouts explain.
var walletParts = []string{"wallet/", "@floor/", "spent/", string(flow.PayoutFees),
	"receivable/", string(flow.Advanced), string(flow.Owing)}

// explained says whether an account must have what the documents say, even if
// they say nothing.
func explained(a ledger.Account) bool {
	return a == flow.Limits || strings.HasPrefix(string(a), "used/") ||
		slices.ContainsFunc(walletParts, func(p string) bool { return strings.HasPrefix(string(a), p) })
}

// wallets collects what transfers, holds, payouts and limits say of the balances,
// and holds every hold and payout against what it has in the ledger, and every
// payout that is not over against its task.
func (v *orderVerifier) wallets(ctx context.Context) error {
	if err := eachDocument(ctx, v.r, flow.KindTransfer, func(_ ledger.Record, t Transfer) {
		if t.To == string(flow.Advanced) {
			v.owes(t.From, t.Currency, -t.Amount)
		}
		v.moved(t.From, t.To, t.Currency, t.Amount)
	}); err != nil {
		return err
	}
	if err := eachDocument(ctx, v.r, flow.KindHold, func(r ledger.Record, w WalletHold) {
		v.moved(w.From, w.To, w.Currency, w.Committed)
		v.part("hold", r, string(w.State), w.Version, w.ID, w.Currency, w.Amount, w.State)
	}); err != nil {
		return err
	}
	tasks := map[string]string{}
	if err := eachDocument(ctx, v.r, flow.KindTask, func(r ledger.Record, t Task) {
		if t.Due > 0 {
			tasks[t.ID] = r.State
		}
	}); err != nil {
		return err
	}
	if err := eachDocument(ctx, v.r, flow.KindPayout, func(r ledger.Record, p Payout) {
		v.payout(r, p, tasks[p.ID])
		if p.Over {
			v.over[ledger.Key{Account: flow.Room(p.Account), Asset: ledger.Asset(p.Currency)}] = true
		}
	}); err != nil {
		return err
	}
	return eachDocument(ctx, v.r, flow.KindAccount, func(_ ledger.Record, a Account) {
		for _, t := range a.Terms {
			asset := ledger.Asset(t.Currency)
			room := ledger.Key{Account: flow.Room(a.ID), Asset: asset}
			if t.Ceiling > 0 && !v.over[room] {
				v.want[room] += t.Ceiling - v.want[ledger.Key{Account: flow.Wallet(a.ID), Asset: asset}]
			}
			v.want[ledger.Key{Account: flow.Wallet(a.ID), Asset: asset}] -= t.Floor
			v.want[ledger.Key{Account: flow.Floor(a.ID), Asset: asset}] += t.Floor
		}
	})
}

func (v *orderVerifier) moved(from, to, currency string, amount int64) {
	for account, n := range map[string]int64{from: -amount, to: amount} {
		if account != string(flow.Bank) && account != string(flow.Advanced) {
			v.want[ledger.Key{Account: flow.Wallet(account), Asset: ledger.Asset(currency)}] += n
		}
	}
}

// owes says that an account owes amount more.
func (v *orderVerifier) owes(account, currency string, amount int64) {
	asset := ledger.Asset(currency)
	v.want[ledger.Key{Account: flow.Receivable(account), Asset: asset}] += amount
	v.want[ledger.Key{Account: flow.Advanced, Asset: asset}] -= amount
	v.want[ledger.Key{Account: flow.Owing, Asset: asset}] -= amount
}

// splits holds what an order gave to accounts, and has taken back, against its
// refunds, and collects what each has of it, and owes.
func (v *orderVerifier) splits(o Order) {
	asset := ledger.Asset(o.Currency)
	ours, back := o.Paid-o.Refunded-o.Refunding, map[string]int64{}
	for _, f := range v.refunds[o.ID] {
		for _, p := range f.Splits {
			if f.State != flow.RefundRefused && f.State != flow.RefundFailed {
				back[p.Account] += p.Amount
			}
			v.owes(p.Account, o.Currency, p.Receivable)
			v.want[ledger.Key{Account: flow.Wallet(p.Account), Asset: asset}] += p.Receivable
		}
	}
	for _, s := range o.Splits {
		if s.Refunded != back[s.Account] || s.Refunded > s.Amount {
			v.rep.Found(0, "order", "%s: %d of %s's %d is taken back, its refunds say %d", o.ID, s.Refunded, s.Account, s.Amount, back[s.Account])
		}
		if s.Over {
			v.over[ledger.Key{Account: flow.Room(s.Account), Asset: asset}] = true
		}
		if o.PaidAt != 0 {
			v.want[ledger.Key{Account: flow.Wallet(s.Account), Asset: asset}] += s.Amount - s.Refunded
			ours -= s.Amount - s.Refunded
		}
	}
	v.want[ledger.Key{Account: flow.Revenue, Asset: asset}] += ours
}

// part holds a document and its record against one of its holds.
func (v *orderVerifier) part(kind string, r ledger.Record, state string, version int64, hold, asset string, amount int64, want ledger.HoldState) {
	if r.State != state || r.Version != version {
		v.rep.Found(0, kind, "%s: the record's attributes are not the document's", r.ID)
	}
	if h := v.holds[hold]; h.State != want || h.Amount != amount || string(h.Asset) != asset {
		v.rep.Found(0, kind, "%s is %s, its hold %s of %d %s is %s of %d %s", r.ID, state, hold, amount, asset, h.State, h.Amount, h.Asset)
	}
}

func (v *orderVerifier) payout(r ledger.Record, p Payout, task string) {
	want, left := ledger.Held, p.State == flow.PayoutPaid || p.State == flow.PayoutReturned
	switch {
	case left:
		want = ledger.Committed
	case p.State == flow.PayoutFailed || p.State == flow.PayoutCancelled:
		want = ledger.Voided
	case p.State != flow.PayoutPending && task != flow.TaskReady:
		v.rep.Found(0, "payout", "%s is %s, and nobody is to ask what became of it", p.ID, p.State)
	}
	v.part("payout", r, string(p.State), p.Version, p.ID, p.Currency, p.Amount, want)
	if p.Fee > 0 {
		v.part("payout", r, string(p.State), p.Version, flow.FeeID(p.ID), p.Currency, p.Fee, want)
	}
	if p.Day != "" {
		v.part("payout", r, string(p.State), p.Version, flow.DayID(p.ID), string(flow.Day(p.Currency, p.Day)), p.Amount, want)
	}
	if !left {
		return
	}
	money := ledger.Asset(p.Currency)
	sent := p.Amount
	if p.State == flow.PayoutReturned {
		sent = 0
	}
	v.want[ledger.Key{Account: flow.Wallet(p.Account), Asset: money}] -= sent + p.Fee
	v.want[ledger.Key{Account: flow.Clearing(p.Gateway), Asset: money}] += sent
	v.want[ledger.Key{Account: flow.PayoutFees, Asset: money}] += p.Fee
	if p.Day != "" {
		v.want[ledger.Key{Account: flow.Spent(p.Account), Asset: flow.Day(p.Currency, p.Day)}] += p.Amount
	}
}

// eachDocument visits all documents of a kind, with their records.
func eachDocument[T any](ctx context.Context, r ledger.Reader, kind string, visit func(ledger.Record, T)) error {
	return eachRecord(ctx, r, kind, func(rec ledger.Record) error {
		var doc T
		if err := flow.Decode(rec, &doc); err != nil {
			return err
		}
		visit(rec, doc)
		return nil
	})
}
