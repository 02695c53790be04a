package redispipe

import (
	"testing"

	"github.com/holdfast-pay/holdfast/internal/pipeline"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
	"github.com/holdfast-pay/holdfast/ledger"
)

// What a server that hung is told after later claims knows nothing of them.
func TestAClaimThatComesLateFreesNothingAndGetsNothing(t *testing.T) {
	t.Parallel()
	r, err := Open(t.Context(), redispipetest.New(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := r.Log("late:", pipeline.LogOptions{})
	defer l.Close()
	for _, id := range []string{"a", "b"} {
		if _, err := l.Append(t.Context(), pipeline.Request{Partition: id, Entry: ledger.Entry{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := l.next(t.Context(), 1)
	if err != nil || c.Partition != "a" {
		t.Fatalf("got %+v, %v, want the first", c, err)
	}
	l.turn, l.mine = 0, map[int64]bool{}
	if late, _, err := l.next(t.Context(), 1); err != nil || late.Fence != 0 {
		t.Errorf("late: got %+v, %v, want nothing", late, err)
	}
	if err := l.Settle(t.Context(), c, []pipeline.Ending{{}}); err != nil {
		t.Errorf("settle: %v", err)
	}
	if c, _, err := l.next(t.Context(), 1); err != nil || c.Partition != "b" {
		t.Errorf("got %+v, %v, want the second", c, err)
	}
}
