package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-pay/holdfast/internal/redispipe"
)

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
	c.redisInfo(text)
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

// redisInfo judges the text of INFO. What would keep redispipe from opening the
// server is wrong.
func (c *chart) redisInfo(text string) {
	for _, t := range redispipe.Traits(text) {
		c.expect(t.Fit, t.Check, t.Found, Wrong, t.Advice)
	}
	says := func(line string) bool { return strings.Contains("\n"+text, "\n"+line) }
	loading := "loading:1"
	if says("loading:0") {
		loading = "loading:0"
	}
	c.expect(loading == "loading:0", "loading", loading, Warning, "ask again when it has loaded its data")
	aof := "AOF off"
	if says("aof_enabled:1") {
		aof = "AOF on"
	}
	c.add("persistence", OK, aof+"; either is safe: counters are rebuilt from the store, and who waits in a lost queue is decided by it", "")
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
