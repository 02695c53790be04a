package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/stockfile"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (h *host) stockCommand() *cobra.Command {
	return group("stock", "Bring stock into the store", h.stockImport())
}

// imported is the answer of an import.
type imported struct {
	Format   string          `json:"format"`
	New      int             `json:"new"`
	Updated  int             `json:"updated"`  // name or price written anew
	Adjusted int             `json:"adjusted"` // quantity on hand brought to the file's
	Skipped  int             `json:"skipped"`  // rows of no article: pictures, parents of variants
	Bad      []stockfile.Bad `json:"bad"`
}

func (h *host) stockImport() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Import items and stock from CSV: our own, WooCommerce's or Shopify's",
		Long: `Import items and stock from a CSV file in UTF-8. The header says whose it is:

  sku,name,price,currency,quantity    our own; the price in major units, as 12.50
  WooCommerce's product export        SKU, Name, Regular price, Stock
  Shopify's product export            Handle, Title, Variant SKU, Variant Inventory Qty, Variant Price
  Shopify's inventory export          Handle, Title, SKU, Available or On hand, or a column for each location

New SKUs are made with the file's quantity as their opening stock. SKUs that
are there get the file's name and price, and the difference between the file's
quantity and what is on hand is adjusted, with the reason "import"; importing a
file twice changes nothing the second time. An inventory export has no prices,
and its SKUs must be there.

Nothing is written if any row is bad, unless --skip-bad is given.`,
		Args: cobra.ExactArgs(1),
	}
	db := h.storeFlag(c)
	skip := c.Flags().Bool("skip-bad", false, "import the good rows even if others are bad")
	currency := c.Flags().String("currency", "", "ISO 4217 `code` of prices in files that name none")
	c.RunE = func(c *cobra.Command, args []string) error {
		in, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer in.Close()
		file, err := stockfile.Read(in, *currency)
		if err != nil {
			return fmt.Errorf("import %s: %w", args[0], err)
		}
		return withStore(c.Context(), *db, func(core *holdfast.Holdfast) error {
			return h.importStock(c.Context(), core, args[0], file, *skip)
		})
	}
	return c
}

func (h *host) importStock(ctx context.Context, core *holdfast.Holdfast, name string, file stockfile.File, skip bool) error {
	plan, err := plan(ctx, core, &file)
	if err != nil {
		return err
	}
	answer := imported{Format: file.Format, Skipped: file.Skipped, Bad: file.Bad}
	refused := len(file.Bad) > 0 && !skip
	if !refused {
		if err := h.writeStock(ctx, core, plan, &answer); err != nil {
			return fmt.Errorf("import %s: %w", name, err)
		}
	}
	if err := h.show(answer, func(w io.Writer) { showImport(w, answer) }); err != nil {
		return err
	}
	if refused {
		return fmt.Errorf("import %s: %d bad rows; nothing was written", name, len(file.Bad))
	}
	return nil
}

// step is a row with what is known of its SKU so far.
type step struct {
	stockfile.Row
	item holdfast.Item // Version 0 = new
}

// plan looks up every SKU. Rows that can't be imported as things stand become bad ones.
func plan(ctx context.Context, core *holdfast.Holdfast, file *stockfile.File) ([]step, error) {
	var steps []step
	for _, row := range file.Rows {
		item, err := core.Item(ctx, row.SKU)
		var rejected *holdfast.Rejection
		switch {
		case err != nil && !errors.As(err, &rejected):
			return nil, fmt.Errorf("look up %s: %w", row.SKU, err)
		case err != nil && !row.Priced:
			file.Bad = append(file.Bad, stockfile.Bad{Line: row.Line, SKU: row.SKU, Reason: "the SKU is unknown and the file has no prices: import the products first"})
			continue
		case err == nil && row.Priced && item.Currency != row.Currency:
			file.Bad = append(file.Bad, stockfile.Bad{Line: row.Line, SKU: row.SKU, Reason: fmt.Sprintf("its currency is %s, the store says %s", row.Currency, item.Currency)})
			continue
		}
		steps = append(steps, step{row, item})
	}
	return steps, nil
}

// writeStock writes the items, then brings the stock of those that were there
// to the file's. Breaking off and importing again ends in the same stock.
func (h *host) writeStock(ctx context.Context, core *holdfast.Holdfast, steps []step, answer *imported) error {
	var items []holdfast.ItemInput
	for _, s := range steps {
		if s.item.Version > 0 && (!s.Priced || s.Name == s.item.Name && s.Price == s.item.Price) {
			continue
		}
		items = append(items, s.input())
		if s.item.Version > 0 {
			answer.Updated++
		} else {
			answer.New++
		}
	}
	total := int64(len(items) + len(steps))
	b := h.progress("import", total)
	defer b.end()
	var written atomic.Int64
	if err := core.PutItems(ctx, items, func() { b.set(written.Add(1), total) }); err != nil {
		return err
	}
	for i, s := range steps {
		changed, err := s.adjust(ctx, core)
		if err != nil {
			return err
		}
		if changed {
			answer.Adjusted++
		}
		b.set(int64(len(items)+i+1), total)
	}
	return nil
}

// input keeps what the file says nothing of.
func (s step) input() holdfast.ItemInput {
	in := holdfast.ItemInput{SKU: s.SKU, Name: s.Name, Price: s.Price, Currency: s.Currency}
	if s.item.Version == 0 {
		in.Stock = s.Quantity
		return in
	}
	in.Names, in.Late, in.IfMatch = s.item.Names, s.item.Late, s.item.Version
	in.HoldFor = time.Duration(s.item.HoldFor) * time.Second
	return in
}

// adjust brings the stock on hand of a SKU that was there to the file's.
func (s step) adjust(ctx context.Context, core *holdfast.Holdfast) (bool, error) {
	if s.item.Version == 0 {
		return false, nil // its opening stock is the file's, and may have begun to sell
	}
	level, err := core.Stock(ctx, s.SKU)
	if err != nil {
		return false, err
	}
	if level.OnHand == s.Quantity {
		return false, nil
	}
	_, err = core.Adjust(ctx, holdfast.Key{}, holdfast.Adjustment{SKU: s.SKU, Quantity: s.Quantity - level.OnHand, Reason: "import"})
	if err != nil {
		return false, fmt.Errorf("line %d: adjust %s from %d to %d: %w", s.Line, s.SKU, level.OnHand, s.Quantity, err)
	}
	return true, nil
}

func showImport(w io.Writer, a imported) {
	fmt.Fprintf(w, "%s: %d new, %d updated, %d stock levels adjusted, %d rows without an article\n",
		a.Format, a.New, a.Updated, a.Adjusted, a.Skipped)
	if len(a.Bad) == 0 {
		return
	}
	var list []table.Row
	for _, b := range a.Bad {
		list = append(list, table.Row{b.Line, b.SKU, b.Reason})
	}
	rows(w, table.Row{"line", "sku", "why it is bad"}, list...)
}
