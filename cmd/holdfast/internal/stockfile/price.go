package stockfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bojanz/currency"
)

// maxAmount is the largest amount that the ledger takes, in minor units.
const maxAmount = 1<<53 - 1

// ParsePrice reads a decimal in major units, such as 12.50, as minor units of
// the currency: digits and at most one point, no sign, exponent, blank or
// separator of thousands. A digit that the currency has no unit for is an
// error, unless it is a zero at the end.
func ParsePrice(s, code string) (int64, error) {
	digits, ok := currency.GetDigits(code)
	if !ok {
		return 0, fmt.Errorf("is in %q, which is not an ISO 4217 currency", code)
	}
	return parseDecimal(s, int(digits))
}

// parseDecimal reads s times ten to the power of digits, exactly.
func parseDecimal(s string, digits int) (int64, error) {
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%q is negative", s)
	}
	whole, frac, point := strings.Cut(s, ".")
	if whole == "" || (point && frac == "") {
		return 0, fmt.Errorf("%q is not a plain decimal number", s)
	}
	for len(frac) > digits && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	if len(frac) > digits {
		if _, err := parseDecimal(whole+"."+frac, len(frac)); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%q has more than %d decimals", s, digits)
	}
	var n int64
	for _, c := range []byte(whole + frac + strings.Repeat("0", digits-len(frac))) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is not a plain decimal number", s)
		}
		if n = n*10 + int64(c-'0'); n > maxAmount {
			return 0, errors.New("is too large")
		}
	}
	return n, nil
}
