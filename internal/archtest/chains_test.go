package archtest

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// maxSteps is the number of fields in a row that an expression may select from structs of other packages: a.B.C is two.
const maxSteps = 2

// TestNoReachingThrough: an expression with more steps depends on how the values of other packages are nested, and breaks when
// one of them changes; the noun at its beginning should have a method that answers the question.
//
// A step is the selection of a field of ours that is declared in another package than the expression's. Embedded structs that
// are passed without being named are not steps. Indices and dereferences are passed over; the package's own fields, calls, and the
// fields of other modules end the row.
func TestNoReachingThrough(t *testing.T) {
	found := map[string][]string{} // :: folder → places
	for _, p := range packagesOf(t) {
		for _, f := range p.files {
			found[p.pkg] = append(found[p.pkg], p.reaching(f)...)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		switch n, left := len(found[pkg]), chainsLeft[pkg]; {
		case n > left:
			t.Errorf("%s: %d expressions select more than %d fields in a row from other packages, budget %d: "+
				"give the value at the beginning a method\n\t%s", pkg, n, maxSteps, left, strings.Join(found[pkg], "\n\t"))
		case n < left:
			t.Errorf("%s: %d expressions, fewer than before: lower it in chainsLeft (exemptions_test.go)", pkg, n)
		}
	}
	for pkg := range chainsLeft {
		if found[pkg] == nil {
			t.Errorf("chainsLeft: %s has none: remove it", pkg)
		}
	}
}

// reaching returns the expressions of a file that select more than maxSteps fields in a row.
func (p *checkedPackage) reaching(f *ast.File) []string {
	var places []string
	inner := map[ast.Expr]bool{} // parts of an expression that was counted
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || inner[s] {
			return true
		}
		steps, longest := 0, 0
		for e := ast.Expr(s); e != nil; {
			switch x := e.(type) {
			case *ast.SelectorExpr:
				inner[x] = true
				steps++
				if !p.isForeignField(x) {
					steps = 0
				}
				longest = max(longest, steps)
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			default:
				e = nil
			}
		}
		if longest > maxSteps {
			places = append(places, at(s)+": "+types.ExprString(s))
		}
		return true
	})
	return places
}

// isForeignField reports whether s selects a field that another package of ours declares.
func (p *checkedPackage) isForeignField(s *ast.SelectorExpr) bool {
	selection := p.info.Selections[s]
	if selection == nil || selection.Kind() != types.FieldVal {
		return false
	}
	pkg := selection.Obj().Pkg()
	_, ours := folderOf(pkg.Path())
	return ours && pkg != p.types
}
