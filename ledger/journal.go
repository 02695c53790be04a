package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Hash is a link of the chain over the journal.
type Hash [sha256.Size]byte

// Head is the end of the journal.
type Head struct {
	Seq    int64 // of the last line; 0 = the journal is empty
	Events int64 // of the last event
	At     int64 // Unix ms of the last line; later lines are never earlier
	Hash   Hash
}

// Line is one decided entry in the journal. Lines are numbered without gaps and
// never change: each Hash covers the line and the Hash before it, so that an
// edited, removed, inserted or moved line is found by Verify.
type Line struct {
	Seq         int64
	At          int64 // Unix ms
	ID          string
	Fingerprint Hash
	Code        Code
	Body        []byte // the entry and, when it was refused, why; canonical JSON
	Hash        Hash
}

type lineBody struct {
	Entry
	Refusal *Result `json:"refusal,omitempty"`
}

// Open decodes the line.
func (l Line) Open() (Entry, Result, error) {
	var b lineBody
	if err := json.Unmarshal(l.Body, &b); err != nil {
		return Entry{}, Result{}, fmt.Errorf("ledger: decode line %d: %w", l.Seq, err)
	}
	res := Result{}
	if b.Refusal != nil {
		res = *b.Refusal
	}
	res.Seq, res.At, res.Reply = l.Seq, l.At, b.reply(l.Code)
	return b.Entry, res, nil
}

// Chain is the hash that belongs to l when prev is the hash of the line before.
func (l Line) Chain(prev Hash) Hash {
	h := sha256.New()
	h.Write(prev[:])
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(l.Seq))
	binary.BigEndian.PutUint64(n[8:], uint64(l.At))
	h.Write(n[:])
	h.Write(l.Fingerprint[:])
	h.Write(l.Body)
	return Hash(h.Sum(nil))
}

// form is what can be known of an entry before it is decided.
type form struct {
	why   string // what is malformed; the rest is empty then
	body  []byte // the journal line, if it is accepted
	print Hash
	reply json.RawMessage
}

// Prepare returns e with the work done that needs no ledger: checking, encoding,
// digesting. It changes nothing but the time that Decide takes: whoever decides
// the entries of many callers one after another lets them do it. e must not be
// changed afterwards.
func (e Entry) Prepare() Entry {
	e.form = e.prepared()
	return e
}

func (e Entry) prepared() *form {
	if e.form != nil {
		return e.form
	}
	if why := e.checkFields(); why != "" {
		return &form{why: why}
	}
	body, err := encode(e, nil)
	if err != nil {
		return &form{why: err.Error()}
	}
	if !utf8.Valid(body) {
		return &form{why: "a body is not UTF-8"}
	}
	return &form{body: body, print: fingerprint(e, body), reply: e.reply(OK)}
}

// encode writes an entry (and why it was refused) as canonical JSON: fields in
// the order of the types, no spaces, nothing escaped that need not be.
func encode(e Entry, refusal *Result) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(lineBody{e, refusal}); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// compact is raw as encode writes it, so that a first answer and the replay of
// it, which is read from the journal, are the same bytes.
func compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if isCompact(raw) {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw // not JSON: encode has refused it
	}
	return b.Bytes()
}

// isCompact says that no blank stands between the tokens of raw: what was
// written by a program mostly has none, and to find that out is cheaper than to
// write it again.
func isCompact(raw json.RawMessage) bool {
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++ // whatever is escaped ends no text
		case !inText && c <= ' ':
			return false
		}
	}
	return true
}

// fingerprint says what counts as the same entry. body is encode(e, nil).
func fingerprint(e Entry, body []byte) Hash {
	if len(e.Fingerprint) > 0 {
		return sha256.Sum256(e.Fingerprint)
	}
	return sha256.Sum256(body)
}
