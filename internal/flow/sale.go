package flow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Sale is a window of time in which an item is sold on terms of its own.
type Sale struct {
	ID          string `json:"id"`
	Version     int64  `json:"version"`
	SKU         string `json:"sku"`
	OpensAt     Time   `json:"opens_at"`               // the first moment of the window
	ClosesAt    Time   `json:"closes_at"`              // the first moment after it
	Price       int64  `json:"price"`                  // of one piece, minor units of the item's currency
	PerCustomer int64  `json:"per_customer,omitempty"` // pieces that one customer may have; 0 = no limit
	HoldFor     int64  `json:"hold_for,omitempty"`     // seconds; 0 = the item's
	Late        []Late `json:"late_policy,omitempty"`  // tried in order; nil = the item's
	// SoldOutside: outside of the window the item is sold on its own terms;
	// otherwise not at all.
	SoldOutside bool   `json:"sold_outside"`
	Preset      string `json:"preset,omitempty"` // how the server has to write its orders; "" = however it does
}

// Calendar is the sales of one SKU that matter: those that have not closed, and
// the last that has. It is one record, so that two sales that overlap can't both
// be written.
type Calendar struct {
	Version int64  `json:"version"`
	Sales   []Sale `json:"sales"` // by time; they do not overlap
}

// At is the sale that decides at now: the one that is open, else the next to
// open, else the last that closed; false = none.
func (c Calendar) At(now Time) (Sale, bool) {
	for _, s := range c.Sales {
		if now < s.ClosesAt {
			return s, true
		}
	}
	if n := len(c.Sales); n > 0 {
		return c.Sales[n-1], true
	}
	return Sale{}, false
}

// Put is the calendar with s, in place of its older version if there is one,
// and without what does not matter after now. Another sale that s overlaps comes
// back instead.
func (c Calendar) Put(s Sale, now Time) (Calendar, *Sale) {
	next := Calendar{Version: c.Version + 1, Sales: []Sale{s}}
	for _, o := range c.Sales {
		if o.ID == s.ID {
			continue
		}
		if o.OpensAt < s.ClosesAt && s.OpensAt < o.ClosesAt {
			return c, &o
		}
		next.Sales = append(next.Sales, o)
	}
	slices.SortFunc(next.Sales, func(a, b Sale) int { return cmp.Compare(a.OpensAt, b.OpensAt) })
	for len(next.Sales) > 1 && next.Sales[1].ClosesAt <= now {
		next.Sales = next.Sales[1:]
	}
	return next, nil
}

// Kinds of records about sales.
const (
	KindSale      = "sale"
	KindCalendar  = "calendar"  // by SKU
	KindAllowance = "allowance" // what a customer was given for a sale; by sale/customer
)

// Record is the sale as it is stored.
func (s Sale) Record() ledger.Record {
	return ledger.Record{Kind: KindSale, ID: s.ID, Version: s.Version, Owner: SKUOwner(s.SKU), Body: marshal(s)}
}

// Record is the calendar as it is stored.
func (c Calendar) Record(sku string) ledger.Record {
	return ledger.Record{Kind: KindCalendar, ID: sku, Version: c.Version, Body: marshal(c)}
}

// SKUOwner is the owner of a SKU's sales.
func SKUOwner(sku string) string { return "sku/" + sku }

// Limits is where allowances come from.
const Limits ledger.Account = "@limit"

// Allowance is what a customer may still have of a sale, and Used what the
// customer's paid orders have taken of it. What unpaid orders take is held.
func Allowance(customer string) ledger.Account { return ledger.Account("allowance/" + customer) }

// Used is the other side of Allowance.
func Used(customer string) ledger.Account { return ledger.Account("used/" + customer) }

// Limit is the asset that a sale's allowances are in: pieces.
func Limit(sale string) ledger.Asset { return ledger.Asset("limit:" + sale) }

// AllowanceID names the hold on the allowance of an order's line.
func AllowanceID(order string, line int) string { return HoldID(order, line) + "-a" }

// Grant gives a customer the allowance of a sale. Its record has but one
// version, so that the ledger takes the second grant for stale.
type Grant struct {
	Op     ledger.Op
	Record ledger.Record
}

// Given is the document of a Grant.
type Given struct {
	Sale     string `json:"sale"`
	Customer string `json:"customer"`
	Granted  int64  `json:"granted"` // pieces
}

// Grants are the allowances that the lines of o draw on.
func (o Order) Grants() []Grant {
	var out []Grant
	for _, l := range o.Lines {
		if l.PerCustomer == 0 {
			continue
		}
		out = append(out, Grant{
			Op: ledger.Move(ledger.Posting{From: Limits, To: Allowance(o.Customer), Asset: Limit(l.Sale), Amount: l.PerCustomer}),
			Record: ledger.Record{Kind: KindAllowance, ID: fmt.Sprintf("%s/%s", l.Sale, o.Customer), Version: 1,
				Body: marshal(Given{l.Sale, o.Customer, l.PerCustomer})},
		})
	}
	return out
}
