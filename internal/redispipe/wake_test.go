package redispipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
)

func TestAProcessWakesTheOthers(t *testing.T) {
	server := redispipetest.New(t)
	one, other := open(t, server.URL()), open(t, server.URL())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	heard, ended := make(chan bool, 1), make(chan error)
	go func() {
		ended <- other.Hear(ctx, "feed", func() {
			select {
			case heard <- true:
			default:
			}
		})
	}()
	for rung := false; !rung; { // it is not known when the other one has subscribed
		if err := one.Wake(ctx, "feed"); err != nil {
			t.Fatal(err)
		}
		select {
		case rung = <-heard:
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}
