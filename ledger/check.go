package ledger

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of one entry. They bound what a single transaction can be asked to do.
const (
	MaxEntryID = 255  // bytes
	MaxName    = 128  // bytes of an account, asset, hold id, record kind or id
	MaxText    = 255  // bytes of a record's state, owner or ref
	MaxOps     = 1000 // ops of one entry
	MaxRecords = 200  // records of one entry
	MaxEvents  = 200  // events of one entry

	MaxBody = 256 << 10 // bytes of a record's or event's body, or of a reply
)

// Check says what is malformed in e, or "". Stores call it; nobody else needs to.
func (e Entry) Check() string { return e.prepared().why }

// checkFields is Check without what only encoding shows.
func (e Entry) checkFields() string {
	if e.ID == "" || !text(e.ID, MaxEntryID) {
		return fmt.Sprintf("entry id of %d bytes is not 1 to %d bytes of text", len(e.ID), MaxEntryID)
	}
	if len(e.Ops) > MaxOps {
		return fmt.Sprintf("%d ops, at most %d", len(e.Ops), MaxOps)
	}
	if len(e.Records) > MaxRecords {
		return fmt.Sprintf("%d records, at most %d", len(e.Records), MaxRecords)
	}
	if len(e.Events) > MaxEvents {
		return fmt.Sprintf("%d events, at most %d", len(e.Events), MaxEvents)
	}
	if len(e.Reply) > MaxBody {
		return fmt.Sprintf("reply of %d bytes, at most %d", len(e.Reply), MaxBody)
	}
	for i, op := range e.Ops {
		if why := op.check(); why != "" {
			return fmt.Sprintf("op %d: %s", i, why)
		}
	}
	for i, r := range e.Records {
		if !name(r.Kind) || !name(r.ID) || r.Version < 1 || r.Due < 0 {
			return fmt.Sprintf("record %d: kind, id, version or due out of range", i)
		}
		if len(r.Body) > MaxBody {
			return fmt.Sprintf("record %d: body of %d bytes, at most %d", i, len(r.Body), MaxBody)
		}
		if !text(r.State, MaxText) || !text(r.Owner, MaxText) || !text(r.Ref, MaxText) {
			return fmt.Sprintf("record %d: state, owner or ref is not at most %d bytes of text", i, MaxText)
		}
	}
	for i, ev := range e.Events {
		if !name(ev.Type) || !name(ev.Subject) || ev.Seq != 0 || ev.Entry != 0 || ev.At != 0 {
			return fmt.Sprintf("event %d: type or subject out of range, or numbered by the caller", i)
		}
		if len(ev.Body) > MaxBody {
			return fmt.Sprintf("event %d: body of %d bytes, at most %d", i, len(ev.Body), MaxBody)
		}
	}
	return ""
}

func (op Op) check() string {
	switch op.Kind {
	case KindMove, KindReserve:
		if op.Kind == KindReserve && !name(op.Hold) {
			return "hold id out of range"
		}
		if !name(string(op.From)) || !name(string(op.To)) || !name(string(op.Asset)) {
			return "account or asset out of range"
		}
		if op.From == op.To {
			return "from and to are the same account"
		}
		if op.Amount < 1 || op.Amount > MaxAmount {
			return "amount out of range"
		}
	case KindCommit, KindVoid, KindExpire, KindExtend:
		if !name(op.Hold) {
			return "hold id out of range"
		}
		if op.Amount < 0 || op.Amount > MaxAmount {
			return "amount out of range"
		}
	default:
		return "unknown kind"
	}
	if op.Until < 0 || op.Cap < 0 {
		return "time out of range"
	}
	if op != op.meant() {
		return "a field that its kind does not have"
	}
	return ""
}

// meant is the op with only the fields that its kind has.
func (op Op) meant() Op {
	switch op.Kind {
	case KindMove:
		return Op{Kind: op.Kind, From: op.From, To: op.To, Asset: op.Asset, Amount: op.Amount}
	case KindReserve:
		op.Keep = false
		return op
	case KindCommit:
		return Op{Kind: op.Kind, Hold: op.Hold, Amount: op.Amount, Keep: op.Keep}
	case KindExtend:
		return Op{Kind: op.Kind, Hold: op.Hold, Until: op.Until}
	default: // KindVoid, KindExpire
		return Op{Kind: op.Kind, Hold: op.Hold}
	}
}

// text accepts what JSON and every database give back as it was: UTF-8 without
// control characters.
func text(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// name accepts printable ASCII without spaces: nothing that one database
// compares or stores in another way than the next.
func name(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
