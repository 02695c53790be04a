package doctor

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// server is the address of one of the servers that scripts/test starts.
func server(t *testing.T, variable string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server")
	}
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: run scripts/test, or scripts/with-services go test", variable)
	}
	return address
}

// look examines a store.
func look(t *testing.T, address string) []Finding {
	t.Helper()
	findings, err := Store(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// verdicts are the checks that ended so, in order.
func verdicts(findings []Finding, v Verdict) (checks []string) {
	for _, f := range findings {
		if f.Verdict == v {
			checks = append(checks, f.Check)
		}
	}
	return checks
}

// finding is the answer to a check, the zero Finding if it was not made.
func finding(findings []Finding, check string) Finding {
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	return Finding{}
}

// wantWrong says that a check went wrong and that the advice tells what to do.
func wantWrong(t *testing.T, findings []Finding, check, advice string) {
	t.Helper()
	if f := finding(findings, check); f.Verdict != Wrong || !strings.Contains(f.Advice, advice) || f.Found == "" {
		t.Errorf("got %+v in %+v, want %s to be wrong with the advice %q", f, findings, check, advice)
	}
}

// everyProof are the checks of what is tried.
var everyProof = []string{"matched_rows", "unique", "check", "strict", "rollback", "blocks"}

// only is the proof of one check.
func only(check string) []proof {
	return slices.DeleteFunc(slices.Concat(everywhere, servers), func(p proof) bool { return p.check != check })
}

func TestASoundServerHasNothingWrong(t *testing.T) {
	for _, c := range []struct {
		name, variable string
		checks         []string
	}{
		{"mysql", "HOLDFAST_TEST_MYSQL", []string{"durability", "cluster", "writable", "replica", "isolation"}},
		{"postgres", "HOLDFAST_TEST_POSTGRES", []string{"fsync", "durability", "torn_pages", "replica", "writable", "isolation"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := look(t, server(t, c.variable))
			sound := verdicts(findings, OK)
			for _, check := range slices.Concat([]string{"connect", "version", "clock"}, c.checks, everyProof) {
				if !slices.Contains(sound, check) {
					t.Errorf("got %+v, want %s to be ok", findings, check)
				}
			}
			if wrong := verdicts(findings, Wrong); wrong != nil {
				t.Errorf("got %v wrong, want nothing", wrong)
			}
		})
	}
}

func TestAnAddressThatIsNoneIsSaidSoWithoutThePassword(t *testing.T) {
	for _, address := range []string{
		"", "shop.db", "oracle://u:secret@h/d", "mysql://u:secret@h", "mysql://u:secret@h/a/b", "mysql://h/d", "mysql://u:secret@h/d?charset=latin1",
		"mysql://u:secret%zz@h/d", "mysql://u:secret@h/d?tls=perhaps", "postgres://u:secret@h:port/d", "postgres://u:secret%zz@h/d", "sqlite:", "sqlite::memory:",
	} {
		findings, err := Store(t.Context(), address)
		if err == nil || findings != nil {
			t.Errorf("%q: got %v, %v, want an error", address, findings, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", address, err)
		}
	}
	if _, err := Redis(t.Context(), "memcached://h"); err == nil {
		t.Error("got no error for another server's address")
	}
}

// nobody is a loopback address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAnUnreachableServerIsAFinding(t *testing.T) {
	at := nobody(t)
	for _, address := range []string{"mysql://u:secret@" + at + "/d", "postgres://u:secret@" + at + "/d"} {
		wantWrong(t, look(t, address), "connect", at)
	}
	findings, err := Redis(t.Context(), "redis://"+at)
	if err != nil {
		t.Fatal(err)
	}
	wantWrong(t, findings, "connect", at)
}

func TestVersionsAreComparedAsNumbers(t *testing.T) {
	for _, c := range []struct {
		version string
		least   []int
		want    bool
	}{
		{"10.11.19-MariaDB-0+deb12u1", []int{10, 6, 0}, true}, {"10.6.0-MariaDB", []int{10, 6, 0}, true}, {"10.5.99-MariaDB", []int{10, 6, 0}, false},
		{"8.0.16", []int{8, 0, 16}, true}, {"8.0.9", []int{8, 0, 16}, false}, {"5.7.44-log", []int{8, 0, 16}, false}, {"8.4.0", []int{8, 0, 16}, true},
		{"9", []int{8, 0, 16}, true}, {"8", []int{8, 0, 16}, false}, {"", []int{6, 2, 0}, false}, {"unknown", []int{6, 2, 0}, false},
	} {
		if got := atLeast(c.version, c.least); got != c.want {
			t.Errorf("%q at least %v: got %v, want %v", c.version, c.least, got, c.want)
		}
	}
}

func TestAClockThatDiffersIsFound(t *testing.T) {
	for _, c := range []struct {
		offset time.Duration
		want   Verdict
	}{{0, OK}, {-5 * time.Second, Warning}, {5 * time.Second, Warning}, {-10 * time.Minute, Wrong}, {10 * time.Minute, Wrong}} {
		var chart chart
		chart.clock(func() (time.Time, error) { return time.Now().Add(c.offset), nil })
		if got := chart.findings[0]; got.Verdict != c.want {
			t.Errorf("%v: got %+v, want %s", c.offset, got, c.want)
		}
	}
}
