package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bounds of waiting for a process.
const (
	readyFor  = 30 * time.Second
	readyPoll = 20 * time.Millisecond
)

// process is holdfast serve as a process of its own.
type process struct {
	cmd *exec.Cmd
	url string // without a path

	mu  sync.Mutex
	log bytes.Buffer // stderr so far
	did chan string  // the msg of each line of the log
}

// start runs holdfast serve and waits until it is ready.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{did: make(chan string, 10_000)}
	p.cmd = exec.Command(os.Args[0], append([]string{"serve", "--json"}, args...)...)
	p.cmd.Env = append(append(os.Environ(), asCommand+"=1"), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("the log of process %d:\n%s", p.cmd.Process.Pid, p.log.String())
		}
	})
	go p.read(errs)
	var where struct{ API string }
	if err := json.NewDecoder(out).Decode(&where); err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("serve said nothing: %v\n%s", err, p.log.String())
	}
	p.url = strings.TrimSuffix(where.API, "/v1")
	p.await(t)
	return p
}

func (p *process) read(errs io.Reader) {
	defer close(p.did)
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var l struct{ Msg string }
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			select {
			case p.did <- l.Msg:
			default:
			}
		}
	}
}

// await waits until the process takes work.
func (p *process) await(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for range int(readyFor / readyPoll) {
		res, err := http.Get(p.url + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		<-tick.C
	}
	t.Fatalf("not ready within %v", readyFor)
}

// said waits until the log says so.
func (p *process) said(t *testing.T, msg string) {
	t.Helper()
	for did := range p.did {
		if did == msg {
			return
		}
	}
	t.Fatalf("the process ended and never said %q", msg)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the process and returns how it ended.
func (p *process) ended() syscall.WaitStatus {
	for range p.did { // Wait closes the pipe, so read it to its end first
	}
	_ = p.cmd.Wait() // the status says it all
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func TestTheFirstSignalDrainsAndExitsWithZero(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := start(t, nil, "--db", newStore(t), "--addr", "127.0.0.1:0", "--open")
		events := stream(t, p)
		p.signal(t, s)
		if _, err := io.Copy(io.Discard, events); err != nil {
			t.Errorf("%v: the stream of events was cut instead of ended: %v", s, err)
		}
		if got := p.ended(); !got.Exited() || got.ExitStatus() != exitOK {
			t.Errorf("%v: got %v, want exit status 0", s, got)
		}
	}
}

// stream opens the stream of events.
func stream(t *testing.T, p *process) io.Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyFor)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("got %s, want a stream", res.Status)
	}
	return res.Body
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, nil, "--db", newStore(t), "--addr", "127.0.0.1:0", "--open")
	// A request whose body never comes keeps the server waiting.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: 0123456789abcdef\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 100 ") {
		t.Fatalf("got %q, %v, want to be asked for the body", line, err)
	}
	p.signal(t, syscall.SIGTERM)
	p.said(t, "stopping")
	p.signal(t, syscall.SIGTERM)
	if got := p.ended(); !got.Signaled() {
		t.Errorf("got exit status %d, want the end by a signal", got.ExitStatus())
	}
}

func TestAStoreWithoutKeysSaysHowToMakeOne(t *testing.T) {
	url := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	h := &host{out: &first{Writer: &out, then: cancel}, err: io.Discard, env: func(string) string { return "" }}
	if status := run(ctx, []string{"serve", "--db", url, "--addr", "127.0.0.1:0"}, h); status != exitOK {
		t.Errorf("got status %d, want 0", status)
	}
	if !strings.Contains(out.String(), "holdfast keys create --db "+url) {
		t.Errorf("got %q, want how to make a key", out.String())
	}
}

// first calls then when the text that is awaited has been written.
type first struct {
	io.Writer
	then func()
}

func (f *first) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("keys create")) {
		defer f.then()
	}
	return f.Writer.Write(b)
}
