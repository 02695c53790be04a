package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// ErrUnfit means that the server must not be used as it is configured.
var ErrUnfit = errors.New("redis is not fit")

// The first version that trims streams at an id.
const (
	leastMajor = 6
	leastMinor = 2
)

// Trait is one property of a server that has to be right.
type Trait struct {
	Check  string // its name, in a word
	Found  string
	Fit    bool
	Advice string // what to do if it is not fit
}

// Traits judges a server by what it says about itself, the text of INFO.
func Traits(info string) []Trait {
	said := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			said[name] = value
		}
	}
	version, role, policy := said["redis_version"], said["role"], said["maxmemory_policy"]
	return []Trait{
		{"version", version, recent(version), fmt.Sprintf("use Redis %d.%d or newer", leastMajor, leastMinor)},
		{"role", "role:" + role, role == "master", "a replica refuses writes and answers late: point at the master"},
		{"eviction", "maxmemory-policy " + policy, policy == "noeviction",
			"keys must not vanish one by one: CONFIG SET maxmemory-policy noeviction, and in redis.conf; don't share the server with a cache"},
	}
}

func recent(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > leastMajor || major == leastMajor && minor >= leastMinor)
}

// fit refuses a node that is not. In a cluster, a replica is: its master is asked.
func (r *Redis) fit(ctx context.Context, node rueidis.Client) error {
	text, err := node.Do(ctx, node.B().Info().Build()).ToString()
	if err != nil {
		return err
	}
	for _, t := range Traits(text) {
		if !t.Fit && !(r.cluster && t.Check == "role") {
			return fmt.Errorf("%w: %s: %s", ErrUnfit, t.Found, t.Advice)
		}
	}
	return nil
}
