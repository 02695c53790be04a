package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// Explanation says why a SKU has the available pieces that it has.
type Explanation struct {
	StockLevel
	Holds []ledger.Hold `json:"holds"` // open ones, oldest first, one page
	More  bool          `json:"more"`  // there are more than listed
}

const (
	explainHolds = 100     // holds that an Explanation lists
	explainLines = 200_000 // of the journal, that ExplainAt goes back over
)

// Explain is Stock with the holds behind it, as of one moment.
func (h *Holdfast) Explain(ctx context.Context, sku string) (Explanation, error) {
	var x Explanation
	if _, err := h.item(ctx, sku); err != nil {
		return x, err
	}
	err := h.store.Snapshot(ctx, func(r ledger.Reader) (err error) {
		x, err = explain(ctx, r, sku, nil)
		return err
	})
	return x, err
}

// ExplainAt is Explain for a past moment: what the journal says has happened
// since is taken back. A moment that lies more than 200,000 entries back is
// refused. How long a hold was to last is told as of now.
func (h *Holdfast) ExplainAt(ctx context.Context, sku string, at time.Time) (Explanation, error) {
	var x Explanation
	if _, err := h.item(ctx, sku); err != nil {
		return x, err
	}
	last, err := h.lineAt(ctx, at.UnixMilli())
	if err != nil {
		return x, err
	}
	err = h.store.Snapshot(ctx, func(r ledger.Reader) error {
		head, err := r.Head(ctx)
		if err != nil {
			return fmt.Errorf("holdfast: explain %s at %v: %w", sku, at, err)
		}
		if head.Seq-last > explainLines {
			return reject(CodeInvalidTime, "more than %d entries were written since then", explainLines)
		}
		s := since{asset: flow.Pieces(sku), began: map[string]int64{}, ended: map[string]bool{}}
		if err := s.read(ctx, r, last); err != nil {
			return err
		}
		x, err = explain(ctx, r, sku, &s)
		return err
	})
	return x, err
}

// explain reads the stock and the holds of a SKU, and takes back what has
// happened since; nil = nothing has.
func explain(ctx context.Context, r ledger.Reader, sku string, s *since) (x Explanation, err error) {
	if x.StockLevel, err = stockOf(ctx, r, sku); err != nil {
		return x, err
	}
	if s != nil {
		if err := s.undo(ctx, r, &x); err != nil {
			return x, err
		}
	}
	for after := ""; len(x.Holds) <= explainHolds; {
		page, err := r.Holds(ctx, ledger.HoldQuery{From: flow.Stock, Asset: flow.Pieces(sku), State: ledger.Held, After: after, Limit: explainHolds + 1})
		if err != nil {
			return x, fmt.Errorf("holdfast: explain %s: %w", sku, err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].ID
		for _, hold := range page {
			if s == nil || s.began[hold.ID] == 0 {
				x.Holds = append(x.Holds, hold)
			}
		}
	}
	slices.SortFunc(x.Holds, func(a, b ledger.Hold) int { return strings.Compare(a.ID, b.ID) })
	x.More = len(x.Holds) > explainHolds
	x.Holds = x.Holds[:min(len(x.Holds), explainHolds)]
	return x, nil
}

// since is what has happened to the pieces of a SKU since a moment.
type since struct {
	asset ledger.Asset
	seq   int64            // the last line before
	began map[string]int64 // holds, by id: pieces
	ended map[string]bool  // holds of whatever
}

// read looks through the lines behind seq. A line about the SKU names it, since an
// order is written whole with every change to its holds.
func (s *since) read(ctx context.Context, r ledger.Reader, seq int64) error {
	s.seq = seq
	name, sku := []byte(s.asset), []byte(`"`+strings.TrimPrefix(string(s.asset), "sku:")+`"`)
	for {
		lines, err := r.Lines(ctx, ledger.LineQuery{After: seq})
		if err != nil {
			return fmt.Errorf("holdfast: explain %s: %w", s.asset, err)
		}
		if len(lines) == 0 {
			return nil
		}
		for _, l := range lines {
			if l.Code != ledger.OK || (!bytes.Contains(l.Body, name) && !bytes.Contains(l.Body, sku)) {
				continue
			}
			e, _, err := l.Open()
			if err != nil {
				return fmt.Errorf("holdfast: explain %s: %w", s.asset, err)
			}
			for _, op := range e.Ops {
				switch op.Kind {
				case ledger.KindReserve:
					if op.From == flow.Stock && op.Asset == s.asset {
						s.began[op.Hold] = op.Amount
					}
				case ledger.KindCommit, ledger.KindVoid, ledger.KindExpire:
					s.ended[op.Hold] = true
				}
			}
		}
		seq = lines[len(lines)-1].Seq
	}
}

// undo takes back the postings and the holds.
func (s *since) undo(ctx context.Context, r ledger.Reader, x *Explanation) error {
	for after := s.seq; ; {
		page, err := r.Postings(ctx, ledger.PostingQuery{Asset: s.asset, After: after})
		if err != nil {
			return fmt.Errorf("holdfast: explain %s: %w", s.asset, err)
		}
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			x.add(p.From, p.Amount)
			x.add(p.To, -p.Amount)
		}
		after = page[len(page)-1].Seq
	}
	for id, pieces := range s.began {
		if !s.ended[id] {
			x.Held -= pieces
		}
	}
	for id := range s.ended {
		if s.began[id] != 0 {
			continue
		}
		found, err := r.Holds(ctx, ledger.HoldQuery{ID: id})
		if err != nil {
			return fmt.Errorf("holdfast: explain %s: %w", s.asset, err)
		}
		if len(found) == 1 && found[0].From == flow.Stock && found[0].Asset == s.asset {
			hold := found[0]
			hold.State, hold.Committed, hold.Released = ledger.Held, 0, 0
			x.Held += hold.Amount
			x.Holds = append(x.Holds, hold)
		}
	}
	x.Available = x.OnHand - x.Held
	return nil
}

