package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/holdfast-pay/holdfast/ledger"
)

var storms = []claim{
	{"StormOnTheLastUnitSellsOne", func(w *world) { storm(w, 1, 31) }},
	{"StormSellsExactlyWhatIsThere", func(w *world) { storm(w, 10, 22) }},
	{"OneEntryFiftyTimesAtOnceHappensOnce", oneEntryAtOnce},
	{"PartialCommitsNeverExceedTheHold", partialCommits},
	{"CommitVoidAndExpireHaveOneWinner", oneWinner},
	{"RestockDuringARunIsSoldOnce", restockDuringARun},
	{"OppositeBundlesNeitherDeadlockNorOversell", oppositeBundles},
	{"EachVersionOfARecordIsWrittenOnce", oneWriterPerVersion},
	{"TenPayoutsOfOneBalanceCannotOverdraw", payoutsOfOneBalance},
	{"TransfersKeepTheSumInEverySnapshot", transfersKeepTheSum},
	{"EventsAreGaplessInCommitOrder", eventsAreGapless},
	{"ConcurrentHistoriesKeepEveryPromise", concurrentHistories},
}

// storm lets n+more buyers at once have one unit each of n.
func storm(w *world, n, more int) {
	w.give("stock", tee, int64(n))
	var sold atomic.Int64
	together(n+more, func(i int) {
		id := fmt.Sprintf("buyer-%d", i)
		res := w.apply(ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)}})[0]
		switch res.Code {
		case ledger.OK:
			sold.Add(1)
		case ledger.Insufficient:
			if res.Available != 0 || res.Key != (ledger.Key{Account: "stock", Asset: tee}) {
				w.Errorf("%s: refused with %d available of %v", id, res.Available, res.Key)
			}
		default:
			w.Errorf("%s: got %+v", id, res)
		}
	})
	if sold.Load() != int64(n) {
		w.Errorf("%d of %d were sold", sold.Load(), n)
	}
	w.has("stock", tee, int64(n), int64(n))
}

func oneEntryAtOnce(w *world) {
	w.give("stock", tee, 100)
	before := w.head()
	e := ledger.Entry{ID: "o1", Ops: []ledger.Op{take("h1", tee, 3)}, Reply: []byte(`{"order":"o1"}`),
		Events: []ledger.Event{{Type: "order.held", Subject: "o1"}}}
	results := make([]ledger.Result, 50)
	together(len(results), func(i int) { results[i] = w.apply(e)[0] })
	for i, r := range results {
		if r.Refused() || r.Seq != before.Seq+1 || r.At != results[0].At || string(r.Reply) != string(e.Reply) {
			w.Errorf("answer %d: got %+v, want the one stored result", i, r)
		}
	}
	if h := w.head(); h.Seq != before.Seq+1 || h.Events != before.Events+1 {
		w.Errorf("journal went from %d to %d, events from %d to %d; want one of each", before.Seq, h.Seq, before.Events, h.Events)
	}
	w.has("stock", tee, 100, 3)
}

// partialCommits is what shippers and refunders do to one hold at once: each
// reads the same rest, and the sum must still not exceed the whole.
func partialCommits(w *world) {
	const amount, part, shippers = 100, 7, 64
	w.give("stock", tee, amount)
	w.ok("hold", take("h1", tee, amount))
	var committed atomic.Int64
	together(shippers, func(i int) {
		res := w.apply(ledger.Entry{ID: fmt.Sprintf("ship-%d", i), Ops: []ledger.Op{ledger.CommitPart("h1", part, true)}})[0]
		switch {
		case !res.Refused():
			committed.Add(part)
		case res.Code != ledger.ExceedsHold:
			w.Errorf("ship-%d: got %+v, want accepted or %s", i, res, ledger.ExceedsHold)
		}
	})
	want := int64(amount / part * part)
	if committed.Load() != want {
		w.Errorf("committed %d of %d, want %d", committed.Load(), amount, want)
	}
	w.has("stock", tee, amount-want, amount-want)
	w.has("sold", tee, want, 0)
	w.holdIs("h1", ledger.Held, want, 0)
}

