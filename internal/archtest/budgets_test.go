package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Budgets of production code. Code that people like to read has a median function of ten lines; what matters is the tail.
// Packages have no budget of lines: a package is as large as its subject, and the groups of the layout are bounded.
const (
	maxFileLines  = 400
	maxFuncLines  = 60
	maxParameters = 5   // without the receiver
	maxAbstract   = 5   // methods of an interface
	maxColumns    = 120 // a tab is four
)

// An excess is one thing that is over its budget. Its key names it in exemptions.
type excess struct{ key, text string }

func TestBudgets(t *testing.T) {
	unneeded := maps.Clone(exemptions)
	for _, f := range source(t, production) {
		for _, e := range f.excesses() {
			why, ok := exemptions[e.key]
			delete(unneeded, e.key)
			if !ok {
				t.Errorf("%s: make it smaller, or say in exemptions (exemptions_test.go), under %q, why not", e.text, e.key)
			} else if why == "" {
				t.Errorf("exemption %q has no reason", e.key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(unneeded)) {
		t.Errorf("exemption %q is not needed any longer: remove it", key)
	}
}

func TestWidth(t *testing.T) {
	for _, f := range source(t, production) {
		for i, line := range strings.Split(string(f.text), "\n") {
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > maxColumns {
				t.Errorf("%s:%d: %d columns, budget %d", f.name, i+1, n, maxColumns)
			}
		}
	}
}

func (f sourceFile) excesses() []excess {
	var all []excess
	over := func(name string, n, limit int, what string) {
		if n > limit {
			all = append(all, excess{f.name + " " + name, fmt.Sprintf("%s: %s has %d %s, budget %d", f.name, name, n, what, limit)})
		}
	}
	over("file", lines(f.ast), maxFileLines, "lines")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			over(n.Name.Name, lines(n), maxFuncLines, "lines")
			over(n.Name.Name, n.Type.Params.NumFields(), maxParameters, "parameters")
		case *ast.FuncLit:
			over("a function literal", n.Type.Params.NumFields(), maxParameters, "parameters")
		case *ast.TypeSpec:
			if i, ok := n.Type.(*ast.InterfaceType); ok {
				over(n.Name.Name, i.Methods.NumFields(), maxAbstract, "methods")
			}
		}
		return true
	})
	return all
}
