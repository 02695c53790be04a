// Package stockfile reads the CSV files that shops keep their stock in: our
// own, WooCommerce's product export and Shopify's product and inventory
// exports. Which one it is, the header says.
//
// A row is either good as a whole or bad with a reason: nothing is guessed,
// rounded or cut off. Prices are decimal text in major units and become minor
// units without passing through a float.
package stockfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MaxBytes = 64 << 20 // bytes
	MaxRows  = 200_000  // rows below the header
	maxName  = 500      // characters of a name
)

// File is what was read.
type File struct {
	Format  string `json:"format"`
	Rows    []Row  `json:"-"`
	Bad     []Bad  `json:"bad"`
	Skipped int    `json:"skipped"` // rows that by their kind are not for sale: images, parents of variants
}

// Row is one SKU.
type Row struct {
	Line     int // of the file, 1 = the header
	SKU      string
	Name     string
	Priced   bool   // false: the format has no prices, and Price and Currency say nothing
	Price    int64  // minor units of Currency
	Currency string // ISO 4217, upper case
	Quantity int64  // pieces that can be sold
}

// Bad is a row that can't be taken.
type Bad struct {
	Line   int    `json:"line"`
	SKU    string `json:"sku,omitempty"`
	Reason string `json:"reason"`
}

// ErrFormat says that the header is none of those known.
var ErrFormat = errors.New("the header is not that of a known format: " +
	"sku,name,price,currency,quantity, or an export of WooCommerce products, Shopify products or Shopify inventory")

// Read reads a whole file. currency is for files that name none; a file that
// does wins. An error means that the file can't be read as a whole.
func Read(r io.Reader, currency string) (File, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return File{}, fmt.Errorf("read stock file: %w", err)
	}
	if len(b) > MaxBytes {
		return File{}, fmt.Errorf("read stock file: more than %d bytes", MaxBytes)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if !utf8.Valid(b) {
		return File{}, errors.New("read stock file: it is not UTF-8")
	}
	in := csv.NewReader(bytes.NewReader(b))
	head, err := in.Read()
	if err != nil {
		return File{}, fmt.Errorf("read stock file: header: %w", err)
	}
	form, col, ok := detect(head)
	if !ok {
		return File{}, fmt.Errorf("read stock file: %w", ErrFormat)
	}
	f := reading{File: File{Format: form.name, Bad: []Bad{}}, form: form, col: col, currency: currency, at: map[string]int{}}
	if err := f.rows(in); err != nil {
		return File{}, fmt.Errorf("read stock file: %w", err)
	}
	return f.File, nil
}

type reading struct {
	File
	form     *format
	col      columns
	currency string
	at       map[string]int // SKU -> index in Rows
	title    string         // of the last row that had one: variants below it share it
}

func (f *reading) rows(in *csv.Reader) error {
	for range MaxRows {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, _ := in.FieldPos(0)
		if errors.Is(err, csv.ErrFieldCount) {
			f.bad(line, "", "it has %d fields, the header has %d", len(rec), in.FieldsPerRecord)
			continue
		}
		if err != nil {
			return err
		}
		f.row(line, rec)
	}
	if _, err := in.Read(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than %d rows", MaxRows)
	}
	return nil
}

func (f *reading) bad(line int, sku, reason string, args ...any) {
	f.Bad = append(f.Bad, Bad{line, sku, fmt.Sprintf(reason, args...)})
}

var skuForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (f *reading) row(line int, rec []string) {
	d, ok := f.form.draft(f, rec)
	if !ok {
		f.Skipped++
		return
	}
	if d.sku == "" {
		f.bad(line, "", "it has no SKU")
		return
	}
	if !skuForm.MatchString(d.sku) {
		f.bad(line, d.sku, "the SKU is not of the form [A-Za-z0-9_-]{1,64}")
		return
	}
	row := Row{Line: line, SKU: d.sku, Name: d.name, Priced: f.form.priced}
	if row.Name == "" {
		row.Name = row.SKU
	}
	if utf8.RuneCountInString(row.Name) > maxName {
		f.bad(line, d.sku, "the name is longer than %d characters", maxName)
		return
	}
	if err := f.measure(&row, d); err != nil {
		f.bad(line, d.sku, "%v", err)
		return
	}
	i, seen := f.at[row.SKU]
	if !seen {
		f.at[row.SKU] = len(f.Rows)
		f.Rows = append(f.Rows, row)
		return
	}
	if !f.form.summed {
		f.bad(line, d.sku, "the SKU is also on line %d", f.Rows[i].Line)
		return
	}
	if sum := f.Rows[i].Quantity + row.Quantity; sum <= maxAmount {
		f.Rows[i].Quantity = sum
		return
	}
	f.bad(line, d.sku, "the quantities of all locations are too large")
}

// measure reads the numbers of a row.
func (f *reading) measure(row *Row, d draft) (err error) {
	if row.Quantity, err = quantities(d.quantities); err != nil {
		return err
	}
	if !row.Priced {
		return nil
	}
	row.Currency = strings.ToUpper(d.currency)
	if row.Currency == "" {
		row.Currency = f.currency
	}
	if row.Currency == "" {
		return errors.New("it has no currency: say it with --currency")
	}
	if d.price == "" {
		return errors.New("it has no price")
	}
	if row.Price, err = ParsePrice(d.price, row.Currency); err != nil {
		return fmt.Errorf("price %w", err)
	}
	if row.Price == 0 {
		return errors.New("its price is zero")
	}
	return nil
}

// quantities adds up what the locations have.
func quantities(texts []string) (int64, error) {
	var sum int64
	counted := false
	for _, s := range texts {
		if s == "" {
			continue
		}
		if strings.EqualFold(s, "not stocked") { // Shopify's word for none at this location
			s = "0"
		}
		n, err := parseDecimal(s, 0)
		if err != nil {
			return 0, fmt.Errorf("quantity %w", err)
		}
		if sum += n; sum > maxAmount {
			return 0, errors.New("the quantity is too large")
		}
		counted = true
	}
	if !counted {
		return 0, errors.New("it has no quantity: its stock is not tracked")
	}
	return sum, nil
}
