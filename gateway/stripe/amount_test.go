package stripe

import "testing"

// The left column is ISO 4217's minor units, the right what Stripe's page on
// currencies asks for.
func TestAmountsAreInStripesUnits(t *testing.T) {
	for _, c := range []struct {
		amount   int64
		currency string
		wire     int64 // 0: cannot be carried
	}{
		{1990, "EUR", 1990},
		{500, "JPY", 500},
		{500, "KRW", 500},
		{5, "ISK", 500},
		{500, "MGA", 5},
		{550, "MGA", 0},
		{5120, "KWD", 5120},
		{5124, "KWD", 0},
		{5121, "BHD", 0}, {5121, "JOD", 0}, {5121, "OMR", 0}, {5121, "TND", 0},
		{500, "UGX", 0},
		{1<<53 - 1, "ISK", (1<<53 - 1) * 100},
		{1 << 53, "EUR", 0},
		{0, "EUR", 0},
		{-1, "EUR", 0},
	} {
		got, ok := toWire(c.amount, c.currency)
		if ok != (c.wire != 0) || (ok && got != c.wire) {
			t.Errorf("%d %s: got %d %v, want %d", c.amount, c.currency, got, ok, c.wire)
		}
		if !ok {
			continue
		}
		back, currency, ok := fromWire(got, *wireCurrency(c.currency))
		if !ok || back != c.amount || currency != c.currency {
			t.Errorf("%d %s: comes back as %d %s, %v", c.amount, c.currency, back, currency, ok)
		}
	}
}

func TestAmountsThatCannotBeOursAreRefused(t *testing.T) {
	for _, c := range []struct {
		amount   int64
		currency string
	}{{550, "isk"}, {-1, "eur"}, {1 << 62, "mga"}, {100, ""}, {100, "euro"}} {
		if got, currency, ok := fromWire(c.amount, c.currency); ok {
			t.Errorf("%d %q: got %d %s, want none", c.amount, c.currency, got, currency)
		}
	}
}