// oneWinner ends each of many due holds in every way at once. k sweepers, a
// late payment and a cancellation race; whoever comes first wins, once.
func oneWinner(w *world) {
	const rounds = 12
	ends := map[ledger.HoldState]func(string) ledger.Op{
		ledger.Committed: ledger.Commit, ledger.Voided: ledger.Void, ledger.Expired: ledger.Expire,
	}
	w.give("stock", tee, rounds)
	for i := range rounds {
		w.ok(fmt.Sprintf("hold-%d", i), take(fmt.Sprintf("h%d", i), tee, 1))
	}
	w.clock.set(at(9, 15))
	var mu sync.Mutex
	winners, losers := map[string]ledger.HoldState{}, map[string][]ledger.HoldState{}
	together(rounds, func(i int) {
		hold := fmt.Sprintf("h%d", i)
		states := []ledger.HoldState{ledger.Committed, ledger.Voided, ledger.Expired, ledger.Expired}
		together(len(states), func(k int) {
			id := fmt.Sprintf("end-%d-%d", i, k)
			res := w.apply(ledger.Entry{ID: id, Ops: []ledger.Op{ends[states[k]](hold)}})[0]
			mu.Lock()
			defer mu.Unlock()
			switch {
			case res.Code == ledger.HoldFinal:
				losers[hold] = append(losers[hold], res.Hold)
			case res.Refused():
				w.Errorf("%s: got %+v", id, res)
			case winners[hold] != "":
				w.Errorf("%s was ended twice: %s and %s", hold, winners[hold], states[k])
			default:
				winners[hold] = states[k]
			}
		})
	})
	var sold int64
	for hold, state := range winners {
		for _, told := range losers[hold] {
			if told != state {
				w.Errorf("%s is %s, a loser was told %s", hold, state, told)
			}
		}
		if state == ledger.Committed {
			sold++
		}
	}
	if len(winners) != rounds {
		w.Errorf("%d of %d holds were ended", len(winners), rounds)
	}
	w.has("stock", tee, rounds-sold, 0)
}

func restockDuringARun(w *world) {
	const buyers, deliveries, each = 30, 6, 4
	var sold atomic.Int64
	together(buyers+deliveries, func(i int) {
		if i < deliveries {
			w.ok(fmt.Sprintf("delivery-%d", i), ledger.Move(post("@supplier", "stock", tee, each)))
			return
		}
		id := fmt.Sprintf("buyer-%d", i)
		if res := w.apply(ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(post("stock", "sold", tee, 1))}})[0]; !res.Refused() {
			sold.Add(1)
		}
	})
	w.has("stock", tee, deliveries*each-sold.Load(), 0)
	// Whoever was refused may come again, and then everything is sold.
	for i := deliveries; i < buyers+deliveries; i++ {
		id := fmt.Sprintf("buyer-%d", i)
		w.apply(ledger.Entry{ID: id, Ops: []ledger.Op{ledger.Move(post("stock", "sold", tee, 1))}})
	}
	w.has("stock", tee, 0, 0)
	w.has("sold", tee, deliveries*each, 0)
}

// oppositeBundles name the same two balances in opposite order, which is how
// stores that lock in the order of the lines deadlock.
func oppositeBundles(w *world) {
	w.give("stock", tee, 10)
	w.give("stock", mug, 6)
	var sold atomic.Int64
	together(24, func(i int) {
		id := fmt.Sprintf("bundle-%d", i)
		ops := []ledger.Op{take(id+"-t", tee, 1), take(id+"-m", mug, 1)}
		if i%2 == 1 {
			ops[0], ops[1] = ops[1], ops[0]
		}
		if res := w.apply(ledger.Entry{ID: id, Ops: ops})[0]; !res.Refused() {
			sold.Add(1)
		}
	})
	if sold.Load() != 6 {
		w.Errorf("%d bundles were sold, want 6", sold.Load())
	}
	w.has("stock", tee, 10, 6)
	w.has("stock", mug, 6, 6)
}

