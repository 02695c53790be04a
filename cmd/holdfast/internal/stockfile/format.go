package stockfile

import (
	"slices"
	"strings"
)

// A format is a row here and nothing else: the columns by which its header is
// known, and where a row has what.
type format struct {
	name   string
	needs  [][]string // columns that must be there, each by one of its names
	priced bool       // it has prices
	summed bool       // one row a location: the rows of a SKU add up
	draft  func(f *reading, rec []string) (d draft, ok bool)
}

// draft is a row as text. ok = false in format.draft: not an article for sale.
type draft struct {
	sku, name, price, currency string
	quantities                 []string
}

// Names of columns, the older first.
var (
	handle       = []string{"handle", "url handle"}
	shopifySKU   = []string{"variant sku", "sku"}
	shopifyPrice = []string{"variant price", "price"}
	shopifyStock = []string{"variant inventory qty", "inventory quantity"}
	// What can be sold comes first: pieces on hand may be promised to orders
	// that Shopify has taken.
	inventoryStock = []string{"available", "available (not editable)", "on hand", "on hand (current)", "coo"}
)

// formats are asked in order; the most particular header comes first.
var formats = []*format{
	{
		name: "shopify products", priced: true, draft: shopifyProduct,
		needs: [][]string{handle, {"title"}, shopifySKU, shopifyPrice, shopifyStock},
	},
	{
		name: "shopify inventory", summed: true, draft: shopifyInventory,
		needs: [][]string{handle, {"title"}, {"sku"}, inventoryStock},
	},
	{
		name: "woocommerce products", priced: true, draft: wooProduct,
		needs: [][]string{{"sku"}, {"name"}, {"regular price"}, {"stock"}},
	},
	{
		name: "holdfast", priced: true, draft: own,
		needs: [][]string{{"sku"}, {"name"}, {"price"}, {"quantity"}},
	},
}

// columns finds a column by its name in lower case.
type columns map[string]int

func detect(head []string) (*format, columns, bool) {
	col := columns{}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := col[name]; !twice {
			col[name] = i
		}
	}
	for _, f := range formats {
		known := func(names []string) bool { return slices.ContainsFunc(names, col.has) }
		if !slices.ContainsFunc(f.needs, func(names []string) bool { return !known(names) }) {
			return f, col, true
		}
	}
	return nil, nil, false
}

func (c columns) has(name string) bool { _, ok := c[name]; return ok }

// text is the field under the first of names that the header has.
func (c columns) text(rec []string, names ...string) string {
	for _, name := range names {
		if i, ok := c[name]; ok {
			return strings.TrimSpace(rec[i])
		}
	}
	return ""
}

func own(f *reading, rec []string) (draft, bool) {
	return draft{
		sku: f.col.text(rec, "sku"), name: f.col.text(rec, "name"), price: f.col.text(rec, "price"),
		currency: f.col.text(rec, "currency"), quantities: []string{f.col.text(rec, "quantity")},
	}, true
}

// Only simple products and variations have a price and stock of their own.
func wooProduct(f *reading, rec []string) (draft, bool) {
	switch kind, _, _ := strings.Cut(f.col.text(rec, "type"), ","); strings.TrimSpace(kind) {
	case "variable", "grouped", "external":
		return draft{}, false
	}
	return draft{
		sku: f.col.text(rec, "sku"), name: f.col.text(rec, "name"),
		price: f.col.text(rec, "regular price"), quantities: []string{f.col.text(rec, "stock")},
	}, true
}

// A product's first row has its title, the rows below are further variants or
// only further pictures.
func shopifyProduct(f *reading, rec []string) (draft, bool) {
	if title := f.col.text(rec, "title"); title != "" {
		f.title = title
	}
	d := draft{
		sku: f.col.text(rec, shopifySKU...), price: f.col.text(rec, shopifyPrice...),
		quantities: []string{f.col.text(rec, shopifyStock...)},
	}
	if d.sku == "" && d.price == "" {
		return draft{}, false
	}
	d.name = f.variant(rec)
	return d, true
}

func shopifyInventory(f *reading, rec []string) (draft, bool) {
	f.title = f.col.text(rec, "title")
	d := draft{sku: f.col.text(rec, "sku"), name: f.variant(rec)}
	for _, name := range inventoryStock[:len(inventoryStock)-1] {
		if f.col.has(name) {
			d.quantities = []string{f.col.text(rec, name)}
			return d, true
		}
	}
	// The older export has a column for each location, after the country of origin.
	for _, s := range rec[f.col["coo"]+1:] {
		d.quantities = append(d.quantities, strings.TrimSpace(s))
	}
	return d, true
}

// variant is the title with the variant's options.
func (f *reading) variant(rec []string) string {
	name := f.title
	for _, col := range []string{"option1 value", "option2 value", "option3 value"} {
		if v := f.col.text(rec, col); v != "" && v != "Default Title" {
			name += " / " + v
		}
	}
	return name
}
