package stripesim

import (
	"fmt"
	"slices"
	"strings"
)

// The currencies that Stripe presents, by how it counts them
// (docs.stripe.com/currencies).
var (
	twoDecimals = strings.Fields(`usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp
		byn bzd cad cdf chf cny cop crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl hrk htg
		huf idr ils inr isk jmd kes kgs khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr
		mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd std
		szl thb tjs top try ttd twd tzs uah ugx uyu uzs wst xcd yer zar zmw`)
	zeroDecimals  = strings.Fields("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf")
	threeDecimals = strings.Fields("bhd jod kwd omr tnd")
)

func knownCurrency(c string) bool {
	return slices.Contains(twoDecimals, c) || slices.Contains(zeroDecimals, c) || slices.Contains(threeDecimals, c)
}

// smallestStep is what an amount must be a multiple of: thousandths end in 0,
// and the króna and the Ugandan shilling are written with two decimals but
// have no fractions.
func smallestStep(currency string) int64 {
	switch {
	case slices.Contains(threeDecimals, currency):
		return 10
	case currency == "isk" || currency == "ugx":
		return 100
	}
	return 1
}

var symbols = map[string]string{
	"usd": "$", "eur": "€", "gbp": "£", "cny": "¥", "jpy": "¥", "krw": "₩", "inr": "₹", "hkd": "HK$", "twd": "NT$",
	"aud": "A$", "cad": "C$", "sgd": "S$", "nzd": "NZ$",
}

// money writes minor units for a person: $12.34 USD.
func money(amount int64, currency string) string {
	decimals := 2
	if slices.Contains(zeroDecimals, currency) {
		decimals = 0
	} else if slices.Contains(threeDecimals, currency) {
		decimals = 3
	}
	digits := fmt.Sprintf("%0*d", decimals+1, amount)
	text := digits[:len(digits)-decimals]
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if decimals > 0 {
		text += "." + digits[len(digits)-decimals:]
	}
	return symbols[currency] + text + " " + strings.ToUpper(currency)
}
