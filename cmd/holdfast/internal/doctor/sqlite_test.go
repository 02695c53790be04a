package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAFolderThatWillDoHasNothingWrong(t *testing.T) {
	dir := t.TempDir()
	findings := look(t, "sqlite:"+filepath.Join(dir, "shop.db"))
	for _, check := range append([]string{"writable", "file", "version", "journal", "durability"}, everyProof...) {
		if f := finding(findings, check); f.Verdict != OK {
			t.Errorf("got %+v, want %s to be ok", findings, check)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left behind, want nothing", left, err)
	}
}

func TestAFolderThatIsNotThereIsFound(t *testing.T) {
	wantWrong(t, look(t, "sqlite:"+filepath.Join(t.TempDir(), "none", "shop.db")), "writable", "the folder must be there")
}

func TestAFileIsLookedAtAndNotChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		check         string
		want          Verdict
	}{
		{"wal", "SQLite format 3\x00\x10\x00\x02\x02", 0o600, "file", OK},
		{"rollback journal", "SQLite format 3\x00\x10\x00\x01\x01", 0o600, "file", Warning},
		{"empty", "", 0o600, "file", OK},
		{"short", "SQLite", 0o600, "file", Wrong},
		{"text", "sku,price,stock\ntee-m,19.90,3\n", 0o600, "file", Wrong},
		{"open to everybody", "SQLite format 3\x00\x10\x00\x02\x02", 0o644, "permissions", Warning},
	} {
		if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		findings := look(t, "sqlite:"+path)
		if f := finding(findings, c.check); f.Verdict != c.want {
			t.Errorf("%s: got %+v, want %s to be %s", c.name, findings, c.check, c.want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.content {
			t.Errorf("%s: the file was changed to %q, %v", c.name, got, err)
		}
	}
}

func TestAProofFailsOnSQLiteWhereItsClaimDoesNotHold(t *testing.T) {
	for check, table := range map[string]string{
		"unique": `CREATE TABLE t (id INTEGER, n INTEGER NOT NULL CHECK (n >= 0)) STRICT`,
		"check":  `CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT`,
		"strict": `CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0))`,
	} {
		var found chart
		found.sqliteScratch(t.Context(), filepath.Join(t.TempDir(), "scratch.db"), table)
		if wrong := verdicts(found.findings, Wrong); !slices.Contains(wrong, check) {
			t.Errorf("%s: got %+v, want it to be wrong", check, found.findings)
		}
	}
}
