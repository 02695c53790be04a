package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// These errors of a Log mean that the call had no effect and will have none.
var (
	ErrFull    = errors.New("the queue is full")
	ErrSoldOut = errors.New("more is waiting than can still be won")
	ErrReused  = errors.New("another entry with this id is known")
)

// ErrClaimLost means that a claim lapsed and somebody else has the partition.
var ErrClaimLost = errors.New("the claim was lost")

// Defaults of a Log.
const (
	DefaultKeep  = 16_384 // decided entries that are remembered
	DefaultLease = time.Minute
)

// LogOptions are the bounds of a Log. All who share one must have the same.
type LogOptions struct {
	MaxWaiting int           // entries; 0 = 16384
	Keep       int           // decided entries to remember, so that Find knows them; 0 = 16384
	Lease      time.Duration // after which a claim lapses; 0 = 1 minute
}

// WithDefaults is o with its zero values replaced.
func (o LogOptions) WithDefaults() LogOptions {
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = DefaultMaxWaiting
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	return o
}

// Log is where a Queue keeps what waits. It may be shared by many processes.
//
// What a Log keeps true, whoever calls and whoever dies:
//   - An id is in it once. Append looks at the id before it looks at anything
//     else, so that a repeat is never turned away for want of room.
//   - A partition is worked on by one claim at a time, from its front, and a
//     claim has a number that no other has. Settle compares it, so that a worker
//     that was away too long changes nothing (compare-and-set, never "last wins").
//   - What was appended stays until it is settled: a claim that nobody settles
//     lapses, no sooner than after DefaultLease, and its entries are taken again
//     in the same order. So an entry may be handed out more than once; its id
//     makes that a replay in the ledger.
//
// Errors other than the four above mean "unknown". Safe for concurrent use.
type Log interface {
	// Append puts r at the end of its partition. A repeat of what is waiting, or
	// was decided for good, gets the place of the first; one of what was refused
	// without being remembered is a new request. Errors: ErrFull, ErrSoldOut,
	// ErrReused.
	Append(ctx context.Context, r Request) (Place, error)
	// Find says where the entry with this id is.
	Find(ctx context.Context, id string) (Place, error)
	// Wait is Find once the entry is not waiting any more.
	Wait(ctx context.Context, id string) (Place, error)
	// Take claims the first entries, at most most, of a partition that nobody has,
	// in turn; one only, if it is left over from a claim that could not settle it.
	// It waits for one until ctx ends. With an ended ctx it claims nothing.
	Take(ctx context.Context, most int) (Claim, error)
	// Settle ends a claim: its first entries end so, the rest waits in front
	// again. Error: ErrClaimLost.
	Settle(ctx context.Context, c Claim, endings []Ending) error
	// Backlog says how much waits.
	Backlog(ctx context.Context) (Backlog, error)
}

// Request is an entry that wants to wait.
type Request struct {
	Partition string
	Entry     ledger.Entry
	Print     ledger.Hash // what counts as the same request under the same id
	Units     int64       // what it wants to win; 0 = nothing that can run out
	Most      int64       // ErrSoldOut, if more units would then wait in the partition
}

// PlaceState is where an entry is.
type PlaceState int

const (
	PlaceUnknown PlaceState = iota // never here, given up, or forgotten after its decision
	PlaceWaiting
	PlaceDecided
)

// Place is where an entry is. Entries of a partition are numbered in order.
type Place struct {
	State      PlaceState
	Partition  string
	Number     int64
	Served     int64 // number of the last entry that does not wait any more
	Partitions int64 // in which somebody waits
	Repeat     bool  // from Append: the id was known
	Result     ledger.Result
}

// Claim is work that was taken.
type Claim struct {
	Partition string
	Fence     int64 // grows with every claim
	Entries   []ledger.Entry
	Failures  int // times that the first entry was left over
}

// Ending is what became of a claimed entry.
type Ending struct {
	Result ledger.Result
	GaveUp bool // the outcome is still unknown, and nobody will ask again
}

// Backlog is how much waits, claimed or not.
type Backlog struct {
	Waiting    int64
	Partitions int64
	Oldest     time.Duration // since it was appended; 0 = nothing waits
}
