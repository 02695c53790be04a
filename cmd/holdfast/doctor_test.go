package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorSaysOKAndExitsWithZero(t *testing.T) {
	var d diagnosis
	must(t, &d, "doctor", "--store", "sqlite:"+filepath.Join(t.TempDir(), "shop.db"))
	if !d.OK || len(d.Findings) == 0 {
		t.Errorf("got %+v, want findings with nothing wrong", d)
	}
	if r := do(t, "doctor", "--store", newStore(t)); r.status != exitOK || !strings.Contains(r.out, "Nothing is wrong.") {
		t.Errorf("a store of our own: got %v, want nothing wrong", r)
	}
}

func TestDoctorExitsWithOneAndSaysWhatToDo(t *testing.T) {
	missing := "sqlite:" + filepath.Join(t.TempDir(), "none", "shop.db")
	r := do(t, "doctor", "--store", missing)
	if r.status != exitFailed || !strings.Contains(r.out, "wrong: sqlite writable: ") || !strings.Contains(r.err, "something is wrong") {
		t.Errorf("got %v, want status %d and an advice", r, exitFailed)
	}
	if r := do(t, "doctor", "--store", missing, "--json"); r.status != exitFailed || !strings.HasPrefix(r.out, `{"ok":false,`) {
		t.Errorf("got %v, want status %d and an object", r, exitFailed)
	}
}

func TestDoctorExitsWithTwoWhenAnAddressIsNone(t *testing.T) {
	good := "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
	for _, line := range []string{"doctor --store shop.db", "doctor --store mysql://u:p@h", "doctor --redis localhost:6379 --store " + good} {
		if r := do(t, strings.Fields(line)...); r.status != exitUsage || r.out != "" {
			t.Errorf("%s: got %v, want status %d", line, r, exitUsage)
		}
	}
}
