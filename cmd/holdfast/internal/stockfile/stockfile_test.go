package stockfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name, currency string) File {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := Read(in, currency)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEachFormatIsKnownByItsHeader(t *testing.T) {
	for _, c := range []struct {
		file, format string
		skipped      int
		rows         []Row
		bad          []int // lines
	}{
		{"own.csv", "holdfast", 0, []Row{
			{2, "tee-m", "Tee, medium", true, 1990, "EUR", 120},
			{3, "mug", "Mug\nwith a handle", true, 1200, "JPY", 8},
			{5, "dinar", "Dinar", true, 1250, "KWD", 3},
		}, nil},
		{"woocommerce.csv", "woocommerce products", 2, []Row{
			{4, "hoodie-red", "Hoodie - Red", true, 4500, "USD", 12},
			{5, "hoodie-blue", "Hoodie - Blue", true, 4550, "USD", 7},
			{6, "beanie", "Beanie", true, 2000, "USD", 30},
		}, []int{7}},
		{"shopify_products.csv", "shopify products", 1, []Row{
			{2, "TEE-S-BLK", "Tee / S / Black", true, 1990, "USD", 10},
			{4, "TEE-M-BLK", "Tee / M / Black", true, 1990, "USD", 0},
			{6, "CUP", "Cup", true, 800, "USD", 5},
		}, nil},
		{"shopify_products_2025.csv", "shopify products", 0, []Row{
			{2, "LAMP-1", "Lamp", true, 5900, "USD", 4},
		}, nil},
		{"shopify_inventory.csv", "shopify inventory", 0, []Row{
			{2, "TEE-S-BLK", "Tee / S", false, 0, "", 13},
			{4, "CUP", "Cup", false, 0, "", 3},
		}, nil},
		{"shopify_inventory_old.csv", "shopify inventory", 0, []Row{
			{2, "TEE-S-BLK", "Tee / S", false, 0, "", 13},
			{3, "CUP", "Cup", false, 0, "", 3},
		}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			f := read(t, c.file, "USD")
			if f.Format != c.format || f.Skipped != c.skipped {
				t.Errorf("got %q with %d skipped, want %q with %d", f.Format, f.Skipped, c.format, c.skipped)
			}
			if !slices.Equal(f.Rows, c.rows) {
				t.Errorf("got rows\n%+v, want\n%+v", f.Rows, c.rows)
			}
			if got := lines(f.Bad); !slices.Equal(got, c.bad) {
				t.Errorf("got bad rows %+v, want lines %v", f.Bad, c.bad)
			}
		})
	}
}

func lines(bad []Bad) (l []int) {
	for _, b := range bad {
		l = append(l, b.Line)
	}
	return l
}

func TestBadRowsAreNamedByLineAndReason(t *testing.T) {
	f := read(t, "own_bad.csv", "")
	want := []struct {
		line   int
		reason string
	}{
		{3, "also on line 2"}, {4, "not of the form"}, {5, "no SKU"}, {6, "not a plain decimal"},
		{7, "more than 2 decimals"}, {8, "more than 0 decimals"}, {9, "is negative"}, {10, "more than 0 decimals"},
		{11, "not an ISO 4217"}, {12, "no price"}, {13, "no quantity"}, {14, "3 fields"}, {15, "too large"}, {16, "not a plain decimal"},
	}
	if len(f.Bad) != len(want) {
		t.Fatalf("got %d bad rows, want %d: %+v", len(f.Bad), len(want), f.Bad)
	}
	for i, w := range want {
		if b := f.Bad[i]; b.Line != w.line || !strings.Contains(b.Reason, w.reason) {
			t.Errorf("got line %d: %s, want line %d: ...%s", b.Line, b.Reason, w.line, w.reason)
		}
	}
	if len(f.Rows) != 2 || f.Rows[0].SKU != "good" || f.Rows[1] != (Row{17, "zero", "Price with zeros at the end", true, 10, "JPY", 1}) {
		t.Errorf("got %+v, want good and zero", f.Rows)
	}
}

func TestWithoutACurrencyNoPriceIsGuessed(t *testing.T) {
	f := read(t, "shopify_products.csv", "")
	if len(f.Rows) != 0 || len(f.Bad) != 3 {
		t.Errorf("got %d rows and %d bad ones, want 0 and 3", len(f.Rows), len(f.Bad))
	}
}

func TestAFileIsRefusedAsAWhole(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"other header": "a,b,c\n1,2,3\n",
		"not utf-8":    "sku,name,price,currency,quantity\na,\xff,1,EUR,1\n",
		"open quote":   "sku,name,price,currency,quantity\na,\"b,1,EUR,1\n",
	} {
		if f, err := Read(strings.NewReader(text), "EUR"); err == nil {
			t.Errorf("%s: got %+v, want an error", name, f)
		}
	}
	if _, err := Read(strings.NewReader("a,b\n"), ""); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want %v", err, ErrFormat)
	}
}

func FuzzPricesAreExactOrRefused(f *testing.F) {
	for _, s := range []string{"1", "1.5", "0.01", "-1", ".", "1.", "9007199254740991", "00.10", "1_0", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParsePrice(s, "EUR")
		if err != nil {
			return
		}
		if n < 0 || n > maxAmount {
			t.Errorf("%q became %d, out of range", s, n)
		}
		if strings.Trim(s, "0123456789.") != "" {
			t.Errorf("%q became %d, though it is not plain", s, n)
		}
	})
}
