package stripe

import (
	"strings"

	sdk "github.com/stripe/stripe-go/v86"
)

// Stripe's minor units are those of ISO 4217 but for a few currencies
// (docs.stripe.com/currencies, "Minor units", "Special cases"):
//   - ISK has no minor unit, and Stripe still wants two decimals, always 00.
//   - MGA has two in ISO 4217 and none at Stripe.
//   - UGX stands in both of Stripe's lists, with and without decimals; a guess
//     would be wrong by a factor of 100, so it is not offered.
//   - BHD, JOD, KWD, OMR and TND have three, and the last digit must be 0.

// maxAmount is the contract's bound, 2^53-1.
const maxAmount = 1<<53 - 1

// toWire turns minor units into Stripe's. Not ok: Stripe cannot carry it.
func toWire(amount int64, currency string) (int64, bool) {
	if amount < 1 || amount > maxAmount {
		return 0, false
	}
	switch currency {
	case "UGX":
		return 0, false
	case "ISK":
		return amount * 100, true
	case "MGA":
		return amount / 100, amount%100 == 0
	case "BHD", "JOD", "KWD", "OMR", "TND":
		return amount, amount%10 == 0
	}
	return amount, true
}

// fromWire turns Stripe's amount into minor units and its currency into upper
// case. Not ok: no such amount can be ours.
func fromWire(amount int64, currency string) (int64, string, bool) {
	upper := strings.ToUpper(currency)
	if amount < 0 || len(upper) != 3 {
		return 0, "", false
	}
	switch upper {
	case "ISK":
		if amount%100 != 0 {
			return 0, "", false
		}
		amount /= 100
	case "MGA":
		if amount > maxAmount/100 {
			return 0, "", false
		}
		amount *= 100
	}
	return amount, upper, amount <= maxAmount
}

func wireCurrency(currency string) *string { return sdk.String(strings.ToLower(currency)) }
