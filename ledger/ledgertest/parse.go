package ledgertest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// parseEntry reads "ID: op; op; ..." of a transcript.
func parseEntry(line string) (ledger.Entry, error) {
	id, rest, ok := strings.Cut(line, ": ")
	if !ok {
		return ledger.Entry{}, fmt.Errorf("%q is neither an entry nor a command", line)
	}
	e := ledger.Entry{ID: id}
	for part := range strings.SplitSeq(rest, ";") {
		p := &words{rest: strings.Fields(part)}
		if err := p.part(&e); err != nil {
			return e, fmt.Errorf("%q: %w", strings.TrimSpace(part), err)
		}
		if len(p.rest) > 0 {
			return e, fmt.Errorf("%q: too many words: %q", strings.TrimSpace(part), p.rest)
		}
	}
	return e, nil
}

// words are read one by one; the first mistake sticks.
type words struct {
	rest []string
	err  error
}

func (p *words) part(e *ledger.Entry) error {
	switch verb := p.word(); verb {
	case "remember":
		e.Remember = true
	case "fingerprint":
		e.Fingerprint = []byte(p.word())
	case "reply":
		e.Reply = json.RawMessage(p.word())
	case "record":
		r := ledger.Record{Kind: p.word(), ID: p.word(), Version: p.number(strings.TrimPrefix(p.word(), "v"))}
		if len(p.rest) > 0 {
			r.State = p.word()
		}
		e.Records = append(e.Records, r)
	case "event":
		e.Events = append(e.Events, ledger.Event{Type: p.word(), Subject: p.word()})
	default:
		op, ok := p.op(verb)
		if !ok {
			return fmt.Errorf("unknown verb %q", verb)
		}
		e.Ops = append(e.Ops, op)
	}
	return p.err
}

func (p *words) op(verb string) (ledger.Op, bool) {
	switch verb {
	case "move":
		return ledger.Move(p.posting()), true
	case "hold":
		hold, what := p.word(), p.posting()
		return ledger.Reserve(hold, what, p.time("until"), p.time("cap")), true
	case "commit":
		hold := p.word()
		if len(p.rest) == 0 {
			return ledger.Commit(hold), true
		}
		return ledger.CommitPart(hold, p.number(p.word()), p.optional("keep")), true
	case "void":
		return ledger.Void(p.word()), true
	case "expire":
		return ledger.Expire(p.word()), true
	case "extend":
		hold := p.word()
		until, err := clockTime(p.word())
		p.fail(err)
		return ledger.Extend(hold, until), true
	default:
		return ledger.Op{}, false
	}
}

// posting reads "2 sku:tee stock -> sold".
func (p *words) posting() ledger.Posting {
	m := ledger.Posting{Amount: p.number(p.word()), Asset: ledger.Asset(p.word()), From: ledger.Account(p.word())}
	if !p.optional("->") {
		p.fail(fmt.Errorf("want FROM -> TO"))
	}
	m.To = ledger.Account(p.word())
	return m
}

func (p *words) word() string {
	if len(p.rest) == 0 {
		p.fail(fmt.Errorf("a word is missing"))
		return ""
	}
	w := p.rest[0]
	p.rest = p.rest[1:]
	return w
}

func (p *words) optional(word string) bool {
	if len(p.rest) == 0 || p.rest[0] != word {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *words) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	p.fail(err)
	return n
}

// time reads "until 09:15" if it is there.
func (p *words) time(word string) int64 {
	if !p.optional(word) {
		return 0
	}
	ms, err := clockTime(p.word())
	p.fail(err)
	return ms
}

func (p *words) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func clockTime(s string) (int64, error) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("time of day: %w", err)
	}
	return at(t.Hour(), t.Minute()), nil
}
