package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/lmittmann/tint"
)

// requestsFor is how long requests under way may still take after the signal;
// with closeFor for the store it makes 25 seconds.
const requestsFor = 15 * time.Second

// logger writes for people on a terminal, JSON otherwise.
func (h *host) logger() *slog.Logger {
	if h.terminal() && !h.json {
		return slog.New(tint.NewTextHandler(h.err, &tint.Options{TimeFormat: time.TimeOnly}))
	}
	return slog.New(slog.NewJSONHandler(h.err, nil))
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

func address(l net.Listener) string { return "http://" + l.Addr().String() }

// loopback says whether only this machine can reach addr.
func loopback(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// serveHTTP serves until ctx ends, then calls drain and lets the requests under
// way finish. Those that are not done in time are cut off.
func serveHTTP(ctx context.Context, l net.Listener, srv *http.Server, drain func()) error {
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	drain()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestsFor)
	defer cancel()
	err := srv.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if err != nil {
		return fmt.Errorf("stop serving on %s: %w", l.Addr(), err)
	}
	<-ended
	return nil
}
