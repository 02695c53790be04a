// Package ledger holds the rules that keep anything that can run out from
// running below zero: pieces of stock, a purchase allowance, a wallet's money.
//
// The words, in the order in which they build on one another:
//
//   - A Posting moves an amount of one asset from an account to another.
//   - A Hold is a posting that has been reserved but has not moved. It ends
//     once: committed, voided or expired.
//   - A Balance of (account, asset) is posted and held; available is posted
//     minus held, and is never below zero, save on external accounts, whose
//     names begin with "@" and stand for the outside world.
//   - An Op is one step. An Entry is an id, ops, records and events; it happens
//     as a whole, once, or not at all.
//   - A Record is a versioned document that is written if and only if its entry
//     is. The ledger does not know what an order is, and yet an order's state
//     and its stock can never disagree.
//
// The package does no I/O and reads no clock: time comes in as an argument.
// State decides; Memory is a complete store around it and the model that every
// other store is compared with; Verify recomputes everything from the journal.
package ledger

import (
	"context"
	"encoding/json"
	"strings"
)

// MaxAmount is the largest amount of one posting, in minor units: the largest
// integer that every JSON reader keeps exact.
const MaxAmount = 1<<53 - 1

// Account names who holds something. Balances come into being on first use.
type Account string

// External says whether the account stands for the outside world and so has
// no floor.
func (a Account) External() bool { return strings.HasPrefix(string(a), "@") }

// Asset names what is held, in integer minor units: "CNY" in fen,
// "sku:tee-m" in pieces. Nothing here converts one asset to another.
type Asset string

// Key names one balance.
type Key struct {
	Account Account `json:"account"`
	Asset   Asset   `json:"asset"`
}

// Compare orders keys by account, then asset, as bytes. Every store locks
// balances in this order.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(string(k.Account), string(o.Account)); c != 0 {
		return c
	}
	return strings.Compare(string(k.Asset), string(o.Asset))
}

// Posting moves Amount minor units of Asset. Amount is 1..MaxAmount.
type Posting struct {
	From   Account `json:"from"`
	To     Account `json:"to"`
	Asset  Asset   `json:"asset"`
	Amount int64   `json:"amount"`
}

// Kind is what an Op does.
type Kind string

const (
	KindMove    Kind = "move"
	KindReserve Kind = "reserve"
	KindCommit  Kind = "commit"
	KindVoid    Kind = "void"
	KindExpire  Kind = "expire"
	KindExtend  Kind = "extend"
)

// Op is one step of an entry. Make one with Move, Reserve, Commit, CommitPart,
// Void, Expire or Extend.
type Op struct {
	Kind   Kind    `json:"op"`
	Hold   string  `json:"hold,omitempty"`   // all but move
	From   Account `json:"from,omitempty"`   // move, reserve
	To     Account `json:"to,omitempty"`     // move, reserve
	Asset  Asset   `json:"asset,omitempty"`  // move, reserve
	Amount int64   `json:"amount,omitempty"` // move, reserve; commit: 0 = all that is left
	Keep   bool    `json:"keep,omitempty"`   // commit: the rest stays held
	Until  int64   `json:"until,omitempty"`  // reserve, extend: Unix ms; 0 = never due
	Cap    int64   `json:"cap,omitempty"`    // reserve: no extension beyond; 0 = none
}

// Move moves at once.
func Move(p Posting) Op {
	return Op{Kind: KindMove, From: p.From, To: p.To, Asset: p.Asset, Amount: p.Amount}
}

// Reserve takes p out of what is available, without moving it. After until
// (Unix ms; 0 = never) the hold may be expired, by an Expire op and by nothing
// else: time alone changes nothing. No Extend goes beyond cap (Unix ms; 0 = no cap).
func Reserve(hold string, p Posting, until, cap int64) Op {
	return Op{Kind: KindReserve, Hold: hold, From: p.From, To: p.To, Asset: p.Asset, Amount: p.Amount, Until: until, Cap: cap}
}

// Commit moves all that is left of the hold.
func Commit(hold string) Op { return Op{Kind: KindCommit, Hold: hold} }

// CommitPart moves amount of the hold. The rest stays held (keep) or is released.
func CommitPart(hold string, amount int64, keep bool) Op {
	return Op{Kind: KindCommit, Hold: hold, Amount: amount, Keep: keep}
}

// Void releases the hold, whenever.
func Void(hold string) Op { return Op{Kind: KindVoid, Hold: hold} }

// Expire releases the hold if its deadline has passed; otherwise it is refused
// as not_due. Until then a commit, however late, still wins.
func Expire(hold string) Op { return Op{Kind: KindExpire, Hold: hold} }

// Extend moves the deadline to until (Unix ms), never to an earlier time.
func Extend(hold string, until int64) Op { return Op{Kind: KindExtend, Hold: hold, Until: until} }

// RecordKey names one record.
type RecordKey struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Record is a document with a version. Writing version n is refused as stale
// unless the present version is n-1 (0 = there is none). The attributes
// besides Body are there to list and find by; the ledger gives them no meaning.
type Record struct {
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	Version int64           `json:"version"`
	State   string          `json:"state,omitempty"`
	Owner   string          `json:"owner,omitempty"`
	Ref     string          `json:"ref,omitempty"` // an id in somebody else's system
	Due     int64           `json:"due,omitempty"` // Unix ms; 0 = nothing to do
	Body    json.RawMessage `json:"body,omitempty"`
}

// Key names the record.
func (r Record) Key() RecordKey { return RecordKey{r.Kind, r.ID} }

