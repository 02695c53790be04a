package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// floors are what this machine can do at best, measured in the same turns.
type floors struct {
	disk  string // folder
	each  time.Duration
	syncs load         // small appends made durable, one after another
	empty map[int]base // by number of clients: an empty JSON handler of the same server
	calls map[int]base // of a small script in Redis; empty = there is none
}

// base is something that clients ask without us in it.
type base struct {
	askers []placer
	stop   func()
	seen   *load
}

func (b base) perSecond() float64 { return float64(b.seen.orders) / b.seen.elapsed.Seconds() }

// floorTime is how long each floor is measured in all, at most.
const floorTime = 2 * time.Second

func (b *benching) floors(ctx context.Context) (*floors, error) {
	f := &floors{disk: b.folder(), each: min(floorTime, b.inStock()) / benchTurns, empty: map[int]base{}, calls: map[int]base{}}
	for _, clients := range b.clients {
		askers, stop, err := emptyHandler(ctx, wareOf(b.payouts), clients)
		if err != nil {
			f.stop()
			return nil, err
		}
		f.empty[clients] = base{askers, stop, &load{}}
		if b.redis == "" {
			continue
		}
		if askers, stop, err = luaCalls(ctx, b.redis, clients); err != nil {
			f.stop()
			return nil, err
		}
		f.calls[clients] = base{askers, stop, &load{}}
	}
	return f, nil
}

func (f *floors) bases() []base {
	var all []base
	for _, of := range []map[int]base{f.empty, f.calls} {
		for _, b := range of {
			all = append(all, b)
		}
	}
	return all
}

func (f *floors) stop() {
	for _, b := range f.bases() {
		b.stop()
	}
}

// takes is how long all turns take.
func (f *floors) takes() time.Duration {
	return f.each * time.Duration(benchTurns*(1+len(f.bases())))
}

// turn measures each floor for a part of the time, in a closed loop.
func (f *floors) turn(ctx context.Context, tick func()) error {
	synced, err := fsyncs(f.disk, f.each)
	if err != nil {
		return err
	}
	f.syncs.add(synced)
	closed := &benching{bulk: 1, spread: spreadEven}
	for _, base := range f.bases() {
		base.seen.add(closed.drive(ctx, base.askers, []string{"nothing"}, f.each, tick))
	}
	return nil
}

func (f *floors) fsync() float64 { return base{seen: &f.syncs}.perSecond() }

// folder is on the disk of the first store that is a file here.
func (b *benching) folder() string {
	for _, store := range b.stores {
		if path, ok := strings.CutPrefix(store, "sqlite:"); ok && store != temporary {
			return filepath.Dir(path)
		}
	}
	return os.TempDir()
}

// fsyncBytes is one small write.
const fsyncBytes = 4096

// fsyncs counts how many small appends become durable.
func fsyncs(dir string, d time.Duration) (l load, err error) {
	f, err := os.CreateTemp(dir, "holdfast-fsync-")
	if err != nil {
		return l, fmt.Errorf("measure the disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, fsyncBytes)
	for start := time.Now(); l.elapsed < d; l.elapsed = time.Since(start) {
		if _, err := f.Write(page); err != nil {
			return l, fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return l, fmt.Errorf("measure the disk: %w", err)
		}
		l.orders++
	}
	return l, nil
}

// emptyHandler answers when there is nothing to do but to read and to write
// JSON.
func emptyHandler(ctx context.Context, of ware, clients int) ([]placer, func(), error) {
	return overHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		// The client of a bench reads all of it.
		_ = json.NewEncoder(w).Encode(map[string]string{"id": "nothing"})
	}), of, "none", clients, false)
}

// takeOne is what a counter in Redis is at least.
// KEYS[1] the counter. Returns 1 when there was one to take.
var takeOne = rueidis.NewLuaScript(`
local left = tonumber(redis.call('GET', KEYS[1]) or '0')
if left < 1 then
	return 0
end
redis.call('DECRBY', KEYS[1], 1)
return 1`)

// luaCalls calls a small script once for each request, the calls of all clients
// pipelined over a shared connection.
func luaCalls(ctx context.Context, url string, clients int) ([]placer, func(), error) {
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, nil, usagef("--redis is no redis://HOST:PORT")
	}
	o.DisableRetry, o.DisableCache = true, true
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to Redis: %w", err)
	}
	key := "holdfast-bench-" + strings.ToLower(rand.Text()[:8])
	if err := client.Do(ctx, client.B().Set().Key(key).Value(fmt.Sprint(benchStock)).Build()).Error(); err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("set %s in Redis: %w", key, err)
	}
	place := func(ctx context.Context, _ string, _ []string, fates []placed) {
		if n, err := takeOne.Exec(ctx, client, []string{key}, nil).AsInt64(); err == nil && n == 1 {
			fates[0] = placeHeld
		}
	}
	return slices.Repeat([]placer{place}, clients), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
		defer cancel()
		// Nobody knows the key but us: that it may stay behind fails nothing.
		_ = client.Do(ctx, client.B().Del().Key(key).Build()).Error()
		client.Close()
	}, nil
}

// lines say what the floors are, for people.
func (f *floors) lines() []string {
	all := []string{fmt.Sprintf("Floor: %.0f durable writes of %d bytes a second, one after another.", f.fsync(), fsyncBytes)}
	for _, of := range []struct {
		bases map[int]base
		what  string
	}{{f.empty, "requests a second with an empty handler"}, {f.calls, "calls a second of a small script in Redis"}} {
		for _, clients := range slices.Sorted(maps.Keys(of.bases)) {
			all = append(all, fmt.Sprintf("Floor: %.0f %s, %d clients.", of.bases[clients].perSecond(), of.what, clients))
		}
	}
	return all
}
