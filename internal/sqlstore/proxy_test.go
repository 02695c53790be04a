package sqlstore

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy hands on what client and server say, and can cut a connection after
// its client has said COMMIT and before it hears of it.
type proxy struct {
	listener net.Listener
	server   string
	cut      atomic.Int64 // commits that go unanswered from now on
	wg       sync.WaitGroup
}

// through puts a proxy before the server of a URL.
func through(t *testing.T, text string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host}
	ctx, cancel := context.WithCancel(context.Background())
	p.wg.Go(func() { p.serve(ctx) })
	t.Cleanup(func() {
		cancel()
		l.Close()
		p.wg.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
		var mute atomic.Bool
		p.wg.Go(func() {
			defer stop()
			defer server.Close()
			p.forward(client, server, &mute)
		})
		p.wg.Go(func() {
			defer client.Close()
			answer(server, client, &mute)
		})
	}
}

// sayCommit is the statement, and not a column that is called committed.
var sayCommit = regexp.MustCompile(`(?i)\bcommit\b`)

// forward hands on what the client says.
func (p *proxy) forward(client, server net.Conn, mute *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if sayCommit.Match(buf[:n]) && p.cut.Load() > 0 {
			p.cut.Add(-1)
			mute.Store(true)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// answer hands on what the server says, and hangs up instead when muted.
func answer(server, client net.Conn, mute *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || mute.Load() {
			return
		}
		if _, err := io.Copy(client, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}

// TestALostCommitAnswerIsFoundUnderTheEntryID: the server has committed, and
// the connection is gone before it could say so.
func TestALostCommitAnswerIsFoundUnderTheEntryID(t *testing.T) {
	onEveryServer(t, func(t *testing.T, url string) {
		p, by := through(t, url)
		s := openAt(t, by, Options{})
		apply(t, s, stock("stock", 2))
		p.cut.Store(1)
		res := apply(t, s, reserve("order", 1))
		if p.cut.Load() != 0 || res[0].Refused() || !res[0].Replayed || res[0].Seq != 2 {
			t.Errorf("got %+v with %d cuts left, want the result of line 2, found again", res[0], p.cut.Load())
		}
		if got := held(t, s); got != 1 {
			t.Errorf("held: got %d, want 1", got)
		}
	})
}
