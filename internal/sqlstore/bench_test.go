package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-pay/holdfast/ledger"
)

// callers is how many orders wait at a time.
const callers = 64

// order is what a checkout writes when it holds stock: one hold, one record of
// 600 bytes, one event, under a random key.
func order() ledger.Entry {
	id := uuid.Must(uuid.NewV7()).String()
	body, _ := json.Marshal(map[string]string{"id": id, "filler": strings.Repeat("x", 540)})
	return ledger.Entry{
		ID:      "order:" + uuid.NewString(),
		Ops:     []ledger.Op{ledger.Reserve(id, tee("shop", "@sold", 1), 1, 0)},
		Records: []ledger.Record{{Kind: "order", ID: id, Version: 1, State: "held", Due: 1, Body: body}},
		Events:  []ledger.Event{{Type: "order.held", Subject: id, Body: body[:0]}},
	}
}

func benchmarkStore(b *testing.B, empty func(testing.TB) string) *Store {
	s, err := Open(b.Context(), empty(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if _, err := s.Apply(context.Background(), stock("stock", 1<<40)); err != nil {
		b.Fatal(err)
	}
	return s
}

// cpu is the processor time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report gives the rate, and the processor time, which a busy machine changes less.
func report(b *testing.B, entries int, before time.Duration) {
	b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(entries), "cpu-us/entry")
}

// BenchmarkDirect: each of the callers applies its own entry.
func BenchmarkDirect(b *testing.B) {
	for _, kind := range everyDatabase {
		b.Run(kind.name, func(b *testing.B) { direct(b, benchmarkStore(b, kind.empty)) })
	}
}

func direct(b *testing.B, s *Store) {
	entries := make([]ledger.Entry, b.N)
	for i := range entries {
		entries[i] = order()
	}
	before := cpu(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := i; n < b.N; n += callers {
				if res, err := s.Apply(context.Background(), entries[n]); err != nil || res[0].Refused() {
					b.Errorf("got %+v, %v", res, err)
				}
			}
		})
	}
	wg.Wait()
	report(b, b.N, before)
}

// BenchmarkBatched: the entries of all callers are applied in one call.
func BenchmarkBatched(b *testing.B) {
	for _, kind := range everyDatabase {
		for _, n := range []int{callers, MaxBatch} {
			b.Run(fmt.Sprint(kind.name, n), func(b *testing.B) { batched(b, benchmarkStore(b, kind.empty), n) })
		}
	}
}

func batched(b *testing.B, s *Store, n int) {
	entries := make([]ledger.Entry, b.N*n)
	for i := range entries {
		entries[i] = order()
	}
	before := cpu(b)
	b.ResetTimer()
	for i := range b.N {
		if _, err := s.Apply(context.Background(), entries[i*n:(i+1)*n]...); err != nil {
			b.Fatal(err)
		}
	}
	report(b, b.N*n, before)
}

// BenchmarkRecord: one record is read by its id.
func BenchmarkRecord(b *testing.B) {
	for _, kind := range everyDatabase {
		b.Run(kind.name, func(b *testing.B) { record(b, benchmarkStore(b, kind.empty)) })
	}
}

func record(b *testing.B, s *Store) {
	e := order()
	if _, err := s.Apply(context.Background(), e); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		got, err := s.Records(context.Background(), ledger.RecordQuery{Kind: "order", ID: e.Records[0].ID})
		if err != nil || len(got) != 1 {
			b.Fatalf("got %v, %v, want one record", got, err)
		}
	}
}
