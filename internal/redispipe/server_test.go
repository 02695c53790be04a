package redispipe_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-pay/holdfast/internal/redispipe"
)

// TestMain does not count a goroutine of the client that ends by itself, a second
// after it has looked at a cluster.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

const startDeadline = 20 * time.Second // of a server that starts or ends

// server is a redis-server of the test's own, which it may treat badly.
type server struct {
	*testing.T
	dir, port string
	args      []string
	process   *exec.Cmd
	admin     rueidis.Client
}

func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if testing.Short() {
			t.Skip("left out by -short: there is no redis-server")
		}
		t.Fatal("there is no redis-server: run scripts/test, which installs it, or test with -short")
	}
	s := &server{T: t, dir: t.TempDir(), port: freePort(t), args: args}
	t.Cleanup(s.kill)
	s.start()
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (s *server) addr() string { return "127.0.0.1:" + s.port }
func (s *server) url() string  { return "redis://" + s.addr() }

// start starts the server and waits until it answers.
func (s *server) start() {
	s.Helper()
	s.process = exec.Command("redis-server", append([]string{"--port", s.port, "--bind", "127.0.0.1",
		"--dir", s.dir, "--save", "", "--dbfilename", "dump.rdb"}, s.args...)...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.Fatalf("start redis-server: %v", err)
	}
	deadline := time.Now().Add(startDeadline)
	for {
		admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr()}, ForceSingleClient: true, DisableCache: true})
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

// kill ends the server as a crash does.
func (s *server) kill() {
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

func (s *server) do(args ...string) rueidis.RedisResult {
	s.Helper()
	r := s.admin.Do(context.Background(), s.admin.B().Arbitrary(args...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		s.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return r
}

// hang stops the server without closing anything, until the returned function is
// called.
func (s *server) hang() (resume func()) {
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

func open(t *testing.T, url string) *redispipe.Redis {
	t.Helper()
	r, err := redispipe.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// shared is the Redis that all tests may use which do it no harm.
func shared(t *testing.T) *redispipe.Redis {
	t.Helper()
	url := os.Getenv("HOLDFAST_TEST_REDIS")
	if url == "" {
		if testing.Short() {
			t.Skip("left out by -short: HOLDFAST_TEST_REDIS is not set")
		}
		t.Fatal("HOLDFAST_TEST_REDIS is not set: run scripts/with-services go test, or test with -short")
	}
	return open(t, url)
}

var spaces atomic.Int64

// space is a prefix that no other test uses.
func space() string { return fmt.Sprintf("test-%d-%d:", os.Getpid(), spaces.Add(1)) }

func TestAServerThatForgetsIsRefused(t *testing.T) {
	s := newServer(t)
	s.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if r, err := redispipe.Open(t.Context(), s.url()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("got %v, %v, want a refusal that names the policy", r, err)
	}
	s.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	open(t, s.url())
}

func TestAReplicaIsRefused(t *testing.T) {
	s := newServer(t)
	s.do("REPLICAOF", "127.0.0.1", freePort(t))
	if r, err := redispipe.Open(t.Context(), s.url()); err == nil || !strings.Contains(err.Error(), "slave") {
		t.Errorf("got %v, %v, want a refusal that names the role", r, err)
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	if r, err := redispipe.Open(t.Context(), "redis://127.0.0.1:"+freePort(t)); err == nil {
		t.Errorf("got %v", r)
	}
}
