package httpapi

import (
	"crypto/hmac"
	"encoding/base64"
	"net/url"
	"strconv"
)

// Limits of lists, in rows.
const (
	MaxLimit     = 200
	defaultLimit = 50
)

const cursorMAC = 16 // bytes of the digest that a cursor carries

// page is one page of a list.
type page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor for the next page; absent on the last one"`
}

// paged cuts the row that was read too many off rows and points a cursor at
// the last that is left.
func paged[T any](c *call, rows []T, limit int, id func(T) string) page[T] {
	p := page[T]{Items: list(rows)}
	if len(rows) > limit {
		p.Items = rows[:limit]
		p.NextCursor = c.cursor(id(rows[limit-1]))
	}
	return p
}

// list is never null in JSON.
func list[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

// limit reads ?limit=.
func (c *call) limit() (int, error) {
	s := c.query.Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, refuse(codeInvalidParameter, "limit must be an integer")
	}
	if n < 1 || n > MaxLimit {
		return 0, refuse(codeLimitRange, "limit must be 1 to 200")
	}
	return n, nil
}

// cursor points behind last, in this caller's list with these filters.
func (c *call) cursor(last string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.mac(last), last...))
}

// after reads ?cursor=. One that was edited, cut, or made for another caller
// or other filters is refused.
func (c *call) after() (string, error) {
	s := c.query.Get("cursor")
	if s == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) <= cursorMAC || !hmac.Equal(b[:cursorMAC], c.mac(string(b[cursorMAC:]))) {
		return "", refuse(codeInvalidCursor, "not a cursor of this list")
	}
	return string(b[cursorMAC:]), nil
}

func (c *call) mac(last string) []byte {
	filters := url.Values{}
	for name, values := range c.query {
		if name != "cursor" && name != "limit" {
			filters[name] = values
		}
	}
	d := c.api.core.MAC("cursor", c.who.id+"\n"+c.r.URL.Path+"?"+filters.Encode()+"\n"+last)
	return d[:cursorMAC:cursorMAC]
}
