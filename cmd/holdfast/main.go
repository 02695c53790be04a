// Command holdfast serves, shows and looks after a Holdfast store.
//
// It is the only place that reads flags, the environment and signals.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// gcPercent is how much the heap may grow between two collections, in percent
// of what is alive. That is little here, and Go's 100 collects ten times a
// second under load, for a tenth of what the program can do.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(untilSignal(), os.Args[1:], &host{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv}))
}

// untilSignal ends with the first signal. By then the second one meets the
// system's own handling again, and ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// host is what the commands see of the process around them.
type host struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	json     bool // answers are JSON
	started  bool // a command has begun: flags and arguments were right
}
