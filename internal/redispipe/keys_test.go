package redispipe

import "testing"

func TestSlotsAreThoseOfRedisCluster(t *testing.T) {
	for tag, want := range map[string]int{"123456789": 0x31C3, "foo": 12182, "bar": 5061} {
		if got := slotOf(tag); got != want {
			t.Errorf("slot of %q: got %d, want %d", tag, got, want)
		}
	}
}
