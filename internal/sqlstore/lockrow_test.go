package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// ownerURL makes the test binary the owner of TestAKilledOwnersRowsAreTakenOver.
const ownerURL = "HOLDFAST_OWNER_URL"

// takeAndStay takes the rows of a reservation, says so, and waits to be killed.
func takeAndStay(url string) error {
	ctx := context.Background()
	s, err := Open(ctx, url, Options{Strategy: LockRow})
	if err != nil {
		return err
	}
	s.lease = time.Second
	if _, err := s.takeRows(ctx, []ledger.Entry{reserve("killed", 1)}); err != nil {
		return err
	}
	fmt.Println("taken")
	select {}
}

func TestAKilledOwnersRowsAreTakenOver(t *testing.T) {
	t.Parallel()
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{Strategy: LockRow})
		apply(t, s, stock("stock", 1))
		owner := exec.CommandContext(t.Context(), os.Args[0])
		owner.Env = append(os.Environ(), ownerURL+"="+url)
		owner.Stderr = os.Stderr
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		said, err := bufio.NewReader(out).ReadString('\n')
		if said != "taken\n" {
			t.Errorf("the owner says %q, %v", said, err)
		}
		_ = owner.Process.Kill()
		_ = owner.Wait() // it was killed
		if got := lockCount(t, s); got != 1 {
			t.Errorf("got %d rows of the killed owner, want 1", got)
		}
		if res := apply(t, s, reserve("order", 1)); res[0].Refused() {
			t.Errorf("got %+v, want the piece that the killed owner had no time to take", res[0])
		}
		if got := lockCount(t, s); got != 0 {
			t.Errorf("got %d rows, want none", got)
		}
	})
}

func TestARowKeepsOthersOutUntilItIsGivenBack(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s, other := openAt(t, url, Options{Strategy: LockRow}), openAt(t, url, Options{Strategy: LockRow})
		e := []ledger.Entry{reserve("order", 1)}
		rows, err := s.takeRows(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		taking := lockRows{store: other, number: 1}
		if err := taking.take(t.Context(), e, true); breachOf(err) != unique || !other.dialect.again(err) {
			t.Errorf("got %v, want that the row is there, and to try again", err)
		}
		elsewhere := []ledger.Entry{{ID: "elsewhere", Ops: []ledger.Op{ledger.Move(tee("@supplier", "warehouse", 1))}}}
		free, err := other.takeRows(t.Context(), elsewhere)
		if err != nil || len(free.keys) != 1 || free.keys[0].Account != "warehouse" {
			t.Errorf("another balance: got %v, %v, want its row and none of the world outside", free.keys, err)
		}
		free.end(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := other.takeRows(ctx, e); err == nil {
			t.Error("waiting does not end with its context")
		}
		rows.end(t.Context())
		if err := taking.take(t.Context(), e, false); err != nil {
			t.Errorf("after it was given back: %v", err)
		}
		taking.end(t.Context())
	})
}

func TestALateOwnerGivesBackNothingOfTheNextOne(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{Strategy: LockRow})
		e := []ledger.Entry{reserve("order", 1)}
		s.lease = -time.Second
		late, err := s.takeRows(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.takeRows(t.Context(), e)
		if err != nil {
			t.Fatalf("take over: %v", err)
		}
		late.end(t.Context())
		if got := lockCount(t, s); got != 1 {
			t.Errorf("got %d rows, want that of the new owner", got)
		}
		next.end(t.Context())
		if got := lockCount(t, s); got != 0 {
			t.Errorf("got %d rows, want none", got)
		}
	})
}

func TestNoRowIsLeftBehind(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{Strategy: LockRow})
		apply(t, s, stock("stock", 2), reserve("order", 1))
		commit := ledger.Entry{ID: "commit", Ops: []ledger.Op{ledger.Commit("order")}}
		for what, e := range map[string]ledger.Entry{"a hold's end": commit, "a refusal": reserve("too many", 9), "a replay": reserve("order", 1)} {
			apply(t, s, e)
			if got := lockCount(t, s); got != 0 {
				t.Errorf("after %s: got %d rows, want none", what, got)
			}
		}
		rows, err := s.takeRows(t.Context(), []ledger.Entry{commit})
		if err != nil || len(rows.keys) != 1 || rows.keys[0].Account != "shop" {
			t.Errorf("got %v, %v, want the row of the balance that the hold is on", rows.keys, err)
		}
		rows.end(t.Context())
	})
}

// TestNoPromiseRestsOnALease: every lease is over when it begins, so that all
// buyers take each other's rows away all the time.
func TestNoPromiseRestsOnALease(t *testing.T) {
	const buyers, pieces = 16, 5
	onEveryDatabase(t, func(t *testing.T, url string) {
		var stores [2]*Store
		for i := range stores {
			stores[i] = openAt(t, url, Options{Strategy: LockRow})
			stores[i].lease = -time.Second
		}
		apply(t, stores[0], stock("stock", pieces))
		var won [buyers]int
		var wg sync.WaitGroup
		for i := range buyers {
			wg.Go(func() {
				res, err := stores[i%2].Apply(t.Context(), reserve(fmt.Sprintf("order-%d", i), 1))
				if err != nil {
					t.Errorf("order %d: %v", i, err)
				} else if !res[0].Refused() {
					won[i] = 1
				}
			})
		}
		wg.Wait()
		if got := strings.Count(fmt.Sprint(won), "1"); got != pieces || held(t, stores[1]) != pieces {
			t.Errorf("got %d sold and %d held, want %d", got, held(t, stores[1]), pieces)
		}
	})
}

func lockCount(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.conns.read.QueryRow(`SELECT COUNT(*) FROM locks`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
