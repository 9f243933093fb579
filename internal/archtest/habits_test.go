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
	"strings"
	"testing"
)

// purePackages read no clock, no random numbers and nothing outside: time and chance are arguments, so
// that the same decisions can be tested, replayed and simulated.
var purePackages = []string{root, "cost", "credential", "dag", "internal/execution", "internal/hedge", "internal/matching", "internal/pilot/attempt",
	"internal/reconcile", "internal/slurm/job", "internal/slurm/submission", "plan", "plan/validator", "planner",
	"planner/algorithm", "planner/besteffort", "planner/greedy", "planner/moga", "planner/portfolio", "planner/slotted", "planner/virtual", "internal/ranking", "selection", "selection/ads", "profile", "resubmit", "sim", "sim/advertiser", "sim/availability", "sim/lublin",
	"sim/market", "sim/queue", "sim/swf", "slot", "internal/usage", "workflow", "workflow/clustered"}

var (
	impureImports = []string{"crypto/rand", "log", "log/slog", "math/rand", "net", "net/http", "os", "os/exec", "syscall"}
	seededRandom  = []string{"New", "NewPCG", "Rand", "Source"} // of math/rand/v2: the seed is an argument
	clockReaders  = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
)

func TestPurePackages(t *testing.T) {
	pure := func(f sourceFile) bool { return !f.isTest && slices.Contains(purePackages, f.pkg) }
	for _, f := range source(t, pure) {
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

// TestNoSleepInTests: a test waits for an event, not for a time. In a synctest bubble a timer advances the virtual time.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range source(t, func(f sourceFile) bool { return f.isTest || slices.Contains(testKits, f.pkg) }) {
		for _, s := range calls(f.ast, "time", "Sleep") {
			t.Errorf("%s: it sleeps: wait for the event", at(s))
		}
	}
}

// TestNothingIsSkipped: make sets up everything that tests need, so a test that does not run has failed.
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

// TestShortTestsNeedNoData: make test runs in a clone with nothing beside it. Tests that read published data have the
// build tag soak, and find the data with internal/datasets.
func TestShortTestsNeedNoData(t *testing.T) {
	const data = "internal/datasets"
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
	outside := "../" + "shared/"
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
