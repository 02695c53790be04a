package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// summary is the overview: what needs somebody, and how the shop is.
type summary struct {
	Waits     []waiting
	Stock     table
	Health    holdfast.Health
	Queued    bool // there is a line
	Sandboxes []place
}

// waiting is something that waits for a person, or for a gateway.
type waiting struct {
	Word, Href, Mood string
	tally
	More bool // there are more than were counted
}

// tally is how many documents were listed, and how much money they are about.
type tally struct {
	Count int
	Sums  []cell // one of each currency; nil = they are about none
}

// Limits of the overview, in rows.
const (
	waitingRows = 200 // that are counted
	stockRows   = 12
)

func overview(d *desk) error {
	ctx := d.r.Context()
	in := summary{Queued: d.core.Stats().Queue != nil}
	var err error
	if in.Health, err = d.core.Health(ctx); err != nil {
		return err
	}
	f := func(state string) holdfast.Filter { return holdfast.Filter{State: state, Limit: waitingRows} }
	for _, w := range []struct {
		word, list, state, mood string
		listed                  func() (tally, error)
	}{
		{"approvals", "payouts", "pending_approval", "warn", worth(payoutWorth)(d.core.Payouts(ctx, holdfast.PayoutFilter{State: "pending_approval", Limit: waitingRows}))},
		{"unknown", "payouts", "unknown", "warn", worth(payoutWorth)(d.core.Payouts(ctx, holdfast.PayoutFilter{State: "unknown", Limit: waitingRows}))},
		{"stuck", "tasks", "stuck", "bad", rowsIn(d.core.Tasks(ctx, f("stuck")))},
		{"quarantined", "notifications", "quarantined", "bad", rowsIn(d.core.Notifications(ctx, f("quarantined")))},
		{"late", "orders", "refunding", "warn", rowsIn(d.core.Orders(ctx, holdfast.OrderFilter{State: "refunding", Limit: waitingRows}))},
		{"refunds", "refunds", "requested", "", worth(refundWorth)(d.core.Refunds(ctx, f("requested")))},
		{"accepted", "refunds", "accepted", "", worth(refundWorth)(d.core.Refunds(ctx, f("accepted")))},
	} {
		n, err := w.listed()
		if err != nil {
			return err
		}
		if n.Count > 0 {
			in.Waits = append(in.Waits, waiting{"admin.waits." + w.word, "/admin/" + w.list + "?state=" + w.state, w.mood, n, n.Count == waitingRows})
		}
	}
	rows, _, err := itemRows(d, query{}, stockRows)
	if err != nil {
		return err
	}
	in.Stock = table{ID: "stock", Columns: []string{"sku", "name", "price", "available", "on_hand", "held", "sold"}, Rows: rows, Empty: "admin.items.none"}
	for _, name := range slices.Sorted(maps.Keys(d.o.Sandboxes)) {
		in.Sandboxes = append(in.Sandboxes, place{Href: d.o.Sandboxes[name], Word: name})
	}
	return d.sheet("admin.overview", in)
}

// rowsIn counts what was listed.
func rowsIn[T any](rows []T, err error) func() (tally, error) {
	return func() (tally, error) { return tally{Count: len(rows)}, err }
}

// worth counts what was listed, and adds up its money; waitingRows amounts can't
// overflow.
func worth[T any](of func(T) (minor int64, currency string)) func([]T, error) func() (tally, error) {
	return func(rows []T, err error) func() (tally, error) {
		sums := map[string]int64{}
		for _, r := range rows {
			minor, currency := of(r)
			sums[currency] += minor
		}
		n := tally{Count: len(rows)}
		for _, currency := range slices.Sorted(maps.Keys(sums)) {
			n.Sums = append(n.Sums, moneyOf(sums[currency], currency))
		}
		return func() (tally, error) { return n, err }
	}
}

func payoutWorth(p holdfast.Payout) (int64, string) { return p.Amount, p.Currency }

func refundWorth(r holdfast.Refund) (int64, string) { return r.Amount, r.Currency }

// figures are counts since this process was started, for the charts.
func figures(d *desk) error {
	s := d.core.Stats()
	out := struct {
		At      int64            `json:"at"` // Unix ms
		Orders  map[string]int64 `json:"orders"`
		Took    []int64          `json:"took"`
		Waiting int64            `json:"waiting"`
		Oldest  int64            `json:"oldest"` // ms
		Workers int              `json:"workers"`
	}{At: time.Now().UnixMilli(), Orders: s.Orders, Took: s.Took}
	if s.Queue != nil {
		out.Waiting, out.Oldest, out.Workers = s.Queue.Waiting, s.Queue.Oldest.Milliseconds(), s.Queue.Workers
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("web: figures: %w", err)
	}
	d.w.Header().Set("Content-Type", "application/json")
	d.w.WriteHeader(http.StatusOK)
	_, _ = d.w.Write(body)
	return nil
}
