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

// Budgets of production code. Readable code has a median function of ten lines; the budgets
// bound the tail. One goroutine or one lock owns a type: with more methods or fields than this it is several types, and
// spreading its methods over more files does not change that.
const (
	maxFileLines    = 400
	maxFuncLines    = 60
	maxParameters   = 5  // without the receiver
	maxAbstract     = 5  // methods of an interface
	maxMethods      = 20 // of any other type, those of embedded types of ours included
	maxFields       = 15 // of a struct; the nouns of the root are records and may have more
	maxPackageLines = 2500
	maxColumns      = 120 // a tab is four
	maxExempt       = 6   // types, and as many packages
)

// An excess is one thing that is over its budget. Its key names it in exemptions.
type excess struct{ key, text string }

func TestBudgets(t *testing.T) {
	unneeded := maps.Clone(exemptions)
	all := slices.Concat(typeExcesses(t), packageExcesses(t))
	for _, f := range source(t, production) {
		all = append(all, f.excesses()...)
	}
	for _, e := range all {
		why, ok := exemptions[e.key]
		delete(unneeded, e.key)
		if !ok {
			t.Errorf("%s: make it smaller, or say in exemptions (exemptions_test.go), under %q, why not", e.text, e.key)
		} else if why == "" {
			t.Errorf("exemption %q has no reason", e.key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(unneeded)) {
		t.Errorf("exemption %q is not needed any longer: remove it", key)
	}
}

// Exemptions of types and packages are few, so that they stay exceptions.
func TestFewAreExempt(t *testing.T) {
	for _, kind := range []string{"type ", "package "} {
		exempt := slices.DeleteFunc(slices.Sorted(maps.Keys(exemptions)), func(key string) bool {
			return !strings.HasPrefix(key, kind)
		})
		if len(exempt) > maxExempt {
			t.Errorf("%d are exempt, at most %d may be: %q", len(exempt), maxExempt, exempt)
		}
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
