package redispipe_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-pay/holdfast/internal/redispipe"
	"github.com/holdfast-pay/holdfast/internal/redispipe/redispipetest"
)

// TestMain does not count a goroutine of the client that ends by itself, a second
// after it has looked at a cluster.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
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
	s := redispipetest.New(t)
	s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if r, err := redispipe.Open(t.Context(), s.URL()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("got %v, %v, want a refusal that names the policy", r, err)
	}
	s.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	open(t, s.URL())
}

func TestAReplicaIsRefused(t *testing.T) {
	s := redispipetest.New(t)
	s.Do("REPLICAOF", "127.0.0.1", redispipetest.FreePort(t))
	if r, err := redispipe.Open(t.Context(), s.URL()); err == nil || !strings.Contains(err.Error(), "slave") {
		t.Errorf("got %v, %v, want a refusal that names the role", r, err)
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	if r, err := redispipe.Open(t.Context(), "redis://127.0.0.1:"+redispipetest.FreePort(t)); err == nil {
		t.Errorf("got %v", r)
	}
}

func TestAnAddressThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	for _, address := range []string{"redis://u:secret@h:port", "http://u:secret@h", "redis://u:secret@h:1/x"} {
		if r, err := redispipe.Open(t.Context(), address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, %v", address, r, err)
		}
	}
}
