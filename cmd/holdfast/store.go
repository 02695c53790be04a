package main

import (
	"context"
	"errors"
	"fmt"
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

// storeFlag is --db, with what the environment says as its default.
func (h *host) storeFlag(c *cobra.Command) *string {
	return c.Flags().String("db", h.or("HOLDFAST_DB", defaultStore), "the `store`, sqlite:PATH; HOLDFAST_DB")
}

// withStore opens a store that is there, without background work, for as long
// as f runs.
func withStore(ctx context.Context, url string, f func(*holdfast.Holdfast) error) error {
	path, isFile := strings.CutPrefix(url, "sqlite:")
	path, _, _ = strings.Cut(path, "?")
	if _, err := os.Stat(path); isFile && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no store at %s; 'holdfast migrate --db %s' makes one", url, url)
	}
	return openStore(ctx, url, f)
}

// openStore is withStore for a store that need not be there yet.
func openStore(ctx context.Context, url string, f func(*holdfast.Holdfast) error) error {
	core, err := holdfast.Open(ctx, url, holdfast.Options{Passive: true})
	if err != nil {
		return err
	}
	return errors.Join(f(core), closeStore(ctx, core))
}

// closeStore closes even when ctx has ended: that is when it matters.
func closeStore(ctx context.Context, core *holdfast.Holdfast) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
	defer cancel()
	return core.Close(ctx)
}
