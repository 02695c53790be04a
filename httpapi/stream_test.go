package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// onePipe accepts one connection that holds no byte that is not read.
type onePipe struct{ conns chan net.Conn }

func (p onePipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p onePipe) Close() error   { return nil }
func (p onePipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

const handshake = "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"

// dropped is for how long a client that has shaken hands, and then does as reads
// says, can hold up what the server does; at most ten times slowReader.
func dropped(t *testing.T, reads func(io.Reader), does func(*socket) error) (held time.Duration) {
	t.Helper()
	over := make(chan time.Duration, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, _, err := openWebSocket(r.Context(), w, r)
		if err != nil {
			t.Errorf("no WebSocket: %v", err)
			return
		}
		began := time.Now()
		if err := does(out); err == nil {
			t.Error("what nobody took was sent")
		}
		over <- time.Since(began)
		out.end()
	})}
	client, conn := net.Pipe()
	defer client.Close()
	l := onePipe{make(chan net.Conn, 1)}
	l.conns <- conn
	go func() { _ = server.Serve(l) }()
	defer close(l.conns)
	if _, err := io.WriteString(client, handshake); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(client)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", resp, err)
	}
	go reads(in)
	select {
	case held = <-over:
	case <-time.After(10 * slowReader):
		held = 10 * slowReader
	}
	return held
}

func TestAWebSocketThatDoesNotReadIsDropped(t *testing.T) {
	nothing := func(io.Reader) {}
	all := func(r io.Reader) { _, _ = io.Copy(io.Discard, r) } // and answers no ping
	for name, c := range map[string]struct {
		reads func(io.Reader)
		does  func(*socket) error
	}{
		"a message is not read": {nothing, func(o *socket) error { return o.send(1, []byte("{}")) }},
		"a ping is not read":    {nothing, (*socket).beat},
		"a ping has no answer":  {all, (*socket).beat},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if held := dropped(t, c.reads, c.does); held > slowReader {
					t.Errorf("the stream was held up for %v, want at most %v", held, slowReader)
				}
			})
		})
	}
}