// Movement is one posting that changed how many pieces of a SKU are on hand.
type Movement struct {
	Seq      int64  `json:"seq"` // of its entry in the journal
	At       Time   `json:"at"`
	Quantity int64  `json:"quantity"` // pieces; below zero: they left
	Kind     string `json:"kind"`     // received, written_off, sold, restocked or moved
	Order    string `json:"order,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Entry    string `json:"entry"` // its id
}

// Movements lists what changed the pieces of a SKU on hand, newest first: those of
// at most limit postings before an entry (0 = from the end), and whether there are
// more.
func (h *Holdfast) Movements(ctx context.Context, sku string, before int64, limit int) (out []Movement, more bool, err error) {
	if _, err := h.item(ctx, sku); err != nil {
		return nil, false, err
	}
	rows, err := h.store.Postings(ctx, ledger.PostingQuery{Account: flow.Stock, Asset: flow.Pieces(sku), Desc: true, After: before, Limit: limit})
	if err != nil {
		return nil, false, fmt.Errorf("holdfast: movements of %s: %w", sku, err)
	}
	for _, p := range rows {
		m, err := h.movement(ctx, p)
		if err != nil {
			return nil, false, err
		}
		out = append(out, m)
	}
	return out, len(rows) >= limit, nil
}

func (h *Holdfast) movement(ctx context.Context, p ledger.Posted) (Movement, error) {
	m := Movement{Seq: p.Seq, Quantity: p.Amount, Kind: "moved"}
	if p.From == flow.Stock {
		m.Quantity = -p.Amount
	}
	switch {
	case p.From == flow.Supplier:
		m.Kind = "received"
	case p.To == flow.Shrinkage:
		m.Kind = "written_off"
	case p.To == flow.Sold:
		m.Kind = "sold"
	case p.From == flow.Sold, p.From == flow.Delivered:
		m.Kind = "restocked"
	}
	l, err := h.line(ctx, p.Seq)
	if err != nil {
		return m, err
	}
	e, _, err := l.Open()
	if err != nil {
		return m, fmt.Errorf("holdfast: movement %d: %w", p.Seq, err)
	}
	m.At, m.Entry = Time(l.At), e.ID
	bodies := make([]json.RawMessage, 0, len(e.Events)+len(e.Records))
	for _, ev := range e.Events {
		bodies = append(bodies, ev.Body)
	}
	for _, r := range e.Records {
		bodies = append(bodies, r.Body)
		if r.Kind == flow.KindOrder {
			m.Order = r.ID
		}
	}
	for _, body := range bodies {
		var said struct{ Reason string }
		if m.Reason == "" && json.Unmarshal(body, &said) == nil {
			m.Reason = said.Reason
		}
	}
	return m, nil
}
