package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// leastRedis is the first version with XAUTOCLAIM and all that we use.
var leastRedis = []int{6, 2, 0}

func examineRedis(ctx context.Context, c *chart, address string) error {
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return fmt.Errorf("%w: a Redis is redis://USER:PASSWORD@HOST:PORT", ErrAddress)
	}
	o.DisableRetry, o.DisableCache, o.ForceSingleClient = true, true, true
	o.Dialer.Timeout, o.ConnWriteTimeout = connectFor, connectFor
	client, err := rueidis.NewClient(o)
	if err != nil {
		c.redisRefused(err, o.InitAddress[0])
		return nil
	}
	defer client.Close()
	text, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if err != nil {
		c.redisRefused(err, o.InitAddress[0])
		return nil
	}
	c.add("connect", OK, "connected to "+o.InitAddress[0], "")
	c.redisInfo(redisInfo(text))
	c.redisScript(ctx, client)
	return nil
}

func (c *chart) redisRefused(err error, at string) {
	advice := fmt.Sprintf("nothing answers as Redis at %s: check host, port, firewall, bind and protected-mode", at)
	if e, ok := rueidis.IsRedisErr(err); ok {
		code, _, _ := strings.Cut(e.Error(), " ") // the protocol's own code
		switch code {
		case "WRONGPASS", "NOAUTH", "ERR":
			advice = "check user and password: redis://USER:PASSWORD@HOST:PORT, or redis://:PASSWORD@HOST:PORT without a user"
		case "NOPERM":
			advice = "let the user run INFO, EVAL, EVALSHA and TIME (ACL SETUSER)"
		case "LOADING":
			advice = "the server is still loading its data: ask again"
		case "DENIED":
			advice = "set a password, or bind, or protected-mode no in a closed network"
		}
	}
	c.add("connect", Wrong, err.Error(), advice)
}

// redisInfo reads the lines name:value of INFO.
func redisInfo(text string) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			set[name] = value
		}
	}
	return set
}

func (c *chart) redisInfo(set map[string]string) {
	c.expect(atLeast(set["redis_version"], leastRedis), "version", set["redis_version"], Wrong, "use Redis 6.2 or newer")
	c.expect(set["role"] == "master", "role", "role:"+set["role"], Wrong, "a replica refuses writes and answers late: point at the master")
	c.expect(set["maxmemory_policy"] == "noeviction", "eviction", "maxmemory-policy "+set["maxmemory_policy"], Wrong,
		"counters must not vanish one by one: CONFIG SET maxmemory-policy noeviction, and in redis.conf; don't share the server with a cache")
	c.expect(set["loading"] == "0", "loading", "loading:"+set["loading"], Warning, "ask again when it has loaded its data")
	aof := "AOF off"
	if set["aof_enabled"] == "1" {
		aof = "AOF on"
	}
	c.add("persistence", OK, aof+"; either is safe, as counters are rebuilt from the store after a loss", "")
}

// redisScript lets a script answer the time: both are needed.
func (c *chart) redisScript(ctx context.Context, client rueidis.Client) {
	const script = `local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)`
	var refused error
	c.clock(func() (time.Time, error) {
		ms, err := client.Do(ctx, client.B().Eval().Script(script).Numkeys(0).Build()).AsInt64()
		refused = err
		return time.UnixMilli(ms), err
	})
	if refused != nil {
		c.add("script", Wrong, refused.Error(), "let the user run EVAL, EVALSHA and TIME (ACL SETUSER ... +eval +evalsha +script +time)")
		return
	}
	c.add("script", OK, "Lua scripts run", "")
}
