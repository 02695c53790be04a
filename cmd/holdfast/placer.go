package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/httpapi"
)

// placed is what became of one order of a bench.
type placed int

const (
	placeUnknown placed = iota
	placeHeld
	placeSoldOut
	placeTurnedAway // told to come back: nothing happened
)

// placer orders one piece under a key.
type placer func(ctx context.Context, key, sku string) placed

// placer is the way that the bench goes; stop ends what it started.
func (b *benching) placer(ctx context.Context, core *holdfast.Holdfast) (place placer, stop func(), err error) {
	if !b.http {
		return b.direct(core), func() {}, nil
	}
	plain, _, err := core.CreateKey(ctx, "bench", []string{holdfast.ScopeWrite}, 0)
	if err != nil {
		return nil, nil, err
	}
	api := httpapi.New(core, httpapi.Options{})
	return b.overHTTP(ctx, api, plain)
}

func (b *benching) direct(core *holdfast.Holdfast) placer {
	return func(ctx context.Context, key, sku string) placed {
		_, err := core.Place(ctx, holdfast.Key{Scope: "bench", Value: key},
			holdfast.OrderInput{Lines: []holdfast.LineInput{{SKU: sku, Quantity: 1}}})
		var rejected *holdfast.Rejection
		switch {
		case err == nil:
			return placeHeld
		case errors.As(err, &rejected) && rejected.Code == holdfast.CodeSoldOut:
			return placeSoldOut
		case errors.As(err, &rejected) && rejected.Code == holdfast.CodeOverloaded:
			return placeTurnedAway
		}
		return placeUnknown
	}
}

// overHTTP serves handler on loopback and posts orders to it.
func (b *benching) overHTTP(ctx context.Context, handler http.Handler, key string) (placer, func(), error) {
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	live, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = serveHTTP(live, l, httpapi.Server(handler, nil), func() {}) })
	transport := &http.Transport{MaxIdleConnsPerHost: b.clients, MaxConnsPerHost: b.clients, DialContext: (&net.Dialer{}).DialContext}
	stop := func() {
		transport.CloseIdleConnections()
		end()
		running.Wait()
	}
	client := &http.Client{Transport: transport, Timeout: requestsFor}
	url := address(l) + "/v1/orders"
	return func(ctx context.Context, idempotency, sku string) placed {
		body := fmt.Appendf(nil, `{"lines":[{"sku":%q,"quantity":1}]}`, sku)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return placeUnknown
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", idempotency)
		res, err := client.Do(req)
		if err != nil {
			return placeUnknown
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return placeUnknown
		}
		switch res.StatusCode {
		case http.StatusCreated:
			return placeHeld
		case http.StatusConflict:
			return placeSoldOut
		case http.StatusServiceUnavailable:
			return placeTurnedAway
		}
		return placeUnknown
	}, stop, nil
}
