package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	for _, s := range []string{
		`{"lines":[{"sku":"a","quantity":1}]}`, `{"lines":[{"sku":"a","quantity":0}]}`, `{"lines":[{"sku":"a","quantity":-0}]}`,
		`{"lines":[{"sku":"a","quantity":9007199254740992}]}`, `{"lines":[{"sku":"a","quantity":1e400}]}`, `{"lines":[{"sku":"a","quantity":1.0}]}`,
		`{"lines":[{"sku":"a","quantity":9223372036854775808}]}`, `{"lines":[{"sku":"a","quantity":111111111111111111111111111111}]}`,
		`{"lines":[{"sku":"a","quantity":"1"}]}`, `{"lines":[{"sku":"a","quantity":01}]}`, `{"lines":[{"sku":"a","quantity":+1}]}`, `{"lines":[{"sku":"a","quantity":NaN}]}`,
		`{"lines":[{"sku":"a","quantity":null}]}`, `{"lines":[{"sku":"a"}]}`, `{"lines":null}`, `{"lines":[{"sku":"a","quantity":1}],"metadata":null}`, `{}`, `[]`, `null`, ``,
		`{"lines":[{"sku":"a","quantity":1,"price":1}]}`, `{"lines":[{"sku":"a","quantity":1,"quantity":2}]}`, `{"Lines":[{"sku":"a","quantity":1}]}`, `{"lines":[{"ſku":"a","quantity":1}]}`,
		`{"lines":[{"sku":"a","quantity":1}]}garbage`, `{"lines":[{"sku":"a","quantity":1}]}{}`, "\ufeff" + `{"lines":[{"sku":"a","quantity":1}]}`,
		`{"lines":[{"sku":"a","quantity":1},]}`, `{'lines':1}`, `{/*x*/}`, strings.Repeat("[", 33), `{"metadata":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + "}",
		"{\"customer\":\"\xff\"}", `{"customer":"\ud800"}`, `{"customer":"\ud800x"}`, `{"customer":"abc\ud800\u0041"}`, `{"customer":"\udc00"}`, `{"customer":"\u0000"}`, "{\"customer\":\"\u202e\"}", "{\"customer\":\"\u0085\"}", "{\"customer\":\"a\nb\"}",
		`{"lines":[{"sku":"a","quantity":1}],"metadata":{"note":"4111 1111 1111 1111"}}`, `{"lines":[{"sku":"a","quantity":1}],"metadata":{"no\u0001te":"4"}}`, `{"lines":[{"sku":"a","quantity":1}],"metadata":{"a":1}}`, `{"lines":{"sku":"a","quantity":1}}`, `{"lines":[1]}`, `{"lines":[{"sku":"a","quantity":[1]}]}`, `{"lines":[{"sku":"a","quantity":1}],"customer":"null"}`,
	} {
		var b orderBody
		err := decode([]byte(s), &b)
		if no, ok := err.(*refusal); ok {
			fmt.Printf("%-90q %s at %q\n", s, no.code, no.field)
		} else {
			fmt.Printf("%-90q %v\n", s, err)
		}
	}
	var p payBody
	fmt.Println(decode([]byte(`{"return_url":"https://a\r\nb"}`), &p))
}
