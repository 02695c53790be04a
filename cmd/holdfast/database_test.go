package main

import (
	"bufio"
	"context"
	"flag"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-pay/holdfast/gateway/stripe/stripesim"
)

var databaseRounds = flag.Int("database.rounds", 1, "how often TestAKilledDatabaseLosesNothing kills each database")

// databases are servers that may be killed.
type databases struct {
	mysql, postgres string // URLs
	pids            string // a folder
}

// killable starts a MariaDB and a PostgreSQL that nobody else uses, as durable
// as in production, that are started again when they end.
func killable(t *testing.T) databases {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const tell = `printenv HOLDFAST_TEST_MYSQL HOLDFAST_TEST_POSTGRES HOLDFAST_TEST_PIDS; echo; exec cat`
	c := exec.Command(filepath.Join("..", "..", "scripts", "with-services"), "bash", "-c", tell)
	c.Env = append(os.Environ(), "HOLDFAST_TEST_RESPAWN=1", "HOLDFAST_TEST_MYSQL=", "HOLDFAST_TEST_POSTGRES=", "HOLDFAST_TEST_REDIS=none")
	var errs strings.Builder
	c.Stderr = &errs
	hold, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close() // ends it
		_ = c.Wait() // a server that was killed is told as a failure
		if t.Failed() {
			t.Logf("with-services: %s", errs.String())
		}
	})
	var told []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != ""; {
		told = append(told, lines.Text())
	}
	switch len(told) {
	case 3:
		return databases{told[0], told[1], told[2]}
	case 2:
		t.Skip("the servers run in containers: they can't be killed from here")
	}
	t.Fatalf("got %q, want the servers", told)
	return databases{}
}

// kill is kill -9.
func (d databases) kill(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.pids, name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("kill %s: %v", name, err)
	}
}

// The database is killed under a sale and comes back; the server stays. Nothing
// that was acknowledged is lost, what was left open is found out under its key,
// and in the end every order is final.
func TestAKilledDatabaseLosesNothing(t *testing.T) {
	t.Parallel()
	d := killable(t)
	t.Run("both", func(t *testing.T) { // ends before the servers do
		for name, url := range map[string]string{"mariadb": d.mysql, "postgres": d.postgres} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sellWhileKilled(t, url, func() { d.kill(t, name) })
			})
		}
	})
}

func sellWhileKilled(t *testing.T, url string, kill func()) {
	must(t, &struct{}{}, "migrate", "--db", url)
	key := stockAndKey(t, url)
	luck := rand.New(rand.NewPCG(*crashSeed, 1))
	sim := stripesim.New(stripesim.Config{Seed: *crashSeed})
	sim.SetFaults(troubledALittle)
	gate := httptest.NewServer(sim)
	defer gate.Close()
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { sim.Run(ctx) })
	defer sending.Wait()
	defer stop()
	p := start(t, gatewayEnv(gate.URL), "--db", url, "--addr", "127.0.0.1:0", "--hold-for", "2s", "--pay-for", "3s", "--poll", "500ms", "--call-for", "2s")
	sim.SetWebhookURL(p.url + "/webhooks/stripe")
	var all []*shopper
	for round := range *databaseRounds {
		shoppers := crowd(luck, p.url, key, round, sim)
		shopUntil(ctx, shoppers, int64(20+luck.IntN(100)), func() {
			kill()
			p.await(t)
		})
		for _, s := range shoppers {
			s.settle(t)
		}
		all = append(all, shoppers...)
	}
	for _, s := range all {
		s.replay(t)
	}
	requests, unknown := count(all)
	t.Logf("%d kills, %d requests, %d of them without a certain answer", *databaseRounds, requests, unknown)
	if unknown == 0 {
		t.Error("no request was under way at any kill: the test has shown nothing")
	}
	awaitRest(t, p, key)
	p.signal(t, syscall.SIGTERM)
	if got := p.ended(); got.ExitStatus() != exitOK {
		t.Errorf("the server ended with %v, want exit status 0", got)
	}
	auditAfterCrashes(t, url, sim, all)
}
