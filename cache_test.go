package holdfast

import (
	"errors"
	"testing"
	"time"
)

func TestACachedRowIsReadByOneWhileTheOthersUseIt(t *testing.T) {
	c := cache[int]{maxAge: time.Second, maxCount: 2}
	now := time.Unix(100, 0)
	reads := 0
	get := func(at time.Time, inside func()) int {
		v, err := c.get(at, "k", func() (int, error) {
			reads++
			if inside != nil {
				inside()
			}
			return reads, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	get(now, nil)
	for _, step := range []struct {
		after       time.Duration
		value, read int
	}{{499 * time.Millisecond, 1, 1}, {500 * time.Millisecond, 2, 2}} {
		inside := func() {
			if got := get(now.Add(step.after), func() { t.Error("two read at once") }); got != 1 {
				t.Errorf("while another reads: got %d, want what there was", got)
			}
			if got, _ := c.get(now.Add(time.Second), "k", func() (int, error) { return 7, nil }); got != 7 {
				t.Errorf("a whole maxAge later: got %d, want it read", got)
			}
		}
		if got := get(now.Add(step.after), inside); got != step.value || reads != step.read {
			t.Errorf("after %v: got %d after %d reads, want %d after %d", step.after, got, reads, step.value, step.read)
		}
	}
}

func TestAReadThatFailsLeavesTheNextOneToRead(t *testing.T) {
	c := cache[int]{maxAge: time.Second, maxCount: 2}
	now := time.Unix(100, 0)
	one := func() (int, error) { return 1, nil }
	_, _ = c.get(now, "k", one)
	now = now.Add(600 * time.Millisecond)
	if _, err := c.get(now, "k", func() (int, error) { return 0, errors.New("away") }); err == nil {
		t.Error("the error was lost")
	}
	if got, err := c.get(now, "k", func() (int, error) { return 2, nil }); got != 2 || err != nil {
		t.Errorf("got %d, %v, want 2", got, err)
	}
	c.forget("k")
	if got, _ := c.get(now, "k", func() (int, error) { return 3, nil }); got != 3 {
		t.Errorf("after forget: got %d, want 3", got)
	}
	for _, k := range []string{"a", "b", "c"} {
		_, _ = c.get(now, k, one)
	}
	if len(c.rows) > 2 {
		t.Errorf("%d rows, want at most 2", len(c.rows))
	}
}
