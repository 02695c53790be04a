package audit

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// history is a small shop: 3 tees, of which ann has bought one; bob's order
// expired; cid paid too late, and the gateway has sent the money back.
type history struct {
	entries []ledger.Entry
	books   Books
	willing Willing
}

const price = 1990

func pieces(from, to ledger.Account, n int64) ledger.Op {
	return ledger.Move(ledger.Posting{From: from, To: to, Asset: flow.Pieces("tee"), Amount: n})
}

func money(from, to ledger.Account, n int64) ledger.Op {
	return ledger.Move(ledger.Posting{From: from, To: to, Asset: "EUR", Amount: n})
}

func hold(id string) ledger.Op {
	return ledger.Reserve(id, ledger.Posting{From: flow.Stock, To: flow.Sold, Asset: flow.Pieces("tee"), Amount: 1}, 0, 0)
}

func record(kind, id, state string, version int64, body any) ledger.Record {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return ledger.Record{Kind: kind, ID: id, Version: version, State: state, Body: b}
}

func order(id string, version int64, state flow.State, paid int64) ledger.Record {
	o := flow.Order{ID: id, Version: version, State: state, Customer: id, Currency: "EUR", Total: price, Paid: paid,
		Lines: []flow.Line{{SKU: "tee", Quantity: 1, Price: price}}}
	if paid > 0 {
		o.PaidAt = 1
	}
	return record(flow.KindOrder, id, string(state), version, o)
}

func charge(order string, captured, refunded int64) Charge {
	return Charge{Order: order, Currency: "EUR", Captured: captured, Refunded: refunded}
}

// took adds a charge to the books of a gateway.
func (h *history) took(gateway string, c Charge) { h.books[gateway] = append(h.books[gateway], c) }

func honest() *history {
	stripe := flow.Clearing("stripe")
	return &history{
		entries: []ledger.Entry{
			{ID: "received", Ops: []ledger.Op{pieces(flow.Supplier, flow.Stock, 3)}},
			{ID: "ann-1", Ops: []ledger.Op{hold("ann")}, Records: []ledger.Record{order("ann", 1, flow.Held, 0)}},
			{ID: "bob-1", Ops: []ledger.Op{hold("bob")}, Records: []ledger.Record{order("bob", 1, flow.Held, 0)}},
			{ID: "cid-1", Ops: []ledger.Op{hold("cid")}, Records: []ledger.Record{order("cid", 1, flow.Held, 0)}},
			{ID: "ann-2", Ops: []ledger.Op{ledger.Commit("ann"), money(stripe, flow.Revenue, price)}, Records: []ledger.Record{order("ann", 2, flow.Paid, price)}},
			{ID: "bob-2", Ops: []ledger.Op{ledger.Void("bob")}, Records: []ledger.Record{order("bob", 2, flow.Expired, 0)}},
			{ID: "cid-2", Ops: []ledger.Op{ledger.Void("cid")}, Records: []ledger.Record{order("cid", 2, flow.Expired, 0)}},
			{ID: "cid-3", Ops: []ledger.Op{money(stripe, flow.RefundsDue("cid"), price)}, Records: []ledger.Record{order("cid", 3, flow.Refunding, 0)}},
			{ID: "cid-4", Ops: []ledger.Op{money(flow.RefundsDue("cid"), stripe, price)}, Records: []ledger.Record{order("cid", 4, flow.Refunded, 0)}},
		},
		books:   Books{"stripe": {charge("ann", price, 0), charge("cid", price, price)}, "alipay": nil},
		willing: Willing{"tee": {"ann"}},
	}
}

func (h *history) add(id string, ops []ledger.Op, records ...ledger.Record) {
	h.entries = append(h.entries, ledger.Entry{ID: id, Ops: ops, Records: records})
}

// drop leaves an entry out.
func (h *history) drop(id string) {
	h.entries = slices.DeleteFunc(h.entries, func(e ledger.Entry) bool { return e.ID == id })
}