func oneWriterPerVersion(w *world) {
	const writers, versions = 8, 3
	w.give("stock", tee, 100)
	for v := int64(1); v <= versions; v++ {
		var won atomic.Int64
		together(writers, func(i int) {
			id := fmt.Sprintf("write-%d-%d", v, i)
			res := w.apply(ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)},
				Records: []ledger.Record{{Kind: "order", ID: "o1", Version: v, State: id}}})[0]
			switch {
			case !res.Refused():
				won.Add(1)
			case res.Code != ledger.Stale || res.Record != (ledger.RecordKey{Kind: "order", ID: "o1"}):
				w.Errorf("%s: got %+v, want %s", id, res, ledger.Stale)
			}
		})
		if won.Load() != 1 {
			w.Errorf("version %d was written %d times", v, won.Load())
		}
	}
	w.has("stock", tee, 100, versions)
}

func payoutsOfOneBalance(w *world) {
	w.give("seller", cny, 5000)
	var paid atomic.Int64
	together(10, func(i int) {
		id := fmt.Sprintf("payout-%d", i)
		op := ledger.Reserve(id, post("seller", "@bank", cny, 1000), 0, 0)
		if res := w.apply(ledger.Entry{ID: id, Remember: true, Ops: []ledger.Op{op}})[0]; !res.Refused() {
			paid.Add(1)
		}
	})
	if paid.Load() != 5 {
		w.Errorf("%d payouts of 1000 were accepted out of 5000", paid.Load())
	}
	w.has("seller", cny, 5000, 5000)
}

// transfersKeepTheSum is a bank: money moves among accounts at random, and no
// reader ever sees it on both sides, or on neither.
func transfersKeepTheSum(w *world) {
	const clerks, transfers, accounts, each = 6, 8, 4, 100
	for i := range accounts {
		w.give(ledger.Account(fmt.Sprintf("wallet-%d", i)), cny, each)
	}
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			w.sumIs(accounts * each)
			select {
			case <-done:
				return
			default:
			}
		}
	})
	together(clerks, func(i int) {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		for n := range transfers {
			from := rnd.IntN(accounts)
			to := (from + 1 + rnd.IntN(accounts-1)) % accounts
			w.apply(ledger.Entry{ID: fmt.Sprintf("transfer-%d-%d", i, n), Ops: []ledger.Op{ledger.Move(post(
				ledger.Account(fmt.Sprintf("wallet-%d", from)), ledger.Account(fmt.Sprintf("wallet-%d", to)), cny, rnd.Int64N(60)+1))}})
		}
	})
	close(done)
	reader.Wait()
	w.sumIs(accounts * each)
}

// sumIs asserts, in one snapshot, that the wallets hold sum and that the
// journal ends where the head says, before and after.
func (w *world) sumIs(sum int64) {
	err := w.store.Snapshot(w.ctx, func(r ledger.Reader) error {
		head, err := r.Head(w.ctx)
		if err != nil {
			return err
		}
		rows, err := r.Balances(w.ctx, ledger.BalanceQuery{Prefix: "wallet-"})
		if err != nil {
			return err
		}
		var got int64
		for _, b := range rows {
			got += b.Posted
		}
		if got != sum {
			w.Errorf("at line %d the wallets hold %d, want %d", head.Seq, got, sum)
		}
		later, err := r.Lines(w.ctx, ledger.LineQuery{After: head.Seq})
		if err != nil {
			return err
		}
		if len(later) != 0 {
			w.Errorf("a snapshot at line %d has %d lines after it", head.Seq, len(later))
		}
		return nil
	})
	if err != nil {
		w.Errorf("snapshot: %v", err)
	}
}

func eventsAreGapless(w *world) {
	const writers, each = 8, 4
	w.give("stock", tee, writers*each)
	together(writers, func(i int) {
		for n := range each {
			id := fmt.Sprintf("sale-%d-%d", i, n)
			w.okEntry(ledger.Entry{ID: id, Ops: []ledger.Op{take(id, tee, 1)}, Events: []ledger.Event{
				{Type: "order.held", Subject: id}, {Type: "order.queued", Subject: id}}})
		}
	})
	events, err := w.store.Events(w.ctx, ledger.EventQuery{})
	if err != nil || len(events) != 2*writers*each {
		w.Fatalf("got %d events, error %v, want %d", len(events), err, 2*writers*each)
	}
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			w.Errorf("event %d has number %d", i+1, ev.Seq)
		}
		if i > 0 && (ev.Entry < events[i-1].Entry || ev.At < events[i-1].At) {
			w.Errorf("event %d of line %d follows one of line %d", ev.Seq, ev.Entry, events[i-1].Entry)
		}
	}
}
