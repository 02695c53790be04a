// Command holdfast serves, shows and looks after a Holdfast store.
//
// It is the only place that reads flags, the environment and signals.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The first signal asks to end. The second one meets the system's own
	// handling again, and ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &host{out: os.Stdout, err: os.Stderr, env: os.Getenv}))
}

// host is what the commands see of the process around them.
type host struct {
	out, err io.Writer
	env      func(string) string
	json     bool // answers are JSON
	started  bool // a command has begun: flags and arguments were right
}
