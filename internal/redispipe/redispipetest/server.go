// Package redispipetest gives a test a redis-server of its own.
package redispipetest

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const startDeadline = 20 * time.Second // of a server that starts or ends

// Server is a redis-server of the test's own, which it may treat badly.
type Server struct {
	*testing.T
	dir, port string
	args      []string
	process   *exec.Cmd
	admin     rueidis.Client
}

// New starts a server with these arguments, which ends with the test.
func New(t *testing.T, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if testing.Short() {
			t.Skip("left out by -short: there is no redis-server")
		}
		t.Fatal("there is no redis-server: run scripts/test, which installs it, or test with -short")
	}
	s := &Server{T: t, dir: t.TempDir(), port: FreePort(t), args: args}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// FreePort is a port that nobody listens on.
func FreePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// Addr is host:port.
func (s *Server) Addr() string { return "127.0.0.1:" + s.port }

// URL is what redispipe.Open takes.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Start starts the server and waits until it answers.
func (s *Server) Start() {
	s.Helper()
	s.process = exec.Command("redis-server", append([]string{"--port", s.port, "--bind", "127.0.0.1",
		"--dir", s.dir, "--save", "", "--dbfilename", "dump.rdb"}, s.args...)...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.Fatalf("start redis-server: %v", err)
	}
	deadline := time.Now().Add(startDeadline)
	for {
		admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true})
		if err == nil && admin.Do(context.Background(), admin.B().Ping().Build()).Error() == nil {
			s.admin = admin
			return
		}
		if err == nil {
			admin.Close()
		}
		if time.Now().After(deadline) {
			s.Fatalf("redis-server does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Kill ends the server as a crash does.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	if s.admin != nil {
		s.admin.Close()
	}
	_ = s.process.Process.Kill() // it may be gone already
	_ = s.process.Wait()
	s.process, s.admin = nil, nil
}

// Do runs a command on a connection of its own; an error fails the test.
func (s *Server) Do(args ...string) rueidis.RedisResult {
	s.Helper()
	r := s.admin.Do(context.Background(), s.admin.B().Arbitrary(args...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		s.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return r
}

// Hang stops the server without closing anything, until the returned function is
// called.
func (s *Server) Hang() (resume func()) {
	s.Helper()
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	return func() {
		if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
			s.Error(err)
		}
	}
}
