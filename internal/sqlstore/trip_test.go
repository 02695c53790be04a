package sqlstore

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

// A batch may be longer than what goes in one text, and one of its statements
// longer than a packet.
func TestALongBatchIsWrittenWhole(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		apply(t, s, stock("stock", 1000))
		long := []byte(`"` + strings.Repeat(`'\\`, 20<<10) + `"`) // each byte is quoted by another one
		entries := make([]ledger.Entry, 2*16+4+1)
		for i := range entries {
			entries[i] = reserve(fmt.Sprint("order-", i), 1)
			entries[i].Events = []ledger.Event{{Type: "made", Subject: "order", Body: long}}
		}
		for i, res := range apply(t, s, entries...) {
			if res.Refused() {
				t.Fatalf("entry %d: got %+v", i, res)
			}
		}
		events, err := s.Events(t.Context(), ledger.EventQuery{Limit: len(entries)})
		if err != nil || len(events) != len(entries) {
			t.Fatalf("got %d events and %v, want %d", len(events), err, len(entries))
		}
		for _, e := range events {
			if !bytes.Equal(e.Body, long) {
				t.Errorf("event %d: got %d bytes, want %d as they were", e.Seq, len(e.Body), len(long))
			}
		}
		if got := held(t, s); got != int64(len(entries)) {
			t.Errorf("held: got %d, want %d", got, len(entries))
		}
	})
}
