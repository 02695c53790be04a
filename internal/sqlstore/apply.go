package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// Limits of a write.
const (
	MaxBatch = 512 // entries that one transaction decides

	maxTries     = 8                    // decisions of one batch
	retryPause   = 2 * time.Millisecond // before the second try; it grows by as much each time
	batchTimeout = 30 * time.Second     // for all tries of one batch
)

// errConflict says that a row was not as it had been read.
var errConflict = errors.New("a row changed meanwhile")

// errCommit says that the answer to a commit was lost or was an error: the
// transaction may or may not have happened.
var errCommit = errors.New("commit")

// Apply implements ledger.Applier. Up to MaxBatch entries are decided in one
// transaction and become durable together; a longer list takes several.
func (s *Store) Apply(ctx context.Context, entries ...ledger.Entry) ([]ledger.Result, error) {
	results := make([]ledger.Result, 0, len(entries))
	prepared := make([]ledger.Entry, len(entries))
	for i, e := range entries {
		prepared[i] = e.Prepare() // once, before anybody waits for the transaction
	}
	for batch := range slices.Chunk(prepared, MaxBatch) {
		decided, err := s.applyBatch(ctx, batch)
		if err != nil {
			return nil, fmt.Errorf("sqlstore: apply %d entries from %q on, outcome unknown: %w", len(batch), batch[0].ID, err)
		}
		results = append(results, decided...)
	}
	return results, nil
}

// applyBatch decides until a decision could be written. After a commit with an
// unknown outcome it decides again like after any conflict: what did happen is
// then found under its entry id and is not done twice.
func (s *Store) applyBatch(ctx context.Context, entries []ledger.Entry) ([]ledger.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	s.counted.batches.Add(1)
	for try := 1; ; try++ {
		results, err := s.tryBatch(ctx, entries, try > 1)
		if err == nil {
			return results, nil
		}
		if cause := ctx.Err(); cause != nil { // database/sql may say only that the transaction is gone
			return nil, fmt.Errorf("try %d: %w: %w", try, cause, err)
		}
		if try == maxTries || !(errors.Is(err, errConflict) || errors.Is(err, errCommit) || s.dialect.again(err)) {
			return nil, fmt.Errorf("try %d: %w", try, s.dialect.away(err))
		}
		if pause(ctx, time.Duration(try)*retryPause) != nil {
			return nil, fmt.Errorf("try %d: %w", try, s.dialect.away(err))
		}
	}
}

// pause waits for half of d to d, so that two writers in each other's way part.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// tryBatch decides in one transaction. Whatever goes wrong in it ends it: an
// error may have undone one statement and left the others in place. After a
// conflict the head comes first, and then there is nobody to be in conflict with.
func (s *Store) tryBatch(ctx context.Context, entries []ledger.Entry, conflict bool) ([]ledger.Result, error) {
	s.counted.transactions.Add(1)
	rows, err := s.takeRows(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("take the rows of locks: %w", err)
	}
	defer func() { rows.end(ctx) }()
	t, err := s.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer t.end()
	headFirst := conflict || s.strategy.lock || s.dialect.lock == ""
	state, err := t.load(ctx, entries, headFirst)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if s.measured != nil {
		s.measured.Set(t.now)
	}
	now := s.now(t.head)
	results := make([]ledger.Result, len(entries))
	for i, e := range entries {
		results[i] = state.Decide(e, now)
	}
	if t.behind && slices.ContainsFunc(results, refusedNow) {
		return nil, errConflict // no statement guards a refusal as it does a change
	}
	changes := state.Changes()
	if len(changes.Lines) == 0 {
		return results, nil
	}
	rows.give(ctx, t)
	if err := t.write(ctx, changes); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	if err := s.commit(t.Tx); err != nil {
		return nil, fmt.Errorf("%w: %w", errCommit, err)
	}
	rows.keys = nil // the commit has deleted them
	return results, nil
}

// refusedNow says that r was refused by the rows, and not long ago.
func refusedNow(r ledger.Result) bool { return r.Refused() && !r.Replayed }
