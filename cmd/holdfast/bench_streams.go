package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// Bounds of a bench of streams.
const (
	maxBenchStreams = 10_000
	streamsOfKey    = 100                    // as many as the API lets one key have
	streamChanges   = 20                     // of the stock
	streamRest      = 100 * time.Millisecond // between two changes
	streamPatience  = 20 * time.Second       // after which a client has missed a change
	benchSKU        = "tee"
)

// streamFigures are what a bench of streams has found. Times are from the call
// that changes the stock, its commit included.
type streamFigures struct {
	Streams   int     `json:"streams"`
	Changes   int     `json:"changes"`
	MemoryMB  float64 `json:"memory_mb"` // heap and stacks of both ends of all connections
	MedianMS  float64 `json:"median_ms"` // until a client has the change
	P99MS     float64 `json:"p99_ms"`
	AllMS     float64 `json:"all_median_ms"` // until all clients have it: the median change
	AllMostMS float64 `json:"all_max_ms"`    // the slowest change
}

// news is that a client has heard of a stock.
type news struct {
	available int64
	at        time.Time
}

// benchStreams opens n streams of one SKU's stock on one node, and changes it.
func (h *host) benchStreams(ctx context.Context, n int) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary store: %w", err)
	}
	defer os.RemoveAll(dir)
	core, err := holdfast.Open(ctx, "sqlite:"+filepath.Join(dir, "bench.db"), holdfast.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(ctx, core)) }()
	_, err = core.PutItem(ctx, holdfast.Key{}, holdfast.ItemInput{SKU: benchSKU, Name: "Tee", Price: 100, Currency: "CNY", Stock: 1})
	if err != nil {
		return err
	}
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	api := httpapi.New(core, httpapi.Options{})
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		err = errors.Join(err, serveHTTP(serving, l, httpapi.Server(api, slog.New(slog.DiscardHandler)), api.Drain))
	})
	f, failed := measureStreams(ctx, core, l.Addr().String(), n)
	stop()
	running.Wait()
	if err = errors.Join(failed, err); err != nil {
		return fmt.Errorf("bench streams: %w", err)
	}
	return h.show(f, func(w io.Writer) {
		fmt.Fprintf(w, "%d streams cost %.1f MB, %.0f kB each, both ends together.\n", f.Streams, f.MemoryMB, 1000*f.MemoryMB/float64(f.Streams))
		fmt.Fprintf(w, "%d changes of the stock: a client has it after %.1f ms at the median, %.1f ms p99;\nall clients have it after %.1f ms at the median, %.1f ms at most.\n",
			f.Changes, f.MedianMS, f.P99MS, f.AllMS, f.AllMostMS)
	})
}

func measureStreams(ctx context.Context, core *holdfast.Holdfast, addr string, n int) (streamFigures, error) {
	f := streamFigures{Streams: n, Changes: streamChanges}
	heard := make(chan news, n)
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before := inUse()
	key := ""
	for i := range n {
		var err error
		if i%streamsOfKey == 0 {
			if key, _, err = core.CreateKey(ctx, holdfast.Key{}, "bench", []string{holdfast.ScopeRead}, 0); err != nil {
				return f, err
			}
		}
		conn, err := openStream(ctx, addr, key)
		if err != nil {
			return f, fmt.Errorf("stream %d: %w", i, err)
		}
		defer conn.Close()
		clients.Go(func() { hearStock(ctx, conn, heard) })
	}
	if _, err := awaitStock(heard, n, 1); err != nil {
		return f, err
	}
	f.MemoryMB = float64(inUse()-before) / 1e6
	var each, all []time.Duration
	for stock := int64(2); stock < 2+streamChanges; stock++ {
		time.Sleep(streamRest)
		began := time.Now()
		if _, err := core.Adjust(ctx, holdfast.Key{}, holdfast.Adjustment{SKU: benchSKU, Quantity: 1, Reason: "bench"}); err != nil {
			return f, err
		}
		times, err := awaitStock(heard, n, stock)
		if err != nil {
			return f, err
		}
		for _, at := range times {
			each = append(each, at.Sub(began))
		}
		all = append(all, slices.MaxFunc(times, time.Time.Compare).Sub(began))
	}
	slices.Sort(each)
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	f.MedianMS, f.P99MS = ms(each[len(each)/2]), ms(each[len(each)*99/100])
	f.AllMS, f.AllMostMS = ms(all[len(all)/2]), ms(all[len(all)-1])
	return f, nil
}

func openStream(ctx context.Context, addr, key string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /v1/push?topic=stock/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", benchSKU, addr, key)
	return conn, err
}

// inUse is the memory of heap and stacks after a collection, in bytes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// hearStock says what a stream says of the stock, until it ends.
func hearStock(ctx context.Context, conn net.Conn, heard chan<- news) {
	const line = 1024 // bytes
	in := bufio.NewScanner(conn)
	in.Buffer(make([]byte, 0, line), line)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		at := time.Now()
		var m struct{ Data holdfast.Availability }
		if json.Unmarshal([]byte(data), &m) != nil {
			continue
		}
		select {
		case heard <- news{m.Data.Available, at}:
		case <-ctx.Done():
			return
		}
	}
}

// awaitStock waits until n clients have heard of the stock.
func awaitStock(heard <-chan news, n int, stock int64) (times []time.Time, err error) {
	late := time.NewTimer(streamPatience)
	defer late.Stop()
	for len(times) < n {
		select {
		case m := <-heard:
			if m.available == stock {
				times = append(times, m.at)
			}
		case <-late.C:
			return nil, fmt.Errorf("%d of %d clients have not heard of a stock of %d", n-len(times), n, stock)
		}
	}
	return times, nil
}
