package alipay

import (
	"strconv"
	"strings"
)

// currency is all that this gateway takes; its amounts are yuan with two
// decimals, ours are fen.
const currency = "CNY"

// maxAmount is 100,000,000.00 yuan in fen.
const maxAmount = 100_000_000_00

func toYuan(fen int64) string {
	s := strconv.FormatInt(fen, 10)
	if len(s) < 3 {
		s = strings.Repeat("0", 3-len(s)) + s
	}
	return s[:len(s)-2] + "." + s[len(s)-2:]
}

// maxDigits before the point are read; no amount is longer.
const maxDigits = 9

// fromYuan reads 9, 9.9 or 9.90 as 990. It is decimal text throughout: a float
// would turn 1.10 into another number.
func fromYuan(yuan string) (fen int64, ok bool) {
	whole, part, point := strings.Cut(yuan, ".")
	if whole == "" || len(whole) > maxDigits || len(part) > 2 || point && part == "" {
		return 0, false
	}
	part += "00"[len(part):]
	for _, c := range []byte(whole + part) {
		if c < '0' || c > '9' {
			return 0, false
		}
		fen = fen*10 + int64(c-'0')
	}
	return fen, fen <= maxAmount
}
