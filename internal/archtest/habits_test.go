package archtest

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// purePackages, with those below them, read no clock, no random numbers and nothing outside: time and chance are
// arguments, so that the same decisions can be tested, replayed and simulated.
var purePackages = []string{
	"credential", "internal/decide", "plan", "resubmit", "workflow", "workflow/clustering", "workflow/dag",
	"workflow/profile", "internal/cli/forecast", "internal/shim/slurm/notation",
}

// isPure reports whether a file is of a pure package.
func isPure(f sourceFile) bool {
	if f.isTest || below(f.pkg, []string{"workflow/formats"}) {
		return false
	}
	return f.pkg == root || below(f.pkg, purePackages)
}

var (
	impureImports = []string{"crypto/rand", "log", "log/slog", "math/rand", "net", "net/http", "os", "os/exec", "syscall"}
	seededRandom  = []string{"New", "NewPCG", "Rand", "Source"} // of math/rand/v2: the seed is an argument
	clockReaders  = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
)

func TestPurePackages(t *testing.T) {
	for _, f := range source(t, isPure) {
		_, others := f.imports()
		for _, p := range others {
			if slices.Contains(impureImports, p) {
				t.Errorf("%s imports %s: package %s is pure", f.name, p, f.pkg)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && !slices.Contains(seededRandom, s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "rand" && slices.Contains(others, "math/rand/v2") {
					t.Errorf("%s: rand.%s: package %s is pure, chance comes from a seed", at(s), s.Sel.Name, f.pkg)
				}
			}
			return true
		})
		for _, name := range clockReaders {
			for _, call := range calls(f.ast, "time", name) {
				t.Errorf("%s: time.%s: package %s is pure, now is an argument", at(call), name, f.pkg)
			}
		}
	}
}

// calls returns the uses of pkg.name in n.
func calls(n ast.Node, pkg, name string) []*ast.SelectorExpr {
	var found []*ast.SelectorExpr
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

// TestNoSleepInTests: a test waits for the event, not for a while. In a synctest bubble a timer moves the virtual time on.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range source(t, func(f sourceFile) bool { return f.isTest || slices.Contains(testKits, f.pkg) }) {
		for _, s := range calls(f.ast, "time", "Sleep") {
			t.Errorf("%s: it sleeps: wait for the event", at(s))
		}
	}
}

// TestNothingIsSkipped: what a test needs is set up by make, so a test that does not run has failed.
func TestNothingIsSkipped(t *testing.T) {
	for _, f := range source(t, func(f sourceFile) bool { return f.isTest || slices.Contains(testKits, f.pkg) }) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow", "Short"}, s.Sel.Name) {
				t.Errorf("%s: %s: a test that does not run shows nothing", at(s), s.Sel.Name)
			}
			return true
		})
	}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".txtar" {
			return err
		}
		script, err := os.ReadFile(name)
		for line := range bytes.Lines(script) {
			if words := strings.Fields(string(line)); slices.Contains(words, "skip") && (words[0] == "skip" || words[0][0] == '[') {
				t.Errorf("%s: skip: a script that does not run shows nothing", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestShortTestsNeedNoData: make test runs in a clone with nothing beside it. What reads published data has the build
// tag soak, and finds them by internal/kit/datasets.
func TestShortTestsNeedNoData(t *testing.T) {
	const data = "internal/kit/datasets"
	long := func(f sourceFile) bool {
		return slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
			x, err := constraint.Parse(c.List[0].Text)
			return err == nil && !x.Eval(func(tag string) bool { return tag != "soak" })
		})
	}
	for _, f := range source(t, func(f sourceFile) bool { return f.pkg != data && !long(f) }) {
		if ours, _ := f.imports(); slices.Contains(ours, data) {
			t.Errorf("%s imports %s: it has to have the build tag soak", f.name, data)
		}
	}
	outside := ".." + "shared/"
	for _, f := range source(t, func(f sourceFile) bool { return f.isTest && f.pkg != data }) {
		if bytes.Contains(f.text, []byte(outside)) {
			t.Errorf("%s names %s: tests find data by %s", f.name, outside, data)
		}
	}
}

func TestPackageComments(t *testing.T) {
	documented := map[string]int{}
	for _, f := range source(t, production) {
		documented[f.pkg] += 0
		if f.ast.Doc != nil {
			documented[f.pkg]++
		}
	}
	for pkg, n := range documented {
		if n != 1 {
			t.Errorf("%s has %d package comments, want exactly one, that says what the package is for", pkg, n)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	library := source(t, func(f sourceFile) bool { return !f.isTest && f.ast.Name.Name != "main" })
	promised := interfaceMethods(library)
	for _, f := range library {
		for i, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				known := !d.Name.IsExported() || !receiverIsExported(d) || isWellKnown(d.Name.Name) ||
					d.Recv != nil && promised[f.pkg+" "+d.Name.Name]
				if !known && !isDocumented(f.ast.Decls, i) {
					t.Errorf("%s: %s is not documented", at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				checkDocs(t, d)
			}
		}
	}
}

// interfaceMethods returns "PACKAGE METHOD" for the documented methods of interfaces: a type that has
// such a method need not say again what it does.
func interfaceMethods(files []sourceFile) map[string]bool {
	methods := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						methods[f.pkg+" "+name.Name] = m.Doc != nil || m.Comment != nil
					}
				}
			}
			return true
		})
	}
	return methods
}

// isDocumented reports whether function i of decls has a comment, or is one of several of one line each
// that stand together under a common one.
func isDocumented(decls []ast.Decl, i int) bool {
	for ; i >= 0; i-- {
		d, ok := decls[i].(*ast.FuncDecl)
		if !ok {
			return false
		}
		if d.Doc != nil {
			return true
		}
		line := func(p token.Pos) int { return fileSet.Position(p).Line }
		if i == 0 || line(d.Pos()) != line(d.End()) || line(decls[i-1].End()) != line(d.Pos())-1 {
			return false
		}
	}
	return false
}

// isWellKnown reports whether a method does what its name says everywhere in Go.
func isWellKnown(name string) bool {
	return slices.Contains([]string{"Error", "Unwrap", "String", "Len", "Less", "Swap"}, name)
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

// checkDocs checks the exported names of a declaration. A comment on a group of constants or variables
// speaks for all of them, and so does the type of an enumeration for its members.
func checkDocs(t *testing.T, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				t.Errorf("%s: %s is not documented", at(s), s.Name.Name)
			}
		case *ast.ValueSpec:
			enumeration := d.Tok == token.CONST && s.Type != nil
			if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil && !enumeration {
				t.Errorf("%s: %s is not documented", at(s), s.Names[0].Name)
			}
		}
	}
}

// TestBatchSystemsAreData: what Corral does differently for one batch system stands in the table of batchsystem.go or
// below gridsite, so that another one is a folder and a line.
func TestBatchSystemsAreData(t *testing.T) {
	names := corral.BatchSystemNames()
	name := func(e ast.Expr) bool {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, err := strconv.Unquote(l.Value)
			return err == nil && slices.Contains(names, text)
		}
		return lastName(e) == "ForkBatch"
	}
	for _, f := range source(t, production) {
		if below(f.pkg, []string{"gridsite", "bench"}) || f.name == "batchsystem.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					if name(n.X) || name(n.Y) {
						t.Errorf("%s compares with the name of a batch system: make the difference a field of corral.BatchSystem", at(n))
					}
				}
			case *ast.CaseClause:
				if slices.ContainsFunc(n.List, name) {
					t.Errorf("%s compares with the name of a batch system: make the difference a field of corral.BatchSystem", at(n))
				}
			}
			return true
		})
	}
}