// Event says that something happened. Events are numbered without gaps in the
// order in which they were committed and never change.
type Event struct {
	Seq     int64           `json:"seq,omitempty"`   // assigned by the store, 1, 2, 3, ...
	Entry   int64           `json:"entry,omitempty"` // Line.Seq of its entry
	At      int64           `json:"at,omitempty"`    // Unix ms
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Entry happens as a whole, once, or not at all.
type Entry struct {
	// ID makes the entry happen once: applying it again gives back the stored
	// result. 1..MaxEntryID bytes, compared as bytes.
	ID string `json:"id"`
	// Fingerprint says what counts as the same entry under the same ID; another
	// one is refused as id_reused. Empty = SHA-256 of the entry itself. A caller
	// whose entry holds fresh ids or times gives the digest of the request.
	Fingerprint []byte `json:"fingerprint,omitempty"`
	// Remember makes a refusal final: the ID is used up, and a delayed duplicate
	// can't succeed later. A payout must; a sold-out order need not.
	Remember bool     `json:"remember,omitempty"`
	Ops      []Op     `json:"ops,omitempty"`
	Records  []Record `json:"records,omitempty"`
	Events   []Event  `json:"events,omitempty"`
	// Reply is kept with the entry and given back on replay, byte for byte. An
	// entry without one that was not refused replies with its first record's body.
	Reply json.RawMessage `json:"reply,omitempty"`

	form *form // set by Prepare
}

// reply is what the entry answers with, without blanks.
func (e Entry) reply(code Code) json.RawMessage {
	if len(e.Reply) == 0 && code == OK && len(e.Records) > 0 {
		return compact(e.Records[0].Body)
	}
	return compact(e.Reply)
}

// Code says why an entry was refused. OK is the empty one.
type Code string

const (
	OK           Code = ""
	Insufficient Code = "insufficient" // Result.Key would fall below zero
	HoldUnknown  Code = "hold_unknown"
	HoldExists   Code = "hold_exists"
	HoldFinal    Code = "hold_final"   // committed, voided or expired before
	ExceedsHold  Code = "exceeds_hold" // commit of more than is left
	NotDue       Code = "not_due"
	BeyondCap    Code = "beyond_cap"
	Stale        Code = "stale"     // Result.Record has another version
	IDReused     Code = "id_reused" // same id, other fingerprint
	Invalid      Code = "invalid"   // malformed; Result.Detail says how
	Overflow     Code = "overflow"  // a balance would leave int64
)

// Result is what became of an entry. A refusal is a value: it means that
// nothing happened and, with this entry, nothing will.
type Result struct {
	Seq       int64           `json:"-"` // Line.Seq; 0 when refused and not remembered
	At        int64           `json:"-"` // store time of the decision, Unix ms
	Replayed  bool            `json:"-"` // decided earlier; this is the stored result
	Reply     json.RawMessage `json:"-"` // see Entry.Reply
	Code      Code            `json:"code,omitempty"`
	Op        int             `json:"op,omitempty"`        // index of the refused op
	Key       Key             `json:"key,omitzero"`        // for Insufficient and Overflow
	Available int64           `json:"available,omitempty"` // of Key, before the entry
	Hold      HoldState       `json:"hold,omitempty"`      // for HoldFinal
	Record    RecordKey       `json:"record,omitzero"`     // for Stale
	Detail    string          `json:"detail,omitempty"`    // for Invalid, for people
}

// Refused says whether the entry had no effect.
func (r Result) Refused() bool { return r.Code != OK }

// Applier is the whole of the write side, and is to Holdfast what http.Handler
// is to the web: stores, group commit, gates and queues are all Appliers.
//
// Apply decides the entries one after another, each on its own: results[i]
// belongs to entries[i], and a refused entry never touches its neighbours. An
// error means that the outcome of every entry is unknown; the caller finds out
// by applying the same entries again. Safe for concurrent use.
type Applier interface {
	Apply(ctx context.Context, entries ...Entry) ([]Result, error)
}

// HoldState is where a hold is in its life.
type HoldState string

const (
	Held      HoldState = "held"
	Committed HoldState = "committed"
	Voided    HoldState = "voided"
	Expired   HoldState = "expired"
)

// Hold is a reserved posting. Amount = Committed + Released + what is left.
type Hold struct {
	ID        string    `json:"id"`
	From      Account   `json:"from"`
	To        Account   `json:"to"`
	Asset     Asset     `json:"asset"`
	Amount    int64     `json:"amount"`
	Committed int64     `json:"committed"`
	Released  int64     `json:"released"`
	State     HoldState `json:"state"`
	Until     int64     `json:"until"` // Unix ms; 0 = never due
	Cap       int64     `json:"cap"`   // Unix ms; 0 = none
}

// Left is what is still reserved, in minor units.
func (h Hold) Left() int64 { return h.Amount - h.Committed - h.Released }

// Balance is what an account has of an asset, in minor units.
type Balance struct {
	Key
	Posted  int64 `json:"posted"`
	Held    int64 `json:"held"`
	Version int64 `json:"version"` // counts the writes; 0 = not there yet
}

// Available is what a new posting may take.
func (b Balance) Available() int64 { return b.Posted - b.Held }

// Posted is one posting that happened: the row of the books.
type Posted struct {
	Seq int64 `json:"seq"` // Line.Seq of its entry
	N   int   `json:"n"`   // index of its op in the entry
	Posting
	Hold string `json:"hold,omitempty"` // the hold that it committed
}
