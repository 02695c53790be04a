package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast"
	_ "github.com/ncruces/go-sqlite3/driver"
)

func csv(name string) string { return filepath.Join("internal", "stockfile", "testdata", name) }

// onHand reads the stock of some SKUs.
func onHand(t *testing.T, url string, skus ...string) map[string]int64 {
	t.Helper()
	levels := map[string]int64{}
	err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		for _, sku := range skus {
			s, err := core.Stock(t.Context(), sku)
			if err != nil {
				return err
			}
			levels[sku] = s.OnHand
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return levels
}

func TestEachFormatIsImported(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
		n    int
		sku  string
		want int64
	}{
		{"own.csv", nil, 3, "tee-m", 120},
		{"woocommerce.csv", []string{"--currency", "USD", "--skip-bad"}, 3, "hoodie-blue", 7},
		{"shopify_products.csv", []string{"--currency", "EUR"}, 3, "TEE-S-BLK", 10},
		{"shopify_products_2025.csv", []string{"--currency", "EUR"}, 1, "LAMP-1", 4},
	} {
		url := newStore(t)
		var first, second imported
		line := append([]string{"stock", "import", csv(c.file), "--db", url}, c.args...)
		must(t, &first, line...)
		if got := onHand(t, url, c.sku)[c.sku]; first.New != c.n || got != c.want {
			t.Errorf("%s: got %d new and %d of %s, want %d and %d", c.file, first.New, got, c.sku, c.n, c.want)
		}
		must(t, &second, line...)
		if second.New+second.Updated+second.Adjusted != 0 {
			t.Errorf("%s: importing again changed something: %+v", c.file, second)
		}
		if r := do(t, "verify", "--db", url); r.status != exitOK {
			t.Errorf("%s: %v", c.file, r)
		}
	}
}

func TestAnInventoryFileSetsTheStockOfWhatIsThere(t *testing.T) {
	url := newStore(t)
	if r := do(t, "stock", "import", csv("shopify_inventory.csv"), "--db", url); r.status != exitFailed || !strings.Contains(r.out, "import the products first") {
		t.Fatalf("got %v, want a refusal of unknown SKUs", r)
	}
	var a imported
	must(t, &a, "stock", "import", csv("shopify_products.csv"), "--currency", "EUR", "--db", url)
	must(t, &a, "stock", "import", csv("shopify_inventory.csv"), "--db", url)
	got := onHand(t, url, "TEE-S-BLK", "CUP", "TEE-M-BLK")
	if a.Adjusted != 2 || a.Updated != 0 || got["TEE-S-BLK"] != 13 || got["CUP"] != 3 || got["TEE-M-BLK"] != 0 {
		t.Errorf("got %+v and %v, want 13, 3 and 0", a, got)
	}
}

func TestOneBadRowStopsTheWholeImport(t *testing.T) {
	url := newStore(t)
	r := do(t, "stock", "import", csv("own_bad.csv"), "--db", url)
	if r.status != exitFailed || !strings.Contains(r.out, "more than 2 decimals") || !strings.Contains(r.err, "nothing was written") {
		t.Errorf("got %v, want the bad rows and a refusal", r)
	}
	if r := do(t, "stock", "import", csv("own_bad.csv"), "--skip-bad", "--json", "--db", url); r.status != exitOK || !strings.Contains(r.out, `"new":2`) {
		t.Errorf("got %v, want the two good rows, as if they had not been written before", r)
	}
}

func TestAnImportChangesPricesAndNeverTheCurrency(t *testing.T) {
	url := newStore(t)
	path := filepath.Join(t.TempDir(), "stock.csv")
	importing := func(row string) ran {
		if err := os.WriteFile(path, []byte("sku,name,price,currency,quantity\n"+row+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return do(t, "stock", "import", path, "--json", "--db", url)
	}
	importing("tee,Tee,10.00,EUR,5")
	if r := importing("tee,Tee shirt,11.50,EUR,3"); r.status != exitOK || !strings.Contains(r.out, `"updated":1,"adjusted":1`) {
		t.Errorf("got %v, want one update and one adjustment", r)
	}
	if r := importing("tee,Tee shirt,11.50,USD,3"); r.status != exitFailed || !strings.Contains(r.out, "its currency is USD") {
		t.Errorf("got %v, want a refusal", r)
	}
	err := withStore(t.Context(), url, func(core *holdfast.Holdfast) error {
		item, err := core.Item(t.Context(), "tee")
		if item.Name != "Tee shirt" || item.Price != 1150 || item.Currency != "EUR" {
			t.Errorf("got %+v, want Tee shirt at 1150 EUR", item)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := onHand(t, url, "tee")["tee"]; got != 3 {
		t.Errorf("got %d on hand, want 3", got)
	}
}

func TestVerifyExitsWithOneWhenABalanceWasEdited(t *testing.T) {
	url := newStore(t)
	var a imported
	must(t, &a, "stock", "import", csv("own.csv"), "--db", url)
	db, err := sql.Open("sqlite3", "file:"+strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := db.Exec("UPDATE balances SET posted = posted + 1 WHERE account = 'stock' AND asset = 'sku:mug'")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.RowsAffected(); n != 1 {
		t.Fatalf("got %d rows edited, want 1", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r := do(t, "verify", "--db", url); r.status != exitFailed || !strings.Contains(r.out, "sku:mug") {
		t.Errorf("got %v, want status %d and the balance", r, exitFailed)
	}
}
