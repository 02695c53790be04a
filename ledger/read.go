package ledger

import "context"

// MaxPage is the most rows that one read returns, and what a Limit of 0 means.
const MaxPage = 1000

// Reader is the read side of a store. Every list is bounded by Limit
// (0 or more than MaxPage = MaxPage), is ordered as its query says, and is
// continued by passing the last row's key as After. Safe for concurrent use.
type Reader interface {
	// Now is the store's time in Unix ms. It never goes back, and is the only
	// clock that deadlines are compared with.
	Now(ctx context.Context) (int64, error)
	// Head is the end of the journal.
	Head(ctx context.Context) (Head, error)
	Lines(ctx context.Context, q LineQuery) ([]Line, error)
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	Postings(ctx context.Context, q PostingQuery) ([]Posted, error)
	Balances(ctx context.Context, q BalanceQuery) ([]Balance, error)
	Holds(ctx context.Context, q HoldQuery) ([]Hold, error)
	Records(ctx context.Context, q RecordQuery) ([]Record, error)
	// Snapshot calls f with a Reader that sees one moment of the store. It
	// keeps that moment alive, so f should be quick or rare.
	Snapshot(ctx context.Context, f func(Reader) error) error
}

// Store is a complete ledger.
type Store interface {
	Applier
	Reader
}

// LineQuery lists the journal by Seq, or finds the line of one entry id.
type LineQuery struct {
	ID    string // "" = all
	After int64
	Limit int
}

// EventQuery lists the feed by Seq.
type EventQuery struct {
	Subject string // "" = all
	After   int64
	Limit   int
}

// PostingQuery lists postings by (Seq, N); with Desc from the highest down.
type PostingQuery struct {
	Account Account // on either side; "" = all
	Asset   Asset   // "" = all
	Desc    bool
	After   int64 // Seq; the postings of one entry are never split over pages; with Desc 0 = from the end
	Limit   int
}

// BalanceQuery lists balances by Key.
type BalanceQuery struct {
	Account Account // "" = all
	Asset   Asset   // "" = all
	Prefix  Account // accounts that begin so; "" = all
	After   Key
	Limit   int
}

// HoldQuery lists holds by ID.
type HoldQuery struct {
	ID    string    // "" = all
	From  Account   // "" = all
	Asset Asset     // "" = all
	State HoldState // "" = all
	After string
	Limit int
}

// RecordQuery lists records by (Kind, ID); with DueBy by (Due, ID, Kind) and without
// After; with Desc from the highest ID down.
type RecordQuery struct {
	Kind  string // "" = all
	ID    string // "" = all
	State string // "" = all
	Owner string // "" = all
	Ref   string // "" = all
	DueBy int64  // only 0 < Due <= DueBy; 0 = all
	Desc  bool
	After RecordKey
	Limit int
}

// Page bounds a Limit.
func Page(limit int) int {
	if limit <= 0 || limit > MaxPage {
		return MaxPage
	}
	return limit
}
