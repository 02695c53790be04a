package alipaysim

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// biz is a request's biz_content: the text of each member, of others than
// strings as it stands.
type biz map[string]string

// ignored are members that Alipay knows and that change nothing here.
var ignored = []string{
	"discountable_amount", "undiscountable_amount", "goods_detail", "extend_params", "business_params", "operator_id", "store_id",
	"terminal_id", "passback_params", "goods_type", "qr_pay_mode", "qrcode_width", "integration_type", "request_from_url",
	"query_options", "refund_currency",
}

// readBiz refuses what is not allowed.
func readBiz(text string, allowed []string) (b biz, fail *apiError) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, parameter("biz_content")
	}
	b = biz{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(allowed, name) && !slices.Contains(ignored, name) {
			return nil, parameter("不认识 " + name)
		}
		s := string(members[name])
		if s[0] == '"' && json.Unmarshal(members[name], &s) != nil {
			return nil, parameter(name)
		}
		b[name] = s
	}
	return b, nil
}

// text is a member of at most max characters; empty when it is not there.
func (b biz) text(name string, max int) (string, *apiError) {
	if utf8.RuneCountInString(b[name]) > max {
		return "", parameter(name)
	}
	return b[name], nil
}

var numberForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// number is a merchant's number, which must be there.
func (b biz) number(name string) (string, *apiError) {
	v, fail := b.text(name, 64)
	if fail == nil && !numberForm.MatchString(v) {
		return "", parameter(name)
	}
	return v, fail
}

var yuanForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.[0-9]{1,2})?$`)

const maxFen = 100_000_000_00

// amount is yuan, 0.01 to 100000000, in fen.
func (b biz) amount(name string) (int64, *apiError) {
	v, fail := b.text(name, 12)
	if fail != nil || !yuanForm.MatchString(v) {
		return 0, parameter(name)
	}
	whole, part, _ := strings.Cut(v, ".")
	fen, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil || fen < 1 || fen > maxFen {
		return 0, parameter(name)
	}
	return fen, nil
}

// deadline is an absolute time of Beijing; the zero time when it is not there.
func (b biz) deadline(name string) (time.Time, *apiError) {
	v, fail := b.text(name, len(timeForm))
	if fail != nil || v == "" {
		return time.Time{}, fail
	}
	t, err := time.ParseInLocation(timeForm, v, beijing)
	if err != nil {
		return t, parameter(name)
	}
	return t, nil
}

func yuan(fen int64) string {
	sign := ""
	if fen < 0 {
		sign, fen = "-", -fen
	}
	cents := strconv.FormatInt(fen%100, 10)
	if len(cents) < 2 {
		cents = "0" + cents
	}
	return sign + strconv.FormatInt(fen/100, 10) + "." + cents
}
