package stripesim

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	defaultPage = 10
	maxPage     = 100
)

// show is the wire form of one thing that was looked up.
func show[T thing](v T, fail *apiError) (object, *apiError) {
	if fail != nil {
		return nil, fail
	}
	return v.object(), nil
}

// list is one page of the things that are kept, newest first.
func list[T thing](c *call, t table[T], keep func(T) bool) (object, *apiError) {
	f := c.form
	limit := int(f.number("limit", 1, maxPage, defaultPage))
	from, until := createdRange(f)
	after := f.text("starting_after", maxTextLen)
	if _, ok := t.byID[after]; after != "" && !ok {
		f.wrong("resource_missing", "starting_after", "No such object: '"+after+"'")
	}
	if f.fail != nil {
		return nil, f.fail
	}
	data, more, started := []object{}, false, after == ""
	for i := len(t.order) - 1; i >= 0 && !more; i-- {
		v := t.order[i]
		at := v.since().Unix()
		switch {
		case !started:
			started = v.ident() == after
		case at < from || at > until || !keep(v):
		case len(data) == limit:
			more = true
		default:
			data = append(data, v.object())
		}
	}
	return object{"object": "list", "url": c.path, "has_more": more, "data": data}, nil
}

// createdRange reads created or its bounds, in Unix seconds, ends included.
func createdRange(f *form) (from, until int64) {
	const end = math.MaxInt64 - 1
	from = max(f.number("created", 0, end, 0), f.number("created[gte]", 0, end, 0), f.number("created[gt]", 0, end, -1)+1)
	until = min(f.number("created", 0, end, end), f.number("created[lte]", 0, end, end), f.number("created[lt]", 0, end, end)-1)
	return from, until
}

var clause = regexp.MustCompile(`^(?:metadata\[['"]([^'"]+)['"]\]|(status|currency)):(?:'([^']*)'|"([^"]*)")$`)

// searchIntents finds intents by clauses such as metadata['order_id']:'7',
// joined by AND. Like the real one it may lag behind: see Faults.SearchLag.
func (s *Sim) searchIntents(c *call) (object, *apiError) {
	f := c.form
	f.need("query")
	limit := int(f.number("limit", 1, maxPage, defaultPage))
	skip := int(f.number("page", 0, math.MaxInt32, 0))
	var clauses [][]string
	for text := range strings.SplitSeq(f.text("query", maxTextLen), " AND ") {
		m := clause.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			f.wrong("", "query", "We were unable to parse your search query.")
		}
		clauses = append(clauses, m)
	}
	if f.fail != nil {
		return nil, f.fail
	}
	indexed := c.now.Add(-s.faults.SearchLag)
	data, next := []object{}, any(nil)
	found := 0
	for i := len(s.intents.order) - 1; i >= 0; i-- {
		in := s.intents.order[i]
		if in.created.After(indexed) || !in.matches(clauses) {
			continue
		}
		found++
		if found > skip && len(data) < limit {
			data = append(data, in.object())
		}
	}
	if found > skip+len(data) {
		next = strconv.Itoa(skip + len(data))
	}
	return object{"object": "search_result", "url": c.path, "has_more": next != nil, "next_page": next, "data": data}, nil
}

func (in *intent) matches(clauses [][]string) bool {
	for _, m := range clauses {
		want := m[3] + m[4]
		got, ok := in.metadata[m[1]]
		switch m[2] {
		case "status":
			got, ok = in.status, true
		case "currency":
			got, ok = in.currency, true
		}
		if !ok || got != want {
			return false
		}
	}
	return true
}

// expand replaces the ids at a dotted path by the things themselves. The path
// is one that the endpoint allows.
func (s *Sim) expand(o object, path string) {
	name, rest, deeper := strings.Cut(path, ".")
	switch v := o[name].(type) {
	case []object:
		for _, each := range v {
			s.expand(each, rest)
		}
	case string:
		if whole := s.whole(v); whole != nil {
			o[name] = whole
		}
		if whole, ok := o[name].(object); ok && deeper {
			s.expand(whole, rest)
		}
	case object:
		if deeper {
			s.expand(v, rest)
		}
	}
}

// whole is the thing of that id; nil when there is none.
func (s *Sim) whole(id string) object {
	if in, ok := s.intents.byID[id]; ok {
		return in.object()
	}
	if ch, ok := s.charges.byID[id]; ok {
		return ch.object()
	}
	if r, ok := s.refunds.byID[id]; ok {
		return r.object()
	}
	if t, ok := s.transfers.byID[id]; ok {
		return t.object()
	}
	if r, ok := s.reversals.byID[id]; ok {
		return r.object()
	}
	if p, ok := s.payouts.byID[id]; ok {
		return p.object()
	}
	return nil
}
