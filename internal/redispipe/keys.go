package redispipe

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Parts of what is kept of a key, in the order in which scripts get them.
const (
	countPart   = "count"
	pendingPart = "pending"
	memoryPart  = "memory"
)

// braces keeps the names of accounts and assets from ending a hash tag.
var braces = strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25")

// tag is what decides the slot of all parts of key.
func (c *Counter) tag(key ledger.Key) string {
	return braces.Replace(string(key.Account)) + " " + braces.Replace(string(key.Asset))
}

func (c *Counter) name(key ledger.Key, part string) string {
	return c.space + "{" + c.tag(key) + "}" + part
}

// slot is where key is in a cluster; one server has one.
func (c *Counter) slot(key ledger.Key) int {
	if !c.redis.cluster {
		return 0
	}
	return slotOf(c.tag(key))
}

// slotOf is the slot of a hash tag: CRC-16/XMODEM modulo the number of slots.
func slotOf(tag string) int {
	const slots, polynomial = 16384, 0x1021
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= polynomial
			}
		}
	}
	return int(crc) % slots
}

// bySlot groups the indexes of keys, in the order of slots.
func (c *Counter) bySlot(keys []ledger.Key) [][]int {
	groups := map[int][]int{}
	for i, key := range keys {
		slot := c.slot(key)
		groups[slot] = append(groups[slot], i)
	}
	out := make([][]int, 0, len(groups))
	for _, slot := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[slot])
	}
	return out
}

// keys are those of one script.
type keys struct {
	counter *Counter
	keys    []ledger.Key
	numbers map[ledger.Key]int
	names   []string
}

func (c *Counter) newKeys() *keys { return &keys{counter: c, numbers: map[ledger.Key]int{}} }

// number is how the script's arguments call key: 1 is the first.
func (k *keys) number(key ledger.Key) string {
	n, ok := k.numbers[key]
	if !ok {
		n = len(k.keys) + 1
		k.numbers[key] = n
		k.keys = append(k.keys, key)
		for _, part := range []string{countPart, pendingPart, memoryPart} {
			k.names = append(k.names, k.counter.name(key, part))
		}
	}
	return strconv.Itoa(n)
}
