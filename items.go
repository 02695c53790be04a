package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-pay/holdfast/internal/flow"
	"github.com/holdfast-pay/holdfast/ledger"
)

// ItemInput is what a caller says of an item.
type ItemInput struct {
	SKU      string            // [A-Za-z0-9_-]{1,64}
	Name     string            // 1..MaxText characters
	Names    map[string]string // by language; nil = none
	Price    int64             // of one piece, minor units of Currency, 1..ledger.MaxAmount
	Currency string            // ISO 4217, upper case
	HoldFor  time.Duration     // whole seconds, MinHold..MaxHold; 0 = the shop's default
	Late     []Late            // for money that comes late; nil = retake, else refund
	IfMatch  int64             // the version that is replaced; 0 = whichever
	Stock    int64             // opening stock in pieces; only a new item takes it
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// maxNames is how many languages an item's name can have.
const maxNames = 20

// normal is in with names that look the same being the same: Unicode NFC.
func (in ItemInput) normal() ItemInput {
	in.Name = norm.NFC.String(in.Name)
	names := make(map[string]string, len(in.Names))
	for lang, name := range in.Names {
		names[lang] = norm.NFC.String(name)
	}
	in.Names = names
	return in
}

func (in ItemInput) check() error {
	if !idForm.MatchString(in.SKU) {
		return reject(CodeInvalidID, "sku: 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if in.Name == "" || !text(in.Name) || len(in.Names) > maxNames {
		return reject(CodeInvalidField, "name: 1 to %d characters, in at most %d languages", MaxText, maxNames)
	}
	for lang, name := range in.Names {
		if !idForm.MatchString(lang) || name == "" || !text(name) {
			return reject(CodeInvalidField, "names: language and name of 1 to %d characters", MaxText)
		}
	}
	if in.Price < 1 || in.Price > ledger.MaxAmount {
		return reject(CodeAmountRange, "price: 1 to %d minor units", int64(ledger.MaxAmount))
	}
	if err := checkCurrency(in.Currency); err != nil {
		return err
	}
	if in.Stock < 0 || in.Stock > ledger.MaxAmount {
		return reject(CodeAmountRange, "stock: 0 to %d pieces", int64(ledger.MaxAmount))
	}
	if in.HoldFor != 0 && !holdInRange(in.HoldFor) {
		return reject(CodeHoldRange, "hold: %v to %v", MinHold, MaxHold)
	}
	return checkLate(in.Late)
}

func checkLate(late []Late) error {
	for _, l := range late {
		if !slices.Contains([]Late{flow.Retake, flow.Backorder, flow.Repay}, l) {
			return reject(CodeInvalidField, "late_policy: %q is none of retake, backorder, refund", l)
		}
	}
	if len(late) > 3 {
		return reject(CodeInvalidField, "late_policy: at most 3")
	}
	return nil
}

func holdInRange(d time.Duration) bool {
	return d >= MinHold && d <= MaxHold && d%time.Second == 0
}

// text says whether s can be stored and shown: short, and valid UTF-8.
func text(s string) bool { return utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxText }

// PutItem creates or replaces an item.
func (h *Holdfast) PutItem(ctx context.Context, key Key, in ItemInput) (Answer[Item], error) {
	if a, ok, err := replayed[Item](ctx, h, key); ok || err != nil {
		return a, err
	}
	if err := in.check(); err != nil {
		return Answer[Item]{}, err
	}
	in = in.normal()
	defer h.items.forget(in.SKU)
	return put(ctx, h, key, func() (ledger.Entry, Item, error) { return h.itemEntry(ctx, in) })
}

func (h *Holdfast) itemEntry(ctx context.Context, in ItemInput) (ledger.Entry, Item, error) {
	old, err := h.Item(ctx, in.SKU)
	var r *Rejection
	if err != nil && !errors.As(err, &r) {
		return ledger.Entry{}, Item{}, err
	}
	if in.IfMatch != 0 && in.IfMatch != old.Version {
		return ledger.Entry{}, Item{}, reject(CodeStale, "item %s is at version %d", in.SKU, old.Version)
	}
	item := Item{SKU: in.SKU, Name: in.Name, Names: in.Names, Price: in.Price, Currency: in.Currency,
		HoldFor: int64(in.HoldFor / time.Second), Late: in.Late, Version: old.Version + 1}
	if item.Late == nil {
		item.Late = []Late{flow.Retake, flow.Repay}
	}
	body, err := json.Marshal(item)
	if err != nil {
		return ledger.Entry{}, item, fmt.Errorf("holdfast: put item %s: %w", in.SKU, err)
	}
	e := ledger.Entry{
		Records: []ledger.Record{{Kind: flow.KindItem, ID: in.SKU, Version: item.Version, Body: body}},
		Events:  []ledger.Event{{Type: "item.updated", Subject: in.SKU, Body: body}},
	}
	if old.Version == 0 && in.Stock > 0 {
		e.Ops = []ledger.Op{ledger.Move(ledger.Posting{From: flow.Supplier, To: flow.Stock, Asset: flow.Pieces(in.SKU), Amount: in.Stock})}
	}
	return e, item, nil
}

// importWidth is how many items PutItems writes at once, so that they share commits.
const importWidth = 64

// PutItems writes many items, each on its own, and calls done after each one.
// It stops at the first error; what was written stays.
func (h *Holdfast) PutItems(ctx context.Context, in []ItemInput, done func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, importWidth)
	for _, item := range in {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if _, err := h.PutItem(ctx, Key{}, item); err != nil {
				cancel(fmt.Errorf("holdfast: item %s: %w", item.SKU, err))
				return
			}
			done()
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// Item finds one item.
func (h *Holdfast) Item(ctx context.Context, sku string) (Item, error) {
	return document[Item](ctx, h, flow.KindItem, sku)
}

// Items lists items by SKU, from the one after after.
func (h *Holdfast) Items(ctx context.Context, after string, limit int) ([]Item, error) {
	q := ledger.RecordQuery{Kind: flow.KindItem, Limit: limit}
	if after != "" {
		q.After = ledger.RecordKey{Kind: flow.KindItem, ID: after}
	}
	rs, err := h.store.Records(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("holdfast: list items: %w", err)
	}
	return documents[Item](rs)
}

// An item or a sale that another node changed is seen after itemMaxAge.
const (
	itemMaxAge   = time.Second
	itemMaxCount = 100_000
)

// item is Item through the cache: it saves a read for every order.
func (h *Holdfast) item(ctx context.Context, sku string) (Item, error) {
	return h.items.get(h.o.Clock(), sku, func() (Item, error) { return h.Item(ctx, sku) })
}

// knownItem is item, for requests that name a SKU in passing.
func (h *Holdfast) knownItem(ctx context.Context, sku string) (Item, error) {
	item, err := h.item(ctx, sku)
	var r *Rejection
	if errors.As(err, &r) {
		return item, &Rejection{Code: CodeSKUUnknown, SKU: sku, Detail: "there is no item " + sku}
	}
	return item, err
}

// skuOf is the SKU whose pieces a balance counts.
func skuOf(k ledger.Key) (string, bool) { return strings.CutPrefix(string(k.Asset), "sku:") }