func (h *history) check(t *testing.T) Verdict {
	t.Helper()
	m := ledger.NewMemory(time.Now)
	for _, e := range h.entries {
		res, err := m.Apply(t.Context(), e)
		if err != nil || res[0].Refused() {
			t.Fatalf("entry %s: %+v, %v", e.ID, res, err)
		}
	}
	v, err := Check(t.Context(), m, h.books, h.willing)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAnHonestHistoryPasses(t *testing.T) {
	v := honest().check(t)
	if !v.OK() || v.Sold != 1 || v.Refunded != 1 || len(v.Problems) != 0 {
		t.Errorf("got %+v, want 1 sold, 1 refunded and no problem", v)
	}
}

func TestEachBrokenPromiseIsFound(t *testing.T) {
	stripe := flow.Clearing("stripe")
	for _, c := range []struct {
		name   string
		broken func(*history)
		want   Verdict // its counts
	}{
		{"sold out of nowhere", func(h *history) {
			h.add("conjured", []ledger.Op{pieces("@nowhere", flow.Sold, 4)})
		}, Verdict{Sold: 5, Oversold: 2, Refunded: 1}},
		{"received and gone", func(h *history) {
			// Sold twice over in the books of stock, once from elsewhere: 3 received, 1 sold, 1 left.
			h.add("stolen", []ledger.Op{pieces(flow.Stock, flow.Sold, 1), pieces(flow.Sold, "cellar", 1)})
		}, Verdict{Sold: 1, Undersold: 1, Refunded: 1}},
		{"a buyer went away though there was one", func(h *history) {
			h.willing["tee"] = append(h.willing["tee"], "dan")
		}, Verdict{Sold: 1, Undersold: 1, Refunded: 1}},
		{"charged twice", func(h *history) {
			h.took("stripe", charge("ann", price, 0))
		}, Verdict{Sold: 1, DoubleCharged: 1, Disagreements: 1, Refunded: 1}},
		{"charged twice, by two gateways", func(h *history) {
			h.took("alipay", charge("ann", price, 0))
		}, Verdict{Sold: 1, DoubleCharged: 1, Disagreements: 1, Refunded: 1}},
		{"booked at another gateway than the one that took it", func(h *history) {
			h.took("alipay", h.books["stripe"][0])
			h.books["stripe"] = h.books["stripe"][1:]
		}, Verdict{Sold: 1, Disagreements: 2, Refunded: 1}},
		{"charged twice, repaid in part", func(h *history) {
			h.took("stripe", charge("ann", price, 1000))
		}, Verdict{Sold: 1, DoubleCharged: 1, Disagreements: 1, Refunded: 2}},
		{"charged twice and repaid", func(h *history) {
			h.took("stripe", charge("ann", price, price))
		}, Verdict{Sold: 1, Refunded: 2}},
		{"paid and expired", func(h *history) {
			h.took("stripe", charge("bob", price, 0))
		}, Verdict{Sold: 1, PaidWithoutGoods: 1, Disagreements: 1, Refunded: 1}},
		{"said to be paid, and the goods did not move", func(h *history) {
			h.drop("bob-2")
			h.add("bob-2", []ledger.Op{ledger.Void("bob"), money(stripe, flow.Revenue, price)}, order("bob", 2, flow.Paid, price))
			h.took("stripe", charge("bob", price, 0))
		}, Verdict{Sold: 1, PaidWithoutGoods: 1, Refunded: 1}},
		{"money of an unknown order", func(h *history) {
			h.took("stripe", charge("eve", price, 0))
		}, Verdict{Sold: 1, PaidWithoutGoods: 1, Disagreements: 1, Refunded: 1}},
		{"paid, says the journal alone", func(h *history) {
			h.books["stripe"] = h.books["stripe"][1:]
		}, Verdict{Sold: 1, Disagreements: 2, Refunded: 1}},
		{"still held", func(h *history) { h.drop("bob-2") }, Verdict{Sold: 1, Stuck: 2, Refunded: 1}},
		{"late money still due", func(h *history) {
			h.drop("cid-4")
			h.books["stripe"][1].Refunded = 0
		}, Verdict{Sold: 1, PaidWithoutGoods: 1, Stuck: 2}},
		{"a task given up", func(h *history) {
			h.add("task", nil, record(flow.KindTask, "t", flow.TaskStuck, 1, flow.Task{ID: "t"}))
		}, Verdict{Sold: 1, Stuck: 1, Refunded: 1}},
		{"a payment still open", func(h *history) {
			h.add("payment", nil, record(flow.KindPayment, "p", string(flow.Open), 1, flow.Payment{ID: "p"}))
		}, Verdict{Sold: 1, Stuck: 1, Refunded: 1}},
	} {
		h := honest()
		c.broken(h)
		v := h.check(t)
		said := v.Problems
		v.Problems = nil
		if !equal(v, c.want) {
			t.Errorf("%s: got %+v, want %+v\n%q", c.name, v, c.want, said)
		}
		if v.OK() != (len(said) == 0) {
			t.Errorf("%s: OK is %v, with the problems %q", c.name, v.OK(), said)
		}
	}
}

func equal(a, b Verdict) bool {
	return a.Sold == b.Sold && a.Oversold == b.Oversold && a.Undersold == b.Undersold && a.DoubleCharged == b.DoubleCharged &&
		a.PaidWithoutGoods == b.PaidWithoutGoods && a.Refunded == b.Refunded && a.Stuck == b.Stuck && a.Disagreements == b.Disagreements
}

func TestAtRestSeesWhatIsDue(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*history)
		want   bool
	}{
		{"honest", func(*history) {}, true},
		{"held", func(h *history) { h.drop("bob-2") }, false},
		{"something due", func(h *history) {
			r := record("other", "x", "", 1, nil)
			r.Due = 1
			h.add("due", nil, r)
		}, false},
	} {
		h := honest()
		c.change(h)
		m := ledger.NewMemory(time.Now)
		if _, err := m.Apply(t.Context(), h.entries...); err != nil {
			t.Fatal(err)
		}
		if got, err := AtRest(t.Context(), m); got != c.want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
