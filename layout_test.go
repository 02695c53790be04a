package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-pay/holdfast"

// mayImport says which of our packages each package may import. A package that
// is not listed may not exist. "*" = any.
var mayImport = map[string][]string{
	"ledger":                           {},
	"ledger/ledgertest":                {"ledger"},
	"gateway":                          {},
	"gateway/gatewaytest":              {"gateway"},
	"gateway/dial":                     {},
	"gateway/stripe":                   {"gateway"},
	"gateway/stripe/stripesim":         {"gateway/dial"},
	"gateway/alipay":                   {"gateway"},
	"gateway/alipay/alipaysim":         {"gateway/dial"},
	"gateway/wechatpay":                {"gateway"},
	"gateway/wechatpay/wechatpaysim":   {"gateway/dial"},
	"internal/flow":                    {"ledger"},
	"internal/sqlstore":                {"ledger"},
	"internal/sqlstore/sqlstoretest":   {},
	"internal/pipeline":                {"ledger"},
	"internal/pipeline/pipelinetest":   {"ledger", "internal/pipeline"},
	"internal/redispipe/redispipetest": {},
	"internal/redispipe":               {"ledger", "internal/pipeline"},
	".":                                {"ledger", "gateway", "internal/flow", "internal/sqlstore", "internal/pipeline", "internal/redispipe"},
	"httpapi":                          {".", "ledger", "gateway"},
	"internal/web":                     {".", "ledger"},
	"cmd/holdfast":                     {"*"},
}

// pure packages do no I/O and know no clock and no randomness.
var pure = map[string][]string{
	"ledger":        {"os", "net", "net/http", "database/sql", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"},
	"internal/flow": {"os", "net", "net/http", "database/sql", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"},
}

// mayStart says which packages may start goroutines. Simulators are servers of
// their own; cmd starts the servers; suites are storms.
var mayStart = []string{".", "internal/pipeline", "internal/pipeline/pipelinetest", "gateway/stripe/stripesim", "gateway/alipay/alipaysim", "gateway/wechatpay/wechatpaysim", "cmd/holdfast", "ledger/ledgertest", "gateway/gatewaytest"}

type source struct {
	dir  string // relative to the module
	name string
	file *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []source {
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "interop" || d.Name() == "browser") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		out = append(out, source{path.Dir(filepath.ToSlash(p)), p, f, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// place is the row of the tables above for a folder: cmd may have rooms of its own.
func place(dir string) string {
	if strings.HasPrefix(dir, "cmd/holdfast") {
		return "cmd/holdfast"
	}
	return dir
}

func TestImportsPointOneWay(t *testing.T) {
	for _, s := range sources(t) {
		allowed, ok := mayImport[place(s.dir)]
		if !ok {
			t.Errorf("%s: package %s has no row in mayImport", s.name, s.dir)
			continue
		}
		for _, i := range s.file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if slices.Contains(pure[s.dir], p) {
				t.Errorf("%s imports %s: %s is pure", s.name, p, s.dir)
			}
			ours, ok := strings.CutPrefix(p, module)
			if !ok {
				if place(s.dir) == "ledger" && strings.Contains(strings.Split(p, "/")[0], ".") {
					t.Errorf("%s imports %s: ledger imports the standard library only", s.name, p)
				}
				continue
			}
			ours = strings.TrimPrefix(ours, "/")
			if ours == "" {
				ours = "."
			}
			if !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
				t.Errorf("%s imports %s: not in its direction", s.name, ours)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	says := map[string]bool{}
	for _, s := range sources(t) {
		says[s.dir] = says[s.dir] || s.file.Doc != nil
	}
	for dir, ok := range says {
		if !ok {
			t.Errorf("package %s has no doc comment", dir)
		}
	}
}

func TestOnlyOwnersStartGoroutinesAndOnlyCmdReadsTheWorld(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: no init functions", s.fset.Position(n.Pos()))
				}
			case *ast.GoStmt:
				if !slices.Contains(mayStart, place(s.dir)) {
					t.Errorf("%s: %s starts a goroutine", s.fset.Position(n.Pos()), s.dir)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				what := x.Name + "." + n.Sel.Name
				if (what == "os.Getenv" || what == "os.LookupEnv" || what == "os.Args" || what == "signal.Notify" || what == "signal.NotifyContext" || x.Name == "flag") &&
					place(s.dir) != "cmd/holdfast" && !strings.HasSuffix(s.dir, "test") {
					t.Errorf("%s: %s reads %s; only cmd does", s.fset.Position(n.Pos()), s.dir, what)
				}
				if n.Sel.Name == "Go" && !slices.Contains(mayStart, place(s.dir)) {
					t.Errorf("%s: %s starts a goroutine", s.fset.Position(n.Pos()), s.dir)
				}
				if _, isPure := pure[s.dir]; isPure && (what == "time.Now" || what == "time.Since" || what == "time.After") {
					t.Errorf("%s: %s reads a clock", s.fset.Position(n.Pos()), s.dir)
				}
			}
			return true
		})
	}
}
