package doctor

import (
	"net/url"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func lookAtRedis(t *testing.T, address string) []Finding {
	t.Helper()
	findings, err := Redis(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestASoundRedisHasNothingWrong(t *testing.T) {
	findings := lookAtRedis(t, server(t, "HOLDFAST_TEST_REDIS"))
	for _, check := range []string{"connect", "version", "role", "eviction", "persistence", "clock", "script"} {
		if f := finding(findings, check); f.Verdict != OK {
			t.Errorf("got %+v, want %s to be ok", findings, check)
		}
	}
}

func TestWeakSettingsOfRedisAreFound(t *testing.T) {
	const sound = "# Server\r\nredis_version:6.2.0\r\n\r\n# Memory\r\nmaxmemory_policy:noeviction\r\nrole:master\r\nloading:0\r\n"
	for _, c := range []struct {
		sound, weak, check string
		want               Verdict
	}{
		{"version:6.2.0", "version:6.0.16", "version", Wrong}, {"role:master", "role:slave", "role", Wrong},
		{"noeviction", "allkeys-lru", "eviction", Wrong}, {"noeviction", "volatile-ttl", "eviction", Wrong}, {"loading:0", "loading:1", "loading", Warning},
	} {
		var before, after chart
		before.redisInfo(sound)
		after.redisInfo(strings.Replace(sound, c.sound, c.weak, 1))
		if was, is := finding(before.findings, c.check), finding(after.findings, c.check); was.Verdict != OK || is.Verdict != c.want || is.Advice == "" {
			t.Errorf("%s: got %+v after %+v, want %s", c.weak, is, was, c.want)
		}
	}
}

func TestRedisSaysWhatTheUserLacks(t *testing.T) {
	address := server(t, "HOLDFAST_TEST_REDIS")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	o, err := rueidis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	o.DisableCache = true
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	user := scratchName()
	acl := func(rule ...string) {
		t.Helper()
		if err := client.Do(t.Context(), client.B().Arbitrary("ACL", "SETUSER", user).Args(rule...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	acl("on", ">right", "+@connection", "+info")
	defer func() {
		if err := client.Do(t.Context(), client.B().Arbitrary("ACL", "DELUSER", user).Build()).Error(); err != nil {
			t.Error(err)
		}
	}()
	u.User = url.UserPassword(user, "right")
	wantWrong(t, lookAtRedis(t, u.String()), "script", "+eval")
	acl("-info")
	wantWrong(t, lookAtRedis(t, u.String()), "connect", "INFO")
	u.User = url.UserPassword(user, "wrong")
	wantWrong(t, lookAtRedis(t, u.String()), "connect", "check user and password")
}
