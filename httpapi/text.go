package httpapi

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-pay/holdfast"
)

// MaxID is the longest id of an order, a payment or a refund, and the longest
// SKU, in a path.
const MaxID = 64

// Idempotency keys are MinKey to MaxKey characters.
const (
	MinKey = 16
	MaxKey = 128
)

// text is a member that people write: card numbers are refused in it.
type text string

// party is a member that names somebody in a gateway's own terms. Such a name may
// have the digits of a card number by chance, as a tenth of Alipay's user ids has:
// what is refused is a card's number alone.
type party string

// link is a member that ends up in a header of somebody's answer.
type link string

// moment reads a time as RFC 3339 in UTC. One with another offset is refused
// like one without any: where it would be right, it is so by chance.
func moment(s string) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil || !strings.HasSuffix(s, "Z") {
		return t, refuse(holdfast.CodeInvalidTime, "must be a time as in 2026-11-11T12:00:00Z")
	}
	return t, nil
}

// word says whether s is made of the characters of ids, that no database and
// no reader takes for one another.
func word(s string, shortest, longest int) bool {
	if len(s) < shortest || len(s) > longest {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			continue
		}
		return false
	}
	return true
}

// clean says whether s is free of characters that change what people see
// without being seen: controls, line separators and bidirectional overrides.
func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return strings.IndexFunc(s[i:], hidden) < 0
		}
	}
	return true
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || unicode.Is(unicode.Bidi_Control, r)
}

// Lengths of card numbers, ISO/IEC 7812.
const (
	minCardDigits = 13
	maxCardDigits = 19
)

// cardNumber says whether s has a run of digits, spaces and dashes that is the
// length of a card number and passes its check.
func cardNumber(s string) bool {
	if len(s) < minCardDigits {
		return false
	}
	var digits [maxCardDigits]byte
	n := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] >= '0' && s[i] <= '9' {
			if n < maxCardDigits {
				digits[n] = s[i] - '0'
			}
			n++
			continue
		}
		if i < len(s) && n > 0 && (s[i] == ' ' || s[i] == '-') {
			continue
		}
		if n >= minCardDigits && n <= maxCardDigits && luhn(digits[:n]) {
			return true
		}
		n = 0
	}
	return false
}

// issued says whether a name in the terms of a gateway is a card's number: nothing
// else, and of a range from which cards are issued.
func issued(s string) bool {
	digits := strings.NewReplacer(" ", "", "-", "").Replace(s)
	if strings.Trim(digits, "0123456789") != "" || !cardNumber(digits) {
		return false
	}
	return digits >= "3" && digits < "7" || digits >= "2221" && digits < "2721" || digits >= "81" && digits < "82"
}

func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		v := int(d)
		if (len(digits)-i)%2 == 0 {
			v *= 2
		}
		sum += v/10 + v%10
	}
	return sum%10 == 0
}

// returnable says whether a buyer's browser may be sent to s: https anywhere,
// http on this machine; with a list of origins, only there.
func returnable(s string, origins []string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.ContainsRune(s, '\\') {
		return false
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return false
	}
	if len(origins) == 0 {
		return true
	}
	for _, o := range origins {
		if strings.EqualFold(strings.TrimSuffix(o, "/"), u.Scheme+"://"+u.Host) {
			return true
		}
	}
	return false
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
