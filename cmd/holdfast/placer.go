package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

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

// placer orders one piece of each of skus in one request, under a key, and says
// what became of each. It is for one client at a time. What it leaves alone
// stays unknown.
type placer func(ctx context.Context, key string, skus []string, fates []placed)

// overHTTP serves handler on loopback, and posts orders to it over a connection
// for each client.
func overHTTP(ctx context.Context, handler http.Handler, of ware, key string, clients int, bulk bool) ([]placer, func(), error) {
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	live, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = serveHTTP(live, l, httpapi.Server(handler, nil), func() {}) })
	var all []placer
	var lines []*line
	for range clients {
		at := &line{addr: l.Addr().String(), head: head(of.path, key), of: of}
		place := at.place
		if bulk {
			at.head, place = head(of.path+"/bulk", key), at.placeMany
		}
		lines, all = append(lines, at), append(all, place)
	}
	return all, func() {
		for _, at := range lines {
			at.close()
		}
		end()
		running.Wait()
	}, nil
}

func head(path, key string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer " + key + "\r\nIdempotency-Key: "
}

// line is a connection that is kept. It writes HTTP by hand: what a client takes
// of this machine, the server can't have.
type line struct {
	addr, head string
	of         ware
	conn       net.Conn // nil = not made yet, or broken
	in         *bufio.Reader
	body, out  []byte
	answer     bytes.Buffer
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// post sends l.body and reads the answer. An error says that the connection is
// of no more use.
func (l *line) post(ctx context.Context, key string) (status int, err error) {
	if l.conn == nil {
		if l.conn, err = (&net.Dialer{Timeout: requestsFor}).DialContext(ctx, "tcp", l.addr); err != nil {
			l.conn = nil
			return 0, err
		}
		l.in = bufio.NewReader(l.conn)
	}
	if err := l.conn.SetDeadline(time.Now().Add(requestsFor)); err != nil {
		return 0, err
	}
	l.out = fmt.Appendf(l.out[:0], "%s%s\r\nContent-Length: %d\r\n\r\n", l.head, key, len(l.body))
	if _, err := l.conn.Write(append(l.out, l.body...)); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	l.answer.Reset()
	_, err = io.Copy(&l.answer, res.Body)
	return res.StatusCode, err
}

// try is post, where a broken connection is closed and leaves the outcome unknown.
func (l *line) try(ctx context.Context, key string) (status int) {
	status, err := l.post(ctx, key)
	if err != nil {
		l.close()
		return 0
	}
	return status
}

func (l *line) place(ctx context.Context, key string, skus []string, fates []placed) {
	l.body = l.of.body(l.body[:0], key, skus[0])
	switch l.try(ctx, key) {
	case http.StatusCreated:
		fates[0] = placeHeld
	case http.StatusConflict:
		if bytes.Contains(l.answer.Bytes(), soldOut) || bytes.Contains(l.answer.Bytes(), noFunds) {
			fates[0] = placeSoldOut
		}
	case http.StatusServiceUnavailable:
		fates[0] = placeTurnedAway
	}
}

// What the answers of the API are known by, without reading them as JSON: that
// would take more of this machine than to make them.
var (
	soldOut    = []byte(`"sold_out"`)
	noFunds    = []byte(`"insufficient_funds"`)
	bulkHeld   = []byte(`{"order":{`)
	bulkRefuse = []byte(`{"refusal":{`)
)

func (l *line) placeMany(ctx context.Context, key string, skus []string, fates []placed) {
	l.body = append(l.body[:0], `{"orders":[`...)
	for i, sku := range skus {
		if i > 0 {
			l.body = append(l.body, ',')
		}
		l.body = l.of.body(l.body, key, sku)
	}
	l.body = append(l.body, "]}"...)
	switch l.try(ctx, key) {
	case http.StatusOK, http.StatusCreated:
		readFates(l.answer.Bytes(), fates)
	case http.StatusServiceUnavailable:
		for i := range fates {
			fates[i] = placeTurnedAway
		}
	}
}

// readFates reads an answer to many orders, in their order.
func readFates(answer []byte, fates []placed) {
	for i := range fates {
		held, refused := bytes.Index(answer, bulkHeld), bytes.Index(answer, bulkRefuse)
		switch {
		case held >= 0 && (refused < 0 || held < refused):
			fates[i] = placeHeld
			answer = answer[held+len(bulkHeld):]
		case refused >= 0:
			answer = answer[refused+len(bulkRefuse):]
			end := max(0, bytes.IndexByte(answer, '}'))
			if bytes.Contains(answer[:end], soldOut) {
				fates[i] = placeSoldOut
			}
		default:
			return
		}
	}
}
