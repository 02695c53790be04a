package httpapi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast"
)

// TestEveryCodeHasAStatus finds the codes in the source, so that a new one
// can't be forgotten.
func TestEveryCodeHasAStatus(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range append(files, "problem.go") {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if name := v.Names[0].Name; strings.HasPrefix(strings.ToLower(name), "code") {
					names = append(names, name)
				}
			}
			return true
		})
	}
	if len(names) < 50 {
		t.Fatalf("found %d codes: looked in the wrong place", len(names))
	}
	source, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(source), name+":") {
			t.Errorf("%s has no row in statusOf", name)
		}
	}
	for code, status := range statusOf {
		if status < 400 || http.StatusText(status) == "" {
			t.Errorf("%s: got status %d", code, status)
		}
	}
	if len(statusOf) != len(names) {
		t.Errorf("got %d rows for %d codes", len(statusOf), len(names))
	}
	if statusOf[holdfast.CodeOverloaded] != http.StatusServiceUnavailable {
		t.Errorf("got %d for an overload", statusOf[holdfast.CodeOverloaded])
	}
}

func TestCardNumbersAreRecognised(t *testing.T) {
	for s, want := range map[string]bool{
		"4111111111111111": true, "4111 1111 1111 1111": true, "4111-1111-1111-1111": true, "call me: 378282246310005.": true,
		"x4222222222222x": true, "6304000000000000000 and more": true, "1, 2, 4111111111111111": true,
		"4111111111111112": false, "41111111111111110000": false, "411111111111": false, "": false, "2026-01-02 03:04:05": false,
		"4111 1111 1111 1111 1111 1111": false, "order 12345": false,
	} {
		if got := cardNumber(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestAReceiverIsNoCard(t *testing.T) {
	for s, want := range map[string]bool{
		"4111 1111 1111 1111":                  true,
		"5555-5555-5555-4444":                  true,
		"2223003122003222":                     true,
		"6200000000000005":                     true,
		"2088102146225102":                     false, // a user of Alipay's
		"8613800138003":                        false, // a telephone
		"acct_4111111111111111":                false,
		"5b7e1f0c-4111-1111-1111-11116c0a9d3e": false,
		"":                                     false,
	} {
		if got := issued(s); got != want {
			t.Errorf("issued(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var f failures
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 2 * maxFailureNames {
		f.add(strconv.Itoa(i), clock)
	}
	if got := len(f.count); got > maxFailureNames+1 {
		t.Errorf("got %d names, want at most %d", got, maxFailureNames+1)
	}
	if f.add("someone else", clock) == 0 {
		t.Error("those who are not counted apart are not counted together")
	}
	if f.add("0", clock) != 0 {
		t.Error("one failure is too many")
	}
	if f.add("someone else", clock.Add(failureWindow)) != 0 {
		t.Error("the window does not end")
	}
}

func TestAddressIsOneSubscriber(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:5000": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:5000": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::1]:1": "2001:db8:1:2::/64",
		"[::ffff:192.0.2.1]:5000": "192.0.2.1", "[fe80::1%eth0]:5000": "fe80::/64", "pipe": "pipe",
	} {
		if got := address(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}

func TestFailuresSayAsMuchAsTheyMay(t *testing.T) {
	var log strings.Builder
	a := API{log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  bool
		logged bool
	}{
		{fmt.Errorf("holdfast: %w", &holdfast.Rejection{Code: holdfast.CodeOverloaded}), 503, "overloaded", true, false},
		{fmt.Errorf("holdfast: %w", context.DeadlineExceeded), 503, "outcome_unknown", true, false},
		{fmt.Errorf("holdfast: %w", context.Canceled), 503, "outcome_unknown", true, false},
		{fmt.Errorf("holdfast: %w: SQLITE_BUSY", holdfast.ErrUnavailable), 503, "outcome_unknown", true, true},
		{errors.New("SQLITE_FULL: disk of db7 is full"), 500, "internal", false, true},
	} {
		log.Reset()
		w := httptest.NewRecorder()
		a.fail(w, httptest.NewRequest(http.MethodGet, "/", nil), c.err)
		if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":"`+c.code+`"`) || strings.Contains(w.Body.String(), "SQLITE") {
			t.Errorf("%v: got %d %s", c.err, w.Code, w.Body)
		}
		if got := w.Header().Get("Retry-After") != ""; got != c.retry {
			t.Errorf("%v: got Retry-After %q", c.err, w.Header().Get("Retry-After"))
		}
		if got := log.Len() > 0; got != c.logged {
			t.Errorf("%v: got log %q", c.err, log.String())
		}
	}
}
