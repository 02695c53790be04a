package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-pay/holdfast/ledger"
)

// stormURL makes the test binary a buyer of TestTwoProcessesSellEachUnitOnce.
const stormURL = "HOLDFAST_STORM_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(ownerURL); url != "" {
		if err := takeAndStay(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	if url := os.Getenv(stormURL); url != "" {
		sold, err := buyAll(url, Strategy(os.Args[1]), os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(sold)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Each process has as many buyers as there are units, and every buyer wants one.
const (
	stormUnits  = 40
	stormBuyers = stormUnits
)

// buyAll lets all buyers of one process buy at once.
func buyAll(url string, strategy Strategy, name string) (sold int64, err error) {
	ctx := context.Background()
	s, err := Open(ctx, url, Options{Strategy: strategy})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	var units atomic.Int64
	errs := make([]error, stormBuyers)
	var wg sync.WaitGroup
	for i := range stormBuyers {
		wg.Go(func() {
			results, err := s.Apply(ctx, reserve(fmt.Sprintf("%s-%d", name, i), 1))
			switch {
			case err != nil:
				errs[i] = err
			case !results[0].Refused():
				units.Add(1)
			case results[0].Code != ledger.Insufficient:
				errs[i] = fmt.Errorf("%s-%d: %+v", name, i, results[0])
			}
		})
	}
	wg.Wait()
	for _, e := range errs {
		if e != nil {
			return 0, e
		}
	}
	return units.Load(), nil
}

func TestTwoProcessesSellEachUnitOnce(t *testing.T) {
	t.Parallel()
	pairs := [][2]Strategy{{Conditional, Conditional}, {Pessimistic, Pessimistic}, {Optimistic, Optimistic}, {LockRow, LockRow},
		{Pessimistic, Conditional}, {LockRow, Optimistic}}
	onEveryDatabase(t, func(t *testing.T, url string) {
		s := openAt(t, url, Options{})
		for i, pair := range pairs {
			apply(t, s, stock(fmt.Sprint("stock-", i), stormUnits))
			before := held(t, s)
			total := storm(t, url, i, pair)
			if total != stormUnits || held(t, s) != before+stormUnits {
				t.Errorf("%v: %d told that they have one of %d units, %d held", pair, total, stormUnits, held(t, s)-before)
			}
		}
	})
}

// storm runs two processes and gives how many units they say they have got.
func storm(t *testing.T, url string, round int, pair [2]Strategy) (total int64) {
	t.Helper()
	var outs, errs [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i, strategy := range pair {
		cmds[i] = exec.CommandContext(t.Context(), os.Args[0], string(strategy), fmt.Sprintf("round-%d-%d", round, i))
		cmds[i].Env = append(os.Environ(), stormURL+"="+url)
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], &errs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, errs[i].String())
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(outs[i].String()), 10, 64)
		if err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		total += n
	}
	return total
}
