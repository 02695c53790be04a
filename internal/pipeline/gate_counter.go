package pipeline

import (
	"context"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Counter counts what may still be taken of each key, for one Gate or for many.
// It may be empty, stale or gone: it is asked so that the ledger need not be.
//
// What an implementation keeps of a key:
//   - free: what the ledger had available at line Seq, less all takings that were
//     not in it yet.
//   - doubt: the part of those takings of which nobody has said whether line Seq
//     contains them. Only what is neither free nor doubtful is surely gone.
//   - pending: the takings that free has been lessened by, until a Set contains
//     them.
//   - memory: the operations that were taken, so that a repeat is told apart
//     before the stock is looked at.
//
// Every method is atomic for each key, and idempotent by operation. An error
// means that the call may have happened. Safe for concurrent use.
type Counter interface {
	// Take takes each taking wholly or not at all; verdicts[i] belongs to takings[i].
	Take(ctx context.Context, takings ...Taking) ([]Verdict, error)
	// Give gives the taking of op back, if it was taken of these keys and is
	// pending, and forgets it.
	Give(ctx context.Context, op string, keys []ledger.Key) error
	// Settle says in which line of the journal takings ended.
	Settle(ctx context.Context, settlements ...Settlement) error
	// Set says what the ledger has available; lefts[i] belongs to levels[i].
	Set(ctx context.Context, levels ...Level) ([]Left, error)
	// Taken lists operations that were taken of key, from the cursor after on (0 =
	// the beginning), at most MaxTaken. It may list some twice. It returns the next
	// cursor; more says that there are more by now.
	Taken(ctx context.Context, key ledger.Key, after int64) (ops []string, next int64, more bool, err error)
}

// MaxTaken is the most operations that one call of Counter.Taken lists.
const MaxTaken = 1000

// Want is an amount of one key, in minor units, 1..ledger.MaxAmount.
type Want struct {
	Key    ledger.Key
	Amount int64
}

// Taking asks for all of its wants, or none. Its keys differ.
type Taking struct {
	Op    string // the entry's id
	Wants []Want
	// Firm takings are refused when too little is left and the counter is sure of
	// it. Others are taken whatever is left, so that they are counted.
	Firm bool
}

// Verdict is what became of a taking.
type Verdict struct {
	Fate Fate
	Key  ledger.Key // of what is short
	Left int64      // of Key, in minor units
}

// Fate of a taking.
type Fate int

const (
	Took     Fate = iota
	Doubted       // taken too, of what is doubtful
	Repeated      // taken before, by the same operation
	Short         // nothing was taken
)

// Settlement says that the taking of Op is in line Seq of the journal.
type Settlement struct {
	Op  string
	Key ledger.Key
	Seq int64
}

// Level is what the ledger had available of a key at line Seq. A level older
// than the one before it is ignored while that is fresh.
type Level struct {
	Key       ledger.Key
	Available int64 // minor units
	Seq       int64
	// Gap says that takings may have passed by the counter. It starts to remember
	// anew.
	Gap bool
}

// Left is what a key has left after a Set, in minor units, with what is
// doubtful. Unless Sure, less may be refused by the ledger only.
type Left struct {
	Amount int64
	Sure   bool
	Reach  time.Duration // how far back the memory reaches, at most CounterOptions.Memory
}

// CounterOptions are the times and limits of a Counter. All counters of one
// kind of key must have the same.
type CounterOptions struct {
	// Fresh is how long after a Set the counter may refuse; 0 = 2 s. Beyond it
	// the ledger may have got more without anybody having told the counter.
	Fresh time.Duration
	// Memory is how long an operation is remembered; 0 = 2 min. Clients repeat soon.
	// It is at least Recall.
	Memory time.Duration
	// Recall is how far back the memory must reach before the counter may refuse; 0
	// = half of Memory. A counter that has lost its memory takes a repeat for a new
	// operation, and would refuse what the ledger has accepted.
	Recall time.Duration
	// Lease is how long a taking of which nobody has heard again is pending; 0 =
	// 1 min.
	Lease time.Duration
	// MaxMemory is how many operations are remembered for a key; 0 = 1000000.
	// When more are taken in a Recall, the counter stops refusing.
	MaxMemory int
}

// WithDefaults is o with its zero values replaced.
func (o CounterOptions) WithDefaults() CounterOptions {
	if o.Fresh <= 0 {
		o.Fresh = 2 * time.Second
	}
	if o.Memory <= 0 {
		o.Memory = 2 * time.Minute
	}
	if o.Recall <= 0 {
		o.Recall = o.Memory / 2
	}
	o.Memory = max(o.Memory, o.Recall)
	if o.Lease <= 0 {
		o.Lease = time.Minute
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = 1_000_000
	}
	return o
}
