// Package doctor proves on the servers of a store what the store relies on.
//
// Settings say what a server was told; behind a proxy, in an old version or in
// a session with other defaults it may still do otherwise. So whatever can be
// tried is tried, in a scratch schema that is dropped afterwards. Nothing else
// is changed.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of an examination.
const (
	connectFor = 5 * time.Second  // until a server must have let us in
	examineFor = 60 * time.Second // for all of one server
	tidyFor    = 10 * time.Second // for dropping the scratch schema
	clockWarns = time.Second      // a clock that differs by more shows wrong countdowns
	clockFails = 4 * time.Minute  // and by more than this, notifications look too old: gateways allow 5 minutes
	nameBytes  = 8                // random bytes in the name of a scratch schema
)

// Verdict is what a Finding means.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning" // safe, but look at it
	Wrong   Verdict = "wrong"   // promises would not hold here
)

// Finding is the answer to one question about a server.
type Finding struct {
	Server  string  `json:"server"` // sqlite, mariadb, mysql, postgres or redis
	Check   string  `json:"check"`  // the question's name; it never changes
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"` // what is there
	Advice  string  `json:"advice,omitempty"`
}

// ErrAddress says that a URL is no address of a server that we know.
var ErrAddress = errors.New("wrong address")

// Store examines the database at a store's URL. The error is about the URL
// only; a server that does not answer is a finding.
func Store(ctx context.Context, address string) ([]Finding, error) {
	scheme, _, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		return examine(ctx, "sqlite", address, examineSQLite)
	case "mysql":
		return examine(ctx, "mysql", address, examineMySQL)
	case "postgres":
		return examine(ctx, "postgres", address, examinePostgres)
	}
	return nil, fmt.Errorf("%w: a store is sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/DATABASE or postgres://USER:PASSWORD@HOST:PORT/DATABASE, got scheme %q", ErrAddress, scheme)
}

// Redis examines the Redis at a URL; errors as Store.
func Redis(ctx context.Context, address string) ([]Finding, error) {
	return examine(ctx, "redis", address, examineRedis)
}

func examine(ctx context.Context, server, address string, by func(context.Context, *chart, string) error) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	c := &chart{server: server}
	if err := by(ctx, c, address); err != nil {
		return nil, err
	}
	return c.findings, nil
}

// chart collects the findings about one server.
type chart struct {
	server   string
	findings []Finding
}

func (c *chart) add(check string, v Verdict, found, advice string) {
	line := strings.Join(strings.Fields(found), " ") // drivers write some errors on several lines
	c.findings = append(c.findings, Finding{c.server, check, v, line, advice})
}

// expect is OK if it holds; otherwise the verdict and the advice.
func (c *chart) expect(holds bool, check, found string, otherwise Verdict, advice string) {
	if holds {
		c.add(check, OK, found, "")
		return
	}
	c.add(check, otherwise, found, advice)
}

// sound says that nothing has been found wrong yet.
func (c *chart) sound() bool {
	for _, f := range c.findings {
		if f.Verdict == Wrong {
			return false
		}
	}
	return true
}

// clock compares a server's clock with ours. ask answers the server's time; the
// way there and back is not held against it.
func (c *chart) clock(ask func() (time.Time, error)) {
	before := time.Now()
	there, err := ask()
	way := time.Since(before)
	if err != nil {
		c.add("clock", Wrong, err.Error(), "the server's time can't be read; it decides when a hold ends")
		return
	}
	offset := there.Sub(before.Add(way / 2))
	size := max(0, offset.Abs()-way/2).Round(time.Millisecond)
	v := Warning
	if size > clockFails {
		v = Wrong
	}
	c.expect(size <= clockWarns, "clock", fmt.Sprintf("%v from ours", offset.Round(time.Millisecond)), v,
		"let both machines follow a time server (chrony, systemd-timesyncd)")
}
