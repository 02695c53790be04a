package ledgertest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of Memory into testdata")

func memory(_ *testing.T, clock func() time.Time) ledger.Store { return ledger.NewMemory(clock) }

func TestMemoryKeepsEveryRule(t *testing.T) {
	if *rewrite {
		rewriteTranscripts(t)
	}
	Run(t, memory)
}

func rewriteTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := play(newWorld(t, memory), string(script))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("rewritten; the embedded transcripts are the old ones until the next run")
}

func TestAMistakeInATranscriptIsAnError(t *testing.T) {
	for _, script := range []string{"o1 move 1 a b -> c", "o1: steal h1", "o1: move 1 a b c", "o1: move x a b -> c",
		"o1: void", "o1: void h1 h2", "o1: hold h1 1 a b -> c until noon", "at noon", "o1: record order o1 first"} {
		if got, err := play(newWorld(t, memory), script); err == nil {
			t.Errorf("%q was played: %s", script, got)
		}
	}
}
