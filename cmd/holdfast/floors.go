package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// floors are what this machine can do at best, measured in the same run.
type floors struct {
	Fsync float64 // small appends made durable a second, one after another
	Empty float64 // requests a second that an empty JSON handler answers to the same clients
}

// ratios are accepted_per_s divided by the floors: they travel from machine to
// machine better than the figures do.
type ratios struct {
	Fsync float64 `json:"of_fsyncs"`
	Empty float64 `json:"of_empty_handler"`
}

// floorTime is how long each floor is measured.
const floorTime = time.Second

func (f *figures) compare(floor floors) {
	if f.Accepted == nil || floor.Fsync == 0 || floor.Empty == 0 {
		return
	}
	f.Ratios = &ratios{Fsync: hundredth(*f.Accepted / floor.Fsync), Empty: hundredth(*f.Accepted / floor.Empty)}
}

func hundredth(v float64) float64 { return float64(int64(v*100+0.5)) / 100 }

func (h *host) floors(ctx context.Context, b *benching) (floors, error) {
	fsync, err := fsyncs(b.folder(), min(floorTime, b.soldOut()))
	if err != nil {
		return floors{}, err
	}
	empty, err := b.emptyHandler(ctx, min(floorTime, b.soldOut()))
	return floors{fsync, empty}, err
}

// folder is on the disk of the store, where that is known.
func (b *benching) folder() string {
	if path, ok := strings.CutPrefix(b.store, "sqlite:"); ok {
		return filepath.Dir(path)
	}
	return os.TempDir()
}

// fsyncBytes is one small write.
const fsyncBytes = 4096

// fsyncs counts how many small appends a second become durable.
func fsyncs(dir string, d time.Duration) (perSecond float64, err error) {
	f, err := os.CreateTemp(dir, "holdfast-fsync-")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, fsyncBytes)
	start, n := time.Now(), 0
	for time.Since(start) < d {
		if _, err := f.Write(page); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// emptyHandler counts how many requests a second the same server answers to the
// same clients when there is nothing to do but to read and to write JSON.
func (b *benching) emptyHandler(ctx context.Context, d time.Duration) (perSecond float64, err error) {
	empty := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		// The client of a bench reads all of it.
		_ = json.NewEncoder(w).Encode(map[string]string{"id": "nothing"})
	})
	place, stop, err := b.overHTTP(ctx, empty, "none")
	if err != nil {
		return 0, err
	}
	defer stop()
	l := b.drive(ctx, place, []string{"nothing"}, 0, d, func() {})
	return float64(len(l.times)) / l.elapsed.Seconds(), nil
}
