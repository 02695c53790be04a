package ledgertest

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/ledger"
)

// A transcript is a story of the ledger that can be read without knowing Go.
// A line is one of
//
//	# a comment
//	at 09:15                            the store's clock, on the first day
//	ID: op; op; ...        => answer    one entry, and what became of it
//	balances (or holds, records, events, journal)
//	  rows of that list, indented
//
// and an op (or another part of an entry) is one of
//
//	move 2 sku:tee @supplier -> stock
//	hold h1 2 sku:tee stock -> sold until 09:15 cap 09:30
//	commit h1       commit h1 2 (the rest is released)       commit h1 2 keep
//	void h1         expire h1        extend h1 09:20
//	record order o1 v1 held          event order.held o1
//	remember        fingerprint WORD reply JSON
//
// Playing a transcript writes it again with the answers that the store gives.
// It holds if nothing changed; `go test ./ledger/ledgertest -rewrite` takes the
// answers of Memory as the right ones, for a reader of the diff to judge.

//go:embed testdata/*.txt
var testdata embed.FS

// Transcripts plays every transcript on a fresh store that open makes. Run
// calls it.
func Transcripts(t *testing.T, open func(t *testing.T, clock func() time.Time) ledger.Store) {
	names, err := fs.Glob(testdata, "testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %d transcripts, error %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(name, "testdata/"), ".txt"), func(t *testing.T) {
			script, err := fs.ReadFile(testdata, name)
			if err != nil {
				t.Fatalf("read %s: %v", name, err)
			}
			got, err := play(newWorld(t, open), string(script))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			compareLines(t, name, got, string(script))
		})
	}
}

func compareLines(t *testing.T, name, got, want string) {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("%s:%d\n got %s\nwant %s", name, i+1, lineOf(g, i), lineOf(w, i))
			return
		}
	}
}

func lineOf(lines []string, i int) string {
	if i >= len(lines) {
		return "(the end)"
	}
	return lines[i]
}

const (
	arrow     = " => "
	maxColumn = 84 // where answers begin at most; longer entries push theirs out
)

// play runs a script and writes it again with the store's answers.
func play(w *world, script string) (string, error) {
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	width := 0
	for _, line := range lines {
		if left, _, ok := strings.Cut(line, arrow); ok {
			if n := len(strings.TrimRight(left, " ")); n <= maxColumn {
				width = max(width, n)
			}
		}
	}
	var out strings.Builder
	for i, line := range lines {
		answer, err := playLine(w, line, width)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
		out.WriteString(answer)
	}
	return out.String(), nil
}

func playLine(w *world, line string, width int) (string, error) {
	if strings.HasPrefix(line, "  ") {
		return "", nil // a row of a list: the list writes its rows anew
	}
	words := strings.Fields(line)
	if len(words) == 0 || line[0] == '#' {
		return line + "\n", nil
	}
	if list, ok := lists[line]; ok {
		return line + "\n" + list(w.rows()), nil
	}
	if words[0] == "at" && len(words) == 2 {
		ms, err := clockTime(words[1])
		if err != nil {
			return "", err
		}
		w.clock.set(ms)
		return line + "\n", nil
	}
	left, _, _ := strings.Cut(line, arrow)
	left = strings.TrimRight(left, " ")
	e, err := parseEntry(left)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%-*s%s%s\n", width, left, arrow, answerOf(w.apply(e)[0])), nil
}

// answerOf is a result in words.
func answerOf(r ledger.Result) string {
	var b strings.Builder
	if !r.Refused() {
		b.WriteString("ok")
	} else {
		fmt.Fprintf(&b, "refused %s", r.Code)
	}
	switch r.Code {
	case ledger.Insufficient, ledger.Overflow:
		fmt.Fprintf(&b, ": %s has %d %s", r.Key.Account, r.Available, r.Key.Asset)
	case ledger.ExceedsHold:
		fmt.Fprintf(&b, ": %d left", r.Available)
	case ledger.HoldFinal:
		fmt.Fprintf(&b, ": %s", r.Hold)
	case ledger.Stale:
		fmt.Fprintf(&b, ": %s %s", r.Record.Kind, r.Record.ID)
	case ledger.Invalid:
		fmt.Fprintf(&b, ": %s", r.Detail)
	}
	if r.Refused() && r.Seq > 0 {
		b.WriteString(", for good")
	}
	if r.Replayed {
		b.WriteString(", as before")
	}
	if len(r.Reply) > 0 {
		fmt.Fprintf(&b, ", reply %s", r.Reply)
	}
	return b.String()
}

// lists write the rows of a store, each indented.
var lists = map[string]func(rows) string{
	"balances": func(all rows) string {
		return each(all.balances, func(b ledger.Balance) string {
			return fmt.Sprintf("%-18s %-12s posted %5d   held %5d", b.Account, b.Asset, b.Posted, b.Held)
		})
	},
	"holds": func(all rows) string {
		return each(all.holds, func(h ledger.Hold) string {
			return fmt.Sprintf("%-6s %-9s %d %s %s -> %s, committed %d, released %d",
				h.ID, h.State, h.Amount, h.Asset, h.From, h.To, h.Committed, h.Released)
		})
	},
	"records": func(all rows) string {
		return each(all.records, func(r ledger.Record) string {
			return fmt.Sprintf("%-8s %-6s v%d %s", r.Kind, r.ID, r.Version, r.State)
		})
	},
	"events": func(all rows) string {
		return each(all.events, func(e ledger.Event) string {
			return fmt.Sprintf("%2d %-16s %s", e.Seq, e.Type, e.Subject)
		})
	},
	"journal": func(all rows) string {
		return each(all.lines, func(l ledger.Line) string {
			at := time.UnixMilli(l.At).UTC().Format("15:04")
			return fmt.Sprintf("%2d %s %-16s %s", l.Seq, at, l.ID, l.Code)
		})
	},
}

func each[T any](rows []T, line func(T) string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s\n", strings.TrimRight(line(r), " "))
	}
	return b.String()
}
