package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/holdfast-pay/holdfast"
	"github.com/spf13/cobra"
)

const (
	defaultStore = "sqlite:holdfast.db"
	closeFor     = 10 * time.Second // how long closing a store may take
)

// storeFlag is --db, or what the environment says.
func (h *host) storeFlag(c *cobra.Command) *string {
	db := c.Flags().String("db", defaultStore, "the `store`: sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/DATABASE or postgres://...; HOLDFAST_DB")
	*db = h.or("HOLDFAST_DB", defaultStore) // not as the default that --help shows: it may have a password
	return db
}

// shown is a store without its password.
func shown(store string) string {
	scheme, _, found := strings.Cut(store, "://")
	if !found {
		return store
	}
	u, err := url.Parse(store)
	if err != nil {
		return scheme + "://..."
	}
	u.RawQuery = "" // it may have a password as well
	return u.Redacted()
}

// withStore opens a store that is there, without background work, for as long
// as f runs.
func withStore(ctx context.Context, url string, f func(*holdfast.Holdfast) error) error {
	if err := present(url); err != nil {
		return err
	}
	return openStore(ctx, url, f)
}

// present says what to do about a store that is a file and is not there.
func present(url string) error {
	path, isFile := strings.CutPrefix(url, "sqlite:")
	path, _, _ = strings.Cut(path, "?")
	if _, err := os.Stat(path); isFile && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no store at %s; 'holdfast migrate --db %s' makes one", url, url)
	}
	return nil
}

// openStore is withStore for a store that need not be there yet.
func openStore(ctx context.Context, url string, f func(*holdfast.Holdfast) error) error {
	core, err := holdfast.Open(ctx, url, holdfast.Options{Passive: true})
	if err != nil {
		return err
	}
	return errors.Join(f(core), closeStore(ctx, core))
}

// overRedis is redis for a preset that keeps something there, and "" for others.
func overRedis(preset, redis string) string {
	if preset == "gated" || preset == "queued" {
		return redis
	}
	return ""
}

// closeStore closes even when ctx has ended: that is when it matters.
func closeStore(ctx context.Context, core *holdfast.Holdfast) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
	defer cancel()
	return core.Close(ctx)
}
